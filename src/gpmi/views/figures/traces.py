"""A run value by value: its best value, phi and gamma_hat, and the panels of its ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi.views.figures.drawing import draw
from gpmi.views.figures.style import AREAS, BLUE, GREY, add_legend, legend_above
from gpmi.views.model_view import WIDE_RANGE
from gpmi.views.pictures.convergence import regret, values
from gpmi.views.run_view import OutputView

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_traces(panels: list[Axes], run: OutputView) -> None:
    """Draw the best value, phi_t(x_t) (the deviation, for a policy without phi) and gamma_hat at each evaluation."""
    chosen = [(t, trial) for t, trial in run.numbered if trial.origin == "policy"]
    phi = [(t, trial.phi) for t, trial in chosen if trial.phi is not None]
    sd = [(t, trial.sd) for t, trial in chosen if trial.sd is not None]
    gamma_hat = [(t, trial.gamma_hat) for t, trial in chosen if trial.gamma_hat is not None]
    best, bonus, paid = panels
    first = chosen[0][0] if chosen else len(run.ended) + 1
    draw(best, values(run))
    legend_above(best)
    for ax in (bonus, paid):
        label_t(ax, "evaluation", len(run.ended))
        if first > 1:
            ax.axvspan(0.5, first - 0.5, linewidth=0.0, zorder=0, **AREAS["design"])
    if phi:
        _draw_trace(bonus, phi, r"Bonus at the query $\phi_t(x_t)$")
        _log_if_wide(bonus, [value for _, value in phi])
    else:
        _draw_trace(bonus, sd, r"Deviation at the query $\sigma_t(x_t)$")
        _log_if_wide(bonus, [value for _, value in sd])
    _draw_trace(paid, gamma_hat, r"Variance paid for before $t$, $\hat\gamma_{t-1}$")


def draw_ledger(panels: list[Axes], run: OutputView) -> None:
    """Draw the simple regret's interval, the information and phi_t(x_t) after each value."""
    assert run.ledger is not None
    gap, information, bonus = panels
    for ax in panels:
        label_t(ax, "values told $t$", run.ledger.n)
    _draw_regret(gap, run)
    steps = run.ledger.steps
    gained = [(step.t, step.information) for step in steps if step.information is not None]
    gathered = [(t, float(total)) for (t, _), total in zip(gained, np.cumsum([i for _, i in gained]), strict=True)]
    _draw_trace(information, [(t, total) for t, total in gathered if np.isfinite(total)], "Information, nats")
    phi = [(step.t, step.phi) for step in steps if step.phi is not None]
    _draw_trace(bonus, phi, r"Bonus $\phi_t(x_t)$ ($\circ$ exploited)" if phi else r"The policy has no $\phi$")
    _log_if_wide(bonus, [value for _, value in phi])
    exploited = [(step.t, step.phi) for step in steps if step.phi is not None and step.choice == "exploited"]
    hollow: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": BLUE, "markersize": 4.0}
    bonus.plot([t for t, _ in exploited], [phi for _, phi in exploited], "o", **hollow)


def _draw_regret(ax: Axes, run: OutputView) -> None:
    """Draw the 95 % interval and the median of the simple regret at some moments of the run."""
    if run.regret_history is None:
        ax.set_title("Simple regret: not known yet")
        return
    draw(ax, regret(run, run.regret_history))
    ax.set(title=r"Simple regret, $\max f - f$(recommended)", ylabel="")
    add_legend(ax)


def label_t(ax: Axes, name: str, last: int) -> None:
    """Name the axis of t = 1, ..., last and put its ticks at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    ax.set(xlabel=name, xlim=(0.5, max(2, last) + 0.5))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.grid(True)


def _draw_trace(ax: Axes, values: list[tuple[int, float]], title: str) -> None:
    """Draw pairs (t, value) as a line, or a note if there are none."""
    ax.set_title(title)
    ax.plot([t for t, _ in values], [v for _, v in values], color=BLUE, linewidth=1.2, marker=".", markersize=4.0)
    if not values:
        ax.text(0.5, 0.5, "the policy has chosen no query yet", color=GREY, ha="center", transform=ax.transAxes)
        ax.set_yticks([])


def _log_if_wide(ax: Axes, values: list[float]) -> None:
    """Use a logarithmic scale if the values span a factor of WIDE_RANGE. Values that rounding made <= 0 are masked."""
    positive = [value for value in values if value > 0.0]
    if positive and max(positive) > WIDE_RANGE * min(positive):
        ax.set_yscale("log", nonpositive="mask")
