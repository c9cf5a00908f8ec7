"""The demonstration: optimise a function of two parameters, a reaction or a training, and draw how it went."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from gpmi._support import checks, folders
from gpmi._support.text import install_command
from gpmi.cli.demo_figure import NEAR, found_after, picture_of_curves, picture_of_front, story
from gpmi.cli.demo_function import HIMMELBLAU
from gpmi.run import Result, maximize, optimize
from gpmi.space import Fidelity, Real
from gpmi.trials import Max, Min

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table

Kind: TypeAlias = Literal["hills", "noise", "objectives", "curves"]

HILLS = "A hilly function of two parameters: four peaks, one of them the highest."
NOISE, EPOCHS = 5.0, 27  # the sd of the noise, and the steps of a training
WORDS: dict[Kind, str] = {
    "hills": f"{HILLS} gpmi may evaluate it at {{}} points.",
    "noise": f"{HILLS} Each value is wrong by about {NOISE:g}. gpmi may evaluate it at {{}} points.",
    "objectives": "A reaction: a high yield for little money, which do not go together. gpmi may run it {} times.",
    "curves": f"A training of {EPOCHS} epochs, with two parameters. gpmi may spend the epochs of {{}} trainings.",
}
BUDGETS: dict[Kind, int] = {"hills": 60, "noise": 60, "objectives": 30, "curves": 20}
SUFFIXES = (".pdf", ".png", ".svg")


def demo(*, kind: Kind, budget: int, seed: int, out: Path, console: Console, program: str = "gpmi") -> Result:
    """Run the demonstration, print the result on `console` and write the picture to `out`.

    Call `check` first: it refuses bad arguments before any time is spent. `program` is the command that calls gpmi.
    """
    with suppress(OSError):  # a full disk must not prevent the picture; the report fails on it anyway
        _print(console, f"{WORDS[kind].format(budget)}\n")
    started, cpu = time.perf_counter(), time.process_time()
    result = _run(kind, budget, seed)
    elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
    if not any(trial.status == "told" for trial in result.trials):
        _print(console, "Interrupted before the first evaluation: there is nothing to show.")
        return result
    try:  # first, because printing fails if the pipe is closed or the disk is full
        _picture(kind, result).savefig(out, dpi=150)
    finally:
        report(kind, result, elapsed, cpu, console)
    last = [*ending(kind, result), f"Picture: {out}", next_steps(kind, seed, program)]
    _print(console, "\n" + "\n".join(last))
    return result


def _run(kind: Kind, budget: int, seed: int) -> Result:
    if kind == "objectives":
        goals = {"yield": Max(at_least=20), "cost": Min(at_most=14)}
        return optimize(Reaction(seed), dict(RECIPE), goals=goals, budget=budget, seed=seed, progress=True)
    if kind == "curves":
        space = {"x1": (-5.0, 5.0), "x2": (-5.0, 5.0), "epoch": Fidelity(1, EPOCHS)}
        return maximize(training, space, cost=EPOCHS * budget, seed=seed, progress=True)
    f = noisy(seed) if kind == "noise" else HIMMELBLAU.f
    return maximize(f, HIMMELBLAU.bounds, budget=budget, seed=seed, progress=True)


def _picture(kind: Kind, result: Result) -> Figure:
    if kind == "objectives":
        return picture_of_front(result)
    if kind == "curves":
        return picture_of_curves(result)
    return story(result, HIMMELBLAU)


# Functions


def noisy(seed: int) -> Callable[[Any], float]:
    """Return the hilly function with noise."""
    rng = np.random.default_rng([seed, 1])
    return lambda x: HIMMELBLAU.f(x) + NOISE * float(rng.standard_normal())


RECIPE = {"temperature": Real(30, 110, unit="°C"), "hours": Real(0.5, 10.0, unit="h")}


class Reaction:
    """A made-up reaction: a yield in %, and a cost, both measured with an error."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 2])

    def __call__(self, point: Mapping[str, float]) -> dict[str, float]:
        warm, hours = point["temperature"], point["hours"]
        percent = 92.0 * math.exp(-(((warm - 85.0) / 40.0) ** 2)) * (1.0 - math.exp(-0.5 * hours)) - 1.2 * hours
        price = 3.0 + 0.6 * hours + 0.06 * (warm - 20.0) + 0.0006 * (warm - 60.0) ** 2
        error = self._rng.standard_normal(2)
        return {"yield": percent + 0.5 * float(error[0]), "cost": price + 0.1 * float(error[1])}


