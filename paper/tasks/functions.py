"""Functions on boxes whose maximum is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpmi._support.types import Array
from gpmi.cli.demo_function import Function


def branin(x: Array | Sequence[float]) -> float:
    """-[(x2 - 5.1 x1^2 / (4 pi^2) + 5 x1 / pi - 6)^2 + 10 (1 - 1 / (8 pi)) cos x1 + 10], at one x (2,).

    Three maxima of the same value, at x1 = -pi, pi and 3 pi.
    """
    x1, x2 = float(x[0]), float(x[1])
    bend = x2 - 5.1 * x1**2 / (4.0 * math.pi**2) + 5.0 * x1 / math.pi - 6.0
    return -(bend**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x1) + 10.0)


def goldstein_price(x: Array | Sequence[float]) -> float:
    """Minus the polynomial of Goldstein and Price (1971), of degree 8, at one x (2,).

    Its values reach from -3 to about -1e6: nearly all of the square is flat beside a few corners.
    """
    x1, x2 = float(x[0]), float(x[1])
    near = 19.0 - 14.0 * x1 + 3.0 * x1**2 - 14.0 * x2 + 6.0 * x1 * x2 + 3.0 * x2**2
    far = 18.0 - 32.0 * x1 + 12.0 * x1**2 + 48.0 * x2 - 36.0 * x1 * x2 + 27.0 * x2**2
    return -(1.0 + (x1 + x2 + 1.0) ** 2 * near) * (30.0 + (2.0 * x1 - 3.0 * x2) ** 2 * far)


def log_goldstein_price(x: Array | Sequence[float]) -> float:
    """-log of what `goldstein_price` negates: the same order of points on a scale a stationary process can model."""
    return -math.log(-goldstein_price(x))


# (height, centre, standard deviation) of each bump: our choice.
_BUMPS = ((0.7, (0.2, 0.5), 0.20), (0.8, (0.9, 0.9), 0.15), (1.2, (0.6, 0.1), 0.05))


def mixture(x: Array | Sequence[float]) -> float:
    """sum_b h_b exp(-|x - c_b|^2 / (2 s_b^2)), three Gaussian bumps, at one x (2,).

    The highest is thin. The bumps are our choice; the task of this name adds a rough surface to them.
    """
    x1, x2 = float(x[0]), float(x[1])
    return sum(h * math.exp(-((x1 - c1) ** 2 + (x2 - c2) ** 2) / (2.0 * s**2)) for h, (c1, c2), s in _BUMPS)


BRANIN = Function(
    branin,
    bounds=((-5.0, 10.0), (0.0, 15.0)),
    argmax=(math.pi, 2.275),  # one of three: 5.1 / 4 - 5 + 6 = 2.275 makes the square vanish
    maximum=-10.0 / (8.0 * math.pi),  # where also cos x1 = -1
)
GOLDSTEIN_PRICE = Function(
    goldstein_price,
    bounds=((-2.0, 2.0), (-2.0, 2.0)),
    argmax=(0.0, -1.0),
    maximum=-3.0,
)
LOG_GOLDSTEIN_PRICE = Function(
    log_goldstein_price,
    bounds=GOLDSTEIN_PRICE.bounds,
    argmax=GOLDSTEIN_PRICE.argmax,
    maximum=-math.log(3.0),
)
MIXTURE = Function(
    mixture,
    bounds=((0.0, 1.0), (0.0, 1.0)),
    argmax=(0.59973163, 0.10026837),  # the others' tails move it by 3e-4: polished in tests/paper/test_tasks.py
    maximum=1.212855426413734,
)
