"""Does the engine keep its promises about speed? Appending, tracking, importing, and one suggestion next to Optuna.

    python benchmarks/engine.py                  every part; writes docs/benchmarks/engine.md; ten minutes
    python benchmarks/engine.py --only append    one part, printed only

All times are CPU seconds on one BLAS thread. The two sides of a ratio are measured in turns in the same run. Each turn
gives one ratio, and the median over the turns is compared with the promise. The exit status is 1 if a promise does not
hold, or could not be measured. `before_after.py` compares two versions of the engine.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import harness
import numpy as np
from problems.functions import Array, minus_hartmann6, wave
from scipy.linalg import lapack

import gpmi
from gpmi import Posterior, kernels
from gpmi.gp.lazy_search import lazy_argmax
from gpmi.gp.tracking import Tracked, first_best, moments_in_chunks
from gpmi.search.finite import best_row
from gpmi.search.objective import Objective

NEEDS = "peers"


# Ratios and promises


@dataclass(frozen=True)
class Promise:
    """A ratio that must be at least, or at most, a limit."""

    text: str
    limit: float
    ratios: Sequence[float]  # one per turn
    at_most: bool = False

    @property
    def measured(self) -> str:
        return ratio(self.ratios)

    @property
    def holds(self) -> bool:
        median = statistics.median(self.ratios)
        return median <= self.limit if self.at_most else median >= self.limit


Row = tuple[str, str, str]  # what, its CPU time, its ratio to the first row of the table


@dataclass(frozen=True)
class Part:
    """One part of the benchmark: what was done, its times, and the promises about them."""

    title: str
    how: str
    promises: Sequence[Promise]
    rows: Sequence[Row]
    remarks: Sequence[str] = ()
    skipped: str | None = None  # why it could not be measured


def cpu(seconds: Sequence[float]) -> str:
    """Return the median with the smallest and the largest, in milliseconds."""
    low, middle, high = (1e3 * v for v in (min(seconds), statistics.median(seconds), max(seconds)))
    return f"{middle:.3g} ms ({low:.3g} to {high:.3g})"


def ratio(ratios: Sequence[float]) -> str:
    """Return the median with the smallest and the largest."""
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    return f"{_short(middle)}x ({_short(low)} to {_short(high)})"


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10.0 else f"{value:.0f}"


def quotients(dear: Sequence[float], cheap: Sequence[float]) -> list[float]:
    """Return the ratio of each turn."""
    return [a / b for a, b in zip(dear, cheap, strict=True)]


def row(what: str, seconds: Sequence[float], first: Sequence[float]) -> Row:
    """Return a row of a part's table, whose first row took `first`."""
    return what, cpu(seconds), "1" if seconds is first else ratio(quotients(seconds, first))


