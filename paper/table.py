"""The table of runs: a CSV file that grows by whole lines, so that an interrupted experiment can be continued."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from gpmi._support.types import Array

# Queries at the end of a run, or a quarter of it if that is less; their mean regret tells whether it found the maximum.
LAST = 50  # our choice


@dataclass(frozen=True)
class Row:
    """One run: what was queried after the initial observations, the regrets without noise, and the CPU seconds."""

    task: str
    algorithm: str
    repetition: int
    seed: int
    horizon: int
    cpu: float
    queries: tuple[int, ...]  # rows of the task's candidates
    regrets: tuple[float, ...]  # max f - f(x_t), five digits

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        """What determines the queries."""
        return self.task, self.algorithm, self.repetition, self.seed, self.horizon

    @property
    def mean_regrets(self) -> Array:
        """R_t / t for t = 1, ..., T."""
        mean: Array = np.cumsum(self.regrets) / np.arange(1, len(self.regrets) + 1)
        return mean

    @property
    def last(self) -> slice:
        """The last 50 queries, or the last quarter of a run of less than 200."""
        return slice(-max(1, min(LAST, self.horizon // 4)), None)

    @property
    def last_regret(self) -> float:
        """The mean regret of the last queries."""
        return float(np.mean(self.regrets[self.last]))

    def until(self, horizon: int) -> Row:
        """The same run after its first `horizon` queries; its CPU seconds are their share."""
        cpu = self.cpu * horizon / self.horizon
        return replace(self, horizon=horizon, cpu=cpu, queries=self.queries[:horizon], regrets=self.regrets[:horizon])

    @property
    def found(self) -> bool:
        """Whether the maximiser was queried."""
        return min(self.regrets) <= 0.0


COLUMNS = tuple(field.name for field in fields(Row))
_HEAD = (",".join(COLUMNS) + "\n").encode()


def open_table(path: Path, packed: Path) -> list[Row]:
    """The rows of the growing table at path. If there is none it is made, from the packed table if that exists.

    An incomplete last line, from a process that was killed, is removed. A file that is no table is refused.
    """
    if not path.exists():
        _write(path, _unpacked(packed) if packed.exists() else _HEAD)
    text = path.read_bytes()
    if not text.startswith(_HEAD) and not _HEAD.startswith(text):
        raise ValueError(f"{path} is not a table of runs: its first line is not {','.join(COLUMNS)}; move it away")
    whole = text[: text.rfind(b"\n") + 1] or _HEAD
    if whole != text:
        _write(path, whole)
    return read(path)


def append(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to the file, each a whole line."""
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(map(_texts, rows))


def read(path: Path) -> list[Row]:
    """The rows of a table, plain or with a name that ends in .gz. A line that is damaged is refused by its number."""
    text = _unpacked(path) if path.suffix == ".gz" else path.read_bytes()
    rows = []
    for number, line in enumerate(text.decode(errors="replace").removesuffix("\n").split("\n"), 1):
        try:
            rows += [_row(texts) for texts in csv.reader([line]) if number > 1]
        except (ValueError, csv.Error):
            remedy = "delete this line, and its run is made again"
            raise ValueError(f"line {number} of {path} is damaged; {remedy}") from None
    return rows


def _unpacked(path: Path) -> bytes:
    """The text of a packed table, which begins with the names of the columns."""
    try:
        text = gzip.decompress(path.read_bytes())
    except (gzip.BadGzipFile, zlib.error, EOFError):  # not packed, corrupt, cut short
        text = b""
    if not text.startswith(_HEAD):
        raise ValueError(f"{path} is damaged or not a packed table of runs; delete it, and its runs are made again")
    return text


def _write(path: Path, text: bytes) -> None:
    """Write a file that is never seen half written."""
    half_written = path.with_suffix(".part")
    half_written.write_bytes(text)
    half_written.replace(path)


def pack(rows: Iterable[Row], path: Path) -> None:
    """Write rows in the order of their keys to a compressed table; the same rows give the same bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(_texts, sorted(rows, key=lambda row: row.key)))
    _write(path, gzip.compress(text.getvalue().encode(), mtime=0))


def _texts(row: Row) -> Sequence[str]:
    *plain, cpu, queries, regrets = (getattr(row, column) for column in COLUMNS)
    texts = map(str, plain)
    return *texts, f"{cpu:.3f}", _squeeze(map(str, queries)), _squeeze(f"{regret:.5g}" for regret in regrets)


def _row(line: Sequence[str]) -> Row:
    """The row of a line; a ValueError if it is not complete."""
    task, algorithm, repetition, seed, horizon, cpu, queries, regrets = line
    row = Row(
        task,
        algorithm,
        int(repetition),
        int(seed),
        int(horizon),
        float(cpu),
        tuple(map(int, _spread(queries))),
        tuple(map(float, _spread(regrets))),
    )
    if not len(row.queries) == len(row.regrets) == row.horizon:
        raise ValueError(f"{len(row.queries)} queries and {len(row.regrets)} regrets in a run of {row.horizon}")
    return row


def _squeeze(words: Iterable[str]) -> str:
    """a a a b -> a*3 b, so that the line of a run that repeats itself is short."""
    counted = ((word, sum(1 for _ in group)) for word, group in groupby(words))
    return " ".join(word if count == 1 else f"{word}*{count}" for word, count in counted)


def _spread(text: str) -> list[str]:
    """a*3 b -> a a a b."""
    words: list[str] = []
    for piece in text.split():
        word, _, count = piece.partition("*")
        words += [word] * int(count or 1)
    return words
