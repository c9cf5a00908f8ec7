"""The log of a study as this process knows it, and the transactions that make it longer."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from gpmi.durable.database import Database, patiently
from gpmi.durable.events import Entry, Kind, entry
from gpmi.durable.mirror import Mirror
from gpmi.durable.transaction import Transaction
from gpmi.durable.worker import own_name
from gpmi.interrupts import uninterrupted

Value = TypeVar("Value")
logger = logging.getLogger("gpmi")


class Journal:
    """The entries that were played to an optimizer, and how one more is written."""

    def __init__(self, database: Database, number: int, name: str, optimizer: Mirror, patience: float) -> None:
        self.name = name
        self.optimizer = optimizer
        self.worker = own_name()
        self.warnings: list[str] = []  # about the log and its database
        self._database, self._id, self._patience = database, number, patience
        self._lock = threading.RLock()
        self._played: list[Entry] = []  # what the optimizer has and the database, too
        self._new: list[Entry] = []  # what the optimizer has and is not yet committed
        self._ahead = False  # whether the optimizer may have such

    def log(self, after: int = -1) -> tuple[Entry, ...]:
        """All entries of the log with a number above `after`, in order."""
        with self._lock, self._database.reading() as transaction:
            return tuple(transaction.entries(self._id, after))

    @property
    def seq(self) -> int:
        """The number of the last entry that this process has played; -1 before the first."""
        return self._last()[0]

    def inspected(self) -> tuple[list[Entry], list[str], str]:
        """All entries, what the database finds wrong with its file, and the description as the table has it."""
        with self._lock, self._database.reading() as transaction:
            known = transaction.find(self.name)
            return list(transaction.entries(self._id)), transaction.damage(), "" if known is None else known[1]

    def _catch_up(self, transaction: Transaction) -> None:
        seq, checksum = self._last()
        for one in transaction.entries(self._id, seq):
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

    def _write(self, act: Callable[[Transaction], Value]) -> Value:
        """act(transaction) after everything of the log was played; tried again while the database does not answer."""

        def once() -> Value:
            with self._database.writing() as transaction:
                transaction.lock(self._id)
                self._catch_up(transaction)
                result = act(transaction)
            self._played += self._new
            self._ahead, self._new = False, []
            return result

        with self._lock:
            return patiently(once, self._patience, self._forget_what_is_not_committed)

    def _append(self, transaction: Transaction, kind: Kind, said: dict[str, Any], token: str) -> Entry:
        """Play and write one entry."""
        now = transaction.now()
        self._ahead = True
        if kind == "told":
            said = {**said, "said": self.optimizer.foretell(said)}
            self.optimizer.ended(said["number"], now)
        seq, checksum = self._last()
        new = entry(checksum, seq + 1, kind, said, time=now, worker=self.worker, token=token)
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
