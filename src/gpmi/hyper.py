"""What the prior is: hyper-parameters by the maximum of the marginal likelihood times a prior on them.

Everything is learned in units in which the space is the unit cube and y has mean 0 and variance 1, and returned in
the user's: a stationary kernel takes the scaling of x into its lengthscales.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpmi.kernels import Kernel, Matern, Pullback
from gpmi.linalg import Array, eigen, inverse_and_logdet
from gpmi.posterior import Event, Posterior

FIT_POINTS = 400  # a fit looks at so many observations at most: O(FIT_POINTS^3) an evaluation
_MEAN_SD = 1.0  # the prior of the constant mean, in standard deviations of y

# Normal priors on the logarithms, (mean, sd). The lengthscale's grows with sqrt(number of parameters), so that the
# typical distance between two points stays a few lengthscales in every dimension (Hvarfner et al. 2024, whose
# LogNormal(sqrt 2 + log(d) / 2, sqrt 3) has this mode); the noise may be anything from rounding to all there is.
_LOG_VARIANCE = (0.0, 1.0)
_LOG_LENGTHSCALE = (np.sqrt(2.0) - 3.0, np.sqrt(3.0))
_LOG_NOISE = (np.log(1e-5), 3.0)
_BOUNDS_VARIANCE = (-6.0, 6.0)
_BOUNDS_LENGTHSCALE = (np.log(5e-3), np.log(1e3))
_BOUNDS_NOISE = (np.log(1e-8), np.log(2.0))


@dataclass(frozen=True)
class Prior:
    """f ~ GP(mean, kernel), observed with noise of variance noise_var."""

    kernel: Kernel
    noise_var: float
    mean: float = 0.0
    events: tuple[Event, ...] = ()

    def posterior(self) -> Posterior:
        """The posterior given nothing."""
        return Posterior.prior(self.kernel, self.noise_var, self.mean)


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
    if not is_first(p):
        return p & (p - 1)
    return p // 2 if p >= 128 else None


def is_first(p: int) -> bool:
    """Whether the fit on p observations is the first of a doubling, where the search is widened."""
    return p == _octave(p)


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
    tries: int = 2,
) -> Prior:
    """The most probable Matern-5/2 prior with a lengthscale per parameter, given y at x.

    `noise_var` fixes the noise. O(n^3) for each of some tens of evaluations with analytic gradients. Short lengthscales
    without noise and long ones with noise can both explain rough data, so there are three starts, the centre of the
    prior, the same with much noise, and `warm`; the `tries` most probable of them are followed.
    """
    events = _subset_event(y)
    x, y = _subset(x, y)
    location, scale = (float(y.mean()), float(y.std())) if len(y) else (0.0, 1.0)
    if not scale > max(1e-12 * abs(location), 1e-150):  # no spread, or none whose square is a number
        scale = 1.0
    problem = _Evidence(
        x / span, (y - location) / scale, np.asarray(groups), None if noise_var is None else noise_var / scale**2
    )
    starts = [problem.centre, problem.noisy]
    if warm is not None and isinstance(warm.kernel, Matern):
        variance, *lengthscales = np.exp(warm.kernel.theta)
        firsts = [groups.index(g) for g in range(max(groups) + 1)]
        noise = max(warm.noise_var, 1e-300) / scale**2
        starts.append(np.log([variance / scale**2, *(np.array(lengthscales) / span)[firsts], noise]))
    q, value = problem.maximise(starts, tries)
    if not np.isfinite(value):
        failure = f"no fit on {len(y)} observations was possible; the prior's centre is used"
        q, events = problem.centre, (*events, Event("fit", failure))
    variance, lengthscale, noise = problem.unpack(q)
    kernel = Matern(nu=2.5, lengthscale=lengthscale * span, variance=variance * scale**2)
    return Prior(
        kernel,
        noise * scale**2 if noise_var is None else noise_var,
        location + scale * problem.mean(q),
        events,
    )


def fit_noise(x: Array, y: Array, kernel: Kernel) -> Prior:
    """The most probable noise_var under a kernel that is given, with mean 0. O(n^3) once."""
    events = _subset_event(y)
    x, y = _subset(x, y)
    values, vectors = eigen(kernel(x, x))  # K = Q diag(values) Q^T, so each noise_var costs O(n)
    rotated = (vectors.T @ y) ** 2
    unit = float(kernel.diagonal(x).mean() if len(y) else 0.0) or 1.0
    log_noise = np.linspace(*_BOUNDS_NOISE, 400)
    total = values[:, None] + unit * np.exp(log_noise)
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


def _subset(x: Array, y: Array) -> tuple[Array, Array]:
    """At most FIT_POINTS observations, spread evenly over the run, the best and the worst among them."""
    if len(y) <= FIT_POINTS:
        return x, y
    spread = np.linspace(0, len(y) - 1, FIT_POINTS - 2).round().astype(int)
    keep = np.unique(np.concatenate([spread, [np.argmax(y), np.argmin(y)]]))
    return x[keep], y[keep]


class _Solved(NamedTuple):
    """What an evaluation of the evidence needs."""

    inverse: Array  # C^-1
    logdet: float  # log det C
    mean: float
    noise: float
    pull: Pullback  # of K by (log variance, log lengthscales)


class _Evidence:
    """log p(y | q) + log p(q) for q = (log variance, log lengthscales, log noise), in standardised units."""

    def __init__(self, x: Array, y: Array, groups: Array, noise: float | None) -> None:
        self.x, self.y, self.groups, self.noise = x, y, groups, noise
        p = int(groups.max()) + 1
        log_l = (_LOG_LENGTHSCALE[0] + 0.5 * np.log(p), _LOG_LENGTHSCALE[1])
        self.centre, self.width = np.array([_LOG_VARIANCE, *[log_l] * p, _LOG_NOISE]).T
        self.noisy = self.centre.copy()
        self.noisy[-1] = np.log(0.05)
        self.bounds = [_BOUNDS_VARIANCE, *[_BOUNDS_LENGTHSCALE] * p, _BOUNDS_NOISE]

    def unpack(self, q: Array) -> tuple[float, Array, float]:
        """variance, lengthscale per coordinate, noise."""
        values = np.exp(q)
        return float(values[0]), values[1:-1][self.groups], float(values[-1]) if self.noise is None else self.noise

    def mean(self, q: Array) -> float:
        """The most probable constant mean given q."""
        solved = self._solve(q) if len(self.y) else None
        return 0.0 if solved is None else solved.mean

    def _solve(self, q: Array) -> _Solved | None:
        variance, lengthscale, noise = self.unpack(q)
        k, pull = Matern(nu=2.5, lengthscale=lengthscale, variance=variance).with_theta_pullback(self.x)
        c = k.copy()
        c.flat[:: len(c) + 1] += noise
        solved = inverse_and_logdet(c)
        if solved is None:
            return None
        inverse, logdet = solved
        ones = inverse.sum(axis=0)
        mean = float(ones @ self.y) / (float(ones.sum()) + 1.0 / _MEAN_SD**2)
        return _Solved(inverse, logdet, mean, noise, pull)

    def loss(self, q: Array) -> tuple[float, Array]:
        """-(log p(y | q) + log p(q)), maximised over the mean, and its gradient."""
        solved = self._solve(q)
        if solved is None:
            return 1e100, np.zeros_like(q)
        inverse, logdet, mean, noise, pull = solved
        residual = self.y - mean
        weights = inverse @ residual
        off = (q - self.centre) / self.width
        value = 0.5 * (float(residual @ weights) + logdet + (mean / _MEAN_SD) ** 2 + float(off @ off))
        by_c = np.subtract(inverse, np.multiply.outer(weights, weights), out=inverse)  # 2 d value / d C
        by_theta = pull(by_c)
        by_lengthscale = np.bincount(self.groups, weights=by_theta[1:])
        by_noise = noise * float(np.trace(by_c)) if self.noise is None else 0.0
        return value, 0.5 * np.concatenate([by_theta[:1], by_lengthscale, [by_noise]]) + off / self.width

    def maximise(self, starts: list[Array], tries: int) -> tuple[Array, float]:
        """The best q found from the starts and its log posterior density, -inf if there is none."""
        if len(self.y) == 0:
            return self.centre, 0.0
        from scipy.optimize import minimize

        best, value = self.centre, np.inf
        lo, hi = np.array(self.bounds).T
        starts = sorted((np.clip(start, lo, hi) for start in starts), key=lambda q: self.loss(q)[0])
        for start in starts[:tries]:
            result = minimize(
                self.loss,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=self.bounds,
                options={"maxiter": 8 if tries == 1 else 60, "ftol": 1e-4, "gtol": 1e-2},
            )
            if result.fun < min(value, 1e99):
                best, value = result.x, float(result.fun)
        return best, -value
