"""A study: its log in the database, the optimizer that is replayed from it, and who works on which trial.

Each word is one transaction: read what is new, play it, decide, append one entry, commit. A suggestion is made inside
the transaction, so it is a function of the seed and of all entries before its own.
"""

from __future__ import annotations

import hashlib
import math
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, overload

from gpmi._support import checks
from gpmi._support.checks import checked_noise, checked_value
from gpmi._support.interrupts import uninterrupted
from gpmi._support.types import Point
from gpmi.space import SpaceExhausted
from gpmi.storage import deliveries
from gpmi.storage.database import Database
from gpmi.storage.entries import Entry, Kind
from gpmi.storage.errors import StudyError
from gpmi.storage.fair_lock import cleared
from gpmi.storage.heartbeat import Heartbeat
from gpmi.storage.journal import Journal
from gpmi.storage.outbox import Spool
from gpmi.storage.replayed import Mirror
from gpmi.storage.serialization import text_of
from gpmi.storage.tables import NEVER, Known, Lease, Transaction
from gpmi.storage.worker import is_gone
from gpmi.trials import Trial, names_a_trial
from gpmi.trials.outcomes import checked_why

Fixed: TypeAlias = Mapping[Any, Any] | None
# Seconds of the processor: a suggestion that took longer is prepared before the lock is taken, the next time. Then all
# who wait prepare at the same time, which helps only where each has a processor of its own. Not tuned.
SLOW = 0.5


