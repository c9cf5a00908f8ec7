"""What does it save to end trainings early that will not win?

    python benchmarks/curves.py                              all tasks, arms and seeds; ten minutes; resumes
    python benchmarks/curves.py --arms "gpmi, curves"        some arms, --tasks 3945 lcdb-901, --seeds 3
    python benchmarks/curves.py --check                      is the surrogate at hand, and do the constants follow
    python benchmarks/curves.py --coordinates                how well curves are predicted, by the coordinate of a step
    python benchmarks/curves.py --report                     write the page, and run nothing

A run on LCBench may use 1,040 epochs: 20 trainings of 52. One on LCDB, where a step is a larger sample, may use the
steps of 6 trainings to choose among 20 learners. The regret is the best value that is known (of 20,000 random
configurations, or of all learners) minus the best one at the last step among the trainings of a run that reached it, in
accuracy points. It can be negative for LCBench. A stop is wrong if the training would have ended above the best one
that was completed before, or if none was. A training that the end of the budget cuts short is neither completed nor
stopped.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import harness
import numpy as np
from problems import curves
from problems.curves import DEVELOPMENT, LEARNER_DEVELOPMENT, LEARNER_REPORTED, REPORTED

import gpmi
from gpmi.space import fidelity

NEEDS = "peers"
KEY = ("task", "seed", "arm")
COLUMNS = (*KEY, "regret", "completed", "stopped", "epochs", "wrong stops", "cpu s")
TABLE = harness.Table(harness.DOCS / "curves.csv", COLUMNS, KEY)
TRAININGS, LEARNER_TRAININGS = 20, 6  # complete ones in the budget
SEEDS, DEVELOPMENT_SEEDS = 10, 5
LEARNERS = (*LEARNER_DEVELOPMENT, *LEARNER_REPORTED)
TASKS = (*DEVELOPMENT, *REPORTED, *LEARNERS)
OURS, FULL, TWICE = "gpmi, curves", "gpmi, full trainings", "gpmi, twice the epochs"
TPE, HYPERBAND = "Optuna TPE", "Optuna TPE + Hyperband"
# How a curve is predicted: the density of its end, given complete curves and its own beginning.
DENSITIES = harness.Table(
    harness.DOCS / "curve_coordinates.csv",
    ("task", "seed", "curves", "power", "density"),
    ("task", "seed", "curves", "power"),
)
POWERS, COMPLETE, BEGUN = ("0.01", "0.25", "0.5", "0.75", "1"), (4, 8), 12
BELOW, CLOSE, WRONG = 13, 9, 0.05  # what the page promises: of 15 tasks, of 15 tasks, share of the stops


class Run:
    """The trainings of one run: what they used, and what became of them."""

    def __init__(self, name: str, seed: int, trainings: float = 1.0) -> None:
        self.task, self.seed = curves.build(name, seed), seed
        self.full = round(trainings * (LEARNER_TRAININGS if name in LEARNERS else TRAININGS))
        self.budget = self.full * self.task.steps
        self.best = -math.inf
        self.epochs = self.completed = self.stopped = self.wrong = self.begun = 0
        self.outside = 0.0  # CPU seconds of the tasks themselves

    @property
    def left(self) -> int:
        """Return how many epochs are left."""
        return self.budget - self.epochs

    def training(self, config: Mapping[str, Any]) -> Generator[tuple[int, float]]:
        """Yield each step with its value. What closes the generator before the last step stops the training."""
        begin = time.process_time()
        values = self.task.curve(config).tolist()
        self.outside += time.process_time() - begin
        self.begun += 1
        reached = 0
        try:
            for reached, value in enumerate(values, start=1):
                self.epochs += 1
                if reached == len(values):
                    self.completed += 1
                    self.best = max(self.best, value)
                yield reached, value
        finally:
            if reached < len(values) and self.left > 0:
                self.stopped += 1
                self.wrong += values[-1] > self.best

    def complete(self, config: Mapping[str, Any]) -> float:
        """Train to the end and return the last value."""
        return [value for _, value in self.training(config)][-1]

    def row(self, arm: str, spent: float) -> dict[str, Any]:
        """Return the row of the table."""
        return {
            **dict(zip(KEY, (self.task.name, self.seed, arm), strict=True)),
            "regret": f"{self.task.best - self.best:.5g}",
            "completed": self.completed,
            "stopped": self.stopped,
            "epochs": self.epochs,
            "wrong stops": self.wrong,
            "cpu s": f"{(spent - self.outside) / max(1, self.begun):.3g}",
        }


# Arms


def full_trainings(run: Run) -> None:
    """Maximise the last value, without a look at the curves."""
    gpmi.maximize(run.complete, run.task.space(), budget=run.full, seed=run.seed)


def with_curves(run: Run) -> None:
    """Maximise the last value, and let gpmi end trainings."""
    opt = gpmi.Optimizer(run.task.space() | {"epoch": gpmi.Fidelity(1, run.task.steps)}, seed=run.seed)
    while run.left > 0:
        training = run.training(opt.ask())
        trial = opt.pending[-1]
        for step, value in training:
            if opt.report(trial, step, value) == "stop" or run.left <= 0:
                break
        training.close()


def optuna_run(run: Run, *, hyperband: bool) -> None:
    """Maximise by Optuna's TPE as by default. Hyperband sees every step, with a reduction factor of 3 as by default.

    The name of the study decides the bracket of each trial, so it has the seed in it.
    """
    import optuna

    steps = run.task.steps
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=steps) if hyperband else None
    study = optuna.create_study(
        study_name=f"curves {run.seed}",
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=run.seed),
        pruner=pruner or optuna.pruners.NopPruner(),
    )
    space = distributions(run.task.space())
    while run.left > 0:
        trial, pruned, value = study.ask(space), False, math.nan
        training = run.training(trial.params)
        for step, value in training:
            trial.report(value, step)
            if step < steps and (run.left <= 0 or (pruned := hyperband and trial.should_prune())):
                break
        training.close()
        if pruned:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        elif run.left > 0:
            study.tell(trial, value)


def distributions(space: Mapping[str, Any]) -> dict[str, Any]:
    """Return Optuna's form of a space."""
    from optuna import distributions as kinds

    found: dict[str, Any] = {}
    for name, p in space.items():
        if isinstance(p, gpmi.Choice):
            found[name] = kinds.CategoricalDistribution(p.options)
        elif isinstance(p, gpmi.Int):
            found[name] = kinds.IntDistribution(p.lo, p.hi, log=p.log)
        else:
            found[name] = kinds.FloatDistribution(p.lo, p.hi, log=p.log)
    return found


