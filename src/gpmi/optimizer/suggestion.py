"""Where the next point comes from: the initial design while it lasts, then the policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.sobol import far_apart
from gpmi._support.types import Array, Event, Point
from gpmi.gp.posterior import Posterior
from gpmi.gp.trend import Trend
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.model import Model, ModelSetting, PendingPosteriors, objective, risk_now
from gpmi.model.orientation import Orientation
from gpmi.optimizer.duplicates import SAME
from gpmi.optimizer.escape import where_else
from gpmi.optimizer.selection import Choice, Chooser
from gpmi.policies import GPUCBPE, Explore, Find, Policy, Reinvest, guard
from gpmi.policies.improvement import log_h
from gpmi.policies.policy import LOG_SAFE, TINY
from gpmi.policies.risk import Risk
from gpmi.search.barriers import Barriers
from gpmi.search.finite import drawn_maximum
from gpmi.search.objective import Objective
from gpmi.search.screen import farthest
from gpmi.search.subspaces import Subspace
from gpmi.space import Space
from gpmi.trials import Log, Origin

GUARD = 1  # tells the random numbers of the guard from those of the search
# Around a rejected point none is asked within NEAR of the width in every coordinate until SOON more values were told:
# five are about a tenth of a usual run. Within SAME none is asked ever. Our choices, not tuned.
NEAR, SOON = 0.05, 5
AWAY = 2.0  # sd from the best mean to a point that is worth exploring under given coordinates: our choice, not tuned
APART = 0.02  # trials closer than this, in diagonals of the space, are at one place: our choice, not tuned


class Suggestion(NamedTuple):
    """A point to ask, with what the model says of it."""

    x: Point
    origin: Origin
    said: dict[str, Any]  # fields of a Trial
    events: tuple[Event, ...]


def default_n_init(space: Space, priors: PriorSchedule, budget: int | None) -> int:
    """The size of the initial design: none with a given prior, else three points more than there are parameters.

    At most ten, and at most a third of the budget: our choice, docs/policy.md.
    """
    if priors.is_fixed:
        return 0
    n_init = min(10, len(set(space.groups)) + 3)
    return n_init if budget is None else max(1, min(n_init, budget // 3))


def from_design(place: Subspace, setting: ModelSetting, log: Log, n_init: int) -> Suggestion | None:
    """The next point of the initial design that is not in the log; None when the design is complete.

    It is complete with trials at n_init places, or once the policy has chosen; but a prior that is learned needs a
    value first. Points told close to each other are one place: six penalties in one corner are no design.
    """
    blind = not setting.priors.is_fixed and not log.told
    barred = barriers(place.space, log)
    if not blind and (log.unchosen < len(log) or _places(setting.space, log, n_init) >= n_init):
        return None
    x = place.design.first_free(log.places, barred)
    return None if x is None else Suggestion(x, "design", {}, ())


def starting_points(x0: Any, space: Space) -> tuple[tuple[Point, Array], ...]:
    """The points that the user wants first, each with its coordinates; `x0` is one point or several of them."""
    if x0 is None:
        return ()
    numbers = checks.shape(x0)
    one = isinstance(x0, Mapping) or (numbers is not None and len(numbers) == 1 and not _has_points(x0))
    try:
        points = [x0] if one else list(x0)
    except TypeError:
        raise TypeError(f"x0 is {checks.shown(x0)}; give a point of the space, or a list of them") from None
    if not points:
        raise ValueError("x0 has no point; give at least one, or leave it out")
    try:
        return tuple((space.canonical(x), space.encode(x)) for x in points)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"x0 is {checks.shown(x0)}; give a point of the space, or a list of them ({error})") from error


def _has_points(x0: Any) -> bool:
    """Whether a flat list has points in it, and not the numbers of one."""
    return any(isinstance(x, Mapping) or checks.shape(x) for x in x0)


def from_start(start: tuple[tuple[Point, Array], ...], space: Space, log: Log) -> Suggestion | None:
    """The first of the user's starting points without a trial and not as good as rejected; None if there is none.

    Where coordinates are given, `space` is the part of the space that has them, and the point must be in it.
    """
    barred = barriers(space, log) if start else None
    for x, row in start:
        if space.fixed_coordinates and not space.contains(row):
            continue
        if row.tobytes() not in log.places and (barred is None or not barred.holds(row[None], core=True)[0]):
            return Suggestion(x, "design", {}, ())
    return None


@dataclass(frozen=True)
class AtCoordinates:
    """A function of the user's points, at coordinates (d,)."""

    mean: Callable[[Any], float]
    space: Space

    def __call__(self, row: Array) -> float:
        x = self.space.decode(row)
        return checks.number(
            "mean(x)", self.mean(x), f"mean must return one finite number, as at x = {checks.shown(x)}"
        )


def known_mean(mean: Any, space: Space) -> Trend | None:
    """The prior mean function of the user, in coordinates."""
    if mean is None:
        return None
    if not callable(mean):
        raise TypeError(f"mean is {checks.shown(mean)}; give a function of one point that returns a number")
    return Trend(AtCoordinates(mean, space), space.lo, space.hi)


