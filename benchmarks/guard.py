"""How often does the guard of aim="earn" act, what does it cost, and how far is the regret below its bound?

    python benchmarks/guard.py [--runs N]     writes guard.md and guard.csv in docs/benchmarks; ten minutes; resumes

A run whose row is in the table is not repeated. The runs are those of `paper.simulate` with the arithmetic of
`gpmi.policies.guard`; tests/policies/test_guard.py checks the guard inside the library. Seeds differ from policies.py.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import harness
import numpy as np
from problems.scenarios import HARD, SCENARIOS, Scenario

import gpmi
from gpmi import theory
from gpmi.policies import guard
from paper.bounds import largest_information
from paper.simulate import Run
from paper.tasks import TASKS

COLUMNS = ("scenario", "rule", "seed", "horizon", "regret", "acted", "charged", "budget", "bound")
TABLE = harness.Table(harness.DOCS / "guard.csv", COLUMNS, COLUMNS[:3])
FIRST_SEED = 5000
DRAWN = ("generated-2", "generated-4", *HARD)  # f is a draw of the prior, as the theorem assumes
Row = harness.Row


@dataclass(frozen=True)
class Rule:
    """When the guard acts, and what it does then."""

    kappa: float
    proposed: bool = False  # Thompson points; only the queries of Reinvest are charged, and I is that of the past

    def charge(self, run: Run, best: int, account: guard.Account) -> tuple[float, float, float, bool]:
        """Return the charge of Reinvest's point, its weight, its information, and whether it may be played."""
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


def simulate(scenario: Scenario, rule: Rule, seed: int) -> dict[str, float]:
    """Make one run and return its account at the end. Max f is never drawn: the account is the cheaper bound's."""
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
    """Return sqrt(C_1 beta T gamma_T) + 0.02 sqrt(v), with the upper end of gamma_T."""
    problem = scenario.problem
    gamma = largest_information(problem.prior(slice(None)), problem.noise_var, scenario.horizon).high
    variance, size = float(problem.var.max()), len(problem.values)
    return theory.reinvest(gamma, scenario.horizon, noise_var=problem.noise_var, size=size, variance=variance).value


@cache
def bound_of(name: str) -> str:
    """Return the theorem's bound for a setting, or nothing if f is no draw of the prior."""
    return f"{bound(SCENARIOS[name](FIRST_SEED)):.6g}" if name in DRAWN else ""


def play(name: str, rule: str, seed: int) -> Row:
    """Play one run and return its row."""
    scenario = SCENARIOS[name](seed)
    row = {"scenario": name, "rule": rule, "seed": str(seed), "horizon": str(scenario.horizon)}
    row |= {column: f"{number:.6g}" for column, number in simulate(scenario, RULES[rule], seed).items()}
    return {**row, "bound": bound_of(name)}


def runs(count: int) -> Iterator[tuple[str, str, int]]:
    """Yield all runs. Runs of 2000 queries take ten times as long, so there are half as many."""
    for name in SCENARIOS:
        for seed in range(FIRST_SEED, FIRST_SEED + (count if name in TASKS else max(3, count // 2))):
            yield from ((name, rule, seed) for rule in RULES)


# Costs


def seconds_of_asks(m: int, guarded: bool, n: int = 60) -> float:
    """Return the mean CPU seconds of n suggestions on m candidates, with a given prior."""
    x, policy = np.random.default_rng(0).random((m, 2)), None if guarded else gpmi.Reinvest()
    kernel = gpmi.kernels.Matern(nu=2.5, lengthscale=0.2)
    opt = gpmi.Optimizer(x, policy, aim="earn", kernel=kernel, noise_var=0.01, seed=0)
    noise, spent = np.random.default_rng(1), 0.0
    for _ in range(n):
        begin = time.process_time()
        point = opt.ask()
        spent += time.process_time() - begin
        opt.tell(point, float(np.sin(9.0 * point[0]) + point[1] + 0.1 * noise.standard_normal()))
    return spent / n


def costs() -> list[str]:
    """Return the table of the costs, with the guard and without."""
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
    """Return R_T over that without a guard: the ratio of the means, and half the 95 % interval of the difference."""
    free, own = (column(rows, name, kind, "regret") for kind in ("no guard", rule))
    difference = own - free
    half = 1.96 * float(difference.std(ddof=1)) / math.sqrt(len(difference)) / free.mean()
    acted = float(np.mean(column(rows, name, rule, "acted")))
    if acted == 0.0 and np.all(difference == 0.0):
        return "the same queries"
    return f"{100 * difference.mean() / free.mean():+.1f} ± {100 * half:.1f} %, {acted:.0f}"


def report(rows: list[Row], cost: list[str], new: int) -> None:
    """Write the page."""
    first = "the guard, kappa = 2"
    table = [
        "| setting | T | runs | mean R_T | charges | allowed | the theorem's bound | the guard acted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in SCENARIOS:
        figures = {
            what: column(rows, name, first, what) for what in ("regret", "charged", "budget", "acted", "horizon")
        }
        value = next(row["bound"] for row in rows if row["scenario"] == name)
        table.append(
            f"| {name} | {figures['horizon'][0]:.0f} | {len(figures['regret'])} | {figures['regret'].mean():.1f} | "
            f"{figures['charged'].mean():.1f} | {guard.KAPPA * figures['budget'].mean():.1f} | "
            f"{f'{float(value):.0f}' if value else 'not a draw'} | {figures['acted'].sum():.0f} queries |"
        )
    others = [rule for rule in RULES if rule != "no guard"]
    change = ["| setting | " + " | ".join(others) + " |", "|---" * (len(others) + 1) + "|"]
    change += [f"| {name} | " + " | ".join(relative(rows, name, rule) for rule in others) + " |" for name in SCENARIOS]
    drawn = [column(rows, name, first, "regret").mean() for name in DRAWN]
    limit = [float(next(row["bound"] for row in rows if row["scenario"] == name)) for name in DRAWN]
    kept = sum(a <= b for a, b in zip(drawn, limit, strict=True))
    body = BODY.format(
        table="\n".join(table),
        kept=kept,
        settings=len(DRAWN),
        change="\n".join(change),
        cost="\n".join(cost),
    )
    harness.page(__file__, 'The guard of aim="earn", measured', TEXT, [body], runs=len(rows), new=new)


TEXT = (
    "Every run is a row of guard.csv. The theorem and the rule are in [../proofs.md](../proofs.md). The charges are "
    "those of the bound without draws, which are larger than need be: where the guard acts here it might not in the "
    "library, which draws max f before it does."
)
BODY = """\
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
    parser = harness.parser(__doc__, cores=True)
    parser.add_argument("--runs", type=int, default=20, help="of 200 queries; half as many of 2000")
    chosen = parser.parse_args()
    new = harness.resume(TABLE, runs(chosen.runs), play, chosen.cores)
    report(TABLE.rows(), costs(), new + 1)


if __name__ == "__main__":
    main()
