"""Does a yes to "can I stop?" hold, is it said of runs that are done, and do chances of a gain come true?

    python benchmarks/can_stop.py [--cores 2]   writes docs/benchmarks/can_stop.md and .csv; half an hour; resumes
    python benchmarks/can_stop.py --report      writes the page from the table

A run has 100 evaluations, and the ledger is read after 20, 30, ... of them. Two lists of runs, both written down before
they were played: those of belief.py, and *new* ones: functions with options, thin spikes, other draws and functions.
The rule and the damping of chances were chosen on other seeds of the new kinds (below 100), and on the chances in
belief.csv. Values are in standard deviations of f over its space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import harness
import numpy as np
import problems
from belief import FUNCTIONS as KNOWN_FUNCTIONS
from belief import NOISES, Case
from belief import case as known_case
from belief import runs as known_runs
from option_hills import KINDS, OPTIONS, OptionHills
from problems import draws
from problems.functions import Array

import gpmi
from gpmi.analysis.ledger.facts import MORE

COLUMNS = ("list", "name", "noise", "seed", "t", "answer", "clause", "before", "regret", "chance", "gain")
TABLE = harness.Table(harness.DOCS / "can_stop.csv", COLUMNS, COLUMNS[:4])
BUDGET, LOOKS = 100, range(20, 101, 10)
RIGHT, SOLVED, EPS = 0.05, 0.02, 0.05
SPIKES = ("spike-1", "spike-2", "spike-3")
FUNCTIONS = ("branin", "hartmann-3", "hartmann-mixed")
NEW_NOISES, NEW_SEEDS, STREAM = (0.0, 0.1, 0.3), 8, 92
# On these nearly all queries miss the highest peak, and the values do not hint at it.
UNSEEN = ("mixture", "michalewicz-5", *SPIKES)


@dataclass(frozen=True, eq=False)
class Spike:
    """A smooth hill of height 1, and a thin one of height 2 somewhere else, in d dimensions."""

    centre: Array  # (d,)
    spike: Array  # (d,)

    @classmethod
    def drawn(cls, d: int, seed: int) -> Spike:
        """Draw a function."""
        rng = np.random.default_rng([seed, d, 35])
        return cls(rng.random(d), rng.random(d))

    def __call__(self, x: Any) -> float:
        hill = np.exp(-0.5 * np.sum((np.asarray(x) - self.centre) ** 2) / 0.3**2)
        return float(hill + 2.0 * np.exp(-0.5 * np.sum((np.asarray(x) - self.spike) ** 2) / 0.04**2))


@cache
def new_case(name: str, seed: int) -> Case:
    """Return one of the new functions."""
    if name in KINDS:
        hills = OptionHills.drawn(name, 5000 + seed)
        rng = np.random.default_rng(0)
        values = [hills(rng.random(2), OPTIONS[rng.integers(len(OPTIONS))]) for _ in range(2000)]
        space = {"x": (0.0, 1.0), "y": (0.0, 1.0), "option": list(OPTIONS)}
        return Case(
            space,
            lambda p: hills(np.array([p["x"], p["y"]]), p["option"]),
            hills.maximum,
            float(np.std(values)),
        )
    if name in SPIKES:
        d = int(name.removeprefix("spike-"))
        spike = Spike.drawn(d, 5000 + seed)
        values = [spike(x) for x in np.random.default_rng(0).random((4000, d))]
        return Case([(0.0, 1.0)] * d, spike, max(spike(spike.spike), spike(spike.centre)), float(np.std(values)))
    if name in FUNCTIONS:
        problem = problems.make(name, 0)
        assert problem.maximum is not None
        return Case(problem.space, problem.f, problem.maximum, float(np.std(problems.values_at_random(problem, 2000))))
    f = draws.random_draw(int(name), 5000 + seed, STREAM)
    return Case([(0.0, 1.0)] * f.d, f, f.maximum, 1.0)


def runs() -> list[tuple[str, str, str, int]]:
    """Return all runs, seed by seed, so that a partial table has something of everything."""
    old = [("belief", name, f"{noise:g}", seed) for part, name, noise, seed in known_runs() if part == "looks"]
    names = (*KINDS, *SPIKES, *FUNCTIONS, *map(str, range(1, 6)))
    new = [("new", name, f"{noise:g}", seed) for seed in range(NEW_SEEDS) for noise in NEW_NOISES for name in names]
    pairs = sorted(
        [(i / len(old), run) for i, run in enumerate(old)] + [(i / len(new), run) for i, run in enumerate(new)]
    )
    return [run for _, run in pairs]


def play(kind: str, name: str, level: str, seed: int) -> list[tuple[object, ...]]:
    """Play one run and return a row for each look."""
    noise = float(level)
    number = seed if name in (*KNOWN_FUNCTIONS, *FUNCTIONS) else 100 * seed + round(10 * noise)
    if kind == "belief" and name not in KNOWN_FUNCTIONS:  # the same functions as there
        number = 100 * seed + NOISES.index(noise)
    case: Any = known_case(name, number) if kind == "belief" else new_case(name, number)
    rng = np.random.default_rng([number, 36])
    opt = gpmi.Optimizer(case.space, budget=BUDGET, seed=number)
    looks: list[list[Any]] = []
    for t in range(1, BUDGET + 1):
        opt.tell(x := opt.ask(), case.f(x) + noise * case.sd * float(rng.standard_normal()))
        if t not in LOOKS:
            continue
        ledger, regret = opt.ledger, case.regret(opt.recommend())
        if looks:
            looks[-1][-1] = looks[-1][-3] - regret
        known = ledger.unknown is None
        chance = ledger.gain(MORE).probability_above(EPS * case.sd) if known else float("nan")
        decision = ledger.can_stop
        looks.append([t, decision.answer, decision.clause, before(ledger), regret, chance, float("nan")])
    row = (kind, name, level, seed)
    return [tuple(f"{v:.6g}" if isinstance(v, float) else v for v in (*row, *look)) for look in looks]


def before(ledger: Any) -> str:
    """Return the answer of the rule before: a chance of a gain of at most 5 % by an undamped share of the draws."""
    if ledger.unknown is not None or ledger.calibration.doubt is not None or ledger.lock_in is not None:
        return "no"
    return "yes" if float(np.mean(ledger.gain(MORE).draws > ledger.smallest_gain)) <= 0.05 else "no"


def order(row: harness.Row) -> tuple[object, ...]:
    """Return the place of a row in the table."""
    return row["list"], row["name"], float(row["noise"]), int(row["seed"]), int(row["t"])


# The page


def share(hits: int, of: int) -> str:
    """Return a count with its share."""
    return f"{hits} of {of} ({100 * hits / of:.0f} %)" if of else "0 of 0"


def answers(rows: list[harness.Row], column: str) -> tuple[str, str, str]:
    """Return how often a yes was right, at all looks and at the last, and how often a solved run got one."""
    yes = [r for r in rows if r[column] == "yes"]
    last = [r for r in rows if int(r["t"]) == BUDGET]
    solved = [r for r in last if float(r["regret"]) <= SOLVED]
    right, right_last = (
        [r for r in some if float(r["regret"]) <= RIGHT] for some in (yes, [r for r in last if r in yes])
    )
    return (
        share(len(right), len(yes)),
        share(len(right_last), sum(r[column] == "yes" for r in last)),
        share(sum(r[column] == "yes" for r in solved), len(solved)),
    )


def groups(rows: list[harness.Row]) -> Iterator[tuple[str, list[harness.Row]]]:
    """Yield the runs in groups that are not empty."""
    parts: dict[str, Callable[[harness.Row], bool]] = {
        "all": lambda r: True,
        "the runs of belief.py": lambda r: r["list"] == "belief",
        "new runs": lambda r: r["list"] == "new",
        "options with hills of their own": lambda r: r["name"] == "hills",
        "options with like hills": lambda r: r["name"] == "alike",
        "draws": lambda r: r["name"].isdigit(),
        "functions with peaks that a run can see": lambda r: not r["name"].isdigit() and r["name"] not in UNSEEN,
        f"{', '.join(UNSEEN)}": lambda r: r["name"] in UNSEEN,
        **{f"noise {noise:g}": (lambda r, noise=noise: float(r["noise"]) == noise) for noise in NOISES},
    }
    for name, is_part in parts.items():
        if part := [r for r in rows if is_part(r)]:
            yield name, part


def deciles(rows: list[harness.Row]) -> list[tuple[object, ...]]:
    """Return what happened by the chance that was said."""
    said = np.array(
        [[float(r["chance"]), float(r["gain"]) > EPS] for r in rows if r["chance"] != "nan" and r["gain"] != "nan"]
    )
    lines = []
    for low in np.arange(0.0, 1.0, 0.1):
        part = said[(said[:, 0] >= low) & (said[:, 0] < low + 0.1)]
        if len(part):
            mean, happened = part.mean(axis=0)
            lines.append((f"{low:.1f} to {low + 0.1:.1f}", len(part), f"{mean:.2f}", f"{happened:.2f}"))
    return lines


def write_page(new: int) -> None:
    """Write the page from the table."""
    rows = TABLE.rows()
    seen = [r for r in rows if r["name"] not in UNSEEN]
    said, _, solved = answers(rows, "answer")
    yes = [r for r in rows if r["answer"] == "yes"]
    right = np.mean([float(r["regret"]) <= RIGHT for r in yes]) if yes else 0.0
    done = [r for r in rows if int(r["t"]) == BUDGET and float(r["regret"]) <= SOLVED]
    told = np.mean([r["answer"] == "yes" for r in done]) if done else 0.0
    off = [abs(float(r[2]) - float(r[3])) for r in deciles(rows) if int(r[1]) >= 50]  # type: ignore[arg-type, call-overload]
    head = ("runs", "yes is right", "yes is right at t = 100", "solved runs with a yes at t = 100")
    clauses = [(c, sum(r["clause"] == c for r in rows)) for c in dict.fromkeys(r["clause"] for r in rows)]
    body = [
        *harness.table(
            ("promise", "measured", "holds"),
            [
                (f"where the answer is yes, the regret is at most {RIGHT} sd in at least 90 %", said,
                 harness.yes(bool(right >= 0.9))),
                (f"of the runs with a regret of at most {SOLVED} sd after {BUDGET} evaluations at least half get a yes",
                 solved, harness.yes(bool(told >= 0.5))),
                ("chances of a gain are within 0.1 of what happened in every tenth with 50 looks",
                 f"{max(off, default=0.0):.2f} off at most", harness.yes(max(off, default=0.0) <= 0.1)),
            ],
        ),
        "",
        "## The answer",
        "",
        f"A yes is right if the regret of the recommended point is at most {RIGHT} sd. A run is solved if it is at "
        f"most {SOLVED} sd. In {', '.join(UNSEEN)} the highest peak is one that hardly any query came near.",
        "",
        *harness.table(head, [(name, *answers(part, "answer")) for name, part in groups(rows)]),
        "",
        "The same with the rule before: a chance of a gain of at most 5 %, nothing else.",
        "",
        *harness.table(head, [(name, *answers(part, "before")) for name, part in groups(rows)]),
        "",
        "What decided, by the number of looks: " + ", ".join(f"{name} {count}" for name, count in clauses) + ".",
        "",
        "## The chance of a gain",
        "",
        f"The chance that {MORE} more evaluations improve the recommended point by more than {EPS} sd, and how often "
        "they did.",
        "",
        *harness.table(("said", "looks", "mean said", "happened"), deciles(rows)),
        "",
        f"Without {', '.join(UNSEEN)}:",
        "",
        *harness.table(("said", "looks", "mean said", "happened"), deciles(seen)),
    ]  # fmt: skip
    played = len({tuple(row[column] for column in COLUMNS[:4]) for row in rows})
    text = (
        "Every number is from can_stop.csv. [../ledger.md](../ledger.md) has the rule. The runs were listed "
        f"beforehand; {played} of {len(runs())} were played so far, in an order that mixes their kinds. The damping of "
        "chances under noise was chosen with those of belief.csv in view, so those runs are no new test of it."
    )
    harness.page(__file__, "Can I stop?", text, body, runs=played, new=new)


def main() -> None:
    args = harness.parser(__doc__, cores=True, report=True).parse_args()
    new = 0 if args.report else harness.resume(TABLE, runs(), play, args.cores)
    TABLE.tidy(order)
    write_page(new)


if __name__ == "__main__":
    main()
