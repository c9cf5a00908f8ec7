"""The front of several objectives, and its hypervolume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpmi._support.text import rough
from gpmi.trials.goal_summary import at_target
from gpmi.views.figures.drawing import draw
from gpmi.views.figures.style import legend_above
from gpmi.views.front_run import FrontView
from gpmi.views.front_view import complete
from gpmi.views.pictures.convergence import hypervolume
from gpmi.views.pictures.front import front_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_front(ax: Axes, run: FrontView, pair: tuple[str, str]) -> None:
    """Draw two objectives of all trials, and where the front of the two lies with probability 90 %."""
    trials = complete(at_target(run.trials, run.space), run.goals)
    middle = None if run.compromise is None else run.compromise.number
    draw(ax, front_of(run.goals, pair, trials, run.front_numbers, run.front_bands(*pair), middle))


def draw_hypervolume(ax: Axes, run: FrontView, *, legend: bool = True) -> None:
    """Draw the hypervolume after each trial with all objectives, and how much is still to be had."""
    ledger = run.ledger
    assert ledger is not None
    draw(ax, hypervolume(ledger))
    of = "the possible hypervolume" if legend else "it"
    share = f"At most {rough(100.0 * ledger.missing.share()[1], 2)} % of {of} is missing"
    ax.set_title(share if ledger.missing.known else "What is missing is not known yet", pad=20.0 if legend else None)
    if legend:
        legend_above(ax)
