"""Points as a plate: wells A1 to H12, as a table for the person at the bench, as CSV and as HTML."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi.trials.files import guarded_cell
from gpmi.trials.trial import Trial

LARGEST = 64  # rows or columns of a plate, at most: 32 x 48 is the largest that is sold
_STYLE = (
    "<style>@media print{@page{size:A4 landscape;margin:8mm}}"
    ".gpmi-plate{border-collapse:collapse;font:10px sans-serif;page-break-inside:avoid}"
    ".gpmi-plate th,.gpmi-plate td{border:1px solid #999;padding:2px 4px;text-align:left;vertical-align:top;"
    "white-space:nowrap}.gpmi-plate caption{text-align:left;font-size:12px;padding:4px 0}</style>"
)


@dataclass(frozen=True)
class Plate:
    """Points in the wells of a plate, row by row: A1, A2, ... Made by `gpmi.plate`.

    `shared` are the settings that all wells have in common, `own` those of each well. `print` shows the plate as a
    table, a notebook as HTML that prints on one page.
    """

    rows: int
    columns: int
    wells: tuple[str, ...]  # the name of the well of each point
    points: tuple[Mapping[str, Any], ...]
    numbers: tuple[int, ...] | None = None  # of the trials, if the points are those of trials

    @property
    def shared(self) -> dict[str, Any]:
        """The settings that are the same in every well, if there is more than one well."""
        first = self.points[0]
        if len(self.points) == 1:
            return {}
        return {k: v for k, v in first.items() if all(k in p and p[k] == v for p in self.points)}

    @property
    def own(self) -> tuple[dict[str, Any], ...]:
        """The other settings of each well."""
        shared = self.shared
        return tuple({k: v for k, v in point.items() if k not in shared} for point in self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return iter(zip(self.wells, self.points, strict=True))

    def __getitem__(self, well: str) -> Mapping[str, Any]:
        if well not in self.wells:
            raise KeyError(f"well is {checks.shown(well)}; the plate has {self.wells[0]} to {self.wells[-1]}")
        return self.points[self.wells.index(well)]

    def csv_text(self) -> str:
        """Return the text of `to_csv`."""
        names = list(dict.fromkeys(name for point in self.points for name in point))
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        head = ["well", *(["trial"] if self.numbers is not None else []), *names]
        writer.writerow([guarded_cell(name) for name in head])
        for i, (well, point) in enumerate(self):
            number = [] if self.numbers is None else [str(self.numbers[i])]
            writer.writerow([well, *number, *(guarded_cell(point[n]) if n in point else "" for n in names)])
        return file.getvalue()

    def to_csv(self, path: str | Path) -> None:
        """Write a line for each well, with its name, the number of its trial and its settings in full.

        A text that a spreadsheet would run as a formula is written with quotation marks, as in files of trials.
        """
        Path(path).write_text(self.csv_text(), encoding="utf-8", newline="")

    def __str__(self) -> str:
        """Return the wells as lines of a table, after what they share."""
        names = list(dict.fromkeys(name for point in self.own for name in point))
        number = [] if self.numbers is None else ["trial"]
        lines = [["well", *number, *names]]
        for i, (well, point) in enumerate(zip(self.wells, self.own, strict=True)):
            mark = [] if self.numbers is None else [str(self.numbers[i])]
            lines.append([well, *mark, *(_shown(point[n]) if n in point else "" for n in names)])
        widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        table = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        head = [f"all wells: {_settings(self.shared)}"] if self.shared else []
        return "\n".join([*head, *table])

    def page(self) -> str:
        """Return an HTML page with the plate, for the printer."""
        return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Plate</title>{self._repr_html_()}</html>\n'

    def _repr_html_(self) -> str:
        """Return the plate as it lies on the bench: a cell for each well, with the settings that are its own."""
        cells = {well: (i, settings) for i, (well, settings) in enumerate(zip(self.wells, self.own, strict=True))}
        used = -(-len(self.points) // self.columns)
        lines = [f"<tr><th></th>{''.join(f'<th>{c + 1}</th>' for c in range(self.columns))}</tr>"]
        for row in range(used):
            line = f"<tr><th>{_letters(row)}</th>"
            for column in range(self.columns):
                i, settings = cells.get(f"{_letters(row)}{column + 1}", (None, {}))
                number = "" if i is None or self.numbers is None else f"<b>#{self.numbers[i]}</b><br>"
                text = "<br>".join(html.escape(f"{name} {_shown(value)}") for name, value in settings.items())
                line += f"<td>{number}{text}</td>"
            lines.append(f"{line}</tr>")
        caption = f"<caption>all wells: {html.escape(_settings(self.shared))}</caption>" if self.shared else ""
        return f'{_STYLE}<table class="gpmi-plate">{caption}{"".join(lines)}</table>'


def plate(points: Sequence[Any], rows: int = 8, columns: int = 12) -> Plate:
    """Return points, or trials, as the wells of a plate, row by row: A1, A2, ..., A12, B1, ...

    Examples
    --------
    >>> print(plate([{"base": 1.0, "T": 40}, {"base": 2.5, "T": 40}]))
    all wells: T 40
    well  base
    A1    1
    A2    2.5
    """
    rows, columns = checks.whole("rows", rows, 1, LARGEST), checks.whole("columns", columns, 1, LARGEST)
    if isinstance(points, Mapping | str) or not isinstance(points, Sequence | np.ndarray):
        raise TypeError(f"points is {checks.shown(points)}; give a list of points or trials, as from ask(96)")
    if len(points) == 0:
        raise ValueError("points has no point; give at least one")
    if len(points) > rows * columns:
        raise ValueError(
            f"points has {len(points)} points, but a plate of {rows} x {columns} has {rows * columns} wells; "
            "give fewer, or a larger plate"
        )
    wells = [f"{_letters(r)}{c + 1}" for r in range(rows) for c in range(columns)]
    trials = [point for point in points if isinstance(point, Trial)]
    if trials and len(trials) < len(points):
        raise TypeError("points has trials and points; give only trials, or only points")
    settings = tuple(_settings_of(point.x if isinstance(point, Trial) else point) for point in points)
    numbers = tuple(trial.number for trial in trials) if trials else None
    return Plate(rows, columns, tuple(wells[: len(settings)]), settings, numbers)


def _settings_of(point: Any) -> Mapping[str, Any]:
    """Return a point as a dict; x0, x1, ... where it is an array."""
    if isinstance(point, Mapping):
        return dict(point)
    if checks.shape(point) is None or len(checks.shape(point) or ()) != 1:
        raise TypeError(f"points has {checks.shown(point)}, which is no point; give dicts, arrays of numbers or trials")
    return {f"x{i}": float(value) for i, value in enumerate(point)}


def _letters(row: int) -> str:
    """Return A, B, ..., Z, AA, AB, ..."""
    return ("" if row < 26 else chr(64 + row // 26)) + chr(65 + row % 26)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in settings.items())
