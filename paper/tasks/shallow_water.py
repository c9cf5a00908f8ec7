"""Waves that run up a beach: the nonlinear shallow-water equations on a graded rectangular mesh, solved by ANUGA.

ANUGA (finite volumes on triangles, wetting and drying) is imported where it is used, and only there.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpmi._support.types import Array

GRAVITY = 9.8  # ANUGA's
ALGORITHM = (
    "DE1"  # of order 2 in space and time; DE0 damps waves, DE_ader2 saves little, as it needs shorter steps here
)
WET = 0.01  # m: a cell with less water counts as dry; our choice
GROWTH = 0.25  # growth of the spacing per length: neighbouring cells have a ratio of about 1.3 at most; our choice

Bed = Callable[[Array, Array], Array]
Cells = Callable[[Array, Array], NDArray[np.bool_]]  # which cells are meant, by their centroids


@dataclass(frozen=True)
class RunUp:
    """How high the water went on the cells that were watched, when, and at what cost."""

    height: float  # m above still water
    time: float  # s
    triangles: int
    steps: int
    y: Array = field(default_factory=lambda: np.empty(0))  # (k,), m: the middles of the strips of cells along x
    along: Array = field(default_factory=lambda: np.empty(0))  # (k,), m: how high the water went in each strip


def graded(ends: tuple[float, float], spacing: Callable[[Array], Array]) -> Array:
    """Points from end to end, `spacing(x)` apart at x. Where it would grow faster than GROWTH it is made smaller."""
    x = np.linspace(*ends, 100_001)
    step = x[1] - x[0]
    s = spacing(x)
    for order in (slice(None), slice(None, None, -1)):  # s(x) <= s(x') + GROWTH |x - x'| for all x'
        ramp = GROWTH * step * np.arange(len(x))
        s[order] = np.minimum.accumulate(s[order] - ramp) + ramp
    cells = np.append(0.0, np.cumsum(step * 0.5 * (1.0 / s[1:] + 1.0 / s[:-1])))
    count = max(1, int(np.ceil(cells[-1])))
    points: Array = np.interp(np.linspace(0.0, cells[-1], count + 1), cells, x)
    return points


def triangulate(x: Array, y: Array) -> tuple[Array, NDArray[np.intp], dict[tuple[int, int], str]]:
    """Four triangles for each cell of the grid x times y, which meet in its centre, and the names of the sides.

    The points (n, 2), the triangles (m, 3) counter-clockwise, and a name for each (triangle, edge) of the boundary:
    "sea" at x[0], "wall" elsewhere. Edge 0, opposite to the centre, is the cell's. Cells as long as ours are stable
    when they are cut in this way; with one diagonal per cell they are not.
    """
    nx, ny = len(x) - 1, len(y) - 1
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    middles = 0.5 * (x[1:] + x[:-1]), 0.5 * (y[1:] + y[:-1])
    centres = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, 2)
    i, j = (index.ravel() for index in np.indices((nx, ny)))
    south_west, south_east = i * (ny + 1) + j, (i + 1) * (ny + 1) + j
    around = np.stack([south_west, south_east, south_east + 1, south_west + 1], axis=1)  # counter-clockwise
    centre = np.repeat(len(grid) + np.arange(nx * ny), 4).reshape(-1, 4)
    triangles = np.stack([centre, around, np.roll(around, -1, axis=1)], axis=2).reshape(-1, 3)
    first = 4 * np.arange(nx * ny).reshape(nx, ny)  # a cell's southern triangle; east, north and west follow
    walls = np.concatenate([first[-1] + 1, first[:, 0], first[:, -1] + 2])
    sides = {(int(t), 0): "sea" for t in first[0] + 3} | {(int(t), 0): "wall" for t in walls}
    return np.concatenate([grid, centres]), triangles, sides


def simulate(
    x: Array,
    y: Array,
    bed: Bed,
    watched: Cells,
    *,
    beach: Cells | None = None,
    duration: float,
    incoming: Callable[[float], float] | None = None,
    initial: tuple[Callable[[Array], Array], Callable[[Array], Array]] | None = None,
) -> RunUp:
    """The highest level of the water's surface in any watched wet cell after any step until `duration`.

    Still water over the bed, without friction. At the side x[0] waves leave, and the wave eta(t) = `incoming` enters
    with the velocity of a wave in that direction: one Riemann invariant is prescribed, the other comes from inside. The
    other sides are walls, that is, lines of symmetry. `initial` is the surface and the velocity along x at time 0. In
    the cells of the `beach` the highest level is also recorded for each strip between two lines of y.
    """
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anuga = require_anuga()
        points, triangles, sides = triangulate(x, y)
        domain = anuga.Domain(points, triangles, boundary=sides)
        domain.set_flow_algorithm(ALGORITHM)
        domain.set_store(False)  # no files
        corners = points[triangles]
        xc, yc = corners.mean(axis=1).T
        domain.set_quantity("friction", 0.0)
        domain.set_quantity("elevation", bed(corners[..., 0], corners[..., 1]), location="vertices")
        floor = domain.quantities["elevation"].centroid_values
        surface = np.zeros_like(floor) if initial is None else initial[0](xc)
        domain.set_quantity("stage", np.maximum(surface, floor), location="centroids")
        if initial is not None:
            domain.set_quantity("xmomentum", initial[1](xc) * np.maximum(surface - floor, 0.0), location="centroids")
        wall = anuga.Reflective_boundary(domain)
        sea = wall if incoming is None else anuga.Characteristic_wave_boundary(domain, incoming)
        domain.set_boundary({"sea": sea, "wall": wall})
        rows = np.flatnonzero(watched(xc, yc))
        seen = _Highest(domain, rows)
        domain.set_fractional_step_operator(seen)  # called after every step
        strips = None
        if beach is not None:
            shore = np.flatnonzero(beach(xc, yc))
            strips = _Along(domain, shore, (shore // 4) % (len(y) - 1))
            domain.set_fractional_step_operator(strips)
        for _ in domain.evolve(yieldstep=duration, finaltime=duration):
            pass
    along = {} if strips is None else {"y": 0.5 * (y[1:] + y[:-1])[strips.numbers], "along": strips.heights}
    return RunUp(seen.height, seen.time, len(triangles), seen.steps, **along)


class _Highest:
    """The highest level of the surface so far in these cells while they are wet. Call it after every step."""

    def __init__(self, domain: Any, rows: NDArray[np.intp]) -> None:
        self._domain, self._rows = domain, rows
        self._stage = domain.quantities["stage"].centroid_values
        self._ground = domain.quantities["elevation"].centroid_values[rows]
        self.height, self.time, self.steps = 0.0, 0.0, 0

    def __call__(self) -> None:
        level = self._stage[self._rows]
        highest = float(np.max(level, where=level - self._ground > WET, initial=-np.inf))
        if highest > self.height:
            self.height, self.time = highest, float(self._domain.get_time())
        self.steps += 1

    def log_timestepping_statistics(self) -> None:
        """ANUGA asks every operator for it; there is nothing to log."""


class _Along:
    """The highest level of the surface so far in each strip of wet cells. Call it after every step."""

    def __init__(self, domain: Any, rows: NDArray[np.intp], strip: NDArray[np.intp]) -> None:
        order = np.argsort(strip, kind="stable")
        self._rows = rows[order]
        self.numbers, self._starts = np.unique(strip[order], return_index=True)
        self._stage = domain.quantities["stage"].centroid_values
        self._ground = domain.quantities["elevation"].centroid_values[self._rows]
        self.heights = np.zeros(len(self.numbers))

    def __call__(self) -> None:
        level = self._stage[self._rows]
        wet = np.where(level - self._ground > WET, level, -np.inf)
        self.heights = np.maximum(self.heights, np.maximum.reduceat(wet, self._starts))

    def log_timestepping_statistics(self) -> None:
        """ANUGA asks every operator for it; there is nothing to log."""


def require_anuga() -> Any:
    """The module anuga, without what it prints on import; or an ImportError that says how to install it.

    Its import turns NumPy's warnings of divisions off for the whole process; they are given back as they were.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate():
            warnings.simplefilter("ignore")
            import anuga
    except ImportError as error:
        raise ImportError("the tsunami simulation needs anuga: pip install -r paper/requirements.txt") from error
    return anuga
