"""Can the ledger be believed, if the prior is known? Coverage of the interval, stopping, lock-ins, and the cost.

    python benchmarks/ledger.py [--cores 2]   writes docs/benchmarks/ledger.md and .csv; half an hour; resumes
    python benchmarks/ledger.py --report      writes the page from the table

Everything is done by the library itself: `Optimizer.ask`, `tell` and `ledger`. Values are in standard deviations of the
prior.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import harness
import numpy as np
import problems
from problems import draws
from problems.functions import BRANIN, Array

import gpmi
from gpmi import kernels
from gpmi.analysis.ledger.ledger import REPEATS, Ledger
from paper.tasks.functions import branin

COLUMNS = ("part", "setting", "seed", "step", "what", "true", "lower", "upper")
TABLE = harness.Table(harness.DOCS / "ledger.csv", COLUMNS, COLUMNS[:3])
Row = tuple[str, str, int, int, str, float, float, float]
NAN = float("nan")

CANDIDATES, NOISE_SD, BUDGET, EPS = 1000, 0.01, 200, 0.05
LOOKS = (5, 10, 20, 30, 40, 50, 60)


# Draws from the prior on a finite set


@dataclass(frozen=True)
class Setting:
    """A prior on the unit square, a policy and how many runs there are."""

    kernel: kernels.Kernel
    runs: int
    budget: int = BUDGET
    policy: gpmi.Policy | None = None
    looks: tuple[int, ...] = LOOKS


SMOOTH, ROUGH = kernels.RBF(lengthscale=0.2), kernels.Matern(nu=2.5, lengthscale=0.18)
MAIN = "Matern-5/2, lengthscale 0.18"
DRAWN = {
    MAIN: Setting(ROUGH, 500),
    "squared exponential, lengthscale 0.2": Setting(SMOOTH, 100),
    f"{MAIN}, budget 60": Setting(ROUGH, 60, budget=60),
    f"{MAIN}, GP-MI": Setting(ROUGH, 60, policy=gpmi.GPMI(), looks=()),
}


def start(name: str, seed: int, budget: int) -> tuple[gpmi.Optimizer, Callable[[Any], float], Callable[[Any], float]]:
    """Return an optimizer for a draw on a finite set, the noisy value of a point, and its regret."""
    setting, rng = DRAWN[name], np.random.default_rng([seed, 5])
    z = rng.random((CANDIDATES, 2))
    f = gpmi.Posterior.prior(setting.kernel, 0.0).sample(z, rng)[0]
    number = {row.tobytes(): i for i, row in enumerate(z)}
    opt = gpmi.Optimizer(
        z, setting.policy, aim="earn", kernel=setting.kernel, noise_var=NOISE_SD**2, budget=budget, seed=seed
    )

    def observe(x: Array) -> float:
        return float(f[number[x.tobytes()]] + NOISE_SD * rng.standard_normal())

    def regret(x: Array) -> float:
        return float(f.max() - f[number[x.tobytes()]])

    return opt, observe, regret


def drawn(name: str, seed: int) -> Iterator[Row]:
    """Yield the intervals at the looks, and when the rule about phi would have stopped."""
    setting = DRAWN[name]
    opt, observe, regret = start(name, seed, setting.budget)
    waiting = {"phi"} if setting.budget == BUDGET else set()
    for t in range(1, setting.budget + 1):
        x = opt.ask()
        trial = opt.tell(x, observe(x))
        ledger = opt.ledger
        if t in setting.looks:
            found = ledger.regret()
            yield "drawn", name, seed, t, "interval", regret(found.recommended), *found.interval()
        stopped = {"phi"} if "phi" in waiting and trial.phi is not None and trial.phi < EPS else set()
        for rule in sorted(stopped):
            yield "drawn", name, seed, t, rule, regret(opt.recommend()), NAN, NAN
        waiting -= stopped
        if not waiting and t >= max(setting.looks, default=0):
            break
    for rule in sorted(waiting):
        yield "drawn", name, seed, setting.budget, f"{rule}, never", regret(opt.recommend()), NAN, NAN


def stops(name: str, seed: int) -> Iterator[Row]:
    """Yield when the rule about the regret would have stopped the same run, asked after every second or tenth value."""
    opt, observe, regret = start(name, seed, BUDGET)
    what = "regret, never"
    for t in range(1, BUDGET + 1):
        x = opt.ask()
        opt.tell(x, observe(x))
        if (t % 2 == 0 if t <= 60 else t % 10 == 0) and opt.ledger.is_below(EPS):
            what = "regret"
            break
    yield "stops", name, seed, t, what, regret(opt.recommend()), NAN, NAN


# Draws from the prior on a box

BOXES = {"gp-2": 0.18, "gp-4": 0.35}
BOX_LOOKS = range(10, 61, 10)


def box(name: str, seed: int) -> Iterator[Row]:
    """Yield the intervals on draws of the comparison, with the prior they are drawn from and noise of sd 0.01."""
    problem, rng = problems.make(name, seed), np.random.default_rng([seed, 6])
    assert problem.maximum is not None
    kernel = kernels.Matern(nu=2.5, lengthscale=BOXES[name])
    opt = gpmi.Optimizer(
        problem.space, aim="earn", kernel=kernel, noise_var=NOISE_SD**2, n_init=5, budget=BUDGET, seed=seed
    )
    for t in range(1, max(BOX_LOOKS) + 1):
        x = opt.ask()
        opt.tell(x, problem.f(x) + NOISE_SD * rng.standard_normal())
        if t in BOX_LOOKS:
            found = opt.ledger.regret()
            yield "box", name, seed, t, "interval", problem.maximum - problem.f(found.recommended), *found.interval()


# Draws with hyper-parameters of their own, the prior given

GIVEN_LOOKS = (10, 20, 40, 60)


def given(name: str, seed: int) -> Iterator[Row]:
    """Run the default on a draw with random hyper-parameters that are given to it."""
    f, rng = draws.make(seed), np.random.default_rng([seed, 7])
    shape = {"lengthscale": f.lengthscale, "variance": 1.0}
    kernel = kernels.RBF(**shape) if f.nu == np.inf else kernels.Matern(nu=f.nu, **shape)
    opt = gpmi.Optimizer(
        [(0.0, 1.0)] * f.d, kernel=kernel, noise_var=f.noise_sd**2, n_init=f.d + 3, budget=max(GIVEN_LOOKS), seed=seed
    )
    found = []
    for t in range(1, max(GIVEN_LOOKS) + 1):
        x = opt.ask()
        opt.tell(x, f(x) + f.noise_sd * rng.standard_normal())
        if t in GIVEN_LOOKS:
            found.append((t, opt.ledger.regret()))
    best = max(f.maximum, *(f(trial.x) for trial in opt.trials), *(f(regret.recommended) for _, regret in found))
    for t, regret in found:
        yield "given", name, seed, t, "interval", best - f(regret.recommended), *regret.interval()


# Lock-ins on 50 independent arms

ARMS = {
    "GP-MI": (gpmi.GPMI(), 100, 100),
    "GP-UCB": (gpmi.GPUCB(), 200, 100),
    "GP-UCB / 5": (gpmi.GPUCB(scale=0.2), 200, 30),
    "the default": (None, 150, 30),
}


def arms(name: str, seed: int) -> Iterator[Row]:
    """Yield when the run began to repeat its last point for good, and when the alarm was first raised."""
    policy, steps, _ = ARMS[name]
    rng = np.random.default_rng([seed, 50])
    f = rng.standard_normal(50)
    opt = gpmi.Optimizer(
        np.arange(50.0)[:, None], policy, kernel=kernels.RBF(lengthscale=1e-3), noise_var=0.01, seed=seed
    )
    alarm = 0
    for t in range(1, steps + 1):
        x = opt.ask()
        opt.tell(x, f[int(x[0])] + 0.1 * rng.standard_normal())
        if not alarm and t % 5 == 0 and opt.ledger.lock_in is not None:
            alarm = t
    queries = opt.ledger.rows[:, 0].astype(int)
    away = np.flatnonzero(queries != queries[-1])
    since = int(away[-1]) + 2 if len(away) else 1
    yield "arms", name, seed, alarm, "alarm", float(f.max() - f[queries[-1]]), float(since), float(steps)


# Costs


def cost(name: str, seed: int) -> Iterator[Row]:
    """Yield the CPU seconds of tell and ask, and of reading steps, calibration and the events, at several n."""
    for n in (20, 60, 200):
        rng = np.random.default_rng([seed, n])
        if name == "1000 candidates, prior given":
            z = rng.random((CANDIDATES, 2))
            opt = gpmi.Optimizer(z, aim="earn", kernel=ROUGH, noise_var=NOISE_SD**2, seed=seed)
            f: Callable[[Array], float] = lambda x: float(np.sin(9 * x[0]) + np.cos(7 * x[1]))  # noqa: E731
        else:
            z = np.array([-5.0, 0.0]) + 15.0 * rng.random((n, 2))
            opt = gpmi.Optimizer(BRANIN, aim="earn", seed=seed)
            f = branin
        for x in z[: n - 6]:
            opt.tell(x, f(x))
        opt.tell(x := opt.ask(), f(x))
        times: list[tuple[float, float]] = []
        for _ in range(12):
            begin = time.process_time()
            x = opt.ask()
            asked = time.process_time() - begin
            y = f(x)
            begin = time.process_time()
            opt.tell(x, y)
            told = time.process_time() - begin
            begin = time.process_time()
            read(opt.ledger)
            times.append((asked + told, time.process_time() - begin))
        suggestion, reading = np.mean(times, axis=0)
        begin = time.process_time()
        opt.ledger.regret()
        yield "cost", name, seed, n, "cpu", reading, suggestion, time.process_time() - begin


def read(ledger: Ledger) -> None:
    """Read everything that needs no draws of f or of the prior."""
    assert ledger.steps[-1].t == ledger.n
    if ledger.setting.priors.is_fixed:
        assert ledger.calibration.verdict
        assert ledger.calibration.coverage


PARTS: dict[str, Callable[[str, int], Iterator[Row]]] = {
    "drawn": drawn,
    "stops": stops,
    "box": box,
    "given": given,
    "arms": arms,
    "cost": cost,
}


def runs() -> list[tuple[str, str, int]]:
    """Return all runs, seed by seed, so that a partial table has something of everything."""
    counts = {("drawn", name): setting.runs for name, setting in DRAWN.items()}
    counts |= {("stops", name): 60 for name, setting in DRAWN.items() if setting.budget == BUDGET}
    counts |= {("box", name): 16 for name in BOXES} | {("given", "draws"): 60}
    counts |= {("arms", name): number for name, (_, _, number) in ARMS.items()}
    counts |= {("cost", name): 3 for name in ("1000 candidates, prior given", "Branin, learned")}
    every = [(seed / number, part, name, seed) for (part, name), number in counts.items() for seed in range(number)]
    return [(part, name, seed) for _, part, name, seed in sorted(every)]


def play(part: str, name: str, seed: int) -> list[tuple[object, ...]]:
    """Play one run and return its rows."""
    return [tuple(f"{v:.6g}" if isinstance(v, float) else v for v in row) for row in PARTS[part](name, seed)]


def order(row: harness.Row) -> tuple[object, ...]:
    """Return the place of a row in the table."""
    return row["part"], row["setting"], int(row["seed"]), int(row["step"]), row["what"]


# The page


def load() -> list[Row]:
    """Return all rows, with their numbers."""
    return [
        (
            r["part"], r["setting"], int(r["seed"]), int(r["step"]), r["what"],
            float(r["true"]), float(r["lower"]), float(r["upper"]),
        )
        for r in TABLE.rows()
    ]  # fmt: skip


def select(rows: list[Row], part: str, setting: str, what: str | None = None) -> list[Row]:
    """Return the rows of a setting."""
    return [r for r in rows if r[:2] == (part, setting) and (what is None or r[4] == what)]


def covered(rows: list[Row]) -> tuple[Array, int]:
    """Return whether each interval covers the truth, up to 1e-6 at the lower end, and the number of runs."""
    inside = [low - 1e-6 <= true <= high + 1e-9 for *_, true, low, high in rows]
    return np.array(inside, dtype=float), len({r[2] for r in rows})


def share(rows: list[Row]) -> str:
    """Return the coverage with its standard error over runs. The looks of one run are not independent."""
    inside, runs = covered(rows)
    if runs == 0:
        return "not measured"
    by_run: dict[int, list[float]] = {}
    for row, ok in zip(rows, inside, strict=True):
        by_run.setdefault(row[2], []).append(ok)
    means = np.array([np.mean(v) for v in by_run.values()])
    error = f" ± {196 * means.std(ddof=1) / np.sqrt(runs):.1f}" if runs > 1 else ""
    return f"{100 * inside.mean():.1f}{error} %"


def at_end(rows: list[Row], step: int) -> tuple[float, float]:
    """Return the medians of the true regret and of the upper end at one step."""
    last = [r for r in rows if r[3] == step]
    return float(np.median([r[5] for r in last])), float(np.median([r[7] for r in last]))


def looks_cells(rows: list[Row], looks: Sequence[int]) -> list[str]:
    """Return for each step the coverage and the medians of the true regret and of the upper end."""
    cells = []
    for t in looks:
        true, upper = at_end(rows, t)
        inside = covered([r for r in rows if r[3] == t])[0]
        cells.append(f"{100 * inside.mean():.0f} %, {true:.3f}, {upper:.3f}")
    return cells


def stop_rows(rows: list[Row], setting: str, rule: str) -> tuple[list[Row], list[Row]]:
    """Return the runs that a rule stopped, and those that it never stopped."""
    part = "stops" if rule == "regret" else "drawn"
    return select(rows, part, setting, rule), select(rows, part, setting, f"{rule}, never")


def promise(text: str, measured: str, ok: bool) -> str:
    """Return a line of the table of promises."""
    return f"| {text} | {measured} | {harness.yes(ok)} |"


def promises(rows: list[Row]) -> list[str]:
    """Return the table of all promises."""
    lines = ["| promise | measured | holds |", "|---|---|---|"]
    main = select(rows, "drawn", MAIN, "interval")
    if main:
        inside, runs = covered(main)
        true, upper = at_end(main, max(LOOKS))
        text = f"the 95 % interval covers the true simple regret in 93 to 98 % of the steps, {runs} draws"
        lines.append(promise(text, share(main), 0.93 <= inside.mean() <= 0.98))
        text = "at T = 60 in two dimensions its median upper end is at most 0.1 sd above the median true regret"
        lines.append(promise(text, f"{upper:.4f} against {true:.4f}", upper <= true + 0.1))
    stopped, never = stop_rows(rows, MAIN, "regret")
    if stopped:
        right = np.mean([r[5] <= EPS for r in stopped])
        used = np.median([r[3] for r in stopped + never])
        text = f"stopped at regret below {EPS}: the true regret is below it in at least 90 % of the stopped runs"
        lines.append(promise(text, f"{100 * right:.1f} % of {len(stopped)}", bool(right >= 0.9)))
        text = f"and at most 40 % of a budget of {BUDGET} is used, median"
        lines.append(promise(text, f"{100 * used / BUDGET:.0f} %, {used:.0f} evaluations", bool(used <= 0.4 * BUDGET)))
    lines += given_promises(rows)
    locked, found = lock_ins(rows)
    if locked:
        text = "the detector finds at least 95 % of GP-MI's lock-ins on 50 arms within 50 steps"
        lines.append(promise(text, f"{len(found)} of {len(locked)}", len(found) >= 0.95 * len(locked)))
    alarms = select(rows, "arms", "GP-UCB")
    if alarms:
        false = sum(r[3] > 0 for r in alarms)
        text = "with at most 5 % false alarms on GP-UCB runs"
        lines.append(
            promise(text, f"{false} of {len(alarms)} runs of {alarms[0][7]:.0f} steps", false <= 0.05 * len(alarms))
        )
    costs = [r for r in rows if r[0] == "cost"]
    if costs:
        worst = max(r[5] / r[6] for r in costs)
        text = "the steps, and with a given prior the calibration, cost at most 20 % of a suggestion, read after each"
        lines.append(promise(text, f"{100 * worst:.1f} % at most", worst <= 0.2))
    return lines


def given_promises(rows: list[Row]) -> list[str]:
    """Return the promises on boxes with the prior given."""
    lines = []
    for d, name in ((2, "two and three"), (4, "four to six")):
        looks = [r for r in of_part(rows, "given") if (2 + r[2] % 5 >= 4) == (d == 4)]
        if looks:
            inside, runs = covered(looks)[0], len({r[2] for r in looks})
            text = f"prior given, boxes of {name} dimensions, {runs} draws: it covers in 93 to 98 %"
            measured = f"{100 * inside.mean():.1f} ± {196 * error_over_runs(looks):.1f} %"
            lines.append(promise(text, measured, 0.93 <= inside.mean() <= 0.98))
    return lines


def of_part(rows: list[Row], part: str, setting: str | None = None) -> list[Row]:
    return [r for r in rows if r[0] == part and setting in (None, r[1])]


def error_over_runs(rows: list[Row]) -> float:
    """Return the standard error of the coverage over runs. The looks of one run are not independent."""
    by_run: dict[tuple[str, int], list[float]] = {}
    for row, ok in zip(rows, covered(rows)[0], strict=True):
        by_run.setdefault(row[1:3], []).append(ok)
    means = [np.mean(v) for v in by_run.values()]
    return float(np.std(means) / np.sqrt(len(means)))


def given_table(rows: list[Row]) -> list[str]:
    head = "| dimension | runs | coverage | " + " | ".join(f"t = {t}" for t in GIVEN_LOOKS) + " |"
    lines = [head, "|---" * (3 + len(GIVEN_LOOKS)) + "|"]
    for d in (2, 3, 4, 5, 6, 0):
        seen = [r for r in of_part(rows, "given") if d in (0, 2 + r[2] % 5)]
        if seen:
            share = f"{100 * covered(seen)[0].mean():.1f} %"
            cells = " | ".join(looks_cells(seen, GIVEN_LOOKS))
            lines.append(f"| {'all' if d == 0 else f'd = {d}'} | {len({r[2] for r in seen})} | {share} | {cells} |")
    return lines


def lock_ins(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return GP-MI's runs that repeat a wrong arm for the last 60 steps or more, and those found within 50 steps."""
    runs = select(rows, "arms", "GP-MI")
    locked = [r for r in runs if r[5] > 0.0 and r[7] - r[6] >= 60]
    return locked, [r for r in locked if 0 < r[3] <= r[6] + 50]


