"""The front of drawn functions, along rays from the reference: behind every statement about a front.

All objectives are oriented so that larger is better. A direction w of positive numbers and the reference r define a
ray, r + h w. A point x reaches the height h(x) = min_i (f_i(x) - r_i) / w_i on it: up to there the ray is dominated by
f(x). The front crosses the ray at the largest height. The volume between r and the front is an integral over the
directions, of h^k for k objectives (Golovin and Zhang 2020), so it needs no list of points on the front, and has no
error from gaps between them.

A target t is the objective -|y - t| = min(y - t, t - y), and a limit is an objective that only has to be positive. So
everything is the maximum of a minimum of smooth functions, each of a Gaussian process. On a box it is climbed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from gpmi._support.sobol import sobol
from gpmi._support.types import Array, Mask, Numbers
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.paths import Paths, PathSampler, has_features
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import moments_in_chunks
from gpmi.policies.policy import TINY
from gpmi.search.neighbours import neighbours
from gpmi.search.screen import spread_over
from gpmi.space import Parameters, Space

# Our choices, for the cost; docs/benchmarks/front_knowledge.md has the coverage that results.
RAYS, RAYS_MANY = 24, 64  # rays with two objectives, and with more
FINE = 8  # with two objectives, between each pair of rays: where the steps of our own front are resolved
DRAWS = 128  # of the functions, in all: a probability of 0.05 is estimated with an sd of 0.02
FEATURES = 256  # random features of a path; those of other priors have their own
_SCREEN = 12  # log2 of the number of points spread over a box
_KEPT, _KEPT_WITHOUT = 1536, 512  # points that are drawn in addition to those near the front; if there are no features
_REACH = 2.5  # sd: a point that is worse than our front even so much above its mean is not drawn
_ROUNDS, _ROUNDS_MEAN = 12, 20  # steps of the climbs of a drawn function, and of the means
_FIRST = 0.2  # the first step of a climb, in units of the kernels' reach
_STRICT = 0.02  # a limit must hold by this many heights of the ray times the sd of its output
_SIDE = 1e-9  # of the width of the space: closer to a bound is on it


# Rays


@dataclass(frozen=True, eq=False)
class Rays:
    """Directions in the space of k objectives, spread evenly over the unit vectors with positive coordinates."""

    reference: Array  # (k,), larger is better
    span: Array  # (k,), the unit of each objective
    directions: Array  # (W, k), unit vectors, in units of `span`
    best: Array  # (k,), the largest possible value of each objective; infinite where it has no bound

    @staticmethod
    def of(reference: Array, span: Array, count: int | None = None, best: Array | None = None) -> Rays:
        """Return `count` rays from a reference; by default RAYS with two objectives."""
        from scipy.special import ndtri

        k = len(reference)
        best = np.full(k, np.inf) if best is None else best
        if k == 1:
            return Rays(reference, span, np.ones((1, 1)), best)
        if k == 2:
            count = count or RAYS
            angle = 0.5 * np.pi * (np.arange(count) + 0.5) / count
            return Rays(reference, span, np.column_stack([np.sin(angle), np.cos(angle)]), best)
        normal = np.abs(ndtri(sobol(k, ((count or RAYS_MANY) - 1).bit_length(), (0, k))))
        normal = np.maximum(normal, 1e-3)
        return Rays(reference, span, normal / np.linalg.norm(normal, axis=1, keepdims=True), best)

    def __len__(self) -> int:
        return len(self.directions)

    def heights(self, values: Array) -> Array:
        """Return the height of the front of values (..., n, k) on each ray, (..., W); 0 if none is above r."""
        if values.shape[-2] == 0:
            return np.zeros((*values.shape[:-2], len(self)))
        unit = (values - self.reference) / self.span
        best = np.stack([(unit / w).min(axis=-1).max(axis=-1) for w in self.directions], axis=-1)
        result: Array = np.maximum(best, 0.0)
        return result

    @cached_property
    def ends(self) -> Array:
        """The largest possible height on each ray, (W,): where the first objective is as good as it can be."""
        result: Array = np.maximum(((self.best - self.reference) / self.span / self.directions).min(axis=1), 0.0)
        return result

    def volume(self, heights: Array) -> Array:
        """Return the volume below heights (..., W): c_k times the product of the spans times the mean of h^k."""
        k = len(self.reference)
        ball = math.pi ** (k / 2) / (2**k * math.gamma(k / 2 + 1))
        result: Array = ball * float(np.prod(self.span)) * np.mean(heights**k, axis=-1)
        return result

    def points(self, heights: Array) -> Array:
        """Return the points of the rays at heights (W,), (W, k), in the units of the objectives."""
        result: Array = self.reference + self.span * (heights[:, None] * self.directions)
        return result

    @cached_property
    def fine(self) -> Rays:
        """More rays, between these, if there are two objectives; otherwise the same."""
        return Rays.of(self.reference, self.span, FINE * len(self), self.best) if len(self.reference) == 2 else self

    def refined(self, heights: Array) -> Array:
        """Return heights (S, W) of smooth fronts on the fine rays, (S, F), by interpolation."""
        if self.fine is self:
            return heights
        at, middles = (np.arange(len(rays)) + 0.5 for rays in (self.fine, self))
        result: Array = np.minimum(np.stack([np.interp(at / FINE, middles, row) for row in heights]), self.fine.ends)
        return result


# What must be large


class Sides(NamedTuple):
    """Smooth functions of x, in rows: (sign g(x) + offset) / unit for the function g of this number."""

    function: Numbers  # (R,), the number of g
    sign: Array  # (R,)
    offset: Array  # (R,)
    unit: Array  # (R,)
    objective: Numbers  # (R,), the number of the objective that the row belongs to; -1 for a limit

    def rows(self, g: Array) -> Array:
        """Return the rows (R, ...) at values g (F, ...) of all functions."""
        shape = (-1,) + (1,) * (g.ndim - 1)
        sign, offset, unit = (column.reshape(shape) for column in (self.sign, self.offset, self.unit))
        result: Array = (sign * g[self.function] + offset) / unit
        return result

    def weights(self, directions: Array) -> Array:
        """Return the divisors (P, R) of the rows on rays (P, k)."""
        columns = np.concatenate([directions, np.full((len(directions), 1), _STRICT)], axis=1)
        return columns[:, self.objective]

    def heights(self, g: Array, directions: Array, *, strict: bool = False) -> Array:
        """Return the heights (..., W) of points with values g (F, ...): -inf where a limit is broken.

        If `strict`, a limit counts as an objective with a small weight, as in a climb.
        """
        rows, weights = self.rows(g), self.weights(directions)  # (R, ...), (W, R)
        aims = np.flatnonzero(self.objective >= 0) if not strict else np.arange(len(self.objective))
        best = np.stack([np.min([rows[r] / w[r] for r in aims], axis=0) for w in weights], axis=-1)
        broken = np.any(rows[self.objective < 0] < 0.0, axis=0)
        if not strict and np.any(broken):
            best[broken] = -np.inf
        return best


class Functions(Protocol):
    """Several functions of x, in one or more versions."""

    def __call__(self, z: Array, which: Numbers) -> tuple[Array, Array]:
        """Return version which[i] of all functions at z_i, (F, P), and their gradients, (F, P, d)."""

    def everywhere(self, z: Array) -> Array:
        """Return all versions of all functions at all points z (m, d): (F, m, S)."""


class DrawnFunctions(NamedTuple):
    """S draws of each function."""

    paths: tuple[Paths, ...]

    def __call__(self, z: Array, which: Numbers) -> tuple[Array, Array]:
        pairs = [paths(z, which) for paths in self.paths]
        return np.stack([value for value, _ in pairs]), np.stack([gradient for _, gradient in pairs])

    def everywhere(self, z: Array) -> Array:
        return np.stack([paths.everywhere(z) for paths in self.paths])


class MeanFunctions(NamedTuple):
    """The posterior mean of each function."""

    posteriors: tuple[Posterior, ...]

    def __call__(self, z: Array, which: Numbers) -> tuple[Array, Array]:
        moments = [posterior.with_pullback(z) for posterior in self.posteriors]
        ones, zeros = np.ones(len(z)), np.zeros(len(z))
        return np.stack([mu for mu, _, _ in moments]), np.stack([pull(ones, zeros) for _, _, pull in moments])

    def everywhere(self, z: Array) -> Array:
        return np.stack([posterior.mu(z) for posterior in self.posteriors])[..., None]


def climb(
    functions: Functions, sides: Sides, space: Parameters, reach: Array, z: Array, which: Numbers, weights: Array,
    rounds: int,
) -> tuple[Array, Array]:  # fmt: skip
    """Climb min over rows r of row_r(z) / weights_r from every z_i (P, d) in lockstep; return the ends and all values.

    A step maximises the minimum of the linearised rows minus L/2 |step|^2, in units of the kernels' reach (d,). Its
    dual has one weight for each row. A step that does not improve is rejected and L is multiplied by 4; otherwise L is
    halved if the gain was as predicted. The values are those of the functions at the ends, (F, P).
    """
    scale = np.where(space.continuous, np.minimum(reach, space.span), 0.0)
    lower, upper = space.lo + _SIDE * space.span, space.hi - _SIDE * space.span

    def evaluate(z: Array) -> tuple[Array, Array, Array]:
        g, gradient = functions(z, which)
        rows = sides.rows(g).T / weights  # (P, R)
        slope = (sides.sign / sides.unit)[:, None, None] * gradient[sides.function] * scale
        return g, rows, np.moveaxis(slope, 0, 1) / weights[:, :, None]

    g, rows, slopes = evaluate(z)
    bend = np.sqrt((slopes**2).sum(axis=2)).max(axis=1) / _FIRST + TINY
    for _ in range(rounds):
        step, promised = _step(rows, slopes, bend)
        blocked = ((z <= lower) & (step < 0.0)) | ((z >= upper) & (step > 0.0))
        if blocked.any():
            step, promised = _step(rows, np.where(blocked[:, None], 0.0, slopes), bend)
        with np.errstate(over="ignore", invalid="ignore"):
            new = space.last_inside(z, z + step * scale)
        new_g, new_rows, new_slopes = evaluate(new)
        gain = new_rows.min(axis=1) - rows.min(axis=1)
        better = gain > 0.0
        bend = np.where(better, np.where(gain > 0.5 * promised, 0.5 * bend, bend), 4.0 * bend)
        z, g = np.where(better[:, None], new, z), np.where(better, new_g, g)
        rows = np.where(better[:, None], new_rows, rows)
        slopes = np.where(better[:, None, None], new_slopes, slopes)
    return z, g


def _step(rows: Array, slopes: Array, bend: Array) -> tuple[Array, Array]:
    """Return the steps p (P, d) that maximise min_r (rows_r + slopes_r . p) - bend/2 |p|^2, and the gain they promise.

    With u on the simplex, p = sum_r u_r slopes_r / bend, where u minimises sum_r u_r rows_r + |sum_r u_r slopes_r|^2 /
    (2 bend). Weight moves from the worst row that has some to the best one, by an exact line search: for two rows the
    first move is the solution, for more a few are close to it.
    """
    every, count = np.arange(len(rows)), rows.shape[1]
    gram = slopes @ slopes.transpose(0, 2, 1) / bend[:, None, None]  # (P, R, R)
    u = np.zeros_like(rows)
    u[every, rows.argmin(axis=1)] = 1.0
    for _ in range(1 if count == 2 else 8 * (count - 1)):
        slope = rows + np.einsum("prs,ps->pr", gram, u)
        best, worst = slope.argmin(axis=1), np.where(u > 0.0, slope, -np.inf).argmax(axis=1)
        curvature = gram[every, best, best] + gram[every, worst, worst] - 2.0 * gram[every, best, worst]
        share = (slope[every, worst] - slope[every, best]) / np.maximum(curvature, TINY)
        share = np.minimum(share, u[every, worst])
        u[every, worst] -= share
        u[every, best] += share
    direction = np.einsum("pr,prd->pd", u, slopes)
    after = (u * rows).sum(axis=1) + (direction**2).sum(axis=1) / bend
    return direction / bend[:, None], after - rows.min(axis=1)


# The front of the means, and of drawn functions


class FrontDraws(NamedTuple):
    """Joint draws of the front over the space, and of the objectives at our own points."""

    rays: Rays
    heights: Array  # (S, W), of the drawn front on every ray; never below those of our own points
    where: Array  # (S, W, d), points that reach them
    front_values: Array  # (S, n, k), the objectives at our own points, larger is better
    how: str

    @property
    def missing(self) -> Array:
        """The volume between our own front and the drawn one, (S,)."""
        fine, heights = self.rays.fine, self.rays.fine.heights(self.front_values)
        return fine.volume(np.maximum(self.rays.refined(self.heights), heights)) - fine.volume(heights)

    @property
    def possible(self) -> Array:
        """The volume below the drawn front, (S,)."""
        fine, heights = self.rays.fine, self.rays.fine.heights(self.front_values)
        return fine.volume(np.maximum(self.rays.refined(self.heights), heights))


@dataclass(frozen=True, eq=False)
class FrontProblem:
    """What is needed to draw fronts: for every function a mixture of posteriors, and what must be large of them."""

    mixtures: tuple[tuple[Posterior, ...], ...]  # (F), of every function, with equal weights
    central: tuple[Posterior, ...]  # (F), the posterior under the most probable prior
    sides: Sides
    rays: Rays
    space: Space
    front: Array  # (n, d), our own points: those of the front
    seed: int

    @property
    def reach(self) -> Array:
        """The distance along each coordinate over which some function changes much, (d,)."""
        reach: Array = np.min([posterior.kernel.reach(self.space.dim) for posterior in self.central], axis=0)
        return reach

    def objectives(self, g: Array) -> Array:
        """Return the objectives (..., k), larger is better, at values g (F, ...) of the functions."""
        rows, sides, rays = self.sides.rows(g), self.sides, self.rays
        columns = [rows[sides.objective == i].min(axis=0) for i in range(len(rays.reference))]
        result: Array = np.minimum(rays.reference + rays.span * np.stack(columns, axis=-1), rays.best)
        return result

    @one_blas_thread
    def candidates(self, rng: np.random.Generator) -> tuple[Array, int]:
        """Return points (m, d) that may be on the front, and how many of the first are on or near that of the means.

        Others are left out if they are below our own front even _REACH sd above their means.
        """
        space = self.space
        if space.rows is not None:
            return self._plausible(space.rows, None), 0
        assert isinstance(space, Parameters)
        means = MeanFunctions(self.central)
        screen = spread_over(space, _SCREEN, (self.seed, 1))
        start = np.concatenate(
            [screen, self.front, neighbours(space, self.front, rng), neighbours(space, self.front, rng)]
        )
        heights = self.sides.heights(means.everywhere(start)[..., 0], self.rays.directions, strict=True)  # (m, W)
        first, every = start[heights.argmax(axis=0)], np.arange(len(self.rays))
        weights = self.sides.weights(self.rays.directions)
        near, _ = climb(means, self.sides, space, self.reach, first, every, weights, _ROUNDS_MEAN)
        around = np.concatenate([near, neighbours(space, near, rng), neighbours(space, near, rng)])
        features = all(has_features(posterior.kernel) for posterior in self.central)
        kept = self._plausible(start, _KEPT if features else _KEPT_WITHOUT)
        return np.concatenate([around, kept]), len(near)

    def _plausible(self, z: Array, most: int | None) -> Array:
        moments = [moments_in_chunks(posterior, z) for posterior in self.central]
        mu, sd = np.stack([mean for mean, _ in moments]), np.sqrt([var for _, var in moments])
        rows = self.sides.rows(mu)
        rows += _REACH * sd[self.sides.function] / self.sides.unit[:, None]
        weights = self.sides.weights(self.rays.directions)
        pairs = zip(weights, self._own_heights, strict=True)
        hopes: Array = np.max([(rows / w[:, None]).min(axis=0) - height for w, height in pairs], axis=0)
        order = np.argsort(-hopes, kind="stable")
        kept: Array = z[order[hopes[order] >= 0.0][:most]]
        return kept

    @cached_property
    def _own_heights(self) -> Array:
        """The heights (W,) of the means at our own points."""
        if not len(self.front):
            return np.zeros(len(self.rays))
        return self.rays.heights(self.objectives(MeanFunctions(self.central).everywhere(self.front)[..., 0]))

    @one_blas_thread
    def draw(self, size: int, rng: np.random.Generator) -> FrontDraws:
        """Draw `size` fronts, or a few more: as many from each posterior of the mixtures.

        Functions are drawn exactly and jointly at our own points and near the front of the means, and continued by
        random features to the candidates. On a box every ray's best candidate is then climbed.
        """
        count = max(map(len, self.mixtures))
        each = -(-size // count)
        z, near = self.candidates(rng)
        orders = [
            rng.permutation(len(mixture)) if i else np.arange(len(mixture)) for i, mixture in enumerate(self.mixtures)
        ]
        parts = []
        for k in range(count):
            chosen = [mixture[order[k % len(mixture)]] for mixture, order in zip(self.mixtures, orders, strict=True)]
            parts.append(self._draw_part(chosen, z, near, each, rng))
        heights, where, front_values = (np.concatenate([part[i] for part in parts]) for i in range(3))
        on = "candidates" if self.space.rows is not None else "points, climbed; a lower bound"
        how = f"{len(heights)} drawn fronts over {len(z)} {on}"
        how += f", under {count} draws of the prior" if count > 1 else ""
        return FrontDraws(self.rays, heights, where, front_values, how)

    def _draw_part(
        self, posteriors: Sequence[Posterior], z: Array, near: int, size: int, rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """Return heights (size, W), points (size, W, d) and objectives at our own points (size, n, k)."""
        space, n, rays = self.space, len(self.front), self.rays
        features = all(has_features(posterior.kernel) for posterior in posteriors)
        exact = z[:near] if features else z[: near + _KEPT_WITHOUT]
        if space.rows is not None:
            exact = z[:_KEPT_WITHOUT]
        samplers = [PathSampler.of(posterior, np.concatenate([self.front, exact])) for posterior in posteriors]
        drawn = DrawnFunctions(tuple(sampler.paths(size, rng, rough=True, count=FEATURES) for sampler in samplers))
        rest = z[len(exact) :]
        g = np.stack([paths.values for paths in drawn.paths])  # (F, K, size)
        if len(rest):
            g = np.concatenate([g, drawn.everywhere(rest)], axis=1)
        points = np.concatenate([self.front, exact, rest])
        front_values = np.moveaxis(self.objectives(g[:, :n]), 1, 0)  # (size, n, k)
        heights, where = rays.heights(front_values), np.zeros((size, len(rays), space.dim))
        if n:
            unit = (front_values - rays.reference) / rays.span
            for j, w in enumerate(rays.directions):
                where[:, j] = self.front[(unit / w).min(axis=2).argmax(axis=1)]
        every = np.arange(size)
        reached = self.sides.heights(g, rays.directions)  # (m, size, W)
        self._take(heights, where, reached.max(axis=0), points[reached.argmax(axis=0)])
        if space.rows is None:
            assert isinstance(space, Parameters)
            strict = self.sides.heights(g, rays.directions, strict=True)
            start = points[strict.argmax(axis=0)]  # (size, W, d)
            which = np.repeat(every, len(rays))
            directions = np.tile(rays.directions, (size, 1))
            weights = self.sides.weights(directions)
            ends, values = climb(
                drawn, self.sides, space, self.reach, start.reshape(-1, space.dim), which, weights, _ROUNDS
            )
            rows = self.sides.rows(values).T  # (P, R)
            aims = self.sides.objective >= 0
            final = (rows[:, aims] / weights[:, aims]).min(axis=1)
            final = np.where(np.any(rows[:, ~aims] < 0.0, axis=1), -np.inf, final).reshape(size, len(rays))
            self._take(heights, where, final, ends.reshape(size, len(rays), space.dim))
        return heights, where, front_values

    def _take(self, heights: Array, where: Array, reached: Array, points: Array) -> None:
        """Replace heights (S, W) by larger ones, and their points.

        A ray that reaches beyond what is possible of an objective ends there: clipping that objective at its bound is
        the same, because the height is the smallest of all.
        """
        reached = np.minimum(reached, self.rays.ends)
        better: Mask = reached > heights
        heights[better], where[better] = reached[better], points[better]
