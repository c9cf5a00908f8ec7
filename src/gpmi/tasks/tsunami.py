"""Does a small island protect the beach behind it from a tsunami? Five parameters, and what it does to the run-up.

A conical island stands on a flat bottom before a plane beach, and one wave of 1.5 m comes in from the open sea,

    eta(t) = 1.5 sech^2(omega t - 2.6),

with its crests parallel to the beach. The amplification is the run-up behind the island over that on the same beach
far to the side. `simulate` computes it with ANUGA (the extra `tsunami`) for any point of `SPACE`; `table` is a
space-filling design of simulations that are done already and needs nothing. There the island amplifies long waves, by
a tenth at most, and protects from short ones, in linear theory by another solver as well (docs/benchmarks/tsunami.md).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import numpy as np

from gpmi import checks
from gpmi.tasks import shallow_water
from gpmi.types import Array

SPACE: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "island_slope": (0.05, 0.2),  # tangent
        "beach_slope": (0.05, 0.2),  # tangent
        "depth": (100.0, 1000.0),  # m, of the flat bottom
        "distance": (0.0, 5000.0),  # m, from the island's foot to the beach's foot
        "omega": (0.01, 0.1),  # rad/s
    }
)
HEIGHT = 1.5  # m, of the wave
CREST = 100.0  # m above still water, the island's: our choice
PHASE = 2.6  # by which the crest of the wave is late: our choice
TABLE = "tsunami.csv"
WIDTH = 2.0 * math.acosh(math.sqrt(2.0))  # between the two points of half height of sech^2


@dataclass(frozen=True)
class Settings:
    """How fine the mesh is, how large the sea and how long the simulation; all of it our choice.

    All lengths follow the wave: deep water has cells of 1 / `cells` of its width w, the distance between its points of
    half height, the beach cells that shrink with the speed sqrt(g h), and the swash zone, where they would vanish,
    `swash_cells` over the length that a run-up from linear theory covers. docs/benchmarks/tsunami.md has the errors.
    """

    cells: float = 8.0  # per w
    island_cells: float = 10.0  # per radius of the island's foot, at least
    swash_cells: float = 8.0  # fewer before a slope shorter than the wave, on which the surface is nearly flat
    before: float = 0.25  # w of open sea before the island's foot
    beside: float = 1.0  # w of open sea beside the island's foot
    after: float = 2.0  # 1 / omega, what is simulated after the crest would reach the bare beach's shoreline
    late: float = 0.5  # times the wave takes for the foot's radius, in addition, with the island

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, checks.positive(field.name, getattr(self, field.name)))

    def refined(self, factor: float) -> Settings:
        """All cells smaller by this factor; the cost grows with its cube."""
        finer = {name: factor * getattr(self, name) for name in ("cells", "island_cells", "swash_cells")}
        return replace(self, **finer)


@dataclass(frozen=True)
class Simulation:
    """Run-ups are in m above still water, times in s since the wave's foot came in."""

    run_up: float  # behind the island
    bare_run_up: float  # of the same beach without an island
    time: float  # of the run-up
    bare_time: float
    duration: float  # of the simulation with the island
    triangles: int
    steps: int
    settings: Settings

    @property
    def amplification(self) -> float:
        """The run-up behind the island over that of the bare beach; below 1 the island protects."""
        return self.run_up / self.bare_run_up


