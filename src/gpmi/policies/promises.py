"""How much gain the queries of a run promised, and how much they delivered: arithmetic on one-step-ahead predictions.

Before y_s was told, the model predicted f(x_s) ~ N(mu_s, sigma_s^2). All these predictions can be read off the
posterior (`model.promises`), as gamma_hat can. So nothing is stored that could become out of date: after a refit
the account is the same as if the new prior had been used from the start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpmi._support.types import Array, Mask

# Limits that keep E_s / V_s away from 0 / 0, in sd of m_s; our choices, not tuned.
HOPELESS = -5.0  # a query whose mu_s is 5 sd below b_s promises 5e-8 sd; its promise and its gain are not counted
CERTAIN = 5.0  # b_s counts as at least mu_s - 5 sd: V_s of a certain gain is 0, and its weight would be infinite

_ROOT_2PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class Promises:
    """The gains that a policy's queries promised (`promised`) and delivered (`kept`), as weighted sums without units.

    The gain of query s is G_s = (m_s - b_s)^+, where m_s is the posterior mean at x_s just after y_s and b_s is the
    largest such mean before. Given the past, m_s ~ N(mu_s, sigma_s^4 / (sigma_s^2 + noise_var)), so the mean E_s and
    the variance V_s of G_s are known. E_s is the promise.

        promised = sum_s a_s E_s^2 / V_s,    kept = sum_s a_s G_s E_s / V_s,
        a_s = (s / t) sigma_s^2 / (sigma_s^2 + noise_var)

    kept / promised is the weighted least-squares estimate of c in E[G_s] = c E_s, the share of its promises that the
    model keeps. The weight a_s of the s-th of t queries lets old queries fade, and gives little weight to repeats of a
    point that is known up to noise. If the prior is right, kept - promised has mean 0 and a variance of at most
    E[promised].
    """

    promised: float = 0.0
    kept: float = 0.0


NONE = Promises()


def account(mu: Array, var: Array, pivot: Array, surprise: Array, counted: Mask) -> Promises:
    """Return the promises of the queries in the mask `counted`, given the predictions of all; arrays (n,). O(n).

    f(x_s) was predicted as N(mu_s, var_s) and y_s as N(mu_s, pivot_s^2); `surprise` is (y_s - mu_s) / pivot_s.
    """
    from scipy.special import ndtr

    later = np.flatnonzero(counted[1:])  # the queries from s = 2 on
    if len(later) == 0:
        return NONE
    sd = var / pivot  # of m_s
    after = mu + sd * surprise  # m_s
    best = np.maximum.accumulate(after)[:-1]  # b_s for s = 2..n
    best, s = best[later], later + 1
    mu, sd, after = mu[s], sd[s], after[s]
    best = np.maximum(best, mu - CERTAIN * sd)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = (mu - best) / sd
        use = (z > HOPELESS) & np.isfinite(z)
    signal = var[s] / pivot[s] ** 2  # the share of f, not noise, in the variance of y_s: near 0 for a known point
    weight = np.cumsum(counted)[s] / np.count_nonzero(counted) * signal
    z, sd, gain, weight = z[use], sd[use], np.maximum(after - best, 0.0)[use], weight[use]
    pdf, cdf = np.exp(-0.5 * z * z) / _ROOT_2PI, ndtr(z)
    mean = pdf + z * cdf  # E_s / sd_s
    ratio = weight * mean / ((1.0 + z * z) * cdf + z * pdf - mean**2)  # a_s E_s sd_s / V_s
    return Promises(promised=float(ratio @ mean), kept=float(ratio @ (gain / sd)))
