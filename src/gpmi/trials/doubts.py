"""Values that do not fit the others, until somebody says whether they are right. `gpmi.optimizer.doubts` finds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpmi._support.types import FrozenPoint
from gpmi.trials.trial import Trial


def first_doubts(trials: Iterable[Trial]) -> dict[str, int]:
    """Return the first trial with an open doubt about each output: at most one value of each is set aside. O(n)"""
    doubtful = sorted((trial for trial in trials if trial.doubt is not None), key=lambda trial: -(trial.order or 0))
    return {name: trial.number for trial in doubtful for name, why in (trial.doubts or {}).items() if why}


def counted(trial: Trial, set_aside: Mapping[str, int]) -> Mapping[str, float]:
    """Return what was measured in a trial, without its values that are set aside."""
    if trial.number not in set_aside.values():
        return trial.values
    return {name: y for name, y in trial.values.items() if set_aside.get(name) != trial.number}


def doubts_that_stay(before: Trial, corrected: Trial) -> Mapping[str, str] | None:
    """Return the doubts about outputs that a correction leaves as they were; none if it changes no value at all."""
    changed = {name for name, y in corrected.values.items() if before.values.get(name) != y}
    if not changed or before.doubts is None:
        return None
    return FrozenPoint({name: why for name, why in before.doubts.items() if name not in changed}) or None
