"""The loop of a run with several evaluations in flight.

A point is asked after each outcome, before the next outcome is looked at. So what is told and what is pending at each
suggestion follow from the order of the outcomes, which the log holds: the run is a function of it.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from gpmi._support.interrupts import Interrupts
from gpmi._support.logger import logger
from gpmi.optimizer import Optimizer
from gpmi.run.evaluation import Measured, failure_of, tell
from gpmi.run.parallel.crew import Crew, Done
from gpmi.run.stopping import Stop
from gpmi.space import SpaceExhausted
from gpmi.trials import Trial

LATER = Stop("others are at work")  # no reason to stop: what is left is with others, one of whom may die


@dataclass(frozen=True, eq=False)
class Flight:
    """What is under way."""

    optimizer: Optimizer
    crew: Crew
    begun: Callable[[Trial], None]  # called with each trial whose evaluation begins
    after: Callable[[Trial], Stop | None]  # called with each trial that has an outcome
    interrupts: Interrupts
    learns: bool  # from failures
    retries: int
    trials: dict[int, Trial] = field(default_factory=dict)  # in the air
    back: deque[Trial] = field(default_factory=deque)  # given back by a worker that died
    alone: deque[Trial] = field(default_factory=deque)  # the same, but it may have been another point's fault
    deaths: Counter[int] = field(default_factory=Counter)  # of each trial
    errors: list[Exception] = field(default_factory=list)  # of asking


def fly(flight: Flight, asked: Iterator[Trial | None]) -> Stop:
    """Evaluate what is asked until there is a reason to stop, and all that is in the air has come down.

    Where there is nothing to ask for now (None), because others evaluate what is left, it looks again later.

    Whatever ends the run, Ctrl-C and exceptions included, outcomes that have arrived are told first. If it is asking
    that fails, as where a database is gone, what is in the air is waited for before the exception is raised.
    """
    end: Stop | None = None  # no more is asked
    stopped = False  # by a rule
    waits = pauses()
    try:
        while True:
            end = _fill(flight, asked, end, stopped)
            if end is LATER:
                end, seconds = None, next(waits)
            elif flight.trials:
                waits, seconds = pauses(), None
            elif flight.errors:
                raise flight.errors[0]
            else:
                return end or Stop("budget")
            trial = _land(flight, seconds)
            said = None if trial is None else flight.after(trial)
            flight.interrupts.act()
            if said is not None and not stopped:
                end, stopped = said, True
    except BaseException:
        flight.interrupts.patience = None
        _land_the_rest(flight)
        raise
    finally:
        flight.interrupts.patience = None
        flight.crew.close()


def _fill(flight: Flight, asked: Iterator[Trial | None], end: Stop | None, stopped: bool) -> Stop | None:
    """Start evaluations while there is room. The reason why nothing more is asked, if there is one."""
    if stopped:  # points that were given back are not evaluated again
        return end
    while len(flight.trials) < flight.crew.size:
        if flight.alone:
            if not flight.trials:
                _start(flight, flight.alone.popleft())
            return end
        if flight.back:
            _start(flight, flight.back.popleft())
            continue
        if end is not None:
            return end
        flight.interrupts.act()
        try:
            following = next_of(asked)
        except Exception as error:
            logger.warning("no more points can be asked, and %d are waited for: %s", len(flight.trials), error)
            flight.errors.append(error)
            return Stop("error")
        if isinstance(following, Stop):
            return following
        _start(flight, following)
    return end


def next_of(asked: Iterator[Trial | None]) -> Trial | Stop:
    """The next trial, or why there is none; LATER if there is none now."""
    try:
        return next(asked) or LATER
    except SpaceExhausted:
        return Stop("space exhausted")
    except StopIteration:
        return Stop("budget")


def pauses() -> Iterator[float]:
    """Seconds between looks at whether others have finished what is left: twice as many each time, up to one."""
    for k in count():
        yield min(0.02 * 2.0**k, 1.0)


def _start(flight: Flight, trial: Trial) -> None:
    flight.interrupts.patience = None
    flight.trials[trial.number] = trial
    flight.crew.start(trial.number, flight.optimizer.space.copy(trial.x))
    flight.interrupts.patience = 2
    flight.begun(trial)


def _land(flight: Flight, seconds: float | None) -> Trial | None:
    """Wait for an evaluation, for so many seconds, tell its outcome. None if there is none, or its worker died."""
    try:
        flight.interrupts.patience = 1
        flight.interrupts.act()
        if flight.trials:
            flight.crew.wait(seconds)
        else:
            time.sleep(seconds or 0.0)
    finally:
        flight.interrupts.patience = None
    done = flight.crew.take() if flight.trials else None
    if done is None:
        return None
    trial = flight.trials.pop(done.number)
    told = _settle(flight, trial, done)
    flight.interrupts.patience = 2
    return told


def _settle(flight: Flight, trial: Trial, done: Done) -> Trial | None:
    if done.lost is not None:
        flight.deaths[trial.number] += 1
        if flight.deaths[trial.number] <= flight.retries:
            (flight.back if done.lost == "one" else flight.alone).append(trial)
            return None
        if flight.learns:
            words = f"its worker died {flight.deaths[trial.number]} times: {done.error}"
            return flight.optimizer.fail(trial, words)
    if done.error is not None:
        raise done.error
    if all(trial.number != other.number for other in flight.optimizer.pending):  # `after` has told or forgotten it
        return None if failure_of(done.answer) else _tell_late(flight, trial, done.answer)
    return tell(flight.optimizer, trial, done.answer, learns=flight.learns)


def _tell_late(flight: Flight, trial: Trial, answer: Any) -> Trial:
    """The value is one more at its point."""
    value = answer if isinstance(answer, Measured) else Measured(answer)
    return flight.optimizer.tell(trial.x, value.y, noise_var=value.noise_var, constraints=value.constraints or None)


def _land_the_rest(flight: Flight) -> None:
    """Tell the outcomes that have arrived when the run ends early. Their own errors do not hide its reason.

    A value that is refused, and a crew that has nothing more to give, are logged: nothing vanishes in silence.
    """
    while True:
        try:
            done = flight.crew.take()
        except Exception as error:
            logger.warning("outcomes that had arrived could not be taken: %s", error)
            return
        if done is None:
            return
        trial = flight.trials.pop(done.number)
        if done.error is not None:
            continue  # its trial stays pending
        try:
            tell(flight.optimizer, trial, done.answer, learns=True)
        except Exception as error:
            logger.warning("trial %d returned %r, which was not told: %s", trial.number, done.answer, error)
