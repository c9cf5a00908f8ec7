"""The demonstration: find the maximum of the tilted Himmelblau function, and draw how it was found."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpmi.run import Result, maximize
from gpmi.tasks import HIMMELBLAU

if TYPE_CHECKING:
    from rich.console import Console

SUFFIXES = (".pdf", ".png", ".svg")


def demo(*, budget: int, seed: int, out: Path, console: Console) -> Result:
    """Run the demonstration, print what it found on `console` and write the picture to `out`; `check` comes first."""
    from gpmi import plots

    started, cpu = time.perf_counter(), time.process_time()
    result = maximize(HIMMELBLAU.f, HIMMELBLAU.bounds, budget=budget, seed=seed, progress=True)
    elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
    if result.posterior is None:
        console.print("Interrupted before the first evaluation: there is nothing to show.")
        return result
    report(result, elapsed, cpu, console)
    plots.run(result, HIMMELBLAU.f).savefig(out, dpi=150)
    console.print(f"picture: {out}", soft_wrap=True, highlight=False, markup=False)
    return result


def check(*, budget: int, seed: int, out: Path) -> None:
    """Refuse what could not work, before any time is spent: a ValueError, or an ImportError without matplotlib."""
    if budget < 1:
        raise ValueError(f"budget is {budget}; give at least 1 evaluation")
    if seed < 0:
        raise ValueError(f"seed is {seed}; give a whole number of at least 0")
    if out.suffix.lower() not in SUFFIXES:
        raise ValueError(f"out is {str(out)!r}; give a file that ends in {', '.join(SUFFIXES)}")
    if not out.parent.is_dir():
        raise ValueError(f"out is {str(out)!r}, but there is no folder {str(out.parent)!r}; make it first")
    if out.is_dir() or (out.exists() and not os.access(out, os.W_OK)):
        raise ValueError(f"out is {str(out)!r}, which cannot be overwritten; give another file")
    try:
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"out is {str(out)!r}, but {str(out.parent)!r} cannot be written to ({reason})") from error
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError('the picture needs matplotlib: pip install "gpmi[cli,plots]"') from error


def report(result: Result, elapsed: float, cpu: float, console: Console) -> None:
    """Print what was found and what it cost."""
    from rich.table import Table

    table = Table("", "x1", "x2", "f", "below the maximum", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name, x in (("best point", result.x), ("recommended", result.recommended), ("maximum", HIMMELBLAU.argmax)):
        assert x is not None
        gap = max(0.0, HIMMELBLAU.maximum - HIMMELBLAU.f(x))
        table.add_row(name, f"{x[0]:.4f}", f"{x[1]:.4f}", f"{HIMMELBLAU.f(x):.4f}", f"{gap:.3g}")
    console.print()
    console.print(table, highlight=False)
    console.print(f"\nstopped: {result.reason}, after {len(result.trials)} evaluations", highlight=False)
    if result.ledger is not None:
        low, high = result.ledger.regret().interval()
        console.print(f"regret: {low:.3g} to {high:.3g} with probability 95 %, says the model", highlight=False)
    console.print(f"time: {elapsed:.2f} s, {cpu:.2f} s of CPU", highlight=False)
    for event in result.events:
        console.print(f"{event.kind}: {event.message}", soft_wrap=True, highlight=False, markup=False)
