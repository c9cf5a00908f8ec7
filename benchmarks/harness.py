"""What all benchmarks share: one BLAS thread, the machine, the commit, resumable tables, jobs, pages and arguments.

Import it as `import harness`, before NumPy: NumPy and PyTorch read the number of threads when they are loaded. What is
large is imported where it is used, so that a process that measures memory or imports stays small.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO

# Child processes inherit it.
os.environ.update(dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1"))

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # where paper/ is: its tasks are problems of some benchmarks
DOCS = ROOT / "docs" / "benchmarks"
PACKAGES = ("numpy", "scipy", "threadpoolctl", "optuna", "torch", "greenlet")  # named with the machine, if installed
MEASURED = re.compile(r"- Measured until (\S+) on (.+)")  # the lines of a page that name a machine
TABLES = re.compile(r"(?:^\|.*\n)+", flags=re.MULTILINE)


# Machine and source


def processor() -> str:
    """Return the name of the CPU."""
    import platform

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def installed(package: str) -> str | None:
    """Return the version of a package, or None."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def machine(*packages: str) -> str:
    """Describe the CPU, the cores, Python, NumPy, its BLAS and other packages in one line."""
    import platform

    import numpy as np

    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    versions = [f"{name} {version}" for name in (*PACKAGES, *packages) if (version := installed(name))]
    return (
        f"{processor()}, {os.cpu_count()} cores, one thread used; {platform.system()}; "
        f"Python {platform.python_version()}, {', '.join(versions)}; NumPy's BLAS: {blas['name']} {blas['version']}"
    )


def commit() -> str:
    """Return the commit that last changed gpmi's source, with a star if files there have changed since."""
    git = ["git", "-C", str(ROOT)]
    last = subprocess.run([*git, "log", "-1", "--format=%h", "--", "src"], capture_output=True, text=True)
    changed = subprocess.run([*git, "status", "--porcelain", "--", "src"], capture_output=True, text=True)
    return last.stdout.strip() + ("*" if changed.stdout.strip() else "")


def extract(revision: str, folder: Path) -> Path:
    """Unpack the source of a revision into `folder` and return its src folder."""
    import zipfile

    packed = subprocess.run(["git", "archive", "--format=zip", revision, "src"], cwd=ROOT, capture_output=True)
    if packed.returncode:
        raise SystemExit(f"no tree of {revision!r} to compare with: {packed.stderr.decode().strip()}")
    with zipfile.ZipFile(io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder)
    return folder / "src"


# Tables

Row = dict[str, str]


class Table:
    """A CSV file of runs: several processes may append to it, and work that was stopped resumes where it was.

    The columns in `key` identify a run. A run has one row or several. Rows that were appended later replace earlier
    ones of the same run only in `latest` and `tidy`.
    """

    def __init__(self, path: Path, columns: Sequence[str], key: Sequence[str]) -> None:
        self.path, self.columns, self.key = path, tuple(columns), tuple(key)

    def rows(self) -> list[Row]:
        """Read all rows. A last line without its end was left by a process that was killed, and is left out."""
        return self._parsed(self.path.read_bytes()) if self.path.exists() else []

    def keys(self) -> set[tuple[str, ...]]:
        """Return the keys of all runs in the table."""
        return {self._key(row) for row in self.rows()}

    def missing(self, runs: Iterable[Any]) -> list[Any]:
        """Return the runs, tuples in the order of the key, that have no row."""
        done = self.keys()
        return [run for run in runs if tuple(map(str, run)) not in done]

    def latest(self) -> dict[tuple[str, ...], Row]:
        """Return the last row of each run, by its key."""
        return {self._key(row): row for row in self.rows()}

    def append(self, *rows: Mapping[str, Any] | Sequence[Any]) -> None:
        """Add rows, in one write."""
        with self._locked() as file:
            text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            if len(whole) < len(text):  # a line cut short by a kill
                file.truncate(len(whole))
            end = "\r\n" if whole.endswith(b"\r\n") else "\n"  # some tables have the line ends of csv.writer
            file.write(self._lines(rows, header=not whole, end=end))

    def tidy(self, order: Callable[[Row], Any], *, latest: bool = False) -> None:
        """Sort the rows. With `latest`, drop those that a later row of the same run replaces."""
        if not self.path.exists():
            return
        with self._locked() as file:
            text = file.read()
            rows = self._parsed(text)
            if latest:
                rows = list({self._key(row): row for row in rows}.values())
            part = self.path.with_name(f".{self.path.name}.part")
            end = "\r\n" if text.endswith(b"\r\n") else "\n"
            part.write_bytes(self._lines(sorted(rows, key=order), header=True, end=end))
            part.replace(self.path)

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """Open the file for reading and appending, with no other writer."""
        import fcntl

        self.path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with self.path.open("a+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if self.path.exists() and os.fstat(file.fileno()).st_ino == self.path.stat().st_ino:
                    file.seek(0)
                    yield file
                    return
            # `tidy` of another process has replaced the file in the meantime.

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(row[name] for name in self.key)

    def _parsed(self, text: bytes) -> list[Row]:
        whole = text[: text.rfind(b"\n") + 1].decode()
        reader = csv.DictReader(io.StringIO(whole, newline=""))
        if whole and tuple(reader.fieldnames or ()) != self.columns:
            raise ValueError(f"{self.path} has other columns than this script writes; move it away")
        return list(reader)

    def _lines(self, rows: Iterable[Mapping[str, Any] | Sequence[Any]], *, header: bool, end: str) -> bytes:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator=end)
        if header:
            writer.writerow(self.columns)
        for row in rows:
            cells = [row.get(name, "") for name in self.columns] if isinstance(row, Mapping) else row
            assert len(cells) == len(self.columns), (self.columns, row)
            writer.writerow(cells)
        return buffer.getvalue().encode()


