"""The arguments of an Optimizer, validated, and what follows from them: the priors, the policy, the initial design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Event, Point
from gpmi.gp.kernels import Kernel
from gpmi.model.fitting.level_covariance import LevelColumn
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.model import ModelSetting
from gpmi.model.orientation import Orientation
from gpmi.model.outputs import orientation_of
from gpmi.optimizer.defaults import Defaults, default_n_init, has_bound
from gpmi.optimizer.earlier import EarlierStudies
from gpmi.optimizer.levels import level_column
from gpmi.optimizer.prior_mean import prior_mean
from gpmi.optimizer.starting_points import starting_points, starts_of
from gpmi.policies import Aim, Policy
from gpmi.policies.objectives import EHVI, MOST_EXACT, JointPolicy, Scalarised
from gpmi.policies.policy import checked_policy
from gpmi.space import Space
from gpmi.trials.goals import Goals, checked_goal
from gpmi.trials.named_goals import given_goals
from gpmi.trials.output_bounds import checked_bounds
from gpmi.trials.units import Units, checked_units
from gpmi.trials.value_bounds import OPEN, ValueBounds
from gpmi.trials.value_goal import ValueGoal


@dataclass(frozen=True, eq=False)
class Arguments:
    """The arguments of an Optimizer, validated. Whatever users may leave out has a value here."""

    space: Space
    goals: Goals
    bounds: Mapping[str, ValueBounds]  # by output
    units: Units
    defaults: Defaults
    policy: Policy
    budget: int | None
    seed: int
    repeats: bool
    n_init: int
    earlier: EarlierStudies
    start: tuple[tuple[Point, Array], ...]  # the points to ask first, with their coordinates
    orientation: Orientation  # how y is turned into the model's y, where larger is better
    setting: ModelSetting  # of the model of a single score
    levels: LevelColumn | None  # where the level of the fidelity is, if it has levels
    kernels: Mapping[str, Any]  # by output; None is learned, and so is what is missing
    noise_vars: Mapping[str, Any]  # likewise
    prior_options: Mapping[str, Any]  # of every `PriorSchedule`: what is known of the space, the noise, the fit
    soften: bool  # whether the model of a single score compresses losses

    @staticmethod
    def of(
        space: Any,
        policy: Policy | None,
        *,
        aim: Aim,
        kernel: Any,
        noise_var: Any,
        fit: Any,
        n_init: int | None,
        budget: int | None,
        repeats: bool,
        seed: int | None,
        goal: str,
        mean: Any,
        x0: Any,
        constraints: Any,
        noise: Any,
        goals: Any,
        bounds: Any,
        units: Any,
        earlier: Any,
    ) -> Arguments:
        """Validate the arguments of an Optimizer."""
        space = Space.of(space).constrained(constraints)
        goals = goals_of(goals, goal, space)
        bounds, units = checked_bounds(bounds, goals), checked_units(units, goals)
        single = goals.single or ""  # no output has this name, so what is known of it is nothing
        kernels, noise_vars = by_output(goals, "kernel", kernel), by_output(goals, "noise_var", noise_var)
        chosen = aim if policy is None else checked_policy(policy)
        bounded = has_bound(space, kernels.get(single), noise_vars.get(single), repeats)
        learned = all(kernels.get(name) is None for name in goals.objectives)
        defaults = Defaults.of(chosen, None if learned else kernel, bounded=bounded)
        space = space.with_ranks() if defaults.rank_columns else space
        if single:
            policy = of_one_objective(goals, defaults.policy)
        else:  # the model of an objective is not bent: the front has values of all sizes
            policy = of_several_objectives(goals, aim, policy, fit, mean)
            defaults = replace(defaults, policy=policy, short_design=False, compress_losses=False)
        budget = None if budget is None else checks.whole("budget", budget, 1)
        seed = drawn_seed() if seed is None else checks.whole("seed", seed, 0, checks.LARGEST_SEED)
        repeats = checks.flag("repeats", repeats)
        lengths = space.units if defaults.widen_choices else space.span
        where: dict[str, Any] = {"span": lengths, "groups": space.groups, "seed": seed, "features": space.features}
        levels = level_column(space, kernel)
        studies = EarlierStudies(earlier, space, goals, where)
        studies.check(kernel, mean, noise)
        sources = studies.rows(single)
        soften = defaults.compress_losses and space.target.rows is not None
        options: dict[str, Any] = {"fit": fit, "noise": noise, **where}
        priors = PriorSchedule(
            kernels.get(single), noise_vars.get(single), **options, soften=soften, levels=levels, sources=sources
        )
        usual = default_n_init(space, priors, budget, len(studies.best), short=defaults.short_design)
        n_init = usual if n_init is None else checks.whole("n_init", n_init, 0)
        orientation = Orientation(goals.direction)
        trend, oriented = orientation.trend(prior_mean(mean, space)), orientation.bounds(bounds.get(single, OPEN))
        arguments = Arguments(
            space=space,
            goals=goals,
            bounds=bounds,
            units=units,
            defaults=defaults,
            policy=policy,
            budget=budget,
            seed=seed,
            repeats=repeats,
            n_init=n_init,
            earlier=studies,
            start=(),
            orientation=orientation,
            setting=ModelSetting(space, priors, seed, trend, bounds=oriented),
            levels=levels,
            kernels=kernels,
            noise_vars=noise_vars,
            prior_options=options,
            soften=soften,
        )
        for name in goals.named:
            arguments.output_setting(name)  # refuses what is not allowed
        return replace(arguments, start=(*starting_points(x0, space), *starts_of(studies.best, space, n_init)))

    @property
    def events(self) -> tuple[Event, ...]:
        """What to know of the arguments."""
        unused = self.space.features is not None and not self.learns_kernels
        note = Event("descriptors", "a kernel is given, which does not use the descriptors of options")
        return (*self.space.events, *self.earlier.events, *((note,) if unused else ()))

    @property
    def learns_kernels(self) -> bool:
        """Whether no objective has a given kernel."""
        return all(self.kernels.get(name) is None for name in self.goals.objectives)

    def bounds_of(self, output: str) -> ValueBounds:
        """Return what an output can be at all."""
        return self.bounds.get(output, OPEN)

    def single_priors(self, **changes: Any) -> PriorSchedule:
        """Return a prior of a single score that knows neither levels nor sources, with other options where given."""
        single = self.goals.single or ""
        priors = self.kernels.get(single), self.noise_vars.get(single)
        return PriorSchedule(*priors, **{**self.prior_options, "soften": self.soften, **changes})

    def output_setting(self, name: str, *, levels: bool = True) -> ModelSetting:
        """Return the setting of the model of an output as if it were measured alone, with or without other levels."""
        sources, fit = self.earlier.rows(name), self.prior_options["fit"]
        options = {**self.prior_options, "fit": "map" if fit == "mcmc" else fit}
        priors = PriorSchedule(
            self.kernels.get(name),
            self.noise_vars.get(name),
            **options,
            levels=self.levels if levels else None,
            sources=sources,
            transforms=False,
        )
        bounds = orientation_of(self.goals[name]).bounds(self.bounds_of(name))
        return ModelSetting(self.space, priors, self.seed, bounds=bounds)


def drawn_seed() -> int:
    """Return a seed that nobody chose."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def goals_of(goals: Any, goal: str, space: Space) -> Goals:
    """Validate the goals of the outputs, or the goal of y; both, and parameters of the same name, are refused."""
    checked_goal(goal)
    if goals is None:
        return ValueGoal.to(goal)
    outputs = given_goals(goals)
    if goal != "max":
        raise ValueError(f"goal is {goal!r}, but goals names the outputs; leave out goal, and say it in goals")
    for name in space.names or ():
        if name in outputs:
            raise ValueError(f"goals has {name!r}, which is also a parameter; give one of them another name")
    return outputs


