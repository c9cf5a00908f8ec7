"""A run while it goes on: a display on a terminal, plain lines elsewhere.

It shows how many evaluations are done and the time left, the best and the last values, the interval of the regret, the
warnings of the ledger, and what is being evaluated.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gpmi._support.text import clock, install_command, point
from gpmi.analysis.ledger import warning_events
from gpmi.optimizer import Optimizer
from gpmi.trials import Trial

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.progress import Progress

# Our choices, not tuned.
RUNNING = 8  # evaluations that are listed, at most
LAST = 5  # values that are listed
POINT = 80  # characters of a point, at most
SHARE = 20.0  # the regret is drawn again after so many times what that took the last time: a twentieth of the time
SOON = 20.0  # seconds after which it is drawn for the first time
LINES = 10.0  # seconds between two plain lines, at least; and a twentieth of the time so far: a long log stays short
REFRESH = 4  # times a second that a terminal is written to


class Account:
    """What is known of a run that goes on. Reading it changes no suggestion."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._begin = self._looked = time.monotonic()
        self._cost = SOON / SHARE  # of the last look at the regret, in seconds
        self._earlier = self.done = self._optimizer.evaluated
        self._end: float | None = None  # when the budget will be spent, if it goes on like this
        self.running: dict[int, tuple[float, str]] = {}  # since when, and the point
        self.elsewhere: dict[int, tuple[float, str]] = {}
        self.last: deque[str] = deque(maxlen=LAST)
        self.best, self.regret = "", ""
        self.warnings: tuple[str, ...] = ()
        self._look_at(optimizer.best)

    def begin(self, trial: Trial) -> None:
        """The evaluation of a trial begins."""
        self.running[trial.number] = time.monotonic(), point(trial.x, POINT)
        self._look_around()

    def end(self, trial: Trial) -> None:
        """A trial was told or failed. O(n), and now and then the regret."""
        now, budget, best = time.monotonic(), self._optimizer.budget, self._optimizer.best
        self.running.pop(trial.number, None)
        self._look_around()
        self.done = self._optimizer.evaluated
        self.last.appendleft(trial.status if trial.y is None else f"{trial.y:.5g}")
        self._look_at(best)
        if budget is not None and self.done > self._earlier:
            each = (now - self._begin) / (self.done - self._earlier)
            self._end = now + each * max(0, budget - self.done)
        if now - self._looked > SHARE * self._cost:
            self._look()

    def close(self) -> None:
        """The run is over: nothing runs, no time is left, and what the ledger warns of is that of the end."""
        self.running, self.elsewhere = {}, {}
        self._end = None
        with suppress(Exception):
            self._warn()

    def _look_at(self, best: Trial | None) -> None:
        if best is not None:
            self.best = f"{best.y:.6g} at {point(best.x, POINT)}"

    def _look_around(self) -> None:
        """Note what other processes evaluate of a study. Here, not while it is drawn: asking holds the optimizer."""
        now, clock_time = time.monotonic(), time.time()
        self.elsewhere = {
            trial.number: (now - clock_time + (trial.asked or clock_time), f"elsewhere, {point(trial.x, POINT)}")
            for trial in self._optimizer.pending
            if trial.number not in self.running
        }

    def _look(self) -> None:
        """Draw the regret, which takes a moment."""
        begin = time.monotonic()
        with suppress(Exception):  # a model that fails here fails again where the result is made, and is an event
            ledger = self._optimizer.ledger
            regret = ledger.regret()
            if regret.known:
                low, high = regret.interval()
                self.regret = f"{low:.3g} to {high:.3g} (95 %, after {ledger.n} values)"
            self._warn()
        self._looked = time.monotonic()
        self._cost = self._looked - begin

    def _warn(self) -> None:
        """Ask the ledger whether its interval can be trusted, and whether the run repeats itself for nothing."""
        ledger = self._optimizer.ledger
        doubt = ledger.calibration
        trusted = doubt.verdict != "over-confident"
        found = [] if trusted else [f"over-confident: {doubt.reason}; the regret may be larger than the model says"]
        self.warnings = (*found, *(f"{event.kind}: {event.message}" for event in warning_events(ledger)))

    @property
    def count(self) -> str:
        """The evaluations done, and how many there may be."""
        budget = self._optimizer.budget
        return f"{self.done} evaluations" if budget is None else f"{self.done}/{budget}"

    @property
    def times(self) -> str:
        """The time so far, and the time left if it goes on like this."""
        now = time.monotonic()
        left = "" if self._end is None else f", {clock(max(0.0, self._end - now))} left"
        return clock(now - self._begin) + left

    @property
    def evaluated(self) -> list[str]:
        """What is being evaluated, and for how long."""
        now, running = time.monotonic(), [*self.running.items(), *self.elsewhere.items()]
        lines = [f"trial {number}, {max(0.0, now - begin):.0f} s, {x}" for number, (begin, x) in running[:RUNNING]]
        return lines + ([f"and {len(running) - RUNNING} more"] if len(running) > RUNNING else [])

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
        body.add_column(width=len("regret"))
        body.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        rows = [("best", self.best), ("last", "  ".join(self.last)), ("regret", self.regret)]
        rows += list(zip(["now", *[""] * (len(evaluated) - 1)], evaluated, strict=True)) if evaluated else []
        for name, words in rows:
            if words:
                body.add_row(name, Text(words))
        return Group(head, body, *(Text(warning) for warning in self.warnings))

    @property
    def line(self) -> str:
        """All but the warnings, in one line."""
        parts = (("best", self.best), ("last", next(iter(self.last), "")), ("regret", self.regret))
        return "   ".join([self.count, self.times, *(f"{name} {words}" for name, words in parts if words)])


