"""The argument `kernel` of a run."""

from __future__ import annotations

from typing import Any

from gpmi.gp.kernels import Kernel
from gpmi.model.fitting.unknowns import DEFAULT


def given_kernel(kernel: Any, d: int) -> Kernel:
    """Return the kernel that a user gives for d coordinates, validated; None stands for the default."""
    if kernel is None:
        return DEFAULT
    if isinstance(kernel, type):
        raise TypeError(f"kernel is the class {kernel.__name__}; give an instance, {kernel.__name__}(...)")
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel is {kernel!r}; give a kernel such as gpmi.kernels.RBF(lengthscale=0.3)")
    if kernel.dim not in (None, d):
        raise ValueError(
            f"kernel has {kernel.dim} lengthscales but the space has {d} coordinates; give one lengthscale "
            "per coordinate, or a single number for all"
        )
    return kernel
