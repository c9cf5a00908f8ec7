"""Expected improvement over the incumbent, and its logarithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.policies.expected_gain import log_h
from gpmi.policies.normal import LARGEST_Z, log_pdf, pdf
from gpmi.policies.policy import TINY, Guarantee, Policy, State

_NO_BOUND_FOR_EI = Guarantee(
    False,
    "no bound on the regret with noise that this project has checked; without noise EI finds the optimum of a "
    "function in the kernel's RKHS.",
    "kernel known, exact observations",
    "Bull 2011 for the exact case; Ament et al. 2023 for LogEI, which changes the numerics and proves nothing",
)


@dataclass(frozen=True)
class EI(Policy):
    """EI = E[max(f(x) - b, 0)] = sd h(z), z = (mu - b) / sd, h(z) = pdf(z) + z cdf(z).

    b is the largest observation (incumbent="observed") or the largest posterior mean at a queried point ("mean").
    """

    incumbent: Literal["observed", "mean"] = "observed"

    guarantee: ClassVar[Guarantee] = _NO_BOUND_FOR_EI
    grows_with_var: ClassVar[bool] = True
    additive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checks.one_of("incumbent", self.incumbent, ("observed", "mean"))

    def _standardised(self, mu: Array, var: Array, state: State) -> tuple[Array, Array]:
        """Return z and sd."""
        best = state.best_observed if self.incumbent == "observed" else state.best_mean
        sd = np.sqrt(np.maximum(var, TINY))
        return ((mu - best) / sd).clip(-LARGEST_Z, LARGEST_Z), sd

    def score(self, mu: Array, var: Array, state: State) -> Array:
        z, sd = self._standardised(mu, var, state)
        return sd * np.exp(log_h(z))

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        from scipy.special import ndtr

        z, sd = self._standardised(mu, var, state)
        return sd * np.exp(log_h(z)), ndtr(z), pdf(z) / (2.0 * sd)


@dataclass(frozen=True)
class LogEI(EI):
    """log EI: the same argmax as EI, with gradients that do not vanish where EI underflows."""

    logarithmic: ClassVar[bool] = True

    def score(self, mu: Array, var: Array, state: State) -> Array:
        z, sd = self._standardised(mu, var, state)
        return np.log(sd) + log_h(z)

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        from scipy.special import log_ndtr

        z, sd = self._standardised(mu, var, state)
        log = log_h(z)
        with np.errstate(over="ignore", invalid="ignore"):
            by_mu = np.exp(log_ndtr(z) - log) / sd
            by_var = np.exp(log_pdf(z) - log) / (2.0 * sd * sd)
        return np.log(sd) + log, np.nan_to_num(by_mu), np.nan_to_num(by_var)
