"""How the run went: the values, the best so far, and the interval of the regret."""

from __future__ import annotations

from gpmi.analysis import FrontLedger
from gpmi.views.html.markup import Markup, tag
from gpmi.views.html.svg import drawn
from gpmi.views.pictures.convergence import hypervolume, regret, values
from gpmi.views.run_view import OutputView, RunView


def convergence(run: RunView) -> Markup | None:
    """Return the values in their order, and how far the recommended point may be from the optimum after each.

    With several objectives it is the hypervolume of the front, and the values of each output.
    """
    if not run.told:
        return None
    volumes, regrets = map(_hypervolume, run.hypervolumes), map(_regret, run.regret_views)
    return tag("div", *volumes, *(drawn(values(view)) for view in run.series), *regrets, class_="figures large")


def progress(run: RunView) -> Markup | None:
    """Return the values in their order alone, of each output."""
    if not run.told:
        return None
    return tag("div", *(drawn(values(view)) for view in run.series), class_="figures large")


def _hypervolume(ledger: FrontLedger) -> Markup:
    """Return the hypervolume after each trial with all objectives, or why it is not known."""
    if ledger.reference is None or not ledger.n:
        text = "How much the front covers is not known yet"
        return tag(
            "p", f"{text}: it takes {ledger.needed} trials with all objectives to say, and there are {ledger.n}."
        )
    return drawn(hypervolume(ledger))


def _regret(run: OutputView) -> Markup:
    """Return the interval of the simple regret at some moments of the run."""
    history = run.regret_history
    if history is None:
        return tag("p", "How far the recommended point may be from the optimum is not known yet.")
    return drawn(regret(run, history))
