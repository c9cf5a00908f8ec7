"""A table of options with their descriptors, as CSV: from a file beside a study file, or pasted into a form."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any


def features_of_csv(text: str, options: Sequence[Any]) -> dict[Any, dict[str, float]]:
    """Return the descriptors of options. The first column has the options, the first row the names of descriptors.

    Rows of other options are left out, so that one file may serve several studies.
    """
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row] or [[]]
    if len(header) < 2 or not rows:
        raise ValueError(
            "the table has no descriptors; give the options in its first column, and a column for each descriptor"
        )
    descriptors: dict[Any, dict[str, float]] = {}
    for row in rows:
        for option in (option for option in options if str(option) == row[0].strip()):
            if option in descriptors:
                raise ValueError(f"the table has {row[0]!r} twice; give each option one row")
            if len(row) != len(header):
                raise ValueError(f"the table has {len(row)} cells for {row[0]!r} and {len(header)} columns")
            cells = zip(header[1:], row[1:], strict=True)
            descriptors[option] = {name.strip(): _number(row[0], name, cell) for name, cell in cells}
    return descriptors


def _number(option: str, name: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"the table has {name} = {cell!r} for {option!r}; give a number") from None
