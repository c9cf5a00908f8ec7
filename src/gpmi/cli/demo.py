"""The demonstration: maximise the tilted Himmelblau function, or a tsunami simulator, and draw how it went."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpmi._support import checks
from gpmi._support.text import install_command
from gpmi.cli.demo_figure import NEAR, found_after, story
from gpmi.paper.tasks import HIMMELBLAU, Function
from gpmi.paper.tasks.shallow_water import require_anuga
from gpmi.paper.tasks.tsunami import SPACE, simulate
from gpmi.run.loop import maximize
from gpmi.run.result import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

HILLS = "A hilly function of two parameters: four peaks, one of them the highest."
ISLAND = "A simulation: how an island changes what a tsunami does to the beach behind it."
SUFFIXES = (".pdf", ".png", ".svg")


def demo(
    *, budget: int, seed: int, out: Path, console: Console, tsunami: bool = False, program: str = "gpmi"
) -> Result:
    """Run the demonstration, print the result on `console` and write the picture to `out`.

    Call `check` first: it refuses bad arguments before any time is spent. `program` is the command that calls gpmi.
    """
    with suppress(OSError):  # a full disk must not prevent the picture; the report fails on it anyway
        _print(console, f"{ISLAND if tsunami else HILLS} gpmi may evaluate it at {budget} points.\n")
    started, cpu = time.perf_counter(), time.process_time()
    if tsunami:
        result = maximize(amplification, dict(SPACE), budget=budget, seed=seed, progress=True)
    else:
        result = maximize(HIMMELBLAU.f, HIMMELBLAU.bounds, budget=budget, seed=seed, progress=True)
    elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
    if result.posterior is None:
        _print(console, "Interrupted before the first evaluation: there is nothing to show.")
        return result
    function = None if tsunami else HIMMELBLAU
    try:  # first, because printing fails if the pipe is closed or the disk is full
        story(result, function).savefig(out, dpi=150)
    finally:
        report(result, elapsed, cpu, console)
    _print(console, f"\n{ending(result, function)}\n{explanation(result)}\nPicture: {out}\n{next_steps(seed, program)}")
    return result


def amplification(point: Mapping[str, float]) -> float:
    """Simulate a tsunami, in about 20 s: the run-up behind an island, relative to that of the bare beach."""
    return simulate(*(point[name] for name in SPACE)).amplification


def check(*, budget: int, seed: int, out: Path, tsunami: bool = False) -> None:
    """Refuse bad arguments before any time is spent, by a ValueError or an ImportError that says what to install."""
    checks.whole("budget", budget, 1)
    checks.whole("seed", seed, 0, checks.LARGEST_SEED)
    named = f"out is {checks.shown(str(out))}"
    if out.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{named}; give a file that ends in {', '.join(SUFFIXES)}")
    try:
        with suppress(FileNotFoundError):  # a name that is too long raises another error
            out.stat()
            if out.is_dir() or not os.access(out, os.W_OK):
                raise ValueError(f"{named}, which cannot be overwritten; give another file")
    except OSError as error:
        raise ValueError(f"{named}, which cannot be written to ({error.strerror}); give another file") from error
    if not out.parent.is_dir():
        raise ValueError(f"{named}, but there is no folder {checks.shown(str(out.parent))}; create it first")
    checks.writable_folder("out", out, out.parent)
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"the picture needs matplotlib: {install_command('cli,plots')}") from error
    if tsunami:
        require_anuga()


def report(result: Result, elapsed: float, cpu: float, console: Console) -> None:
    """Print what was found, how far from the maximum it may be according to the model, and what it cost."""
    console.print()
    console.print(_table(result), highlight=False)
    console.print()
    if result.ledger is not None:
        for name, text in result.ledger.answer():
            _print(console, f"{name} {text}")
    _print(console, f"stopped: {result.reason}, after {len(result.trials)} evaluations")
    _print(console, f"time: {elapsed:.2f} s, {cpu:.2f} s of CPU")
    for event in result.events:
        _print(console, f"{event.kind}: {event.message}")


def ending(result: Result, function: Function | None) -> str:
    """Return the result in one sentence."""
    if function is None:
        return f"Found: an island that makes the run-up {result.y:.4g} times that of the bare beach."
    assert result.x is not None and result.y is not None
    best = f"{result.y:.5g} at ({', '.join(f'{value:.3f}' for value in result.x)})"
    after, count = found_after(result, function), len(result.trials)
    if after is None:
        return f"Not found: the best value is {best}, {function.maximum - result.y:.3g} below the maximum."
    return f"Found the maximum: {best}. Evaluation {after} of {count} was the first within {NEAR:g} of it."


def explanation(result: Result) -> str:
    """Explain in one sentence how the points were chosen."""
    first = sum(trial.origin != "policy" for trial in result.trials)
    rest = "then each where a model of all values so far expected the most, or knew too little"
    return f"What happened: {first} point{'s'[: first != 1]} spread out, {rest}."


def next_steps(seed: int, program: str) -> str:
    """Suggest in one line what to try next."""
    return (
        f"Next: {program} demo --seed {seed + 1}; your own program: {program} init; your own Python function: README.md"
    )


def _print(console: Console, text: str) -> None:
    """Print a text unchanged, whatever the width of the terminal."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


def _table(result: Result) -> Table:
    """Return a table of the best point, the recommended one and, if it is known, the maximum."""
    from rich.table import Table

    plain: dict[str, Any] = {"box": None, "pad_edge": False, "padding": (0, 3, 0, 0)}
    if isinstance(result.x, dict):
        assert isinstance(result.recommended, dict)
        table = Table("", "best point", "recommended", **plain)
        for name, value in result.x.items():
            table.add_row(name, f"{value:.4g}", f"{result.recommended[name]:.4g}")
        table.add_row("amplification", f"{result.y:.4g}", "")
        return table
    table = Table("", "x1", "x2", "f", "below the maximum", **plain)
    for name, x in (("best point", result.x), ("recommended", result.recommended), ("maximum", HIMMELBLAU.argmax)):
        assert x is not None
        gap = max(0.0, HIMMELBLAU.maximum - HIMMELBLAU.f(x))
        table.add_row(name, f"{x[0]:.4f}", f"{x[1]:.4f}", f"{HIMMELBLAU.f(x):.4f}", f"{gap:.3g}")
    return table
