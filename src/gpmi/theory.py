"""What is known about information and regret: I_T, gamma_T, C_1, the paper's bounds and what is wrong with them.

Information is in nats, and needs noise: exact observations tell infinitely much. `greedy` brackets gamma_T. A bound on
the regret comes as a `Bound`, its value together with its status: those of the paper are withdrawn, GP-UCB's stands.
`observe_regret` runs the setting in which, by the erratum, the paper's proof works. docs/theory.md has the account.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpmi import checks
from gpmi.gp.kernels import RBF, Kernel, Linear, Matern
from gpmi.gp.linalg import Factor, one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import TIE, chunks, first_best
from gpmi.policies.phi import GPMI, GPUCB, Policy, State
from gpmi.types import Array

Rows = NDArray[np.intp]

GREEDY = 1.0 - 1.0 / math.e  # the share of gamma_T that greedy choices are sure to reach (Nemhauser et al. 1978)
_PORTION = 32  # variances refreshed first; each further portion of a search is twice the last
_GRID = 2**20  # points of the largest grid


# Information


def information(posterior: Posterior) -> Array:
    """I_t = 1/2 sum_{s<=t} log(1 + sigma_s^2(x_s) / noise_var) after each observation t = 1..n, (n,). O(n).

    Read off the pivots; the last one is `posterior.information`. Infinite for exact observations.
    """
    if posterior.noise_var == 0.0:
        return np.full(posterior.n, np.inf)
    total: Array = np.cumsum(0.5 * np.log1p(posterior.predictive_var / posterior.noise_var))
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
    """C_1 = 2 v / log(1 + v / noise_var), with which gamma_hat_T <= C_1 I_T <= C_1 gamma_T wherever k(x, x) <= v.

    s / log(1 + s) grows with s = sigma_t^2 / noise_var, and sigma_t^2 <= v (Lemma 5.4 of Srinivas et al. 2012; the
    paper's Eq. 3 is v = 1). As noise_var tends to 0 so does C_1, while gamma_T grows without bound.
    """
    noise_var, variance = checks.positive("noise_var", noise_var), checks.positive("variance", variance)
    return 2.0 * variance / math.log1p(variance / noise_var)


@dataclass(frozen=True, eq=False)
class Greedy:
    """A greedy choice of T points and the bracket around gamma_t that it proves, for every t = 1..T.

    information_t <= gamma_t <= certificate_t <= information_t / (1 - 1/e), where gamma_t is over the `size` candidates.
    With `between` > 0 the certificate holds for gamma_t on all points within that distance of a candidate, and is no
    longer bounded by `upper`, which is about the candidates alone.
    """

    rows: Rows  # (T,), which candidates, in order; repeats are allowed
    gains: Array  # (T,), 1/2 log(1 + sigma_t^2(x_t) / noise_var)
    information: Array  # (T,), I_t: a lower bound of gamma_t
    certificate: Array  # (T,), an upper bound of gamma_t
    size: int  # the number of candidates
    evaluated: int  # how many variances were computed; T * size would be all of them
    between: float  # sqrt(E[(f(x) - f(z))^2]) of a point x of the domain and its candidate z is at most this

    @property
    def upper(self) -> Array:
        """I_t / (1 - 1/e), the upper bound of gamma_t on the candidates that is known before anything is run. (T,)"""
        return self.information / GREEDY


@one_blas_thread
def greedy(kernel: Kernel, noise_var: float, candidates: Array, horizon: int, *, between: float = 0.0) -> Greedy:
    """x_t = argmax sigma_t^2(x) over candidates (m, d), T = `horizon` times: I_T >= (1 - 1/e) gamma_T.

    The gain 1/2 log(1 + var / noise_var) grows with var, also where k(x, x) is not constant, and I is monotone and
    submodular, repeats included. Any T points bring at most T times the largest gain left after t greedy ones, so

        gamma_T <= min_t I_t + T g_{t+1},

    the certificate, which is never above I_T / (1 - 1/e): by induction from the same inequality. A tie goes to the
    lowest row.

    Variances only fall, so an old one is an upper bound: a candidate is evaluated again only if its old variance
    reaches the largest fresh one (Minoux 1978; Desautels et al. 2012). O(t^2) for each variance evaluated and O(m)
    a search; memory O(m), where tracking all of them takes O(T m).
    """
    prior = Posterior.prior(kernel, checks.positive("noise_var", noise_var))
    z, horizon = prior._points("candidates", candidates), checks.whole("horizon", horizon, 1)
    between = checks.number("between", between)
    if len(z) == 0 or between < 0.0:
        wrong = (
            "candidates has no rows; give at least one" if len(z) == 0 else f"between is {between}; it is a distance"
        )
        raise ValueError(wrong)
    posterior, var = prior, kernel.diagonal(z)
    rounding = 1e-14 * float(var.max())
    rows, largest, evaluated = np.empty(horizon, dtype=np.intp), np.empty(horizon), len(z)
    for t in range(horizon):
        rows[t], largest[t], count = _search(posterior, z, var, rounding)
        evaluated += count
        posterior = posterior.anticipate(z[rows[t]])
    gains = 0.5 * np.log1p(posterior.predictive_var / prior.noise_var)
    total = np.cumsum(gains)
    # The sd is 1-Lipschitz in the distance sqrt(E[(f(x) - f(z))^2]), so between candidates it exceeds theirs by little.
    bound = 0.5 * np.log1p((np.sqrt(largest) + between) ** 2 / prior.noise_var)
    before = np.append(0.0, total[:-1])
    certificate = np.array([np.min(before + t * bound) for t in range(1, horizon + 1)])
    return Greedy(rows, gains, total, certificate, len(z), evaluated, between)


def _search(posterior: Posterior, z: Array, var: Array, rounding: float) -> tuple[int, float, int]:
    """The first argmax of the posterior's variance, that variance, and how many were computed; `var` is refreshed.

    var (m,) holds upper bounds; those of the prior are exact.
    """
    best, portion, count = -np.inf, _PORTION, 0
    fresh = np.full(len(z), posterior.n == 0)
    if posterior.n == 0:
        best = float(var.max())
    while True:
        reach = best - TIE * abs(best) - rounding if np.isfinite(best) else best
        stale = np.flatnonzero((var >= reach) & ~fresh)
        if len(stale) == 0:
            return int(np.argmax((var >= reach) & fresh)), best, count
        if len(stale) > portion:
            stale = stale[np.argpartition(-var[stale], portion)[:portion]]
        for part in chunks(len(stale), posterior.n):
            var[stale[part]] = posterior(z[stale[part]])[1]
        fresh[stale] = True
        best, count, portion = max(best, float(var[stale].max())), count + len(stale), 2 * portion


def grid(box: Sequence[tuple[float, float]], per_axis: int) -> Array:
    """The regular grid of a box, its faces included, (per_axis^d, d).

    Not a low-discrepancy set: the most telling points lie on the faces, which such sets avoid.
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

    `information` and `upper` speak of the grid: gamma_T of the box is at least `information`, and may exceed `upper`.
    `certificate` holds on the box. No point of it is farther from the grid than half the diagonal of a cell, h, so
    `between` is sqrt(2 (v - k(h))): the certificate is tight only where that is small next to the noise's sd.
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
    """gamma_T = O(rate(T)) on a compact subset of R^d: an upper bound up to a constant that nobody states."""

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


# Bounds on the regret


@dataclass(frozen=True)
class Bound:
    """A bound on the cumulative regret R_T that somebody published, and whether it may be believed.

    Print it, not `value` alone: the status belongs to the number.
    """

    name: str
    value: float
    formula: str
    status: Literal["stands", "withdrawn"]
    why: str  # it has its status
    stands_when: str  # the setting in which it holds, or is said to hold
    assumptions: str
    reference: str
    up_to_constant: bool = False  # the value is a rate: its constant is not known

    def __str__(self) -> str:
        about = f"R_T = O({self.value:.4g})" if self.up_to_constant else f"R_T <= {self.value:.4g}"
        verdict = "stands" if self.status == "stands" else "WITHDRAWN by the erratum, no bound; it was"
        return f"{self.name}, {verdict}: {about}, {self.formula}. {self.why} Stands when: {self.stands_when}"


_PAPER = "Contal, Perchet, Vayatis 2014, and its erratum"
_WHY = (
    "M_T of Lemma 1 depends on f(x*) and f(x_t), which the observations y_1, ..., y_T do not determine, so it is no "
    "martingale for them; Lemma 2 also needs the posterior covariance of f(x*) and f(x_t) not to be negative, which it "
    "can be; and GP-MI can repeat a wrong point for ever."
)
_LOWER = (
    " Scarlett 2018 proves E[R_T] of at least order sqrt(T) for every algorithm with noisy observations in one "
    "dimension, for RBF and for Matern with nu > 2, so a power of log T cannot hold."
)
_OBSERVED = (
    "by the erratum, if the algorithm observes r_t = f(x*) - f(x_t) itself. That repairs Lemma 1 for an x* fixed "
    "before f is drawn and known to the model. It repairs neither Lemma 2 nor Eq. 3, and nothing where x* is the "
    "maximiser of f and its place is unknown (docs/theory.md; `observe_regret` runs both)."
)
_NORMAL = "f drawn from the GP prior with k(x, x) <= variance, kernel and noise_var known, probability 1 - delta"


def theorem_1(
    gamma: float, *, noise_var: float, delta: float, phi_gap: float, var_star: float, variance: float = 1.0
) -> Bound:
    """sum_t (phi_t(x_t) - phi_t(x*)) + 4 sqrt(alpha (C_1 gamma_T + v)) + sqrt(alpha)/2 V / sqrt(C_1 gamma_T + v).

    The generic scheme, x_t = argmax mu_t + phi_t. `gamma` is gamma_T or an upper bound of it, phi_gap the first sum,
    var_star is V = sum_t sigma_t^2(x*), alpha = log(2 / delta). The paper has v = 1; other v follow from its own by
    the change of units f -> f / sqrt(v). Withdrawn.
    """
    alpha, total = _alpha(delta), c1(noise_var, variance) * _gamma(gamma) + variance
    first = checks.number("phi_gap", phi_gap) + 4.0 * math.sqrt(alpha * total)
    value = first + 0.5 * math.sqrt(alpha) * checks.variance("var_star", var_star) / math.sqrt(total)
    return Bound(
        "Theorem 1",
        value,
        "sum_t (phi_t(x_t) - phi_t(x*)) + 4 sqrt(alpha (C_1 gamma_T + v)) "
        "+ sqrt(alpha)/2 sum_t sigma_t^2(x*) / sqrt(C_1 gamma_T + v)",
        "withdrawn",
        _WHY,
        _OBSERVED,
        f"x_t = argmax mu_t + phi_t; {_NORMAL}",
        _PAPER,
    )


def theorem_2(gamma: float, *, noise_var: float, delta: float, variance: float = 1.0) -> Bound:
    """5 sqrt(alpha C_1 gamma_T) + 4 sqrt(alpha v), alpha = log(2 / delta): GP-MI with the same delta. Withdrawn.

    The paper has v = 1; other v follow by the change of units f -> f / sqrt(v), under which GP-MI does not change.
    """
    alpha = _alpha(delta)
    value = 5.0 * math.sqrt(alpha * c1(noise_var, variance) * _gamma(gamma)) + 4.0 * math.sqrt(alpha * variance)
    formula = "5 sqrt(alpha C_1 gamma_T) + 4 sqrt(alpha v)"
    return Bound("Theorem 2", value, formula, "withdrawn", _WHY, _OBSERVED, f"GP-MI; {_NORMAL}", _PAPER)


def corollary_1(gamma: float, *, noise_var: float, delta: float) -> Bound:
    """sqrt(alpha)/2 C_1 gamma_T + 4 sqrt(alpha (C_1 gamma_T + 1)): phi_t = sqrt(alpha)/2 sigma_t^2. Withdrawn.

    The corollary says R_T = O(gamma_T); this is the inequality its proof prints. k(x, x) <= 1: the policy
    (`gpmi.VarianceBonus`) depends on the units of f, so there is no other v.
    """
    alpha, total = _alpha(delta), c1(noise_var) * _gamma(gamma)
    value = 0.5 * math.sqrt(alpha) * total + 4.0 * math.sqrt(alpha * (total + 1.0))
    return Bound(
        "Corollary 1",
        value,
        "sqrt(alpha)/2 C_1 gamma_T + 4 sqrt(alpha (C_1 gamma_T + 1)) = O(gamma_T)",
        "withdrawn",
        "It follows from Theorem 1. " + _WHY + _LOWER,
        _OBSERVED,
        f"phi_t = sqrt(alpha)/2 sigma_t^2; {_NORMAL}, variance = 1",
        _PAPER,
    )


def corollary_2(horizon: int, d: int) -> Bound:
    """(log T)^((d+1)/2) without its constant: Theorem 2 with gamma_T = O((log T)^(d+1)), GP-MI and RBF. Withdrawn."""
    horizon, d = checks.whole("horizon", horizon, 2), checks.whole("d", d, 1)
    return Bound(
        "Corollary 2",
        math.log(horizon) ** ((d + 1) / 2.0),
        "(log T)^((d+1)/2)",
        "withdrawn",
        "It follows from Theorem 2. " + _WHY + _LOWER,
        _OBSERVED,
        f"GP-MI, RBF kernel, compact set in R^d; {_NORMAL}",
        _PAPER,
        up_to_constant=True,
    )


def gp_ucb(gamma: float, horizon: int, *, noise_var: float, delta: float, size: int, variance: float = 1.0) -> Bound:
    """sqrt(4 C_1 T beta_T gamma_T), beta_T = 2 log(|D| T^2 pi^2 / (6 delta)): GP-UCB on |D| = `size` points. Stands.

    Theorem 1 of Srinivas et al., whose own C_1 is 8 / log(1 + 1 / noise_var): four times the paper's, because
    r_t <= 2 sqrt(beta_t) sigma_t(x_t) is squared. It holds with the run's own I_T in the place of gamma_T too.
    """
    horizon, size = checks.whole("horizon", horizon, 1), checks.whole("size", size, 1)
    state = State(horizon, 0.0, noise_var, math.nan, math.nan, size, 0, None)
    beta = GPUCB(delta=delta).beta(state)
    return Bound(
        "GP-UCB",
        math.sqrt(4.0 * c1(noise_var, variance) * horizon * beta * _gamma(gamma)),
        "sqrt(4 C_1 T beta_T gamma_T), beta_T = 2 log(|D| T^2 pi^2 / (6 delta))",
        "stands",
        "A union bound over D and all t keeps f within sqrt(beta_t) sigma_t of mu_t, for the maximiser too.",
        "D is finite and phi_t = sqrt(beta_t) sigma_t with this beta_t, not a fifth of it. On [0, r]^d with "
        "P(sup |df/dx_j| > L) <= a exp(-(L/b)^2) the bound is sqrt(4 C_1 T beta_T gamma_T) + 2 (k <= 1) with beta_T = "
        "2 log(2 pi^2 T^2 / (3 delta)) + 2 d log(d T^2 b r sqrt(log(4 d a / delta))).",
        f"phi_t = sqrt(beta_t) sigma_t; {_NORMAL}",
        "Srinivas, Krause, Kakade, Seeger 2010, Theorems 1 and 2",
    )


def _alpha(delta: float) -> float:
    """log(2 / delta)."""
    return math.log(2.0 / GPMI(delta=delta).delta)  # the policy refuses a wrong delta


def _gamma(gamma: float) -> float:
    if checks.number("gamma", gamma) < 0.0:
        raise ValueError(f"gamma is {gamma!r}; it is an information: give a number, 0 or larger")
    return float(gamma)


# The setting of the erratum


@dataclass(frozen=True, eq=False)
class RegretRun:
    """T queries of a learner that observes its regret; every array is (T,), moments are those before query t."""

    rows: Rows  # x_t
    regret: Array  # r_t = f(x*) - f(x_t)
    expected: Array  # mu_t(x*) - mu_t(x_t), what Lemma 1 takes for E[r_t | r_1, ..., r_{t-1}]
    spread: Array  # ell_t^2 = var[f(x*) - f(x_t)], with the posterior covariance, not the prior k of the paper's Eq. 5
    var: Array  # sigma_t^2(x_t)
    var_star: Array  # sigma_t^2(x*)
    phi_gap: Array  # phi_t(x_t) - phi_t(x*)
    repaired: int  # observations, initial ones included, that needed jitter to keep the covariance positive definite

    @property
    def martingale(self) -> Array:
        """M_t = sum_{s<=t} (r_s - (mu_s(x*) - mu_s(x_s))). (T,)"""
        total: Array = np.cumsum(self.regret - self.expected)
        return total

    @property
    def gamma_hat(self) -> Array:
        """sum_{s<=t} sigma_s^2(x_s) given regrets. (T,)"""
        total: Array = np.cumsum(self.var)
        return total


@one_blas_thread
def observe_regret(
    kernel: Kernel,
    candidates: Array,
    f: Array,
    horizon: int,
    *,
    policy: Policy | None = None,
    knows: Literal["place", "value"] = "place",
    star: int | None = None,
    initial: Sequence[int] = (),
) -> RegretRun:
    """x_t = argmax mu_t + phi_t on candidates (m, d), where r_t = f(x*) - f(x_t) is observed exactly. O(T^2 m).

    The erratum's setting has mu_t(x) = E[f(x) | r_1, ..., r_{t-1}] and sigma_t^2(x) = Var[f(x) | r_1, ..., r_{t-1}].
    There is no noise in it: with noisy regrets M_T would again not be determined by what is observed. A regret speaks
    of two points, so what the moments are depends on what the learner knows of x*:

    - knows="place", the erratum to the letter: x* is fixed, and the model knows where it is, for it needs
      cov[r_t, f(x)] = k(x*, x) - k(x_t, x). For an x* chosen before f is drawn M_T is a martingale with
      Gaussian increments. For the maximiser of f it is not, as its mean is not 0; and a learner that
      knows the place could query it at once.
    - knows="value": the learner knows f(x*) and not x*, so that r_t tells f(x_t) exactly. The place is not given away,
      and Lemma 1 does not hold: mu_t(x*) is not the mean of f(x*) given that x* is the maximiser.

    f (m,) holds the true values. star is the row of x*, the first maximiser unless given. The rows in `initial` are
    observed first; they count neither as queries nor in gamma_hat. policy is `GPMI()` unless given; its phi may depend
    on var, t, gamma_hat and |D|. A tie goes to the lowest row. Nothing is random.
    """
    prior, horizon = Posterior.prior(kernel, 0.0), checks.whole("horizon", horizon, 1)
    z, values, policy = prior._points("candidates", candidates), np.asarray(f, dtype=float), policy or GPMI()
    checks.one_of("knows", knows, ("place", "value"))
    if len(z) == 0 or values.shape != (len(z),) or not np.all(np.isfinite(values)):
        raise ValueError(f"f has shape {values.shape}; give a finite value for each of the {len(z)} candidates")
    if type(policy).phi is Policy.phi:
        raise ValueError(f"policy is {policy!r}; the scheme is mu + phi, so give a policy that defines phi")
    star = int(np.argmax(values)) if star is None else checks.whole("star", star, 0)
    queries = [checks.whole("initial", row, 0) for row in initial]
    if max([star, *queries]) >= len(z):
        raise ValueError(f"star is {star} and initial is {queries}; rows of candidates go up to {len(z) - 1}")
    model = _Exact(kernel, z, star if knows == "place" else None)
    for row in queries:
        model.observe(row, values)
    run = {name: np.empty(horizon) for name in ("regret", "expected", "spread", "var", "var_star", "phi_gap")}
    rows, total = np.empty(horizon, dtype=np.intp), 0.0
    for t in range(horizon):
        mu, var = model.mu, model.var
        phi = policy.phi(var, State(t + 1, total, 0.0, math.nan, math.nan, len(z), 0, horizon))
        score = mu + phi
        if not np.all(np.isfinite(score)):
            raise ValueError(f"policy is {policy!r}; its phi is not finite. It may depend on var, t, gamma_hat and |D|")
        rows[t] = row = first_best(score)
        total += float(var[row])
        covariance = model.covariance(star, row)
        seen = {
            "regret": values[star] - values[row],
            "expected": mu[star] - mu[row],
            "spread": max(var[star] + var[row] - 2.0 * covariance, 0.0),
            "var": var[row],
            "var_star": var[star],
            "phi_gap": phi[row] - phi[star],
        }
        for name, value in seen.items():
            run[name][t] = value
        model.observe(row, values)
    return RegretRun(rows=rows, **run, repaired=model.repaired)


class _Exact:
    """mu and var of f at z (m, d) given exact observations of f(x_s), or of f(x*) - f(x_s) where star is a row.

    V (n, m) = L^-1 cov[observations, f(z)] as in `tracking`. A repeat says nothing new and is left out, exactly.
    """

    def __init__(self, kernel: Kernel, z: Array, star: int | None) -> None:
        self.kernel, self.z, self.star = kernel, z, star
        self.mu, self.var, self.repaired = np.zeros(len(z)), kernel.diagonal(z), 0
        self._known: list[int] = [] if star is None else [star]  # f(x*) - f(x*) is 0 anyway
        self._observed: list[int] = []
        self._factor, self._whitened, self._v = Factor.empty(), np.empty(0), np.empty((0, len(z)))

    def _covariance_with_f(self, row: int) -> Array:
        """cov[what is observed at a row, f(z)]. (m,)"""
        own: Array = self.kernel(self.z[row : row + 1], self.z)[0]
        if self.star is not None:
            own = self.kernel(self.z[self.star : self.star + 1], self.z)[0] - own
        return own

    def _apply(self, values: Array, rows: list[int]) -> Array:
        """What is observed at rows, if f is `values`. It is linear, so it also takes cov[., f] to cov[., observed]."""
        own: Array = values[rows]
        return own if self.star is None else values[self.star] - own

    def observe(self, row: int, values: Array) -> None:
        """Condition on what is observed at a row when f is `values`. O(n m)."""
        if row in self._known:
            return
        across = self._covariance_with_f(row)
        column, own = self._apply(across, self._observed), float(self._apply(across, [row])[0])
        self._factor, jitter = self._factor.append(column, own)
        self.repaired += jitter > 0.0
        lower = self._factor.row(self._factor.n - 1)
        v = (across - lower[:-1] @ self._v) / lower[-1]
        white = (float(self._apply(values, [row])[0]) - float(lower[:-1] @ self._whitened)) / lower[-1]
        self.mu, self.var = self.mu + white * v, np.maximum(self.var - v * v, 0.0)
        self._v, self._whitened = np.vstack([self._v, v]), np.append(self._whitened, white)
        self._known.append(row)
        self._observed.append(row)

    def covariance(self, i: int, j: int) -> float:
        """cov[f(z_i), f(z_j)] given what was observed. O(n)."""
        prior = float(self.kernel(self.z[i : i + 1], self.z[j : j + 1])[0, 0])
        return prior - float(self._v[:, i] @ self._v[:, j])
