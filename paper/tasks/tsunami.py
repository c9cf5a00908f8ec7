"""Does a small island protect the beach behind it from a tsunami? Five parameters, and what it does to the run-up.

A conical island stands on a flat bottom before a plane beach, and one wave of 1.5 m comes in from the open sea,

    eta(t) = 1.5 sech^2(omega t - 2.6),

with its crests parallel to the beach. The amplification is the run-up behind the island over that of a neighbouring
place of the same beach, one radius of the island's foot aside of its axis. `simulate` computes it with ANUGA (the extra
`tsunami`) for any point of `SPACE`, with the run-up along the whole beach. `table` is a space-filling design of
simulations that are done already and needs nothing. It also has the run-up of a beach without an island: compared with
that the island amplifies long waves, by a tenth at most, and protects from short ones, in linear theory by another
solver as well (docs/benchmarks/tsunami.md).
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

from gpmi._support import checks
from gpmi._support.types import Array, Mask
from paper.tasks import shallow_water

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
PHASE = 2.6  # omega times the time at which the crest comes in: our choice
TABLE = "tsunami.csv"
WIDTH = 2.0 * math.acosh(math.sqrt(2.0))  # between the two points of half height of sech^2


@dataclass(frozen=True)
class Settings:
    """How fine the mesh is, how large the sea and how long the simulation; all of it our choice.

    All lengths are proportional to the wave's. Its width w is the distance between its points of half height. Cells in
    deep water are w / `cells` long. On the beach they shrink with the speed sqrt(g h). In the swash zone, where they
    would vanish, there are `swash_cells` over the length of the run-up of linear theory. docs/benchmarks/tsunami.md has
    the errors.
    """

    cells: float = 8.0  # per w
    island_cells: float = 10.0  # per radius of the island's foot, at least
    swash_cells: float = 8.0  # fewer on a slope that is shorter than the wave, where the surface is nearly flat
    before: float = 0.25  # w of open sea before the island's foot
    beside: float = 2.0  # w of open sea beside the island's foot; with 1 its wall adds up to 15 % behind the island
    after: float = 2.0  # in units of 1 / omega: the time simulated after the crest would reach the bare shoreline
    late: float = 0.5  # more time with the island, in units of the time that the wave needs for the foot's radius

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
    aside_run_up: float  # on the same beach, one radius of the island's foot from the axis
    lowest_run_up: float  # the lowest of the same beach
    bare_run_up: float  # of the same beach without an island
    time: float  # of the run-up
    bare_time: float
    duration: float  # of the simulation with the island
    triangles: int
    steps: int
    along: tuple[tuple[float, float], ...]  # (y, run-up) of each strip of the beach, y in m from the axis
    settings: Settings

    @property
    def amplification(self) -> float:
        """The run-up behind the island over that of the same beach one foot's radius aside; our choice of the place."""
        return self.run_up / self.aside_run_up

    @property
    def bare_amplification(self) -> float:
        """The run-up behind the island over that of a beach without one; below 1 the island protects."""
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
    """The run-up behind the island, along its beach and of the bare beach, by the nonlinear shallow-water equations.

    The plane is symmetric, so one half of it is simulated, from the axis to a wall. The bare beach is a channel one
    cell wide with the same cells along the wave's path. "Behind the island" is |y| <= 100 m / island_slope, the part of
    the beach from which the island hides the open sea at still water. Run-up is the highest level of the surface, over
    all times, in cells that hold more than 1 cm of water. Both are our choice. No friction. Some 30 s on one core;
    short waves in deep water before a large island take longest. ANUGA uses OMP_NUM_THREADS cores.
    """
    given = dict(zip(SPACE, (island_slope, beach_slope, depth, distance, omega), strict=True))
    sea = _Sea(**{name: _inside(name, value) for name, value in given.items()}, settings=settings or Settings())
    x, y = sea.mesh()
    late = sea.settings.late * sea.foot / sea.speed
    shadow = CREST / sea.island_slope

    def bare_beach(x: Array, y: Array) -> Mask:
        return x > sea.toe

    def behind_island(x: Array, y: Array) -> Mask:
        return (x > sea.toe) & (y < shadow)

    bare = shallow_water.simulate(
        x, np.array([0.0, sea.deep]), sea.beach, bare_beach, incoming=sea.incoming, duration=sea.until
    )
    behind = shallow_water.simulate(
        x, y, sea.island, behind_island, beach=bare_beach, incoming=sea.incoming, duration=sea.until + late
    )
    if max(bare.height, behind.height, *behind.along) > 0.9 * sea.top:
        raise RuntimeError(
            f"the water reached the end of the simulated beach, {sea.top:.1f} m above the sea, at {given}"
        )
    return Simulation(
        run_up=behind.height,
        aside_run_up=float(np.interp(sea.foot, behind.y, behind.along)),
        lowest_run_up=float(behind.along.min()),
        bare_run_up=bare.height,
        time=behind.time,
        bare_time=bare.time,
        duration=sea.until + late,
        triangles=behind.triangles,
        steps=behind.steps,
        along=tuple(zip(behind.y.tolist(), behind.along.tolist(), strict=True)),
        settings=sea.settings,
    )


