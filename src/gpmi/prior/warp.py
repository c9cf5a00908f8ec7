"""A transformation of y that the model may need: strictly increasing and invertible, so that it moves no maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi.types import Array

_FAR = 450.0  # the largest exponent of the inverse: what lies beyond is no value of y


@dataclass(frozen=True)
class Warp:
    """z = y - o between `lo` and `hi`, o one of them, and logarithmic beyond: z = s log(1 + (y - hi) / s) above hi.

    Mirrored below lo. The slope is continuous and positive, 1 up to the knees and s / distance far from them. z is
    counted from a knee o, so that the digits of y close to it are kept. Without knees z = y.
    """

    lo: float = -np.inf
    hi: float = np.inf
    s: float = 1.0
    o: float = 0.0

    def mirrored(self) -> Warp:
        return Warp(-self.hi, -self.lo, self.s, -self.o)

    def __str__(self) -> str:
        sides = [f"above {self.hi:.6g}"] * (self.hi < np.inf) + [f"below {self.lo:.6g}"] * (self.lo > -np.inf)
        return f"y, logarithmic {' and '.join(sides)} in units of {self.s:.3g}" if sides else "y"

    @property
    def bends(self) -> bool:
        """Whether z is not y everywhere."""
        return self.lo > -np.inf or self.hi < np.inf

    @property
    def _knees(self) -> tuple[float, float, float]:
        """o, and lo and hi counted from it."""
        o = self.o
        return o, self.lo - o, self.hi - o

    def __call__(self, y: Array) -> Array:
        """z at y."""
        if not self.bends:
            return y
        o, lo, hi = self._knees
        above, below, inner = _split(y - o, lo, hi)
        return inner + self.s * (np.log1p(above / self.s) - np.log1p(below / self.s))

    def inverse(self, z: Array) -> Array:
        """y at z: of the mean of z the median of y, of a quantile of z the same quantile of y."""
        if not self.bends:
            return z
        o, lo, hi = self._knees
        above, below, inner = _split(z, lo, hi)
        far = np.minimum(above / self.s, _FAR), np.minimum(below / self.s, _FAR)
        return o + (inner + self.s * (np.expm1(far[0]) - np.expm1(far[1])))

    def log_slope(self, y: Array) -> Array:
        """log dz/dy."""
        if not self.bends:
            return np.zeros_like(y)
        o, lo, hi = self._knees
        above, below, _ = _split(y - o, lo, hi)
        return -np.log1p(above / self.s) - np.log1p(below / self.s)


def _split(y: Array, lo: float, hi: float) -> tuple[Array, Array, Array]:
    """How far y is above hi and below lo, and y cut at them."""
    inner = np.clip(y, lo, hi)
    return np.maximum(y - hi, 0.0), np.maximum(lo - y, 0.0), inner


IDENTITY = Warp()
