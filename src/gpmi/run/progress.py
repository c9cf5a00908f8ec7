"""The progress of a run: a live display on a terminal, plain lines elsewhere.

It shows the number of evaluations and the time left, the best and the last values, how much may be missing, the
warnings of the ledger, and the running evaluations. With several objectives it shows the front in place of the best
value.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import TYPE_CHECKING

from gpmi._support.text import clock, cost_text, install_command, point
from gpmi.analysis.ledger import warning_events
from gpmi.analysis.ledger.facts import distrust
from gpmi.optimizer import Optimizer
from gpmi.trials import Trial
from gpmi.trials.goal_summary import best_on_front

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.progress import Progress

# Our choices, not tuned.
MOST_LISTED = 8  # running evaluations that are listed
LAST = 5  # values that are listed
WIDTH = 80  # characters of a point, at most
SHARE = 20.0  # the regret is drawn for at most a twentieth of the time: again after 20 times what it took last
FIRST_DRAW = 20.0  # seconds after which the regret is drawn for the first time
PERIOD = 10.0  # seconds between two plain lines, at least; or a twentieth of the time so far, so that logs stay short
PATIENCE = 2.0  # seconds before `counted` shows anything
REFRESH = 4  # updates of a terminal in a second


class ProgressState:
    """The state of a run, for display. Reading it changes no suggestion."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._begin = self._drawn = time.monotonic()
        self._cost = FIRST_DRAW / SHARE  # of the last draw of the regret, in seconds
        self._earlier = self.done = self._optimizer.evaluated
        self._end: float | None = None  # when the budget will be spent at this pace
        self._fidelity = optimizer.space.fidelity
        self.spent = 0.0 if self._fidelity is None else optimizer.spent  # by the fidelity of the space
        self.running: dict[int, tuple[float, str]] = {}  # by number: the start, and the point
        self.others: dict[int, tuple[float, str]] = {}
        self.last: deque[str] = deque(maxlen=LAST)
        self._goals = optimizer.goals
        self._several = self._goals.single is None
        self.best_name = "front" if self._several else "best"
        self.best, self.missing = "", ""
        self.warnings: tuple[str, ...] = ()
        self._show_best()

    def begin(self, trial: Trial) -> None:
        """Note that the evaluation of a trial begins."""
        self.running[trial.number] = time.monotonic(), point(trial.x, WIDTH)
        self._list_others()

    def step(self, trial: Trial) -> None:
        """Note that a trial has a new value on its way to the target of its fidelity. O(n)."""
        if trial.number in self.running and trial.curve and self._fidelity is not None:
            begin, _ = self.running[trial.number]
            where = f"step {trial.curve[-1].step} of {self._fidelity.fidelity.last}"
            self.running[trial.number] = begin, f"{where}, {point(trial.x, WIDTH)}"
        self.spent = self._optimizer.spent

    def end(self, trial: Trial) -> None:
        """Note that a trial was told, stopped or failed. O(n), and from time to time the cost of the regret."""
        now, budget = time.monotonic(), self._optimizer.budget
        self.running.pop(trial.number, None)
        self._list_others()
        self.done = self._optimizer.evaluated
        if self._fidelity is not None:
            self.spent = self._optimizer.spent
        self.last.appendleft(self._outcome(trial))
        self._show_best()
        if budget is not None and self.done > self._earlier:
            each = (now - self._begin) / (self.done - self._earlier)
            self._end = now + each * max(0, budget - self.done)
        if now - self._drawn > SHARE * self._cost:
            self._draw_missing()

    def close(self) -> None:
        """Note that the run is over, and update the warnings of the ledger."""
        self.running, self.others = {}, {}
        self._end = None
        with suppress(Exception):
            self._warn()

    def _show_best(self) -> None:
        """Show the best value and its point, or the front with the best value of each objective."""
        best = self._optimizer.best
        if best is not None:
            self.best = f"{best.y:.6g} at {point(best.x, WIDTH)}"
        elif self._several and (front := self._optimizer.shown_front()):
            values = best_on_front(front, self._goals)
            self.best = f"{len(front)} trial{'s' * (len(front) > 1)}: {', '.join(values)}"

    def _outcome(self, trial: Trial) -> str:
        """Return the value of a trial, its objectives, or how it ended."""
        if trial.y is not None:
            return f"{trial.y:.5g}"
        if not (self._several and trial.outputs):
            return trial.status
        values = [trial.outputs.get(name) for name in self._goals.objectives]
        return f"({', '.join('?' if value is None else f'{value:.5g}' for value in values)})"

    def _list_others(self) -> None:
        """List the trials that other processes evaluate. Not while drawing, because it locks the optimizer."""
        now, clock_time = time.monotonic(), time.time()
        self.others = {
            trial.number: (now - clock_time + (trial.asked or clock_time), f"another process, {point(trial.x, WIDTH)}")
            for trial in self._optimizer.pending
            if trial.number not in self.running
        }

    def _draw_missing(self) -> None:
        """Draw how much may be missing, which takes a moment."""
        begin = time.monotonic()
        with suppress(Exception):  # a failing model is an event of the result
            ledger = self._optimizer.ledger
            if ledger.unknown is None:
                self.missing = f"{ledger.missing_fact().text}, after {ledger.n} values"
            self._warn()
        self._drawn = time.monotonic()
        self._cost = self._drawn - begin

    def _warn(self) -> None:
        """Update the warnings: a model that was surprised, or a run that repeats itself without gain."""
        ledger = self._optimizer.ledger
        judged = {**ledger.calibrations, **ledger.watched}
        wrong = (distrust(name, each) for name, each in judged.items() if each.is_over_confident)
        self.warnings = (*wrong, *(f"{event.kind}: {event.message}" for event in warning_events(ledger)))

    @property
    def count(self) -> str:
        """The number of evaluations, the budget, and the cost so far."""
        budget = self._optimizer.budget
        count = f"{self.done} evaluations" if budget is None else f"{self.done}/{budget}"
        if budget is not None and self.done > budget:  # it was lowered
            count = f"{self.done} evaluations, budget {budget}"
        return count if self._fidelity is None else f"{count}, cost {cost_text(self.spent)}"

    @property
    def times(self) -> str:
        """The time so far, and the time left at this pace."""
        now = time.monotonic()
        left = "" if self._end is None else f", {clock(max(0.0, self._end - now))} left"
        return clock(now - self._begin) + left

    @property
    def evaluated(self) -> list[str]:
        """The running evaluations, and for how long they have run."""
        now, running = time.monotonic(), [*self.running.items(), *self.others.items()]
        lines = [f"trial {number}, {max(0.0, now - begin):.0f} s, {x}" for number, (begin, x) in running[:MOST_LISTED]]
        return lines + ([f"and {len(running) - MOST_LISTED} more"] if len(running) > MOST_LISTED else [])

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        budget, evaluated = self._optimizer.budget, self.evaluated
        head = Table.grid(padding=(0, 1), expand=True)
        head.add_column(no_wrap=True)
        head.add_column(ratio=1)
        head.add_column(no_wrap=True)
        head.add_row(self.count, "" if budget is None else ProgressBar(budget, self.done), self.times)
        body = Table.grid(padding=(0, 2), expand=True)
        body.add_column(width=len("missing"))
        body.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        rows = [(self.best_name, self.best), ("last", "  ".join(self.last)), ("missing", self.missing)]
        rows += list(zip(["now", *[""] * (len(evaluated) - 1)], evaluated, strict=True)) if evaluated else []
        for name, text in rows:
            if text:
                body.add_row(name, Text(text))
        return Group(head, body, *(Text(warning) for warning in self.warnings))

    @property
    def line(self) -> str:
        """Everything but the warnings, in one line."""
        parts = ((self.best_name, self.best), ("last", next(iter(self.last), "")), ("missing", self.missing))
        return "   ".join([self.count, self.times, *(f"{name} {text}" for name, text in parts if text)])


