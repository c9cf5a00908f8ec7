"""Infer the parameters of a study and their conditions from its trials.

Optuna defines a study by running it: only the objective knows which parameters exist, and when. A parameter that only
some trials have is assumed to depend on the values of other parameters, if some values explain all trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from gpmi.integrations.optuna.search_space import SearchSpace, parameter_of, varied, varies
from gpmi.space import MOST_OPTIONS, Parameters

Seen: TypeAlias = Mapping[str, float]  # the parameters of a trial as storages keep them: a choice by its position


def inferred(trials: Sequence[FrozenTrial]) -> SearchSpace | None:
    """Return the search space of the trials, each parameter with its latest distribution; None without any.

    Parameters with a single value are left out, and so are those whose presence no other values explain. O(n p) for
    n trials with p parameters; where some are not in all trials, O(n p^2).
    """
    distributions, whens = described(trials)
    kept = {name: distribution for name, distribution in varied(distributions).items() if name in whens}
    if not kept:
        return None
    parameters = (parameter_of(distribution, whens[name] or None) for name, distribution in kept.items())
    return SearchSpace(kept, Parameters(tuple(parameters), tuple(kept)))


def described(trials: Sequence[FrozenTrial]) -> tuple[dict[str, BaseDistribution], dict[str, dict[str, list[Any]]]]:
    """Return the latest distribution of each parameter, and the conditions that explain when it is present.

    Completed trials are used if there are any, then pruned, then failed ones, which may have ended before they had
    all their parameters.
    """
    for state in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL):
        used = [trial for trial in trials if trial.state == state and trial.distributions]
        if used:
            break
    distributions = {name: distribution for trial in used for name, distribution in trial.distributions.items()}
    return distributions, conditions(distributions, [_seen(trial) for trial in used])


def conditions(
    distributions: Mapping[str, BaseDistribution], trials: Sequence[Seen]
) -> dict[str, dict[str, list[Any]]]:
    """Return the condition of each parameter, {} where all trials have it; leave out those nothing explains."""
    whens: dict[str, dict[str, list[Any]]] = {}
    for name in distributions:
        if all(name in trial for trial in trials):
            whens[name] = {}
        elif (when := _condition(name, distributions, trials)) is not None:
            whens[name] = when
    while lost := [name for name, when in whens.items() if any(parent not in whens for parent in when)]:
        for name in lost:
            del whens[name]
    return whens


def _condition(
    name: str, distributions: Mapping[str, BaseDistribution], trials: Sequence[Seen]
) -> dict[str, list[Any]] | None:
    """Return the fewest parents whose values separate the trials with this parameter from those without.

    None if no values do. A parent comes before the parameter in all trials that have it. Of several explanations, the
    one that more trials have is kept, and of these the nearest.
    """
    having = [list(trial) for trial in trials if name in trial]
    before = [set(order[: order.index(name)]) for order in having]
    order = [q for q in having[-1] if q in set.intersection(*before) and _is_discrete(distributions.get(q))]
    allowed = {q: _values(q, name, distributions[q], trials) for q in order}

    def explains(parents: Sequence[str]) -> bool:
        return bool(parents) and not any(
            all(q in trial and trial[q] in allowed[q] for q in parents) for trial in trials if name not in trial
        )

    if not explains(order) or not all(allowed.values()):
        return None
    for q in sorted(order, key=lambda q: (sum(q in trial for trial in trials), order.index(q))):
        rest = [other for other in order if other != q]
        if explains(rest):
            order = rest
    return {q: [distributions[q].to_external_repr(number) for number in sorted(allowed[q])] for q in order}


def _values(q: str, name: str, distribution: BaseDistribution, trials: Sequence[Seen]) -> set[float]:
    """The values of q under which a parameter is there: those seen with it; of an integer also what is nearer to one
    of these than to any that was seen without it."""
    having = {trial[q] for trial in trials if name in trial}
    if isinstance(distribution, CategoricalDistribution):
        return having
    assert isinstance(distribution, IntDistribution)
    without = {trial[q] for trial in trials if name not in trial and q in trial} - having
    levels = [float(v) for v in range(distribution.low, distribution.high + 1, distribution.step)]

    def near(level: float, seen: set[float]) -> float:
        return min((abs(level - other) for other in seen), default=float("inf"))

    return {level for level in levels if near(level, having) <= near(level, without)}


def _is_discrete(distribution: BaseDistribution | None) -> bool:
    if distribution is None or not varies(distribution):
        return False
    if isinstance(distribution, IntDistribution):
        return (distribution.high - distribution.low) // distribution.step < MOST_OPTIONS
    return isinstance(distribution, CategoricalDistribution)


def _seen(trial: FrozenTrial) -> Seen:
    distributions = trial.distributions.items()
    return {name: float(distribution.to_internal_repr(trial.params[name])) for name, distribution in distributions}