@dataclass(frozen=True)
class _Sea:
    """The lengths and times of one simulation, in m and s. x points to the beach, and the island's axis is at 0."""

    island_slope: float
    beach_slope: float
    depth: float
    distance: float
    omega: float
    settings: Settings

    @property
    def speed(self) -> float:
        """Of a long wave over the flat bottom."""
        return math.sqrt(shallow_water.GRAVITY * self.depth)

    @property
    def width(self) -> float:
        """Of the wave over the flat bottom, between its points of half height."""
        return WIDTH * self.speed / self.omega

    @property
    def foot(self) -> float:
        """The radius of the island's foot."""
        return (self.depth + CREST) / self.island_slope

    @property
    def toe(self) -> float:
        """x of the beach's foot."""
        return self.foot + self.distance

    @property
    def shore(self) -> float:
        """x of the beach's shoreline."""
        return self.foot + self.distance + self.depth / self.beach_slope

    @property
    def length(self) -> float:
        """Of the slope under water, in units of the wave's length speed / omega."""
        return self.omega * (self.shore - self.toe) / self.speed

    @property
    def run_up(self) -> float:
        """From linear theory: 2 wave heights at a wall, 3.04 sqrt(length) on a slope.

        The second is Synolakis's law (1987) with the width of the wave, which for a solitary wave follows from its
        height, left free.
        """
        return HEIGHT * max(2.0, 3.04 * math.sqrt(self.length))

    @property
    def top(self) -> float:
        """How high the beach is simulated: twice the run-up of linear theory."""
        return 2.0 * self.run_up

    @property
    def deep(self) -> float:
        """The length of a cell in deep water."""
        return self.width / self.settings.cells

    @property
    def near(self) -> float:
        """The length of a cell at the island."""
        return min(self.deep, self.foot / self.settings.island_cells)

    @property
    def before(self) -> float:
        """The distance from the open boundary to the island's axis."""
        return self.foot + max(self.settings.before * self.width, 2.0 * self.near)

    @property
    def until(self) -> float:
        """The end of the simulation without the island: `after` / omega after the crest reaches the bare shoreline."""
        arrival = PHASE / self.omega + (self.before + self.toe + 2.0 * (self.shore - self.toe)) / self.speed
        return arrival + self.settings.after / self.omega

    def mesh(self) -> tuple[Array, Array]:
        """The lines of the mesh across and along the wave's path."""
        cells = self.settings.swash_cells * min(1.0, max(0.4, 0.6 * self.length))
        swash = self.run_up / self.beach_slope / cells

        def along(x: Array) -> Array:
            shoaling = np.sqrt(np.clip((self.shore - x) / (self.shore - self.toe), 0.0, 1.0))
            return np.where(np.abs(x) < self.foot, self.near, np.maximum(swash, self.deep * shoaling))

        def across(y: Array) -> Array:
            return np.where(y < self.foot, self.near, self.deep)

        x = shallow_water.graded((-self.before, self.shore + self.top / self.beach_slope), along)
        return x, shallow_water.graded((0.0, self.foot + self.settings.beside * self.width), across)

    def beach(self, x: Array, y: Array) -> Array:
        """The height of the ground without the island."""
        return np.maximum(-self.depth, self.beach_slope * (x - self.toe) - self.depth)

    def island(self, x: Array, y: Array) -> Array:
        """The height of the ground with the island."""
        return np.maximum(self.beach(x, y), CREST - self.island_slope * np.hypot(x, y))

    def incoming(self, t: float) -> float:
        """The wave at the open boundary."""
        return HEIGHT / math.cosh(self.omega * t - PHASE) ** 2


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
    lines = (files("paper.tasks") / TABLE).read_text().splitlines()
    rows = sorted(csv.DictReader(lines), key=lambda row: int(row["point"]))
    inputs = np.array([[float(row[name]) for name in SPACE] for row in rows])
    amplification = np.array([float(row["amplification"]) for row in rows])
    inputs.setflags(write=False)
    amplification.setflags(write=False)
    return inputs, amplification