def barriers(space: Space, log: Log) -> Barriers | None:
    """Where no point may be asked because points were rejected; None if none was. On a finite set only their rows."""
    if not log.rejected:
        return None
    at = np.array([log.row(number) for number in log.rejected])
    if space.rows is not None:
        return Barriers(at, np.zeros_like(at), np.zeros_like(at))
    soon = np.array([log.told_since(number) < SOON for number in log.rejected])
    core = np.maximum(SAME * space.span, space.rounding) + np.zeros_like(at)
    return Barriers(at, np.where(soon[:, None], NEAR * space.span, core), core)


def _with_unsafe(model: Model, barred: Barriers | None, log_least: float | None) -> Barriers | None:
    """The barriers, and where a query succeeds with a lower probability than exp(log_least), if it is not None."""
    chance = model.chance
    if chance is None or log_least is None:
        return barred
    none = np.empty((0, model.setting.space.dim))
    return (barred or Barriers(none, none, none))._replace(unsafe=lambda z: chance.log(z) < log_least)


def _places(space: Space, log: Log, most: int) -> int:
    """How many trials keep a distance from each other, counted up to `most`."""
    if len(log) < most or most == 0:
        return len(log)
    unit = (np.array(list(log.rows.values())) - space.lo) / space.span
    return len(far_apart(unit, np.arange(len(unit)), APART, most))


def by_policy(
    model: Model,
    policy: Policy,
    log: Log,
    place: Subspace,
    extensions: PendingPosteriors,
    orientation: Orientation,
    *,
    budget: int | None,
    repeats: bool,
) -> Suggestion:
    """The policy's choice, given the model after everything told and the pending trials of the log."""
    setting, space = model.setting, place.space
    horizon = None if budget is None else max(1, budget - log.unchosen)
    rng = np.random.default_rng([setting.seed, model.n, len(log.failed) + len(log.pending)])
    risk = risk_now(log, horizon)
    barred = barriers(space, log) if space.rows is None else None
    barred = _with_unsafe(model, barred, LOG_SAFE if risk.used_up else None)
    alike = likeness(model, space, log) if space.fixed_coordinates and isinstance(policy, Reinvest) else 1.0
    seen = among(objective(model, policy, log, horizon, extensions), model, space, alike)
    chooser = Chooser(model, log, place, orientation, seen, rng, barred, repeats)
    charged = dict[str, Any]()
    if isinstance(policy, Find) and (x := _elsewhere(model, log, place, orientation, risk)) is not None:
        choice = Choice(Explore(), scored := seen.with_policy(Explore()), scored.result_at(space.encode(x)))
        return _suggested(choice, model, log, space, orientation, charged)._replace(x=x)  # to the last bit
    if isinstance(policy, Find):
        choice = chooser.found(policy)
    elif isinstance(policy, GPUCBPE) and _follows(space, log):
        choice = chooser.explored(policy)
    else:
        choice = chooser.best(policy)
        if isinstance(policy, Reinvest) and repeats:
            choice, charged = _guarded(choice, model, log, place, chooser)
    return _suggested(choice, model, log, space, orientation, charged)


def _elsewhere(model: Model, log: Log, place: Subspace, orientation: Orientation, risk: Risk) -> Point | None:
    """A point apart from the policy, if there is nothing to learn where it looks; None also if there is no new one."""
    space = place.space
    where = where_else(model, log, space, orientation)
    if where is None:
        return None
    # No policy weighs the point that is farthest by its chance, and where f cannot be had there is no hill to find.
    unsafe = LOG_SAFE if risk.used_up else None
    barred = _with_unsafe(model, barriers(space, log), risk.log_far if where == "farthest" else unsafe)
    if where == "design":
        return place.design.first_free(log.places, barred)
    row = farthest(space, model.setting.seed, np.array(list(log.rows.values())), barred)
    return None if row is None else space.decode(row)


def _suggested(
    choice: Choice, model: Model, log: Log, space: Space, orientation: Orientation, charged: Mapping[str, Any]
) -> Suggestion:
    """The point with what the model says of it."""
    used, scored, found = choice
    mu, sd = model.in_units_of_y(found.mu, math.sqrt(found.var))
    below = scored.state.best_mean - found.mu  # the best mean at a told point
    said = {
        "mu": orientation.value(mu),
        "sd": sd,
        "phi": found.score - found.mu if used.additive else None,
        "gamma_hat": scored.state.gamma_hat,
        "explored": not log.told or below > math.sqrt(scored.posterior.noise_var),
        **charged,
    }
    events = (*scored.posterior.events, *found.events, *(() if model.chance is None else model.chance.events))
    return Suggestion(space.decode(found.row), "policy", said, events)


def _follows(space: Space, log: Log) -> bool:
    """Whether a point is pending that the policy chose for its score; where coordinates are given, one with these."""
    pending = (number for number in log.pending if log[number].phi is not None)
    return any(space.contains(log.rows[number]) for number in pending)


