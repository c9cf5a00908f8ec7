"""The log of a study: the log in memory, and a transaction with the database around each change.

A transaction replays the entries of other processes, decides, appends one entry and commits. A suggestion is made
inside its transaction, so it is a function of the seed and of all entries before its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Condition
from typing import Any, TypeVar

from gpmi._support.interrupts import uninterrupted
from gpmi._support.logger import logger
from gpmi.space import Space
from gpmi.storage.database import Database, retried
from gpmi.storage.entries import Kind, StoredEntry, content_of, next_entry
from gpmi.storage.errors import StudyError, Unavailable
from gpmi.storage.heartbeat import Heartbeat
from gpmi.storage.outbox import Outbox
from gpmi.storage.platforms import own_platform
from gpmi.storage.replayed import ReplayedLog
from gpmi.storage.tables import StoredStudy, Transaction
from gpmi.storage.workers import own_name
from gpmi.trials.goals import Goals
from gpmi.trials.value_goal import MAXIMISE

Value = TypeVar("Value")
BATCH = 256  # entries that are replayed before Ctrl-C acts: a tenth of a second at most. Our choice


class SharedLog(ReplayedLog):
    """The log of one study, shared by processes. Threads may share it; each process opens its own."""

    def __init__(
        self,
        database: Database,
        stored: StoredStudy,
        name: str,
        *,
        lease: float,
        patience: float,
        space: Space,
        budget: int | None,
        goals: Goals = MAXIMISE,
    ) -> None:
        super().__init__(space, budget, goals)
        self.name = name
        self.identity = stored.identity  # of the study, wherever its database is
        self.worker = own_name()
        self.warnings: list[str] = []  # about the log and its database
        self.in_loops: set[int] = set()  # trials that a loop of this process evaluates: their outcomes will come
        self.is_slow = False  # whether the last suggestion took more than SLOW seconds
        self._database, self._id, self._lease, self._patience = database, stored.number, lease, patience
        self._unreachable = False  # whether the last write timed out
        self._committed: list[StoredEntry] = []  # in the database and replayed in memory
        self._new: list[StoredEntry] = []  # of the current transaction
        self._saved = 0  # how many of the entries in memory are covered by these two lists
        self._transaction: Transaction | None = None
        self._own: dict[int, StoredEntry] = {}  # the entries with which trials were handed to this worker
        self._orphans: set[tuple[int, bytes]] = set()  # trials handed out by a log that has been replaced since
        self._outbox = Outbox(stored.identity, database.path)
        self._heartbeat = Heartbeat(database.url, stored.number)

    # Reading

    def stored_entries(self, after: int = -1) -> tuple[StoredEntry, ...]:
        """Return all stored entries with a number above `after`, in order."""
        return tuple(self._read(lambda transaction: transaction.entries(self._id, after)))

    @property
    def seq(self) -> int:
        """The number of the last entry that this process has replayed; -1 before the first."""
        return self._last()[0]

    def inspect(self) -> tuple[list[StoredEntry], list[str], str]:
        """Return all entries, the damage that the database finds in its file, and the stored description."""

        def look(transaction: Transaction) -> tuple[list[StoredEntry], list[str], str]:
            stored = transaction.find(self.name)
            description = "" if stored is None else stored.description
            return list(transaction.entries(self._id)), transaction.damage(), description

        return self._read(look)

    def write_back(self) -> bool:
        """Copy the write-ahead log of SQLite into its file; return whether all of it is there."""
        return self._database.write_back()

    def _read(self, look: Callable[[Transaction], Value]) -> Value:
        """Return look(transaction), retried while the database is unreachable."""

        def once() -> Value:
            with self._database.reading() as transaction:
                return look(transaction)

        with self.lock:
            return retried(once, self._patience, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        """Wait without the lock, so that other threads can read: the memory has the committed entries at this moment.

        A call that continues after this finds changes by other threads as it finds those by other processes.
        """
        with uninterrupted():  # an exception inside `wait` could leave the lock released
            Condition(self.lock).wait(seconds)

    # One transaction

    def _write(self, act: Callable[[Transaction], Value], *, no_retry: bool = False) -> Value:
        """Return act(transaction) after a replay of everything new; retry while the database is unreachable.

        Ctrl-C acts between two attempts, and after the last one.
        With `no_retry`, for deliveries that the outbox can keep: try only once if the database was unreachable before.
        """

        def once() -> Value:
            with uninterrupted():
                with self._database.writing() as transaction:
                    transaction.lock(self._id)
                    self._catch_up(transaction)
                    self._transaction = transaction
                    result = act(transaction)
                self._committed += self._new
                self._new, self._transaction = [], None
                return result

        with self.lock:
            patience = 0.0 if no_retry and self._unreachable else self._patience
            try:
                result = retried(once, patience, self._roll_back, self._length, self._sleep)
            except Unavailable:
                self._unreachable = True
                raise
            self._unreachable = False
            return result

    def _roll_back(self) -> None:
        """Reset the in-memory log to the last committed entry, without touching the database."""
        with uninterrupted():
            self._transaction = None
            if self._new or self._saved != len(self._entries):
                self._new = []
                self._clear()
                for entry in self._committed:
                    self.replay(entry)
                self._saved = len(self._entries)

    def _now(self) -> float:
        """The time by the clock of the database."""
        return time.time() if self._transaction is None else self._transaction.now()

    def _length(self) -> int | None:
        """Return the length of the stored log; None if the database is unreachable."""
        with suppress(StudyError), self._database.reading() as transaction:
            return transaction.length(self._id)
        return None

    def _store_last(self, transaction: Transaction, token: str, worker: str = "", **extra: Any) -> StoredEntry:
        """Append the latest in-memory change as one stored entry; `extra` extends its content."""
        new = self._entries[self._saved :]
        last = new[-1]
        kind, content = content_of(self.space, last, self._trials.get(last.number), is_new=len(new) == 2)
        if kind == "asked":
            content["from"] = self.seq
            content |= self._new_platform()
        return self._store(transaction, kind, content | extra, token, worker, last.time)

    def _new_platform(self) -> dict[str, Any]:
        """Return the platform for an entry that a model has a part in; nothing if the log names it already."""
        if (platform := dict(own_platform())) == self.platform:
            return {}
        self.platform = platform
        return {"platform": platform}

    def _store(
        self,
        transaction: Transaction,
        kind: Kind,
        content: dict[str, Any],
        token: str,
        worker: str = "",
        when: float | None = None,
    ) -> StoredEntry:
        """Append an entry to the stored log; `worker` defaults to this worker, `when` to now."""
        seq, checksum = self._last()
        now = self._now() if when is None else when
        entry = next_entry(checksum, seq + 1, kind, content, time=now, worker=worker or self.worker, token=token)
        self._new.append(entry)
        transaction.append(self._id, entry)
        self._saved = len(self._entries)
        return entry

    def _last(self) -> tuple[int, str]:
        """Return the number and the checksum of the last entry that the memory covers."""
        last = (self._new or self._committed)[-1:]
        return (last[0].seq, last[0].checksum) if last else (-1, "")

    def _warn(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)
            logger.warning("study %s: %s", self.name, message)

    # Entries of other processes

    def _catch_up(self, transaction: Transaction) -> None:
        """Replay new entries. The last replayed one must still be there, to the last bit.

        Ctrl-C acts between two batches of entries; the next call continues there.
        """
        seq, checksum = self._last()
        entries = transaction.entries(self._id, max(seq - 1, -1))
        if seq >= 0:
            first, entries = entries[:1], entries[1:]
            if not first or (first[0].seq, first[0].checksum) != (seq, checksum):
                entries = self._start_over(transaction)
        try:
            self._replay_all(entries)
        except StudyError:
            self._roll_back()
            raise

    def _replay_all(self, entries: Sequence[StoredEntry]) -> None:
        for begin in range(0, len(entries), BATCH):
            with uninterrupted():
                self._replay_batch(entries[begin : begin + BATCH])

    def _replay_batch(self, entries: Sequence[StoredEntry]) -> None:
        seq, checksum = self._last()
        for entry in entries:
            if entry.seq != seq + 1 or not entry.follows(checksum):
                self._warn(f"entry {entry.seq} of the log does not fit the entries before it; verify() says more")
            self.replay(entry)
            self._committed.append(entry)
            self._saved = len(self._entries)
            seq, checksum = entry.seq, entry.checksum

    def _start_over(self, transaction: Transaction) -> Sequence[StoredEntry]:
        """Empty the memory and return all entries: the stored log is not the one that was replayed.

        The database was replaced, e.g. by a backup. The copy is now authoritative; a warning lists what was lost. A
        late value for a lost trial becomes a new trial.
        """
        entries = transaction.entries(self._id)
        if not entries or entries[0].checksum != self.identity:
            raise StudyError(
                f"{self._database.shown} was replaced, and its study {self.name!r} is not the one that was opened; "
                "put the right one back, or open the study again"
            )
        present = {entry.checksum for entry in entries}
        missing = [entry for entry in self._committed if entry.checksum not in present]
        values = sum(entry.kind == "told" for entry in missing)
        self._warn(
            f"{self._database.shown} was replaced by another copy, which is used from now on: {len(missing)} entries "
            f"of the log are gone, {values} of them values{self._save_missing(missing)}"
        )
        for number in [n for n, entry in self._own.items() if entry.checksum not in present]:
            del self._own[number]
            self._heartbeat.remove(number)
            if self.is_pending(number):
                self._orphans.add((number, self.row(number).tobytes()))
        with uninterrupted():
            self._committed, self._new, self._saved = [], [], 0
            self._clear()
        return entries

    def _save_missing(self, entries: Sequence[StoredEntry]) -> str:
        """Save entries that are no longer in the log to a human-readable file; return a clause that names it."""
        if not entries:
            return ""
        rows = [{"seq": entry.seq, "kind": entry.kind, "time": entry.time, **entry.content} for entry in entries]
        path = self._outbox.save_missing(rows)
        return "; they could not be saved to a file" if path is None else f"; they are saved in {path}"
