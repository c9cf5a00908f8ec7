"""What is run: every algorithm on every task, repeatedly, in several processes, into one table.

Every algorithm has the same draws, initial observations, noise and prior. A run depends on its seed, task,
algorithm, repetition and horizon, and on nothing else: neither on the process it runs in nor on what ran before.
"""

from __future__ import annotations

import multiprocessing
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Literal

import numpy as np

from gpmi._support.processes import end_with_the_parent
from gpmi._support.types import Array
from gpmi.gp.kernels import RBF, Kernel
from gpmi.gp.linalg import one_blas_thread
from gpmi.policies import GPMI, GPUCB, LogEI, Policy, Reinvest, Thompson, VarianceBonus
from gpmi.theory import observe_regret
from paper.simulate import Problem, prior_draw, scores, simulate, triangular_root
from paper.table import Row
from paper.tasks import TASKS
from paper.tasks.fixed import BY_COORDINATE, without_suffix
from paper.tasks.generated import GENERATED_2, GENERATED_4
from paper.tasks.task import N_INIT, Source, Task

DELTA = 1e-6  # of GP-MI, GP-UCB and Corollary 1, as in the paper
DEFAULT = "gpmi's default"
PLACE_KNOWN, VALUE_KNOWN = "GP-MI, regret observed, x* known", "GP-MI, regret observed, max f known"
DELTAS = (1e-9, 1e-6, 1e-3, 1e-1)  # of Figure 4: our choice

# EI is maximised by its logarithm, which has the same argmax and does not underflow.
ALGORITHMS: Mapping[str, Policy] = {
    "GP-MI": GPMI(DELTA),
    "GP-UCB": GPUCB(DELTA),
    "GP-UCB / 5": GPUCB(DELTA, scale=0.2),
    "EI, best observed": LogEI("observed"),
    "EI, best mean": LogEI("mean"),
    "Corollary 1": VarianceBonus(DELTA),
    "Thompson": Thompson(),
    DEFAULT: Reinvest(),
}


def with_delta(name: str, delta: float) -> str:
    """The name of GP-MI or GP-UCB with this delta; with the paper's it is the name itself."""
    return name if delta == DELTA else f"{name}, delta = {delta:g}"


_POLICIES: Mapping[str, Policy] = {
    **{with_delta("GP-MI", delta): GPMI(delta) for delta in DELTAS},
    **{with_delta("GP-UCB", delta): GPUCB(delta) for delta in DELTAS},
    **ALGORITHMS,
}


@dataclass(frozen=True, eq=False)
class Drawn:
    """A draw of the prior at fixed points, new in every repetition."""

    name: str
    x: Array
    kernel: Kernel
    noise_sd: float = 0.1

    def sample(self, rng: np.random.Generator) -> Task:
        """A new function at the same points. O(n^3)."""
        f = prior_draw(triangular_root(self.kernel(self.x, self.x)), rng)
        return Task(self.name, self.x, f, self.noise_sd, self.kernel, self.noise_sd**2)


# In the paper's order.
PANELS = (
    "generated-2",
    "generated-4",
    "mixture",
    "himmelblau",
    "branin",
    "goldstein-price",
    "tsunami",
    "mackey-glass",
)
BESIDE: Mapping[str, Source] = {
    "generated-2-nu-3": replace(GENERATED_2, name="generated-2-nu-3", nu=3.0),
    "generated-4-nu-3": replace(GENERATED_4, name="generated-4-nu-3", nu=3.0),
    "log-goldstein-price": TASKS["log-goldstein-price"],
}
# The prior of the fixed tasks with one lengthscale for each coordinate, where the paper says nothing of it.
OWN_SCALES: Mapping[str, Source] = {source.name: source for source in BY_COORDINATE}
HORIZONS = (50, 100)  # besides the last step: the paper states no T, and some of its sentences hold for one only
# A prior in which 50 points one unit apart know nothing of each other, and a smooth line of 300 points.
ERRATUM: Mapping[str, Drawn] = {
    "arms": Drawn("arms", np.arange(50.0)[:, None], RBF(lengthscale=0.01)),
    "line": Drawn("line", np.linspace(0.0, 1.0, 300)[:, None], RBF(lengthscale=0.05)),
}
ERRATUM_ALGORITHMS = ("GP-MI", "GP-UCB", DEFAULT, PLACE_KNOWN, VALUE_KNOWN)
_KNOWLEDGE: Mapping[str, Literal["place", "value"]] = {PLACE_KNOWN: "place", VALUE_KNOWN: "value"}
SOURCES: Mapping[str, Source] = {**{name: TASKS[name] for name in PANELS}, **BESIDE, **OWN_SCALES, **ERRATUM}