class ProgressLines:
    """Prints the progress as lines of text, and each warning once."""

    def __init__(self, state: ProgressState, console: Console) -> None:
        self._state, self._console = state, console
        self._begin = self._printed = time.monotonic()
        self._warned: set[str] = set()

    def update(self) -> None:
        """Print a line if it is due."""
        now = time.monotonic()
        if now - self._printed >= max(PERIOD, (now - self._begin) / SHARE):
            self.print()

    def print(self) -> None:
        """Print a line and the new warnings."""
        self._printed = time.monotonic()
        for text in (self._state.line, *(w for w in self._state.warnings if w not in self._warned)):
            self._console.print(text, soft_wrap=True, highlight=False, markup=False)
        self._warned.update(self._state.warnings)


class ProgressDisplay:
    """Call `begin` with each trial whose evaluation begins, and the object itself with each trial that has ended.

    Call `step` with each trial that has a new value on its way.
    """

    def __init__(self, state: ProgressState, lines: ProgressLines | None = None) -> None:
        self._state, self._lines = state, lines

    def begin(self, trial: Trial) -> None:
        """Note that the evaluation of a trial begins."""
        self._state.begin(trial)

    def step(self, trial: Trial) -> None:
        """Note that a trial has a new value on its way."""
        self._state.step(trial)
        if self._lines is not None:
            self._lines.update()

    def __call__(self, trial: Trial) -> None:
        """Note that a trial was told, stopped or failed."""
        self._state.end(trial)
        if self._lines is not None:
            self._lines.update()


