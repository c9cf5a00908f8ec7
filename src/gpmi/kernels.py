"""Covariance functions: the public names of `gpmi.gp.kernels`."""

from gpmi.gp.kernels import RBF, Kernel, Linear, Matern, Product, Stationary, Sum

__all__ = ["RBF", "Kernel", "Linear", "Matern", "Product", "Stationary", "Sum"]
