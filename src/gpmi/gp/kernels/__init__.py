"""Covariance functions: what a kernel is (`base`), stationary and linear ones, sums and products, several levels."""

from gpmi.gp.kernels.affine import AffineKernel
from gpmi.gp.kernels.base import Kernel, Product, Pullback, Sum
from gpmi.gp.kernels.levels import Levels
from gpmi.gp.kernels.linear import Linear
from gpmi.gp.kernels.mapped import Mapped
from gpmi.gp.kernels.matern import Matern
from gpmi.gp.kernels.rbf import RBF
from gpmi.gp.kernels.stationary import Stationary

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
