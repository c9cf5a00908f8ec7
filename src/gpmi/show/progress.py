"""A live display of a run: evaluations done, time left, and the best value so far."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gpmi.ledger import alarms
from gpmi.optimizer import Optimizer
from gpmi.text import install, point
from gpmi.trials import Trial

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.progress import Progress

# Our choices, not tuned.
RUNNING = 8  # evaluations that are listed, at most
POINT = 80  # characters of a point in that list, at most
SHARE = 20.0  # the regret is drawn again after so many times what that took the last time: a twentieth of the time
SOON = 20.0  # seconds after which it is drawn for the first time


class Display:
    """What is shown of a run: the bar, the best value, the regret, and what is being evaluated for how long."""

    def __init__(self, optimizer: Optimizer, bar: Progress, *, terminal: bool) -> None:
        self._optimizer, self._bar, self._terminal = optimizer, bar, terminal
        self._task = bar.add_task("", total=optimizer.budget, completed=self._done())
        self._running: dict[int, tuple[float, str]] = {}
        self._elsewhere: list[tuple[int, tuple[float, str]]] = []
        self._found, self._regret, self._last = "", "", ""
        self._looked, self._cost = time.monotonic(), SOON / SHARE  # of the last look at the regret

    def begin(self, trial: Trial) -> None:
        """The evaluation of a trial begins."""
        self._running[trial.number] = time.monotonic(), point(trial.x, POINT)
        self._look_around()

    def __call__(self, trial: Trial) -> None:
        """A trial was told or failed."""
        self._running.pop(trial.number, None)
        self._look_around()
        self._bar.update(self._task, completed=self._done())
        self._found = describe(self._optimizer, trial)
        if self._terminal and time.monotonic() - self._looked > SHARE * self._cost:
            self._look()

    def _look_around(self) -> None:
        """Note what other processes evaluate of a study. Here, not while it is drawn: asking holds the optimizer."""
        ahead = time.monotonic() - time.time()
        self._elsewhere = [
            (trial.number, ((trial.asked or time.time()) + ahead, f"elsewhere, {point(trial.x, POINT)}"))
            for trial in self._optimizer.pending
            if trial.number not in self._running
        ]

    def _done(self) -> int:
        """How many outcomes there are, those that other processes told of a study included. O(n)."""
        return sum(trial.status in ("told", "failed") for trial in self._optimizer.trials)

    def _look(self) -> None:
        """Draw the regret, which takes a moment and changes no suggestion."""
        begin = time.monotonic()
        with suppress(Exception):  # a model that fails here fails again where the result is made, and is an event
            low, high = self._optimizer.ledger.regret().interval()
            n = len(self._optimizer.ledger.trials)
            self._regret = f"regret {low:.3g} to {high:.3g} with probability 95 %, after {n} values"
        self._looked = time.monotonic()
        self._cost = self._looked - begin

    def close(self) -> None:
        """The run is over: a lock-in is the last line."""
        self._running.clear()
        self._elsewhere.clear()
        with suppress(Exception):
            self._last = "\n".join(f"{event.kind}: {event.message}" for event in alarms(self._optimizer.ledger))

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        now, running = time.monotonic(), [*self._running.items(), *self._elsewhere]
        lines = [f"trial {number}, {max(now - begin, 0.0):.0f} s, {x}" for number, (begin, x) in running[:RUNNING]]
        lines += [f"and {len(running) - RUNNING} more"] if len(running) > RUNNING else []
        texts = [self._found, self._regret, *lines, self._last]
        return Group(self._bar, Text("\n".join(text for text in texts if text)))


@contextmanager
def live(optimizer: Optimizer) -> Iterator[Display]:
    """Show a progress bar on stderr while the block runs.

    The context gives a display; call its `begin` with each trial whose evaluation begins, and call the display itself
    with each trial that was told or failed. A lock-in is the last line.

    On a terminal the display is updated in place. Elsewhere its last state is printed once, at the end.
    """
    try:
        import rich.console  # noqa: F401
        from rich.live import Live
    except ImportError as error:
        raise ImportError(f"the progress display needs rich: {install('cli')}") from error

    console = lasting_console(stderr=True)
    display = Display(optimizer, progress_bar(console), terminal=console.is_terminal)
    try:
        with Live(display, console=console, refresh_per_second=10):
            yield display
            display.close()
    finally:
        if not (console.is_terminal or console.is_jupyter):
            console.line()  # here the display does not end its last line


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


def describe(optimizer: Optimizer, trial: Trial) -> str:
    """The best value so far, the value of this trial, and what phi and gamma_hat were when it was chosen."""
    best = optimizer.best
    numbers = {
        "best": None if best is None else best.y,
        "last": trial.y,
        "phi": trial.phi,
        "gamma_hat": trial.gamma_hat,
    }
    return "   ".join(f"{name} {value:.5g}" for name, value in numbers.items() if value is not None)
