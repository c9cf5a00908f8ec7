"""Gradients of mu and var on small stencils, from which a second-order expansion takes its finite differences."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import MomentPullback, Posterior
from gpmi.gp.prior_gradient import with_prior_gradient


@one_blas_thread
def with_pullback_on_stencils(posterior: Posterior, z: Array, size: int) -> tuple[Array, Array, MomentPullback]:
    """Do what `posterior.with_pullback(z)` does, for z (s * size, d) in stencils: a centre, then size - 1 moved copies
    of it.

    Each copy is moved by a small step h_i along its own coordinate. mu, var and the gradients at the centres are
    the same as there. The gradient at a moved copy has an error of O(h^2), so second derivatives from differences are
    as good as before. The map takes s backward solves, not s * size.

    With v = L^-1 k(x, z) and u = C^-1 k(x, z) = L^-T v, d var / d z_i at copy j of the centre 0 needs u_j . dk_i = u_0
    . dk_i + (v_j - v_0) . L^-1 dk_i, and L^-1 dk_i = (v_i - v_0) / h_i + O(h).
    """
    n = posterior.n
    k, pull = posterior.kernel.with_input_pullback(z, posterior.x)  # (m, n)
    v = posterior.factor.solve(k.T)
    mu, var = posterior.moments_from(z, v)

    def gradient(by_mu: Array, by_var: Array) -> Array:
        smoother = posterior.factor.solve_transposed(v[:, ::size]).T[:, None]  # (s, 1, n)
        weights = by_mu[:, None] * posterior.weights
        weights.reshape(-1, size, n)[:] -= (2.0 * by_var).reshape(-1, size, 1) * smoother
        inner = with_prior_gradient(posterior.kernel, posterior.trend, z, pull(weights), by_mu, by_var)
        groups = v.T.reshape(-1, size, n)
        moved = groups[:, 1:] - groups[:, :1]
        steps = z.reshape(-1, size, z.shape[1])
        steps = steps[:, 1:] - steps[:, :1]  # each has one nonzero coordinate, the same in every stencil
        along = np.abs(steps[0]).argmax(axis=1)
        h = steps[:, np.arange(size - 1), along]
        turned = moved @ moved.transpose(0, 2, 1) / h[:, None]  # (s, j, i): (u_j - u_0) . dk_i
        copies = inner.reshape(-1, size, z.shape[1])[:, 1:]
        copies[:, :, along] -= 2.0 * by_var.reshape(-1, size)[:, 1:, None] * turned
        return inner

    return mu, var, gradient
