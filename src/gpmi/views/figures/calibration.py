"""Can the model be believed? Its residuals against those of a correct model, and one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpmi.analysis.ledger import Ledger
from gpmi.views.figures.style import BLUE, GREY, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_calibration(ax: Axes, ledger: Ledger, name: str = "Residuals / sd") -> None:
    """Draw the ordered residuals against those of a correct model, and where 95 % of them would be."""
    from scipy.special import betaincinv, ndtri

    calibration = ledger.calibration
    z = np.sort(calibration.ahead)
    n = len(z)
    ax.set_title(f"{name}: {calibration.verdict}")
    ax.set(xlabel="expected from a correct model", ylabel="observed")
    if n == 0:
        ax.text(0.5, 0.5, "no value has been predicted yet", color=GREY, ha="center", transform=ax.transAxes)
        ax.set(xticks=[], yticks=[])
        return
    k = np.arange(1.0, n + 1.0)
    expected = ndtri((k - 0.5) / n)
    # The k-th smallest of n uniform numbers is Beta(k, n + 1 - k).
    low, high = (ndtri(betaincinv(k, n + 1.0 - k, share)) for share in (0.025, 0.975))
    ax.fill_between(expected, low, high, color=LIGHT, linewidth=0.0, label="95 % if the model is correct")
    reach = max(2.0, float(expected[-1]))
    ax.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=0.8)
    ax.plot(expected, z, "o", color=BLUE, markersize=3.5, label=f"{n} residuals")
    ax.legend(loc="upper left")
    ax.grid(True)


def draw_residuals(ax: Axes, ledger: Ledger, name: str = "Residuals / sd", *, of_belief: bool = False) -> None:
    """Draw the one-step-ahead residuals over the central 50 % and 95 % of N(0, 1).

    They are those that were recorded when the values came, or those of the belief, where none were recorded.
    """
    if of_belief:
        ahead = ledger.calibration.ahead
        z = list(enumerate(ahead.tolist(), ledger.n + 1 - len(ahead)))
    else:
        z = [(step.t, step.surprise) for step in ledger.steps if step.surprise is not None]
    for width, shade in ((1.96, 0.45), (0.674, 0.9)):
        ax.axhspan(-width, width, color=LIGHT, alpha=shade, linewidth=0.0, zorder=0)
    ax.plot([t for t, _ in z], [value for _, value in z], ".", color=BLUE, markersize=5.0)
    ax.set_title(f"{name}: {ledger.calibration.verdict}")
    reach = max([3.0, *(abs(value) for _, value in z)])
    ax.set_ylim(-1.08 * reach, 1.08 * reach)
