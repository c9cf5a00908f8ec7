"""Policies on the paper's tasks and on what breaks them: why the default is what it is.

    python benchmarks/policies.py [--cores 2]     writes policies.md and policies.csv in docs/benchmarks

A run whose row is in the table is not repeated, so the work can be stopped and taken up again; after a change of a
policy remove its rows.

Every policy sees the same tasks, initial points, noise, kernel and noise_var. Runs are those of
`gpmi.paper.simulate`; scores come from the library, and from here for the rules that were tried and not taken.

R_T / T is the mean noise-free regret of the queries after the initial design. A run is stuck when the mean regret of
its last 50 queries exceeds 0.1, in standard deviations of f.
"""

# ruff: noqa: E402  (the threads must be set before NumPy is imported)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import csv
import platform
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gpmi
from gpmi.paper.simulate import Problem, Run, Scores, scores, simulate, triangular_root
from gpmi.paper.tasks import TASKS

Array = NDArray[np.float64]
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
LAST, STUCK = 50, 0.1
COLUMNS = ("scenario", "policy", "repetition", "mean_regret", "last_regret", "found")


# The rules that were tried


@dataclass(frozen=True)
class Weighted(gpmi.Policy):
    """mu + c w_t EI(x; best mean), w_t = min(t, T - t + 1) or, with `rest`, T - t + 1."""

    c: float = 1.0
    rest: bool = False

    def score(self, mu: Array, var: Array, state: gpmi.State) -> Array:
        left = state.t if state.horizon is None else state.horizon - state.t + 1
        weight = left if self.rest else min(state.t, left)
        return mu + self.c * weight * gpmi.EI("mean").score(mu, var, state)


class Tried(gpmi.Policy):
    """A rule that looks at more than mu, var and the state."""

    def choose(self, run: Run, state: gpmi.State) -> Array:
        raise NotImplementedError

    def scores(self, horizon: int | None) -> Scores:
        return lambda run: self.choose(run, run.state(horizon))


@dataclass(frozen=True)
class InformationRatio(Tried):
    """-(E[max f] - mu)^2 / information of a query; E[max f] by four posterior draws."""

    def choose(self, run: Run, state: gpmi.State) -> Array:
        top = float(np.mean([run.draw().max() for _ in range(4)]))
        gap = np.maximum(top - run.mu, 1e-9)
        return -(gap**2) / np.maximum(np.log1p(run.var / state.noise_var), 1e-300)


@dataclass(frozen=True)
class Pims(Tried):
    """argmax of the probability to improve on the maximum of a draw (Takeno et al. 2024)."""

    def choose(self, run: Run, state: gpmi.State) -> Array:
        return (run.mu - run.draw().max()) / np.sqrt(np.maximum(run.var, 1e-300))


@dataclass(frozen=True)
class Restarted(Tried):
    """GP-MI whose gamma_hat starts anew after each query that taught less than the noise: log 2 / 2 nats."""

    alpha: float = 1.0

    def choose(self, run: Run, state: gpmi.State) -> Array:
        fresh = replace(state, gamma_hat=since_restart(run))
        return run.mu + gpmi.GPMI(alpha=self.alpha).phi(run.var, fresh)


@dataclass(frozen=True)
class WithGammaHat(Tried):
    """The default with GP-MI's phi in place of sqrt(alpha) sd, gamma_hat started anew as in `Restarted`."""

    def choose(self, run: Run, state: gpmi.State) -> Array:
        default = gpmi.Reinvest()
        k, alpha = default.share(state), np.log(2 * state.t**2 / default.delta)
        paid = gpmi.GPMI(alpha=alpha).phi(run.var, replace(state, gamma_hat=since_restart(run)))
        back = default.c * default.queries_left(state) * gpmi.EI("mean").score(run.mu, run.var, state)
        return run.mu + k * np.minimum(paid, back)


@dataclass(frozen=True)
class Uncapped(gpmi.Reinvest):
    """The default without c H EI: phi = k sqrt(alpha_t) sd."""

    def score(self, mu: Array, var: Array, state: gpmi.State) -> Array:
        return mu + self.share(state) * np.sqrt(np.log(2 * state.t**2 / self.delta) * var)


