"""Expected improvement over the incumbent, and its logarithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.policies.policy import TINY, Guarantee, Policy, State

LARGEST_Z = 1e150  # |z| is limited to this: the square of a z above 1e154 would overflow
_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))


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


def log_pdf(z: Array) -> Array:
    """Return the logarithm of the standard normal density."""
    result: Array = -0.5 * z * z - _LOG_ROOT_2PI
    return result


def pdf(z: Array) -> Array:
    """Return the standard normal density."""
    return np.exp(log_pdf(z))


def log_h(z: Array) -> Array:
    """Return log(pdf(z) + z cdf(z)), accurate to 1e-11 for every z; -inf where z^2 overflows.

    For z < -1 it is log pdf(z) + log(1 - a r(a)) with a = -z and Mills' ratio r = sqrt(pi/2) erfcx(a / sqrt 2); for
    a > 50, where the difference cancels, 1 - a r(a) = a^-2 (1 - 3 a^-2 + 15 a^-4 - 105 a^-6 + ...).
    """
    from scipy.special import erfcx, ndtr

    near = np.maximum(z, -1.0)
    log: Array = np.log(pdf(near) + near * ndtr(near))
    if np.all(z >= -1.0):
        return log
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        a = np.maximum(-z, 1.0)
        middle = np.minimum(a, 50.0)
        tail = np.log(1.0 - middle * np.sqrt(np.pi / 2.0) * erfcx(middle / np.sqrt(2.0)))
        b = 1.0 / (a * a)
        far = np.log(b) + np.log1p(-3.0 * b + 15.0 * b**2 - 105.0 * b**3)
        log = np.where(z < -1.0, log_pdf(z) + np.where(a > 50.0, far, tail), log)
    return log
