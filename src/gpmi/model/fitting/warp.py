"""Transformations of y before it is modelled: strictly increasing, so the maximum of f stays where it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi._support.types import Array

_FAR = 450.0  # the largest exponent of the inverse: exp(450) = 1e195 is far above any y (LARGEST in `checks`)


@dataclass(frozen=True)
class Warp:
    """z = y - o between the knees lo and hi; above hi z = hi - o + s log(1 + (y - hi) / s), and likewise below lo.

    The slope is continuous and positive: 1 between the knees, and s / (s + distance) outside. The origin o is at one of
    the knees, where z then keeps all digits of y. Without knees z = y.
    """

    lo: float = -np.inf
    hi: float = np.inf
    s: float = 1.0
    o: float = 0.0

    def __str__(self) -> str:
        sides = [f"above {self.hi:.6g}"] * (self.hi < np.inf) + [f"below {self.lo:.6g}"] * (self.lo > -np.inf)
        return f"y, logarithmic {' and '.join(sides)} in units of {self.s:.3g}" if sides else "y"

    @property
    def bends(self) -> bool:
        """Whether z differs from y anywhere."""
        return self.lo > -np.inf or self.hi < np.inf

    def mirrored(self) -> Warp:
        """Return the transformation y -> -W(-y), exactly: the same one for -y."""
        return Warp(-self.hi, -self.lo, self.s, 0.0 - self.o) if self.bends else self

    def __call__(self, y: Array) -> Array:
        """Return z at y."""
        if not self.bends:
            return y
        above, below, inner = self._split(y - self.o)
        return inner + self.s * (np.log1p(above / self.s) - np.log1p(below / self.s))

    def inverse(self, z: Array) -> Array:
        """Return y at z. Quantiles map to quantiles, so the mean of a normal z becomes the median of y."""
        if not self.bends:
            return z
        above, below, inner = self._split(z)
        far = np.minimum(above / self.s, _FAR), np.minimum(below / self.s, _FAR)
        return self.o + (inner + self.s * (np.expm1(far[0]) - np.expm1(far[1])))

    def log_slope(self, y: Array) -> Array:
        """Return log dz/dy."""
        if not self.bends:
            return np.zeros_like(y)
        above, below, _ = self._split(y - self.o)
        return -np.log1p(above / self.s) - np.log1p(below / self.s)

    def _split(self, y: Array) -> tuple[Array, Array, Array]:
        """Return how far y, measured from o, is above hi; how far below lo; and y clipped to [lo, hi]."""
        lo, hi = self.lo - self.o, self.hi - self.o
        return np.maximum(y - hi, 0.0), np.maximum(lo - y, 0.0), np.clip(y, lo, hi)


IDENTITY = Warp()
