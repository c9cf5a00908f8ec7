"""How every figure looks: colours, fonts, the mark of the recommended point, colour bars. It knows no model.

A colour means the same in every figure. Blue is what the model believes and what was observed, grey is the standard
deviation, black is the true function, and vermilion is the recommended point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpmi._support.text import install_command

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpecBase

# Blue and vermilion are from the palette of Okabe and Ito, which colour-blind readers can distinguish.
BLUE, VERMILION, BLACK, GREY, LIGHT = "#0072B2", "#D55E00", "#222222", "#8C8C8C", "#D9D9D9"
PALE = "#BDBDBD"
STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "xtick.color": BLACK,
    "ytick.color": BLACK,
    "axes.formatter.use_mathtext": True,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "figure.constrained_layout.use": True,
}
# How the looks of a picture are drawn.
COLOURS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", BLACK)  # of Okabe and Ito; neighbours differ
LINES: dict[str, dict[str, Any]] = {
    "area": {"color": LIGHT, "linewidth": 7.0},
    "mean": {"color": BLUE, "linewidth": 1.6},
    "reference": {"color": GREY, "linewidth": 0.9, "linestyle": (0, (5, 3))},
    "whisker": {"color": BLACK, "linewidth": 1.0},
    "thin": {"color": BLUE, "linewidth": 0.9},
    "faint": {"color": LIGHT, "linewidth": 0.8},
    "failed": {"color": PALE, "linewidth": 0.9},
    "recommended": {"color": VERMILION, "linewidth": 2.4},
    "target": {"color": GREY, "linewidth": 0.9},
    "function": {"color": BLACK, "linewidth": 1.0, "linestyle": (0, (4, 2))},
    "front-stairs": {"color": BLUE, "linewidth": 1.4, "alpha": 0.7},
    "front-median": {"color": BLUE, "linewidth": 0.9, "linestyle": (0, (4, 2))},
    **{f"group {number}": {"color": colour, "linewidth": 1.6} for number, colour in enumerate(COLOURS)},
}
POINTS: dict[str, dict[str, Any]] = {
    "observed": {"marker": ".", "color": GREY, "markersize": 4.0},
    "failed": {"marker": "x", "color": PALE, "markersize": 4.0},
    "point": {"marker": "o", "color": BLUE, "markersize": 3.5},
    "cross": {"marker": "x", "color": BLUE, "markersize": 6.0, "markeredgewidth": 1.4, "clip_on": False},
    "function": {"marker": "_", "color": BLACK},
    "end": {"marker": "|", "color": BLUE, "markersize": 6.0},
    "at-target": {"marker": "|", "color": BLUE, "markersize": 6.0, "markeredgewidth": 1.2},
    "before-target": {"marker": "|", "color": GREY, "markersize": 6.0, "markeredgewidth": 1.2},
    "stopped": {"marker": "x", "color": GREY, "markersize": 4.5},
    "running": {"marker": ">", "color": BLACK, "markersize": 4.5},
    "value": {"marker": "o", "color": BLUE, "markersize": 4.5},
    "star": {
        "marker": "*",
        "color": VERMILION,
        "markersize": 12.0,
        "markeredgecolor": "white",
        "markeredgewidth": 0.8,
        "zorder": 5,
        "clip_on": False,
    },
    "broken": {"marker": "x", "color": PALE, "markersize": 4.5},
    "waiting": {"marker": "o", "color": PALE, "markerfacecolor": "white", "markersize": 4.5},
    "beaten": {"marker": "o", "color": GREY, "markersize": 3.5},
    "front": {"marker": "o", "color": BLUE, "markeredgecolor": "white", "markersize": 7.0, "zorder": 4},
    "ring": {
        "marker": "o",
        "markerfacecolor": "white",
        "markeredgecolor": BLACK,
        "markersize": 4.0,
        "clip_on": False,
    },
    "rug": {"marker": "|", "color": BLUE, "alpha": 0.5, "markersize": 9.0},
}
POINTS["star-on-map"] = POINTS["star"]
AREAS: dict[str, dict[str, Any]] = {
    "area": {"color": LIGHT},
    "design": {"color": LIGHT, "alpha": 0.45},
    **{f"group {number}": {"color": colour, "alpha": 0.2} for number, colour in enumerate(COLOURS)},
    "likely": {"color": LIGHT, "alpha": 0.45},
    "bar": {"facecolor": BLUE, "edgecolor": BLUE},
    "bar-light": {"facecolor": LIGHT, "edgecolor": BLUE},
}


def style() -> Any:
    """Return a context in which Matplotlib uses the library's style. The earlier settings are restored at its end."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(f"figures need matplotlib: {install_command('plots')}") from error
    return matplotlib.rc_context(STYLE)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches. It does not belong to pyplot, so no window opens."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def figure_of(ax: Axes) -> Figure:
    """Return the figure that axes belong to."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def add_panels(figure: Figure, grid: GridSpecBase, count: int) -> list[Axes]:
    """Add axes to the first `count` cells of a grid, row by row."""
    return [figure.add_subplot(grid[divmod(i, grid.ncols)]) for i in range(count)]


def label_first_column(panels: Sequence[Axes]) -> None:
    """Keep the name and the numbers of the y axis on the first panel of each row alone: all have the same."""
    for ax in panels:
        cell = ax.get_subplotspec()
        if cell is not None and not cell.is_first_col():
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)


def add_legend(ax: Axes, **where: Any) -> None:
    """Add the legend, if anything has a name; best where it hides least."""
    if ax.get_legend_handles_labels()[1]:
        ax.legend(**{"loc": "best", **where})


def legend_above(ax: Axes) -> None:
    """Add the legend in one line above the axes, where it hides no value."""
    where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.3}
    legend = ax.legend(ncols=5, handlelength=1.4, handletextpad=0.5, columnspacing=1.2, **where)
    legend.set_in_layout(False)  # otherwise it would shrink the panels


def colour_bar(ax: Axes, drawn: Any, **how: Any) -> None:
    """Draw the colour bar of `drawn` beside the axes."""
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(drawn, ax=ax, aspect=25, pad=0.04, **how)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.0, labelsize=8.0)
    bar.ax.minorticks_off()


def without_math(text: str) -> str:
    """Escape the dollar signs of user text, which Matplotlib would read as the start of a formula."""
    return text.replace("$", r"\$")