class Times:
    """CPU seconds by name, with a value for each turn."""

    def __init__(self, *names: str) -> None:
        self.seconds: dict[str, list[float]] = {name: [] for name in names}

    def __getitem__(self, name: str) -> list[float]:
        return self.seconds[name]

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Add the time of the block."""
        begin = time.process_time()
        yield
        self.seconds[name].append(time.process_time() - begin)

    def show_last(self, turn: str) -> None:
        harness.say(f"  {turn}: " + ", ".join(f"{name} {1e3 * t[-1]:.3g} ms" for name, t in self.seconds.items()))


# 1. One more observation

APPEND_N, APPEND_D, APPEND_CHAIN, APPEND_TURNS = 2000, 6, 450, 9


def append() -> Part:
    """Compare adding one observation to n = 2,000 with a new factorisation."""
    n, first = APPEND_N, APPEND_N - APPEND_CHAIN // 2
    rng = np.random.default_rng(0)
    x, y = rng.random((first + APPEND_CHAIN, APPEND_D)), rng.standard_normal(first + APPEND_CHAIN)
    prior = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=0.5), noise_var=1e-2)
    c = prior.kernel(x[:n], x[:n]) + prior.noise_var * np.eye(n)
    times = Times("bare", "anew", "chain", "one", "branch")
    for turn in range(APPEND_TURNS):
        ready = c.copy(order="F")
        with times.of("bare"):
            lapack.dpotrf(ready, lower=1, clean=0, overwrite_a=1)
        with times.of("anew"):
            prior.condition(x[:n], y[:n])
        posterior = prior.condition(x[:first], y[:first])
        for i in range(first, n):
            posterior = posterior.condition(x[i], y[i : i + 1])
        _other = posterior.condition(x[n], y[n : n + 1])
        with times.of("branch"):
            posterior.condition(x[n + 1], y[n + 1 : n + 2])
        appends = chain(prior.condition(x[:first], y[:first]), x[first:], y[first:])
        times["chain"].append(statistics.fmean(appends))
        times["one"].append(statistics.median(appends))
        times.show_last(f"turn {turn + 1}")
    text = "adding one observation to n = 2,000, at least 30x cheaper than "
    return Part(
        "One more observation at n = 2,000",
        f"d = {APPEND_D}, Matern-5/2. The chain conditions a posterior of {first:,} observations on one after the "
        f"other up to {len(x):,}; its mean includes new segments of the factor, one at least on the way. A branch "
        f"conditions a posterior that was already extended by another observation, so the {n - first} rows of its last "
        "segment are copied. 'Bare' is LAPACK's dpotrf, in place, of the (n, n) matrix that lies ready.",
        [
            Promise(text + "a bare dpotrf", 30, quotients(times["bare"], times["chain"])),
            Promise(text + "a posterior computed anew", 30, quotients(times["anew"], times["chain"])),
        ],
        [
            row("chain, mean observation", times["chain"], times["chain"]),
            row("chain, median observation", times["one"], times["chain"]),
            row("branch", times["branch"], times["chain"]),
            row("bare dpotrf", times["bare"], times["chain"]),
            row("`Posterior.prior(...).condition(x, y)` anew", times["anew"], times["chain"]),
        ],
        [f"A branch is {ratio(quotients(times['bare'], times['branch']))} cheaper than a bare dpotrf."],
    )


def chain(posterior: Posterior, x: Array, y: Array) -> list[float]:
    """Return the CPU seconds of each observation, added one by one."""
    seconds = []
    for i in range(len(x)):
        begin = time.process_time()
        posterior = posterior.condition(x[i], y[i : i + 1])
        seconds.append(time.process_time() - begin)
    return seconds


# 2. One step on tracked candidates

STEP_N, STEP_M, STEP_D, STEP_TURNS = 200, 100_000, 4, 15


def step() -> Part:
    """Compare tell + ask on 1e5 candidates with computing the variances of all of them."""
    rng = np.random.default_rng(0)
    z = rng.random((STEP_M, STEP_D))
    opt = gpmi.Optimizer(z, gpmi.GPMI(), kernel=kernels.RBF(lengthscale=0.3), noise_var=1e-2, seed=0)
    for number in rng.integers(STEP_M, size=STEP_N - STEP_TURNS // 2 - 1):
        opt.tell(z[number], wave(z[number]))
    x = opt.ask()
    before = model_of(opt)
    tracked, bound = Tracked.start(before, z), None
    times = Times("round", "follow", "direct", "bare", "lazy")
    for turn in range(STEP_TURNS):
        y = wave(x)
        with times.of("round"):
            opt.tell(x, y)
            x = opt.ask()
        posterior = model_of(opt)
        objective = objective_of(opt, posterior)
        with times.of("follow"):
            tracked = tracked.follow(posterior)
            found, _ = best_row(objective, z, None, tracked, None, rng)
        with times.of("direct"):
            mu, var = moments_in_chunks(posterior, z)
        times["bare"].append(bare_variances(posterior, z))
        with times.of("lazy"):
            lazy, bound = lazy_argmax(posterior, z, objective.index, bound)
        direct = first_best(objective.score(mu, var))
        assert found.number == lazy == direct and np.array_equal(z[direct], x), "the ways disagree on the argmax"
        times.show_last(f"turn {turn + 1}")
    text = "one step on 1e5 tracked candidates at n = 200, at least 10x cheaper than recomputing all variances"
    return Part(
        "One step on 1e5 tracked candidates at n = 200",
        f"d = {STEP_D}, RBF, n = {before.n + 1} to {before.n + STEP_TURNS}, given prior, GP-MI. `tell` + `ask` is the "
        "Optimizer's whole round. 'Direct' is `moments_in_chunks`: the kernel matrix, the triangular solve, mu and "
        "var, without score and argmax. 'Bare' leaves out the kernel matrix as well. All ways chose the same row.",
        [Promise(text, 10, quotients(times["direct"], times["round"]))],
        [
            row("`tell` + `ask`", times["round"], times["round"]),
            row("`Tracked.follow` + score + argmax", times["follow"], times["round"]),
            row("direct: all variances", times["direct"], times["round"]),
            row("bare: triangular solve and squares only", times["bare"], times["round"]),
            row("`lazy_argmax`, bounds kept", times["lazy"], times["round"]),
        ],
    )


def model_of(opt: gpmi.Optimizer) -> Posterior:
    posterior = opt.posterior
    assert posterior is not None
    return posterior


def objective_of(opt: gpmi.Optimizer, posterior: Posterior) -> Objective:
    """Return what the last `ask` maximised. Its gamma_hat is in the trial; GP-MI reads nothing else that changes."""
    gamma_hat = opt.trials[-1].gamma_hat
    assert gamma_hat is not None
    told = [trial for trial in opt.trials if trial.status == "told"]
    state = gpmi.State(
        t=1 + sum(trial.origin == "policy" for trial in told),
        gamma_hat=gamma_hat,
        noise_var=posterior.noise_var,
        best_observed=float(posterior.y.max()),
        best_mean=float(posterior.mu_at_observed.max()),
        size=STEP_M,
        dim=STEP_D,
        horizon=None,
    )
    return Objective(posterior, opt.policy, state, 1.0)


def bare_variances(posterior: Posterior, z: Array) -> float:
    """Return the CPU seconds of L^-1 k(x, z) and its column norms, without those of the kernel matrices."""
    seconds = 0.0
    for begin in range(0, len(z), 20_000):
        k = posterior.kernel(z[begin : begin + 20_000], posterior.x).T
        start = time.process_time()
        v = posterior.factor.solve(k)
        np.einsum("ij,ij->j", v, v)
        seconds += time.process_time() - start
    return seconds


# 3. Importing

IMPORT_TURNS = 25


def importing() -> Part:
    """Compare `import gpmi` with the import of what it needs, in fresh interpreters."""
    statements = {"nothing": "pass", "base": "import numpy, scipy.linalg", "gpmi": "import gpmi"}
    for statement in statements.values():
        child_seconds(statement)  # compiles, and reads from the disk
    times = Times(*statements)
    for turn in range(IMPORT_TURNS):
        for name, statement in statements.items():
            times[name].append(child_seconds(statement))
        times.show_last(f"turn {turn + 1}")
    start = statistics.median(times["nothing"])
    net = {name: [t - start for t in times[name]] for name in ("base", "gpmi")}
    return Part(
        "Importing",
        f"User and system time of a fresh interpreter, {IMPORT_TURNS} of each in turns. The promise is held against "
        "the net times: the start of the interpreter is taken from both.",
        [
            Promise(
                "`import gpmi`, at most 1.6x `import numpy, scipy.linalg`",
                1.6,
                quotients(net["gpmi"], net["base"]),
                at_most=True,
            )
        ],
        [
            row("`import numpy, scipy.linalg`", times["base"], times["base"]),
            row("`import gpmi`", times["gpmi"], times["base"]),
            row("an interpreter that imports nothing", times["nothing"], times["base"]),
        ],
    )


def child_seconds(statement: str) -> float:
    """Return the user and system seconds of an interpreter that runs one statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


