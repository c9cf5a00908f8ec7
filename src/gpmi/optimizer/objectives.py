"""A suggestion for several objectives: what is known of the front, the reference, and the search for the best score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from gpmi._support.types import Array, Event, FrozenPoint, Mask
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.ensemble import Ensemble
from gpmi.gp.posterior import Posterior
from gpmi.model.model import risk_now
from gpmi.model.outputs import OutputModel, is_exact, objective_values, signs_of, targets_of
from gpmi.optimizer.exclusions import and_unsafe, around_pending, around_rejected
from gpmi.optimizer.suggestion import Suggestion
from gpmi.policies.front import non_dominated
from gpmi.policies.objectives import EHVI, JointPolicy, Standing
from gpmi.policies.policy import LOG_SAFE, State
from gpmi.policies.reference import inner_reference, wide_is_due, wide_reference
from gpmi.search.barriers import Barriers
from gpmi.search.joint import JointObjective
from gpmi.search.subspaces import Subspace
from gpmi.space import Parameters, Space, SpaceExhausted
from gpmi.trials import Log
from gpmi.trials.goals import Goals

DRAWS = 8  # of f at the told points, if these are not known exactly; docs/benchmarks/objectives.md
JOINT = 4  # stream id of a suggestion for several objectives
WIDE = "wide"  # the note of a trial whose reference was wide
NEAR = 8  # points of the front around which the search looks, at most; our choice


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the objectives at the points told and pending."""

    x: Array  # (n, d)
    outputs: tuple[Ensemble, ...]  # the posteriors in each draw
    y: Array  # (S, n, k), the outputs there, as the model has them
    values: Array  # (S, n, k), the objectives there, larger is better
    told: int  # how many of the points are told


def from_objectives(
    models: Mapping[str, OutputModel],
    goals: Goals,
    policy: JointPolicy,
    log: Log,
    subspace: Subspace,
    chance: SuccessProbability | None,
    seed: int,
    *,
    budget: int | None,
    repeats: bool,
) -> Suggestion:
    """Return the policy's choice, given the models of all objectives and the pending trials of the log."""
    space = subspace.space
    horizon = None if budget is None else max(1, budget - log.unchosen)
    stream = (seed, len(log.told), len(log.failed) + len(log.pending), JOINT)
    rng = np.random.default_rng(stream)
    draws = DRAWS if isinstance(policy, EHVI) else 0
    knowledge = known_of(models, goals, log, space, rng, draws)
    works = feasible_points(knowledge.x, log, chance, knowledge.told)
    risk = risk_now(log, horizon)
    size, dim = space.extent
    t = int(log.chosen([*log.told, *log.pending, *log.failed]).sum()) + 1
    state = State(
        t=t,
        size=size,
        dim=dim,
        horizon=horizon,
        caution=risk.caution if chance is not None else 0.0,
        log_enough=risk.log_enough,
    )
    posteriors = [(goal, models[name].model.posterior) for name, goal in goals.objectives.items()]
    means = np.stack([objective_values(goal, posterior.mu(knowledge.x)) for goal, posterior in posteriors], axis=1)
    prior = np.array([objective_values(goal, np.array(posterior.mean)) for goal, posterior in posteriors])
    reference, is_wide = reference_of(goals, means, works, knowledge, log, prior)
    names, signs = tuple(goals.objectives), tuple(signs_of(goals))
    standing = Standing(
        knowledge.values, knowledge.y, works, reference, targets_of(goals), state, stream, names=names, signs=signs
    )
    score = policy.joint_score(standing)
    state = replace(state, best_mean=policy.level(standing))
    objective = JointObjective(knowledge.outputs, score, policy, state, chance)
    good = _around(knowledge, works, reference, space)
    barred = around_rejected(space, log) if space.rows is None else None
    barred = and_unsafe(chance, space, barred, LOG_SAFE if risk.used_up else None)
    search, apart = subspace.search, _apart(space, log, barred)
    try:
        result = search.best_joint(objective, good, _taken(log, space, models, repeats), rng, apart)
    except SpaceExhausted:
        if not repeats:
            raise
        result = search.best_joint(objective, good, _never_again(log, space), rng, apart)
    fields = {"policy_notes": FrozenPoint({WIDE: 1.0})} if is_wide else {}
    return Suggestion(space.decode(result.row), "policy", fields, (*_events(models), *result.events))


