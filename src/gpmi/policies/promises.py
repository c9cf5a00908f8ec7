"""What a run's queries promised and what they kept: arithmetic on the one-step-ahead predictions of the run.

Before y_s was told, the model said f(x_s) ~ N(mu_s, sigma_s^2). All these predictions can be read off the posterior,
like gamma_hat (`gpmi.model`). So nothing is stored that could go stale: after a refit the account is what it would
have been under the new prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi.types import Array, Mask

HOPELESS = -5.0  # a query whose mean is 5 sd below the best promises 5e-8 sd: neither side of it is counted
SURE = 5.0  # b_s is raised to mu_s - 5 sd_s at least: a gain that is certain must not outweigh all others


@dataclass(frozen=True)
class Promises:
    """The gains a policy's queries promised and those they delivered, both in units of one whole promise.

    The gain of query s is G_s = (m_s - b_s)^+: m_s is the posterior mean at x_s just after y_s, b_s the largest such
    mean before. Given the past, m_s ~ N(mu_s, sigma_s^4 / (sigma_s^2 + noise_var)), so that G_s has a known mean E_s
    and variance V_s. `made` is sum a_s E_s^2 / V_s, `kept` is sum a_s G_s E_s / V_s: the quotient is a least-squares
    estimate of the share of its promises that the model keeps. The s-th of t queries weighs
    a_s = (s / t) sigma_s^2 / (sigma_s^2 + noise_var): old failures fade in proportion to the run, and repeats of a
    point that is known up to noise hardly count. If the prior is right kept - made has mean 0 and variance <= E[made].
    """

    made: float = 0.0
    kept: float = 0.0


NONE = Promises()


def account(mu: Array, var: Array, pivot: Array, surprise: Array, counted: Mask) -> Promises:
    """The promises of queries predicted as N(mu_s, var_s), pivot_s^2 with noise, `surprise` (n,) pivots off. O(n)."""
    from scipy.special import ndtr

    if not counted[1:].any():
        return NONE
    sd = var / pivot  # of m_s
    after = mu + sd * surprise  # m_s
    best = np.maximum.accumulate(after)[:-1]  # b_s for s = 2..n
    signal = (var / pivot**2)[1:]  # what is f and not noise in a query: repeats of a known point count for nothing
    mu, sd, after = mu[1:], sd[1:], after[1:]
    best = np.maximum(best, mu - SURE * sd)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = (mu - best) / sd
        use = counted[1:] & (z > HOPELESS) & np.isfinite(z)
    weight = np.cumsum(counted)[1:] / np.count_nonzero(counted) * signal
    z, sd, gain, weight = z[use], sd[use], np.maximum(after - best, 0.0)[use], weight[use]
    pdf, cdf = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi), ndtr(z)
    mean = pdf + z * cdf  # E_s / sd_s
    ratio = weight * mean / ((1.0 + z * z) * cdf + z * pdf - mean**2)  # a_s E_s sd_s / V_s
    return Promises(made=float(ratio @ mean), kept=float(ratio @ (gain / sd)))