class Lines:
    """The account of a run as lines of text, and each warning once."""

    def __init__(self, account: Account, console: Console) -> None:
        self._account, self._console = account, console
        self._begin = self._printed = time.monotonic()
        self._said: set[str] = set()

    def update(self) -> None:
        """Print a line if it is time for one."""
        now = time.monotonic()
        if now - self._printed >= max(LINES, (now - self._begin) / SHARE):
            self.print()

    def print(self) -> None:
        """Print a line, and what is new to be warned of."""
        self._printed = time.monotonic()
        for words in (self._account.line, *(w for w in self._account.warnings if w not in self._said)):
            self._console.print(words, soft_wrap=True, highlight=False, markup=False)
        self._said.update(self._account.warnings)


class Display:
    """Call `begin` with each trial whose evaluation begins, the display itself with each that was told or failed."""

    def __init__(self, account: Account, lines: Lines | None = None) -> None:
        self._account, self._lines = account, lines

    def begin(self, trial: Trial) -> None:
        """The evaluation of a trial begins."""
        self._account.begin(trial)

    def __call__(self, trial: Trial) -> None:
        """A trial was told or failed."""
        self._account.end(trial)
        if self._lines is not None:
            self._lines.update()


@contextmanager
def live(optimizer: Optimizer) -> Iterator[Display]:
    """Show on stderr how the run in the block goes on.

    A terminal or a notebook is updated in place. Elsewhere a line is printed now and then, and one at the end. What the
    ledger warns of stands last.
    """
    try:
        import rich.console  # noqa: F401
        from rich.live import Live
    except ImportError as error:
        raise ImportError(f"the progress display needs rich: {install_command('cli')}") from error

    console = lasting_console(stderr=True)
    account = Account(optimizer)
    if console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal):
        with Live(account, console=console, refresh_per_second=REFRESH):
            yield Display(account)
            account.close()
    else:
        lines = Lines(account, console)
        yield Display(account, lines)
        account.close()
        lines.print()


def lasting_console(*, stderr: bool = False) -> Console:
    """A console that falls silent when its pipe is closed (`gpmi demo | head -1`), where rich would end the program."""
    from rich.console import Console

    class Lasting(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            with suppress(OSError):  # what is left in the buffer must not fail when the program ends
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())

    return Lasting(stderr=stderr)


def progress_bar(console: Console) -> Progress:
    """A bar with the number of evaluations done and in all, the time elapsed and left, and a description."""
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
