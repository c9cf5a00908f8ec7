"""A transformation of y that the model may need: strictly increasing and invertible, so that it moves no maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi.types import Array

_FAR = 450.0  # the largest exponent of the inverse: what lies beyond is no value of y


@dataclass(frozen=True)
class Warp:
    """z = y - o between `lo` and `hi`, and logarithmic beyond: z = hi - o + s log(1 + (y - hi) / s) above hi.

    Mirrored below lo. The slope is continuous and positive, 1 between lo and hi and s / distance far from them. With
    the origin o at one of lo and hi, which are the knees, z keeps the digits of y close to it. Without knees z = y.
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
        """Whether z is not y everywhere."""
        return self.lo > -np.inf or self.hi < np.inf

    def mirrored(self) -> Warp:
        """W' with W'(y) = -W(-y), exactly: the same transformation, seen from the other side of y."""
        return Warp(-self.hi, -self.lo, self.s, 0.0 - self.o) if self.bends else self

    def __call__(self, y: Array) -> Array:
        """z at y."""
        if not self.bends:
            return y
        above, below, inner = self._split(y - self.o)
        return inner + self.s * (np.log1p(above / self.s) - np.log1p(below / self.s))

    def inverse(self, z: Array) -> Array:
        """y at z: of the mean of z the median of y, of a quantile of z the same quantile of y."""
        if not self.bends:
            return z
        above, below, inner = self._split(z)
        far = np.minimum(above / self.s, _FAR), np.minimum(below / self.s, _FAR)
        return self.o + (inner + self.s * (np.expm1(far[0]) - np.expm1(far[1])))

    def log_slope(self, y: Array) -> Array:
        """log dz/dy."""
        if not self.bends:
            return np.zeros_like(y)
        above, below, _ = self._split(y - self.o)
        return -np.log1p(above / self.s) - np.log1p(below / self.s)

    def _split(self, y: Array) -> tuple[Array, Array, Array]:
        """How far y, counted from o, is above hi and below lo, and y cut at them."""
        lo, hi = self.lo - self.o, self.hi - self.o
        return np.maximum(y - hi, 0.0), np.maximum(lo - y, 0.0), np.clip(y, lo, hi)


IDENTITY = Warp()