# Jobs


def each(work: Callable[..., Any], jobs: Sequence[Any], cores: int = 1) -> Iterator[tuple[Any, Any]]:
    """Yield each job with the result of work(*job): in order in this process, or as they end on several cores."""
    if cores == 1:
        yield from ((job, work(*job)) for job in jobs)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed

    with ProcessPoolExecutor(cores) as pool:
        waiting = {pool.submit(work, *job): job for job in jobs}
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def resume(table: Table, runs: Iterable[Any], play: Callable[..., Any], cores: int = 1) -> int:
    """Play the runs that are not in the table, append each one as it ends, and return how many there were.

    `play(*run)` returns a row, or a list of rows.
    """
    todo = table.missing(runs)
    for number, (run, found) in enumerate(each(play, todo, cores), start=1):
        table.append(*(found if isinstance(found, list) else [found]))
        say(f"{time.strftime('%H:%M:%S')} {number} of {len(todo)}: {', '.join(map(str, run))}")
    return len(todo)


def measure(script: str, *arguments: object, python: str | Path = sys.executable, **options: Any) -> Any:
    """Run a script in a fresh process and return the JSON in the last line of its output.

    `options` are those of subprocess.run. A script that fails raises CalledProcessError, with its output.
    """
    command = [str(python), script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    return json.loads(done.stdout.strip().splitlines()[-1])


def cpu_seconds(call: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def peak_memory() -> int:
    """Return the largest resident set of this process so far, in KiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


# Pages


def page(
    script: str,
    title: str,
    text: str,
    body: Iterable[str],
    *,
    name: str | None = None,
    runs: int | None = None,
    new: int | None = None,
    packages: Sequence[str] = (),
) -> None:
    """Write docs/benchmarks/<name>.md: the title, the script, machine, date and number of runs, then the body's lines.

    `new` is the number of runs made just now, for a page about a table that has older runs as well. The machines of
    those are kept, and with new runs this machine is added. Without it everything was measured just now.
    """
    import gpmi

    path = DOCS / f"{name or Path(script).stem}.md"
    today = date.today().isoformat()
    older = path.read_text(encoding="utf-8").splitlines() if path.exists() and new is not None else []
    machines = {found[2]: found[1] for line in older if (found := MEASURED.fullmatch(line))}
    if new is None or new > 0:
        machines[machine(*packages)] = today
    count = "" if runs is None else f"; {runs:,} runs"
    lines = [
        f"# {title}",
        "",
        f"Written by `make bench NAME={Path(script).stem}`. {text}",
        "",
        *(f"- Measured until {last} on {name}" for name, last in machines.items()),
        f"- Page written on {today}, gpmi {gpmi.__version__}, commit {commit()}{count}",
        "",
        *body,
    ]
    text = "\n".join(lines).rstrip("\n") + "\n"
    path.write_text(text, encoding="utf-8")
    say(f"wrote {path.relative_to(ROOT)}")
    for manual in ROOT.glob("docs/**/*.md"):
        older = manual.read_text(encoding="utf-8")
        newer = with_copies(older, path.name, text)
        if newer != older:
            manual.write_text(newer, encoding="utf-8")
            say(f"wrote the copy of its table in {manual.relative_to(ROOT)}")


def with_copies(manual: str, name: str, page: str) -> str:
    """Return a page of the manual with its copies of tables as they are in the benchmark page of that name.

    A copy stands between <!-- from benchmarks/name.md --> and <!-- end -->. It is the first table of the page that has
    the same first line.
    """
    tables = [found[0] for found in TABLES.finditer(page)]

    def current(found: re.Match[str]) -> str:
        head = found[2].partition("\n")[0]
        same = [one for one in tables if one.partition("\n")[0] == head]
        if not same:
            raise ValueError(f"benchmarks/{name} has no table that begins with {head!r}; copy another one")
        return found[1] + same[0] + found[3]

    copies = re.compile(rf"(<!-- from benchmarks/{re.escape(name)} -->\n)(.*?)(<!-- end -->)", flags=re.DOTALL)
    return copies.sub(current, manual)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a Markdown table."""
    first = "|" + "|".join(f" {cell} " if cell else " " for cell in head) + "|"
    return [first, "|---" * len(head) + "|", *(f"| {' | '.join(map(str, row))} |" for row in rows)]


def yes(holds: bool) -> str:
    """Return the cell of a table that says whether a promise holds."""
    return "yes" if holds else "**no**"


# Arguments


def parser(doc: str | None, *, cores: bool = False, report: bool = False) -> argparse.ArgumentParser:
    """Return a parser whose help is the script's docstring, with the options that several scripts have."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if cores:
        made.add_argument("--cores", type=int, default=1, help="runs at the same time (default: %(default)s)")
    if report:
        made.add_argument("--report", action="store_true", help="write the page from the table, and run nothing")
    return made