def since_restart(run: Run) -> float:
    """gamma_hat since the last of the policy's queries whose variance was below noise_var."""
    var = run.queried_var[run.initial :]
    small = np.flatnonzero(var < run.problem.noise_var)
    return float(var[small[-1] + 1 :].sum() if len(small) else var.sum())


PEERS: dict[str, gpmi.Policy] = {
    "GP-MI": gpmi.GPMI(),
    "GP-UCB": gpmi.GPUCB(),
    "GP-UCB / 5": gpmi.GPUCB(scale=0.2),
    "EI, best observed": gpmi.LogEI("observed"),
    "EI, best mean": gpmi.LogEI("mean"),
    "Thompson": gpmi.Thompson(),
    "PIMS": Pims(),
}
DEFAULT, WITH_GAMMA_HAT = "Reinvest, the default", "gamma_hat kept, restarted"
ABLATIONS: dict[str, gpmi.Policy] = {
    "c = 1": gpmi.Reinvest(c=1.0),
    "c = 100": gpmi.Reinvest(c=100.0),
    "delta = 1e-6": gpmi.Reinvest(delta=1e-6),
    "every promise trusted: k = 1": gpmi.Reinvest(floor=1.0),
    "no c H EI": Uncapped(),
    WITH_GAMMA_HAT: WithGammaHat(),
}
TRIED: dict[str, gpmi.Policy] = {
    "0.3 min(t, T - t) EI": Weighted(0.3),
    "10 min(t, T - t) EI": Weighted(10.0),
    "(T - t) EI": Weighted(1.0, rest=True),
    "GP-MI restarted, alpha = 1": Restarted(1.0),
    "GP-MI restarted, alpha = 4": Restarted(4.0),
    "information ratio": InformationRatio(),
}
NO_HORIZON = "no horizon"
POLICIES = {DEFAULT: gpmi.Reinvest(), **PEERS, **ABLATIONS, **TRIED, NO_HORIZON: gpmi.Reinvest()}


# Where they run


@dataclass(frozen=True)
class Scenario:
    """f on a finite set with its prior, values in standard deviations; how many random queries, and how many more."""

    problem: Problem
    initial: int
    horizon: int


def arms(seed: int) -> Scenario:
    """50 independent N(0, 1) arms, noise sd 0.1."""
    f = np.random.default_rng([seed, 50]).standard_normal(50)
    return Scenario(Problem.given(np.eye(50), f, 0.1, 0.01), initial=0, horizon=2000)


def line(lengthscale: float) -> Callable[[int], Scenario]:
    """A draw of the squared-exponential process on 300 points of [0, 1], noise sd 0.1."""

    def make(seed: int) -> Scenario:
        covariance, root = _line(lengthscale)
        f = root @ np.random.default_rng([seed, 300]).standard_normal(300)
        return Scenario(Problem.given(covariance, f, 0.1, 0.01), initial=0, horizon=2000)

    return make


@lru_cache
def _line(lengthscale: float) -> tuple[Array, Array]:
    x = np.linspace(0.0, 1.0, 300)[:, None]
    covariance = gpmi.kernels.RBF(lengthscale=lengthscale)(x, x)
    return covariance, triangular_root(covariance)


def paper(name: str) -> Callable[[int], Scenario]:
    """One of the paper's tasks: ten random initial points, T = 200."""

    def make(seed: int) -> Scenario:
        return Scenario(_problem(name, seed if name.startswith("generated") else 0), initial=10, horizon=200)

    return make


@lru_cache(maxsize=4)
def _problem(name: str, seed: int) -> Problem:
    return Problem.of(TASKS[name].sample(np.random.default_rng([zlib.crc32(name.encode()), seed])))


HARD = {"50 arms": arms, **{f"line, lengthscale {v:g}": line(v) for v in (0.01, 0.05, 0.2)}}
SCENARIOS: dict[str, Callable[[int], Scenario]] = {**{name: paper(name) for name in TASKS}, **HARD}


