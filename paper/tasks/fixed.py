"""The tasks that are the same in every repetition: functions on a grid, the Mackey-Glass table, simulated tsunamis."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files

import numpy as np

from gpmi._support.types import Array
from gpmi.cli.demo_function import HIMMELBLAU, Function
from gpmi.gp.kernels import RBF, Matern
from paper.tasks import functions, mackey_glass, tsunami
from paper.tasks.generated import draw
from paper.tasks.task import Task

SIDE = 32  # points along each side of a grid: our choice
_ROUGHNESS_SEED = 2014  # the year of the paper: our choice


def grid(f: Function) -> tuple[Array, Array]:
    """A 32 x 32 grid (our choice) with the corners of f's box in it, and f there; the last coordinate runs fastest."""
    sides = [np.linspace(lo, hi, SIDE) for lo, hi in f.bounds]
    x = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, len(sides))
    return x, np.array([f.f(point) for point in x])


def rough_mixture() -> tuple[Array, Array]:
    """The grid of the three bumps, plus 0.05 times one draw of a Matern-3/2 process of bandwidth 0.25.

    The draw is always the same. Its height and its prior are our choice.
    """
    x, values = grid(functions.MIXTURE)
    roughness = draw(Matern(nu=1.5, lengthscale=0.25), x, np.random.default_rng(_ROUGHNESS_SEED))
    return x, values + 0.05 * roughness


@dataclass(frozen=True)
class Fixed:
    """A table of inputs and values, the inputs mapped to the unit cube and the values to mean 0 and variance 1.

    The prior is a squared exponential learned once (`priors`), so that it is the same for every algorithm.
    """

    name: str
    table: Callable[[], tuple[Array, Array]]
    noise_sd: float = 0.0  # in units of the values' standard deviation

    def sample(self, rng: np.random.Generator) -> Task:
        """Always the same task; nothing is drawn from rng."""
        return _task(self)


@cache
def _task(source: Fixed) -> Task:
    x, values = source.table()
    low, high = x.min(axis=0), x.max(axis=0)
    prior = learned(source.name)
    return Task(
        source.name,
        (x - low) / (high - low),
        (values - values.mean()) / values.std(),
        source.noise_sd,
        None if prior is None else prior.kernel,
        None if prior is None else prior.noise_var,
    )


@dataclass(frozen=True)
class Learned:
    """A prior that paper.tasks.priors learned."""

    kernel: RBF
    noise_var: float
    likelihood: float  # leave-one-out, in nats for each row

    @property
    def lengthscales(self) -> list[float]:
        """One, or one for each coordinate."""
        scales: list[float] = np.atleast_1d(np.asarray(self.kernel.lengthscale, dtype=float)).tolist()
        return scales


def learned(name: str) -> Learned | None:
    """The prior of the task with this name; None for a name without one."""
    table = json.loads((files("paper.tasks") / "priors.json").read_text())
    if name not in table:
        return None
    p = table[name]
    kernel = RBF(lengthscale=p["lengthscale"], variance=p["variance"])
    return Learned(kernel, float(p["noise_var"]), float(p["log_likelihood_per_row"]))


FIXED = (
    Fixed("mixture", rough_mixture, noise_sd=0.01),
    Fixed("himmelblau", partial(grid, HIMMELBLAU)),
    Fixed("branin", partial(grid, functions.BRANIN)),
    Fixed("goldstein-price", partial(grid, functions.GOLDSTEIN_PRICE)),
    Fixed("log-goldstein-price", partial(grid, functions.LOG_GOLDSTEIN_PRICE)),
    Fixed("mackey-glass", mackey_glass.table),
    Fixed("tsunami", tsunami.table),
)


_SUFFIX = "-by-coordinate"


def by_coordinate(source: Fixed) -> Fixed:
    """The same task, its prior learned with one lengthscale for each coordinate."""
    return replace(source, name=source.name + _SUFFIX)


def without_suffix(name: str) -> str:
    """The name of a task whatever its prior."""
    return name.removesuffix(_SUFFIX)


BY_COORDINATE = tuple(by_coordinate(source) for source in FIXED)