ARMS: dict[str, Callable[[Run], None]] = {
    OURS: with_curves,
    FULL: full_trainings,
    TWICE: full_trainings,
    TPE: partial(optuna_run, hyperband=False),
    HYPERBAND: partial(optuna_run, hyperband=True),
}


def play(name: str, seed: int, arm: str) -> dict[str, Any]:
    """Play one run and return its row."""
    quiet()
    run = Run(name, seed, 2.0 if arm == TWICE else 1.0)
    begin = time.process_time()
    ARMS[arm](run)
    return run.row(arm, time.process_time() - begin)


def quiet() -> None:
    """Load Optuna, so that its import is not timed, and let it be silent."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")


def runs(names: Sequence[str], seeds: int | None, arms: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Yield the runs, one seed of all tasks before the next."""
    for seed in range(seeds or SEEDS):
        for name in names:
            few = name in (*DEVELOPMENT, *LEARNER_DEVELOPMENT)
            for arm in arms:
                if seed < (seeds or (DEVELOPMENT_SEEDS if few else SEEDS)):
                    yield name, seed, arm


def check() -> None:
    """Compare what is stored with what is found."""
    if (lack := curves.missing()) is None:
        for name in (*DEVELOPMENT, *REPORTED):
            found = curves.Task(name).search()
            print(f"{name:10} best {found:.4f} {harness.yes(abs(found - curves.stored()[name]) < 1e-4)}")
    print(lack or "the surrogate is at hand")
    if (lack := curves.missing("lcdb")) is None:
        print(f"data sets of LCDB {harness.yes(curves.chosen() == (LEARNER_REPORTED, LEARNER_DEVELOPMENT))}")
    print(lack or "LCDB is at hand")


# The coordinate of a step