def among(scored: Objective, model: Model, space: Space, alike: float = 1.0) -> Objective:
    """The objective where coordinates are given: the best value so far is the best posterior mean with these.

    A value that was told under other coordinates is not to be had now. `alike`: see `likeness`.
    """
    if not space.fixed_coordinates:
        return scored
    row = model.best_in(space)[None]

    def seen(part: Objective, told: Posterior) -> Objective:
        best = float(told.mu(row)[0])
        return replace(part, state=replace(part.state, best_mean=best, best_observed=best, alike=alike))

    members = tuple(seen(part, told) for part, told in zip(scored.members, model.members, strict=True))
    return replace(seen(scored, model.posterior), members=members)


def likeness(model: Model, space: Space, log: Log) -> float:
    """How much of a gain under the given coordinates is one under those of the other trials, too; the mean. O(n d).

    r is the prior's correlation of f at the best point here and at the same point with the coordinates of a trial: what
    is learned here moves f there by r as much. Of the expected improvement of a point that is AWAY sd below the best,
    h(AWAY) sd with h(z) = pdf(z) - z (1 - cdf(z)), that leaves r h(AWAY / r) / h(AWAY).
    """
    if not log.rows:
        return 1.0
    here, kernel = model.best_in(space)[None], model.posterior.kernel
    given = np.zeros(here.shape[1], dtype=bool)
    for j, _ in space.fixed_coordinates:
        given[space.columns[j]] = True
    there = np.where(given, np.array(list(log.rows.values())), here)
    size = np.sqrt(kernel.diagonal(here) * kernel.diagonal(there))
    r = np.divide(kernel(here, there)[0], size, out=np.ones_like(size), where=size > 0.0).clip(TINY, 1.0)
    return float(np.mean(r * np.exp(log_h(-AWAY / r) - log_h(np.full_like(r, -AWAY)))))


def _guarded(
    choice: Choice,
    model: Model,
    log: Log,
    place: Subspace,
    chooser: Chooser,
) -> tuple[Choice, dict[str, Any]]:
    """Reinvest's choice, or that of the guard if its account does not allow it; and what the trial says of it.

    Only on a finite set with a given prior and noise. The account is read off the log. O(n + m) beyond the moments.
    Where coordinates are given, the charge is that of the regret among the points with these, and |D| stays that of the
    whole set: the bound is then one of the regret against the best point of each moment.
    """
    whole, posterior, found = model.setting.space.rows, choice.scored.posterior, choice.found
    rows, search = place.space.rows, place.search
    if (
        whole is None
        or rows is None
        or len(whole) < 2
        or not model.setting.priors.is_fixed
        or posterior.noise_var == 0.0
    ):
        return choice, {}
    moments = search.moments(model.posterior, model.anchor)
    if moments is None:
        event = Event("no guard", f"{len(rows)} candidates are too many for the guard of the bound")
        return choice._replace(found=replace(found, events=(*found.events, event))), {}
    mu, var = moments
    largest, size = float(posterior.kernel.diagonal(whole).max()), len(whole)
    if model.chance is not None and (likely := model.allowed(rows)).any():  # the maximum is that of what works
        rows, mu, var = rows[likely], mu[likely], var[likely]
    trials = [log[number] for number in (*log.told, *log.pending)]
    counted = np.array([trial.charge is not None for trial in trials], dtype=bool)
    charged = [trial for trial in (*trials, *(log[number] for number in log.failed)) if trial.charge is not None]
    charges = [(trial.charge or 0.0, trial.zeta or guard.beta(size)) for trial in charged]
    noise = posterior.noise_of_observed[counted]
    told = guard.learned(posterior.predictive_var[counted], noise, largest)
    account = guard.Account(sum(c for c, _ in charges), sum(w for _, w in charges), float(told.sum()))
    gain = float(guard.learned(np.array([found.var]), posterior.noise_var, largest)[0])

    def may_cost(charge: float) -> bool:
        return account.allows(charge, guard.beta(size), gain)

    rng = np.random.default_rng([model.setting.seed, model.n, len(log.failed) + len(log.pending), GUARD])
    charge = max(guard.mean_of_maximum(mu, var) - found.mu, 0.0)
    if not may_cost(charge):
        drawn = drawn_maximum(model.posterior, rows, mu, var, guard.DRAWS, rng)
        if drawn is not None:
            error = guard.error_of_draws(math.sqrt(float(var.max())), len(charges) + 1)
            charge = min(charge, max(drawn + error - found.mu, 0.0))
    if may_cost(charge):
        return choice, {"charge": charge}
    zeta = guard.draw_zeta(size, rng)
    choice = chooser.best(guard.RandomUCB(zeta))
    event = Event("guard", "Reinvest had used up what its bound allows; the guard chose a query")
    found = replace(choice.found, events=(*choice.found.events, event))
    return choice._replace(found=found), {"charge": found.score - found.mu, "zeta": zeta}
