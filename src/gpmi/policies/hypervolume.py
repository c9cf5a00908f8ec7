"""Expected hypervolume improvement, its logarithm, and the random scalarisations whose mean is the hypervolume.

All objectives are maximised. An objective with a target t is Z = -|Y - t|: the closer to t, the better.

G is the expected gain over an edge a, and h(x) = pdf(x) + x cdf(x). Both kinds of gain are written with functions of
y >= 0 that neither overflow nor cancel: Mills' ratio M(y) = cdf(-y) / pdf(y) and R(y) = h(-y) / pdf(y) = 1 - y M(y).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.policies.front import Boxes
from gpmi.policies.normal import LARGEST_Z, log_pdf, pdf
from gpmi.policies.policy import TINY

_EPS = float(np.finfo(float).eps)
_FAR = 50.0  # above it R is a series with error 945 / _FAR^8 = 2e-11; below it 1 - y M(y) loses 1 / _FAR^2: 1e-12
_SHORT = 0.05  # up to this k (1 + |b|) the series of `_short` has error _SHORT^6 / 20160 < 1e-12
_BLOCK = 2**15  # numbers in one array. CPU time for 120 to 2,600 boxes and 2^12 to 2^20: never 1.9 times the best


class ScaledGain(NamedTuple):
    """G = exp(log_scale) value, and its derivatives by mu and by var in the same unit; one row per edge."""

    log_scale: Array  # (e, p)
    value: Array  # (e, p)
    by_mu: Array  # (e, p)
    by_var: Array  # (e, p)


@dataclass(frozen=True, eq=False)
class HypervolumeImprovement:
    """EHVI = E[HV(front and Z) - HV(front)] = sum_boxes prod_i (G_i(lower_i) - G_i(upper_i)), G_i(a) = E[(Z_i - a)+].

    The outputs are independent, Y_i ~ N(mu_i, var_i). Where the front is uncertain, `boxes` has one entry for each of S
    draws of it, and what counts is the mean over the draws, each with moments of its own. G is computed once for each
    distinct edge: with n points on the front O(S m n p) of them, then O(S m b p) products for b boxes and p points.
    """

    boxes: tuple[Boxes, ...]  # one for each draw of the front
    targets: tuple[float | None, ...]  # (m,), None for an objective that is maximised, t for Z = -|Y - t|

    @property
    def size(self) -> int:
        """S, the number of draws."""
        return len(self.boxes)

    def __call__(self, mu: Array, var: Array) -> Array:  # (S, m, p), (S, m, p) or (1, m, p) -> (p,)
        """Return the logarithm of the mean of EHVI over the draws: finite, also where EHVI underflows."""
        log = np.full(mu.shape[2], np.log(TINY))
        if not self._count:  # every target is hit: nothing can be gained anywhere
            return log
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            for part in self._chunks(mu.shape[2]):
                mean = self._mean(mu[..., part], var[..., part])
                log[part] = np.log(mean)
                lost = np.flatnonzero(~(mean > TINY / _EPS))  # products that underflowed may matter to the sum
                if len(lost):
                    points = lost + part.start
                    log[points] = self._log_sum(self._terms(mu[..., points], var[..., points])[0])[0]
        return log

    def with_derivatives(self, mu: Array, var: Array) -> tuple[Array, Array, Array]:
        """Return the logarithm (p,), and its derivatives by mu and by var of every draw, both (S, m, p).

        Where var is common to the draws, (1, m, p), its derivative is the sum over the first axis.
        """
        log, by_mu, by_var = np.full(mu.shape[2], np.log(TINY)), np.zeros(mu.shape), np.zeros(mu.shape)
        if not self._count:
            return log, by_mu, by_var
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            for part in self._chunks(mu.shape[2]):
                terms, gains, thickness = self._terms(mu[..., part], var[..., part])
                log[part], weights = self._log_sum(terms)
                for i, (side, gain) in enumerate(zip(self._sides, gains, strict=True)):
                    for by, derivative in ((by_mu, gain.by_mu), (by_var, gain.by_var)):
                        slope = _with_row(derivative / gain.value, 0.0)  # of log G
                        low, high = slope[side.lower], slope[side.upper]
                        change = weights * ((low - high) / thickness[i] + high)
                        for s, rows in enumerate(self._draws):
                            by[s, i, part] = change[rows].sum(axis=0)
        return log, np.nan_to_num(by_mu), np.nan_to_num(by_var)

    def _mean(self, mu: Array, var: Array) -> Array:
        """Return the mean of EHVI over the draws, by the sum of products itself. (p,)"""
        product: Array | None = None
        for side, moments in zip(self._sides, self._moments(mu, var), strict=True):
            values = _with_row(side.values(*moments), 0.0)
            factor = values[side.lower]
            if side.bounded:
                factor -= values[side.upper]
                np.maximum(factor, 0.0, out=factor)  # rounding
            product = factor if product is None else np.multiply(product, factor, out=product)
        assert product is not None
        mean: Array = product.sum(axis=0) / len(self.boxes)
        return mean

    def _terms(self, mu: Array, var: Array) -> tuple[Array, list[ScaledGain], list[Array]]:
        """Return the logarithm of each box's product (b, p), the gains, and 1 - G(upper) / G(lower), (b, p) each."""
        gains = [side.gain(*moments) for side, moments in zip(self._sides, self._moments(mu, var), strict=True)]
        total, sizes = np.zeros((self._count, mu.shape[2])), np.ones((self._count, mu.shape[2]))
        thickness = []
        for side, gain in zip(self._sides, gains, strict=True):
            logs = _with_row(gain.log_scale + np.log(np.maximum(gain.value, TINY)), -np.inf)
            low = logs[side.lower]
            # Edges whose gains rounding makes equal are taken to be one unit of rounding apart.
            thickness.append(-np.expm1(np.minimum(logs[side.upper] - low, -_EPS)))
            total += low
            sizes *= thickness[-1]
        return total + np.log(sizes), gains, thickness

    def _log_sum(self, terms: Array) -> tuple[Array, Array]:
        """Return the logarithm of the mean over draws (p,) of the sum over boxes, and each box's share, (b, p)."""
        top = terms.max(axis=0)
        shares = np.exp(terms - top)
        total = shares.sum(axis=0)
        return top + np.log(total) - np.log(len(self.boxes)), shares / total

    def _moments(self, mu: Array, var: Array) -> Iterator[tuple[Array, Array]]:
        """Yield mu and sd at the edges of each objective: (e, p), and (e, p) or (1, p)."""
        sd = np.sqrt(np.maximum(var, TINY))
        for i, side in enumerate(self._sides):
            yield mu[side.draw, i], sd[side.draw, i] if len(sd) > 1 else sd[:, i]

    def _chunks(self, p: int) -> Iterator[slice]:
        size = max(1, _BLOCK // self._count)
        return (slice(begin, min(begin + size, p)) for begin in range(0, p, size))

    @cached_property
    def _open(self) -> tuple[Boxes, ...]:
        """The boxes that Z can reach: where there is a target, Z <= 0."""
        able = np.array([np.inf if target is None else 0.0 for target in self.targets])
        masks = [np.all(boxes.lower < able, axis=1) for boxes in self.boxes]
        return tuple(Boxes(b.lower[mask], b.upper[mask]) for b, mask in zip(self.boxes, masks, strict=True))

    @cached_property
    def _count(self) -> int:
        return sum(map(len, self._open))

    @cached_property
    def _draws(self) -> list[slice]:
        """The boxes of each draw, among those of all draws."""
        ends = np.cumsum([0, *map(len, self._open)]).tolist()
        return [slice(begin, end) for begin, end in pairwise(ends)]

    @cached_property
    def _sides(self) -> tuple[_Sides, ...]:
        return tuple(_Sides.of(self._open, i, target) for i, target in enumerate(self.targets))


@dataclass(frozen=True, eq=False)
class _Sides:
    """The boxes of all draws along one objective: their distinct edges, and the edges of each box by number."""

    edges: Array  # (e, 1), those where G > 0
    draw: Numbers  # (e,), to which draw an edge belongs
    lower: Numbers  # (b,), rows of `edges`
    upper: Numbers  # (b,), rows of `edges`; e where G = 0
    target: float | None

    @staticmethod
    def of(boxes: tuple[Boxes, ...], i: int, target: float | None) -> _Sides:
        """Collect the sides of boxes along objective i. O(b log b)."""
        limit = np.inf if target is None else 0.0  # no Z is above it
        ends = [np.unique(np.append(b.lower[:, i], b.upper[:, i])) for b in boxes]
        edges = [values[values < limit] for values in ends]
        first = np.cumsum([0, *map(len, edges)])
        lower = [np.searchsorted(e, b.lower[:, i]) + k for e, b, k in zip(edges, boxes, first[:-1], strict=True)]
        upper = [
            np.where(b.upper[:, i] < limit, np.searchsorted(e, b.upper[:, i]) + k, first[-1])
            for e, b, k in zip(edges, boxes, first[:-1], strict=True)
        ]
        draw = np.repeat(np.arange(len(boxes)), np.diff(first))
        return _Sides(np.concatenate(edges)[:, None], draw, np.concatenate(lower), np.concatenate(upper), target)

    @cached_property
    def bounded(self) -> bool:
        """Whether some box has an upper edge."""
        return bool(np.any(self.upper < len(self.edges)))

    def gain(self, mu: Array, sd: Array) -> ScaledGain:
        """Return G and its derivatives at every edge."""
        return _gain(mu - self.edges, sd) if self.target is None else _target_gain(mu - self.target, sd, -self.edges)

    def values(self, mu: Array, sd: Array) -> Array:
        """Return G at every edge, (e, p); 0 where it underflows."""
        if self.target is not None:
            gain = self.gain(mu, sd)
            return np.exp(gain.log_scale) * gain.value
        above = mu - self.edges
        y = np.minimum(np.abs(above) / sd, LARGEST_Z)
        result: Array = np.maximum(above, 0.0) + sd * pdf(y) * _mills(y)[1]
        return result


def _mills(y: Array) -> tuple[Array, Array]:
    """Return M(y) = cdf(-y) / pdf(y) and R(y) = 1 - y M(y), for y >= 0.

    Where the difference cancels, R(y) = y^-2 (1 - 3 y^-2 + 15 y^-4 - 105 y^-6 + ...).
    """
    from scipy.special import erfcx

    ratio: Array = np.sqrt(np.pi / 2.0) * erfcx(y / np.sqrt(2.0))
    rest: Array = 1.0 - y * ratio
    far = y > _FAR
    if far.any():
        b = y[far] ** -2.0
        rest[far] = b * (1.0 - 3.0 * b + 15.0 * b**2 - 105.0 * b**3)
    return ratio, rest


def _gain(above: Array, sd: Array) -> ScaledGain:
    """G = E[(Y - a)+] = sd h(x), x = (mu - a) / sd; dG/dmu = cdf(x) and dG/dvar = pdf(x) / (2 sd).

    It is (mu - a)+ + sd pdf(x) R(|x|). For x <= 0 the unit is sd pdf(x).
    """
    y = np.minimum(np.abs(above) / sd, LARGEST_Z)
    ratio, rest = _mills(y)
    log_density = log_pdf(y)
    density, below = np.exp(log_density), above <= 0.0
    return ScaledGain(
        np.where(below, log_density + np.log(sd), 0.0),
        np.where(below, rest, above + sd * density * rest),
        np.where(below, ratio / sd, 1.0 - density * ratio),
        np.where(below, 0.5 / sd, 0.5 * density) / sd,
    )


def _target_gain(off: Array, sd: Array, c: Array) -> ScaledGain:
    """G = E[(c - |u|)+], u ~ N(off, var), c > 0: the second difference sd (h(b + k) - 2 h(b) + h(b - k)).

    Here b = -|off| / sd and k = c / sd. dG/d|off| and dG/dvar are the same difference, of -cdf and of pdf / (2 sd). It
    cancels where k is small or b is far out; none of the three forms does that are used instead.
    """
    distance, sd, c = np.broadcast_arrays(np.abs(off), sd, c)
    short = c / sd * (1.0 + distance / sd) < _SHORT
    inside = (distance < c) & ~short
    result = np.empty((4, *distance.shape))
    for case, form in ((short, _short), (inside, _inside), (~(short | inside), _outside)):
        result[:, case] = form(distance[case], sd[case], c[case])
    log_scale, value, by_distance, by_var = result
    return ScaledGain(log_scale, value, np.sign(off) * by_distance, by_var)


def _inside(distance: Array, sd: Array, c: Array) -> tuple[Array, ...]:
    """The mean is closer than c: (c - |off|) + sd (h(-a) - 2 h(b) + h(b - k)), a = b + k > 0, in units of 1."""
    y = np.stack([c - distance, distance, distance + c]) / sd
    ratio, rest = _mills(np.minimum(y, LARGEST_Z, out=y))
    density = pdf(y)
    tail, cdf = _bend(density * rest), density * ratio
    by_distance = 2.0 * cdf[1] - cdf[2] - (1.0 - cdf[0])
    return np.zeros_like(c), c - distance + sd * tail, by_distance, 0.5 * _bend(density) / sd


def _outside(distance: Array, sd: Array, c: Array) -> tuple[Array, ...]:
    """The mean is farther than c: sd pdf(a) (R(-a) - 2 x R(-b) + x' R(k - b)), a = b + k <= 0, in units of sd pdf(a).

    x = pdf(b) / pdf(a) = exp(k (b + k / 2)) and x' = pdf(b - k) / pdf(a) = exp(2 k b).
    """
    y = np.stack([distance - c, distance, distance + c]) / sd
    ratio, rest = _mills(np.minimum(y, LARGEST_Z, out=y))
    k = np.minimum(c / sd, LARGEST_Z)
    density = np.exp(np.stack([np.zeros_like(k), np.minimum(k * (0.5 * k - y[1]), 0.0), -2.0 * k * y[1]]))
    by_distance, by_var = -_bend(density * ratio) / sd, 0.5 * _bend(density) / sd / sd
    return log_pdf(y[0]) + np.log(sd), _bend(density * rest), by_distance, by_var


def _short(distance: Array, sd: Array, c: Array) -> tuple[Array, ...]:
    """c is short: sd pdf(b) (k^2 + k^4 (b^2 - 1) / 12 + k^6 (b^4 - 6 b^2 + 3) / 360 + ...), in units of sd pdf(b).

    The polynomials in b are Hermite's: the n-th derivative of pdf is (-1)^n He_n pdf.
    """
    b, q = distance / sd, (c / sd) ** 2.0
    w = b * b
    he4, he6 = w * (w - 6.0) + 3.0, w * (w * (w - 15.0) + 45.0) - 15.0
    value = q * (1.0 + q * ((w - 1.0) / 12.0 + q * he4 / 360.0))
    by_distance = -q * b * (1.0 + q * ((w - 3.0) / 12.0 + q * (w * (w - 10.0) + 15.0) / 360.0))
    by_var = 0.5 * q * (w - 1.0 + q * (he4 / 12.0 + q * he6 / 360.0))
    return log_pdf(b) + np.log(sd), value, by_distance / sd, by_var / sd / sd


def _bend(three: Array) -> Array:
    """Return the second difference of three rows."""
    result: Array = three[0] - 2.0 * three[1] + three[2]
    return result


def _with_row(rows: Array, last: float) -> Array:
    """Append a row of equal numbers: what holds at an edge that Z never exceeds."""
    return np.concatenate([rows, np.full((1, rows.shape[1]), last)])


def scalarised(z: Array, reference: Array, weights: Array) -> Array:  # (n, m), (m,), (m,) -> (n,)
    """s(y) = min_i max(0, (y_i - r_i) / weights_i), whose m-th power averages to the hypervolume.

    Golovin and Zhang 2020: HV = c_m E[max_y s(y)^m] over the weights of `random_direction`, with
    c_m = pi^(m/2) / (2^m Gamma(m/2 + 1)). The power is monotone, so the maximum is where s has its own: it is left out.
    """
    result: Array = np.maximum(np.min((z - reference) / weights, axis=1), 0.0)
    return result


def random_direction(m: int, rng: np.random.Generator) -> Array:  # (m,)
    """Draw weights uniformly from the unit vectors with positive coordinates: |g| / ||g||, g ~ N(0, I)."""
    g = np.maximum(np.abs(rng.standard_normal(m)), TINY)
    return g / float(np.linalg.norm(g))
