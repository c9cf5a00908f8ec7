"""Covariance functions: what a kernel is (`base`), and RBF, Matern and Linear (`elementary`)."""

from gpmi.gp.kernels.base import AffineKernel, Kernel, Product, Pullback, Sum
from gpmi.gp.kernels.elementary import RBF, Linear, Matern, Stationary

__all__ = ["RBF", "AffineKernel", "Kernel", "Linear", "Matern", "Product", "Pullback", "Stationary", "Sum"]