def interval_table(rows: list[Row], part: str, settings: list[str], looks: Sequence[int]) -> list[str]:
    head = "| setting | runs | all steps | " + " | ".join(f"t = {t}" for t in looks) + " |"
    lines = [head, "|---" * (3 + len(looks)) + "|"]
    for setting in settings:
        mine = select(rows, part, setting, "interval")
        if not mine:
            continue
        cells = " | ".join(looks_cells(mine, looks))
        lines.append(f"| {setting} | {covered(mine)[1]} | {share(mine)} | {cells} |")
    return lines


def stopping_table(rows: list[Row]) -> list[str]:
    lines = [
        f"| setting | rule | stopped | true regret at most {EPS} | evaluations: median, 90 % | mean true regret |",
        "|---|---|---|---|---|---|",
    ]
    for setting in DRAWN:
        for rule in ("regret", "phi"):
            stopped, never = stop_rows(rows, setting, rule)
            if not stopped:
                continue
            used = [r[3] for r in stopped + never]
            right = 100 * np.mean([r[5] <= EPS for r in stopped])
            lines.append(
                f"| {setting} | {rule} below {EPS} | {len(stopped)} of {len(stopped) + len(never)} | {right:.1f} % | "
                f"{np.median(used):.0f}, {np.quantile(used, 0.9):.0f} | {np.mean([r[5] for r in stopped]):.4f} |"
            )
    return lines


