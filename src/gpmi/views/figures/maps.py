"""The model over two parameters: maps of f, of the posterior mean and of its deviation, and the queries in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi._support.types import Array
from gpmi.space import Candidates, Space
from gpmi.space.axes import CURVE, Axis
from gpmi.views.figures.axes import axes_of, label
from gpmi.views.figures.source import Function, Snapshot, band, centre, model_of, told, values_of
from gpmi.views.figures.style import BLACK, BLUE, GREY, LIGHT, VERMILION, colour_bar, star

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Our choices, not tuned.
GRID = 101  # points along each side of a map
ROWS = 20_000  # of more candidates than this an even selection is drawn
NUMBERED = 12  # the first queries, which carry their number
# The share of the map below each level. Steps of 8 % show the shape, smaller ones near 1 show where the optimum is.
SHARES = np.array([0.08, 0.16, 0.24, 0.32, 0.4, 0.48, 0.56, 0.64, 0.72, 0.8, 0.87, 0.93, 0.97, 0.99])


def draw_map(ax: Axes, snapshot: Snapshot, pair: tuple[int, int]) -> None:
    """Draw mu over two parameters, the others as recommended, with the queries and the recommended point."""
    posterior, recommended = model_of(snapshot)
    sheet = Sheet.of(snapshot.space, pair, recommended)
    _, mu, _ = band(posterior, sheet.rows, snapshot.warp)
    levels = levels_of(mu, mu, best_is_large=snapshot.goal == "max")
    sheet.fill(ax, mu, levels, "viridis", centre(snapshot.warp).capitalize())
    queries = np.array([snapshot.space.encode(trial.x) for _, trial in told(snapshot.trials)])
    how: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": BLACK, "markersize": 4.0, "clip_on": False}
    ax.plot(*sheet.positions(queries), "o", linestyle="none", **how)
    ax.plot(*sheet.positions(recommended[None]), "*", **star())


def draw_maps(panels: list[Axes], snapshot: Snapshot, f: Function | None, pair: tuple[int, int] = (0, 1)) -> None:
    """Draw f (if given), the queries, mu and sd, one in each panel. f and mu have the same colours.

    `pair` are the numbers of the two parameters among those that vary; others are as recommended.
    """
    from matplotlib.ticker import MaxNLocator

    posterior, recommended = model_of(snapshot)
    sheet = Sheet.of(snapshot.space, pair, recommended)
    low, mu, high = band(posterior, sheet.rows, snapshot.warp)
    sd = 0.5 * (high - low)
    true = None if f is None else values_of(f, snapshot.space, sheet.rows)
    shown = mu if true is None else true
    levels = levels_of(shown, mu, best_is_large=snapshot.goal == "max")
    *function, queries, mean, deviation = panels
    if true is not None:
        sheet.fill(function[0], true, levels, "viridis", "Function $f$")
    sheet.lines(queries, shown, levels)
    draw_queries(queries, snapshot, sheet, "Queries in order (\N{MULTIPLICATION SIGN} initial)")
    sheet.fill(mean, mu, levels, "viridis", centre(snapshot.warp).capitalize())
    steps = np.array(MaxNLocator(9).tick_values(0.0, float(sd.max()) or 1.0))
    sheet.fill(deviation, sd, steps, "Greys", r"Posterior deviation $\sigma$")
    for ax in (queries, mean, deviation):
        hollow = {"markerfacecolor": "none", "markeredgecolor": VERMILION} if ax is queries else {}
        ax.plot(*sheet.positions(recommended[None]), "*", **{**star(), **hollow})


@dataclass(frozen=True)
class Sheet:
    """The points of a map over two parameters."""

    axes: tuple[Axis, Axis]
    rows: Array  # (m, d)
    shape: tuple[int, int] | None  # of the grid they make; None for scattered points

    @staticmethod
    def of(space: Space, pair: tuple[int, int] = (0, 1), through: Array | None = None) -> Sheet:
        """A grid over two parameters; the candidates themselves where they make no full grid, or too large a one.

        Of more than two parameters it is the plane through the point with coordinates `through` (d,).
        """
        axes = axes_of(space, CURVE if isinstance(space, Candidates) else GRID)
        a, b = (axes[number] for number in pair)
        shape = len(a.settings), len(b.settings)
        if len(axes) > 2 and through is not None:
            return Sheet((a, b), np.concatenate([b.along(row) for row in a.along(through)]), shape)
        if isinstance(space, Candidates):
            rows = np.unique(space.encoded, axis=0)
            if len(rows) < shape[0] * shape[1] or len(rows) > ROWS:
                return Sheet((a, b), rows[:: -(-len(rows) // ROWS)], None)
        return Sheet((a, b), np.concatenate([b.along(row) for row in a.along(space.lo)]), shape)

    @property
    def smooth(self) -> bool:
        """Whether there is a value between any two: contours can be drawn."""
        return self.shape is not None and not any(axis.discrete for axis in self.axes)

    def positions(self, rows: Array) -> tuple[Array, Array]:
        """Where points with coordinates (m, d) lie on the two axes, (m,) each."""
        return self.axes[0].positions(rows), self.axes[1].positions(rows)

    def _grid(self, values: Array) -> list[Array]:
        return [part.reshape(self.shape or (-1,)) for part in (*self.positions(self.rows), values)]

    def fill(self, ax: Axes, values: Array, levels: Array, cmap: str, title: str) -> None:
        """Draw values (m,) as filled contours, cells or dots, with their colour bar."""
        from matplotlib import colormaps
        from matplotlib.colors import BoundaryNorm, ListedColormap

        darkest = 0.75 if cmap == "Greys" else 1.0  # our choice: no black, which stands for f
        colours = ListedColormap(colormaps[cmap](np.linspace(0.0, darkest, len(levels) - 1)))
        how: dict[str, Any] = {"norm": BoundaryNorm(levels, len(levels) - 1), "cmap": colours}
        if self.smooth:
            drawn: Any = ax.contourf(*self._grid(values), levels=levels, **how)
        elif self.shape is not None:
            cells = values.reshape(self.shape).T
            drawn = ax.pcolormesh(self.axes[0].edges, self.axes[1].edges, cells, rasterized=True, **how)
        else:
            drawn = ax.scatter(
                *self.positions(self.rows), c=values, s=14.0, linewidths=0.3, edgecolors=GREY, rasterized=True, **how
            )
        self.frame(ax, title)
        colour_bar(ax, drawn, ticks=levels[:: -max(1, len(levels) // 6)], spacing="uniform")

    def lines(self, ax: Axes, values: Array, levels: Array) -> None:
        """Draw a background: thin contour lines of values (m,), or the points alone where they make no grid."""
        inner = levels[(levels > values.min()) & (levels < values.max())]
        if self.smooth and len(inner):
            ax.contour(*self._grid(values), levels=inner, colors=LIGHT, linewidths=0.6, linestyles="solid")
        elif self.shape is None:
            ax.plot(*self.positions(self.rows), ".", color=LIGHT, markersize=3.0, rasterized=True)

    def frame(self, ax: Axes, title: str) -> None:
        """Label both axes and set the title."""
        label(ax, self.axes[0], "x")
        label(ax, self.axes[1], "y")
        ax.set_title(title)


def draw_queries(ax: Axes, snapshot: Snapshot, sheet: Sheet, title: str, order_name: str = "") -> None:
    """Draw the queries, darker with time: dots for those the policy chose, crosses for all others."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    trials = told(snapshot.trials)
    order = np.array([t for t, _ in trials])
    chosen = np.array([trial.origin == "policy" for _, trial in trials])
    x, y = sheet.positions(np.array([snapshot.space.encode(trial.x) for _, trial in trials]))
    sheet.frame(ax, title)
    scale: dict[str, Any] = {
        "cmap": LinearSegmentedColormap.from_list("order", ["#9ECAE1", BLUE, "#08254A"]),
        "vmin": 1,
        "vmax": max(2, len(snapshot.trials)),
        "s": 26.0,
        "clip_on": False,
        "zorder": 3,
    }
    ax.scatter(x[~chosen], y[~chosen], c=order[~chosen], marker="x", linewidths=1.4, **scale)
    drawn = ax.scatter(x[chosen], y[chosen], c=order[chosen], linewidths=0.5, edgecolors="white", **scale)
    colour_bar(ax, drawn, ticks=MaxNLocator(6, integer=True), label=order_name)
    places = ax.transAxes.inverted().transform(ax.transData.transform(np.column_stack([x, y])))
    for i, place in enumerate(places[:NUMBERED]):
        if all(np.hypot(*(place - other)) > 0.06 for other in places[:i]):  # of several close together only the first
            inward = tuple(np.where(place > 0.93, -9.0, 4.0))
            how: dict[str, Any] = {"fontsize": 7.5, "color": BLACK, "zorder": 4}
            ax.annotate(str(order[i]), tuple(place), inward, "axes fraction", "offset points", **how)


def levels_of(values: Array, others: Array, *, best_is_large: bool) -> Array:
    """Ascending levels that cover values (m,) and others, with SHARES of `values` below them.

    Equal shares of the area, not of the range, so that a function of any skewness shows its shape.
    """
    lo, hi = min(values.min(), others.min()), max(values.max(), others.max())
    size = max(abs(lo), abs(hi))
    if hi - lo <= 1e-9 * size:  # a constant, up to rounding
        return np.array([lo, hi]) + np.array([-0.5, 0.5]) * (size or 1.0)
    distinct = np.unique(values)
    if len(distinct) <= len(SHARES):
        inner = (distinct[1:] + distinct[:-1]) / 2.0
    else:
        inner = np.quantile(values, SHARES if best_is_large else 1.0 - SHARES, method="nearest")
    step = 10.0 ** np.floor(np.log10((hi - lo) / 100.0))  # levels of two or three digits
    rounded = np.round(inner / step) * step
    return np.unique(np.concatenate([[np.floor(lo / step) * step, np.ceil(hi / step) * step], rounded]))
