"""The Mackey-Glass delay equation, and the table of its past and future."""

from __future__ import annotations

from functools import cache

import numpy as np

from gpmi._support.types import Array

# The size of the table is that of the public table "mg". With this delay, history and spacing its first rows are ours.
DELAY = 17  # time units
HISTORY = 0.9  # x(t) for t <= 0
ROWS, COORDINATES = 1385, 6
EVERY, APART = 6, 36  # time units between rows and between coordinates
AHEAD = 7  # time units to the target: our choice
PER_UNIT = 10  # steps of the solver in a time unit: our choice


def solve(duration: int, per_unit: int = PER_UNIT) -> Array:
    """x at t = 0, h, 2h, ..., duration for dx/dt = 0.2 x(t-17) / (1 + x(t-17)^10) - 0.1 x and h = 1 / per_unit.

    Runge-Kutta of order 4. The delayed x at the middle of a step is the cubic through its values and slopes at the
    ends, so that the error is O(h^4) as well. The orbit is chaotic: over the table a rounding error grows by a factor
    of 1e20 and more. So only sums, products and quotients of Python floats are used, which are the same on every
    machine.
    """
    h = 1.0 / per_unit
    lag, steps = DELAY * per_unit, duration * per_unit
    x, slopes = [HISTORY], []  # at i h
    start = birth = _birth(HISTORY)  # what the delayed x adds at the beginning, the middle and the end of a step
    for i in range(steps):
        middle = end = birth
        now, past = x[i], i - lag
        slopes.append(k1 := start - 0.1 * now)
        if past >= 0:
            a, b = x[past], x[past + 1]
            middle = _birth(0.5 * (a + b) + 0.125 * h * (slopes[past] - slopes[past + 1]))
            end = _birth(b)
        k2 = middle - 0.1 * (now + 0.5 * h * k1)
        k3 = middle - 0.1 * (now + 0.5 * h * k2)
        k4 = end - 0.1 * (now + h * k3)
        x.append(now + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))
        start = end
    return np.array(x)


def _birth(x: float) -> float:
    """0.2 x / (1 + x^10)."""
    x2 = x * x
    x4 = x2 * x2
    return 0.2 * x / (1.0 + x4 * x4 * x2)


@cache
def table(ahead: int = AHEAD) -> tuple[Array, Array]:
    """Coordinates (1385, 6) and targets (1385,), in the units of the equation.

    Row i is x(t), x(t - 36), ..., x(t - 180) at t = 163 + 6 i, so that the oldest coordinate of row 0 is the beginning
    of the history, and its target x(t + ahead). 7 units ahead is our choice. The first rows are those of the public
    table "mg" to about 0.02. There the target of a row is the newest coordinate of the row 85 rows on: `ahead=510`.
    """
    oldest = EVERY * np.arange(ROWS)  # (rows,), times counted from the beginning of the history
    newest = oldest + (COORDINATES - 1) * APART
    x = np.append(np.full(DELAY * PER_UNIT, HISTORY), solve(int(newest[-1]) + ahead - DELAY))
    inputs = x[PER_UNIT * (newest[:, None] - APART * np.arange(COORDINATES))]
    targets = x[PER_UNIT * (newest + ahead)]
    inputs.setflags(write=False)
    targets.setflags(write=False)
    return inputs, targets
