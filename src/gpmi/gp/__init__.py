"""Gaussian processes. Start with `posterior`: Equations 1 and 2 of the paper.

`linalg` has the Cholesky factors that grow row by row, `kernels` the covariance functions, `trend` a known mean
function and `replicates` the merging of observations at equal points. `tracking` updates mu and var at a fixed set of
points. `paths` draws functions from a posterior. `finite_differences` makes gradients cheap at a point and its close
neighbours. `approximate` handles observations that are not Gaussian.
"""

from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import mean_in_chunks, moments_in_chunks

__all__ = [
    "Posterior",
    "mean_in_chunks",
    "moments_in_chunks",
    "one_blas_thread",
]
