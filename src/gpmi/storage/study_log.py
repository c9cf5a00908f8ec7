"""The log of a study: the log in memory, and a transaction with the database around each change.

A transaction replays the entries of other processes, decides, appends one entry and commits. A suggestion is made
inside its transaction, so it is a function of the seed and of all entries before its own.
"""

from __future__ import annotations

import hashlib
import math
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Condition
from typing import Any, Literal, TypeAlias, TypeVar

from gpmi._support import checks
from gpmi._support.interrupts import uninterrupted
from gpmi._support.logger import logger
from gpmi._support.types import Array, Point
from gpmi.space import Space
from gpmi.storage.database import Database, retried
from gpmi.storage.deliveries import Delivery
from gpmi.storage.entries import Kind, StoredEntry, content_of, next_entry
from gpmi.storage.errors import StudyError, Unavailable
from gpmi.storage.fair_lock import remove_lock_files
from gpmi.storage.heartbeat import Heartbeat
from gpmi.storage.outbox import Outbox
from gpmi.storage.platforms import own_platform
from gpmi.storage.replayed import ReplayedLog
from gpmi.storage.serialization import point_from_json, point_to_json, text_of
from gpmi.storage.tables import NEVER, Lease, StoredStudy, Transaction
from gpmi.storage.workers import has_ended, own_name
from gpmi.trials import Outcome, Trial, names_a_trial
from gpmi.trials.goals import Goals
from gpmi.trials.log import FindOpen, Settle, TrialOrPoint
from gpmi.trials.outcomes import details_of

Value = TypeVar("Value")
Fixed: TypeAlias = Mapping[Any, Any] | None
# Why no trial is handed out: the rest of the budget is being evaluated by others, or the budget is used up.
NoTrial: TypeAlias = Literal["wait", "used up"]
# Seconds of processor time. After a slower suggestion, the model for the next one is updated before the lock is taken.
# All waiting processes then do so at the same time, which helps only if each has its own processor. Not tuned.
SLOW = 0.5
BATCH = 256  # entries that are replayed before Ctrl-C acts: a tenth of a second at most. Our choice
JITTER = 1.0  # seconds by which a clock may be corrected at any time; our choice


