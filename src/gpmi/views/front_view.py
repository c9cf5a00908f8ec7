"""A front as figures and reports show it: objectives in the units that a user reads, kinds of trials, a staircase.

An objective is shown as it was measured. One with a target is shown as the distance from it, which is smaller the
better, so that a front has the same shape for all goals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from gpmi._support.text import rounded
from gpmi._support.types import Array
from gpmi.trials import AtLeast, AtMost, Goal, Goals, Match, Max, Min, Objective, Trial

# Our choices, for the cost: a band takes seconds.
MAX_PAIRS = 10  # pictures of pairs of objectives: all pairs of five
MAX_BANDS = 6  # pairs that have a band: all pairs of four

Kind: TypeAlias = Literal["front", "beaten", "broken", "waiting"]
KINDS: dict[Kind, str] = {
    "front": "on the front",
    "beaten": "beaten by another one",
    "broken": "breaks a limit",
    "waiting": "a limit is not measured yet",
}


def kind_of(trial: Trial, front: Collection[int]) -> Kind:
    """Return what a trial with all objectives is; `front` are the numbers of the trials on the front."""
    if trial.number in front:
        return "front"
    if trial.feasible:
        return "beaten"
    return "broken" if any(name in trial.outputs for name in trial.unmet) else "waiting"


def complete(trials: Iterable[Trial], goals: Goals) -> list[Trial]:
    """Return the trials with a value of every objective."""
    objectives = goals.objectives.keys()
    return [trial for trial in trials if trial.status == "told" and objectives <= trial.outputs.keys()]


def shown_values(trials: Sequence[Trial], name: str, goal: Goal) -> Array:
    """Return an output of trials as it is shown, (n,): the distance from a target, nan where it is missing."""
    y = np.array([trial.outputs.get(name, np.nan) for trial in trials], dtype=float)
    return np.abs(y - goal.target) if isinstance(goal, Match) else y


def sign_of(goal: Objective) -> float:
    """Return 1.0 if a large shown value is better, else -1.0."""
    return 1.0 if isinstance(goal, Max) else -1.0


def title_of(name: str, goal: Goal) -> str:
    """Return what a shown value is: the name, or the distance from a target."""
    return f"distance of {name} from {rounded(goal.target)}" if isinstance(goal, Match) else name


def better(goal: Objective) -> str:
    """Return which way is better, in words."""
    return "larger is better" if isinstance(goal, Max) else "smaller is better"


def stated(goal: Goal) -> float | None:
    """Return the worst acceptable value of an objective as it is shown, or the limit; None if none was stated."""
    match goal:
        case Max(at_least=worst) | Min(at_most=worst) | Match(within=worst) | AtLeast(worst) | AtMost(worst):
            return worst
    return None


def measured_levels(goal: Goal) -> list[tuple[float, str]]:
    """Return the values of an output that matter, in the units that were measured, each with what it is."""
    match goal:
        case Match(target, float(within)):
            return [(target, "target"), (target - within, "acceptable"), (target + within, "acceptable")]
        case Max() | Min():
            return [(worst, "acceptable") for worst in [stated(goal)] if worst is not None]
        case AtLeast(value) | AtMost(value):
            return [(value, "limit")]
    return []


def purpose(goal: Goal) -> str:
    """Return what an output is for, in words."""
    match goal:
        case Max(None):
            return "as large as possible"
        case Min(None):
            return "as small as possible"
        case Max(worst):
            return f"as large as possible, at least {rounded(worst)}"
        case Min(worst):
            return f"as small as possible, at most {rounded(worst)}"
        case Match(target, within):
            return f"as close to {rounded(target)} as possible, within {rounded(within)}"
        case AtLeast() | AtMost():
            return f"must be {goal}"
    return "only watched"


def pairs_of(goals: Goals) -> list[tuple[str, str]]:
    """Return the pairs of objectives that are drawn."""
    return list(combinations(goals.objectives, 2))[:MAX_PAIRS]


def staircase(points: Array, signs: Array, reference: Array | None = None) -> Array:
    """Return the corners (m, 2) of the border of what points (n, 2) of a front dominate, from the best x to the best y.

    `signs` (2,) are 1.0 where a larger value is better and -1.0 where a smaller one is. With a reference (2,) the
    border starts and ends there. Points that others dominate have no corner.
    """
    corners: list[tuple[float, float]] = []
    for x, y in sorted((signs * points).tolist(), reverse=True):
        if not corners or y > corners[-1][1]:
            corners += [(x, corners[-1][1])] if corners else []
            corners.append((x, y))
    if corners and reference is not None:
        worst_x, worst_y = (signs * reference).tolist()
        (first_x, first_y), (last_x, last_y) = corners[0], corners[-1]
        corners = [(first_x, min(worst_y, first_y)), *corners, (min(worst_x, last_x), last_y)]
    result: Array = signs * np.array(corners).reshape(-1, 2) + 0.0  # + 0.0: no minus before a zero
    return result
