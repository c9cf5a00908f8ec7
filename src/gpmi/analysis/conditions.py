"""Conditions on outputs: the probability that they hold at a point, and the best point among those where they do.

A condition is about the output itself, without the noise of a single measurement. Its probability is averaged over
draws of the output's prior (`analysis.ledger.belief`), because the most probable prior alone promises too much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import first_best, mean_in_chunks, moments_in_chunks
from gpmi.policies import Mean, State
from gpmi.policies.normal import log_pdf, pdf
from gpmi.search.multistart import best_point
from gpmi.search.neighbours import best_observed_in, neighbours
from gpmi.search.objective import Objective
from gpmi.search.screen import spread_over
from gpmi.space import Parameters, Space

# The factor of all uncertainties where a prior is learned. A point that is chosen for what the model says of it is one
# where the model is more often wrong: without the factor, 1,131 choices on development draws stated 92 % on average and
# held in 88 %, whatever the number of draws of the prior.
WIDER = 1.25
_LEAST = 1e-12  # of k(x, x): the smallest variance used as a divisor, far above rounding
_SCREEN = 10  # log2 of the number of points spread over a box; our choice
# Weights of the barrier, in sd of the objective over the screen: the last is what the search may lose. Our choice.
BARRIERS = (0.1, 0.01, 0.001)
_BLOCK = 1024  # rows of a table whose probability is computed at once; our choice
_SOME = 4096  # rows of a table, at most, among which the most likely one is searched; our choice


class Range(NamedTuple):
    """An output must lie between two numbers: lo <= g(x) <= hi for a Gaussian process g under one of several priors."""

    posteriors: tuple[Posterior, ...]  # with equal weights
    lo: float
    hi: float
    wider: float = 1.0  # the factor of the standard deviations

    def log(self, z: Array) -> Array:
        """Return the logarithm of the probability at z (m, d). O(n^2 m) for each posterior."""
        from scipy.special import logsumexp

        parts = []
        for posterior in self.posteriors:
            mu, var = moments_in_chunks(posterior, z)
            sd = self.wider * np.sqrt(_not_zero(posterior, z, var))
            parts.append(_log_between((self.lo - mu) / sd, (self.hi - mu) / sd))
        result: Array = logsumexp(parts, axis=0) - np.log(len(parts))
        return result

    def log_with_gradient(self, z: Array) -> tuple[Array, Array]:
        """Return the same and its gradient by z, (m, d)."""
        from scipy.special import logsumexp

        logs, gradients = [], []
        for posterior in self.posteriors:
            mu, raw, pull = posterior.with_pullback(z)
            var = _not_zero(posterior, z, raw)
            sd = self.wider * np.sqrt(var)
            a, b = (self.lo - mu) / sd, (self.hi - mu) / sd
            log = _log_between(a, b)
            at_a, at_b = (np.exp(log_pdf(np.clip(c, -1e100, 1e100)) - log) for c in (a, b))  # densities over P
            edge_a, edge_b = (np.where(np.isfinite(c), c, 0.0) * at for c, at in ((a, at_a), (b, at_b)))
            by_var = np.where(raw >= var, 0.5 * (edge_a - edge_b) / var, 0.0)
            logs.append(log)
            gradients.append(pull((at_a - at_b) / sd, by_var))
        total = logsumexp(logs, axis=0)
        shares = np.exp(np.array(logs) - total)  # (k, m)
        return total - np.log(len(logs)), np.einsum("km,kmd->md", shares, np.array(gradients))


def _not_zero(posterior: Posterior, z: Array, var: Array) -> Array:
    return np.maximum(var, _LEAST * posterior.kernel.diagonal(z))


def _log_between(a: Array, b: Array) -> Array:
    """Return log(cdf(b) - cdf(a)) for a <= b: exact far out in both tails, where it is taken on the other side."""
    from scipy.special import log_ndtr

    low, high = np.where(a > 0.0, -b, a), np.where(a > 0.0, -a, b)
    top = log_ndtr(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(np.isneginf(low), 0.0, np.exp(log_ndtr(low) - top))
        result: Array = top + np.log1p(-np.minimum(share, 1.0 - 1e-16))
    return result


@dataclass(frozen=True, eq=False)
class Conditions:
    """What must hold at a point: outputs lie in their ranges, independently, and the evaluation succeeds."""

    ranges: tuple[Range, ...]
    success: SuccessProbability | None = None

    def __bool__(self) -> bool:
        return bool(self.ranges) or self.success is not None

    @one_blas_thread
    def log(self, z: Array) -> Array:
        """Return the logarithm of the probability that all hold at z (m, d)."""
        total = np.zeros(len(z)) if self.success is None else self.success.log(z)
        for part in self.ranges:
            total = total + part.log(z)
        return total

    @one_blas_thread
    def log_with_gradient(self, z: Array) -> tuple[Array, Array]:
        """Return the same and its gradient by z, (m, d)."""
        parts = [part.log_with_gradient(z) for part in self.ranges]
        parts += [] if self.success is None else [self.success.log_with_gradient(z)]
        return np.sum([log for log, _ in parts], axis=0), np.sum([gradient for _, gradient in parts], axis=0)


# What is optimised


@dataclass(frozen=True)
class Score(Objective):
    """The mean of an output, or minus its expected distance from a target, as a function of the point."""

    mixture: tuple[Posterior, ...] = ()  # the posteriors of the output, with equal weights
    target: float | None = None

    def __call__(self, z: Array) -> Array:
        if not len(z):
            return np.empty(0)
        if self.target is None:
            return np.asarray(np.mean([mean_in_chunks(posterior, z) for posterior in self.mixture], axis=0))
        parts = [self.of_moments(*moments_in_chunks(posterior, z))[0] for posterior in self.mixture]
        return np.asarray(np.mean(parts, axis=0))

    def with_gradient(self, z: Array, size: int = 1) -> tuple[Array, Array]:
        value, gradient = np.zeros(len(z)), np.zeros_like(z)
        for posterior in self.mixture:
            mu, var, pull = posterior.with_pullback(z)
            score, by_mu, by_var = self.of_moments(mu, var)
            value += score / len(self.mixture)
            gradient += pull(by_mu, by_var) / len(self.mixture)
        return value, gradient

    def of_moments(self, mu: Array, var: Array) -> tuple[Array, Array, Array]:
        """Return the score and its derivatives by mu and var, (m,) each.

        With a target t and u = (mu - t) / sd, E|f - t| = sd (2 pdf(u) + u (2 cdf(u) - 1)).
        """
        if self.target is None:
            return mu, np.ones_like(mu), np.zeros_like(mu)
        from scipy.special import ndtr

        sd = np.sqrt(np.maximum(var, np.finfo(float).tiny))
        with np.errstate(over="ignore"):
            u = np.clip((mu - self.target) / sd, -1e100, 1e100)
        slope = 2.0 * ndtr(u) - 1.0
        density = pdf(u)
        return -(2.0 * sd * density + (mu - self.target) * slope), -slope, -density / sd


@dataclass(frozen=True)
class Probable(Objective):
    """The logarithm of the probability that conditions hold, as a function of the point."""

    conditions: Conditions | None = None

    def __call__(self, z: Array) -> Array:
        assert self.conditions is not None
        return self.conditions.log(z) if len(z) else np.empty(0)

    def with_gradient(self, z: Array, size: int = 1) -> tuple[Array, Array]:
        assert self.conditions is not None
        return self.conditions.log_with_gradient(z)


@dataclass(frozen=True)
class Interior(Objective):
    """A score plus `weight` log((log p - log least) / -log least): -inf where p, that conditions hold, is too small.

    The barrier keeps a climb inside and lets it follow the border, where the best point usually is. The maximum is
    within `weight` of the best score on the border if both functions are concave.
    """

    wanted: Score | None = None
    conditions: Conditions | None = None
    least: float = 0.5
    weight: float = 0.0

    def __call__(self, z: Array) -> Array:
        assert self.wanted is not None and self.conditions is not None
        return self.combined(self.wanted(z), self.conditions.log(z)) if len(z) else np.empty(0)

    def combined(self, score: Array, log_p: Array) -> Array:
        """Return the objective where the score and log p are known, (m,)."""
        room = (log_p - np.log(self.least)) / -np.log(self.least)
        inside = room > 0.0
        result: Array = np.where(inside, score + self.weight * np.log(np.where(inside, room, 1.0)), -np.inf)
        return result

    def with_gradient(self, z: Array, size: int = 1) -> tuple[Array, Array]:
        assert self.wanted is not None and self.conditions is not None
        score, gradient = self.wanted.with_gradient(z)
        log_p, slope = self.conditions.log_with_gradient(z)
        room = log_p - np.log(self.least)
        pull = np.where(room > 0.0, self.weight / np.where(room > 0.0, room, 1.0), 0.0)
        return self.combined(score, log_p), gradient + pull[:, None] * slope


def score_of(mixture: tuple[Posterior, ...], target: float | None = None) -> Score:
    """Return the score of an output by its posteriors, oriented so that larger is better; -E|f - t| with a target t."""
    return Score(mixture[0], Mean(), State(), mixture=mixture, target=target)


@one_blas_thread
def best_under(score: Score, conditions: Conditions, space: Space, seed: int, least: float) -> Array:
    """Return the point (d,) with the best score among those where the conditions hold with probability >= `least`.

    If none is found, it is the point where they hold most likely. Parameters with a step are at their settings.
    """
    if space.rows is not None:
        return _best_row(score, conditions, space.rows, least)
    assert isinstance(space, Parameters)
    row = _best_inside(score, conditions, space, seed, least)
    # The best point often lies where the probability is just `least`, so the nearest settings may miss it: try several.
    rows = space.settings_around(row)
    return _best_row(score, conditions, rows, least) if len(rows) else row


def _best_inside(score: Score, conditions: Conditions, space: Parameters, seed: int, least: float) -> Array:
    """Return the best point of a space that is not finite, as if every value could be set."""
    rng = np.random.default_rng([seed, score.posterior.n, 0])
    good = best_observed_in(score.posterior, space)
    if not conditions:
        screen = spread_over(space, _SCREEN, (seed, 1))
        return best_point(score, space, screen, score(screen), good, rng).row
    observed = space.move_to_fixed(np.unique(score.posterior.x, axis=0))
    screen = np.concatenate([spread_over(space, _SCREEN, (seed, 1)), observed])
    scores, log_p = score(screen), conditions.log(screen)
    probable = Probable(score.posterior, Mean(), State(), conditions=conditions)
    if not np.any(log_p > np.log(least)):
        most = screen[np.argsort(-log_p, kind="stable")[:3]]
        likely = best_point(probable, space, screen, log_p, most, rng).row
        if not conditions.log(likely[None])[0] > np.log(least):
            return likely
        close = np.concatenate([likely[None], neighbours(space, likely[None], rng)])
        screen = np.concatenate([screen, close])
        scores, log_p = np.append(scores, score(close)), np.append(log_p, conditions.log(close))
    unit = float(np.std(scores)) or 1.0
    interior = Interior(score.posterior, Mean(), State(), wanted=score, conditions=conditions, least=least)
    row: Array | None = None
    for weight in BARRIERS:
        stage = replace(interior, weight=weight * unit)
        allowed = stage.combined(scores, log_p)
        best = screen[np.argsort(-allowed, kind="stable")[:2]]
        near = best if row is None else np.concatenate([row[None], best[:1]])
        row = best_point(stage, space, screen, allowed, near, rng).row
    assert row is not None
    return row


def _best_row(score: Score, conditions: Conditions, rows: Array, least: float) -> Array:
    """Return the row of a table with the best score among those where the conditions hold; the lowest of equals.

    Rows are tried from the best score on, so that the probability of most of them is never needed.
    """
    scores = score(rows)
    order = np.argsort(-scores, kind="stable")
    if not conditions:
        return _copy(rows[order[0]])
    for part in (order[begin : begin + _BLOCK] for begin in range(0, len(order), _BLOCK)):
        holds = conditions.log(rows[part]) >= np.log(least)
        if holds.any():
            return _copy(rows[part[int(np.argmax(holds))]])
    rough = replace(
        conditions, ranges=tuple(part._replace(posteriors=part.posteriors[:1]) for part in conditions.ranges)
    )
    likely = np.sort(np.argsort(-rough.log(rows), kind="stable")[:_SOME])
    return _copy(rows[likely[first_best(conditions.log(rows[likely]))]])


def _copy(row: Array) -> Array:
    return np.array(row)
