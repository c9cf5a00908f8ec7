"""The loop of a run that evaluates several points at the same time.

After each outcome it asks for the next point before it looks at the next outcome. The values and the pending points
behind a suggestion therefore follow from the order of the outcomes. The log holds this order, so the run replays.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from gpmi._support.checks import shown
from gpmi._support.interrupts import Interrupts
from gpmi._support.logger import logger
from gpmi.optimizer import Optimizer
from gpmi.run.curves import BadCurve, Curves
from gpmi.run.evaluation import CurveEnd, Drained, Failure, Measured, RaisedInProcess, RepairNeeded, failure_of, record
from gpmi.run.pools import Finished, Pool, Yielded
from gpmi.run.stopping import Stop
from gpmi.space import SpaceExhausted, copied
from gpmi.trials import Trial

WAIT = Stop("waiting for other workers")  # not an end: other workers hold the remaining trials, and may still die


@dataclass(frozen=True, eq=False)
class ParallelLoop:
    """Evaluates trials in a pool until there is a reason to stop."""

    optimizer: Optimizer
    pool: Pool
    on_start: Callable[[Trial], None]  # called with each trial whose evaluation starts
    on_outcome: Callable[[Trial], Stop | None]  # called with each trial that has an outcome
    interrupts: Interrupts
    curves: Curves
    learns: bool  # from failures
    retries: int  # of a point whose worker died
    timeout_retries: int = 0  # of a point that took too long
    running: dict[int, Trial] = field(default_factory=dict)  # by number
    retry: deque[Trial] = field(default_factory=deque)  # their worker died
    retry_alone: deque[Trial] = field(default_factory=deque)  # the same, but another point may be the culprit
    deaths: Counter[int] = field(default_factory=Counter)  # of workers, by the number of the trial
    timeouts: Counter[int] = field(default_factory=Counter)  # by the number of the trial
    errors: list[Exception] = field(default_factory=list)  # raised by asking
    stopped: set[int] = field(default_factory=set)  # generators that were told to stop and may clean up

    def run(self, queue: Iterator[Trial | None]) -> Stop:
        """Evaluate the trials of the queue until there is a reason to stop and nothing is running.

        Where the queue gives None, other workers evaluate the remaining trials; it is polled again later.

        Whatever ends the run, Ctrl-C and exceptions included, outcomes that have arrived are recorded first. If asking
        fails, for example because a database is gone, running evaluations are awaited before the exception is raised.
        """
        end: Stop | None = None  # no more is asked
        stopped = False  # by a rule
        delays = polling_delays()
        try:
            while True:
                end = self._fill(queue, end, stopped)
                if end is WAIT:
                    end, seconds = None, next(delays)
                elif self.running:
                    delays, seconds = polling_delays(), None
                elif self.errors:
                    raise self.errors[0]
                else:
                    return end or Stop("budget")
                trial = self._record_next(seconds)
                reason = None if trial is None else self.on_outcome(trial)
                self.interrupts.act()
                if reason is not None and not stopped:
                    end, stopped = reason, True
        except BaseException:
            self.interrupts.presses_needed = None
            self._record_arrived()
            raise
        finally:
            self.interrupts.presses_needed = None
            self.pool.close()

    def _fill(self, queue: Iterator[Trial | None], end: Stop | None, stopped: bool) -> Stop | None:
        """Start evaluations while workers are free. Return the reason why nothing more is asked, if there is one."""
        if stopped:  # no retries after a rule has stopped the run
            return end
        while len(self.running) < self.pool.size:
            if self.retry_alone:
                if not self.running:
                    self._start(self.retry_alone.popleft())
                return end
            if self.retry:
                self._start(self.retry.popleft())
                continue
            if end is not None:
                return end
            self.interrupts.act()
            try:
                trial = next_trial(queue, self.curves)
            except Exception as error:
                logger.warning("no more points can be asked; waiting for %d evaluations: %s", len(self.running), error)
                self.errors.append(error)
                return Stop("error")
            if isinstance(trial, Stop):
                return trial
            self._start(trial)
        return end

    def _start(self, trial: Trial) -> None:
        self.interrupts.presses_needed = None
        self.curves.forget(trial)
        self.running[trial.number] = trial
        self.pool.start(trial.number, copied(trial.x))
        self.interrupts.presses_needed = 2
        self.on_start(trial)

    def _record_next(self, seconds: float | None) -> Trial | None:
        """Wait up to `seconds` for an evaluation and record its outcome. None if there is none or its worker died."""
        try:
            self.interrupts.presses_needed = 1
            self.interrupts.act()
            if self.running:
                self.pool.wait(seconds)
            else:
                time.sleep(seconds or 0.0)
        finally:
            self.interrupts.presses_needed = None
        finished = self.pool.take() if self.running else None
        if finished is None:
            return None
        if isinstance(finished, Yielded):
            return self._report(self.running[finished.number], finished)
        trial = self.running.pop(finished.number)
        recorded = self._record(trial, finished)
        self.interrupts.presses_needed = 2
        return recorded

    def _report(self, trial: Trial, yielded: Yielded) -> Trial | None:
        """Record what a generator has yielded, and answer. Return the trial only if that has ended it at once."""
        try:
            goes_on = self.curves.report(trial, yielded.item)
        except BadCurve as bad:
            self.pool.abandon(trial.number)
            del self.running[trial.number]
            recorded = self.curves.fail(trial, bad)
            self.interrupts.presses_needed = 2
            return recorded
        if not goes_on:
            self.stopped.add(trial.number)
        self.pool.answer(trial.number, goes_on=goes_on)
        self.interrupts.presses_needed = 2
        return None

    def _record_curve(self, trial: Trial, finished: Finished) -> Trial | None:
        """Record the end of a generator."""
        if trial.number in self.stopped:
            self.stopped.discard(trial.number)
            if isinstance(finished.answer, Failure):
                finished = finished._replace(error=RaisedInProcess(finished.answer.why))
            if isinstance(finished.error, Exception):
                self.curves.note_cleanup(trial, finished.error)
            return self.curves.ended(trial)
        try:
            return self.curves.end(trial)
        except BadCurve as bad:
            return self.curves.fail(trial, bad)

    def _record(self, trial: Trial, finished: Finished) -> Trial | None:
        if trial.number in self.stopped or isinstance(finished.answer, CurveEnd):
            return self._record_curve(trial, finished)
        if finished.lost is not None:
            timed_out = finished.lost == "timeout"
            (self.timeouts if timed_out else self.deaths)[trial.number] += 1
            attempt = self.timeouts[trial.number] + self.deaths[trial.number]
            if attempt <= (self.timeout_retries if timed_out else self.retries):
                (self.retry_alone if finished.lost == "all" else self.retry).append(trial)
                return None
            if self.learns and timed_out:
                why = f"{finished.error} (attempt {attempt})" if attempt > 1 else str(finished.error)
                finished = Finished(trial.number, Failure(why))
            elif self.learns:
                why = f"its worker died {self.deaths[trial.number]} times: {finished.error}"
                return self.optimizer.fail(trial, why)
        if finished.error is not None:
            raise finished.error
        if isinstance(finished.answer, Drained):
            return self.curves.record_all(trial, finished.answer)
        # The user's `on_trial` may have told or withdrawn the trial in the meantime.
        if all(trial.number != other.number for other in self.optimizer.pending):
            return None if failure_of(finished.answer) else self._record_late(trial, finished.answer)
        return record(self.optimizer, trial, finished.answer, learns=self.learns)

    def _record_late(self, trial: Trial, answer: Any) -> Trial:
        """Record the value as one more at the trial's point."""
        value = answer if isinstance(answer, Measured) else Measured(answer)
        return self.optimizer.tell(trial.x, **value._asdict())

    def _record_arrived(self) -> None:
        """Record the outcomes that have arrived when the run ends early. Their errors do not hide its reason.

        Values that are refused, and a pool that fails, are logged, so that nothing vanishes in silence.
        """
        while True:
            try:
                finished = self.pool.take()
            except Exception as error:
                logger.warning("outcomes that had arrived could not be taken from the pool: %s", error)
                return
            if finished is None:
                return
            if isinstance(finished, Yielded):
                self._record_last(self.running[finished.number], finished.item)
                continue
            trial = self.running.pop(finished.number)
            if trial.number in self.stopped:
                continue  # it has its values
            if finished.lost == "timeout" and self.learns and not self.timeout_retries:
                finished = Finished(trial.number, Failure(str(finished.error)))
            if finished.error is not None:
                continue  # its trial stays pending
            try:
                if isinstance(finished.answer, Drained):
                    self.curves.record_all(trial, finished.answer)
                elif isinstance(finished.answer, CurveEnd):
                    self.curves.end(trial)
                else:
                    record(self.optimizer, trial, finished.answer, learns=True)
            except RepairNeeded:
                continue  # its trial stays pending
            except Exception as error:
                logger.warning("trial %d returned %r, which was not told: %s", trial.number, finished.answer, error)

    def _record_last(self, trial: Trial, item: Any) -> None:
        """Record what a generator has yielded when the run ends early. Its trial stays pending."""
        try:
            self.curves.report(trial, item)
        except Exception as error:
            logger.warning("trial %d yielded %s, which was not recorded: %s", trial.number, shown(item), error)


def next_trial(queue: Iterator[Trial | None], curves: Curves) -> Trial | Stop:
    """Return the next trial, or the reason why there is none; WAIT if there may be one later.

    A trial that does not fit into what is left of the cost stays pending.
    """
    try:
        if not curves.has_room():
            return Stop("cost")
        trial = next(queue) or WAIT
        return trial if not isinstance(trial, Trial) or curves.has_room(trial) else Stop("cost")
    except SpaceExhausted:
        return Stop("space exhausted")
    except StopIteration:
        return Stop("budget")


def polling_delays() -> Iterator[float]:
    """Seconds between two looks at what other workers have left: doubled each time, up to one second."""
    for k in count():
        yield min(0.02 * 2.0**k, 1.0)
