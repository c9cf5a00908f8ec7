"""What a run's queries promised and what they kept, read off the posterior like gamma_hat.

The pivots of the Cholesky factor in query order and the whitened values hold every one-step-ahead prediction of the
run: f(x_s) ~ N(mu_s, sigma_s^2) before y_s was told. Nothing is stored besides the posterior, so nothing goes stale:
after a refit the account is what it would have been under the new prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi.linalg import Array, Mask
from gpmi.posterior import Posterior

_HOPELESS = -5.0  # an improvement of more than 5 sd weighs 1e-7 of a promise: neither side of it is counted
_SURE = 5.0  # b_s is raised to mu_s - 5 sd_s: a gain that is certain must not outweigh all others


@dataclass(frozen=True)
class Promises:
    """The gains a policy's queries promised and those they delivered, both in units of one whole promise.

    The gain of query s is G_s = (m_s - b_s)^+: m_s is the posterior mean at x_s just after y_s, b_s the largest such
    mean before. Given the past, m_s ~ N(mu_s, sigma_s^4 / (sigma_s^2 + noise_var)), so that G_s has a known mean E_s
    and variance V_s. `made` is sum E_s^2 / V_s, `kept` is sum G_s E_s / V_s. If the prior is right kept - made is a
    martingale with made as its predictable variance, and kept / made tends to 1 when made grows; the quotient is the
    least-squares estimate of the share of its promises that the model keeps.
    """

    made: float = 0.0
    kept: float = 0.0


NONE = Promises()


def promises(posterior: Posterior, counted: Mask, sign: float = 1.0) -> Promises:
    """The promises of the observations in the mask `counted` (n,); sign = -1 when f is minimised. O(n)."""
    pivot, surprise, var = posterior.factor.diagonal, sign * posterior.whitened, posterior.predictive_var
    mu = sign * posterior.y - pivot * surprise
    return account(mu, var / pivot, mu + var / pivot * surprise, counted)


def account(mu: Array, sd: Array, after: Array, counted: Mask) -> Promises:
    """The promises of queries whose m_s was predicted as N(mu_s, sd_s^2) and became `after`, all (n,). O(n)."""
    from scipy.special import ndtr

    if not counted[1:].any():
        return NONE
    best = np.maximum.accumulate(after)[:-1]  # b_s for s = 2..n
    mu, sd, after = mu[1:], sd[1:], after[1:]
    best = np.maximum(best, mu - _SURE * sd)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = (mu - best) / sd
        use = counted[1:] & (z > _HOPELESS) & np.isfinite(z)
    z, sd, gain = z[use], sd[use], np.maximum(after - best, 0.0)[use]
    pdf, cdf = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi), ndtr(z)
    mean = pdf + z * cdf  # E_s / sd_s
    ratio = mean / ((1.0 + z * z) * cdf + z * pdf - mean**2)  # E_s sd_s / V_s
    return Promises(made=float(ratio @ mean), kept=float(ratio @ (gain / sd)))