@contextmanager
def live(optimizer: Optimizer) -> Iterator[ProgressDisplay]:
    """Show the progress of the run in the block on stderr.

    A terminal or a notebook is updated in place. Elsewhere a line is printed now and then, and one at the end. The
    warnings of the ledger come last.
    """
    try:
        import rich.console  # noqa: F401
        from rich.live import Live
    except ImportError as error:
        raise ImportError(f"the progress display needs rich: {install_command('cli')}") from error

    console = lasting_console(stderr=True)
    state = ProgressState(optimizer)
    if console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal):
        with Live(state, console=console, refresh_per_second=REFRESH):
            yield ProgressDisplay(state)
            state.close()
    else:
        lines = ProgressLines(state, console)
        yield ProgressDisplay(state, lines)
        state.close()
        lines.print()


@contextmanager
def counted(total: int, what: str) -> Iterator[Callable[[], None]]:
    """Show on stderr how much of some work is finished, and the time left, once it has taken two seconds.

    Call the function that it yields after each piece. A terminal has a bar, elsewhere a line is printed now and then.
    """
    try:
        import rich.console  # noqa: F401
    except ImportError as error:
        raise ImportError(f"the progress display needs rich: {install_command('cli')}") from error
    console = lasting_console(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal:
        bar = progress_bar(console)
        task = bar.add_task(what, total=total)
        timer = Timer(PATIENCE, bar.start)
        timer.daemon = True
        timer.start()
        try:
            yield lambda: bar.advance(task)
        finally:
            timer.cancel()
            timer.join()
            if bar.live.is_started:
                bar.stop()
        return
    begin = printed = time.monotonic()
    done = 0

    def advance() -> None:
        nonlocal done, printed
        done, now = done + 1, time.monotonic()
        if done < total and now - printed >= max(PERIOD, (now - begin) / SHARE):
            printed = now
            left = clock((now - begin) * (total - done) / done)
            console.print(f"{done}/{total} {what}, {clock(now - begin)}, {left} left", highlight=False)

    yield advance


def lasting_console(*, stderr: bool = False) -> Console:
    """Return a console that falls silent when its pipe closes (`gpmi demo | head -1`); rich would end the program."""
    from rich.console import Console

    class Lasting(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            with suppress(OSError):  # the rest of the buffer must not fail at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())

    return Lasting(stderr=stderr)


def progress_bar(console: Console) -> Progress:
    """Return a bar with the number of evaluations, the time elapsed and left, and a description."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        MofNCompleteColumn(),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=console,
        speed_estimate_period=120.0,
    )
