"""Expectation propagation: a Gaussian posterior of f given observations that are not Gaussian.

p(f | data) ~ N(f; m, K) prod_i p_i(data_i | f_i) is approximated by N(f; m, K) prod_i N(value_i; f_i, noise_i). A pair
(value_i, noise_i) is a site. It is chosen so that the i-th marginal keeps its mean and variance if p_i replaces the
site (Minka 2001; Opper and Winther 2000). Sites are observations with their own noise, so the result is an ordinary
`Posterior`, with its moments, gradients and draws.

Notation, with n observations: tau = 1 / noise, nu = value / noise; S = diag(tau); K = R R^T; B = I + R^T S R. A cavity
is a marginal without its own site.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from gpmi._support.types import Array, Event, Mask
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import invert, one_blas_thread, semidefinite_root
from gpmi.gp.posterior import Posterior

# Our choices, not tuned.
ROUNDS = 200  # at most; the data sets of the tests take 7 to 60
CLOSE = 1e-6  # converged: no mean moves by more than this in units of its prior sd, and no site by more
LEAST = 1e-6  # of 1 / k(x, x): the smallest precision of a site; its value then has an error of 1,000 prior sd
NO_VARIANCE = 1e-12  # of the largest k(x, x): stands for a variance of 0, as a linear kernel has at the origin
# The step towards new sites. It is halved unless changes shrink by a twentieth of it. Small steps make small changes,
# and a step that was once too long must be able to grow again.
_STEP, _SMALLEST_STEP = 1.0, 0.05


class Tilted(NamedTuple):
    """Of p_i(data_i | f_i) N(f_i; mean_i, var_i): its integral, and the mean and variance of f_i under it; (n,)."""

    log_z: Array
    mean: Array
    var: Array


Likelihood: TypeAlias = Callable[[Array, Array], Tilted]  # the means and variances of the cavities, (n,) each


@dataclass(frozen=True, eq=False)
class Sites:
    """Gaussian observations in place of the real ones: value_i = f(x_i) + N(0, noise_i)."""

    value: Array  # (n,)
    noise: Array  # (n,), positive
    mean: Array  # (n,), of f(x_i), given all sites
    var: Array  # (n,)
    log_evidence: float  # of the real observations, approximately
    by_k: Array  # (n, n), 2 d log_evidence / d K
    rounds: int
    converged: bool

    @property
    def events(self) -> tuple[Event, ...]:
        """An event if the iteration has not converged."""
        if self.converged:
            return ()
        return (Event("not converged", f"expectation propagation had not converged after {self.rounds} rounds"),)

    def posterior(self, kernel: Kernel, x: Array, mean: float = 0.0) -> Posterior:
        """Return the posterior of f given the sites at x (n, d). O(n^3)."""
        return Posterior.prior(kernel, 0.0, mean).condition(x, self.value, self.noise)


class _Joint(NamedTuple):
    """The joint distribution of f given the sites; K = R R^T."""

    mean: Array  # (n,)
    var: Array  # (n,)
    inner: Array  # (n, r), R B^-1: the covariance is its product with R^T
    logdet: float  # of B


def _joint_given_sites(root: Array, m: Array, tau: Array, nu: Array) -> _Joint | None:
    """Condition f ~ N(m, K) on sites, whose precision may be negative; None if the result is not a distribution.

    O(n r^2).
    """
    b = root.T @ (tau[:, None] * root)
    b[np.diag_indices(len(b))] += 1.0
    solved = invert(b, (root.T @ (nu - tau * m))[:, None])
    if solved is None:
        return None
    lower = np.tril(solved.lower, -1)
    inner = root @ (lower + lower.T + np.diag(solved.lower.diagonal()))
    var = np.maximum(np.einsum("ij,ij->i", inner, root), 1e-14 * np.einsum("ij,ij->i", root, root))
    return _Joint(m + root @ solved.solution[:, 0], var, inner, solved.logdet)


@one_blas_thread
def expectation_propagation(
    k: Array,  # (n, n), the prior covariance of f
    m: Array,  # (n,), its prior mean
    likelihood: Likelihood,
    sites: tuple[Array, Array] | None = None,  # values and noise (n,) of an earlier run, to start from
) -> Sites:
    """Find the sites of f ~ N(m, K) and a likelihood; all are updated at once, round by round. O(n^3) a round.

    A site may have a negative precision on the way. Student's t gives one to an outlier: f is less certain with the
    outlier than without. No observation has such noise. In the result the site gets a precision close to 0, and a value
    that leaves the means of f exactly unchanged; the variances are then a little too small.
    """
    n, certain = len(m), k.diagonal() == 0.0
    if n == 0:
        return Sites(m, m, m, m, 0.0, k, 0, True)
    usual = float(k.diagonal().max()) or 1.0
    least = LEAST / np.where(certain, usual, k.diagonal())
    k = k + np.diag(np.where(certain, NO_VARIANCE * usual, 0.0)) if certain.any() else k
    root, prior = semidefinite_root(k), k.diagonal()
    tau, nu = (least.copy(), least * m) if sites is None else (1.0 / sites[1], sites[0] / sites[1])
    joint = _joint_given_sites(root, m, tau, nu)
    assert joint is not None  # no precision is negative
    step, before, rounds, converged = _STEP, np.inf, 0, False
    while rounds < ROUNDS and not converged:
        rounds += 1
        centre, free, whole = _cavities(joint, tau, nu, prior)
        tilted = likelihood(centre, free)
        to_tau = np.where(whole, 1.0 / tilted.var - 1.0 / free - tau, 0.0)
        to_nu = np.where(whole, tilted.mean / tilted.var - centre / free - nu, 0.0)
        after = _joint_given_sites(root, m, tau + step * to_tau, nu + step * to_nu)
        if after is None:
            step = 0.5 * step
            continue
        moved = np.abs(after.mean - joint.mean) / (step * np.sqrt(prior))
        change = float(np.maximum(moved, np.abs(to_tau) * joint.var).max())
        tau, nu, joint = tau + step * to_tau, nu + step * to_nu, after
        converged = change <= CLOSE and bool(whole.all())
        step = max(_SMALLEST_STEP, 0.5 * step) if change > (1.0 - 0.05 * step) * before else min(_STEP, 1.05 * step)
        before = change
    return _finished(root, m, tau, nu, joint, likelihood, least, rounds, converged)


def _cavities(joint: _Joint, tau: Array, nu: Array, prior: Array) -> tuple[Array, Array, Mask]:
    """Return the means and variances of the marginals without their sites, and which are valid distributions."""
    precision = 1.0 / joint.var - tau
    whole: Mask = precision > 1e-9 / prior
    free = 1.0 / np.where(whole, precision, 1.0 / prior)
    return free * (joint.mean / joint.var - nu), free, whole


def _finished(
    root: Array,
    m: Array,
    tau: Array,
    nu: Array,
    joint: _Joint,
    likelihood: Likelihood,
    least: Array,
    rounds: int,
    converged: bool,
) -> Sites:
    """Return the sites with their evidence. With the cavities N(c_i, v_i) and everything measured from m,

        log Z = sum_i log z_i + 1/2 log(1 + tau_i v_i) + 1/2 (tau_i c_i^2 - 2 c_i nu_i - nu_i^2 v_i) / (1 + tau_i v_i)
                - 1/2 log det B + 1/2 nu^T cov nu.

    At the fixed point its derivative by K is the one with fixed sites: 1/2 (w w^T - S + S cov S), where w = nu - S
    (mean - m) (Seeger 2005).
    """
    centre, free, _ = _cavities(joint, tau, nu, np.einsum("ij,ij->i", root, root))
    c, pull, spread = centre - m, nu - tau * m, np.maximum(1.0 + tau * free, 1e-12)
    apart = 0.5 * np.log(spread) + 0.5 * (tau * c**2 - 2.0 * c * pull - pull**2 * free) / spread
    evidence = float((likelihood(centre, free).log_z + apart).sum())
    evidence += 0.5 * float(pull @ (joint.mean - m)) - 0.5 * joint.logdet
    weights = pull - tau * (joint.mean - m)
    precision = np.diag(tau) - tau[:, None] * (joint.inner @ root.T) * tau
    noise = 1.0 / np.maximum(tau, least)
    value, by_k = joint.mean + noise * weights, np.multiply.outer(weights, weights) - precision
    return Sites(value, noise, joint.mean, joint.var, evidence, by_k, rounds, converged)


def probit(success: Mask) -> Likelihood:
    """Return the likelihood p(success_i | f_i) = cdf(f_i), or cdf(-f_i) for a failure, of the standard normal; success
    (n,).

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