def arms_table(rows: list[Row]) -> list[str]:
    lines = [
        "| policy | runs | steps | ended on a wrong arm | alarms | first alarm, median step |",
        "|---|---|---|---|---|---|",
    ]
    for name, (_, steps, _) in ARMS.items():
        mine = select(rows, "arms", name)
        if mine:
            alarms = [r[3] for r in mine if r[3]]
            first = f"{np.median(alarms):.0f}" if alarms else ""
            wrong = sum(r[5] > 0.0 for r in mine)
            lines.append(f"| {name} | {len(mine)} | {steps} | {wrong} | {len(alarms)} | {first} |")
    return lines


def cost_table(rows: list[Row]) -> list[str]:
    lines = ["| where | n | tell and ask | reading the ledger | ratio | one interval |", "|---|---|---|---|---|---|"]
    costs = [r for r in rows if r[0] == "cost"]
    for name, n in sorted({(r[1], r[3]) for r in costs}):
        mine = np.array([r[5:] for r in costs if (r[1], r[3]) == (name, n)])
        reading, suggestion, interval = 1e3 * np.median(mine, axis=0)
        ratio = np.median(mine[:, 0] / mine[:, 1])
        lines.append(
            f"| {name} | {n} | {suggestion:.2f} ms | {reading:.3f} ms | {100 * ratio:.1f} % | {interval:.0f} ms |"
        )
    return lines


