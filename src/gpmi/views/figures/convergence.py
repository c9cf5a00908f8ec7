"""How it went: the best value so far of one run, or of several runs with a median and a band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi._support.text import shortened
from gpmi._support.types import Array
from gpmi.trials import Trial
from gpmi.trials.costs import ENDED
from gpmi.trials.goals import Match
from gpmi.views.figures.axes import NAME, value_label
from gpmi.views.figures.style import BLACK, BLUE, GREY, VERMILION, without_math
from gpmi.views.front_view import title_of
from gpmi.views.run_view import RunView

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, in an order in which neighbours differ clearly.
COLOURS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", BLACK)
FEW_RUNS = 5  # with fewer runs the band covers all of them, otherwise the central 80 %; our choice


def groups_of(source: Any, output: str | None = None) -> dict[str, list[RunView]]:
    """Return the runs to compare, by label. The source is a run, a list of runs, or a mapping from labels to either.

    In a run with goals the values are those of `output`, an objective. One with a target is the distance from it.
    """
    if isinstance(source, Mapping):
        named = {str(name): list(runs) if isinstance(runs, list | tuple) else [runs] for name, runs in source.items()}
    else:
        named = {"": list(source) if isinstance(source, list | tuple) else [source]}
    found = {name: [_of_objective(RunView.of(run), output) for run in runs] for name, runs in named.items()}
    if not found or not all(found.values()):
        raise ValueError("source has no run; give a run, a list of runs, or a dict of them")
    if not any(run.told for runs in found.values() for run in runs):
        raise ValueError("source has no observation, so there is nothing to draw; evaluate at least one point")
    if len({run.goal for runs in found.values() for run in runs}) > 1:
        raise ValueError("source has runs that maximise and runs that minimise; draw them in two figures")
    return found


def _of_objective(run: RunView, output: str | None) -> RunView:
    """Return the view of one objective of a run with goals; by default of its only one."""
    if not run.goals.named:
        if output is not None:
            raise ValueError(f"output is {output!r}, but the run has no goals; leave out output")
        return run
    names = list(run.objectives)
    if output is None and len(names) > 1:
        several = f"output is None, but there are several objectives; give one of {', '.join(map(repr, names))}"
        raise ValueError(f"{several}, or draw plots.hypervolume(run)")
    name = names[0] if output is None else run.goals.checked_name(output)
    if name not in names:
        raise ValueError(f"output is {output!r}, which is no objective; give one of {', '.join(map(repr, names))}")
    if name != run.output and name not in run.output_names:
        return replace(run, trials=())
    return run.of_objective(name)


def best_so_far(run: RunView) -> Array:
    """Return the best feasible value after each evaluation, failures included, (n,); nan before the first value.

    Where there is a fidelity, it is the best one at the target; all measurements count as evaluations.
    """
    counts = {trial.number for trial in run.told if trial.feasible}
    values = [trial.y if trial.number in counts else None for trial in _evaluated(run)]
    sign = 1.0 if run.goal == "max" else -1.0
    best = np.maximum.accumulate([-np.inf if y is None else sign * y for y in values]) if values else np.empty(0)
    return np.where(np.isfinite(best), sign * best, np.nan)


def _evaluated(run: RunView) -> list[Trial]:
    """Return the evaluations, failures included, in the order in which they ended."""
    evaluated = [trial for trial in run.trials if trial.status in ENDED]
    return sorted(evaluated, key=lambda trial: trial.order or 0)


def draw_convergence(ax: Axes, groups: Mapping[str, Sequence[RunView]], optimum: float | None) -> None:
    """Draw the best value so far, or its distance from the optimum: a run as a line, several as a median and a band."""
    one = next(iter(groups.values()))[0]
    goal = one.goal
    for (name, runs), colour in zip(groups.items(), COLOURS * (1 + len(groups) // len(COLOURS)), strict=False):
        curves = [best_so_far(run) for run in runs]
        longest = max(len(curve) for curve in curves)
        table = np.stack([_extended(curve, longest) for curve in curves])
        table = table if optimum is None else np.abs(optimum - table)
        t = np.arange(1, longest + 1)
        label = without_math(name) + (f" ({len(runs)} runs)" if len(runs) > 1 else "")
        if len(runs) > 1:
            tails = [0.0, 0.5, 1.0] if len(runs) < FEW_RUNS else [0.1, 0.5, 0.9]
            low, middle, high = np.quantile(table, tails, axis=0)  # nan until all runs have a value
            ax.fill_between(t, low, high, step="post", color=colour, alpha=0.2, linewidth=0.0)
        else:
            (middle,) = table
            if len(groups) == 1 and optimum is None:
                told = runs[0].told
                at = np.arange(1, len(told) + 1)
                if runs[0].space.fidelity is not None:  # among evaluations that did not reach the target
                    place = {trial.number: i for i, trial in enumerate(_evaluated(runs[0]), 1)}
                    at = np.array([place[trial.number] for trial in told])
                ax.plot(at, [trial.y or 0.0 for trial in told], ".", color=GREY, markersize=4.0)
        ax.step(t, middle, where="post", color=colour, linewidth=1.6, label=label or "best so far")
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("evaluation")
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    target = one.objectives.get(one.output or "")
    name = (
        without_math(shortened(title_of(one.value_name, target), NAME))
        if isinstance(target, Match)
        else value_label(one)
    )
    ax.set_ylabel(f"{'largest' if goal == 'max' else 'smallest'} {name} so far" if optimum is None else "simple regret")
    drawn = [float(v) for curve in ax.get_lines() for v in np.atleast_1d(curve.get_ydata()) if np.isfinite(v)]
    if optimum is not None and min(drawn) > 0.0:
        ax.set_yscale("log")
    if any(groups):
        ax.legend(loc="best")
    ax.grid(True)


def _extended(curve: Array, length: int) -> Array:
    """Extend a run that ended early by its best value."""
    return np.concatenate([curve, np.full(length - len(curve), curve[-1] if len(curve) else np.nan)])