def density(task: str, seed: int, complete: int, power: str) -> dict[str, Any]:
    """Return the mean log density of the ends of curves, in sd of the values: by the beginning up to half of the steps.

    The coordinate of step s is -s^-power; a small power stands for the logarithm.
    """
    fidelity.POWER = float(power)  # of this process, which plays nothing else
    problem, rng = curves.build(task, seed), np.random.default_rng([seed, 52])
    space = gpmi.Space.of(problem.space())
    configs = [space.decode(row) for row in space.from_unit(rng.random((complete + BEGUN, len(problem.space()))))]
    found = [problem.curve(config) for config in configs]
    rungs = gpmi.Fidelity(1, problem.steps).rungs
    opt = gpmi.Optimizer({**problem.space(), "epoch": gpmi.Fidelity(1, problem.steps)}, seed=seed, n_init=1)
    for config, curve in zip(configs[:complete], found, strict=False):
        for rung in rungs:
            opt.tell({**config, "epoch": rung}, float(curve[rung - 1]))
    scale, densities = np.std([curve[list(np.array(rungs) - 1)] for curve in found[:complete]]), []
    for config, curve in zip(configs[complete:], found[complete:], strict=True):
        own = copy.deepcopy(opt)
        for rung in rungs[:-1]:
            own.tell({**config, "epoch": rung}, float(curve[rung - 1]))
            model = own.model
            assert model is not None
            (mu,), (var,) = model.posterior(own.space.encode({**config, "epoch": problem.steps})[None])
            end = float(curve[-1])
            total = float(var) + model.posterior.noise_var
            z, slope = float(model.warp(np.array([end]))[0]), float(model.warp.log_slope(np.array([end]))[0])
            log = slope - 0.5 * (math.log(2 * math.pi * total) + (z - mu) ** 2 / total) + math.log(scale)
            densities.append(max(-10.0, float(log)))
    return dict(zip(DENSITIES.columns, (task, seed, complete, power, f"{np.mean(densities):.4f}"), strict=True))


def coordinates(cores: int) -> None:
    """Measure all powers on the development tasks."""
    cases = [(t, s, n, p) for t in DEVELOPMENT for s in range(DEVELOPMENT_SEEDS) for n in COMPLETE for p in POWERS]
    harness.resume(DENSITIES, cases, density, cores)


def coordinate_lines() -> list[str]:
    """Return the section about the coordinate of a step."""
    rows = DENSITIES.rows()
    if not rows:
        return []
    lines = []
    for power in POWERS:
        own = [[float(r["density"]) for r in rows if r["power"] == power and r["curves"] == str(n)] for n in COMPLETE]
        lines.append(["logarithm" if power == POWERS[0] else power, *(f"{np.mean(one):.2f}" for one in own)])
    text = (
        f"The mean log density of the end of a curve, in sd of the values, by its beginning and by complete curves of "
        f"other configurations: {len(rows)} fits on the development tasks, {BEGUN} curves each, at least -10 a curve. "
        "The coordinate of step s is -s^-power."
    )
    return [
        "## The coordinate of a step",
        "",
        text,
        "",
        *harness.table(["power", *(f"{n} curves" for n in COMPLETE)], lines),
        "",
    ]


# The page


