"""Can the ledger be believed? Coverage of the regret's interval, stopping, lock-ins, and the cost of it all.

    python benchmarks/ledger.py [--cores 2]   writes docs/benchmarks/ledger.md and .csv; half an hour; resumes
    python benchmarks/ledger.py --report      writes the page from the table

Everything is done by the library itself: `Optimizer.ask`, `tell` and `ledger`. Values are in standard deviations of the
prior where f is drawn from it, and in standard deviations of f over its space elsewhere.
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
from gpmi.paper.tasks.functions import branin
from gpmi.run.stopping import RegretBelow

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


# Everything learned, on the problems of the comparison

KNOWN = [name for name in problems.NAMES if problems.make(name, 0).maximum is not None]


LEARNED_LOOKS = (10, 20, 40, 60)


def looked_at(
    part: str, name: str, seed: int, opt: gpmi.Optimizer, observe: Callable[[Any, int], float],
    regret: Callable[[Any], float], scale: float,
) -> Iterator[Row]:  # fmt: skip
    """Make a run of 60 evaluations: intervals at the looks, when RegretBelow(EPS scale) stops it first, the verdict."""
    rule, stopped = RegretBelow(EPS * scale), False
    for t in range(1, max(LEARNED_LOOKS) + 1):
        x = opt.ask()
        opt.tell(x, observe(x, t))
        if not stopped and rule.stop(opt, 0.0) is not None:
            stopped = True
            yield part, name, seed, t, "stopped", regret(opt.recommend()) / scale, NAN, NAN
        if t in LEARNED_LOOKS:
            found = opt.ledger.regret()
            low, high = found.interval()
            yield part, name, seed, t, "interval", regret(found.recommended) / scale, low / scale, high / scale
    calibration = opt.ledger.calibration
    yield part, name, seed, t, calibration.verdict, calibration.coverage[0.95], NAN, NAN


def learned(name: str, seed: int) -> Iterator[Row]:
    """Run the default on a problem of the comparison. Values are in standard deviations of f over the space."""
    problem = problems.make(name, seed)
    maximum = problem.maximum
    assert maximum is not None
    opt = gpmi.Optimizer(problem.space, budget=max(LEARNED_LOOKS), seed=seed)
    yield from looked_at(
        "learned", name, seed, opt, lambda x, t: problem.observe(x, seed, t), lambda x: maximum - problem.f(x),
        spread(name, seed),
    )  # fmt: skip


def random(name: str, seed: int) -> Iterator[Row]:
    """Run on a draw with random hyper-parameters, everything learned ("find", "earn") or the prior given ("given")."""
    f, rng = draws.make(seed), np.random.default_rng([seed, 7])
    if name == "given":
        shape = {"lengthscale": f.lengthscale, "variance": 1.0}
        kernel = kernels.RBF(**shape) if f.nu == np.inf else kernels.Matern(nu=f.nu, **shape)
        arguments: dict[str, Any] = {"kernel": kernel, "noise_var": f.noise_sd**2, "n_init": f.d + 3}
    else:
        arguments = {"aim": name}
    opt = gpmi.Optimizer([(0.0, 1.0)] * f.d, budget=max(LEARNED_LOOKS), seed=seed, **arguments)

    def observe(x: Array, t: int) -> float:
        return f(x) + f.noise_sd * rng.standard_normal()

    rows = list(looked_at("random", name, seed, opt, observe, lambda x: -f(x), 1.0))
    best = max(f.maximum, max(f(trial.x) for trial in opt.trials), max(-r[5] for r in rows if r[4] != rows[-1][4]))
    for part, setting, number, t, what, true, low, high in rows:
        yield part, setting, number, t, what, true + best if what in ("interval", "stopped") else true, low, high


def spread(name: str, seed: int) -> float:
    """Return the standard deviation of f over its space."""
    return float(np.std(problems.values_at_random(problems.make(name, seed), 1000)))


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


def cost_of_interval(name: str, seed: int) -> Iterator[Row]:
    """Yield the CPU seconds of a suggestion, of the first interval at n = 60, and of a run with `RegretBelow`."""
    problem, number = problems.make(name, seed), iter(range(1, 10**6))
    opt, spent = gpmi.Optimizer(problem.space, budget=60, seed=seed), 0.0
    for t in range(1, 61):
        begin = time.process_time()
        x = opt.ask()
        spent += time.process_time() - begin
        y = problem.observe(x, seed, t)
        begin = time.process_time()
        opt.tell(x, y)
        spent += time.process_time() - begin
    opt.recommend()
    begin = time.process_time()
    opt.ledger.regret()
    interval = time.process_time() - begin
    yield "price", name, seed, 60, "interval", interval, spent / 60, NAN
    runs = []
    for stop in (None, RegretBelow(EPS * spread(name, seed))):
        begin = time.process_time()
        run = gpmi.maximize(
            lambda x: problem.observe(x, seed, next(number)), problem.space, budget=60, stop=stop, seed=seed
        )
        runs.append((time.process_time() - begin) / len(run.trials))
    yield "price", name, seed, len(run.trials), "rule", runs[1], runs[0], NAN


PRICED = ("branin", "hartmann-3", "gp-4", "branin-noisy", "hartmann-6-noisy", "ackley-5", "hartmann-mixed")
RANDOM = {"find": 200, "earn": 60, "given": 60}

PARTS: dict[str, Callable[[str, int], Iterator[Row]]] = {
    "drawn": drawn,
    "stops": stops,
    "box": box,
    "learned": learned,
    "random": random,
    "arms": arms,
    "cost": cost,
    "price": cost_of_interval,
}


def runs() -> list[tuple[str, str, int]]:
    """Return all runs, seed by seed, so that a partial table has something of everything."""
    counts = {("drawn", name): setting.runs for name, setting in DRAWN.items()}
    counts |= {("stops", name): 60 for name, setting in DRAWN.items() if setting.budget == BUDGET}
    counts |= {("box", name): 16 for name in BOXES} | {("learned", name): 3 for name in KNOWN}
    counts |= {("random", name): number for name, number in RANDOM.items()}
    counts |= {("arms", name): number for name, (_, _, number) in ARMS.items()}
    counts |= {("cost", name): 3 for name in ("1000 candidates, prior given", "Branin, learned")}
    counts |= {("price", name): 3 for name in PRICED}
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
    lines += learned_promises(rows) + price_promises(rows)
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


def learned_promises(rows: list[Row]) -> list[str]:
    """Return the promises on random draws: coverage, width and stopping with everything learned or the prior given."""
    lines = []
    sets = {
        "draws with random hyper-parameters": (of_part(rows, "random", "find"), 0.92, 0.98, 1.98),
        "the functions of the comparison": (of_part(rows, "learned"), 0.88, 1.0, 1.23),
    }
    for name, (mine, least, most, before) in sets.items():
        looks = [r for r in mine if r[4] == "interval"]
        if not looks:
            continue
        inside, runs = covered(looks)[0], len({r[1:3] for r in looks})
        text = f"everything learned, {name}, {runs} runs: it covers in {100 * least:.0f} to {100 * most:.0f} %"
        lines.append(
            promise(
                text,
                f"{100 * inside.mean():.1f} ± {196 * error_over_runs(looks):.1f} %",
                least <= inside.mean() <= most,
            )
        )
        upper, true = np.median([[r[7], r[5]] for r in looks if r[3] in (20, 60)], axis=0)
        text = f"and its median upper end at t = 20 and 60 is at most {2.2 * before:.1f}, 2.2 times {before}"
        lines.append(promise(text, f"{upper:.2f}, median true regret {true:.3f}", bool(upper <= 2.2 * before)))
        stopped = [r for r in mine if r[4] == "stopped"]
        if stopped:
            right = np.mean([r[5] <= EPS for r in stopped])
            text = f"and stopped by RegretBelow({EPS} sd) at least 90 % are right"
            lines.append(promise(text, f"{100 * right:.0f} % of {len(stopped)}", bool(right >= 0.9)))
    for d, name in ((2, "two and three"), (4, "four to six")):
        looks = [r for r in of_part(rows, "random", "given") if r[4] == "interval" and (2 + r[2] % 5 >= 4) == (d == 4)]
        if looks:
            inside, runs = covered(looks)[0], len({r[2] for r in looks})
            text = f"prior given, boxes of {name} dimensions, {runs} draws: it covers in 93 to 98 %"
            lines.append(
                promise(
                    text,
                    f"{100 * inside.mean():.1f} ± {196 * error_over_runs(looks):.1f} %",
                    0.93 <= inside.mean() <= 0.98,
                )
            )
    return lines


def price_promises(rows: list[Row]) -> list[str]:
    lines = []
    ratios = {what: [r[5] / r[6] for r in of_part(rows, "price") if r[4] == what] for what in ("interval", "rule")}
    if ratios["interval"]:
        worst = max(
            np.median([r[5] / r[6] for r in of_part(rows, "price", name) if r[4] == "interval"]) for name in PRICED
        )
        lines.append(
            promise(
                "an interval at n = 60 costs at most 100 suggestions' CPU",
                f"{worst:.0f} on the worst problem",
                bool(worst <= 100),
            )
        )
        worst = max(np.median([r[5] / r[6] for r in of_part(rows, "price", name) if r[4] == "rule"]) for name in PRICED)
        lines.append(
            promise(
                "a run with `RegretBelow` costs at most five times one without, per evaluation",
                f"{worst:.1f} on the worst problem",
                bool(worst <= 5),
            )
        )
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


def random_table(rows: list[Row]) -> list[str]:
    looks = LEARNED_LOOKS
    head = "| dimension | runs | coverage | " + " | ".join(f"t = {t}" for t in looks) + " | stopped, right | verdicts |"
    lines = [head, "|---" * (5 + len(looks)) + "|"]
    for setting in RANDOM:
        for d in (2, 3, 4, 5, 6, 0):
            mine = [r for r in of_part(rows, "random", setting) if d in (0, 2 + r[2] % 5)]
            seen = [r for r in mine if r[4] == "interval"]
            if not seen:
                continue
            cells = looks_cells(seen, looks)
            stopped = [r for r in mine if r[4] == "stopped"]
            words = [r[4] for r in mine if r[4] not in ("interval", "stopped")]
            verdicts = ", ".join(f"{words.count(w)} {w}" for w in sorted(set(words)))
            right = f"{len(stopped)}, {sum(r[5] <= EPS for r in stopped)}"
            name = f"{setting}, {'all' if d == 0 else f'd = {d}'}"
            share = f"{100 * covered(seen)[0].mean():.1f} %"
            lines.append(
                f"| {name} | {len({r[2] for r in seen})} | {share} | {' | '.join(cells)} | {right} | {verdicts} |"
            )
    return lines


def price_table(rows: list[Row]) -> list[str]:
    lines = [
        "| problem | a suggestion | first interval at n = 60 | ratio | run with the rule / without, per evaluation |",
        "|---|---|---|---|---|",
    ]
    for name in PRICED:
        mine = of_part(rows, "price", name)
        if mine:
            interval = np.array([r[5:7] for r in mine if r[4] == "interval"])
            rule = np.median([r[5] / r[6] for r in mine if r[4] == "rule"])
            cost, one = 1e3 * np.median(interval, axis=0)
            ratio = np.median(interval[:, 0] / interval[:, 1])
            lines.append(f"| {name} | {one:.1f} ms | {cost:.0f} ms | {ratio:.0f} | {rule:.1f} |")
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


def learned_table(rows: list[Row]) -> list[str]:
    lines = [
        "| problem | runs | coverage | true regret at t = 60 | upper end | stopped, right | verdicts | inside 95 % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in KNOWN:
        mine = select(rows, "learned", name, "interval")
        if not mine:
            continue
        verdicts = [r for r in select(rows, "learned", name) if r[4] not in ("interval", "stopped")]
        stopped = select(rows, "learned", name, "stopped")
        words = ", ".join(f"{sum(r[4] == w for r in verdicts)} {w}" for w in sorted({r[4] for r in verdicts}))
        true, upper = at_end(mine, max(LEARNED_LOOKS))
        right = f"{len(stopped)}, {sum(r[5] <= EPS for r in stopped)}"
        lines.append(
            f"| {name} | {covered(mine)[1]} | {100 * covered(mine)[0].mean():.0f} % | {true:.2g} | {upper:.2g} | "
            f"{right} | {words} | {100 * np.mean([r[5] for r in verdicts]):.0f} % |"
        )
    every = [r for r in rows if r[0] == "learned" and r[4] == "interval"]
    if every:
        above = np.mean([r[5] > r[7] for r in every])
        lines.append(f"| all | {len({r[1:3] for r in every})} | {100 * covered(every)[0].mean():.0f} % | | | | | |")
        lines += [
            "",
            f"In {100 * above:.0f} % of all looks the true regret was above the upper end; the other misses are below.",
        ]
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
        "## The interval, everything learned",
        "",
        "Draws of Gaussian processes whose hyper-parameters are drawn too (`benchmarks/problems/draws.py`): nu = 3/2, "
        "5/2 and infinity in turn, one lengthscale or one for each coordinate, noise of sd 0.001 to 0.1, in standard "
        'deviations of f. A budget of 60; the default policy ("find"), that of "earn", and the default with its '
        "prior given. Each cell: coverage, median true regret, median upper end. Stopped: by "
        f"RegretBelow({EPS}), asked after every evaluation, and how many of these were right. The verdict is that at "
        "t = 60. The numbers of the code were chosen on seeds from 1,000 on.",
        "",
        *random_table(rows),
        "",
        f"The default on the problems of the comparison, looks at t = {', '.join(map(str, LEARNED_LOOKS))}; values in "
        "standard deviations of f. The functions are no draws of the model, so nothing promises 95 % here. Seeds 10 to "
        "12 and 100 were used while the code was written.",
        "",
        *learned_table(rows),
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
        "",
        f"Everything learned, the default policy, a budget of 60; the rule is RegretBelow({EPS} sd of f):",
        "",
        *price_table(rows),
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
