"""Two parameters at a time: maps of f, of the posterior mean and of its deviation, and the queries in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.model import Warp
from gpmi.space import CURVE, Axis, Candidates, axes_of
from gpmi.views.figures.drawing import draw, set_axis
from gpmi.views.figures.style import BLACK, BLUE, GREY, LIGHT, POINTS, VERMILION, colour_bar, without_math
from gpmi.views.pictures.levels import colours_of, levels_of
from gpmi.views.pictures.maps import filled, places
from gpmi.views.pictures.picture import Mark, Picture, Ruler
from gpmi.views.pictures.slices import Function, values_of
from gpmi.views.run_view import OutputView

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Our choices, not tuned.
GRID = 101  # points along each side of a map
MAX_CANDIDATES = 20_000  # of more candidates an even selection is drawn
NUMBERED = 12  # the first queries, which are drawn with their number


def draw_map(ax: Axes, run: OutputView, pair: tuple[int, int]) -> None:
    """Draw mu over two parameters, the others as recommended, with the queries and the recommended point."""
    plane = MapPlane.of(run, pair)
    _, mu, _ = plane.bounds(run)
    levels = np.unique(run.possible.clip(levels_of(mu[np.isfinite(mu)])))
    plane.fill(ax, mu, levels, colours_of(run, levels), _title(run, centre_of(run.warp)), places(run, *plane.axes))


def draw_maps(panels: list[Axes], run: OutputView, f: Function | None, pair: tuple[int, int] = (0, 1)) -> None:
    """Draw f (if given), the queries, mu and sd, one in each panel. f and mu have the same colours.

    `pair` are the numbers of the two parameters among those that vary; the others are as recommended.
    """
    from matplotlib.ticker import MaxNLocator

    recommended = run.recommended_row
    assert recommended is not None
    plane = MapPlane.of(run, pair)
    low, mu, high = plane.bounds(run)
    sd = 0.5 * (high - low)
    true = None if f is None else values_of(f, run.space, plane.rows)
    shown = mu if true is None else true
    values = np.concatenate([shown, mu])
    levels = levels_of(values[np.isfinite(values)])
    levels = np.unique(run.possible.clip(levels)) if true is None else levels
    *function, queries, mean, deviation = panels
    if true is not None:
        plane.fill(function[0], true, levels, colours_of(run, levels), _title(run, "function $f$"))
    plane.lines(queries, shown, levels)
    draw_queries(queries, run, plane, "Queries in order (\N{MULTIPLICATION SIGN} initial)")
    plane.fill(mean, mu, levels, colours_of(run, levels), _title(run, centre_of(run.warp)))
    steps = np.array(MaxNLocator(9).tick_values(0.0, float(np.nanmax(sd)) or 1.0))
    plane.fill(deviation, sd, steps, shades("Greys", steps), _title(run, r"posterior deviation $\sigma$"))
    for ax in (queries, mean, deviation):
        hollow = {"markerfacecolor": "none", "markeredgecolor": VERMILION} if ax is queries else {}
        ax.plot(*plane.positions(recommended[None]), **{**POINTS["star"], **hollow})


def _title(run: OutputView, what: str) -> str:
    """Return the title of a map, with the name of the output if it has one."""
    return f"{without_math(run.short_name)}: {what}" if run.given_name else what.capitalize()


@dataclass(frozen=True)
class MapPlane:
    """The points of a map over two parameters."""

    axes: tuple[Axis, Axis]
    rows: Array  # (m, d)
    shape: tuple[int, int] | None  # of their grid; None for scattered points
    inside: Mask | None = None  # (m,), where constraints allow a point; None if the plane has no area in which they do

    @staticmethod
    def of(run: OutputView, pair: tuple[int, int] = (0, 1)) -> MapPlane:
        """Return a grid over two parameters; or the candidates, unless they form a full grid of a drawable size.

        It goes through the recommended point. With a fidelity it is the plane at its target.
        """
        space, row = run.space, run.recommended_row
        assert row is not None
        axes = axes_of(space, CURVE if isinstance(space, Candidates) else GRID)
        a, b = (axes[number] for number in pair)
        shape = len(a.settings), len(b.settings)
        if len(axes) == 2 and isinstance(space, Candidates):
            rows = np.unique(space.encoded, axis=0)
            if len(rows) < shape[0] * shape[1] or len(rows) > MAX_CANDIDATES:
                return MapPlane((a, b), rows[:: -(-len(rows) // MAX_CANDIDATES)], None)
        if run.mixture_of(a) is not None and run.mixture_of(a) == run.mixture_of(b):
            rows = np.concatenate([b.along(place) for place in a.along(row)])
            return MapPlane((a, b), rows, shape)
        rows = np.concatenate([run.along(b, place) for place in run.along(a, row)])
        inside = run.inside(rows)
        return MapPlane((a, b), rows, shape, inside if inside.any() else None)

    def bounds(self, run: OutputView) -> Array:
        """Return mu - sd, mu and mu + sd at the points, (3, m); nan where the constraints forbid a point."""
        bounds = run.bounds(self.rows)
        return bounds if self.inside is None else np.where(self.inside, bounds, np.nan)

    @property
    def smooth(self) -> bool:
        """Whether there are values between the points, so that contours can be drawn."""
        return self.shape is not None and not any(axis.discrete for axis in self.axes)

    def positions(self, rows: Array) -> tuple[Array, Array]:
        """Return where points with coordinates (m, d) lie on the two axes, (m,) each."""
        return self.axes[0].positions(rows), self.axes[1].positions(rows)

    def _grid(self, values: Array) -> list[Array]:
        return [part.reshape(self.shape or (-1,)) for part in (*self.positions(self.rows), values)]

    def fill(
        self, ax: Axes, values: Array, levels: Array, colours: Any, title: str, marks: Sequence[Mark] = ()
    ) -> None:
        """Draw values (m,) as filled contours, cells or dots, with their colour bar, and marks above them."""
        from matplotlib.colors import BoundaryNorm, ListedColormap

        a, b = self.axes
        shown = [] if self.shape is None else [filled(a, b, values.reshape(self.shape), levels, colours)]
        draw(ax, Picture("", "", Ruler.of(a), Ruler.of(b), [*shown, *marks]))
        ax.grid(False)
        ax.set_title(title)
        if self.shape is None:
            how: dict[str, Any] = {"norm": BoundaryNorm(levels, len(levels) - 1), "cmap": ListedColormap(colours)}
            how |= {"c": values, "s": 14.0, "linewidths": 0.3, "edgecolors": GREY, "rasterized": True}
            drawn = ax.scatter(*self.positions(self.rows), **how)
            colour_bar(ax, drawn, ticks=levels[:: -max(1, len(levels) // 6)], spacing="uniform")

    def lines(self, ax: Axes, values: Array, levels: Array) -> None:
        """Draw a background: thin contour lines of values (m,), or only the points if they form no grid."""
        inner = levels[(levels > np.nanmin(values)) & (levels < np.nanmax(values))]
        if self.smooth and len(inner):
            ax.contour(*self._grid(values), levels=inner, colors=LIGHT, linewidths=0.6, linestyles="solid")
        elif self.shape is None:
            ax.plot(*self.positions(self.rows), ".", color=LIGHT, markersize=3.0, rasterized=True)

    def frame(self, ax: Axes, title: str) -> None:
        """Label both axes and set the title."""
        set_axis(ax, Ruler.of(self.axes[0]), "x")
        set_axis(ax, Ruler.of(self.axes[1]), "y")
        ax.set_title(title)


def draw_queries(ax: Axes, run: OutputView, plane: MapPlane, title: str, order_name: str = "") -> None:
    """Draw the queries, the later the darker: dots if the policy chose them, crosses otherwise."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    order = np.array([t for t, _ in run.numbered])
    chosen = np.array([trial.origin == "policy" for _, trial in run.numbered])
    x, y = plane.positions(np.array([run.space.encode(trial.x) for _, trial in run.numbered]))
    plane.frame(ax, title)
    scale: dict[str, Any] = {
        "cmap": LinearSegmentedColormap.from_list("order", ["#9ECAE1", BLUE, "#08254A"]),
        "vmin": 1,
        "vmax": max(2, len(run.ended)),
        "s": 26.0,
        "clip_on": False,
        "zorder": 3,
    }
    ax.scatter(x[~chosen], y[~chosen], c=order[~chosen], marker="x", linewidths=1.4, **scale)
    drawn = ax.scatter(x[chosen], y[chosen], c=order[chosen], linewidths=0.5, edgecolors="white", **scale)
    colour_bar(ax, drawn, ticks=MaxNLocator(6, integer=True), label=order_name)
    places = ax.transAxes.inverted().transform(ax.transData.transform(np.column_stack([x, y])))
    for i, place in enumerate(places[:NUMBERED]):
        if all(
            np.hypot(*(place - other)) > 0.06 for other in places[:i]
        ):  # of several close together only the first is numbered
            inward = tuple(np.where(place > 0.93, -9.0, 4.0))
            how: dict[str, Any] = {"fontsize": 7.5, "color": BLACK, "zorder": 4}
            ax.annotate(str(order[i]), tuple(place), inward, "axes fraction", "offset points", **how)


def shades(name: str, levels: Array) -> Any:
    """Return the colours of levels that have no best, from a colour map of Matplotlib without its darkest part."""
    from matplotlib import colormaps

    return colormaps[name](np.linspace(0.0, 0.75, len(levels) - 1))  # no black, which is the colour of f


def centre_of(warp: Warp) -> str:
    """Return the name of the middle of a band: the inverse of a warp maps the mean to the median."""
    return "posterior median" if warp.bends else r"posterior mean $\mu$"
