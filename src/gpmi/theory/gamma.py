"""Information I_T, the largest possible information gamma_T, the sum of variances gamma_hat, and C_1 between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Numbers
from gpmi.gp.kernels import RBF, Kernel, Linear, Matern
from gpmi.gp.lazy_search import search_lazily
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import moments_in_chunks

GREEDY = 1.0 - 1.0 / math.e  # the share of gamma_T that greedy choices are sure to reach (Nemhauser et al. 1978)
_ROUNDING = 1e-14  # of the prior variance: variances this close are a tie, about fifty roundings; our choice
_TIE = 1e-10  # variances closer than this, relatively, are a tie: above their rounding errors; our choice
_GRID = 2**20  # points of the largest grid, 8 MB for each coordinate; our choice


def information(posterior: Posterior) -> Array:
    """I_t = 1/2 sum_{s<=t} log(1 + sigma_s^2(x_s) / noise_s) after each observation t = 1..n, (n,). O(n).

    Read off the pivots; the last one is `posterior.information`. Infinite for exact observations.
    """
    noise = posterior.noise_of_observed
    if np.any(noise == 0.0):
        return np.full(posterior.count, np.inf)
    total: Array = np.cumsum(0.5 * np.log1p(posterior.predictive_var / noise))
    return total


def information_at(kernel: Kernel, noise_var: float, x: Array) -> Array:
    """I_t = 1/2 log det(I + K_t / noise_var) of the first t rows of x (n, d), for t = 1..n. O(n^3)."""
    return information(Posterior.prior(kernel, noise_var).anticipate(x))


def gamma_hat(posterior: Posterior, n0: int = 0) -> Array:
    """gamma_hat_t = sum of sigma_s^2(x_s) over n0 < s <= t, for t = n0+1..n, (n - n0,). O(n).

    The last one is `posterior.gamma_hat(n0)`.
    """
    posterior.gamma_hat(n0)  # refuses a wrong n0
    total: Array = np.cumsum(posterior.predictive_var[n0:])
    return total


def c1(noise_var: float, variance: float = 1.0) -> float:
    """C_1 = 2 v / log(1 + v / noise_var); if k(x, x) <= v then gamma_hat_T <= C_1 I_T <= C_1 gamma_T.

    s / log(1 + s) grows with s = sigma_t^2 / noise_var, and sigma_t^2 <= v (Lemma 5.4 of Srinivas et al. 2012; the
    paper's Eq. 3 is v = 1). As noise_var tends to 0 so does C_1, while gamma_T grows without bound.
    """
    noise_var, variance = checks.positive("noise_var", noise_var), checks.positive("variance", variance)
    return 2.0 * variance / math.log1p(variance / noise_var)


@dataclass(frozen=True, eq=False)
class Greedy:
    """A greedy choice of T points and the bracket around gamma_t that it proves, for every t = 1..T.

    information_t <= gamma_t <= certificate_t <= information_t / (1 - 1/e), where gamma_t is that of the `size`
    candidates. With `between` > 0 the certificate holds for gamma_t of all points within that distance of a candidate.
    It may then exceed `upper`, which is about the candidates alone.
    """

    rows: Numbers  # (T,), which candidates, in order; repeats are allowed
    gains: Array  # (T,), 1/2 log(1 + sigma_t^2(x_t) / noise_var)
    information: Array  # (T,), I_t: a lower bound of gamma_t
    certificate: Array  # (T,), an upper bound of gamma_t
    size: int  # the number of candidates
    evaluated: int  # the number of variances computed; without the lazy search it would be T * size
    between: float  # sqrt(E[(f(x) - f(z))^2]) of a point x of the domain and its candidate z is at most this

    @property
    def upper(self) -> Array:
        """I_t / (1 - 1/e), the general upper bound of gamma_t on the candidates (Nemhauser et al. 1978). (T,)"""
        return self.information / GREEDY


@one_blas_thread
def greedy(kernel: Kernel, noise_var: float, candidates: Array, horizon: int, *, between: float = 0.0) -> Greedy:
    """x_t = argmax sigma_t^2(x) over candidates (m, d), T = `horizon` times: I_T >= (1 - 1/e) gamma_T.

    The gain 1/2 log(1 + var / noise_var) grows with var, so this is the greedy choice, also where k(x, x) is not
    constant. I is monotone and submodular, also with repeated points. So T more points, after t greedy ones, bring at
    most T times the largest gain g_{t+1} that is left, and

        gamma_T <= min_t I_t + T g_{t+1},

    which is the certificate. By induction from the same inequality it is never above I_T / (1 - 1/e). A tie goes to
    the lowest row.

    Variances only fall, so an old one is an upper bound: a variance is computed again only if its old value reaches
    the largest new one (Minoux 1978; Desautels et al. 2012). O(t^2) for each variance computed and O(m) for each
    search; memory O(m), where `Tracked` would take O(T m).
    """
    prior = Posterior.prior(kernel, checks.positive("noise_var", noise_var))
    z, horizon = checks.points("candidates", candidates, kernel.dim), checks.whole("horizon", horizon, 1)
    if len(z) == 0:
        raise ValueError("candidates has no rows; give at least one")
    if (between := checks.number("between", between)) < 0.0:
        raise ValueError(f"between is {between}; it is a distance: give a number, 0 or larger")
    posterior, var = prior, kernel.diagonal(z)
    rounding = _ROUNDING * float(var.max())
    rows, largest, evaluated = np.empty(horizon, dtype=np.intp), np.empty(horizon), len(z)
    for t in range(horizon):
        rows[t], largest[t], count = _search(posterior, z, var, rounding)
        evaluated += count
        posterior = posterior.anticipate(z[rows[t]])
    gains = 0.5 * np.log1p(posterior.predictive_var / prior.noise_var)
    total = np.cumsum(gains)
    # The sd is 1-Lipschitz in the distance sqrt(E[(f(x) - f(z))^2]), so at x it is at most that at z plus `between`.
    bound = 0.5 * np.log1p((np.sqrt(largest) + between) ** 2 / prior.noise_var)
    before = np.append(0.0, total[:-1])
    certificate = np.array([np.min(before + t * bound) for t in range(1, horizon + 1)])
    return Greedy(rows, gains, total, certificate, len(z), evaluated, between)


def _search(posterior: Posterior, z: Array, var: Array, rounding: float) -> tuple[int, float, int]:
    """The first argmax of the posterior's variance, that variance, and the number of variances computed.

    var (m,) holds upper bounds and is overwritten with what is computed. Before the first observation they are exact.
    """

    def threshold(best: float) -> float:
        return best - _TIE * abs(best) - rounding

    if posterior.n == 0:
        best = float(var.max())
        return int(np.argmax(var >= threshold(best))), best, 0
    stale = np.ones(len(z), dtype=bool)
    best = search_lazily(var, stale, lambda numbers: moments_in_chunks(posterior, z[numbers])[1], threshold)
    return int(np.argmax((var >= threshold(best)) & ~stale)), best, int(np.sum(~stale))


def grid(box: Sequence[tuple[float, float]], per_axis: int) -> Array:
    """The regular grid of a box, its faces included, (per_axis^d, d).

    It is a grid because the most informative points lie on the faces, which low-discrepancy sets avoid.
    """
    per_axis = checks.whole("per_axis", per_axis, 2)
    axes = [np.linspace(low, high, per_axis) for low, high in _box(box)]
    if per_axis ** len(axes) > _GRID:
        raise ValueError(f"per_axis is {per_axis}; {per_axis}^{len(axes)} points are more than {_GRID}, take fewer")
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def greedy_on_box(
    kernel: Kernel, noise_var: float, box: Sequence[tuple[float, float]], horizon: int, *, per_axis: int
) -> Greedy:
    """`greedy` on the regular grid of a box, with a certificate for the whole box; k = v kappa(r), RBF or Matern.

    `information` and `upper` are about the grid: gamma_T of the box is at least `information`, and may exceed `upper`.
    `certificate` holds on the box. No point of the box is farther from the grid than h, half the diagonal of a cell, so
    `between` is sqrt(2 (v - k(h))). The certificate is tight only if that is small next to the noise's sd.
    """
    if not isinstance(kernel, RBF | Matern):
        raise ValueError(
            f"kernel is {kernel!r}; between grid points only RBF and Matern are bounded. Use greedy(grid())"
        )
    points = grid(box, per_axis)
    half = np.array([[(high - low) / (per_axis - 1) / 2.0 for low, high in _box(box)]])
    apart = kernel.known_variance - float(kernel(half, np.zeros_like(half))[0, 0])
    return greedy(kernel, noise_var, points, horizon, between=math.sqrt(2.0 * max(apart, 0.0)))


def _box(box: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(checks.shape(box) or ()) != 2 or np.shape(box)[1] != 2:
        raise ValueError(f"box is {box!r}; give one pair (low, high) per coordinate")
    sides = [(checks.number("low", low), checks.number("high", high)) for low, high in box]
    for low, high in sides:
        if not low < high:
            raise ValueError(f"box has the side ({low}, {high}); give low < high")
    return sides


@dataclass(frozen=True)
class Growth:
    """gamma_T = O(rate(T)) on a compact subset of R^d: an upper bound up to a constant that is not known."""

    formula: str
    rate: Callable[[float], float]
    reference: str


def growth(kernel: Kernel, d: int) -> Growth:
    """How gamma_T grows with T for a kernel on a compact subset of R^d, noise_var fixed."""
    d = checks.whole("d", d, 1)
    if isinstance(kernel, RBF):
        return Growth(f"(log T)^{d + 1}", lambda t: math.log(t) ** (d + 1), "Srinivas et al. 2010, Theorem 5")
    if isinstance(kernel, Linear):
        return Growth(f"{d} log T", lambda t: d * math.log(t), "Srinivas et al. 2010, Theorem 5")
    if isinstance(kernel, Matern) and kernel.nu > 0.5:
        power = d / (2.0 * kernel.nu + d)
        return Growth(
            f"T^{power:.4g} (log T)^{1.0 - power:.4g}",
            lambda t: t**power * math.log(t) ** (1.0 - power),
            "Vakili, Khezeli, Picheny 2021, for nu > 1/2; Srinivas et al. 2010 had T^(d(d+1)/(2 nu + d(d+1))) log T, "
            "for nu > 1",
        )
    raise ValueError(f"kernel is {kernel!r}; growth rates are known here for RBF, Linear and Matern with nu > 1/2")
