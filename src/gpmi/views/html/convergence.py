"""How the run went: the values, the best so far, and the interval of the regret."""

from __future__ import annotations

from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.views.html.markup import Markup, tag
from gpmi.views.html.svg import drawn
from gpmi.views.pictures.convergence import hypervolume, regret, values
from gpmi.views.run_view import RunView


def convergence(run: RunView) -> Markup | None:
    """Return the values in their order, and how far the recommended point may be from the optimum after each.

    With several objectives it is the hypervolume of the front, and the values of each output.
    """
    if not run.told:
        return None
    if run.has_front:
        views = [run.of_objective(name) if name in run.objectives else run.of_output(name) for name in run.output_names]
        several = run.front_ledger is not None and len(run.objectives) > 1
        volume = _hypervolume(run, run.front_ledger) if several and run.front_ledger is not None else None
        return tag("div", volume, [drawn(values(view)) for view in views], class_="figures large")
    return tag("div", drawn(values(run)), _regret(run), class_="figures large")


def progress(run: RunView) -> Markup | None:
    """Return the values in their order alone, of each output."""
    if not run.told:
        return None
    views = [run]
    if run.has_front:
        views = [run.of_objective(name) if name in run.objectives else run.of_output(name) for name in run.output_names]
    return tag("div", [drawn(values(view)) for view in views], class_="figures large")


def _hypervolume(run: RunView, ledger: FrontLedger) -> Markup:
    """Return the hypervolume after each trial with all objectives, or why it is not known."""
    if ledger.reference is None or not ledger.n:
        text = "How much the front covers is not known yet"
        return tag(
            "p", f"{text}: it takes {ledger.needed} trials with all objectives to say, and there are {ledger.n}."
        )
    return drawn(hypervolume(ledger, list(run.objectives)))


def _regret(run: RunView) -> Markup:
    """Return the interval of the simple regret at some moments of the run."""
    history = run.regret_history
    if history is None:
        return tag("p", "How far the recommended point may be from the optimum is not known yet.")
    return drawn(regret(run, history))