class Record(Journal):
    """The log of one study and the words that are said in it. Threads may share it; processes open their own."""

    def __init__(
        self, database: Database, known: Known, name: str, optimizer: Mirror, *, lease: float, patience: float
    ) -> None:
        super().__init__(database, known.number, known.identity, name, optimizer, patience)
        self.space, self.goal = optimizer.space, optimizer.goal
        self._lease = lease
        self._took = 0.0  # seconds of the processor that the last suggestion took
        self._mine: dict[int, Entry] = {}  # the entries with which trials were handed to this worker
        self._strays: set[tuple[int, bytes]] = set()  # trials that were, by a log that has been replaced
        self.in_loops: set[int] = set()  # trials that a loop of this process evaluates: their outcomes will come
        self._spool = Spool(known.identity, database.path)
        self._heartbeat = Heartbeat(database.url, known.number)

    def refresh(self) -> Mirror:
        """The optimizer after all entries of now. What waits in the spool is delivered first, if it can be."""
        with self._lock:
            with suppress(StudyError):
                self._deliver_spooled()
            self._read(self._catch_up)
            return self.optimizer

    def _begin_again(self, transaction: Transaction) -> Sequence[Entry]:
        """As of a Journal; values of trials that were handed out here and are not in the log any more are still taken.

        They are then observations of their own.
        """
        held = {n: self.optimizer.at(n).x for n in self._mine if self.optimizer.is_pending(n)}
        entries = super()._begin_again(transaction)
        there = {one.checksum for one in entries}
        for number in [n for n, granted in self._mine.items() if granted.checksum not in there]:
            del self._mine[number]
            self._heartbeat.remove(number)
            if number in held:
                self._strays.add((number, self.space.encode(held[number]).tobytes()))
        return entries

    def _set_aside(self, entries: Sequence[Entry]) -> str:
        said = [{"seq": one.seq, "kind": one.kind, "time": one.time, **one.said} for one in entries]
        return f"; they are kept in {self._spool.set_aside(said)}"

    # Asking

    @overload
    def ask(self, n: None = None, *, fixed: Fixed = None, lease: float | None = None) -> Trial: ...
    @overload
    def ask(self, n: int, *, fixed: Fixed = None, lease: float | None = None) -> list[Trial]: ...
    def ask(self, n: int | None = None, *, fixed: Fixed = None, lease: float | None = None) -> Trial | list[Trial]:
        """The next trial to evaluate, or n of them, or fewer where the space has no more; x is the point of a trial.

        `fixed` are coordinates that are given and not chosen, as of `Optimizer.ask`. A trial, with the same ones, whose
        worker has died, or whose lease has ended, comes first. The lease lasts `lease` seconds by the
        clock of the database, that of the study by default, and is renewed while this process lives and the study is
        open. With lease=math.inf it lasts until the trial is told, failed or forgotten: for points that people
        evaluate.
        """
        count = 1 if n is None else checks.whole("n", n, 1)
        seconds = self._lease if lease is None else checked_lease(lease)
        asked: list[Trial] = []
        try:
            for _ in range(count):
                trial = self.turn(None, seconds, fixed)
                assert isinstance(trial, Trial)  # there is no budget
                asked.append(trial)
        except SpaceExhausted:
            if not asked:
                raise
        return asked[0] if n is None else asked

    def turn(self, budget: int | None, lease: float | None = None, fixed: Fixed = None) -> Trial | bool:
        """The next trial for this worker; False if the budget is spent, True if what is left of it is with others."""
        self._prepare()
        mark, seconds = uuid.uuid4().hex, self._lease if lease is None else lease
        context = self.optimizer.context(fixed)

        def act(transaction: Transaction) -> Trial | bool:
            done = transaction.delivered(self._id, mark)
            if done is None:
                given = self._given(transaction, budget, context)
                if isinstance(given, bool):
                    return given
                done = self._append(transaction, *given, mark)
            number = done.said["number"]
            until = NEVER if math.isinf(seconds) else done.time + seconds
            transaction.lease(self._id, Lease(number, done.seq, self.worker, until))
            self._mine[number] = done
            return self.optimizer.at(number)

        trial: Trial | bool = uninterrupted(lambda: self._write(act))
        if isinstance(trial, Trial):
            self._heartbeat.add(trial.number, self._mine[trial.number].seq, seconds)
        return trial

    def leases(self) -> dict[int, Lease]:
        """Who works on which trial, and until when, as far as anybody does."""
        return {lease.number: lease for lease in self._read(lambda transaction: transaction.leases(self._id))}

    def _given(
        self, transaction: Transaction, budget: int | None, context: Fixed
    ) -> tuple[Kind, dict[str, Any]] | bool:
        """A trial that nobody works on any more, or a new one; as `turn` says if there is to be none."""
        optimizer = self.optimizer
        evaluated = optimizer.evaluated
        if budget is not None and evaluated >= budget:
            return False
        # Trials that somebody evaluates: who will have an outcome or die; or who is not waited for, because it may take
        # as long as it takes, or was asked in this very process outside of any loop.
        working, kept = 0, 0
        leases, now = {lease.number: lease for lease in transaction.leases(self._id)}, transaction.now()
        for trial in optimizer.pending:
            held = leases.get(trial.number)
            if held is not None and held.until >= NEVER:
                kept += 1
            elif held is not None and held.until >= now and not is_gone(held.worker):
                own = self._mine.get(trial.number)
                by_hand = own is not None and own.seq == held.granted and trial.number not in self.in_loops
                working, kept = working + (not by_hand), kept + by_hand
            elif trial.fixed == context:
                return "leased", {"number": trial.number}
        if budget is not None and evaluated + working + kept >= budget:
            return working > 0
        begin = time.thread_time()
        said = optimizer.propose(context)
        self._took = time.thread_time() - begin
        return "asked", {**said, "from": self._last()[0]}

    def _prepare(self) -> None:
        """Deliver what waits; and where suggestions take long, learn from what is new before the lock is taken."""
        with self._lock:
            self._deliver_spooled()
            if self._took > SLOW:
                _ = self.refresh().model

    # Telling

    def tell(
        self,
        x: Trial | int | Point,
        y: float,
        *,
        noise_var: float = 0.0,
        repeats: int = 1,
        constraints: Sequence[float] | None = None,
    ) -> Trial:
        """Record the value y of a trial, given as itself or by its number, whoever evaluated it, however late.

        It is on the disk when the call returns: in the database, or in a file beside the worker if the database does
        not answer, from which it is delivered with the next call or when the study is opened next. The same value of
        the same trial counts once. The value of a trial that has another one already, from another process, is one more
        observation at its point, a trial with a number of its own; the same process is refused a second value.

        A point that is no trial is an observation that nobody asked for. Other arguments as of `Optimizer.tell`.
        """
        noise, times = checked_noise(noise_var, repeats)
        said: dict[str, Any] = {"y": checked_value(y)}
        said |= ({"noise_var": noise} if noise else {}) | ({"repeats": times} if times != 1 else {})
        if constraints is not None and len(constraints):
            said["constraints"] = [checks.number("constraints", one) for one in constraints]
        return self._answered(x, "told", said)

    def fail(self, x: Trial | int, why: str | None = None) -> Trial:
        """Record that the evaluation of a trial failed, and why. Kept as safely as a value."""
        reason = checked_why(why)
        if not names_a_trial(x):
            raise TypeError(f"x is {checks.shown(x)}; give a Trial or its number")
        return self._answered(x, "failed", {} if reason is None else {"why": reason})

    def _answered(self, x: Trial | int | Point, kind: Kind, said: dict[str, Any]) -> Trial:
        said = {**said, "kind": kind, "token": uuid.uuid4().hex, "worker": self.worker}
        if names_a_trial(x) and not self._is_stray(x):
            number = self._number(x)
            said |= {"number": number, "at": deliveries.written(self.space, self.optimizer.point_of(number))}
            granted = self._mine.get(number, self.optimizer.granted.get(number))
            said |= {} if granted is None else {"token": f"answer:{granted.checksum}"}
        else:
            said["x"] = deliveries.written(self.space, x.x if isinstance(x, Trial) else x)
        return uninterrupted(lambda: self._delivered_or_kept(said))

    def _is_stray(self, x: Any) -> bool:
        """Whether a trial was handed out here, by a log in the place of which is another one without it."""
        if not isinstance(x, Trial) or not self._strays:
            return False
        known, row = self.optimizer.point_of(x.number), self.space.encode(x.x).tobytes()
        return (x.number, row) in self._strays and (known is None or self.space.encode(known).tobytes() != row)

    def _delivered_or_kept(self, delivery: dict[str, Any]) -> Trial:
        try:
            self._deliver_spooled(hasty=True)
            return self._deliver(delivery, hasty=True)
        except StudyError as error:
            path = self._spool.keep(delivery)
            self._warn(f"{error}; what was told is kept in {path}, and is delivered with the next call")
            return deliveries.foreseen(self.optimizer, delivery)

    def _deliver_spooled(self, *, hasty: bool = False) -> None:
        for path, delivery in self._spool:
            try:
                self._deliver(delivery, hasty=hasty)
            except (ValueError, TypeError, KeyError) as error:
                self._warn(f"{self._spool.refused(path)} was not taken: {error}")
            else:
                self._spool.delivered(path)

    def _deliver(self, delivery: dict[str, Any], *, hasty: bool) -> Trial:
        """Write a value or a failure, once."""
        trial = self._write(lambda transaction: self._answer(transaction, delivery), hasty=hasty)
        if "number" in delivery:
            self._heartbeat.remove(delivery["number"])
        return trial

    def _answer(self, transaction: Transaction, delivery: dict[str, Any]) -> Trial:
        token, number, worker = delivery["token"], delivery.get("number"), delivery.get("worker", "")
        before = transaction.delivered(self._id, token)
        if before is not None and deliveries.is_of_another(before, delivery):
            token = f"{token}:{worker}"
            before = transaction.delivered(self._id, token)
        if before is not None:
            known = number is not None and number not in self.optimizer.forgotten
            if known and self.optimizer.at(delivery["number"]).status == "retracted":
                raise ValueError(f"trial {number} was retracted; give it a value again with correct({number}, y)")
            return deliveries.repeated(self.optimizer, before, delivery)
        said = deliveries.answer(self.optimizer, delivery)
        done = self._append(transaction, delivery["kind"], said, token, worker)
        if number is not None and not self.optimizer.is_pending(number):
            transaction.release(self._id, number)
        return deliveries.settled(self.optimizer, done.said)

    # Other words

    def correct(
        self,
        trial: Trial | int,
        y: float,
        *,
        noise_var: float | None = None,
        repeats: int | None = None,
        constraints: Sequence[float] | None = None,
    ) -> Trial:
        """Replace the value of a trial, as `Optimizer.correct`."""
        number, limits = self._number(trial), None if constraints is None else [float(one) for one in constraints]
        said: dict[str, Any] = {"number": number, "y": checked_value(y), "noise_var": noise_var, "repeats": repeats}
        said["constraints"] = limits
        self._once("corrected", {name: value for name, value in said.items() if value is not None})
        return self.optimizer.at(number)

    def retract(self, trial: Trial | int) -> Trial:
        """Take back the outcome of a trial, as `Optimizer.retract`."""
        number = self._number(trial)
        self._once("retracted", {"number": number})
        return self.optimizer.at(number)

    def reject(self, x: Trial | int | Point) -> Trial:
        """Record that the point of a pending trial, or another one, will not be evaluated, as `Optimizer.reject`."""
        if names_a_trial(x):
            number = self._number(x)
            self._once("rejected", {"number": number})
            self._let_go(number)
            return self.optimizer.at(number)
        point, mark = deliveries.written(self.optimizer.space, x), uuid.uuid4().hex

        def act(transaction: Transaction) -> Trial:
            done = transaction.delivered(self._id, mark)
            if done is None:
                said = {"number": self.optimizer.next_number, "x": point}
                done = self._append(transaction, "rejected", said, mark)
            return self.optimizer.at(done.said["number"])

        rejected: Trial = uninterrupted(lambda: self._write(act))
        return rejected

    def forget(self, trial: Trial | int) -> None:
        """Give back a pending trial, as if it had never been asked. A value that still comes for it is kept."""
        number = self._number(trial)
        self._once("forgotten", {"number": number})
        self._let_go(number)

    def set_budget(self, budget: int) -> None:
        """How many evaluations there will be in all, from now on; suggestions made before stay as they are."""
        if self.refresh().budget != checks.whole("budget", budget, 1):
            self._once("budget", {"budget": int(budget)})

    def tell_first(self, observations: Sequence[Sequence[Any]]) -> list[Trial]:
        """Tell what is known already: (x, y, noise_var, repeats, ...), each once, however often the list is given.

        They are written together or not at all.
        """
        told = []
        for i, (x, y, noise_var, repeats, *limits) in enumerate(observations):
            said: dict[str, Any] = {"y": y, "noise_var": noise_var, "repeats": repeats}
            said |= {"constraints": list(limits[0])} if limits and limits[0] else {}
            said["x"] = deliveries.written(self.optimizer.space, x)
            mark = hashlib.sha256(text_of([i, said]).encode()).hexdigest()[:32]
            told.append({**said, "kind": "told", "token": f"earlier:{mark}", "worker": self.worker})
        trials: list[Trial] = uninterrupted(lambda: self._write(lambda t: [self._answer(t, one) for one in told]))
        return trials

    def _let_go(self, number: int) -> None:
        self._heartbeat.remove(number)
        with suppress(StudyError):
            self._write(lambda transaction: transaction.release(self._id, number))

    def _number(self, trial: Any) -> int:
        """The number of a trial there ever was."""
        if not names_a_trial(trial):
            raise TypeError(f"trial is {checks.shown(trial)}; give a Trial or its number")
        number = trial.number if isinstance(trial, Trial) else int(trial)
        if self.optimizer.point_of(number) is None:
            with suppress(StudyError):
                self.refresh()
        point = self.optimizer.point_of(number)
        if point is None:
            raise ValueError(f"trial is {number}: there is no such trial; the study has {self.optimizer.next_number}")
        space = self.optimizer.space
        if isinstance(trial, Trial) and space.encode(trial.x).tobytes() != space.encode(point).tobytes():
            raise ValueError(f"trial is {trial!r}, but trial {number} of this study is at another point")
        return number

    # The end

    def close(self) -> None:
        """Give back what was asked here and has no outcome, so that it is offered at once; then end."""
        self._end_leases(self._heartbeat.stop())
        with self._lock:  # another thread may be reading, and SQLite does not survive a connection that is closed then
            self._database.close()
        cleared(self._database.path)

    def give_back(self, numbers: Collection[int]) -> None:
        """Let others have at once what was handed to a loop here that has ended, and has no outcome."""
        self.in_loops.difference_update(numbers)
        for number in numbers:
            self._heartbeat.remove(number)
        own = {number: self._mine[number].seq for number in numbers if number in self._mine}
        self._end_leases({number: seq for number, seq in own.items() if self.optimizer.is_pending(number)})

    def _end_leases(self, held: Mapping[int, int]) -> None:
        """End the leases of trials, given with the entries of the log with which they were handed out."""
        if held:
            with suppress(StudyError), self._lock, self._database.writing() as transaction:
                for number, granted in held.items():
                    transaction.renew(self._id, number, granted, 0.0)


def checked_lease(lease: Any) -> float:
    if isinstance(lease, float) and math.isinf(lease) and lease > 0:
        return math.inf
    return checks.positive("lease", lease)
