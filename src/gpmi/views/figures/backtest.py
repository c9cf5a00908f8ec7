"""Would it have helped: the best value after each experiment of a backtest, against a random order."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from gpmi._support.text import shortened
from gpmi.views.figures.style import BLACK, COLOURS, GREY, add_legend, without_math
from gpmi.views.pictures.convergence import FEW_RUNS
from gpmi.views.run_view import NAME

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@runtime_checkable
class Backtest(Protocol):
    """What is drawn of a `gpmi.BacktestResult`."""

    @property
    def value(self) -> str: ...
    @property
    def goal(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def optimum(self) -> float: ...
    @property
    def curves(self) -> Mapping[str, Any]: ...


def draw_backtest(ax: Axes, result: Backtest) -> None:
    """Draw the mean of the runs with a band of 80 %, a random order in grey, and the best row as a dashed line."""
    from matplotlib.ticker import MaxNLocator

    ax.axhline(result.optimum, color=BLACK, linewidth=1.0, linestyle="--", label="best row")
    colours = cycle(COLOURS[:-1])  # without black
    for name, curve in result.curves.items():
        t = np.arange(1, len(curve.mean) + 1)
        ours = curve.batch is not None
        colour = next(colours) if ours else GREY
        is_band = bool(np.any(curve.high > curve.low))
        if is_band and (name == "gpmi" or not ours):
            ax.fill_between(t, curve.low, curve.high, step="post", color=colour, alpha=0.2, linewidth=0.0)
        style = "-" if is_band or ours else ":"
        ax.step(t, curve.mean, where="post", color=colour, linewidth=1.6, linestyle=style, label=without_math(name))
    ax.set_xlabel("experiment")
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    value = without_math(shortened(result.value, NAME))
    ax.set_ylabel(f"{'largest' if result.goal == 'max' else 'smallest'} {value} so far")
    count = len(result.seeds)
    band = " and the central 80 %" if count >= FEW_RUNS else " and their range" if count > 1 else ""
    ax.set_title(f"{result.rows} rows, mean of {count} run{'s' * (count > 1)}{band}")
    add_legend(ax)
    ax.grid(True)
