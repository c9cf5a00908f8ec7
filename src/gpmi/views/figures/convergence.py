"""Which runs a figure of the convergence compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpmi.views.reading import view_of
from gpmi.views.run_view import OutputView, RunView


def groups_of(source: Any, output: str | None = None) -> dict[str, list[OutputView]]:
    """Return the runs to compare, by label. The source is a run, a list of runs, or a mapping from labels to either.

    In a run with goals the values are those of `output`, an objective. One with a target is the distance from it.
    """
    if isinstance(source, Mapping):
        named = {str(name): list(runs) if isinstance(runs, list | tuple) else [runs] for name, runs in source.items()}
    else:
        named = {"": list(source) if isinstance(source, list | tuple) else [source]}
    groups = {name: [_of_objective(view_of(run), output) for run in runs] for name, runs in named.items()}
    if not groups or not all(groups.values()):
        raise ValueError("source has no run; give a run, a list of runs, or a dict of them")
    if not any(run.told for runs in groups.values() for run in runs):
        raise ValueError("source has no observation, so there is nothing to draw; evaluate at least one point")
    if len({run.goal for runs in groups.values() for run in runs}) > 1:
        raise ValueError("source has runs that maximise and runs that minimise; draw them in two figures")
    return groups


def _of_objective(run: RunView, output: str | None) -> OutputView:
    """Return the view of one objective of a run with goals; by default of its only one."""
    return run.of_objective(run.checked_objective(output))