def work(scenario_name: str, policy_name: str, seeds: range) -> list[list[object]]:
    """Rows of the table."""
    rows = []
    for seed in seeds:
        scenario, policy = SCENARIOS[scenario_name](seed), POLICIES[policy_name]
        horizon = None if policy_name == NO_HORIZON else scenario.horizon
        choose = policy.scores(horizon) if isinstance(policy, Tried) else scores(policy, horizon)
        rng = np.random.default_rng([seed, 17])
        values = scenario.problem.values
        queries = simulate(scenario.problem, choose, rng, scenario.initial, scenario.horizon)
        regrets = values.max() - values[queries]
        row = [scenario_name, policy_name, seed, regrets.mean(), regrets[-LAST:].mean(), int(regrets.min() <= 0.0)]
        rows.append([f"{v:.6g}" if isinstance(v, float) else v for v in row])
    return rows


# The page

Table = dict[tuple[str, str], tuple[Array, Array]]  # (scenario, policy) -> mean regrets, last regrets


def load(path: Path) -> Table:
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            pair = float(row["mean_regret"]), float(row["last_regret"])
            rows.setdefault((row["scenario"], row["policy"]), []).append(pair)
    return {key: (np.array(pairs).T[0], np.array(pairs).T[1]) for key, pairs in rows.items()}


def half(values: Array) -> float:
    """Half of the 95 % interval of a mean."""
    return 1.96 * float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else float("inf")


def cell(table: Table, scenario: str, policy: str) -> str:
    if (scenario, policy) not in table:
        return ""
    mean, last = table[scenario, policy]
    return f"{mean.mean():.3f} ± {half(mean):.3f}, {100 * np.mean(last > STUCK):.0f} %"


def grid(table: Table, scenarios: list[str], policies: list[str]) -> list[str]:
    lines = ["| policy | " + " | ".join(scenarios) + " |", "|---" * (len(scenarios) + 1) + "|"]
    for policy in policies:
        lines.append(f"| {policy} | " + " | ".join(cell(table, scenario, policy) for scenario in scenarios) + " |")
    return lines


def verdicts(table: Table) -> list[str]:
    """The lines of "what must hold", from the table."""
    tasks = list(TASKS)
    not_worse, better, lines = [], [], []
    for task in tasks:
        mean, _ = table[task, DEFAULT]
        best = min(PEERS, key=lambda peer: table[task, peer][0].mean())
        other = table[task, best][0]
        ok = mean.mean() - half(mean) <= other.mean() + half(other)
        not_worse.append(ok)
        paper_mean = table[task, "GP-MI"][0]
        better.append(mean.mean() < paper_mean.mean())
        lines.append(
            f"| {task} | {mean.mean():.3f} ± {half(mean):.3f} | {best}: {other.mean():.3f} ± {half(other):.3f} | "
            f"{'yes' if ok else '**no**'} | {paper_mean.mean():.3f} ± {half(paper_mean):.3f} | "
            f"{'yes' if better[-1] else '**no**'} |"
        )
    exact = [task for task in tasks if not task.startswith(("generated", "mixture"))]
    stuck = {task: float(np.mean(table[task, DEFAULT][1] > STUCK)) for task in exact}
    head = [
        "| task | the default | the best of the others | no worse, within the intervals | GP-MI | better than GP-MI |",
        "|---|---|---|---|---|---|",
    ]
    tail = [
        "",
        f"- No worse than the best of the others on {sum(not_worse)} of {len(tasks)} tasks (promise: six of eight); "
        f"better than GP-MI on {sum(better)} (promise: five).",
        "- Stuck at the end on the noise-free tasks (promise: at most 5 %): "
        + ", ".join(f"{task} {100 * share:.0f} %" for task, share in stuck.items())
        + ".",
    ]
    for scenario in HARD:
        mean, last = table[scenario, DEFAULT]
        ucb = table[scenario, "GP-UCB"][0]
        tail.append(
            f"- {scenario}, T = 2000: stuck {int(np.sum(last > STUCK))} of {len(last)} (promise: 0 of 300), "
            f"R_T is {mean.mean() / ucb.mean():.2f} times GP-UCB's (promise: at most 1.3); "
            f"GP-MI is stuck {int(np.sum(table[scenario, 'GP-MI'][1] > STUCK))} times."
        )
    return head + lines + tail


