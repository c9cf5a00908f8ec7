"""Gradients of mu and var at a few points and close beside them, where an expansion to second order is wanted."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import MomentPullback, Posterior
from gpmi.gp.trend import with_prior_gradient


@one_blas_thread
def with_pullback_beside(posterior: Posterior, z: Array, size: int) -> tuple[Array, Array, MomentPullback]:
    """As `posterior.with_pullback(z)`, for z (s * size, d) in groups of `size`: a centre, then that centre moved.

    Each of the others is moved by a small step h_i along a coordinate of its own. mu, var and the gradients at the
    centres are the same as there; a gradient beside them is wrong by O(h^2), so second derivatives made of differences
    are as good as before. The map takes s backward solves, not s * size.

    With v = L^-1 k(x, z) and u = C^-1 k(x, z) = L^-T v, that of d var / d z_i at a point j beside the centre 0 is
    u_j . dk_i = u_0 . dk_i + (v_j - v_0) . L^-1 dk_i, and L^-1 dk_i = (v_i - v_0) / h_i + O(h).
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
        steps = steps[:, 1:] - steps[:, :1]  # each has one coordinate that is not 0, the same in every group
        along = np.abs(steps[0]).argmax(axis=1)
        h = steps[:, np.arange(size - 1), along]
        turned = moved @ moved.transpose(0, 2, 1) / h[:, None]  # (s, j, i): (u_j - u_0) . dk_i
        beside = inner.reshape(-1, size, z.shape[1])[:, 1:]
        beside[:, :, along] -= 2.0 * by_var.reshape(-1, size)[:, 1:, None] * turned
        return inner

    return mu, var, gradient