@dataclass(frozen=True)
class Cell:
    """One run that is wanted."""

    task: str
    algorithm: str
    repetition: int
    seed: int
    horizon: int

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        """The key of the Row that it becomes."""
        return self.task, self.algorithm, self.repetition, self.seed, self.horizon


def cells(tasks: Iterable[str], runs: int, horizon: int, seed: int) -> list[Cell]:
    """All runs of these tasks. Those of the erratum are ten times as long, because a lock-in takes time to show."""
    wanted = []
    for task in tasks:
        algorithms: Sequence[str] = ERRATUM_ALGORITHMS if task in ERRATUM else tuple(ALGORITHMS)
        if task == "himmelblau":
            others = [with_delta(name, delta) for name in ("GP-MI", "GP-UCB") for delta in DELTAS if delta != DELTA]
            algorithms = (*algorithms, *others)
        steps = 10 * horizon if task in ERRATUM else horizon
        wanted += [Cell(task, name, i, seed, steps) for i in range(runs) for name in algorithms]
    return wanted


@one_blas_thread
def perform(wanted: Sequence[Cell]) -> list[Row]:
    """The rows of runs that share their task, repetition and seed."""
    first = wanted[0]
    changes = first.task in ERRATUM or first.task.startswith("generated")  # in every repetition
    task, problem = _sampled(first.task, *((first.seed, first.repetition) if changes else (0, 0)))
    return [_run(task, problem, cell) for cell in wanted]


@lru_cache(maxsize=1)
def _sampled(name: str, seed: int, repetition: int) -> tuple[Task, Problem]:
    task = SOURCES[name].sample(_rng(name, seed, repetition, 0))
    return task, Problem.of(task)


def _run(task: Task, problem: Problem, cell: Cell) -> Row:
    started = time.process_time()
    queries = _queries(task, problem, cell)
    cpu = time.process_time() - started
    return Row(*cell.key, cpu, tuple(queries), tuple(task.regret(np.array(queries)).tolist()))


def _queries(task: Task, problem: Problem, cell: Cell) -> list[int]:
    if cell.algorithm in _KNOWLEDGE:
        assert task.kernel is not None
        knows = _KNOWLEDGE[cell.algorithm]
        observed = observe_regret(
            task.kernel, task.candidates, task.values, cell.horizon, policy=GPMI(DELTA), knows=knows
        )
        return [int(row) for row in observed.rows]
    rng = _rng(cell.task, cell.seed, cell.repetition, 1)
    initial = 0 if cell.task in ERRATUM else N_INIT
    return simulate(problem, scores(_POLICIES[cell.algorithm], cell.horizon), rng, initial, cell.horizon)


def _rng(task: str, seed: int, repetition: int, stream: int) -> np.random.Generator:
    # A task meets the same initial points whatever its prior.
    return np.random.default_rng([seed, zlib.crc32(without_suffix(task).encode()), repetition, stream])


def run_all(wanted: Sequence[Cell], cores: int) -> Iterator[list[Row]]:
    """The rows of all cells, as they are done. Cells that share a task and a repetition run in one process."""
    blocks = iter([list(block) for _, block in groupby(wanted, key=lambda cell: (cell.task, cell.repetition))])
    # New processes instead of forks: a fork copies locks that threads of BLAS or of a progress bar may hold.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=context, initializer=end_with_the_parent) as pool:
        pending: set[Future[list[Row]]] = set()
        try:
            while True:
                while len(pending) < 2 * cores and (block := next(blocks, None)) is not None:
                    pending.add(pool.submit(perform, block))
                if not pending:
                    return
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
