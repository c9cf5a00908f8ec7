"""Read a run for figures and reports: the one place that asks what kind of run it is."""

from __future__ import annotations

from typing import Any

from gpmi._support.text import without_password
from gpmi.trials import Goals
from gpmi.views.front_run import FrontView
from gpmi.views.run_view import OutputView, RunView, ValueView


def view_of(source: Any) -> RunView:
    """Read a Result, an Optimizer or a Study. Raise a TypeError for anything else."""
    if isinstance(source, RunView):
        return source
    try:
        kind = _kind_of(source.goals)
        shared: dict[str, Any] = {
            "trials": tuple(source.trials),
            "goals": source.goals,
            "space": source.space,
            "seed": source.seed,
        }
        ledger, analysis, failure = kind.read(source)
        events = (*source.events, *failure)
    except AttributeError:
        raise TypeError(f"source is {source!r}; give a Result, an Optimizer or a Study") from None
    name = getattr(source, "name", None)
    return kind(
        **shared,
        **kind.own_fields(source.goals),
        ledger=ledger,
        analysis=analysis,
        events=events,
        reason=getattr(source, "reason", None),
        budget=getattr(source, "budget", None),
        identity=getattr(source, "identity", None),
        name=None if name is None else without_password(str(name)),
        earlier=tuple(map(str, getattr(source, "earlier", ()))),
    )


def _kind_of(goals: Goals) -> type[RunView]:
    """Return the kind of view that shows a run with these goals."""
    if not goals.named:
        return ValueView
    return FrontView if goals.single is None else OutputView
