"""Policies of the form x_t = argmax mu_t(x) + phi_t(x) with a phi that depends on var alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.policies.policy import OF_FAILURE, TINY, Guarantee, Policy, State


@dataclass(frozen=True)
class GPMI(Policy):
    """phi_t = sqrt(alpha) (sqrt(var + gamma_hat) - sqrt(gamma_hat)), alpha = log(2 / delta): the paper's Algorithm 1.

    alpha, if given, replaces log(2 / delta). gamma_hat is the sum of sigma_s^2(x_s) over the policy's earlier queries,
    each variance taken before its point was observed. The more was learned, the smaller is phi.

    GP-MI has no regret guarantee. The erratum withdraws Lemma 1 and with it every bound of the paper: phi at an
    unqueried point never grows, so GP-MI can settle on a wrong point for ever.
    """

    delta: float = 1e-6
    alpha: float | None = None

    guarantee: ClassVar[Guarantee] = Guarantee(
        False,
        "the paper's bounds R_T <= 5 sqrt(alpha C_1 gamma_T) + 4 sqrt(alpha) are withdrawn: M_T of Lemma 1 is not a "
        "martingale for the observations, and the policy can repeat a wrong point for ever.",
        "the erratum: they would hold if the algorithm observed the instantaneous regret; how far, docs/theory.md",
        "Contal, Perchet, Vayatis 2014, erratum; Scarlett 2018 for a lower bound that contradicts the claimed rate",
    )
    grows_with_var: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.probability("delta", self.delta, OF_FAILURE)
        if self.alpha is not None:
            checks.positive("alpha", self.alpha)

    @property
    def _alpha(self) -> float:
        return float(np.log(2.0 / self.delta)) if self.alpha is None else float(self.alpha)

    def phi(self, var: Array, state: State) -> Array:
        g = state.gamma_hat
        # The same number as in the paper, without the cancellation for var << gamma_hat.
        phi: Array = np.sqrt(self._alpha) * var / np.maximum(np.sqrt(var + g) + np.sqrt(g), TINY)
        return phi

    def slope(self, var: Array, state: State) -> Array:
        slope: Array = 0.5 * np.sqrt(self._alpha / np.maximum(var + state.gamma_hat, TINY))
        return slope


@dataclass(frozen=True)
class GPUCB(Policy):
    """phi_t = sqrt(scale beta_t var); Srinivas et al. prove a bound for scale = 1, and used 1/5 in their experiments.

    On a finite set beta_t = 2 log(|D| t^2 pi^2 / (6 delta)). With d continuous coordinates
    beta_t = 2 log(|D| 2 pi^2 t^2 / (3 delta)) + 2 d log(d t^2 sqrt(log(4 d / delta))), their bound for compact sets in
    units in which the constants a, b and r are 1; |D| counts the settings of the discrete parameters.
    """

    delta: float = 1e-6
    scale: float = 1.0

    guarantee: ClassVar[Guarantee] = Guarantee(
        True,
        "R_T <= sqrt(C_1 T beta_T gamma_T) with probability 1 - delta, C_1 = 8 / log(1 + 1 / noise_var); + 2 on a box.",
        "f drawn from the GP prior, kernel and noise_var known, k <= 1, scale = 1; on a box also smooth samples and a, "
        "b, r as they are, not 1; nothing for mixed spaces",
        "Srinivas, Krause, Kakade, Seeger 2012, Theorems 1 and 2",
    )
    grows_with_var: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.probability("delta", self.delta, OF_FAILURE)
        checks.positive("scale", self.scale)

    def beta(self, state: State) -> float:
        """Return beta_t, before `scale`."""
        t, d = state.t, state.dim
        if d == 0:
            return 2.0 * (math.log(state.size) + math.log(t**2 * math.pi**2 / (6.0 * self.delta)))
        cover = d * t**2 * math.sqrt(math.log(4.0 * d / self.delta))
        covered = math.log(state.size) + d * math.log(cover)  # math.log: |D| may be too large for a float
        return 2.0 * (covered + math.log(2.0 * math.pi**2 * t**2 / (3.0 * self.delta)))

    def phi(self, var: Array, state: State) -> Array:
        return np.sqrt(self.scale * self.beta(state) * var)

    def slope(self, var: Array, state: State) -> Array:
        return np.sqrt(self.scale * self.beta(state) / np.maximum(var, TINY)) / 2.0


@dataclass(frozen=True)
class VarianceBonus(Policy):
    """phi_t = sqrt(alpha) / 2 * var, alpha = log(2 / delta): the variant of Corollary 1.

    Unlike the other policies it depends on the units of y: var is in units of y^2, and mu in units of y.
    """

    delta: float = 1e-6

    guarantee: ClassVar[Guarantee] = Guarantee(
        False,
        "R_T = O(gamma_T) of Corollary 1 is withdrawn with Theorem 1, from which it follows.",
        "the erratum: it would hold if the algorithm observed the instantaneous regret; how far, docs/theory.md",
        "Contal, Perchet, Vayatis 2014, erratum",
    )
    grows_with_var: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.probability("delta", self.delta, OF_FAILURE)

    def phi(self, var: Array, state: State) -> Array:
        result: Array = 0.5 * np.sqrt(np.log(2.0 / self.delta)) * var
        return result

    def slope(self, var: Array, state: State) -> Array:
        return np.full_like(var, 0.5 * np.sqrt(np.log(2.0 / self.delta)))


@dataclass(frozen=True)
class Mean(Policy):
    """score = mu: pure exploitation, the score of `recommend`."""

    guarantee: ClassVar[Guarantee] = Guarantee(False, "it never explores.", "none", "none")
    grows_with_var: ClassVar[bool] = True

    def phi(self, var: Array, state: State) -> Array:
        return np.zeros_like(var)

    def score(self, mu: Array, var: Array, state: State) -> Array:
        return mu

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        return mu, np.ones_like(mu), np.zeros_like(var)
