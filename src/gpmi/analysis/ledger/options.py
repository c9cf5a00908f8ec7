"""What is known of each option of a choice: its values, its best setting, and its chance to hold the best of all.

An option is judged by its best setting over all other parameters, not by those of the best option.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpmi._support.text import percent, round_to_sd, shortened
from gpmi._support.types import Array, Numbers, Point
from gpmi.space import Space
from gpmi.space.axes import Axis, axes_of

NAME = 40  # characters of an option in a line of text, at most
FORGOTTEN = 20  # values since the last one of an option that may hold the best: our choice, not tuned
LIKELY = 0.1  # the chance from which an option may hold the best: our choice, not tuned


@dataclass(frozen=True)
class OptionSummary:
    """What is known of one option of a choice."""

    parameter: str
    option: Any
    values: int  # how many values it has
    idle: int  # how many values came since its last one; all if it has none
    x: Point | None = None  # the point with the best mean among all with this option; None if no point has it
    best: float | None = None  # f there, the median of the belief; None if it is not known yet
    sd: float | None = None  # how uncertain that is
    chance: float | None = None  # that the maximum of f has this option; None if it is not known yet
    output: str = ""  # the output that this is about; "" if it has no name

    @property
    def is_forgotten(self) -> bool:
        """Whether it may hold the best, and has not been tried for long."""
        return self.chance is not None and self.chance > LIKELY and self.idle >= FORGOTTEN

    def to_json(self) -> dict[str, Any]:
        """Return what is known as plain values, without the point."""
        return {
            **{"parameter": self.parameter, "option": str(self.option), "output": self.output},
            **{"values": self.values, "best": self.best, "sd": self.sd, "chance": self.chance},
        }

    @property
    def believed(self) -> str:
        """What f is at its best setting, as text; empty while it is not known."""
        if self.best is None or self.sd is None:
            return ""
        return f"{round_to_sd(self.best, self.sd)} ± {round_to_sd(self.sd, self.sd)}"

    def __str__(self) -> str:
        """Return what is known, in a line."""
        count = f"{self.values} value{'s' * (self.values != 1)}"
        chance = "" if self.chance is None else f"best with {percent(self.chance)}, "
        return f"{shortened(str(self.option), NAME)} {self.believed}".strip() + f" ({chance}{count})"


def choices_of(space: Space) -> list[Axis]:
    """Return the choices without an order that vary."""
    axes = axes_of(space)
    return [axis for axis in axes if axis.settings.shape[1] == len(axis.options) > 1]


def places(axis: Axis, rows: Array) -> Numbers:
    """Return which option each of the rows (m, d) has, (m,); -1 where the choice is inactive."""
    result: Numbers = np.nan_to_num(axis.positions(rows), nan=-1.0).astype(np.intp)
    return result


def summaries(
    space: Space, rows: Array, where: Array | None, at_best: Callable[[Space], tuple[Point, float, float]]
) -> Iterator[OptionSummary]:
    """Yield what is known of each option of each choice.

    `rows` (n, d) have the values, in their order. `where` (s, d) are maxima of drawn functions; None if they are not
    known. `at_best` returns the best point of a part of the space, with f there and its standard deviation.
    """
    for axis in choices_of(space):
        at, peaks = places(axis, rows), None if where is None else places(axis, where)
        for number, option in enumerate(axis.options):
            tried = np.flatnonzero(at == number)
            idle = len(rows) - (int(tried[-1]) + 1 if len(tried) else 0)
            summary = OptionSummary(axis.name, option, len(tried), idle)
            if peaks is None:
                yield summary
                continue
            try:
                part = space.with_fixed({axis.name: option}).target
            except ValueError:  # constraints leave no point with this option
                yield replace(summary, chance=0.0)
                continue
            x, best, sd = at_best(part)
            yield replace(summary, x=x, best=best, sd=sd, chance=float(np.mean(peaks == number)))


def scarcest(space: Space, rows: Array) -> OptionSummary | None:
    """Return the option with the fewest of the rows (n, d); None without a choice.

    An option of a finite set whose points were all queried is never the one.
    """
    scarce: OptionSummary | None = None
    for axis in choices_of(space):
        counts = _counts(axis, rows)
        if space.rows is not None:
            counts = np.where(counts >= _counts(axis, space.rows), np.iinfo(counts.dtype).max, counts)
        number = int(np.argmin(counts))
        if scarce is None or counts[number] < scarce.values:
            scarce = OptionSummary(axis.name, axis.options[number], int(counts[number]), idle=0)
    return scarce


def longest_idle(space: Space, rows: Array) -> int:
    """Return how many of the rows (n, d) came after the last one of the option that was tried least lately."""
    places_of = ((axis, places(axis, rows)) for axis in choices_of(space))
    last = (np.flatnonzero(at == number) for axis, at in places_of for number in range(len(axis.options)))
    return max((len(rows) - 1 - int(tried[-1]) if len(tried) else len(rows) for tried in last), default=0)


def _counts(axis: Axis, rows: Array) -> Numbers:
    """Return how many of the rows (m, d) have each option."""
    result: Numbers = np.bincount(places(axis, rows) + 1, minlength=len(axis.options) + 1)[1:]
    return result
