"""What workers do with the log of a study: get trials, deliver values and failures, change trials.

`gpmi.storage.shared_log` has the transaction around each change.
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
from typing import Any, Literal, TypeAlias, TypeVar

from gpmi._support import checks
from gpmi._support.interrupts import uninterrupted
from gpmi._support.types import Point
from gpmi.optimizer.curves import is_next_step
from gpmi.space import frozen
from gpmi.storage.annotations import Annotation
from gpmi.storage.deliveries import Delivery
from gpmi.storage.entries import StoredEntry, content_of_report
from gpmi.storage.errors import StudyError
from gpmi.storage.fair_lock import remove_lock_files
from gpmi.storage.serialization import point_from_json, point_to_json, text_of
from gpmi.storage.shared_log import SharedLog
from gpmi.storage.stored_outcomes import outcome_to_json
from gpmi.storage.tables import NEVER, Lease, Transaction
from gpmi.storage.workers import has_ended
from gpmi.trials import Outcome, Trial, names_a_trial
from gpmi.trials.entries import Reported
from gpmi.trials.log import FindOpen, Reporter, Settle, TrialOrPoint
from gpmi.trials.outcomes import details_of
from gpmi.trials.trial import value_of

Value = TypeVar("Value")
Fixed: TypeAlias = Mapping[Any, Any] | None
# Why no trial is handed out: the rest of the budget is being evaluated by others, or the budget is used up.
NoTrial: TypeAlias = Literal["wait", "used up"]
# Seconds of processor time. After a slower suggestion, the model for the next one is updated before the lock is taken.
# All waiting processes then do so at the same time, which helps only if each has its own processor. Not tuned.
SLOW = 0.5
JITTER = 1.0  # seconds by which a clock may be corrected at any time; our choice


class StudyLog(SharedLog):
    """The log of one study. Threads may share it; each process opens its own."""

    def leases(self) -> dict[int, Lease]:
        """Return the leases of trials that are being evaluated: by whom, and until when."""
        return {lease.number: lease for lease in self._read(lambda transaction: transaction.leases(self._id))}

    def refresh(self, settle: Settle) -> None:
        """Replay the entries of other processes. The outbox is delivered first, if the database is reachable."""
        with self.lock:
            with suppress(StudyError):
                self.deliver_waiting(settle)
            self._read(self._catch_up)

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
                choice = self._left_behind(transaction, budget, fixed)
                if isinstance(choice, str):
                    return choice
                entry = self._grant(transaction, choice, suggest, token, seconds)
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
            if lease is not None and not lease.expires:
                others += 1
            elif lease is not None and lease.until >= now and not has_ended(lease.worker):
                grant = self._own.get(number)
                by_hand = grant is not None and grant.seq == lease.granted and number not in self.in_loops
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
        if lease is None or not lease.expires or lease.until <= now + self._lease + JITTER:
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
            self.grants[number] = entry
        else:
            entry = self._store(transaction, "leased", {"number": number, **length}, token)
            self.hand_on(number, entry)
        return entry

    def release_leases(self, numbers: Collection[int]) -> None:
        """Release the trials of a loop that has ended, so that other workers can take the pending ones immediately."""
        with uninterrupted():
            self.in_loops.difference_update(numbers)
            for number in numbers:
                self._heartbeat.remove(number)
            granted = {number: self._own[number].seq for number in numbers if number in self._own}
            self._end_leases({number: seq for number, seq in granted.items() if self.is_pending(number)})

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
                self._keep(delivery, error)
                return self._expected(delivery)

    def _keep(self, delivery: Delivery, error: StudyError) -> None:
        path = self._outbox.keep(delivery.to_json())
        self._warn(f"{error}; the outcome is saved in {path}, and is delivered with the next call")

    def deliver_all(self, observations: Sequence[tuple[Point, Outcome]], settle: Settle, find: FindOpen) -> list[Trial]:
        """Store observations together or not at all, each in the pending trial at its point or in a new one.

        Tokens derive from the content and the index in the list, so delivering the same list again is a no-op.
        """
        deliveries = []
        for i, (x, outcome) in enumerate(observations):
            point = point_to_json(self.space, x)
            content = {"noise_var": 0.0, "repeats": 1, **outcome_to_json(outcome), "x": point}
            token = hashlib.sha256(text_of([i, content]).encode()).hexdigest()[:32]
            deliveries.append(Delivery(outcome, f"earlier:{token}", self.worker, None, point))
        told = self._write(
            lambda transaction: [self._store_delivery(transaction, delivery, settle, find) for delivery in deliveries]
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
        if not names_a_trial(target) or self._is_orphan(target) or self._was_moved(target):
            point = target.x if isinstance(target, Trial) else target
            self.space.encode(point)  # refuses a point outside of the space before it can get into the outbox
            if isinstance(target, Trial) and self._was_moved(target):
                self._heartbeat.remove(target.number)  # this worker does not evaluate it where it is now
            return Delivery(outcome, uuid.uuid4().hex, self.worker, None, point_to_json(self.space, point))
        number = self._number_of(target)
        granted = self._own.get(number, self.grants.get(number))
        token = uuid.uuid4().hex if granted is None else _answer_to(granted)
        if granted is not None and (moves := len(self._left.get(number, ()))):
            token = f"{token}:moved{moves}"  # a worker that did not know of the move may have answered
        if outcome.status == "stopped" and granted is not None:  # a trial that was stopped may go on
            token = f"stop:{granted.checksum}:{len(self.at(number).curve)}"
        if outcome.outputs:  # others may come later
            names = hashlib.sha256(text_of(sorted(outcome.outputs)).encode()).hexdigest()[:8]
            token = f"{token}:{names}"
        return Delivery(outcome, token, self.worker, number, point_to_json(self.space, self.point_of(number)))

    def _was_moved(self, target: TrialOrPoint) -> bool:
        """Whether a trial is as it was before it was moved: its outcome is that of the point where it was."""
        return isinstance(target, Trial) and self.space.encode(target.x).tobytes() in self._left.get(target.number, ())

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
        if delivery.step is not None:
            return self._store_report(transaction, delivery)[0].trial
        if delivery.number is not None and delivery.outcome.outputs and not self._is_open(delivery.number):
            return self._store_later(transaction, delivery, settle)
        token, number = delivery.token, delivery.number
        entry = transaction.entry_by_token(self._id, token)
        if entry is not None and delivery.competes_with(entry):
            token = f"{token}:{delivery.worker}"
            entry = transaction.entry_by_token(self._id, token)
        if entry is not None:
            return self._repeated(delivery, entry)
        target, extra = self._target(delivery)
        if number is None:
            target = find(target, delivery.outcome)
            number = target if isinstance(target, int) else None
        if target is None:
            if delivery.outcome.status == "failed":
                self._check_late_failure(delivery)
            late = {"number": number, **outcome_to_json(delivery.outcome), "late": True}
            entry = self._store(transaction, delivery.outcome.status, late, token, delivery.worker)
        else:
            settle(target, delivery.outcome)
            entry = self._store_last(transaction, token, delivery.worker, **extra)
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
            extra = {} if trial.number == number else {"of": number}
        else:
            settle(point_from_json(delivery.point), new.outcome)
            extra = {"of": number}
        tokens = (delivery.token, f"{delivery.token}:{delivery.worker}", uuid.uuid4().hex)
        token = next(token for token in tokens if transaction.entry_by_token(self._id, token) is None)
        return self.at(self._store_last(transaction, token, delivery.worker, **extra).content["number"])

    def _is_at(self, number: int, point: Any) -> bool:
        """Whether there is a trial with this number, at a point given as JSON."""
        there = self.point_of(number)
        return there is not None and (point is None or point_to_json(self.space, there) == point)

    def _target(self, delivery: Delivery) -> tuple[TrialOrPoint, dict[str, Any]]:
        """Return the open trial or the point that gets the outcome, None for a late failure, and more content."""
        number = delivery.number
        if number is None:
            return point_from_json(delivery.point), {}
        point = self.point_of(number)
        stored = None if point is None else point_to_json(self.space, point)
        if delivery.point is not None and delivery.point != stored:
            return point_from_json(delivery.point), {"of": number}
        if point is None:
            raise ValueError(f"trial is {number}: there is no such trial")
        if self._is_open(number):
            return number, {}
        return (point, {"of": number}) if delivery.outcome.status == "told" else (None, {})

    def _check_late_failure(self, delivery: Delivery) -> None:
        """Refuse the failure of a trial that has ended, unless its worker was handed the trial and told no value."""
        number = delivery.number
        if number not in self._trials:  # forgotten
            return
        if self._trials[number].status == "retracted":
            raise ValueError(_retracted(number))
        mine = [entry for entry in (*self._committed, *self._new) if entry.worker == delivery.worker]
        was_handed = any(delivery.token.split(":moved")[0] == _answer_to(entry) for entry in mine)
        if not was_handed or any(entry.token.startswith(delivery.token) for entry in mine if entry.kind == "told"):
            remedy = f"retract({number}) takes that back"
            raise ValueError(f"x is trial {number}, which is not pending: {self.state_of(number)}; {remedy}")

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
            x = frozen(self.space.canonical(point_from_json(delivery.point)))
            return Trial(self.next_number, x, origin="user", **{**vars(outcome), **self.goals.derived(outcome)})
        trial = self.at(delivery.number)
        if trial.status == "told" and self.lacks(trial.number, outcome):
            outcome = Outcome("told", **details_of(trial)).with_outputs(outcome)
        elif trial.status != "pending" and not (trial.status == "stopped" and outcome.status == "told"):
            return trial
        return replace(trial, **{**vars(outcome), **self.goals.derived(outcome)})

    def _is_orphan(self, target: Trial | int) -> bool:
        """Whether this process got the trial from a log since replaced by a copy that lacks it."""
        if not isinstance(target, Trial) or not self._orphans:
            return False
        row, point = self.space.encode(target.x).tobytes(), self.point_of(target.number)
        is_missing = point is None or self.space.encode(point).tobytes() != row
        return is_missing and (target.number, row) in self._orphans

    # Values on the way to the target of a fidelity: as durable as outcomes, before the answer is given

    def deliver_report(
        self, target: Trial | int, step: int, outcome: Outcome, record: Reporter, settle: Settle
    ) -> Reported:
        """Store a value of a curve, and the decision to stop there, in one entry; in the outbox if that is impossible.

        A step that was stored before with the same value is stored once. A trial that was handed out again after its
        worker died keeps the values that it had: later values of the same steps change nothing, and the answer is to
        go on. A value that comes after the trial has ended, or from a worker that has lost the trial to another one, is
        stored without effect, and the answer is to stop. A value in the outbox is not judged: the answer is to go on.
        """
        if self._is_orphan(target):
            assert isinstance(target, Trial)
            value = f"its value {checks.shown(value_of(outcome))} at step {step} is not stored"
            self._warn(f"trial {target.number} is no longer in the log, so {value}; its last value will be")
            return Reported(target, True)
        number = self._number_of(target)
        granted = self._own.get(number, self.grants.get(number))
        token = uuid.uuid4().hex if granted is None else _report_token(granted, step)
        delivery = Delivery(outcome, token, self.worker, number, point_to_json(self.space, self.point_of(number)), step)
        with uninterrupted():
            try:
                self.deliver_waiting(settle, no_retry=True)
                write = partial(self._store_report, delivery=delivery, record=record)
                reported, lease = self._write(write, no_retry=True)
            except StudyError as error:
                self._keep(delivery, error)
                return Reported(self.at(number), True)
            if lease is not None:
                self._heartbeat.add(number, lease.granted, self._length_of_lease(number))
            elif reported.trial.status != "pending":
                self._heartbeat.remove(number)
        return reported

    def _store_report(
        self, transaction: Transaction, delivery: Delivery, record: Reporter | None = None
    ) -> tuple[Reported, Lease | None]:
        """Store a value of a curve, unless it is in the log already. A trial that was stopped and goes on is leased.

        record(number, step, outcome) decides whether to stop; without it nothing is decided.
        """
        number, step, token = delivery.number, delivery.step, delivery.token
        assert number is not None and step is not None
        entry = transaction.entry_by_token(self._id, token)
        if not self._is_at(number, delivery.point):
            raise ValueError(f"trial is {number}, which is not at {delivery.point}; the log was replaced")
        before, granted = self.at(number), self.grants.get(number)
        if entry is not None:
            if not delivery.equals(entry):
                was = checks.shown(entry.content.get("y", entry.content.get("outputs")))
                raise ValueError(f"step {step} of trial {number} was {was}; report each step once")
            return Reported(before, before.status == "pending" and not entry.content.get("late")), None
        is_current = granted is None or token == _report_token(granted, step)
        if not is_current or not self._is_open(number):
            state = f"is {before.status}" if is_current else "was handed to another worker"
            self._warn(f"trial {number} {state}, so the values of its curve that come now are stored without effect")
            late = {"number": number, "step": step, **outcome_to_json(delivery.outcome), "late": True}
            self._store(transaction, "reported", late, token, delivery.worker)
            return Reported(before, False), None
        if step <= self._inherited.get(number, 0):
            return Reported(before, before.status == "pending"), None
        if record is not None:
            trial, extra = record(number, step, delivery.outcome), self._new_platform()
        elif is_next_step(before, step, delivery.outcome):
            trial, extra = self.report(number, step, delivery.outcome), {"unjudged": True}
        if self._saved == len(self._entries):  # the same value once more
            return Reported(before, before.status == "pending"), None
        content, when = content_of_report(trial, step, delivery.outcome) | extra, self._entries[-1].time
        self._store(transaction, "reported", content, token, delivery.worker, when)
        grant, lease = self._own.get(number), None
        if trial.status == "stopped":
            transaction.release(self._id, number)
        elif before.status == "stopped" and grant is not None:
            seconds = self._length_of_lease(number)
            lease = Lease(number, grant.seq, self.worker, NEVER if math.isinf(seconds) else when + seconds)
            transaction.lease(self._id, lease)
        return Reported(trial, trial.status == "pending"), lease

    def _length_of_lease(self, number: int) -> float:
        length = self._own[number].content.get("lease", math.inf)
        return float(length)

    def _is_open(self, number: int) -> bool:
        """Whether a trial can take a value: it is pending, or was stopped."""
        trial = self._trials.get(number)
        return trial is not None and trial.status in ("pending", "stopped")

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

    def store_annotation(self, annotation: Annotation) -> Annotation:
        """Store an annotation, unless it repeats the last one of its trial, as a form that is sent twice does."""
        token = uuid.uuid4().hex

        def act(transaction: Transaction) -> Annotation:
            before = self.annotations.get(annotation.number, ())
            if before and before[-1].to_json() == annotation.to_json():
                return before[-1]
            if self.point_of(annotation.number) is None:
                raise ValueError(f"trial is {annotation.number}: there is no such trial")
            entry = transaction.entry_by_token(self._id, token)
            if entry is not None:  # stored by an attempt whose acknowledgement was lost
                return replace(annotation, time=entry.time)
            entry = self._store(transaction, "noted", annotation.to_json(), token)
            stored = replace(annotation, time=entry.time)
            self.annotate(stored)
            return stored

        return self._write(act)

    def set_budget(self, budget: int) -> None:
        """Set the total budget; earlier suggestions stay as they are."""
        token = uuid.uuid4().hex

        def act(transaction: Transaction) -> None:
            if transaction.entry_by_token(self._id, token) is None and self.budget != budget:
                self._store(transaction, "budget", {"budget": budget}, token)
                self.budget = budget

        self._write(act)

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


def _report_token(grant: StoredEntry, step: int) -> str:
    """Return the token of a value of the curve of a trial that was handed out with this entry."""
    return f"report:{grant.checksum}:{step}"


def _retracted(number: int | None) -> str:
    return f"trial {number} was retracted; give it a value again with correct({number}, y)"


def checked_lease(lease: Any) -> float:
    """Return a lease in seconds; infinity is allowed."""
    if isinstance(lease, float) and math.isinf(lease) and lease > 0:
        return math.inf
    return checks.positive("lease", lease)
