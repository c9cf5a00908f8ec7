"""The axes of a space (`gpmi.space.axes`) in a Matplotlib figure: their names, scales and ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpmi._support.text import shortened
from gpmi.space import CURVE, Axis, Candidates, Parameters, Space
from gpmi.space import axes_of as plain_axes
from gpmi.views.figures.style import without_math
from gpmi.views.run_view import OutputView

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NAME = 40  # characters of the name of an output, at most; our choice


def axes_of(space: Space, points: int = CURVE) -> list[Axis]:
    """Return an axis for each parameter that varies, with its name as Matplotlib needs it: x_1, ... as formulas."""
    assert isinstance(space, Parameters | Candidates)
    if space.names is not None:
        return plain_axes(space, points, names=[without_math(name) for name in space.names])
    count = len(space.parameters if isinstance(space, Parameters) else space.choices)
    formulas = ["$x$"] if count == 1 else [f"$x_{{{i + 1}}}$" for i in range(count)]
    return plain_axes(space, points, names=formulas)


def value_label(run: OutputView, symbol: str = "y") -> str:
    """Return the name of the values, or of the function, of a run: the output of a run with goals, else a symbol."""
    return without_math(shortened(run.given_name, NAME)) or f"${symbol}$"


def label_axis(ax: Axes, axis: Axis, which: str = "x") -> None:
    """Set name, scale and ticks of the x or the y axis of `ax`."""
    x = which == "x"
    (ax.set_xlabel if x else ax.set_ylabel)(f"{axis.name} ({without_math(axis.unit)})" if axis.unit else axis.name)
    if axis.log:
        (ax.set_xscale if x else ax.set_yscale)("log")
    (ax.set_xlim if x else ax.set_ylim)(*axis.limits)
    ticks = ax.xaxis if x else ax.yaxis
    if axis.labels is not None:
        ticks.set_ticks(range(len(axis.labels)), [without_math(text) for text in axis.labels])
    elif axis.discrete and not axis.log:
        from matplotlib.ticker import MaxNLocator

        ticks.set_major_locator(MaxNLocator(nbins=6, integer=axis.whole))
