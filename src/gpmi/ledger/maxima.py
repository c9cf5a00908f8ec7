"""The law of max f under a posterior, jointly with f at points of interest: what a regret is made of.

f is drawn jointly at every point that may hold the maximum: of a finite set, or of a screen of the space. Between the
points of a screen each draw is continued to a function, and that is climbed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpmi.gp.kernels import RBF, Kernel, Linear, Matern, Product, Pullback, Sum
from gpmi.gp.linalg import Factor, one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import chunks, moments_in_chunks
from gpmi.search.argmax import JOINT, screen_of, sobol
from gpmi.space.space import Parameters, Space
from gpmi.types import Array, Mask

REACH = 5.0  # sd: a point whose upper bound is below another's lower bound is the better one with P < 3e-7
_OPEN = 0.03  # of a prior sd: what may stay unknown between the points of a screen
FEATURES, _GROUPS = 512, 4  # random features of a path; so many sets of them, so that no draw of them decides
_STARTS = 2  # points from which a path with features is climbed,
_APART = 0.1  # no two of them closer than this, in diagonals of the space
_ROUNDS = 12  # steps of the climb
_LEVELS = 64  # levels of one discrete parameter that are tried at most
_BLUR = 1e-5  # sd of an independent error of each drawn value, in prior sd: keeps close points from being singular
_TINY = 1e-300

Features: TypeAlias = Callable[[Array], tuple[Array, Pullback]]  # z (m, d) -> phi (m, F), and W -> W . d phi / dz


class Maxima(NamedTuple):
    """Joint draws."""

    best: Array  # (size,), max of sign * f over the space
    at: Array  # (size, k), f at the points asked for
    how: str  # what was drawn, and what is approximate about it


@one_blas_thread
def draw_maxima(
    posterior: Posterior,
    space: Space,
    at: Array,  # (k, d), points of the space
    sign: float,
    size: int,
    rng: np.random.Generator,
    seed: int = 0,  # of the screen
) -> Maxima:
    """`size` joint draws of max sign * f over the space and of f at `at`.

    With K points that may hold the maximum O(n^2 m + n K^2 + K^3 + size K^2) on a finite set of m points. On a box m is
    that of the screen, and the climb adds O(size (n + K)) a round.
    """
    if space.rows is not None:
        numbers = _most_plausible(posterior, space.rows, sign)
        how = f"joint draws at the {len(numbers)} candidates that may hold the maximum"
        if len(numbers) > JOINT:
            numbers = numbers[:JOINT]
            how = f"joint draws at the {JOINT} candidates most likely to beat the best mean; a lower bound"
        draws = posterior.sample(np.concatenate([at, space.rows[numbers]]), rng, size)
        return Maxima((sign * draws).max(axis=1), draws[:, : len(at)], how)
    assert isinstance(space, Parameters)
    screen = screen_of(space, seed)
    frame = Frame.of(posterior, np.concatenate([at, screen[_most_plausible(posterior, screen, sign)]]))
    probes = space.from_unit(sobol(space.unit_dim, 7, (seed, 2)))
    probes = probes[_most_plausible(posterior, probes, sign)]
    groups = _GROUPS if frame.leaves_open(probes) else 1
    best, values = [], []
    for _ in range(groups):
        paths = frame.paths(-(-size // groups), rng, rough=groups > 1)
        best.append(_maxima(paths, space, sign))
        values.append(paths.values[: len(at)].T)
    between = f"{_GROUPS} sets of {FEATURES} random features" if groups > 1 else "their conditional mean"
    how = f"posterior paths through {len(frame.z)} points, continued by {between} and climbed; a lower bound"
    return Maxima(np.concatenate(best)[:size], np.concatenate(values)[:size], how)


def _most_plausible(posterior: Posterior, z: Array, sign: float) -> NDArray[np.intp]:
    """Which of z (m, d) may hold the maximum of sign * f over z, those most likely to beat the best mean first.

    A point whose mu + REACH sd is below another's mu - REACH sd is left out: the difference of the two values has at
    most the sum of their sd, so that it is the better one with P < 3e-7.
    """
    mu, var = moments_in_chunks(posterior, z)
    mu, sd = sign * mu, np.sqrt(var)
    may: Mask = mu + REACH * sd >= np.max(mu - REACH * sd)
    numbers = np.flatnonzero(may)
    chance = (mu[numbers] - mu.max()) / np.maximum(sd[numbers], _TINY)
    return numbers[np.argsort(-chance, kind="stable")]


def most_likely_better(posterior: Posterior, z: Array, row: Array, by: float, sign: float) -> float:
    """max over z (m, d) of P(sign f(z) - sign f(row) > by): what P(regret > by) is at least. O(n^2 m)."""
    from scipy.special import ndtr

    gap = sign * (moments_in_chunks(posterior, z)[0] - posterior.mu(row)[0]) - by
    spread = spread_of_difference(posterior, z, row)
    p = np.where(spread == 0.0, gap > 0.0, ndtr(gap / np.sqrt(np.maximum(spread, _TINY))))
    return float(p.max())


def spread_of_difference(posterior: Posterior, z: Array, row: Array) -> Array:
    """Var[f(z_i) - f(row)] at z (m, d), 0 where it is nothing but rounding. (m,), O(n^2 m)."""
    spread = np.empty(len(z))
    (var_row,) = posterior(row[None])[1]
    for part in chunks(len(z), posterior.n):
        var = posterior(z[part])[1] + var_row - 2.0 * posterior.covariance(z[part], row[None])[:, 0]
        spread[part] = np.where(var <= 1e-12 * posterior.kernel.diagonal(z[part]), 0.0, var)
    return spread


# Functions drawn from a posterior


class Frame(NamedTuple):
    """Points through which paths are drawn, and what all paths through them share."""

    posterior: Posterior
    z: Array  # (K, d)
    blur: Array  # (K,), the standard deviation of an independent error of the values drawn at z
    factor: Factor  # of cov(z, z) + blur^2
    v: Array  # (n, K), L^-1 k(x, z), L the factor of C

    @staticmethod
    def of(posterior: Posterior, z: Array) -> Frame:
        """O(n^2 K + n K^2 + K^3)."""
        v = posterior.whiten(z) if posterior.n else np.empty((0, len(z)))
        blur = _BLUR * np.sqrt(posterior.kernel.diagonal(z))
        factor, _ = Factor.empty().append_block(
            np.empty((0, len(z))), posterior.kernel(z, z) - v.T @ v + np.diag(blur**2)
        )
        return Frame(posterior, z, blur, factor, v)

    def leaves_open(self, probes: Array) -> bool:
        """Whether f at some probe (m, d) is unknown by more than _OPEN of a prior sd once f is known at z."""
        if len(probes) == 0:
            return False
        var = self.posterior(probes)[1]
        given = self.factor.solve(self.posterior.covariance(self.z, probes))
        var = var - np.einsum("ij,ij->j", given, given)
        return bool(np.any(var > _OPEN**2 * self.posterior.kernel.diagonal(probes)))

    def paths(self, size: int, rng: np.random.Generator, *, rough: bool) -> Paths:
        """`size` paths; if `rough` they vary between the points as the prior does. O(size (n + K) (n + K + F))."""
        posterior = self.posterior
        normal = rng.standard_normal((len(self.z), size))
        values = posterior.mu(self.z)[:, None] + self.factor.rows() @ normal  # ~ N(mu, L L^T)
        off_z, off_x = values - posterior.mean, np.tile((posterior.y - posterior.mean)[:, None], size)
        features, w = None, np.empty((0, size))
        if rough:
            features = random_features(posterior.kernel, self.z.shape[1], FEATURES, rng)
        if features is not None:
            w = rng.standard_normal((features(self.z[:1])[0].shape[1], size))
            off_z = off_z - features(self.z)[0] @ w - self.blur[:, None] * rng.standard_normal(values.shape)
            if posterior.n:
                noise = np.sqrt(posterior.noise_var + posterior.jitter)[:, None]
                off_x = off_x - features(posterior.x)[0] @ w - noise * rng.standard_normal(off_x.shape)
        # The system of x and z together, by elimination: cov(z, z) is the Schur complement of C in it.
        whitened = posterior.factor.solve(off_x) if posterior.n else off_x
        by_z = self.factor.solve_transposed(self.factor.solve(off_z - self.v.T @ whitened))
        by_x = posterior.factor.solve_transposed(whitened - self.v @ by_z) if posterior.n else off_x
        centres = np.concatenate([posterior.x.reshape(-1, self.z.shape[1]), self.z])
        return Paths(posterior, self.z, values, centres, np.concatenate([by_x, by_z]), features, w)


class Paths(NamedTuple):
    """Draws of f, exact and joint at z, and functions in between: f_s = mean + phi . w_s + k(., centres) v_s.

    v_s is such that f_s has the values that were drawn at z. Without features f_s is the conditional mean given these
    and the observations. With them phi . w_s ~ GP(0, k) up to their error, and f_s has at x the values observed less a
    draw of the noise, so that it varies between the points as it should (Matheron's rule; Wilson et al. 2020).
    """

    posterior: Posterior
    z: Array  # (K, d)
    values: Array  # (K, size), f at z
    centres: Array  # (n + K, d), the observed points and z
    v: Array  # (n + K, size)
    features: Features | None
    w: Array  # (F, size)

    def __call__(self, z: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        """Path which[i] at z_i, (m,), and its gradient there, (m, d)."""
        k, pull_k = self.posterior.kernel.with_input_pullback(z, self.centres)
        v = self.v.T[which]
        value, gradient = self.posterior.mean + np.einsum("ij,ij->i", k, v), pull_k(v)
        if self.features is not None:
            phi, pull_phi = self.features(z)
            w = self.w.T[which]
            value, gradient = value + np.einsum("ij,ij->i", phi, w), gradient + pull_phi(w)
        return value, gradient


def random_features(kernel: Kernel, d: int, count: int, rng: np.random.Generator) -> Features | None:
    """phi with E[phi(x) . phi(z)] = k(x, z), so that phi . w is a path of the prior (Rahimi and Recht 2007).

    `count` features for each product of elementary kernels in the sum that the kernel is; None where it is not one.
    """
    terms = _terms(kernel)
    if terms is None:
        return None
    parts = [[_elementary(leaf, d, count, rng) for leaf in term] for term in terms]
    scale = 1.0 / np.sqrt(count)

    def features(z: Array) -> tuple[Array, Pullback]:
        products = [_product([part(z) for part in term]) for term in parts]

        def pull(weights: Array) -> Array:
            cut = np.split(weights, len(products), axis=1)
            gradient: Array = scale * np.sum([pull(w) for (_, pull), w in zip(products, cut, strict=True)], axis=0)
            return gradient

        return scale * np.concatenate([value for value, _ in products], axis=1), pull

    return features


def _terms(kernel: Kernel) -> list[list[Kernel]] | None:
    """The kernel as a sum of products of kernels whose features are known."""
    if isinstance(kernel, RBF | Matern | Linear):
        return [[kernel]]
    if not isinstance(kernel, Sum | Product):
        return None
    first, second = _terms(kernel.first), _terms(kernel.second)
    if first is None or second is None:
        return None
    return first + second if isinstance(kernel, Sum) else [a + b for a in first for b in second]


def _elementary(kernel: Kernel, d: int, count: int, rng: np.random.Generator) -> Features:
    """Independent columns, each with E[phi(x) phi(z)] = k(x, z).

    sqrt(2 v) cos(omega . x + b) for a stationary kernel, omega l being normal for RBF and a t of 2 nu degrees of
    freedom for Matern; sqrt(v d) times a coordinate drawn at random for a linear one.
    """
    if isinstance(kernel, Linear):
        picked = np.eye(d)[rng.integers(d, size=count)] * np.sqrt(kernel.known_variance * d)  # (count, d)
        return lambda z: (z @ picked.T, lambda weights: weights @ picked)
    from scipy.special import gammaincinv, ndtri

    assert isinstance(kernel, RBF | Matern)
    u = np.clip(sobol(d + 2, (count - 1).bit_length(), tuple(rng.integers(2**32, size=2)))[:count], 1e-12, 1.0 - 1e-12)
    omega = ndtri(u[:, :d]) / np.asarray(kernel.lengthscale)
    if isinstance(kernel, Matern):
        omega *= np.sqrt(kernel.nu / gammaincinv(kernel.nu, u[:, d : d + 1]))
    phase, scale = 2.0 * np.pi * u[:, d + 1], np.sqrt(2.0 * kernel.known_variance)

    def features(z: Array) -> tuple[Array, Pullback]:
        angle = z @ omega.T + phase
        return scale * np.cos(angle), lambda weights: (-scale * weights * np.sin(angle)) @ omega

    return features


def _product(factors: list[tuple[Array, Pullback]]) -> tuple[Array, Pullback]:
    """The products of several features, column by column."""
    (value, pull), *rest = factors
    for other, pull_other in rest:
        value, pull = value * other, _product_rule(value, pull, other, pull_other)
    return value, pull


def _product_rule(a: Array, pull_a: Pullback, b: Array, pull_b: Pullback) -> Pullback:
    return lambda weights: pull_a(weights * b) + pull_b(weights * a)


# Their maxima


def _maxima(paths: Paths, space: Parameters, sign: float) -> Array:
    """The largest value of sign * f found on each path: the best of climbs from its best points of z."""
    values = sign * paths.values  # (K, size)
    size = values.shape[1]
    best: Array = values.max(axis=0)
    unit = (paths.z - space.lo) / space.span
    starts = 1 if paths.features is None else _STARTS
    for _ in range(starts):
        first = values.argmax(axis=0)
        z, value = _climb(paths, space, paths.z[first], sign)
        if space.combinations > 1:
            z, value = _climb(paths, space, _best_levels(paths, space, z, value, sign), sign)
        best = np.maximum(best, value)
        for s in range(size if starts > 1 else 0):  # not the same peak again
            near = ((unit - unit[first[s]]) ** 2).sum(axis=1) <= _APART**2 * unit.shape[1]
            values[near, s] = -np.inf
    return best


def _climb(paths: Paths, space: Parameters, z: Array, sign: float) -> tuple[Array, Array]:
    """Local maxima of sign * f_s over the continuous coordinates, path s from z_s, all of them in lockstep.

    Projected gradient steps in units of the kernel's reach, as long as the last two gradients suggest (Barzilai and
    Borwein 1988); a step that does not improve is not taken, and the next one is a quarter as long.
    """
    free = np.concatenate([np.full(p.width, p.levels is None) for p in space.parameters])
    metric = np.where(free, np.minimum(paths.posterior.kernel.reach(space.dim), space.span) ** 2, 0.0)
    which = np.arange(len(z))
    value, gradient = paths(z, which)
    value, gradient = sign * value, sign * gradient
    length = 0.1 / np.maximum(np.sqrt((metric * gradient**2).sum(axis=1)), _TINY)  # a tenth of the reach at first
    for _ in range(_ROUNDS):
        new = np.clip(z + (length[:, None] * metric) * gradient, space.lo, space.hi)
        new_value, new_gradient = paths(new, which)
        new_value, new_gradient = sign * new_value, sign * new_gradient
        better = new_value > value
        step = new - z
        curvature = (step * (gradient - new_gradient)).sum(axis=1)
        squared = np.divide(step**2, metric, out=np.zeros_like(step), where=metric > 0.0).sum(axis=1)
        bent = better & (curvature > 0.0)
        length = np.where(better, 2.0 * length, 0.25 * length)
        length = np.where(bent, squared / np.where(bent, curvature, 1.0), length)
        z, gradient = np.where(better[:, None], new, z), np.where(better[:, None], new_gradient, gradient)
        value = np.where(better, new_value, value)
    return z, value


def _best_levels(paths: Paths, space: Parameters, z: Array, value: Array, sign: float) -> Array:
    """The point of each path with each discrete parameter in turn at its best level, the rest held."""
    z, value = z.copy(), value.copy()
    which = np.arange(len(z))
    for parameter, column in zip(space.parameters, space.columns, strict=True):
        if parameter.levels is None:
            continue
        count = len(parameter.levels)
        for level in parameter.levels[np.unique(np.linspace(0, count - 1, min(count, _LEVELS)).round().astype(int))]:
            trial = z.copy()
            trial[:, column] = level
            trial_value = sign * paths(trial, which)[0]
            better = trial_value > value
            z[better], value[better] = trial[better], trial_value[better]
    return z
