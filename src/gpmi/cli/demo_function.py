"""The function of the demonstration: four peaks, one of them the highest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpmi._support.types import Array


@dataclass(frozen=True)
class Function:
    """f on a box, to be maximised, with its maximum."""

    f: Callable[[Array | Sequence[float]], float]
    bounds: tuple[tuple[float, float], ...]
    argmax: tuple[float, ...]
    maximum: float


def himmelblau(x: Array | Sequence[float]) -> float:
    """-(H(x) + 5 x1 + 3 x2), H(x) = (x1^2 + x2 - 11)^2 + (x1 + x2^2 - 7)^2, at one x (2,).

    H has four minima of value 0; the tilt, which is our choice, makes one of them the best.
    """
    x1, x2 = float(x[0]), float(x[1])
    return -((x1**2 + x2 - 11.0) ** 2 + (x1 + x2**2 - 7.0) ** 2 + 5.0 * x1 + 3.0 * x2)


HIMMELBLAU = Function(
    himmelblau,
    bounds=((-5.0, 5.0), (-5.0, 5.0)),
    argmax=(-3.83355005, -3.33360213),  # the best of a fine grid, polished: tests/cli/test_cli.py
    maximum=28.95910943378636,
)
