"""The guard of aim="earn": how often it acts, what it costs, and how far the regret is below its bound.

    python benchmarks/guard.py [--runs N]     writes guard.md and guard.csv in docs/benchmarks

A run whose row is in the table is not repeated. The runs are those of `gpmi.paper.simulate` with the arithmetic of
`gpmi.policies.guard`; tests/policies/test_guard.py checks the guard inside the library. Seeds differ from policies.py.
"""

# ruff: noqa: E402  (the threads must be set before NumPy is imported)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import csv
import math
import platform
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from policies import HARD, SCENARIOS, Scenario

import gpmi
from gpmi import theory
from gpmi.paper.bounds import largest_information
from gpmi.paper.simulate import Run
from gpmi.paper.tasks import TASKS
from gpmi.policies import guard

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
COLUMNS = ("scenario", "rule", "seed", "horizon", "regret", "acted", "charged", "budget", "bound")
FIRST_SEED = 5000
DRAWN = ("generated-2", "generated-4", *HARD)  # f is a draw of the prior, as the theorem has it
Row = dict[str, str]


@dataclass(frozen=True)
class Rule:
    """When the guard acts, and what it does then."""

    kappa: float
    proposed: bool = False  # Thompson points; only the queries of Reinvest are charged, and I is that of the past

    def charge(self, run: Run, best: int, account: guard.Account) -> tuple[float, float, float, bool]:
        """The charge of Reinvest's point, its weight, what it would teach, and whether it may be played."""
        problem, size = run.problem, len(run.mu)
        largest = float(problem.var.max())
        charge = max(guard.mean_of_maximum(run.mu, run.var) - float(run.mu[best]), 0.0)
        weight = guard.beta(size)
        gain = float(guard.learned(run.var[best : best + 1], problem.noise_var, largest)[0])
        past = account.learned + (0.0 if self.proposed else gain)
        allowed = account.charged + charge <= self.kappa * math.sqrt((account.weight + weight) * past)
        return charge, weight, gain, allowed


RULES = {
    "no guard": Rule(math.inf),
    "the guard, kappa = 2": Rule(2.0),
    "the guard, kappa = 1": Rule(1.0),
    "the guard, kappa = 0.1": Rule(0.1),
    "the guard alone, kappa = 0": Rule(0.0),
    "as proposed, kappa = 1": Rule(1.0, proposed=True),
    "as proposed, kappa = 0.1": Rule(0.1, proposed=True),
}


def play(scenario: Scenario, rule: Rule, seed: int) -> dict[str, float]:
    """One run, with what its account says at the end. Max f is never drawn: the account is the cheaper bound's."""
    policy, problem = gpmi.Reinvest(), scenario.problem
    rng, luck = np.random.default_rng([seed, 17]), np.random.default_rng([seed, 18])
    run = Run(problem, rng, scenario.initial, scenario.initial + scenario.horizon)
    for i in rng.choice(len(problem.values), scenario.initial, replace=False):
        run.observe(int(i))
    account, acted = guard.Account(), 0
    for _ in range(scenario.horizon):
        best = int(np.argmax(policy.score(run.mu, run.var, run.state(scenario.horizon))))
        charge, weight, gain, allowed = rule.charge(run, best, account)
        if not allowed:
            acted += 1
            if rule.proposed:
                best, charge = int(np.argmax(run.draw())), 0.0
            else:
                weight = guard.draw_zeta(len(run.mu), luck)
                best = int(np.argmax(run.mu + np.sqrt(weight * run.var)))
                charge = math.sqrt(weight * float(run.var[best]))
            gain = float(guard.learned(run.var[best : best + 1], problem.noise_var, float(problem.var.max()))[0])
        account = guard.Account(account.charged + charge, account.weight + weight, account.learned + gain)
        run.observe(best)
    queries = run.queries[scenario.initial :]
    return {
        "regret": float(np.sum(problem.values.max() - problem.values[queries])),
        "acted": acted,
        "charged": account.charged,
        "budget": math.sqrt(account.weight * account.learned),
    }


def bound(scenario: Scenario) -> float:
    """sqrt(C_1 beta T gamma_T) + 0.02 sqrt(v), with the upper end of gamma_T."""
    problem = scenario.problem
    gamma = largest_information(problem.prior(slice(None)), problem.noise_var, scenario.horizon).high
    variance, size = float(problem.var.max()), len(problem.values)
    return theory.reinvest(gamma, scenario.horizon, noise_var=problem.noise_var, size=size, variance=variance).value


