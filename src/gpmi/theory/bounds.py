"""Bounds on the regret, each with its status: those of the paper are withdrawn, GP-UCB's and Reinvest's stand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from gpmi._support import checks
from gpmi.policies import GPUCB, State, guard
from gpmi.theory.gamma import c1


@dataclass(frozen=True)
class Bound:
    """A bound on the cumulative regret R_T, or on its mean, and whether it still stands.

    Print the whole object, not `value` alone: the number means nothing without its status.
    """

    name: str
    value: float
    formula: str
    status: Literal["stands", "withdrawn"]
    why: str  # the reason for its status
    stands_when: str  # the setting in which it holds, or is said to hold
    assumptions: str
    reference: str
    up_to_constant: bool = False  # the value is a rate: its constant is not known
    of_the_mean: bool = False  # over draws of f; otherwise with probability 1 - delta

    def __str__(self) -> str:
        what = "E[R_T]" if self.of_the_mean else "R_T"
        about = f"{what} = O({self.value:.4g})" if self.up_to_constant else f"{what} <= {self.value:.4g}"
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

    For the generic scheme x_t = argmax mu_t + phi_t. `gamma` is gamma_T or an upper bound of it, phi_gap is the first
    sum, var_star is V = sum_t sigma_t^2(x*), and alpha = log(2 / delta). The paper has v = 1; other v follow from that
    by the change of units f -> f / sqrt(v). Withdrawn.
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

    The corollary says R_T = O(gamma_T); this is the inequality in its proof. It needs k(x, x) <= 1, because the policy
    (`gpmi.VarianceBonus`) depends on the units of f.
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

    Theorem 1 of Srinivas et al. Their C_1 is 8 / log(1 + 1 / noise_var), four times the one here, because
    r_t <= 2 sqrt(beta_t) sigma_t(x_t) is squared. The bound also holds with the run's own I_T in place of gamma_T.
    """
    horizon, size = checks.whole("horizon", horizon, 1), checks.whole("size", size, 1)
    state = State(
        t=horizon,
        gamma_hat=0.0,
        noise_var=noise_var,
        best_observed=math.nan,
        best_mean=math.nan,
        size=size,
        dim=0,
        horizon=None,
    )
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


def reinvest(gamma: float, horizon: int, *, noise_var: float, size: int, variance: float = 1.0) -> Bound:
    """2 sqrt(C_1 beta T gamma_T) + 0.02 sqrt(v), beta = 2 + 2 log(|D| / 2): aim="earn" on |D| = `size` points. Stands.

    It bounds the mean of R_T over draws of f, for every T. The last term is for the draws of max f that the guard may
    need. docs/proofs.md has the proof.
    """
    horizon, size = checks.whole("horizon", horizon, 1), checks.whole("size", size, 2)
    total = c1(noise_var, variance) * guard.beta(size) * horizon * _gamma(gamma)
    return Bound(
        "Reinvest with its guard",
        guard.KAPPA * math.sqrt(total) + 0.02 * math.sqrt(variance),
        "2 sqrt(C_1 beta T gamma_T) + 0.02 sqrt(v), beta = 2 + 2 log(|D| / 2)",
        "stands",
        "Reinvest chooses while the regret expected of its queries keeps within twice the bound of IRGP-UCB, which "
        "chooses otherwise.",
        "D is finite, values are told one by one, and rows may be asked again.",
        "f drawn from the GP prior with k(x, x) <= variance, normal noise, kernel and noise_var > 0 given",
        "this project, docs/proofs.md; Takeno, Inatsu, Karasuyama 2023 for IRGP-UCB",
        of_the_mean=True,
    )


def _alpha(delta: float) -> float:
    """log(2 / delta)."""
    remedy = "it is a probability of failure: give a number between 0 and 1"
    return math.log(2.0 / checks.probability("delta", delta, remedy))


def _gamma(gamma: float) -> float:
    if checks.number("gamma", gamma) < 0.0:
        raise ValueError(f"gamma is {gamma!r}; it is an information: give a number, 0 or larger")
    return float(gamma)
