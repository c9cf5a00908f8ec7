"""The values of one output, as rows of its model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Observations
from gpmi.space import FidelityColumn
from gpmi.trials.trial import Trial


class OutputRow(NamedTuple):
    """One value of an output, as a model knows it."""

    order: int  # its place among all outcomes and reports
    number: int  # of the trial
    x: Array  # (d,)
    y: float
    noise_var: float = 0.0
    repeats: int = 1


def output_rows(
    name: str, trial: Trial, x: Array, found: FidelityColumn, enters: Callable[[int], bool]
) -> Iterator[OutputRow]:
    """Yield the values of an output of a trial at x (d,): those of its curve that enter the model, and the last one."""
    for i, report in enumerate(trial.curve if trial.status not in ("retracted", "rejected") else ()):
        if name in report.values and enters(i):
            yield OutputRow(report.order, trial.number, found.at(x, report.step), report.values[name])
    if trial.status == "told" and name in trial.values:
        yield OutputRow(trial.order or 0, trial.number, x, trial.values[name], *trial.noise_of(name))


def observed_of(rows: Iterable[OutputRow]) -> tuple[list[int], Observations]:
    """Return the trials behind values of an output, in their order, and these values."""
    ordered = sorted(rows, key=lambda row: row.order)
    x = np.array([row.x for row in ordered]) if ordered else np.empty((0, 0))
    y, noise_var, repeats = (
        np.array([getattr(row, name) for row in ordered], dtype=float) for name in ("y", "noise_var", "repeats")
    )
    return [row.number for row in ordered], Observations.of(x, y, noise_var, repeats)