def of_one_objective(goals: Goals, policy: Policy) -> Policy:
    """Return the policy of a run with one objective; refuse one for several."""
    if isinstance(policy, JointPolicy):
        what = f"{goals.single} is the only objective; leave out policy, or name several outputs in goals="
        raise ValueError(f"policy is {policy!r}, but {what}")
    return policy


def of_several_objectives(goals: Goals, aim: Aim, policy: Policy | None, fit: str, mean: Any) -> Policy:
    """Return the policy of a run with several objectives; refuse arguments that it cannot have."""
    names = tuple(goals.objectives)
    if policy is None:
        policy = EHVI() if aim == "find" and len(names) <= MOST_EXACT else Scalarised()
    if not isinstance(policy, JointPolicy):
        what = f"the goals have {', '.join(names)}; give gpmi.EHVI()"
        raise ValueError(f"policy is {policy!r}, for one objective, but {what}")
    policy.check(names)
    if fit == "mcmc":
        raise ValueError("fit is 'mcmc', but there are several objectives; give 'map' or 'loo'")
    if mean is not None:
        raise ValueError(
            f"mean is {checks.shown(mean)}, but there are several objectives; leave it out, and subtract it in f"
        )
    return policy


def check_single_objective(goals: Goals) -> None:
    """Refuse to recommend one point if there are several objectives."""
    if goals.single is None:
        names = ", ".join(goals.objectives)
        raise ValueError(
            f"with the objectives {names} there is no single point to recommend; read front, or call choose"
        )


def by_output(goals: Goals, argument: str, given: Any) -> Mapping[str, Any]:
    """Return a kernel or a noise_var by output, validated. One that is given as it is counts for every objective."""
    if not isinstance(given, Mapping) or not goals.named:
        return dict.fromkeys(goals.objectives, given)
    outputs = set(goals)
    for name, value in given.items():
        if name not in outputs:
            names = ", ".join(map(repr, goals))
            raise ValueError(f"{argument} has {checks.shown(name)}, which is not an output; give one of {names}")
        if argument == "noise_var" and value is not None:
            checks.variance(f"noise_var[{name!r}]", value)
        elif argument == "kernel" and not isinstance(value, Kernel | None):
            remedy = "give a kernel such as gpmi.kernels.RBF(lengthscale=0.3), or None to learn it"
            raise TypeError(f"kernel[{name!r}] is {checks.shown(value)}; {remedy}")
    return given
