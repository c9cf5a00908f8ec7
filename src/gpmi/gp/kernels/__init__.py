"""Covariance functions: what a kernel is (`base`), RBF, Matern and Linear (`elementary`), several levels (`levels`)."""

from gpmi.gp.kernels.base import AffineKernel, Kernel, Product, Pullback, Sum
from gpmi.gp.kernels.elementary import RBF, Linear, Matern, Stationary
from gpmi.gp.kernels.levels import Levels
from gpmi.gp.kernels.mapped import Mapped

__all__ = [
    "RBF",
    "AffineKernel",
    "Kernel",
    "Levels",
    "Linear",
    "Mapped",
    "Matern",
    "Product",
    "Pullback",
    "Stationary",
    "Sum",
]
