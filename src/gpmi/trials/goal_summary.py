"""What a person reads about a run with goals: its front, the best of each objective, what is infeasible or missing.

Functions of trials and goals, without a model. The front here compares the values that were told; `FrontAnalysis.front`
compares posterior means where values are noisy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from gpmi._support.text import NAME, Line, best_lines, rounded, shortened, some_of
from gpmi._support.types import Point
from gpmi.space import Space
from gpmi.trials.goal_kinds import Match, Min, Objective
from gpmi.trials.goals import Goals
from gpmi.trials.trial import Trial

LISTED = 60  # characters of the numbers of trials that wait for one output, at most; our choice


def missing_outputs(trials: Iterable[Trial], goals: Goals) -> dict[int, tuple[str, ...]]:
    """Return the objectives and limits that told trials wait for, by the number of the trial.

    An output that is only watched may be left out, and so may one that another trial at the same point has: a second
    measurement of one output waits for nothing.
    """
    told = [trial for trial in trials if trial.status == "told"]
    measured: dict[bytes, set[str]] = {}
    for trial in told:
        measured.setdefault(_place(trial), set()).update(trial.values)
    wanted = [name for name, goal in goals.items() if goal is not None]
    missing = {trial.number: tuple(name for name in wanted if name not in measured[_place(trial)]) for trial in told}
    return {number: names for number, names in missing.items() if names}


def _place(trial: Trial) -> bytes:
    return trial.x.tobytes() if isinstance(trial.x, np.ndarray) else repr(dict(trial.x)).encode()


def broken_limits(trial: Trial) -> tuple[str, ...]:
    """Return the outputs that break their limit; one that was not measured yet breaks none."""
    return tuple(name for name in trial.unmet if name in trial.outputs)


def at_target(trials: Iterable[Trial], space: Space) -> Iterable[Trial]:
    """Return the trials that are at the target of the fidelity, or on the way to it: all of them if there is none.

    Where there are steps, these are all trials but those that a user ends earlier, by a step that is fixed.
    """
    targets = space.target_values.items()
    return [trial for trial in trials if all(trial.x[name] == target for name, target in targets)]


def told_front(trials: Iterable[Trial], goals: Goals, space: Space) -> tuple[Trial, ...]:
    """Return the trials that no other trial beats in every objective by the values told, one for each point.

    They are feasible, and no objective is worse than what was stated as acceptable. O(n) for each of them. Only values
    at the target of a fidelity count.
    """
    acceptable = [trial for trial in at_target(trials, space) if trial.feasible and goals.accepts(trial.outputs)]
    values = {trial.number: _oriented(trial, goals) for trial in acceptable}
    order = sorted(acceptable, key=lambda trial: tuple(values[trial.number]), reverse=True)
    front: list[Trial] = []  # sorted downwards, so that only an earlier trial can dominate a later one
    above = np.empty((0, len(goals.objectives)))
    places: set[bytes] = set()
    for trial in order:
        value, place = values[trial.number], space.encode(trial.x).tobytes()
        dominated = np.any(np.all(above >= value, axis=1) & np.any(above > value, axis=1))
        if not dominated and place not in places:
            front.append(trial)
            above = np.concatenate([above, value[None]])
            places.add(place)
    return tuple(sorted(front, key=lambda trial: trial.number))


def along_front(front: Iterable[Trial], goals: Goals, most: int | None = None) -> list[Trial]:
    """Return the trials of a front from the best in the first objective to the worst: all, or `most` spread over it."""
    order = sorted(front, key=lambda trial: tuple(_oriented(trial, goals)), reverse=True)
    if most is None or len(order) <= most:
        return order
    return [order[round(i * (len(order) - 1) / (most - 1))] for i in range(most)]


def _oriented(trial: Trial, goals: Goals) -> np.ndarray:
    """Return the objectives of a trial, larger is better, (k,)."""
    return np.array([float(goal.oriented(np.asarray(trial.outputs[name]))) for name, goal in goals.objectives.items()])


# Lines


def found_lines(
    goals: Goals, trials: Iterable[Trial], x: Point | None, y: float | None, front: Sequence[Trial], note: str = ""
) -> list[Line]:
    """Return the goals and what was found: the best point (x, y) of a single objective, or the front of several."""
    stated = [("goals", str(goals))] if goals.named else []
    if goals.single is None:
        told = sum(trial.status == "told" for trial in trials)
        return [*stated, *front_lines(front, goals, told=told, note=note)]
    measured = bool(goals.limits) or any(trial.constraints for trial in trials)
    return [*stated, *best_lines(goals.direction, x, y, measured=measured, output=goals.single)]


def front_lines(front: Sequence[Trial], goals: Goals, *, told: int, note: str = "") -> list[Line]:
    """Return the number of trials on the front and the best value of each objective there.

    `told` is the number of trials with a value, and `note` says how they were compared.
    """
    if not front:
        why = "" if not told else ": no trial has all objectives, keeps all limits and is acceptable"
        return [("front", f"none yet{why}")]
    lines = [("front", f"{len(front)} of {told} trials{note}")]
    for (name, goal), best in zip(goals.objectives.items(), _best_of_each(front, goals), strict=True):
        target = f" (target {rounded(goal.target)})" if isinstance(goal, Match) else ""
        text = f"{rounded(best.outputs[name])} in trial {best.number}{target}"
        lines.append((f"{superlative(goal)} {shortened(name, NAME)}", text))
    return lines


def best_on_front(front: Sequence[Trial], goals: Goals) -> list[str]:
    """Return the best value of each objective on a front that is not empty: ["largest yield 71.2", ...]."""
    return [
        f"{superlative(goal)} {shortened(name, NAME)} {rounded(best.outputs[name])}"
        for (name, goal), best in zip(goals.objectives.items(), _best_of_each(front, goals), strict=True)
    ]


def _best_of_each(front: Sequence[Trial], goals: Goals) -> list[Trial]:
    values = np.array([_oriented(trial, goals) for trial in front])
    return [front[int(i)] for i in np.argmax(values, axis=0)]


def superlative(goal: Objective) -> str:
    """Return what the best value of an objective is called: largest, smallest or closest."""
    return "closest" if isinstance(goal, Match) else "smallest" if isinstance(goal, Min) else "largest"


def infeasible_note(trials: Iterable[Trial]) -> list[str]:
    """Say how many trials break a limit, and which: ["3 infeasible (purity in 2, size in 1)"]; empty if none does."""
    broken = [names for trial in trials if trial.status == "told" and (names := broken_limits(trial))]
    if not broken:
        return []
    counts = Counter(shortened(name, NAME) for names in broken for name in names)
    which = [f"{name} in {count}" for name, count in counts.items()] if len(counts) > 1 else list(counts)
    return [f"{len(broken)} infeasible ({some_of(which, LISTED)})"]


def waiting_lines(trials: Iterable[Trial], goals: Goals) -> list[Line]:
    """Return a line with the trials that wait for outputs, by output; none if no trial does."""
    waiting: dict[str, list[str]] = {}
    for number, names in missing_outputs(trials, goals).items():
        for name in names:
            waiting.setdefault(name, []).append(str(number))
    texts = [
        f"trial{'s' if len(waiting[name]) > 1 else ''} {some_of(waiting[name], LISTED)} for {shortened(name, NAME)}"
        for name in goals
        if name in waiting
    ]
    return [("waiting", "; ".join(texts))] if texts else []
