"""What a task is: rows that may be queried, their values, and the noise on what is observed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpmi._support.types import Array
from gpmi.gp.kernels import Kernel

N_INIT = 10  # the paper's number of random initial observations


@dataclass(frozen=True, eq=False)
class Task:
    """f on a finite set, to be maximised, and the prior with which every algorithm meets it.

    Regret is max f - f(x_t) without noise; it is counted after the initial observations (our choice). A row may be
    queried again (our choice).
    """

    name: str
    candidates: Array  # (n, d)
    values: Array  # (n,), f without noise
    noise_sd: float  # the standard deviation of the noise on an observation
    kernel: Kernel | None  # None: to be learned
    noise_var: float | None  # of the model; with a learned prior it is not noise_sd^2. None: to be learned

    def __post_init__(self) -> None:
        for field in ("candidates", "values"):
            array = np.array(getattr(self, field), dtype=float)
            array.setflags(write=False)  # a fixed task is made once and shared
            object.__setattr__(self, field, array)

    @cached_property
    def optimum(self) -> int:
        """The row of the maximum, the lowest of those that tie."""
        return int(np.argmax(self.values))

    @property
    def maximum(self) -> float:
        """max f over the candidates."""
        return float(self.values[self.optimum])

    def initial(self, rng: np.random.Generator, n: int = N_INIT) -> NDArray[np.intp]:
        """n different rows at random, each set of rows equally likely."""
        return rng.choice(len(self.values), size=n, replace=False)

    def observe(self, row: int, rng: np.random.Generator) -> float:
        """y ~ N(f(row), noise_sd^2). Without noise nothing is drawn from rng."""
        f = float(self.values[row])
        return f + self.noise_sd * float(rng.standard_normal()) if self.noise_sd > 0.0 else f

    def regret(self, rows: NDArray[np.intp]) -> Array:
        """max f - f(row), without noise, for each of the rows queried."""
        regret: Array = self.maximum - self.values[rows]
        return regret


class Source(Protocol):
    """Where the task of a repetition comes from."""

    @property
    def name(self) -> str: ...

    def sample(self, rng: np.random.Generator) -> Task:
        """The task of one repetition: a new draw of a generated process, always the same of a fixed function."""
        ...
