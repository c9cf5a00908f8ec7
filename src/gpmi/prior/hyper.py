"""What the prior is: the most probable hyper-parameters, those that predict best, or draws of what they might be.

The criterion is the marginal likelihood, or the leave-one-out predictive likelihood, times a prior on the
hyper-parameters. Everything is learned in units in which the space is the unit cube and y has mean 0 and variance 1,
and returned in the user's: a stationary kernel takes the scaling of x into its lengthscales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from gpmi.gp.kernels import Kernel, Matern
from gpmi.gp.linalg import Inverted, eigen, invert, solve_definite
from gpmi.gp.posterior import Posterior
from gpmi.prior.warp import IDENTITY, Warp
from gpmi.types import Array, Event, Mask

SAMPLES = 8  # draws of the hyper-parameters over which a score is averaged
FIT_POINTS = 256  # a fit looks at so many observations at most: O(FIT_POINTS^3) an evaluation
_MEAN_SD = 1.0  # the prior of the constant mean, in standard deviations of y

# Normal priors on the logarithms, (mean, sd). The lengthscale's grows with sqrt(number of parameters), so that the
# typical distance between two points stays a few lengthscales in every dimension (Hvarfner et al. 2024, whose
# LogNormal(sqrt 2 + log(d) / 2, sqrt 3) has this mode; sd 1 in place of their sqrt 3 keeps single lengthscales from
# running away on ten points); the noise may be anything from rounding to all there is.
_LOG_VARIANCE = (0.0, 1.0)
_LOG_LENGTHSCALE = (np.sqrt(2.0) - 3.0, 1.0)
_LOG_NOISE = (np.log(1e-5), 3.0)
_BOUNDS_VARIANCE = (-6.0, 6.0)
_BOUNDS_LENGTHSCALE = (np.log(5e-3), np.log(1e3))
_EXACT = 1e-10  # of the variance of y: the noise a fit assumes at least, even if the user said 0
_BOUNDS_NOISE = (np.log(1e-8), np.log(2.0))

_ROUNDS = 60  # steps of a search
_LONGEST = 2.0  # the longest step, in units of any of the logarithms
_RACE, _RACE_POINTS = 6, 128  # of those before starts are compared, on so many observations at most
_ENOUGH = 2e-2  # nats: what is gained beyond is not worth an evaluation
_AT = 1e-9  # what is so close to a bound is at it
_SLICE = 2.0  # the width of a slice at first, in standard deviations
_WARP_FROM, _WARP_POINTS = 8, 64  # a transformation of y is considered from so many observations on, on at most so many
_WARP_APART = 0.05  # of which no two are closer than this, in units of the cube's diagonal
# Nats by which it must be better than none: in all (noise gains 1 to 4), and per observation, more where it would
# compress the differences between the best values, which costs cumulative regret (Hartmann-6 gains 0.3 to 1.4).
# Chosen on eight functions. With other seeds (T = 45, 8 runs each) it was taken in every run on Goldstein-Price,
# Zakharov-4 and Beale, always to the better (R_T / T times 0.3 to 0.6), and on seven other problems in 1 run of 56.
_CLEARLY, _CLEARLY_EACH, _CLEARLY_EACH_AT_BEST = 6.0, 0.5, 1.5
_NO_FIT = 1e100  # the loss where C is not positive definite


@dataclass(frozen=True)
class Prior:
    """f ~ GP(mean, kernel), observed with noise of variance noise_var; f and the noise are those of warp(y)."""

    kernel: Kernel
    noise_var: float
    mean: float = 0.0
    events: tuple[Event, ...] = ()
    hessian: Array | None = field(default=None, repr=False, compare=False)  # where the next search starts from
    warp: Warp = IDENTITY
    samples: tuple[Prior, ...] = field(default=(), repr=False)  # draws of the prior given y, if they were asked for

    def posterior(self) -> Posterior:
        """The posterior given nothing."""
        return Posterior.prior(self.kernel, self.noise_var, self.mean)


class Priors:
    """The prior in use with n observations, for every n: given, or learned from the first `point(n)` of them and kept.

    Which observations it is learned from is a function of n alone, so that runs replay.
    """

    def __init__(
        self,
        kernel: Kernel | None,
        noise_var: float | None,
        method: Literal["map", "loo", "mcmc"],
        span: Array,  # (d,)
        groups: tuple[int, ...],  # (d,)
        sign: float,
        seed: int,
    ) -> None:
        self._kernel, self._noise_var, self._method = kernel, noise_var, method
        self._span, self._groups, self._sign, self._seed = span, groups, sign, seed
        self._learned: dict[int, Prior] = {}

    @property
    def given(self) -> bool:
        """Whether nothing is learned."""
        return self._kernel is not None and self._noise_var is not None

    def point(self, n: int) -> int:
        """How many of n observations are behind the prior in use."""
        return 0 if self.given else fit_point(n)

    def __call__(self, p: int, x: Array, y: Array) -> Prior:
        """The prior learned from the first p of the observations x (n, d), y (n,)."""
        if self._kernel is not None and self._noise_var is not None:
            return Prior(self._kernel, self._noise_var)
        if p not in self._learned:
            if self._kernel is not None:
                self._learned[p] = fit_noise(x[:p], y[:p], self._kernel)
            else:
                start = warm_point(p)
                warm = None if start is None else self(start, x, y)
                rng = np.random.default_rng([self._seed, p, 0]) if self._method == "mcmc" else None
                self._learned[p] = fit(
                    x[:p], y[:p], self._span, self._groups, self._noise_var, warm, is_wide(p),
                    self._method == "loo", self._sign, rng,
                )  # fmt: skip
        return self._learned[p]


def fit_point(n: int) -> int:
    """The number of observations behind the prior in use when there are n.

    Every n up to 16, then 8 per doubling, from 64 on 4. A fit costs O(n^3) and serves of the order of n suggestions, so
    the average per suggestion stays of order n^2.
    """
    octave = _octave(n)
    return n - n % max(1, octave // (8 if octave < 64 else 4))


def warm_point(p: int) -> int | None:
    """The earlier fit from which the one on p observations starts, if any: a function of p alone, so runs replay.

    It is p without its lowest binary digit, a recent fit with few fits behind it even if all the data came at once;
    the first fit of a doubling starts, unless it is cheap, from the first of the doubling before.
    """
    if p != _octave(p):
        return p & (p - 1)
    return p // 2 if p >= 128 else None


def is_wide(p: int) -> bool:
    """Whether the fit on p observations looks beyond its warm start: up to 16, at 24, 32, 48, 64, 128 and 256.

    A later fit sees no more observations than that at 256.
    """
    return p <= 16 or (p == _octave(p) and p <= FIT_POINTS) or (p <= 64 and 2 * p == 3 * _octave(p))


def _octave(n: int) -> int:
    """The largest power of 2 up to n, 0 for 0."""
    return 1 << (n.bit_length() - 1) if n else 0


def fit(
    x: Array,  # (n, d)
    y: Array,  # (n,)
    span: Array,  # (d,), the width of the space
    groups: tuple[int, ...],  # (d,), the lengthscale that each coordinate shares
    noise_var: float | None = None,
    warm: Prior | None = None,
    wide: bool = True,
    loo: bool = False,
    sign: float = 1.0,  # -1 where small y are good
    rng: np.random.Generator | None = None,
) -> Prior:
    """The most probable Matern-5/2 prior with a lengthscale per parameter, given y at x.

    At 8, 16, 32, ... observations a transformation of y is considered (`choose_warp`), unless `noise_var` fixes the
    noise. `loo` takes the leave-one-out predictive likelihood in place of the marginal one. O(n^3) for each evaluation
    with analytic gradients, of which a search from `warm` needs about six. Short lengthscales without noise and long
    ones with noise can both explain rough data, so a `wide` search compares three starts: the centre of the prior, the
    same with much noise, and `warm`. With `rng` the prior comes with SAMPLES draws of what it might be as well.
    """
    events, n = _subset_event(y), len(y)
    x, y = _subset(x / span, y, FIT_POINTS)
    warp = IDENTITY if warm is None else warm.warp
    if noise_var is None and n >= _WARP_FROM and n == _octave(n):
        warp = choose_warp(x, y, np.asarray(groups), sign)
    if warp.bends:
        events = (*events, Event("transformed", f"the model is that of {warp}"))
    location, scale, y = _standardised(warp(y))

    # Exact observations that repeat have a singular C; the posterior repairs it row by row, a fit by a little noise.
    fixed = None if noise_var is None else max(noise_var / scale**2, _EXACT)

    def problem_on(x: Array, y: Array) -> _Problem:
        return _Problem(x, y, np.asarray(groups), fixed, loo)

    problem = problem_on(x, y)

    def prior_at(q: Array, hessian: Array | None = None) -> Prior:
        """q in the user's units."""
        variance, lengthscale, noise = problem.unpack(q)
        return Prior(
            Matern(nu=2.5, lengthscale=lengthscale * span, variance=variance * scale**2),
            noise * scale**2 if noise_var is None else noise_var,
            location + scale * problem.mean(q),
            events,
            hessian,
            warp,
        )

    starts = [problem.centre, problem.noisy] if wide or warm is None else []
    if warm is not None and isinstance(warm.kernel, Matern):
        variance, *lengthscales = np.exp(warm.kernel.theta)
        firsts = [groups.index(g) for g in range(max(groups) + 1)]
        noise = max(warm.noise_var, 1e-300) / scale**2
        starts.append(np.log([variance / scale**2, *(np.array(lengthscales) / span)[firsts], noise]))
    peaks = [problem.start(q, None if warm is None else warm.hessian) for q in starts]
    if len(peaks) > 1 and len(y):
        rough = problem if len(y) <= _RACE_POINTS else problem_on(*_subset(x, y, _RACE_POINTS))
        rounds = _ROUNDS if len(y) <= 16 else _RACE
        peaks = [min((rough.descend(peak, rounds) for peak in peaks), key=lambda peak: peak.loss)]
    peak = problem.descend(peaks[0], _ROUNDS) if len(y) else peaks[0]
    if peak.loss == _NO_FIT and len(y):
        failure = f"no fit on {len(y)} observations was possible; the prior's centre is used"
        peak, events = problem.start(problem.centre, None), (*events, Event("fit", failure))
    best = prior_at(peak.q, peak.hessian)
    if rng is None or peak.loss == _NO_FIT:
        return best
    return replace(best, samples=tuple(prior_at(q) for q in problem.sample(peak, SAMPLES, rng)))


