"""A fit on some of many observations: its minima are compared by their evidence on more of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpmi._support.types import Event
from gpmi.model.fitting.criterion import Criterion, FitSetting
from gpmi.model.fitting.data import FitData
from gpmi.model.fitting.descent import ROUNDS, DescentPoint, descend
from gpmi.model.fitting.warp import Warp

JUDGE_POINTS = 1024  # observations on which the minima of a fit on FIT_POINTS of them are compared, at most

EARLIER_STAYS = Event(
    "subset", "an earlier prior explains all values better than one learned from others of them, and stays"
)


def best_of_all(
    criterion: Criterion,
    starts: Sequence[DescentPoint],
    judged: Callable[[DescentPoint], float],
    earlier: DescentPoint | None,
) -> tuple[DescentPoint, tuple[Event, ...]]:
    """Return the best minimum after a descent from each start, or the earlier fit as it is, with an event."""
    minima = [descend(criterion, begin, ROUNDS) for begin in starts]
    if earlier is None:
        return min(minima, key=judged), ()
    unchanged = descend(criterion, earlier, 0)
    minimum = min([*minima, unchanged], key=judged)
    return minimum, (EARLIER_STAYS,) if minimum is unchanged else ()


def surprisal_of_all(
    setting: FitSetting, whole: FitData, warp: Warp, criterion: Criterion, scale: float
) -> Callable[[DescentPoint], float]:
    """Return -log p(y, q) at a point in the units of `criterion`, for y of up to JUDGE_POINTS rows of `whole`.

    Each call costs a factorisation, O(n^3).
    """
    rows = whole.at_most(JUDGE_POINTS)
    _, unit, data = replace(rows, y=warp(rows.y)).standardised()
    judge = setting.criterion(data.x, data.y, unit, data.noises)

    def surprisal(point: DescentPoint) -> float:
        noise = criterion.noise(point.q) * (scale / unit) ** 2
        return judge.surprisal(judge.covariance.q_of(criterion.covariance.kernel(point.q), noise))

    return surprisal