def report(rows: list[Row], new: int) -> None:
    """Write the page."""
    text = (
        "Every number is from ledger.csv. What the quantities are, and what is approximate about them, is in "
        "[../ledger.md](../ledger.md)."
    )
    lines = [
        *promises(rows),
        "",
        "## The interval, prior known, finite sets",
        "",
        f"f is drawn from the prior on {CANDIDATES} uniform points of the unit square, noise of sd {NOISE_SD}, in "
        f"prior standard deviations. The default policy, told that its budget is {BUDGET} (60 where it says so). "
        "Looks at the steps of the columns. Each cell: coverage, median true regret, median upper end of the interval.",
        "",
        *interval_table(rows, "drawn", list(DRAWN), LOOKS),
        "",
        "A finite set lets the recommended point be the best one with positive probability; where that exceeds 95 % "
        "the interval is [0, 0] and covers more often than it must. With a budget of 60 the default policy stops "
        "exploring towards the end, as it should for the sum of its regrets; the interval then stays wide.",
        "",
        "## When to stop",
        "",
        "The same runs. The rule about phi is asked after every evaluation, the one about the regret after every "
        f"second up to 60 and every tenth from there. Runs in which a rule never fired count with {BUDGET}.",
        "",
        *stopping_table(rows),
        "",
        "## The interval, prior known, boxes",
        "",
        "The draws of the comparison (sums of random waves, Matern-5/2) with their own prior, noise of sd 0.01.",
        "",
        *interval_table(rows, "box", list(BOXES), BOX_LOOKS),
        "",
        "Draws of Gaussian processes whose hyper-parameters are drawn too (`benchmarks/problems/draws.py`): nu = 3/2, "
        "5/2 and infinity in turn, one lengthscale or one for each coordinate, noise of sd 0.001 to 0.1, in standard "
        "deviations of f. A budget of 60, the default policy with the prior given. Each cell: coverage, median true "
        "regret, median upper end. With a learned prior: [belief.md](belief.md).",
        "",
        *given_table(rows),
        "",
        "## Lock-ins on 50 independent arms",
        "",
        "N(0, 1) arms, noise sd 0.1, the alarm looked at after every fifth query. A lock-in of GP-MI is a run that "
        "repeats a wrong arm to the end, for 60 queries at least; it is found if the alarm comes within 50 of them "
        f"({REPEATS} equal queries in a row are needed for any alarm). An alarm on a run that repeats the best arm "
        "without knowing it counts in the table and is not an error: more might have been had.",
        "",
        *arms_table(rows),
        "",
        "## What it costs",
        "",
        "CPU time. Reading is `ledger.steps` and, with a given prior, `ledger.calibration`, after every step; an "
        "interval is drawn when it is read. What is noted when a value is told is part of `tell`.",
        "",
        *cost_table(rows),
    ]
    harness.page(__file__, "The ledger, measured", text, lines, runs=len({row[:3] for row in rows}), new=new)


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--part", choices=PARTS, help="measure this part only")
    chosen = parser.parse_args()
    wanted = [] if chosen.report else [run for run in runs() if chosen.part in (None, run[0])]
    new = harness.resume(TABLE, wanted, play, chosen.cores)
    TABLE.tidy(order)
    report(load(), new)


if __name__ == "__main__":
    main()