def choose_warp(x: Array, y: Array, groups: Array, sign: float) -> Warp:
    """The transformation of y under which y is clearly most probable, p(y) = p(z) dz/dy; usually none.

    x is in units of the space, sign is -1 where small y are good. The candidates are logarithms from the lowest value
    upwards, from the highest downwards, or beyond the quartiles: the kind is the one that makes y most normal, and of
    each kind there are a few widths, for which the evidence decides. Four rough fits on at most _WARP_POINTS
    observations, each but the first from where the one before has ended: the gaps that count are of many nats.
    """
    x, y = _subset(*_apart(x, y), _WARP_POINTS)
    if len(y) < _WARP_FROM:
        return IDENTITY
    normal, kind = max(
        ((max(_log_density(warp, y) for warp in kind), kind) for kind in _warps(y)),
        default=(-np.inf, []),
        key=lambda pair: pair[0],
    )
    # Where y is hardly more normal afterwards it is not clearly more probable either, and nothing need be fitted.
    if normal - _log_density(IDENTITY, y) < 0.5 * max(_CLEARLY, _CLEARLY_EACH * len(y)):
        return IDENTITY
    best, value, peak = IDENTITY, -np.inf, None
    for warp in [IDENTITY, *kind]:
        _, scale, z = _standardised(warp(y))
        problem = _Problem(x, z, groups, None)
        starts = [peak] if peak else [problem.start(q, None) for q in (problem.centre, problem.noisy)]
        peak = min((problem.descend(start, _RACE) for start in starts), key=lambda peak: peak.loss)
        evidence = float(warp.log_slope(y).sum()) - len(y) * math.log(scale) - peak.loss
        if warp.bends:
            at_best = warp.hi < np.inf if sign > 0.0 else warp.lo > -np.inf
            evidence -= max(_CLEARLY, len(y) * (_CLEARLY_EACH_AT_BEST if at_best else _CLEARLY_EACH))
        if evidence > value:
            best, value = warp, evidence
    return best