# 4. One suggestion with a learned prior

SUGGEST_N, SUGGEST_ROUNDS, SUGGEST_TURNS, SUGGEST_REPEATS = 100, 20, 5, 3
PEERS = {
    "gpmi": "`gpmi.Optimizer`, policy=None",
    "optuna": "Optuna GPSampler, deterministic_objective=True",
    "noisy": "Optuna GPSampler, defaults",
    "sequential": "Optuna GPSampler, deterministic_objective=True, without greenlet",
}


def suggest() -> Part:
    """Compare rounds of ask + tell on Hartmann-6 with Optuna's GPSampler, each in a fresh process."""
    title = "One suggestion with a learned prior on Hartmann-6 at n = 100"
    text = "one suggestion with a learned prior on Hartmann-6 at n = 100, at least 10x cheaper than Optuna's GPSampler"
    missing = [name for name in ("optuna", "torch", "greenlet") if importlib.util.find_spec(name) is None]
    if missing:
        return Part(title, text, [], [], skipped=f"not installed: {', '.join(missing)} (see `make bench-setup`)")
    means, median_round = Times(*PEERS), []
    best: dict[str, list[float]] = {peer: [] for peer in PEERS}
    for seed in range(SUGGEST_TURNS):
        for peer in PEERS:
            result = harness.measure(__file__, "--child", peer, "--seed", seed)
            means[peer].append(statistics.fmean(result["seconds"]))
            best[peer].append(result["best"])
            if peer == "gpmi":
                median_round.append(statistics.median(result["seconds"]))
        means.show_last(f"seed {seed}")
    return Part(
        title,
        f"The mean of `ask` + `tell` over {SUGGEST_ROUNDS} rounds after the same {SUGGEST_N} random points, fits "
        f"included, for {SUGGEST_TURNS} seeds, the median of {SUGGEST_REPEATS} equal runs for each. The function's own "
        "time is left out, and a short run of the same kind "
        "comes first, so that imports do not count. Optuna runs as its documentation recommends, with "
        "OMP_NUM_THREADS=1, and with greenlet, without which it warns and polishes its starts one by one. 'Best' is "
        "the median over the seeds of the smallest value seen (the minimum is -3.322).",
        [Promise(text, 10, quotients(means["optuna"], means["gpmi"]))],
        [
            *[row(f"{PEERS[p]}; best {statistics.median(best[p]):.3f}", means[p], means["gpmi"]) for p in PEERS],
            row("`gpmi.Optimizer`, the median round", median_round, means["gpmi"]),
        ],
    )


