"""A live display of a run: evaluations done, time left, and the best value so far."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gpmi.ledger import alarms
from gpmi.optimizer import Optimizer
from gpmi.trials import Trial

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


@contextmanager
def live(optimizer: Optimizer) -> Iterator[Callable[[Trial], None]]:
    """Show a progress bar on stderr while the block runs.

    The context gives a function; call it with each trial that was told or failed. A lock-in is the last line.

    On a terminal the display is updated in place. Elsewhere its last state is printed once, at the end.
    """
    try:
        from rich.console import Group
        from rich.live import Live
        from rich.text import Text
    except ImportError as error:
        raise ImportError('the progress display needs rich: pip install "gpmi[cli]"') from error

    console = lasting_console(stderr=True)
    bar = progress_bar(console)
    done = sum(trial.status != "pending" for trial in optimizer.trials)
    task = bar.add_task("", total=optimizer.budget, completed=done)
    found = Text()

    def report(trial: Trial) -> None:
        bar.advance(task)
        found.plain = describe(optimizer, trial)

    try:
        with Live(Group(bar, found), console=console, refresh_per_second=10):
            yield report
            with suppress(Exception):  # a model that fails here fails again where the result is made, and is an event
                for event in alarms(optimizer.ledger):
                    found.append(f"\n{event.kind}: {event.message}")
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