def _apart(x: Array, y: Array) -> tuple[Array, Array]:
    """The observations without those close to a more extreme one.

    A search piles up observations at its optimum, and there the differences between them are as small as it likes. An
    outlier among them must be seen, though.
    """
    left, keep = np.ones(len(y), dtype=bool), []
    for i in np.argsort(-np.abs(y - np.median(y)), kind="stable"):
        if left[i]:
            keep.append(i)
            left &= ((x - x[i]) ** 2).sum(axis=1) > _WARP_APART**2 * x.shape[1]
    keep.sort()
    return x[keep], y[keep]


def _warps(y: Array) -> list[list[Warp]]:
    """Candidates by kind, each with a few widths at the scale of the data."""
    low, high = float(y.min()), float(y.max())
    q1, q3 = np.quantile(y, [0.25, 0.75])
    kinds: list[list[Warp]] = []
    for gaps, lo, hi in (
        (y - low, -np.inf, low),
        (high - y, high, np.inf),
        (np.maximum(q1 - y, y - q3), float(q1), float(q3)),
    ):
        gaps = np.sort(gaps[gaps > 1e-10 * gaps.max()])
        if len(gaps) > 1:
            ranks = sorted({len(gaps) // 2, len(gaps) // 4, len(gaps) // 8})
            least = 0.1 * (hi - lo) if np.isfinite(hi - lo) else 0.0  # between knees digits are kept only down to s
            kinds.append([Warp(lo, hi, max(float(gaps[k]), least), hi if hi < np.inf else lo) for k in ranks])
    return kinds


def _log_density(warp: Warp, y: Array) -> float:
    """log p(y) for z normal with its own mean and variance, up to a constant."""
    return float(warp.log_slope(y).sum()) - len(y) * math.log(_standardised(warp(y))[1])


def _standardised(y: Array) -> tuple[float, float, Array]:
    """The mean of y, its standard deviation, and y in units of these."""
    location, scale = (float(y.mean()), float(y.std())) if len(y) else (0.0, 1.0)
    if not scale > max(1e-12 * abs(location), 1e-150):  # no spread but rounding, or none whose square is a number
        return location, 1.0, np.zeros_like(y)
    return location, scale, (y - location) / scale


def fit_noise(x: Array, y: Array, kernel: Kernel) -> Prior:
    """The most probable noise_var under a kernel that is given, with mean 0. O(n^3) once."""
    events = _subset_event(y)
    x, y = _subset(x, y, FIT_POINTS)
    values, vectors = eigen(kernel(x, x))  # K = Q diag(values) Q^T, so each noise_var costs O(n)
    rotated = (vectors.T @ y) ** 2
    unit = float(kernel.diagonal(x).mean() if len(y) else 0.0) or 1.0
    log_noise = np.linspace(*_BOUNDS_NOISE, 400)
    total = np.maximum(values, 0.0)[:, None] + unit * np.exp(log_noise)  # below 0 is rounding
    penalty = 0.5 * ((log_noise - _LOG_NOISE[0]) / _LOG_NOISE[1]) ** 2
    loss = 0.5 * (rotated[:, None] / total + np.log(total)).sum(axis=0) + penalty
    best = int(np.argmin(loss))
    noise_var = unit * float(np.exp(log_noise[best]))
    if best == len(log_noise) - 1 and len(y):
        clipped = f"noise_var was limited to {noise_var:.3g}: y varies more than this kernel can explain; scale y or k"
        events = (*events, Event("clipped", clipped))
    return Prior(kernel, noise_var, events=events)


def _subset_event(y: Array) -> tuple[Event, ...]:
    """What is said when not all observations are used."""
    if len(y) <= FIT_POINTS:
        return ()
    return (Event("subset", f"the prior was learned from at most {FIT_POINTS} of the observations"),)


def _subset(x: Array, y: Array, size: int) -> tuple[Array, Array]:
    """At most `size` observations, spread evenly over the run, the best and the worst among them."""
    if len(y) <= size:
        return x, y
    spread = np.linspace(0, len(y) - 1, size - 2).round().astype(int)
    keep = np.unique(np.concatenate([spread, [np.argmax(y), np.argmin(y)]]))
    return x[keep], y[keep]


class _Peak(NamedTuple):
    """Where a search has come to."""

    q: Array
    loss: float
    hessian: Array  # of the loss, approximately


class _Solved(NamedTuple):
    """What an evaluation of a criterion needs, for n observations and their n (n - 1) / 2 pairs."""

    inverted: Inverted  # of C, with b = (y, 1)
    mean: float
    variance: float
    weight: Array  # 1 / l^2, (p,)
    noise: float
    k: Array  # k(x_i, x_j), by pairs
    fall: Array  # v h = -2 d k / d r^2, by pairs


class _Problem:
    """A criterion for q = (log variance, log lengthscales, log noise) plus log p(q), in standardised units.

    The squared differences of all pairs are computed once, per lengthscale, and everything that depends on pairs is
    kept by pairs: half the exponentials, and every derivative is one product with them.
    """

    def __init__(self, x: Array, y: Array, groups: Array, noise: float | None, loo: bool = False) -> None:
        self.y, self.groups, self.noise, self.loo = y, groups, noise, loo
        n, p = len(y), int(groups.max()) + 1
        self.i, self.j = np.tril_indices(n, -1)
        self.at = self.i * n + self.j  # where a pair is in a matrix
        self.squares = np.zeros((p, len(self.at)))
        for k, group in enumerate(groups):
            self.squares[group] += (x[self.i, k] - x[self.j, k]) ** 2
        self.b = np.stack([y, np.ones(n)], axis=1)
        # Written anew by every evaluation: allocating them each time would cost as much as the exponentials.
        self.c, (self.k, self.fall, self.by_pair) = np.empty((n, n)), np.empty((3, len(self.at)))
        log_l = (_LOG_LENGTHSCALE[0] + 0.5 * np.log(p), _LOG_LENGTHSCALE[1])
        self.centre, self.width = np.array([_LOG_VARIANCE, *[log_l] * p, _LOG_NOISE]).T
        self.noisy = self.centre.copy()
        self.noisy[-1] = np.log(0.05)
        self.lo, self.hi = np.array([_BOUNDS_VARIANCE, *[_BOUNDS_LENGTHSCALE] * p, _BOUNDS_NOISE]).T

    def unpack(self, q: Array) -> tuple[float, Array, float]:
        """variance, lengthscale per coordinate, noise."""
        values = np.exp(q)
        return float(values[0]), values[1:-1][self.groups], float(values[-1]) if self.noise is None else self.noise

    def mean(self, q: Array) -> float:
        """The most probable constant mean given q."""
        solved = self._solve(q) if len(self.y) else None
        return 0.0 if solved is None else solved.mean

    def _solve(self, q: Array) -> _Solved | None:
        n, variance = len(self.y), math.exp(q[0])
        weight = np.exp(-2.0 * q[1:-1])
        noise = math.exp(q[-1]) if self.noise is None else self.noise
        k, fall, s = self.k, self.fall, self.by_pair
        np.matmul(5.0 * weight, self.squares, out=s)  # Matern-5/2: k = v (1 + s + s^2 / 3) exp(-s), s^2 = 5 r^2
        np.multiply(s, 1.0 / 3.0, out=k)
        np.sqrt(s, out=s)
        np.negative(s, out=fall)
        np.exp(fall, out=fall)
        fall *= variance
        s += 1.0
        k += s
        k *= fall
        fall *= s
        fall *= 5.0 / 3.0
        flat = self.c.reshape(-1)
        flat[self.at] = k
        flat[:: n + 1] = variance + noise
        inverted = invert(self.c, self.b)
        if inverted is None:
            return None
        by_y, by_one = inverted.solution.sum(axis=0)  # 1^T C^-1 y and 1^T C^-1 1
        return _Solved(inverted, float(by_y / (by_one + _MEAN_SD**-2)), variance, weight, noise, k, fall)

    def loss(self, q: Array) -> tuple[float, Array]:
        """-(criterion + log p(q)) and its gradient. O(n^3 + n^2 p)."""
        solved = self._solve(q)
        if solved is None:
            return _NO_FIT, np.zeros_like(q)
        value, by_pair, by_diagonal = self._minus_loo(solved) if self.loo else self._minus_evidence(solved)
        off = (q - self.centre) / self.width
        gradient = off / self.width
        trace = float(by_diagonal.sum())
        gradient[0] += float(by_pair @ solved.k) + 0.5 * solved.variance * trace
        by_pair *= solved.fall  # d k / d log l = v h (x - z)^2 / l^2
        gradient[1:-1] += solved.weight * (self.squares @ by_pair)
        if self.noise is None:
            gradient[-1] += 0.5 * solved.noise * trace
        return value + 0.5 * float(off @ off), gradient

    def _minus_evidence(self, solved: _Solved) -> tuple[float, Array, Array]:
        """-log p(y | q) - n/2 log 2 pi, maximised over the mean m, and 2 d / d C by pair and diagonal.

        With m ~ N(0, _MEAN_SD^2) it is 1/2 (r^T C^-1 r + log det C + m^2 / _MEAN_SD^2), r = y - m, whose derivative
        by C is 1/2 (C^-1 - w w^T) with w = C^-1 r.
        """
        inverse, solution, logdet = solved.inverted
        weights = solution[:, 0] - solved.mean * solution[:, 1]
        fit = float(weights @ (self.y - solved.mean))
        by_pair = np.take(inverse, self.at, out=self.by_pair, mode="clip")
        by_pair -= weights[self.i] * weights[self.j]
        return 0.5 * (fit + logdet + (solved.mean / _MEAN_SD) ** 2), by_pair, inverse.diagonal() - weights * weights

    def _minus_loo(self, solved: _Solved) -> tuple[float, Array, Array]:
        """-sum_i log p(y_i | the other y, q) - n/2 log 2 pi, and 2 d / d C by pair and diagonal. R&W 5.4.2.

        The mean is integrated out: with B = (C + _MEAN_SD^2 1 1^T)^-1 and w = B y, y_i given the others is
        N(y_i - w_i / B_ii, 1 / B_ii), so the sum is 1/2 sum_i (w_i^2 / B_ii - log B_ii).
        """
        lower, solution, _ = solved.inverted
        full = np.zeros_like(lower)
        full.ravel()[self.at] = lower.ravel()[self.at]
        full += full.T
        full.ravel()[:: len(full) + 1] = lower.diagonal()
        ones = solution[:, 1]  # Sherman and Morrison
        full -= np.multiply.outer(ones / (_MEAN_SD**-2 + float(ones.sum())), ones)
        weights, diagonal = full @ self.y, full.diagonal().copy()
        ratio = weights / diagonal
        u = full @ ratio
        by_c = (full * ((1.0 + weights * ratio) / diagonal)) @ full
        cross = np.multiply.outer(u, weights)
        by_c -= cross
        by_c -= cross.T
        return 0.5 * float(weights @ ratio - np.log(diagonal).sum()), by_c.ravel()[self.at], by_c.diagonal()

    def start(self, q: Array, hessian: Array | None) -> _Peak:
        """Where a search may start, q, with what is known of the Hessian, or a guess."""
        if hessian is None:  # the prior's, and roughly what an observation tells of each logarithm
            p = len(q) - 2
            hessian = np.diag(self.width**-2 + len(self.y) * np.array([0.3, *[0.3 / p] * p, 0.03]))
        return _Peak(np.clip(q, self.lo, self.hi), _NO_FIT, hessian)

    def descend(self, start: _Peak, rounds: int) -> _Peak:
        """The local minimum of the loss that a search finds."""
        return _descend(self.loss, start, self.lo, self.hi, rounds)

    def sample(self, peak: _Peak, count: int, rng: np.random.Generator) -> list[Array]:
        """`count` draws from the density exp(-loss), by slice sampling from the peak. Nothing is tuned.

        Along a direction ~ N(0, hessian^-1), which knows the scales but not the state, so the density stays invariant,
        a slice is stepped out and shrunk (Neal 2003, Figures 3 and 5). As many directions as q has coordinates lie
        between two draws; about six evaluations each.
        """
        values, vectors = eigen(peak.hessian)
        scales = vectors / np.sqrt(np.maximum(values, self.width.max() ** -2))  # no wider than the prior
        q, value, draws = peak.q, self.loss(peak.q)[0], []

        def height(q: Array) -> float:
            return self.loss(q)[0] if np.all(q >= self.lo) and np.all(q <= self.hi) else np.inf

        for step in range(1, count * len(q) + 1):
            direction = scales @ rng.standard_normal(len(q))
            level = value + rng.exponential()  # the slice is where loss < level
            left = -_SLICE * rng.random()
            right = left + _SLICE
            outwards = int(rng.integers(8))  # of at most seven steps out those to the left
            for _ in range(outwards):
                if height(q + left * direction) >= level:
                    break
                left -= _SLICE
            for _ in range(7 - outwards):
                if height(q + right * direction) >= level:
                    break
                right += _SLICE
            for _ in range(50):
                at = left + (right - left) * rng.random()
                here = height(q + at * direction)
                if here < level:
                    q, value = q + at * direction, here
                    break
                left, right = (at, right) if at < 0.0 else (left, at)
            if step % len(q) == 0:
                draws.append(q)
        return draws


def _descend(f: Callable[[Array], tuple[float, Array]], start: _Peak, lo: Array, hi: Array, rounds: int) -> _Peak:
    """A local minimum of f in a box, with the Hessian there as far as it was learned: BFGS.

    Coordinates held at a bound by their gradient do not move, and a step ends at the first bound it meets. The search
    ends when a full step promises less than _ENOUGH. O(p^3) a step.
    """
    q, _, hessian = start
    value, gradient = f(q)
    for _ in range(rounds):
        low, high = q <= lo + _AT, q >= hi - _AT
        held = np.where(gradient > 0.0, low, high)
        while (direction := _newton(hessian, gradient, held)) is not None:
            blocked = np.where(direction < 0.0, low, high) > held
            if not blocked.any():
                break
            held |= blocked
        if direction is None:  # rounding
            break
        slope = float(gradient @ direction)
        if slope > -_ENOUGH:
            break
        room = float((np.where(direction < 0.0, q - lo, hi - q) / np.maximum(np.abs(direction), 1e-300))[~held].min())
        length = min(1.0, room, _LONGEST / float(np.abs(direction).max()))
        for _ in range(8):
            step = np.clip(q + length * direction, lo, hi) - q
            new_value, new_gradient = f(q + step)
            excess = new_value - value - length * slope
            if excess <= -0.9999 * length * slope:  # Armijo
                break
            length *= min(0.5, max(0.1, -0.5 * length * slope / excess))  # the minimum of the parabola, within reason
        else:
            break
        rise = new_gradient - gradient
        curvature = float(step @ rise)
        q, value, gradient = q + step, new_value, new_gradient
        if curvature > 1e-10:
            along = hessian @ step
            hessian = hessian + np.multiply.outer(rise / curvature, rise)
            hessian -= np.multiply.outer(along / float(step @ along), along)
    return _Peak(q, value, hessian)


def _newton(hessian: Array, gradient: Array, held: Mask) -> Array | None:
    """The step to the minimum of the parabola in the coordinates that are not held, None if there is none."""
    if held.any():
        hessian = np.where(held | held[:, None], np.diag(held.astype(float)), hessian)
        gradient = np.where(held, 0.0, gradient)
    return solve_definite(hessian, -gradient)
