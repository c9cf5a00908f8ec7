"""How every picture looks: colours, fonts, the mark of the recommended point, colour bars. It knows no model.

A colour means the same in every picture: blue is what the model believes and what was observed, grey is its standard
deviation, black is the true function, vermilion is the recommended point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpmi._support.text import install_command

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpecBase

# Blue and vermilion are from the palette of Okabe and Ito, which colour-blind readers can tell apart.
BLUE, VERMILION, BLACK, GREY, LIGHT = "#0072B2", "#D55E00", "#222222", "#8C8C8C", "#D9D9D9"
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


def style() -> Any:
    """A context in which matplotlib uses the library's style; what was set before is restored at its end."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: {install_command('plots')}") from error
    return matplotlib.rc_context(STYLE)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches. It does not belong to pyplot, so that no window opens."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def figure_of(ax: Axes) -> Figure:
    """The figure that axes belong to."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def add_panels(figure: Figure, grid: GridSpecBase, count: int) -> list[Axes]:
    """Axes in the first `count` cells of a grid, row by row."""
    return [figure.add_subplot(grid[divmod(i, grid.ncols)]) for i in range(count)]


def star() -> dict[str, Any]:
    """How the recommended point is marked."""
    return {
        "color": VERMILION,
        "markersize": 12.0,
        "markeredgecolor": "white",
        "markeredgewidth": 0.8,
        "zorder": 5,
        "clip_on": False,
    }


def legend_above(ax: Axes) -> None:
    """The legend, in one line on top of the axes, where it hides no value."""
    where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.3}
    legend = ax.legend(ncols=5, handlelength=1.4, handletextpad=0.5, columnspacing=1.2, **where)
    legend.set_in_layout(False)  # it must not make room for itself at the cost of the panels


def colour_bar(ax: Axes, drawn: Any, **how: Any) -> None:
    """Draw the colour bar of `drawn` beside the axes."""
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(drawn, ax=ax, aspect=25, pad=0.04, **how)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.0, labelsize=8.0)
    bar.ax.minorticks_off()


def plain(word: str) -> str:
    """A word of the user as it is written: matplotlib would read a dollar sign as the start of a formula."""
    return word.replace("$", r"\$")
