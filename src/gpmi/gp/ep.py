"""Expectation propagation: a Gaussian posterior of f where observations are not Gaussian.

p(f | data) ~ N(f; m, K) prod_i p_i(data_i | f_i) is approximated by N(f; m, K) prod_i N(value_i; f_i, noise_i). Each
site, that is each pair (value_i, noise_i), is such that the i-th marginal has the mean and the variance that it has
with p_i in the place of its site (Minka 2001; Opper and Winther 2000). The sites are observations with noise of their
own, so the result is an ordinary `Posterior`, with its moments, gradients and draws.

Notation, with n observations: tau = 1 / noise, nu = value / noise; S = diag(tau); B = I + S^1/2 K S^1/2. A cavity is a
marginal without its own site.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import invert, one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.types import Array, Event, Mask

# Our choices, not tuned.
ROUNDS = 200  # at most. The data sets of the tests take 7 to 60
CLOSE = 1e-6  # it has converged when no mean moves by more than this in units of its prior sd, and no site by more
LEAST = 1e-6  # of 1 / k(x, x): the smallest precision of a site. Its value is then no better known than to 1,000 sd
_STEP, _SMALLEST_STEP = 1.0, 0.05  # the share of the way to new sites that is gone; halved when changes grow


class Tilted(NamedTuple):
    """Of p_i(data_i | f_i) N(f_i; mean_i, var_i): its integral, and the mean and the variance of f_i under it; (n,)."""

    log_z: Array
    mean: Array
    var: Array


Likelihood: TypeAlias = Callable[[Array, Array], Tilted]  # the means and variances of the cavities, (n,) each


@dataclass(frozen=True, eq=False)
class Sites:
    """Gaussian observations that stand for others: value_i = f(x_i) + N(0, noise_i)."""

    value: Array  # (n,)
    noise: Array  # (n,), positive
    mean: Array  # (n,), of f(x_i), given all
    var: Array  # (n,)
    log_evidence: float  # of the real observations, approximately
    by_k: Array  # (n, n), 2 d log_evidence / d K
    rounds: int
    converged: bool

    @property
    def events(self) -> tuple[Event, ...]:
        """An event if it has not converged."""
        if self.converged:
            return ()
        return (Event("not converged", f"expectation propagation still moved after {self.rounds} rounds"),)

    def posterior(self, kernel: Kernel, x: Array, mean: float = 0.0) -> Posterior:
        """The posterior of f given the sites at x (n, d). O(n^3)."""
        return Posterior.prior(kernel, 0.0, mean).condition(x, self.value, self.noise)


class _Joint(NamedTuple):
    """The joint law of f given the sites."""

    mean: Array  # (n,)
    var: Array  # (n,)
    weights: Array  # (n,), (K + S^-1)^-1 (value - m)
    precision: Array  # (n, n), (K + S^-1)^-1
    logdet: float  # of B
    fit: float  # (value - m)^T weights


def _given(k: Array, m: Array, tau: Array, nu: Array) -> _Joint:
    """f ~ N(m, K) given sites. O(n^3)."""
    root = np.sqrt(tau)
    b = k * root * root[:, None]
    b[np.diag_indices(len(b))] += 1.0
    solved = invert(b, np.empty((len(k), 0)))
    assert solved is not None  # every eigenvalue of B is at least 1
    lower = np.tril(solved.lower, -1)
    precision = (lower + lower.T + np.diag(solved.lower.diagonal())) * root * root[:, None]
    off = (nu - tau * m) / tau
    weights = precision @ off
    inner = k @ precision
    var = np.maximum(k.diagonal() - np.einsum("ij,ij->i", inner, k), 1e-14 * k.diagonal())
    return _Joint(m + k @ weights, var, weights, precision, solved.logdet, float(off @ weights))


@one_blas_thread
def expectation_propagation(
    k: Array,  # (n, n), the prior covariance of f
    m: Array,  # (n,), its prior mean
    likelihood: Likelihood,
    sites: tuple[Array, Array] | None = None,  # values and noise (n,) to start from, of an earlier run
) -> Sites:
    """The sites of f ~ N(m, K) and a likelihood; all are updated at once, round by round. O(n^3) a round.

    A site whose precision would be negative, as Student's t makes it for an outlier, gets the smallest precision and
    the value with which the mean of its marginal is right.
    """
    n, prior = len(m), k.diagonal()
    if n == 0:
        return Sites(m, m, m, m, 0.0, k, 0, True)
    least = LEAST / prior
    tau, nu = (least.copy(), least * m) if sites is None else (1.0 / sites[1], sites[0] / sites[1])
    step, before, converged = _STEP, np.inf, False
    joint = _given(k, m, tau, nu)
    rounds = 0
    while rounds < ROUNDS and not converged:
        rounds += 1
        free = 1.0 / np.maximum(1.0 / joint.var - tau, 1e-12 / prior)  # the variance of the cavity
        centre = free * (joint.mean / joint.var - nu)
        tilted = likelihood(centre, free)
        new_tau = np.maximum(1.0 / tilted.var - 1.0 / free, least)
        new_nu = tilted.mean * (1.0 / free + new_tau) - centre / free
        after_tau, after_nu = tau + step * (new_tau - tau), nu + step * (new_nu - nu)
        after = _given(k, m, after_tau, after_nu)
        moved = np.abs(after.mean - joint.mean) / np.sqrt(prior)
        change = float(np.maximum(moved, np.abs(after_tau - tau) * joint.var).max()) / step
        tau, nu, joint = after_tau, after_nu, after
        converged = change <= CLOSE
        step = max(_SMALLEST_STEP, 0.5 * step) if change > 0.95 * before else min(_STEP, 1.05 * step)
        before = change
    return _finished(k, tau, nu, joint, likelihood, rounds, converged)


def _finished(
    k: Array, tau: Array, nu: Array, joint: _Joint, likelihood: Likelihood, rounds: int, converged: bool
) -> Sites:
    """The sites with their evidence: log Z = sum log z_i - sum log N(value_i; cavity, its var + noise_i)
    + log N(value; m, K + S^-1), in which the terms with log noise_i cancel.

    At the fixed point its derivative by K is that of the last term, with the sites as they are (Seeger 2005).
    """
    free = 1.0 / np.maximum(1.0 / joint.var - tau, 1e-12 / k.diagonal())
    centre = free * (joint.mean / joint.var - nu)
    spread = 1.0 + tau * free
    apart = 0.5 * np.log(spread) + 0.5 * tau * (centre - nu / tau) ** 2 / spread
    evidence = float((likelihood(centre, free).log_z + apart).sum()) - 0.5 * joint.logdet - 0.5 * joint.fit
    by_k = np.multiply.outer(joint.weights, joint.weights) - joint.precision
    return Sites(nu / tau, 1.0 / tau, joint.mean, joint.var, evidence, by_k, rounds, converged)


def probit(success: Mask) -> Likelihood:
    """The likelihood p(success_i | f_i) = cdf(f_i), or cdf(-f_i) for a failure, of the standard normal; success (n,).

    With z = s mean / sqrt(1 + var), s = 1 or -1, and r = pdf(z) / cdf(z), the moments are mean + s var r / sqrt(1 +
    var) and var - var^2 r (z + r) / (1 + var).
    """
    from scipy.special import log_ndtr

    sign = np.where(success, 1.0, -1.0)

    def tilted(mean: Array, var: Array) -> Tilted:
        total = 1.0 + var
        z = sign * mean / np.sqrt(total)
        log_z = log_ndtr(z)
        ratio = np.exp(-0.5 * z * z - 0.5 * np.log(2.0 * np.pi) - log_z)
        return Tilted(log_z, mean + sign * var * ratio / np.sqrt(total), var - var**2 * ratio * (z + ratio) / total)

    return tilted