def known_of(
    models: Mapping[str, OutputModel], goals: Goals, log: Log, space: Space, rng: np.random.Generator, draws: int
) -> Known:
    """Return what is known at the points told and pending: exactly, or as draws if a value is uncertain.

    With fixed coordinates the points are moved there, and the posterior means are taken for what is known. So they are
    if `draws` is 0.
    """
    pending = [log.rows[number] for number in log.pending]
    objectives = [(goal, models[name].model.posterior) for name, goal in goals.objectives.items()]
    rows = _distinct(_moved([log.rows[number] for number in log.told], space)).reshape(-1, space.dim)
    told = {row.tobytes() for row in rows}
    new = _distinct([row for row in _moved(pending, space) if row.tobytes() not in told])
    x = np.concatenate([rows, new.reshape(-1, space.dim)])
    exact = not draws or space.fixed_coordinates or all(is_exact(posterior, rows) for _, posterior in objectives)
    if exact:
        extended = [posterior.anticipate(np.array(pending)) if pending else posterior for _, posterior in objectives]
        ensembles = tuple(Ensemble(posterior) for posterior in extended)
        y = [posterior.mu(x)[None] for _, posterior in objectives]
    else:
        ensembles, y = (), [posterior.sample(x, rng, draws) for _, posterior in objectives]
        for (_, posterior), drawn in zip(objectives, y, strict=True):
            start = Posterior.prior(posterior.kernel, 0.0, posterior.mean, posterior.trend)
            ensembles = (*ensembles, Ensemble(start.condition(x, drawn[0]), drawn))
    values = [objective_values(goal, drawn_values) for (goal, _), drawn_values in zip(objectives, y, strict=True)]
    return Known(x, ensembles, np.stack(y, axis=2), np.stack(values, axis=2), len(rows))


def _moved(rows: list[Array], space: Space) -> list[Array]:
    """Return the points with the fixed coordinates of the space; those of a table that have them."""
    if not space.fixed_coordinates or not rows:
        return rows
    if isinstance(space, Parameters):
        return list(space.move_to_fixed(np.array(rows)))
    return [row for row in rows if space.contains(row)]


def _distinct(rows: list[Array]) -> Array:
    return np.array(list({row.tobytes(): row for row in rows}.values()))


def feasible_points(x: Array, log: Log, chance: SuccessProbability | None, told: int) -> Mask:
    """Return which of the points count for the front: those that probably succeed and have broken no limit.

    A limit that is not measured yet at a told point counts as at a pending one: by its probability.
    """
    if chance is None:
        return np.ones(len(x), dtype=bool)
    works = chance.likely(x)
    outcomes = log.outcomes
    if outcomes is not None and outcomes.constraints.shape[1]:
        works[:told] &= outcomes.feasible_at(x[:told], unmeasured=True)
    return works


def reference_of(
    goals: Goals, values: Array, works: Mask, knowledge: Known, log: Log, prior: Array
) -> tuple[Array, bool]:
    """Return the reference (k,), and whether it is wide: what was stated, and an inferred value where nothing was.

    `values` (n, k) are the objectives at the points told and pending, and `works` (n,) says which of them count. If
    nothing is known, as with fixed coordinates that no point can have, it is the prior mean of each objective, (k,).
    """
    stated = np.array([np.nan if goal.reference is None else goal.reference for goal in goals.objectives.values()])
    if not np.isnan(stated).any():
        return stated, False
    if len(values) == 0:
        return np.where(np.isnan(stated), prior, stated), True
    places = {row.tobytes(): i for i, row in enumerate(knowledge.x)}
    asked = [log[number] for number in log.told if log[number].origin == "policy"]
    rows = ((places.get(log.rows[trial.number].tobytes()), trial) for trial in asked)
    queries = [(row, bool((trial.policy_notes or {}).get(WIDE))) for row, trial in rows if row is not None]
    is_wide = wide_is_due(values, works, queries) or not works.any()
    seen = values[works] if works.any() else values
    wide_so_far = sum(is_wide for _, is_wide in queries)
    inner = inner_reference(seen)
    inferred = wide_reference(values, inner, wide_so_far) if is_wide else inner
    return np.where(np.isnan(stated), inferred, stated), is_wide


def _around(knowledge: Known, works: Mask, reference: Array, space: Space) -> Array:
    """Return points of the front, spread over it, around which to look."""
    values = knowledge.values[0]
    at = np.flatnonzero(works) if works.any() else np.arange(len(knowledge.x))
    above = at[np.all(values[at] > reference, axis=1)]
    on_front = above[non_dominated(values[above])].tolist() or at.tolist()
    order = sorted(on_front, key=lambda i: tuple(values[i]))
    chosen = np.unique(np.linspace(0, len(order) - 1, min(NEAR, len(order))).round().astype(int))
    return knowledge.x[[order[i] for i in chosen]]


def _taken(log: Log, space: Space, models: Mapping[str, OutputModel], repeats: bool) -> Mapping[int, Array]:
    """Return the trials whose points may not be asked again: all, if nothing is noisy or `repeats` is False."""
    noisy = repeats and any(
        not is_exact(output.model.posterior, output.model.posterior.x) for output in models.values()
    )
    return _never_again(log, space) if noisy else {**log.rows, **_never_again(log, space)}


def _never_again(log: Log, space: Space) -> Mapping[int, Array]:
    """Return the trials whose points are never asked again: rejected ones and, on a finite set, failed ones."""
    failed = {number: log.rows[number] for number in log.failed} if space.rows is not None else {}
    return {**failed, **{number: log.row(number) for number in log.rejected}}


def _apart(space: Space, log: Log, barred: Barriers | None) -> Barriers | None:
    return around_pending(space, log, barred) if log.pending and space.rows is None else barred


def _events(models: Mapping[str, OutputModel]) -> tuple[Event, ...]:
    return tuple(
        event for output in models.values() for event in (*output.model.prior.events, *output.model.posterior.events)
    )
