"""Play studies on a table of past experiments, to see how many of them gpmi would have saved."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpmi._support import checks
from gpmi._support.processes import end_with_the_parent
from gpmi.optimizer import Optimizer
from gpmi.run.backtest_result import BacktestResult
from gpmi.run.past_experiments import PastExperiments
from gpmi.run.pools import MOST_WORKERS
from gpmi.trials.goals import checked_goal

SEEDS, BUDGET = 20, 100  # our choices: a median of 20 runs is stable enough to decide, 100 experiments are a long study
MOST_SEEDS = 10_000


@checks.with_name_hints
def backtest(
    table: Any,
    value: str,
    *,
    goal: Literal["max", "min"] = "max",
    ignore: Sequence[str] = (),
    batch: int | Sequence[int] = (),
    budget: int | None = None,
    seeds: int = SEEDS,
    seed: int = 0,
    as_done: bool = False,
    repeats: bool = False,
    workers: int = 1,
    progress: bool = False,
) -> BacktestResult:
    """Play studies on a table of past experiments, and count how many of them gpmi would have saved.

    A run asks for a row, reads its value in the table, and asks for the next one, until it has found the best row or
    its budget is spent. It is compared with a random order of the rows, whose expectation is computed exactly.

    Rows with equal parameters are replicates of one candidate. The truth of a candidate is the mean of its values, and
    an experiment draws one of them. Rows with a missing cell are left out; `events` of the result counts them.

    Parameters
    ----------
    table : the path of a file (.csv, .tsv, .xlsx, .ods, .parquet), a DataFrame, or a dict of columns.
    value : the column with what was measured. All other columns are parameters, numbers or words.
    goal : whether large values are good ("max") or small ones ("min").
    ignore : columns that are no parameters, such as names of samples or dates; patterns such as "*_id" work, too.
    batch : how many experiments are done at the same time: a number or several. One at a time is always played.
    budget : the experiments of a run, by default the number of different rows, 100 at most.
    seeds : the number of runs; the first has the seed `seed`.
    as_done : whether the rows are in the order in which they were done, to be compared with, too.
    repeats : whether a row may be tried again, as where values are noisy.
    workers : the number of processes. The result does not depend on it. A script that gives more than one needs
        `if __name__ == "__main__":` around its own code.
    progress : whether to show on stderr how many runs are finished, if it takes over two seconds (needs the extra
        `cli`).

    Examples
    --------
    >>> table = {"x": list(range(30)), "y": [-((x - 22) ** 2) for x in range(30)]}
    >>> result = backtest(table, "y", seeds=3, budget=15)
    >>> result.targets[-1].name, result.targets[-1].needed["random order"].half
    ('one of the best 5 % of the rows', 6)
    """
    checked_goal(goal)
    past = PastExperiments.of(table, value, ignore)
    batches = _batches(batch)
    setting = BacktestSetting(past, goal, _budget(budget, past, checks.flag("repeats", repeats)), bool(repeats))
    first = checks.whole("seed", seed, 0, checks.LARGEST_SEED)
    played = [first + i for i in range(checks.whole("seeds", seeds, 1, MOST_SEEDS))]
    jobs = [(play, size) for size in batches for play in played]
    chosen: dict[tuple[int, int], list[int]] = {}
    size = checks.whole("workers", workers, 1, MOST_WORKERS)
    display = _display(len(jobs)) if checks.flag("progress", progress) else nullcontext(_ignore)
    with display as advance, closing(_play_all(setting, jobs, size)) as finished:
        for job, rows in finished:
            chosen[job] = rows
            advance()
    runs = {size: [chosen[play, size] for play in played] for size in batches}
    done = checks.flag("as_done", as_done)
    return BacktestResult.of(past, goal, runs, seeds=played, budget=setting.budget, as_done=done)


@dataclass(frozen=True, eq=False)
class BacktestSetting:
    """What all runs of a backtest share."""

    past: PastExperiments
    goal: Literal["max", "min"]
    budget: int
    repeats: bool


def play(setting: BacktestSetting, job: tuple[int, int]) -> list[int]:
    """Return the rows that a run tries, in order, until the best one is among them. A job is a seed and a batch."""
    seed, batch = job
    past, budget = setting.past, setting.budget
    truth = past.truth
    optimum = truth.max() if setting.goal == "max" else truth.min()
    rng = np.random.default_rng([seed, batch])  # which replicate is measured
    optimizer = Optimizer(past.space, goal=setting.goal, repeats=setting.repeats, seed=seed, budget=budget)
    rows = list[int]()
    while len(rows) < budget:
        for x in optimizer.ask(min(batch, budget - len(rows))):
            row = int(x.label)  # a point of a table has one
            rows.append(row)
            optimizer.tell(x, float(rng.choice(past.values[row])))
        if optimum in truth[rows]:
            break
    return rows


def _play_all(
    setting: BacktestSetting, jobs: Sequence[tuple[int, int]], workers: int
) -> Generator[tuple[tuple[int, int], list[int]], None, None]:
    """Yield the jobs with their rows as they finish, from several processes if there are several workers."""
    if workers == 1 or len(jobs) == 1:
        yield from ((job, play(setting, job)) for job in jobs)
        return
    import multiprocessing
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed

    # New processes instead of forks: a fork copies locks that threads of BLAS or of a progress bar may hold.
    context = multiprocessing.get_context("spawn")
    size = min(workers, len(jobs))
    with ProcessPoolExecutor(size, mp_context=context, initializer=_start_worker) as pool:
        try:
            futures = {pool.submit(play, setting, job): job for job in jobs}
            yield from ((futures[future], future.result()) for future in as_completed(futures))
        except BrokenExecutor as error:
            why = 'it had too little memory, or the script has no `if __name__ == "__main__":`'
            raise ChildProcessError(f"a process of the backtest died: {why}; give workers=1") from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _start_worker() -> None:
    """Prepare a worker. Ctrl-C ends it without a traceback, and so does the end of its parent."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_the_parent()


def _batches(batch: Any) -> list[int]:
    """Return the sizes of batches to play: 1, and those that were asked for."""
    given: Iterable[Any] = batch if isinstance(batch, Sequence) and not isinstance(batch, str) else [batch]
    return list(dict.fromkeys([1, *(checks.whole("batch", size, 1) for size in given)]))


def _budget(budget: int | None, past: PastExperiments, repeats: bool) -> int:
    rows = len(past.values)
    if budget is None:
        return min(rows, BUDGET)
    wanted = checks.whole("budget", budget, 1)
    if wanted > rows and not repeats:
        raise ValueError(f"budget is {wanted}, but the table has {rows} different rows; give at most {rows}")
    return wanted


def _ignore() -> None:
    pass


def _display(total: int) -> Any:
    from gpmi.run.progress import counted  # needs rich

    return counted(total, "runs")