def child(peer: str, seed: int) -> None:
    """Make one run in this process, and print the CPU seconds of each round and the best value seen."""
    warnings.simplefilter("ignore")
    run = gpmi_rounds if peer == "gpmi" else optuna_rounds(greenlet=peer != "sequential", deterministic=peer != "noisy")
    x = np.random.default_rng(seed).random((SUGGEST_N, 6))
    run(np.random.default_rng([seed, 1]).random((30, 6)), 1, seed)  # imports and first calls
    runs = []
    for _ in range(SUGGEST_REPEATS):  # the same run each time: the machine is shared, and a run is short
        gc.collect()
        runs.append(run(x, SUGGEST_ROUNDS, seed))
    seconds, best = sorted(runs, key=lambda one: sum(one[0]))[len(runs) // 2]
    print(json.dumps({"seconds": seconds, "best": best}))


def gpmi_rounds(x: Array, rounds: int, seed: int) -> tuple[list[float], float]:
    """Return the CPU seconds of each ask + tell after the points x, and the smallest value."""
    opt = gpmi.Optimizer([(0.0, 1.0)] * 6, seed=seed, goal="min")
    for point in x:
        opt.tell(point, minus_hartmann6(point))
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        point = opt.ask()
        asked = time.process_time()
        y = minus_hartmann6(point)
        evaluated = time.process_time()
        opt.tell(point, y)
        seconds.append(time.process_time() - evaluated + asked - begin)
    assert opt.best is not None and opt.best.y is not None
    return seconds, opt.best.y


def optuna_rounds(greenlet: bool, deterministic: bool) -> Callable[[Array, int, int], tuple[list[float], float]]:
    """Return the same for Optuna's GPSampler."""
    if not greenlet:
        sys.modules["greenlet"] = None  # type: ignore[assignment]  # the import fails, as where it is not installed
    import optuna
    import torch

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = [f"x{j}" for j in range(6)]
    distributions = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in names}

    def run(x: Array, rounds: int, seed: int) -> tuple[list[float], float]:
        sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=deterministic)
        study = optuna.create_study(direction="minimize", sampler=sampler)
        for point in x:
            params = dict(zip(names, map(float, point), strict=True))
            told = optuna.trial.create_trial(params=params, distributions=distributions, value=minus_hartmann6(point))
            study.add_trial(told)
        seconds = []
        for _ in range(rounds):
            begin = time.process_time()
            trial = study.ask(distributions)
            asked = time.process_time()
            y = minus_hartmann6(np.array([trial.params[name] for name in names]))
            evaluated = time.process_time()
            study.tell(trial, y)
            seconds.append(time.process_time() - evaluated + asked - begin)
        return seconds, study.best_value

    return run


# The report

PARTS: dict[str, Callable[[], Part]] = {"append": append, "step": step, "import": importing, "suggest": suggest}


def promise_table(parts: Sequence[Part]) -> list[str]:
    lines = ["| promise | measured | holds |", "|---|---|---|"]
    for part in parts:
        lines += [f"| {p.text} | {p.measured} | {harness.yes(p.holds)} |" for p in part.promises]
        if part.skipped:
            lines.append(f"| {part.how} | {part.skipped} | **not measured** |")
    return lines


def part_table(part: Part) -> list[str]:
    lines = ["| what | CPU time | ratio |", "|---|---|---|"]
    lines += [f"| {what} | {seconds} | {times} |" for what, seconds, times in part.rows]
    return [*lines, *(line for remark in part.remarks for line in ("", remark))]


def report(parts: Sequence[Part]) -> None:
    """Write the page."""
    text = (
        "CPU times on one BLAS thread; a ratio is the median over turns in the same run, and the smallest and the "
        "largest of them stand behind it. Trust the ratios, not the milliseconds."
    )
    lines = promise_table(parts)
    for part in parts:
        if part.skipped is None:
            lines += ["", f"## {part.title}", "", part.how, "", *part_table(part)]
    harness.page(__file__, "The engine, measured", text, lines)


def main() -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("--only", choices=PARTS, help="run one part and write no page")
    parser.add_argument("--child", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.seed)
        return 0
    parts = []
    for name in [arguments.only] if arguments.only else PARTS:
        harness.say(f"{name}: {PARTS[name].__doc__}")
        part = PARTS[name]()
        harness.say("\n".join(["", *([] if part.skipped else [*part_table(part), ""]), *promise_table([part]), ""]))
        parts.append(part)
    if not arguments.only:
        report(parts)
    holds = all(not part.skipped and all(promise.holds for promise in part.promises) for part in parts)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