def load(path: Path) -> list[Row]:
    text = path.read_text() if path.exists() else ",".join(COLUMNS) + "\n"
    path.write_text(text[: text.rfind("\n") + 1])
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def simulate(path: Path, runs: int) -> list[Row]:
    """Every run that is wanted, those in the table included."""
    rows = load(path)
    done = {(row["scenario"], row["rule"], int(row["seed"])) for row in rows}
    for name in SCENARIOS:
        # Runs of 2000 queries take ten times as long, and the rules that were not taken are for comparison.
        count = runs if name in TASKS else max(3, runs // 2)
        value: float | None = None
        for seed in range(FIRST_SEED, FIRST_SEED + count):
            todo = [rule for rule in RULES if (name, rule, seed) not in done]
            if not todo:
                continue
            scenario = SCENARIOS[name](seed)
            if value is None and name in DRAWN:
                value = bound(scenario)
            for rule in todo:
                said = play(scenario, RULES[rule], seed)
                row = {"scenario": name, "rule": rule, "seed": str(seed), "horizon": str(scenario.horizon)}
                row |= {column: f"{number:.6g}" for column, number in said.items()}
                row["bound"] = "" if value is None else f"{value:.6g}"
                rows.append(row)
                with path.open("a", newline="") as file:
                    csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(row)
        print(name, flush=True)
    return rows


# What a suggestion costs


def seconds_of_asks(m: int, guarded: bool, n: int = 60) -> float:
    """CPU seconds of n suggestions on m candidates, with a given prior."""
    x, policy = np.random.default_rng(0).random((m, 2)), None if guarded else gpmi.Reinvest()
    opt = gpmi.Optimizer(
        x, policy, aim="earn", kernel=gpmi.kernels.Matern(nu=2.5, lengthscale=0.2), noise_var=0.01, seed=0
    )
    noise, spent = np.random.default_rng(1), 0.0
    for _ in range(n):
        begin = time.process_time()
        point = opt.ask()
        spent += time.process_time() - begin
        opt.tell(point, float(np.sin(9.0 * point[0]) + point[1] + 0.1 * noise.standard_normal()))
    return spent / n


def costs() -> list[str]:
    lines = ["| candidates | without the guard, ms | with it, ms |", "|---|---|---|"]
    for m in (50, 1000, 10_000):
        measured = {
            guarded: min(seconds_of_asks(m, guarded) for _ in range(3)) for guarded in (False, True, False, True)
        }
        lines.append(f"| {m} | {1000 * measured[False]:.2f} | {1000 * measured[True]:.2f} |")
    return lines


# The page


def column(rows: list[Row], name: str, rule: str, what: str) -> np.ndarray:
    found = sorted(
        (int(row["seed"]), float(row[what])) for row in rows if (row["scenario"], row["rule"]) == (name, rule)
    )
    return np.array([value for _, value in found])


def relative(rows: list[Row], name: str, rule: str) -> str:
    """R_T over that without a guard: the ratio of the means, and half the 95 % interval of the difference."""
    free, own = (column(rows, name, kind, "regret") for kind in ("no guard", rule))
    difference = own - free
    half = 1.96 * float(difference.std(ddof=1)) / math.sqrt(len(difference)) / free.mean()
    acted = float(np.mean(column(rows, name, rule, "acted")))
    if acted == 0.0 and np.all(difference == 0.0):
        return "the same queries"
    return f"{100 * difference.mean() / free.mean():+.1f} ± {100 * half:.1f} %, {acted:.0f}"


def report(rows: list[Row], cost: list[str]) -> str:
    first = "the guard, kappa = 2"
    table = [
        "| setting | T | runs | mean R_T | charges | allowed | the theorem's bound | the guard acted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in SCENARIOS:
        said = {what: column(rows, name, first, what) for what in ("regret", "charged", "budget", "acted", "horizon")}
        value = next(row["bound"] for row in rows if row["scenario"] == name)
        table.append(
            f"| {name} | {said['horizon'][0]:.0f} | {len(said['regret'])} | {said['regret'].mean():.1f} | "
            f"{said['charged'].mean():.1f} | {guard.KAPPA * said['budget'].mean():.1f} | "
            f"{f'{float(value):.0f}' if value else 'not a draw'} | {said['acted'].sum():.0f} queries |"
        )
    others = [rule for rule in RULES if rule != "no guard"]
    change = ["| setting | " + " | ".join(others) + " |", "|---" * (len(others) + 1) + "|"]
    change += [f"| {name} | " + " | ".join(relative(rows, name, rule) for rule in others) + " |" for name in SCENARIOS]
    drawn = [column(rows, name, first, "regret").mean() for name in DRAWN]
    limit = [float(next(row["bound"] for row in rows if row["scenario"] == name)) for name in DRAWN]
    kept = sum(a <= b for a, b in zip(drawn, limit, strict=True))
    head = f"{date.today()}, on {platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    return TEXT.format(
        head=head,
        table="\n".join(table),
        kept=kept,
        settings=len(DRAWN),
        change="\n".join(change),
        cost="\n".join(cost),
    )


TEXT = """\
# The guard of aim="earn", measured

Written by `python benchmarks/guard.py` on {head}; every run is a row of guard.csv. The theorem and the rule are in
[../policy.md](../policy.md). The charges are those of the bound without draws, which are larger than need be: where the
guard acts here it might not in the library, which draws max f before it does.

## Does it act, and how far is the bound?

*Allowed* is 2 sqrt(H C_1 I), what the charges may come to. Means over the runs.

{table}

The theorem is about the mean over draws of the prior. There the mean R_T is below its bound in {kept} of {settings}
settings. gamma_T is exact for the arms and the upper end of the greedy bracket elsewhere.

## What the rules cost

R_T against Reinvest without a guard, with the same draws and noise, ± half the 95 % interval of the difference, and in
how many of the T queries the guard acted on average. "As proposed": only the queries of Reinvest are charged, the
budget has I_(t-1), so that the policy's first query is always the guard's, and the guard plays Thompson points; its
bound is that of kappa = 2 if kappa is 1. The library has kappa = 2. With 1 the bound is half as large; a kappa below 1
has no smaller bound and is here to show what happens when the guard acts. On Mackey-Glass, which is no draw of its
prior, the model hopes for values that are not there, and what a guard does about it is all cost.

{change}

## CPU time of a suggestion

Matern-5/2 on random points of the unit square, mean over the first 60 queries, the least of three.

{cost}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="of 200 queries; half as many of 2000")
    chosen = parser.parse_args()
    rows = simulate(FOLDER / "guard.csv", chosen.runs)
    (FOLDER / "guard.md").write_text(report(rows, costs()))


if __name__ == "__main__":
    main()
