"""What a user tells together: values, and the trials of an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gpmi._support import checks
from gpmi._support.checks import checked_noise
from gpmi._support.types import Point
from gpmi.search.subspaces import Subspaces
from gpmi.space import Space, frozen
from gpmi.trials import Log, Outcome, Trial
from gpmi.trials.dataframe import Printable, trials_given
from gpmi.trials.goals import Goals
from gpmi.trials.outcomes import check_count, details_of
from gpmi.trials.outputs import Outputs
from gpmi.trials.replay import adopted, checked_trials


def given_observations(
    given: Iterable[Any] | Printable, noise_var: float | Mapping[str, float], log: Log, space: Space
) -> list[tuple[Point, Outcome]]:
    """Validate all observations of `Optimizer.tell_all` before any is told; `noise_var` is added to that of each."""
    extra = _extra_noise(noise_var, log.goals)
    count, checked = log.count_of_constraints(), []
    for observation in trials_given("observations", given):
        if not isinstance(observation, Trial) or observation.status == "told":
            x, outcome = _observation(observation, log)
            count = check_count(outcome.constraints, count)
            checked.append((space.canonical(x), _with_more_noise(outcome, extra)))
    return checked


def given_trials(given: Iterable[Any] | Printable, log: Log, space: Space, subspaces: Subspaces) -> list[Trial]:
    """Validate the trials of an earlier run for `Optimizer.replay`, as the run of the log has them."""
    earlier = checked_trials(trials_given("trials", given), log.count_of_constraints())
    checked = [adopted(trial, log) for trial in earlier]
    fixed = [subspaces.with_fixed(trial.fixed).fixed for trial in checked]
    points = [frozen(space.canonical(trial.x)) for trial in checked]
    return [replace(t, x=x, fixed=values) for t, x, values in zip(checked, points, fixed, strict=True)]


def _extra_noise(noise_var: Any, goals: Goals) -> float | dict[str, float]:
    if not isinstance(noise_var, Mapping) or not goals.named:
        return checked_noise(noise_var, 1)[0]
    return {
        goals.checked_name(name): checked_noise(variance, 1, output=name)[0] for name, variance in noise_var.items()
    }


def _observation(observation: Any, log: Log) -> tuple[Point, Outcome]:
    """Validate the value of an observation."""
    if isinstance(observation, Trial):
        trial = adopted(observation, log)
        outcome = Outcome("told", trial.y, **details_of(trial)).checked()
        return trial.x, outcome
    if isinstance(observation, tuple | list) and len(observation) in (2, 3):
        return observation[0], log.goals.outcome(
            observation[1], noise_var=observation[2] if len(observation) == 3 else 0.0
        )
    raise TypeError(f"observations has {checks.shown(observation)}; give (x, y), (x, y, noise_var) or a Trial")


def _with_more_noise(outcome: Outcome, extra: float | Mapping[str, float]) -> Outcome:
    """Return an outcome with this variance added to its own, and to that of each output."""
    if not outcome.outputs:
        assert not isinstance(extra, Mapping)
        return replace(outcome, noise_var=checked_noise(outcome.noise_var + extra, 1)[0])
    by_name = extra if isinstance(extra, Mapping) else dict.fromkeys(outcome.outputs, extra)
    variances = {name: outcome.output_noise_var.get(name, 0.0) + by_name.get(name, 0.0) for name in outcome.outputs}
    return replace(outcome, output_noise_var=Outputs(variances)).checked()