def training(point: Mapping[str, float]) -> Iterator[tuple[int, float]]:
    """Yield the value of a made-up training after each epoch: it approaches the hilly function from below."""
    end = HIMMELBLAU.f([point["x1"], point["x2"]])
    for epoch in range(1, EPOCHS + 1):
        yield epoch, end - 80.0 * math.exp(-epoch / 6.0)


def check(*, budget: int, seed: int, out: Path) -> None:
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
    folders.writable_folder("out", out, out.parent)
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"the picture needs matplotlib: {install_command('cli,plots')}") from error


# Text


def report(kind: Kind, result: Result, elapsed: float, cpu: float, console: Console) -> None:
    """Print what was found, how far from the maximum it may be according to the model, and what it cost."""
    console.print()
    console.print(str(result) if kind in ("objectives", "curves") else _table(result), highlight=False)
    console.print()
    if result.ledger is not None:
        for name, text in result.ledger.answer():
            _print(console, f"{name} {text}")
    _print(console, f"stopped: {result.reason}, after {len(result.trials)} evaluations")
    _print(console, f"time: {elapsed:.2f} s, {cpu:.2f} s of CPU")
    for event in result.events:
        _print(console, f"{event.kind}: {event.message}")


def ending(kind: Kind, result: Result) -> list[str]:
    """Return the result in one sentence, and what happened in another."""
    first = sum(trial.origin != "policy" for trial in result.trials)
    spread = f"What happened: {first} point{'s'[: first != 1]} spread out, then each"
    if kind == "objectives":
        return [
            f"Found: {len(result.front)} recipes that no other beats in both.",
            f"{spread} where the front may grow.",
        ]
    if kind == "curves":
        stopped = sum(trial.status == "stopped" for trial in result.trials)
        assert result.y is not None
        return [
            f"Found: {result.y:.5g}, {max(0.0, HIMMELBLAU.maximum - result.y):.3g} below the best possible value.",
            f"What happened: {stopped} of {len(result.trials)} trainings were stopped, because they would hardly win.",
        ]
    return [
        _found_peak(kind, result),
        f"{spread} where a model of all values so far expected the most, or knew too little.",
    ]


def _found_peak(kind: Kind, result: Result) -> str:
    assert result.x is not None and result.y is not None and result.recommended is not None
    if kind == "noise":
        true, place = HIMMELBLAU.f(result.recommended), ", ".join(f"{value:.3f}" for value in result.recommended)
        below = HIMMELBLAU.maximum - true
        return f"Recommended: ({place}), where the value without noise is {true:.4g}, {below:.3g} below the maximum."
    best = f"{result.y:.5g} at ({', '.join(f'{value:.3f}' for value in result.x)})"
    after, count = found_after(result, HIMMELBLAU), len(result.trials)
    if after is None:
        return f"Not found: the best value is {best}, {HIMMELBLAU.maximum - result.y:.3g} below the maximum."
    return f"Found the maximum: {best}. Evaluation {after} of {count} was the first within {NEAR:g} of it."


def next_steps(kind: Kind, seed: int, program: str) -> str:
    """Suggest in one line what to try next."""
    other = f"--seed {seed + 1}" if kind == "hills" else f"--{kind} --seed {seed + 1}"
    options = " (or --noise, --objectives, --curves)" if kind == "hills" else ""
    return (
        f"Next: {program} demo {other}{options}; your own program: {program} init; your own Python function: README.md"
    )


def _print(console: Console, text: str) -> None:
    """Print a text unchanged, whatever the width of the terminal."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


def _table(result: Result) -> Table:
    """Return a table of the best point, the recommended one and the maximum."""
    from rich.table import Table

    table = Table("", "x1", "x2", "f", "below the maximum", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name, x in (("best point", result.x), ("recommended", result.recommended), ("maximum", HIMMELBLAU.argmax)):
        assert x is not None
        gap = max(0.0, HIMMELBLAU.maximum - HIMMELBLAU.f(x))
        table.add_row(name, f"{x[0]:.4f}", f"{x[1]:.4f}", f"{HIMMELBLAU.f(x):.4f}", f"{gap:.3g}")
    return table
