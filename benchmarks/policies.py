"""Why is the default policy what it is? Policies on the paper's tasks, and on what breaks them.

    python benchmarks/policies.py [--cores 2]     writes policies.md and policies.csv in docs/benchmarks; hours; resumes
    python benchmarks/policies.py --report        writes the page from the table

A run whose row is in the table is not repeated. After a change of a policy remove its rows.

Every policy sees the same tasks, initial points, noise, kernel and noise_var. Runs are those of `paper.simulate`.
Scores come from the library, and from this file for the rules that were tried and not taken.

R_T / T is the mean noise-free regret of the queries after the initial design. A run is stuck when the mean regret of
its last 50 queries exceeds 0.1, in standard deviations of f.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import harness
import numpy as np
from problems.functions import Array
from problems.scenarios import HARD, SCENARIOS

import gpmi
from paper.simulate import Run, Scores, scores, simulate
from paper.tasks import TASKS

COLUMNS = ("scenario", "policy", "repetition", "mean_regret", "last_regret", "found")
TABLE = harness.Table(harness.DOCS / "policies.csv", COLUMNS, COLUMNS[:3])
LAST, STUCK = 50, 0.1


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
    """A rule that reads more than mu, var and the state."""

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
    """GP-MI whose gamma_hat restarts after each query that taught less than the noise: log 2 / 2 nats."""

    alpha: float = 1.0

    def choose(self, run: Run, state: gpmi.State) -> Array:
        fresh = replace(state, gamma_hat=since_restart(run))
        return run.mu + gpmi.GPMI(alpha=self.alpha).phi(run.var, fresh)


@dataclass(frozen=True)
class WithGammaHat(Tried):
    """The default with GP-MI's phi in place of sqrt(alpha) sd. gamma_hat restarts as in `Restarted`."""

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
    """Return gamma_hat since the last of the policy's queries whose variance was below noise_var."""
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


# Runs


def play(scenario_name: str, policy_name: str, seed: int) -> tuple[object, ...]:
    """Play one run and return its row."""
    scenario, policy = SCENARIOS[scenario_name](seed), POLICIES[policy_name]
    horizon = None if policy_name == NO_HORIZON else scenario.horizon
    choose = policy.scores(horizon) if isinstance(policy, Tried) else scores(policy, horizon)
    rng = np.random.default_rng([seed, 17])
    values = scenario.problem.values
    queries = simulate(scenario.problem, choose, rng, scenario.initial, scenario.horizon)
    regrets = values.max() - values[queries]
    row = (scenario_name, policy_name, seed, regrets.mean(), regrets[-LAST:].mean(), int(regrets.min() <= 0.0))
    return tuple(f"{v:.6g}" if isinstance(v, float) else v for v in row)


def runs(repetitions: int, hard: int) -> Iterator[tuple[str, str, int]]:
    """Yield all runs. What only explains the choice gets a third, or a tenth, of the repetitions."""
    for policy in POLICIES:
        n = repetitions if policy in (DEFAULT, NO_HORIZON, *PEERS) else -(-repetitions // 3)
        yield from ((task, policy, seed) for task in TASKS for seed in range(n))
    for policy in (DEFAULT, "GP-MI", "GP-UCB", NO_HORIZON, WITH_GAMMA_HAT):
        n = hard if policy in (DEFAULT, "GP-MI", "GP-UCB") else -(-hard // 10)
        yield from ((name, policy, seed) for name in HARD for seed in range(n))


# The page

Table = dict[tuple[str, str], tuple[Array, Array]]  # (scenario, policy) -> mean regrets, last regrets


def load() -> Table:
    """Return the regrets of all runs."""
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in TABLE.rows():
        pair = float(row["mean_regret"]), float(row["last_regret"])
        rows.setdefault((row["scenario"], row["policy"]), []).append(pair)
    return {key: (np.array(pairs).T[0], np.array(pairs).T[1]) for key, pairs in rows.items()}


def half(values: Array) -> float:
    """Return half of the 95 % interval of a mean."""
    return 1.96 * float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else float("inf")


def cell(table: Table, scenario: str, policy: str) -> str:
    """Return the mean regret with its interval, and the share of runs that are stuck."""
    if (scenario, policy) not in table:
        return ""
    mean, last = table[scenario, policy]
    return f"{mean.mean():.3f} ± {half(mean):.3f}, {100 * np.mean(last > STUCK):.0f} %"


def grid(table: Table, scenarios: list[str], policies: list[str]) -> list[str]:
    """Return a row for each policy, with a column for each scenario."""
    rows = [(policy, *(cell(table, scenario, policy) for scenario in scenarios)) for policy in policies]
    return harness.table(("policy", *scenarios), rows)


def verdicts(table: Table) -> list[str]:
    """Return the lines about what was promised."""
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
            f"{harness.yes(ok)} | {paper_mean.mean():.3f} ± {half(paper_mean):.3f} | "
            f"{harness.yes(better[-1])} |"
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


def report(table: Table, new: int) -> None:
    """Write the page."""
    tasks, hard = list(TASKS), list(HARD)
    text = (
        "Every run is a row of policies.csv. R_T / T ± half its 95 % interval, and the share of runs stuck at the end "
        "(mean regret of the last 50 queries "
        "above 0.1 sd). The kernel and noise_var of a task are the same for every policy, learned by leave-one-out for "
        "the fixed functions. What the default is, and why, is in [../policy.md](../policy.md)."
    )
    lines = [
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
    count = sum(len(mean) for mean, _ in table.values())
    harness.page(__file__, "Policies, measured", text, lines, runs=count, new=new)


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--hard", type=int, default=300, help="repetitions of the runs of 2000 queries")
    chosen = parser.parse_args()
    wanted = () if chosen.report else runs(chosen.repetitions, chosen.hard)
    new = harness.resume(TABLE, wanted, play, chosen.cores)
    order = {name: i for i, name in enumerate([*SCENARIOS, *POLICIES])}
    TABLE.tidy(lambda row: (order[row["scenario"]], order[row["policy"]], int(row["repetition"])))
    report(load(), new)


if __name__ == "__main__":
    main()
