"""Pictures of a posterior, of a run and of its ledger.

Every function returns a matplotlib Figure; `figure.savefig(path)` writes it. `gpmi.show.style` says what the colours
mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpmi.axes import Axis, contains_slices
from gpmi.gp.posterior import Posterior
from gpmi.optimizer import Optimizer
from gpmi.result import Result
from gpmi.show.axes import axes_of
from gpmi.show.curves import draw_curve, draw_observations, draw_slices
from gpmi.show.maps import draw_maps
from gpmi.show.source import Function, checked_result
from gpmi.show.style import add_panels, new_figure, style
from gpmi.show.traces import draw_accounts, draw_traces
from gpmi.space import Parameters, Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def posterior_1d(posterior: Posterior, lo: float, hi: float, *, f: Function | None = None, name: str = "$x$") -> Figure:
    """Draw mu (blue line), mu +- sd (grey) and the observations (blue crosses) over [lo, hi]: the paper's Figure 1.

    `f` takes a point of shape (1,) and is drawn as a dashed line.
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(f"posterior is {posterior!r}; give a gpmi.Posterior, such as result.posterior")
    d = posterior.x.shape[1] if posterior.n else posterior.kernel.dim
    if d not in (None, 1):
        raise ValueError(
            f"posterior has {d} coordinates; posterior_1d draws one: use contours(result) or slices(result)"
        )
    try:
        space = Parameters.box([(lo, hi)])
    except (TypeError, ValueError) as error:
        raise type(error)(f"lo is {lo!r} and hi is {hi!r}; give finite numbers with lo < hi") from error
    axis = Axis.of(space.parts[0], name, slice(0, 1))
    with style():
        figure = new_figure(6.4, 3.8)
        ax = figure.add_subplot()
        draw_curve(ax, posterior, axis, space.lo, None if f is None else (f, space))
        if posterior.n:
            inside = (lo <= posterior.x[:, 0]) & (posterior.x[:, 0] <= hi)
            draw_observations(ax, posterior.x[inside, 0], posterior.y[inside])
        ax.set_ylabel("$y$")
        ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    return figure


def contours(source: Result | Optimizer, f: Function | None = None) -> Figure:
    """Draw f (if given), the queries in order, the posterior mean and deviation over two parameters.

    f is evaluated at every point of a grid: give it only where it is cheap.
    """
    result = checked_result(source)
    _require_two(result.space)
    with style():
        panels = 3 if f is None else 4
        figure = new_figure(*((10.2, 3.2) if f is None else (7.6, 6.4)))
        draw_maps(add_panels(figure, figure.add_gridspec(*((1, 3) if f is None else (2, 2))), panels), result, f)
    return figure


def slices(source: Result | Optimizer, f: Function | None = None) -> Figure:
    """Draw mu and mu +- sd along each parameter through the recommended point, and f (if given).

    Ticks at the bottom say where the queries were; an interval is drawn at each value of a discrete parameter.
    """
    result = checked_result(source)
    count = len(axes_of(result.space))
    if f is not None and not contains_slices(result.space):
        raise ValueError("f is given, but a slice leaves the space, where f may not be defined; leave f out")
    with style():
        columns = min(count, 4 if count > 6 or count == 4 else 3)
        rows = -(-count // columns)
        figure = new_figure(max(6.4, 2.7 * columns), 0.4 + 2.3 * rows)
        draw_slices(add_panels(figure, figure.add_gridspec(rows, columns), count), result, f)
    return figure


def run(source: Result | Optimizer, f: Function | None = None) -> Figure:
    """Draw the model at the end of a run, and how the run went: best value, phi_t(x_t) and gamma_hat over time.

    The model is drawn as by `contours` with two parameters, as by `posterior_1d` with one, as by `slices` with more;
    f is evaluated at every point that is drawn.
    """
    result = checked_result(source)
    count = len(axes_of(result.space))
    panels = {1: 1, 2: 3 if f is None else 4}.get(count, count)
    columns = min(panels, 4)
    rows = -(-panels // columns)
    with style():
        figure = new_figure(12.6, 2.8 * rows + 2.6)
        grid = figure.add_gridspec(2, 1, height_ratios=[2.8 * rows, 2.3])
        _draw_model(add_panels(figure, grid[0].subgridspec(rows, columns), panels), result, f, count)
        draw_traces(add_panels(figure, grid[1].subgridspec(1, 3), 3), result)
    return figure


def ledger(source: Result | Optimizer, f: Function | None = None) -> Figure:
    """Draw what a run knew and how sure it was: the regret's interval, the information, phi and the residuals.

    With one or two parameters the model at the end is drawn above, as by `run`; f is evaluated at every point of it.
    The interval is computed at 16 steps at most, under the model of each.
    """
    result = checked_result(source)
    assert result.ledger is not None
    count = len(axes_of(result.space))
    panels = {1: 1, 2: 3 if f is None else 4}.get(count, 0)
    with style():
        figure = new_figure(12.6, 5.6 if panels else 2.8)
        grid = figure.add_gridspec(2, 1, height_ratios=[2.8, 2.5]) if panels else figure.add_gridspec(1, 1)
        if panels:
            _draw_model(add_panels(figure, grid[0].subgridspec(1, panels), panels), result, f, count)
        draw_accounts(add_panels(figure, grid[grid.nrows - 1].subgridspec(1, 4), 4), result.ledger)
    return figure


def _draw_model(panels: list[Axes], result: Result, f: Function | None, count: int) -> None:
    """Draw maps of two parameters, and slices along any other number; f is left out where it may not be defined."""
    if count == 2:
        draw_maps(panels, result, f)
    else:
        draw_slices(panels, result, f if contains_slices(result.space) else None)


def _require_two(space: Space) -> None:
    count = len(axes_of(space, 2))
    if count != 2:
        remedy = "posterior_1d(result.posterior, lo, hi)" if count == 1 else "slices(result)"
        raise ValueError(f"source has {count} parameter{'s'[: count != 1]}; contours draws two: use {remedy}")