class Rows:
    """The numbers of the table, by task and arm."""

    def __init__(self, rows: Iterable[harness.Row]) -> None:
        self.cells: dict[tuple[str, str], list[harness.Row]] = {}
        for row in rows:
            self.cells.setdefault((row["task"], row["arm"]), []).append(row)

    def values(self, names: Iterable[str], arm: str, column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return a column of all runs of an arm on some tasks."""
        return np.array([float(row[column]) for name in names for row in self.cells.get((name, arm), [])])

    def mean(self, name: str, arm: str) -> tuple[float, float] | None:
        """Return the mean regret and its standard error, or None if there are no runs."""
        found = self.values([name], arm, "regret")
        if not len(found):
            return None
        return float(found.mean()), float(found.std(ddof=1) / math.sqrt(len(found))) if len(found) > 1 else math.inf

    def below(self, names: Iterable[str], arm: str, other: str, errors: float = 0.0) -> tuple[int, int] | None:
        """Return on how many tasks an arm's mean is below another's plus some standard errors of the difference."""
        count = total = 0
        for name in names:
            a, b = self.mean(name, arm), self.mean(name, other)
            if a is not None and b is not None:
                slack = errors * math.hypot(a[1], b[1])
                count, total = count + (a[0] <= b[0] + slack if errors else a[0] < b[0]), total + 1
        return (count, total) if total else None


def regrets(rows: Rows, names: Sequence[str], arms: Sequence[str]) -> list[str]:
    """Return the table of mean regrets, with standard errors."""
    lines = []
    for name in names:
        found = [rows.mean(name, arm) for arm in arms]
        lines.append([name, *("" if one is None else f"{one[0]:.2f} ± {one[1]:.2f}" for one in found)])
    means = [[one[0] for name in names if (one := rows.mean(name, arm))] for arm in arms]
    lines.append(["mean", *(f"{np.mean(column):.2f}" if column else "" for column in means)])
    return harness.table(["", *arms], lines)


def fates(rows: Rows, names: Sequence[str], arms: Sequence[str]) -> list[str]:
    """Return what became of the trainings, and the CPU time of an arm for each of them."""
    lines = []
    for arm in arms:
        means = [rows.values(names, arm, column).mean() for column in ("completed", "stopped", "epochs")]
        stopped, wrong = rows.values(names, arm, "stopped").sum(), rows.values(names, arm, "wrong stops").sum()
        share = f"{100 * wrong / stopped:.1f}" if stopped else ""
        cpu = f"{rows.values(names, arm, 'cpu s').mean():.2g}"
        lines.append([arm, *(f"{mean:.1f}" for mean in means), share, cpu])
    return harness.table(["", "completed", "stopped", "epochs", "wrong stops, %", "CPU s a training"], lines)


def bars(rows: Rows, names: Sequence[str]) -> list[str]:
    """Return the promises, with what was measured."""
    lines = []
    for other in (HYPERBAND, FULL):
        if found := rows.below(names, OURS, other):
            lines.append([f"mean regret below that of {other}", f"{BELOW} tasks of {len(names)}", *told(found, BELOW)])
    if found := rows.below(names, OURS, TWICE, errors=1.0):
        words = f"mean regret at most one standard error of the difference above that of {TWICE}"
        lines.append([words, f"{CLOSE} tasks of {len(names)}", *told(found, CLOSE)])
    stopped, wrong = rows.values(names, OURS, "stopped").sum(), rows.values(names, OURS, "wrong stops").sum()
    if stopped:
        share = wrong / stopped
        lines.append(["wrong stops", f"at most {100 * WRONG:g} %", f"{100 * share:.1f} %", harness.yes(share <= WRONG)])
    return [*harness.table([OURS, "promised", "measured", "holds"], lines), ""] if lines else []


def told(found: tuple[int, int], least: int) -> tuple[str, str]:
    return f"{found[0]} of {found[1]}", harness.yes(found[0] >= least)


def report(new: int) -> None:
    """Write the page."""
    table = [row for row in TABLE.latest().values() if row["task"] in TASKS]
    rows, body = Rows(table), list[str]()
    parts = {
        "LCBench, tasks that chose nothing": REPORTED,
        "LCBench, tasks for development": DEVELOPMENT,
        "Real curves: LCDB": LEARNER_REPORTED,
        "Real curves for development": LEARNER_DEVELOPMENT,
    }
    for title, names in parts.items():
        known = [name for name in names if any(key[0] == name for key in rows.cells)]
        arms = [arm for arm in ARMS if any((name, arm) in rows.cells for name in known)]
        if known:
            body += [f"## {title}", "", *(bars(rows, known) if names == REPORTED else [])]
            body += ["Mean regret in accuracy points, ± its standard error.", "", *regrets(rows, known, arms), ""]
            body += ["Means of a run:", "", *fates(rows, known, arms), ""]
    body += coordinate_lines()
    text = (
        f"A run on LCBench may use {TRAININGS * curves.EPOCHS:,} epochs, {TRAININGS} trainings of {curves.EPOCHS}. The "
        f"regret is the best of {curves.SAMPLE:,} random configurations minus the best training of the run that "
        "reached the last epoch; it can be negative. LCDB has real curves: twenty learners, a step is a larger sample, "
        f"and a run may use the steps of {LEARNER_TRAININGS} trainings. A stop is wrong if the training would have "
        "ended above all that were completed before, or if none was."
    )
    packages = ("onnxruntime", "lcdb")
    harness.page(__file__, "Learning curves", text, body, runs=len(table), new=new, packages=packages)


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--arms", nargs="+", choices=[*ARMS], default=[*ARMS])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[*TASKS])
    parser.add_argument("--seeds", type=int, help=f"seeds from 0 on (default: {SEEDS}, or {DEVELOPMENT_SEEDS})")
    parser.add_argument("--coordinates", action="store_true", help="compare coordinates of a step")
    parser.add_argument("--check", action="store_true", help="compare what is stored with what is found")
    arguments = parser.parse_args()
    if arguments.check:
        check()
        return
    if arguments.coordinates:
        coordinates(arguments.cores)
        return
    new = 0
    if not arguments.report:
        lacks = {name: lack for name in arguments.tasks if (lack := curves.missing(name))}
        for lack in sorted(set(lacks.values())):
            harness.say(f"skipped {sum(one == lack for one in lacks.values())} tasks: {lack}")
        names = [name for name in arguments.tasks if name not in lacks]
        new = harness.resume(TABLE, runs(names, arguments.seeds, arguments.arms), play, arguments.cores)
        places = {name: i for i, name in enumerate(TASKS)}
        TABLE.tidy(lambda r: (places[r["task"]], [*ARMS].index(r["arm"]), int(r["seed"])), latest=True)
    report(new)


if __name__ == "__main__":
    main()