class StudyLog(ReplayedLog):
    """The log of one study. Threads may share it; each process opens its own."""

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
        goals: Goals | None = None,
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

    def leases(self) -> dict[int, Lease]:
        """Return the leases of trials that are being evaluated: by whom, and until when."""
        return {lease.number: lease for lease in self._read(lambda transaction: transaction.leases(self._id))}

    def inspect(self) -> tuple[list[StoredEntry], list[str], str]:
        """Return all entries, the damage that the database finds in its file, and the stored description."""

        def look(transaction: Transaction) -> tuple[list[StoredEntry], list[str], str]:
            stored = transaction.find(self.name)
            description = "" if stored is None else stored.description
            return list(transaction.entries(self._id)), transaction.damage(), description

        return self._read(look)

    def refresh(self, settle: Settle) -> None:
        """Replay the entries of other processes. The outbox is delivered first, if the database is reachable."""
        with self.lock:
            with suppress(StudyError):
                self.deliver_waiting(settle)
            self._read(self._catch_up)

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

    def _store_last(self, transaction: Transaction, token: str, worker: str = "", **more: Any) -> StoredEntry:
        """Append the latest in-memory change as one stored entry; `more` extends its content."""
        new = self._entries[self._saved :]
        last = new[-1]
        kind, content = content_of(self.space, last, self._trials.get(last.number), is_new=len(new) == 2)
        if kind == "asked":
            content["from"] = self.seq
            if (platform := dict(own_platform())) != self.platform:
                content["platform"] = self.platform = platform
        return self._store(transaction, kind, content | more, token, worker, last.time)

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
        rows = [{"seq": one.seq, "kind": one.kind, "time": one.time, **one.content} for one in entries]
        path = self._outbox.save_missing(rows)
        return "; they could not be saved to a file" if path is None else f"; they are saved in {path}"

    # Trials for workers

    def hand_out(
        self,
        fixed: Fixed,
        suggest: Callable[[], Trial],
        handed: list[Trial],
        *,
        budget: int | None = None,
        lease: float | None = None,
    ) -> Trial | NoTrial:
        """Hand a trial to this worker: one that another worker has left behind, or else a new one by suggest().

        It is also appended to `handed`, so that a caller that is interrupted can release it.
        """
        token, seconds, before = uuid.uuid4().hex, self._lease if lease is None else lease, len(handed)

        def act(transaction: Transaction) -> Trial | NoTrial:
            del handed[before:]  # by an attempt that failed
            entry = transaction.entry_by_token(self._id, token)
            if entry is None:
                found = self._left_behind(transaction, budget, fixed)
                if isinstance(found, str):
                    return found
                entry = self._grant(transaction, found, suggest, token, seconds)
            number = entry.content["number"]
            until = NEVER if math.isinf(seconds) else entry.time + seconds
            transaction.lease(self._id, Lease(number, entry.seq, self.worker, until))
            self._own[number] = entry
            handed.append(self[number])
            return self[number]

        trial = self._write(act)
        if isinstance(trial, Trial):
            self._heartbeat.add(trial.number, self._own[trial.number].seq, seconds)
        return trial

    def _left_behind(self, transaction: Transaction, budget: int | None, fixed: Fixed) -> int | NoTrial | None:
        """Return a pending trial that nobody evaluates; None if a new one is due; otherwise why there is none.

        Wait for trials with a live lease: their workers will deliver an outcome or die. Do not wait where the duration
        is unbounded: leases that never expire, and trials this process asked for outside its loops.
        """
        evaluated = self.evaluated
        if budget is not None and evaluated >= budget:
            return "used up"
        awaited, others = 0, 0
        leases, now = {lease.number: lease for lease in transaction.leases(self._id)}, transaction.now()
        for number in self._pending:
            lease = self._by_this_clock(transaction, leases.get(number), now)
            if lease is not None and lease.until >= NEVER:
                others += 1
            elif lease is not None and lease.until >= now and not has_ended(lease.worker):
                own = self._own.get(number)
                by_hand = own is not None and own.seq == lease.granted and number not in self.in_loops
                awaited, others = awaited + (not by_hand), others + by_hand
            elif self[number].fixed == fixed:
                return number
        if budget is not None and evaluated + awaited + others >= budget:
            return "wait" if awaited else "used up"
        return None

    def _by_this_clock(self, transaction: Transaction, lease: Lease | None, now: float) -> Lease | None:
        """Return a lease; end one from a clock that was ahead, in the same transaction, at most its duration from now.

        Otherwise the trial of a dead worker would be blocked until the clock is there again. A worker that lives renews
        its lease in time. The log has the duration; an earlier version did not write it.
        """
        if lease is None or lease.until >= NEVER or lease.until <= now + self._lease + JITTER:
            return lease
        grant = self.grants.get(lease.number)
        length = None if grant is None else grant.content.get("lease")
        if not isinstance(length, int | float) or not 0.0 < length < math.inf:
            if grant is None or grant.time <= now + JITTER:
                return lease  # of unknown duration, and the clock has not been set back
            length = self._lease
        if lease.until <= now + length + JITTER:
            return lease
        transaction.renew(self._id, lease.number, lease.granted, now + length)
        return lease._replace(until=now + length)

    def _grant(
        self, transaction: Transaction, number: int | None, suggest: Callable[[], Trial], token: str, lease: float
    ) -> StoredEntry:
        """Store that a trial is handed out: the one with this number, or a new one for None."""
        length: dict[str, Any] = {} if math.isinf(lease) else {"lease": lease}
        if number is None:
            begin = time.thread_time()
            number = suggest().number
            self.is_slow = time.thread_time() - begin > SLOW
            entry = self._store_last(transaction, token, **length)
        else:
            entry = self._store(transaction, "leased", {"number": number, **length}, token)
        self.grants[number] = entry
        return entry

    def release_leases(self, numbers: Collection[int]) -> None:
        """Release the trials of a loop that has ended, so that other workers can take the pending ones immediately."""
        with uninterrupted():
            self.in_loops.difference_update(numbers)
            for number in numbers:
                self._heartbeat.remove(number)
            own = {number: self._own[number].seq for number in numbers if number in self._own}
            self._end_leases({number: seq for number, seq in own.items() if self.is_pending(number)})

    def close(self) -> None:
        """Release this worker's leases, so that others can take its trials immediately, and close the connection."""
        with uninterrupted():
            self._end_leases(self._heartbeat.stop())
            with self.lock:  # another thread may be reading: SQLite crashes if its connection is closed meanwhile
                self._database.close()
            remove_lock_files(self._database.path)

    def _end_leases(self, held: Mapping[int, int]) -> None:
        """Release leases; `held` maps each trial to the entry that granted it."""
        if held:
            with suppress(StudyError), self.lock, self._database.writing() as transaction:
                for number, granted in held.items():
                    transaction.renew(self._id, number, granted, 0.0)

    # Values and failures: on the disk when the call returns, and stored once

    def deliver(self, target: TrialOrPoint, outcome: Outcome, settle: Settle) -> Trial:
        """Store an outcome, in the outbox if the database is unreachable.

        Rejections never go to the outbox: if the database is down, the call raises.
        """
        if outcome.status == "rejected":
            place = self._number_of(target) if names_a_trial(target) else target
            return self.change(partial(settle, place, outcome))
        delivery = self._delivery(target, outcome)
        with uninterrupted():
            try:
                self.deliver_waiting(settle, no_retry=True)
                return self._deliver(delivery, settle, no_retry=True)
            except StudyError as error:
                path = self._outbox.keep(delivery.to_json())
                self._warn(f"{error}; the outcome is saved in {path}, and is delivered with the next call")
                return self._expected(delivery)

    def deliver_all(self, observations: Sequence[tuple[Point, Outcome]], settle: Settle, find: FindOpen) -> list[Trial]:
        """Store observations together or not at all, each in the pending trial at its point or in a new one.

        Tokens derive from the content and the index in the list, so delivering the same list again is a no-op.
        """
        deliveries = []
        for i, (x, outcome) in enumerate(observations):
            point = point_to_json(self.space, x)
            content = {"noise_var": 0.0, "repeats": 1, **outcome.to_json(), "x": point}
            token = hashlib.sha256(text_of([i, content]).encode()).hexdigest()[:32]
            deliveries.append(Delivery(outcome, f"earlier:{token}", self.worker, None, point))
        told = self._write(
            lambda transaction: [self._store_delivery(transaction, one, settle, find) for one in deliveries]
        )
        for trial in told:
            self._heartbeat.remove(trial.number)
        return told

    def deliver_waiting(self, settle: Settle, *, no_retry: bool = False) -> None:
        """Deliver the outbox. A delivery that the study refuses is set aside."""
        for path, stored in self._outbox:
            try:
                self._deliver(Delivery.from_json(stored), settle, no_retry=no_retry)
            except (ValueError, TypeError, KeyError) as error:
                self._warn(f"{self._outbox.set_aside(path)} was refused: {error}")
            else:
                self._outbox.remove(path)

    def _delivery(self, target: TrialOrPoint, outcome: Outcome) -> Delivery:
        """Return the delivery of an outcome. Its token derives from the trial's grant, so retries are deduplicated."""
        if not names_a_trial(target) or self._is_orphan(target):
            point = target.x if isinstance(target, Trial) else target
            self.space.encode(point)  # refuses a point outside of the space before it can get into the outbox
            return Delivery(outcome, uuid.uuid4().hex, self.worker, None, point_to_json(self.space, point))
        number = self._number_of(target)
        granted = self._own.get(number, self.grants.get(number))
        token = uuid.uuid4().hex if granted is None else _answer_to(granted)
        if outcome.outputs:  # others may come later
            names = hashlib.sha256(text_of(sorted(outcome.outputs)).encode()).hexdigest()[:8]
            token = f"{token}:{names}"
        return Delivery(outcome, token, self.worker, number, point_to_json(self.space, self.point_of(number)))

    def _deliver(self, delivery: Delivery, settle: Settle, *, no_retry: bool) -> Trial:
        trial = self._write(partial(self._store_delivery, delivery=delivery, settle=settle), no_retry=no_retry)
        if delivery.number is not None:
            self._heartbeat.remove(delivery.number)
        return trial

    def _store_delivery(
        self, transaction: Transaction, delivery: Delivery, settle: Settle, find: FindOpen = lambda x, _: x
    ) -> Trial:
        """Store a delivery, unless it is in the log already. find(x) returns the trial that an observation at x fills.

        A value of a trial that is no longer pending becomes an observation at its point; `of` names the trial. A
        failure of such a trial is stored as late and changes nothing if it may be that of a second evaluation;
        otherwise it is refused. If the log was replaced by a copy that has no such trial, or another one with its
        number, the evaluated point becomes a new trial.
        """
        if delivery.number is not None and delivery.outcome.outputs and not self.is_pending(delivery.number):
            return self._store_later(transaction, delivery, settle)
        token, number = delivery.token, delivery.number
        entry = transaction.entry_by_token(self._id, token)
        if entry is not None and delivery.competes_with(entry):
            token = f"{token}:{delivery.worker}"
            entry = transaction.entry_by_token(self._id, token)
        if entry is not None:
            return self._repeated(delivery, entry)
        target, more = self._target(delivery)
        if number is None:
            target = find(target, delivery.outcome)
            number = target if isinstance(target, int) else None
        if target is None:
            self._check_late_failure(delivery)
            late = {"number": number, **delivery.outcome.to_json(), "late": True}
            entry = self._store(transaction, "failed", late, token, delivery.worker)
        else:
            settle(target, delivery.outcome)
            entry = self._store_last(transaction, token, delivery.worker, **more)
        if number is not None and not self.is_pending(number):
            transaction.release(self._id, number)
        return self.at(entry.content["number"])

    def _store_later(self, transaction: Transaction, delivery: Delivery, settle: Settle) -> Trial:
        """Store outputs of a trial that is not pending, except those that are in the log already.

        They belong to the trial if it lacks them. If another worker has told other values of them, the trial was
        evaluated twice: then they become an observation at its point, and further outputs of this worker join it.
        """
        number, before = delivery.number, delivery.told_before([*self._committed, *self._new])
        assert number is not None
        places = [place for place in before.places if self._is_at(place, delivery.point)]
        new = delivery.without(before.mine)
        if places in ([], [number]) and self._is_at(number, delivery.point):
            same = [name for name, value in new.outcome.outputs.items() if before.others.get(name) == value]
            if all(name in same for name in new.outcome.outputs if name in before.others):
                new, places = new.without(same), [number]
        trial = self._trials.get(places[-1]) if places else None
        if trial is not None and trial.status == "retracted":
            raise ValueError(_retracted(trial.number))
        if not new.outcome.outputs:
            return self.at(places[-1] if places else number)
        if trial is not None and self.lacks(trial.number, new.outcome):
            settle(trial.number, new.outcome)
            more = {} if trial.number == number else {"of": number}
        else:
            settle(point_from_json(delivery.point), new.outcome)
            more = {"of": number}
        tokens = (delivery.token, f"{delivery.token}:{delivery.worker}", uuid.uuid4().hex)
        token = next(one for one in tokens if transaction.entry_by_token(self._id, one) is None)
        return self.at(self._store_last(transaction, token, delivery.worker, **more).content["number"])

    def _is_at(self, number: int, point: Any) -> bool:
        """Whether there is a trial with this number, at a point given as JSON."""
        own = self.point_of(number)
        return own is not None and (point is None or point_to_json(self.space, own) == point)

    def _target(self, delivery: Delivery) -> tuple[TrialOrPoint, dict[str, Any]]:
        """Return the pending trial or the point that gets the outcome, None for a late failure, and more content."""
        number = delivery.number
        if number is None:
            return point_from_json(delivery.point), {}
        point = self.point_of(number)
        stored = None if point is None else point_to_json(self.space, point)
        if delivery.point is not None and delivery.point != stored:
            return point_from_json(delivery.point), {"of": number}
        if point is None:
            raise ValueError(f"trial is {number}: there is no such trial")
        if self.is_pending(number):
            return number, {}
        return (None, {}) if delivery.outcome.status == "failed" else (point, {"of": number})

    def _check_late_failure(self, delivery: Delivery) -> None:
        """Refuse the failure of a trial that has ended, unless its worker was handed the trial and told no value."""
        number = delivery.number
        if number not in self._trials:  # forgotten
            return
        if self._trials[number].status == "retracted":
            raise ValueError(_retracted(number))
        mine = [entry for entry in (*self._committed, *self._new) if entry.worker == delivery.worker]
        was_handed = any(delivery.token == _answer_to(entry) for entry in mine)
        if not was_handed or any(entry.token.startswith(delivery.token) for entry in mine if entry.kind == "told"):
            remedy = f"retract({number}) takes that back"
            raise ValueError(f"x is trial {number}, which is not pending: {self._state(number)}; {remedy}")

    def _repeated(self, delivery: Delivery, entry: StoredEntry) -> Trial:
        """Return the trial of a delivery that is in the log already."""
        number = delivery.number
        if number in self._trials and self._trials[number].status == "retracted":
            raise ValueError(_retracted(number))
        delivery.check_repetition(entry)
        return self.at(entry.content["number"])

    def _expected(self, delivery: Delivery) -> Trial:
        """Return the trial as it will be once a waiting delivery has arrived."""
        outcome = delivery.outcome
        if delivery.number is None:
            x = self.space.freeze(self.space.canonical(point_from_json(delivery.point)))
            return Trial(self.next_number, x, origin="user", **{**vars(outcome), **self._derived(outcome)})
        trial = self.at(delivery.number)
        if trial.status == "told" and self.lacks(trial.number, outcome):
            outcome = Outcome("told", **details_of(trial)).with_outputs(outcome)
        elif trial.status != "pending":
            return trial
        return replace(trial, **{**vars(outcome), **self._derived(outcome)})

    def _is_orphan(self, target: Trial | int) -> bool:
        """Whether this process got the trial from a log since replaced by a copy that lacks it."""
        if not isinstance(target, Trial) or not self._orphans:
            return False
        row, point = self.space.encode(target.x).tobytes(), self.point_of(target.number)
        is_missing = point is None or self.space.encode(point).tobytes() != row
        return is_missing and (target.number, row) in self._orphans

    # Other changes

    def change(self, act: Callable[[], Trial]) -> Trial:
        """Run act(), which changes one trial, and store the change.

        Idempotent: the token prevents a duplicate if a commit succeeds but its acknowledgement is lost.
        """
        token = uuid.uuid4().hex

        def write(transaction: Transaction) -> StoredEntry:
            entry = transaction.entry_by_token(self._id, token)
            if entry is None:
                act()
                entry = self._store_last(transaction, token)
                if entry.kind in ("rejected", "forgotten"):
                    transaction.release(self._id, entry.content["number"])
            return entry

        entry = self._write(write)
        number: int = entry.content["number"]
        if entry.kind in ("rejected", "forgotten"):
            self._heartbeat.remove(number)
        return self.at(number)

    def set_budget(self, budget: int) -> None:
        """Set the total budget; earlier suggestions stay as they are."""
        token = uuid.uuid4().hex

        def act(transaction: Transaction) -> None:
            if transaction.entry_by_token(self._id, token) is None and self.budget != budget:
                self._store(transaction, "budget", {"budget": budget}, token)
                self.budget = budget

        self._write(act)

    def take_over(self, trials: Sequence[Trial], rows: Sequence[Array]) -> None:
        """Refuse the trials of another run: a study has its own."""
        raise ValueError("trials cannot be replayed into a study; tell their values with tell_all")

    def _number_of(self, trial: Trial | int) -> int:
        """Return the number of a trial, which may be forgotten or unknown to this process so far."""
        number = trial.number if isinstance(trial, Trial) else int(trial)
        if self.point_of(number) is None:
            with suppress(StudyError):
                self._read(self._catch_up)
        point = self.point_of(number)
        if point is None:
            raise ValueError(f"trial is {number}: there is no such trial; the study has {self.next_number}")
        if isinstance(trial, Trial) and self.space.encode(trial.x).tobytes() != self.space.encode(point).tobytes():
            raise ValueError(f"trial is {trial!r}, but trial {number} of this study is at another point")
        return number


def _answer_to(grant: StoredEntry) -> str:
    """Return the token of the outcome of a trial that was handed out with this entry."""
    return f"answer:{grant.checksum}"


def _retracted(number: int | None) -> str:
    return f"trial {number} was retracted; give it a value again with correct({number}, y)"


def checked_lease(lease: Any) -> float:
    """Return a lease in seconds; infinity is allowed."""
    if isinstance(lease, float) and math.isinf(lease) and lease > 0:
        return math.inf
    return checks.positive("lease", lease)