def simulate(
    island_slope: float,
    beach_slope: float,
    depth: float,
    distance: float,
    omega: float,
    *,
    settings: Settings | None = None,
) -> Simulation:
    """The run-up behind the island and that of the bare beach, from the nonlinear shallow-water equations.

    The plane is symmetric, so one half of it is simulated, from the axis to a wall; the bare beach is a channel one
    cell wide with the same lines along the wave's path. Behind the island is where it hides the open sea at still
    water, |y| <= 100 m / island_slope, and run-up the highest level of the surface, over all times, in cells that hold
    more than 1 cm of water: both our choice. No friction. About 20 s on one core, most for short waves in deep water
    before a large island; ANUGA takes as many cores as OMP_NUM_THREADS says.
    """
    given = dict(zip(SPACE, (island_slope, beach_slope, depth, distance, omega), strict=True))
    slope_i, slope_b, depth, distance, omega = (_inside(name, value) for name, value in given.items())
    settings = Settings() if settings is None else settings
    speed = math.sqrt(shallow_water.GRAVITY * depth)
    width = WIDTH * speed / omega
    foot = (depth + CREST) / slope_i  # radius
    toe, shore = foot + distance, foot + distance + depth / slope_b  # x of the beach's foot and of its shoreline
    # Run-up over height is 2 at a wall, and on a slope of length l 3.04 sqrt(omega l / c): Synolakis's law with
    # the width of the wave, which for a solitary wave follows from its height, left free.
    length = omega * (shore - toe) / speed
    run_up = HEIGHT * max(2.0, 3.04 * math.sqrt(length))
    deep = width / settings.cells
    near = min(deep, foot / settings.island_cells)
    swash = run_up / slope_b / (settings.swash_cells * min(1.0, max(0.4, 0.6 * length)))
    sea = foot + max(settings.before * width, 2.0 * near)

    def beach(x: Array, y: Array) -> Array:
        return np.maximum(-depth, slope_b * (x - toe) - depth)

    def island(x: Array, y: Array) -> Array:
        return np.maximum(beach(x, y), CREST - slope_i * np.hypot(x, y))

    def along(x: Array) -> Array:
        shoaling = np.sqrt(np.clip((shore - x) / (shore - toe), 0.0, 1.0))
        return np.where(np.abs(x) < foot, near, np.maximum(swash, deep * shoaling))

    top = 2.0 * run_up
    x = shallow_water.graded((-sea, shore + top / slope_b), along)
    y = shallow_water.graded((0.0, foot + settings.beside * width), lambda y: np.where(y < foot, near, deep))
    arrival = PHASE / omega + (sea + toe + 2.0 * (shore - toe)) / speed  # of the crest at the bare shoreline
    until = arrival + settings.after / omega
    late = settings.late * foot / speed
    shadow = CREST / slope_i

    def incoming(t: float) -> float:
        return HEIGHT / math.cosh(omega * t - PHASE) ** 2

    bare = shallow_water.simulate(
        x, np.array([0.0, deep]), beach, lambda x, y: x > toe, incoming=incoming, duration=until
    )
    behind = shallow_water.simulate(
        x, y, island, lambda x, y: (x > toe) & (y < shadow), incoming=incoming, duration=until + late
    )
    if max(bare.height, behind.height) > 0.9 * top:
        raise RuntimeError(f"the water reached the end of the simulated beach, {top:.1f} m above the sea, at {given}")
    return Simulation(
        run_up=behind.height,
        bare_run_up=bare.height,
        time=behind.time,
        bare_time=bare.time,
        duration=until + late,
        triangles=behind.triangles,
        steps=behind.steps,
        settings=settings,
    )


def _inside(name: str, value: float) -> float:
    lo, hi = SPACE[name]
    result = checks.number(name, value)
    if not lo <= result <= hi:
        raise ValueError(f"{name} is {value!r}, outside [{lo}, {hi}]; simulate points of tsunami.SPACE only")
    return result


@cache
def table() -> tuple[Array, Array]:
    """The points of the design (n, 5), columns as in SPACE, and their amplification (n,), in the order of the design.

    From tsunami.csv, which benchmarks/tsunami_table.py writes.
    """
    lines = (files("gpmi.tasks") / TABLE).read_text().splitlines()
    rows = sorted(csv.DictReader(lines), key=lambda row: int(row["point"]))
    inputs = np.array([[float(row[name]) for name in SPACE] for row in rows])
    amplification = np.array([float(row["amplification"]) for row in rows])
    inputs.setflags(write=False)
    amplification.setflags(write=False)
    return inputs, amplification
