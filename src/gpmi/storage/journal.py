"""The log of a study as this process knows it, and the transactions that make it longer."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from gpmi._support.interrupts import uninterrupted
from gpmi._support.logger import logger
from gpmi.storage.database import Database, patiently
from gpmi.storage.entries import Entry, Kind, entry
from gpmi.storage.errors import StudyError, Unavailable
from gpmi.storage.replayed import Mirror
from gpmi.storage.tables import Transaction
from gpmi.storage.worker import own_name

Value = TypeVar("Value")


class Journal:
    """The entries that were played to an optimizer, and how one more is written."""

    def __init__(
        self, database: Database, number: int, identity: str, name: str, optimizer: Mirror, patience: float
    ) -> None:
        self.name = name
        self.identity = identity  # of the study, wherever its database is: the checksum of its first entry
        self.optimizer = optimizer
        self.worker = own_name()
        self.warnings: list[str] = []  # about the log and its database
        self._database, self._id, self._patience = database, number, patience
        self._lock = threading.RLock()
        self._played: list[Entry] = []  # what the optimizer has and the database, too
        self._new: list[Entry] = []  # what the optimizer has and is not yet committed
        self._ahead = False  # whether the optimizer may have such
        self._silent = False  # whether the database was asked in vain for as long as we are patient, and nothing since

    def log(self, after: int = -1) -> tuple[Entry, ...]:
        """All entries of the log with a number above `after`, in order."""
        return tuple(self._read(lambda transaction: transaction.entries(self._id, after)))

    @property
    def seq(self) -> int:
        """The number of the last entry that this process has played; -1 before the first."""
        return self._last()[0]

    def inspected(self) -> tuple[list[Entry], list[str], str]:
        """All entries, what the database finds wrong with its file, and the description as the table has it."""

        def look(transaction: Transaction) -> tuple[list[Entry], list[str], str]:
            known = transaction.find(self.name)
            return list(transaction.entries(self._id)), transaction.damage(), "" if known is None else known.description

        return self._read(look)

    def _read(self, look: Callable[[Transaction], Value]) -> Value:
        """look(transaction), tried again while the database does not answer."""

        def once() -> Value:
            with self._database.reading() as transaction:
                return look(transaction)

        with self._lock:
            return patiently(once, self._patience)

    def _catch_up(self, transaction: Transaction) -> None:
        """Play what is new. The last entry that was played must still be there, to the last bit."""
        seq, checksum = self._last()
        entries = transaction.entries(self._id, max(seq - 1, -1))
        if seq >= 0:
            first, entries = entries[:1], entries[1:]
            if not first or (first[0].seq, first[0].checksum) != (seq, checksum):
                entries = self._begin_again(transaction)
        self._play(entries)

    def _begin_again(self, transaction: Transaction) -> Sequence[Entry]:
        """All entries, to be played to an empty optimizer: the log is another one than the one that was played.

        Somebody has put an older copy in its place. What is there counts, and the warning says what is not.
        """
        entries = transaction.entries(self._id)
        if not entries or entries[0].checksum != self.identity:
            raise StudyError(
                f"{self._database.shown} was replaced, and its study {self.name!r} is not the one that was opened; "
                "put the right one back, or open the study again"
            )
        there = {one.checksum for one in entries}
        gone = [one for one in self._played if one.checksum not in there]
        values = sum(one.kind == "told" for one in gone)
        self._warn(
            f"{self._database.shown} was replaced by another copy, and what is there counts: {len(gone)} entries that "
            f"were in the log are gone, {values} of them values{self._set_aside(gone) if gone else ''}"
        )
        self._played, self._new, self._ahead = [], [], False
        self.optimizer.reset()
        return entries

    def _set_aside(self, entries: Sequence[Entry]) -> str:
        """Keep entries that are not in the log any more; how that is said."""
        return ""

    def _play(self, entries: Sequence[Entry]) -> None:
        seq, checksum = self._last()
        for one in entries:
            if one.seq != seq + 1 or not one.follows(checksum):
                self._warn(f"entry {one.seq} of the log does not fit those before it; verify() says more")
            self.optimizer.play(one)
            self._played.append(one)
            seq, checksum = one.seq, one.checksum

    def _last(self) -> tuple[int, str]:
        """The number and the checksum of the last entry that was played."""
        last = (self._new or self._played)[-1:]
        return (last[0].seq, last[0].checksum) if last else (-1, "")

    def _warn(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)
            logger.warning("study %s: %s", self.name, message)

    def _forget_what_is_not_committed(self) -> None:
        """Bring the optimizer back to what is in the database, which may be out of reach."""
        if self._ahead:
            self._ahead, self._new = False, []
            self.optimizer.reset()
            for one in self._played:
                self.optimizer.play(one)

    # One transaction

    def _write(self, act: Callable[[Transaction], Value], *, hasty: bool = False) -> Value:
        """act(transaction) after everything of the log was played; tried again while the database does not answer.

        With `hasty`, for what can be kept elsewhere: only once if it did not answer the last time either.
        """

        def once() -> Value:
            with self._database.writing() as transaction:
                transaction.lock(self._id)
                self._catch_up(transaction)
                result = act(transaction)
            self._played += self._new
            self._ahead, self._new = False, []
            return result

        with self._lock:
            patience = 0.0 if hasty and self._silent else self._patience
            try:
                result = patiently(once, patience, self._forget_what_is_not_committed, self._length)
            except Unavailable:
                self._silent = True
                raise
            self._silent = False
            return result

    def _length(self) -> int | None:
        """How long the log is; None if nobody can say."""
        with suppress(StudyError), self._database.reading() as transaction:
            return transaction.length(self._id)
        return None

    def _append(
        self, transaction: Transaction, kind: Kind, said: dict[str, Any], token: str, worker: str = ""
    ) -> Entry:
        """Play and write one entry; `worker` has said it, this one by default."""
        now = transaction.now()
        self._ahead = True
        if kind == "told":
            said = {**said, "said": self.optimizer.foretell(said)}
            self.optimizer.ended(said["number"], now)
        seq, checksum = self._last()
        new = entry(checksum, seq + 1, kind, said, time=now, worker=worker or self.worker, token=token)
        if kind != "told":
            self.optimizer.do(new)
        transaction.append(self._id, new)
        self._new.append(new)
        return new

    def _once(self, kind: Kind, said: dict[str, Any], token: str | None = None) -> None:
        """Write an entry, and not twice: the answer to the first attempt may have been lost."""
        mark = token or uuid.uuid4().hex

        def act(transaction: Transaction) -> None:
            if transaction.delivered(self._id, mark) is None:
                self._append(transaction, kind, said, mark)

        uninterrupted(lambda: self._write(act))
