"""Which runs a figure of the convergence compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpmi.views.run_view import RunView


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