def report(table: Table) -> None:
    tasks, hard = list(TASKS), list(HARD)
    text = [
        "# Policies, measured",
        "",
        f"Written by `python benchmarks/policies.py` on {date.today()}, on {platform.machine()}, Python "
        f"{platform.python_version()}, numpy {np.__version__}; every run is a row of policies.csv. "
        "R_T / T ± half its 95 % interval, and the share of runs stuck at the end (mean regret of the last 50 queries "
        "above 0.1 sd). The kernel and noise_var of a task are the same for every policy, learned by leave-one-out for "
        "the fixed functions. What the default is, and why, is in [../policy.md](../policy.md).",
        "",
        "## What was promised",
        "",
        *verdicts(table),
        "",
        "## The paper's tasks, T = 200",
        "",
        *grid(table, tasks, [DEFAULT, NO_HORIZON, *PEERS]),
        "",
        "## Ablations",
        "",
        f"One part of the default changed at a time; {len(table[tasks[0], WITH_GAMMA_HAT][0])} repetitions.",
        "",
        *grid(table, tasks, [DEFAULT, *ABLATIONS]),
        "",
        "## Tried and not taken",
        "",
        *grid(table, tasks, [DEFAULT, *TRIED]),
        "",
        "## Where GP-MI locks in, T = 2000",
        "",
        *grid(table, hard, [DEFAULT, NO_HORIZON, "GP-MI", "GP-UCB", WITH_GAMMA_HAT]),
    ]
    (FOLDER / "policies.md").write_text("\n".join(text) + "\n")


def jobs(repetitions: int, hard: int) -> list[tuple[str, str, range]]:
    """Blocks of ten runs; what only explains the choice gets a third, or a tenth, of the repetitions."""
    blocks = []
    for policy in POLICIES:
        n = repetitions if policy in (DEFAULT, NO_HORIZON, *PEERS) else -(-repetitions // 3)
        blocks += [(task, policy, range(i, min(i + 10, n))) for task in TASKS for i in range(0, n, 10)]
    for policy in (DEFAULT, "GP-MI", "GP-UCB", NO_HORIZON, WITH_GAMMA_HAT):
        n = hard if policy in (DEFAULT, "GP-MI", "GP-UCB") else -(-hard // 10)
        blocks += [(name, policy, range(i, min(i + 10, n))) for name in HARD for i in range(0, n, 10)]
    return blocks


def keep(path: Path) -> list[list[str]]:
    """The rows of the table so far, which is made if there is none; a line cut short by a kill is removed."""
    text = path.read_text() if path.exists() else ",".join(COLUMNS) + "\n"
    path.write_text(text[: text.rfind("\n") + 1])
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--hard", type=int, default=300, help="repetitions of the runs of 2000 queries")
    parser.add_argument("--cores", type=int, default=2)
    chosen = parser.parse_args()
    path = FOLDER / "policies.csv"
    rows = keep(path)
    done = {(row[0], row[1], int(row[2])) for row in rows}
    todo = [job for job in jobs(chosen.repetitions, chosen.hard) if any((*job[:2], i) not in done for i in job[2])]
    with ProcessPoolExecutor(chosen.cores) as pool, path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, future in enumerate(as_completed([pool.submit(work, *job) for job in todo]), start=1):
            new = [[str(v) for v in row] for row in future.result() if (row[0], row[1], row[2]) not in done]
            writer.writerows(new)
            file.flush()
            rows += new
            print(f"\r{number} of {len(todo)} blocks", end="", flush=True)
    print()
    order = {name: i for i, name in enumerate([*SCENARIOS, *POLICIES])}
    rows.sort(key=lambda row: (order[row[0]], order[row[1]], int(row[2])))
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    report(load(path))


if __name__ == "__main__":
    main()
