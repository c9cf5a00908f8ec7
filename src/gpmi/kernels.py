"""Covariance functions: the public names of `gpmi.gp.kernels`."""

from typing import TYPE_CHECKING

from gpmi._support.name_hints import missing_attribute
from gpmi.gp.kernels import RBF, Kernel, Linear, Matern, Product, Stationary, Sum

__all__ = ["RBF", "Kernel", "Linear", "Matern", "Product", "Stationary", "Sum"]

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
