"""The front of two objectives: trials, a staircase, and where the model believes the front to be."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from gpmi._support.text import percent, shortened
from gpmi._support.types import Array
from gpmi.analysis import FrontBands
from gpmi.trials import Goals, Match, Objective, Trial
from gpmi.views.front_view import KINDS, better, kind_of, shown_values, sign_of, staircase, stated, title_of
from gpmi.views.pictures.picture import Level, Line, Mark, Outline, Picture, Points, Ruler

NAME = 40  # characters of the name of an output, at most
WIDE = 200.0  # values that span this factor have a logarithmic scale; our choice


def front_of(
    goals: Goals,
    pair: tuple[str, str],
    trials: Sequence[Trial],
    front: Collection[int],
    bands: FrontBands | None,
    middle: int | None,
) -> Picture:
    """Return two objectives of trials that have both; with these two alone also the staircase of the front.

    `front` are the numbers of the trials on the front, and `middle` is marked by a star.
    """
    chosen = [goals.objectives[name] for name in pair]
    places = np.stack([shown_values(trials, name, goal) for name, goal in zip(pair, chosen, strict=True)])  # (2, n)
    kinds = np.array([kind_of(trial, front) for trial in trials])
    on_front, alone = places[:, kinds == "front"], len(goals.objectives) == 2
    marks: list[Mark] = []
    border = np.empty((0, 2))
    if bands is not None:
        border = np.concatenate([bands.low, bands.high[::-1]])
        which = "the best possible front" + ("" if alone else " of these two alone")
        marks.append(Outline(border[:, 0], border[:, 1], label=f"{which}, with probability {percent(bands.level)}"))
        marks.append(Line(bands.median[:, 0], bands.median[:, 1], "front-median", "its median"))
    worst = [stated(goal) for goal in chosen]
    if alone and on_front.size:
        reference = None if None in worst else np.array(worst, dtype=float)
        corners = staircase(on_front.T, np.array([sign_of(goal) for goal in chosen]), reference)
        marks.append(Line(corners[:, 0], corners[:, 1], "front-stairs"))
    names = [shortened(title_of(name, goal), NAME) for name, goal in zip(pair, chosen, strict=True)]
    rulers = [
        _ruler(f"{name} ({better(goal)})", goal, values, ends, edge)
        for name, goal, values, ends, edge in zip(names, chosen, places, on_front, border.T, strict=True)
    ]
    for side, value, ruler in zip(("x", "y"), worst, rulers, strict=True):
        if value is not None and ruler.lo <= value <= ruler.hi:
            marks.append(Level(value, "x" if side == "x" else "y", label="the worst that is acceptable"))
    for kind, meaning in reversed(KINDS.items()):  # those on the front on top
        shown = np.flatnonzero(kinds == kind).tolist()
        x, y = places[:, shown]
        marks += [Points(x, y, kind, meaning, tuple(trials[i] for i in shown))] if shown else []
    star = [i for i, trial in enumerate(trials) if trial.number == middle]
    x, y = places[:, star]
    marks += [Points(x, y, "star", f"trial {middle}")] if star else []
    words = f"{on_front.shape[1]} trials on the front and {len(trials) - on_front.shape[1]} others. "
    return Picture(" and ".join(names), f"{words}The tables have the numbers.", rulers[0], rulers[1], marks)


def _ruler(title: str, goal: Objective, values: Array, front: Array, band: Array) -> Ruler:
    """Return an axis that shows the front, its band, what is acceptable if that is near, and all but extreme values.

    Values that span a factor of WIDE have a logarithmic scale, but not distances, which may be 0.
    """
    low, high = np.quantile(values, [0.05, 0.95])
    reach = 1.5 * (high - low)
    inner = np.concatenate([values[(values >= low - reach) & (values <= high + reach)], front])
    worst, wide = stated(goal), float(np.ptp(inner))
    if worst is not None and inner.min() - wide <= worst <= inner.max() + wide:
        inner = np.append(inner, worst)
    ruler = Ruler.fitted(title, inner, wide=WIDE)
    return ruler if ruler.log and not isinstance(goal, Match) else Ruler.fitted(title, np.concatenate([inner, band]))
