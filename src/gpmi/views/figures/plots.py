"""Figures of a posterior, of a run and of its ledger.

Every function returns a Matplotlib Figure; `figure.savefig(path)` writes it. `figures.style` says what the colours
mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpmi.analysis.importance import Importances
from gpmi.analysis.importance import importances as importances_of
from gpmi.gp.posterior import Posterior
from gpmi.space import Parameters, Space
from gpmi.space.axes import Axis, contains_slices
from gpmi.space.axes import axes_of as plain_axes
from gpmi.trials.dataframe import names_of
from gpmi.views.figures.axes import axes_of
from gpmi.views.figures.calibration import draw_calibration
from gpmi.views.figures.contours import draw_map, draw_maps
from gpmi.views.figures.convergence import draw_convergence, groups_of
from gpmi.views.figures.importance import draw_dependence, draw_importances
from gpmi.views.figures.parallel_coordinates import draw_parallel
from gpmi.views.figures.slices import Function, draw_curve, draw_observations, draw_slices
from gpmi.views.figures.style import add_panels, figure_of, new_figure, style
from gpmi.views.figures.traces import draw_ledger, draw_traces
from gpmi.views.run_view import RunView, bounds_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Source: TypeAlias = Any  # a Result, an Optimizer or a Study


def posterior_1d(posterior: Posterior, lo: float, hi: float, *, f: Function | None = None, name: str = "$x$") -> Figure:
    """Draw mu (blue line), mu +- sd (grey) and the observations (blue crosses) over [lo, hi]: the paper's Figure 1.

    `f` takes a point of shape (1,) and is drawn as a dashed line.
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(f"posterior is {posterior!r}; give a gpmi.Posterior, such as result.posterior")
    d = posterior.x.shape[1] if posterior.n else posterior.kernel.dim
    if d not in (None, 1):
        raise ValueError(
            f"posterior has {d} coordinates, but posterior_1d draws one; use contours(result) or slices(result)"
        )
    try:
        space = Parameters.box([(lo, hi)])
    except (TypeError, ValueError) as error:
        raise type(error)(f"lo is {lo!r} and hi is {hi!r}; give finite numbers with lo < hi") from error
    axis = Axis.of(space.encodings[0], name, slice(0, 1))
    with style():
        figure = new_figure(6.4, 3.8)
        ax = figure.add_subplot()
        rows = axis.along(space.lo)
        draw_curve(ax, axis, rows, bounds_of(posterior, rows), None if f is None else (f, space))
        if posterior.n:
            inside = (lo <= posterior.x[:, 0]) & (posterior.x[:, 0] <= hi)
            draw_observations(ax, posterior.x[inside, 0], posterior.y[inside])
        ax.set_ylabel("$y$")
        ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    return figure


def contours(
    source: Source,
    f: Function | None = None,
    *,
    params: tuple[str | int, str | int] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw f (if given), the queries in order, the posterior mean and deviation over two parameters.

    `params` are their names or numbers, by default the two that matter most (`gpmi.importances`); the others stay as
    recommended. f is evaluated at every point of a grid, so give it only if it is cheap. With `ax`, only the mean and
    the queries are drawn, into `ax`.
    """
    view = _view(source)
    pair = _pair(view, params)
    if f is not None and (ax is not None or (len(axes_of(view.space)) > 2 and not contains_slices(view.space))):
        raise ValueError("f is given, but there is one panel, or f may not be defined in this plane; leave f out")
    if ax is not None:
        with style():
            draw_map(ax, view, pair)
        return figure_of(ax)
    with style():
        panels = 3 if f is None else 4
        figure = new_figure(*((10.2, 3.2) if f is None else (7.6, 6.4)))
        draw_maps(add_panels(figure, figure.add_gridspec(*((1, 3) if f is None else (2, 2))), panels), view, f, pair)
    return figure


def convergence(source: Any, *, optimum: float | None = None, ax: Axes | None = None) -> Figure:
    """Draw the best value so far of a run, of a list of runs (median and band), or of a dict of either (one for each).

    The band covers the central 80 % of the runs, or all of fewer than five. With `optimum`, the best value of f, the
    distance from it is drawn, on a logarithmic scale.
    """
    groups = groups_of(source)
    with style():
        ax = ax or new_figure(6.4, 3.8).add_subplot()
        draw_convergence(ax, groups, optimum)
    return figure_of(ax)


def importances(source: Source, *, ax: Axes | None = None) -> Figure:
    """Draw which parameters matter: the first-order and total Sobol indices of `gpmi.importances`, with intervals."""
    view = _view(source)
    found = _importances(view)
    with style():
        ax = ax or new_figure(6.4, 1.1 + 0.45 * len(found)).add_subplot()
        draw_importances(ax, found, axes_of(view.space, 2))
    return figure_of(ax)


def partial_dependence(
    source: Source, params: Sequence[str | int] | str | int | None = None, *, ax: Axes | None = None
) -> Figure:
    """Draw how f depends on parameters, one panel each: its mean over all others, with a 95 % interval.

    `params` are names or numbers, by default the six that matter most; with `ax`, a single one.
    """
    view = _view(source)
    found, axes = _importances(view), axes_of(view.space)
    if params is None:
        chosen = [int(i) for i in np.argsort([-one.total for one in found], kind="stable")[: 6 if ax is None else 1]]
    else:
        chosen = [_number(view.space, name) for name in ([params] if isinstance(params, str | int) else params)]
    if ax is not None and len(chosen) != 1:
        raise ValueError(f"ax is given for {len(chosen)} parameters; give one in params, or leave ax out")
    with style():
        if ax is None:
            columns = min(len(chosen), 3)
            rows = -(-len(chosen) // columns)
            figure = new_figure(max(4.2, 2.9 * columns), 0.5 + 2.3 * rows)
            panels = add_panels(figure, figure.add_gridspec(rows, columns), len(chosen))
        else:
            panels = [ax]
        for i, (panel, number) in enumerate(zip(panels, chosen, strict=True)):
            draw_dependence(panel, view, found.each[number], axes[number])
            if i:
                panel.sharey(panels[0])
            cell = panel.get_subplotspec()
            if ax is not None or cell is None or cell.is_first_col():
                panel.set_ylabel("$f$")
        if ax is None:
            figure.legend(*panels[0].get_legend_handles_labels(), ncols=2, loc="outside upper left")
    return figure_of(panels[0])


def parallel(source: Source, *, ax: Axes | None = None) -> Figure:
    """Draw all parameters together: each trial is a line through its coordinates and its value, the best is darkest."""
    view = _view(source, model=False)
    axes = axes_of(view.space)
    with style():
        ax = ax or new_figure(max(6.4, 1.05 * (len(axes) + 1)), 3.8).add_subplot()
        draw_parallel(ax, view, axes)
    return figure_of(ax)


def calibration(source: Source, *, ax: Axes | None = None) -> Figure:
    """Draw whether the model can be believed: its ordered residuals against those of a correct model."""
    view = _view(source)
    assert view.ledger is not None
    with style():
        ax = ax or new_figure(4.6, 4.2).add_subplot()
        draw_calibration(ax, view.ledger)
    return figure_of(ax)


def slices(source: Source, f: Function | None = None) -> Figure:
    """Draw mu and mu +- sd along each parameter through the recommended point, and f (if given).

    Ticks at the bottom show where the queries were. A discrete parameter has an interval at each of its values.
    """
    view = _view(source)
    count = len(axes_of(view.space))
    if f is not None and not contains_slices(view.space):
        raise ValueError("f is given, but a slice leaves the space, and f may not be defined there; leave f out")
    with style():
        columns = min(count, 4 if count > 6 or count == 4 else 3)
        rows = -(-count // columns)
        figure = new_figure(max(6.4, 2.7 * columns), 0.4 + 2.3 * rows)
        draw_slices(add_panels(figure, figure.add_gridspec(rows, columns), count), view, f)
    return figure


def run(source: Source, f: Function | None = None) -> Figure:
    """Draw the model at the end of a run, and how the run went: best value, phi_t(x_t) and gamma_hat over time.

    The model is drawn as by `posterior_1d` for one parameter, by `contours` for two, and by `slices` for more.
    f is evaluated at every point that is drawn.
    """
    view = _view(source)
    count = len(axes_of(view.space))
    panels = {1: 1, 2: 3 if f is None else 4}.get(count, count)
    columns = min(panels, 4)
    rows = -(-panels // columns)
    with style():
        figure = new_figure(12.6, 2.8 * rows + 2.6)
        grid = figure.add_gridspec(2, 1, height_ratios=[2.8 * rows, 2.3])
        _draw_model(add_panels(figure, grid[0].subgridspec(rows, columns), panels), view, f, count)
        draw_traces(add_panels(figure, grid[1].subgridspec(1, 3), 3), view)
    return figure


def ledger(source: Source, f: Function | None = None) -> Figure:
    """Draw what a run knew and how sure it was: the regret's interval, the information, phi and the residuals.

    With one or two parameters the final model is drawn above, as by `run`; f is evaluated at every point of it.
    The interval is computed at most at 8 moments, each under the model of that moment.
    """
    view = _view(source)
    count = len(axes_of(view.space))
    panels = {1: 1, 2: 3 if f is None else 4}.get(count, 0)
    with style():
        figure = new_figure(12.6, 5.6 if panels else 2.8)
        grid = figure.add_gridspec(2, 1, height_ratios=[2.8, 2.5]) if panels else figure.add_gridspec(1, 1)
        if panels:
            _draw_model(add_panels(figure, grid[0].subgridspec(1, panels), panels), view, f, count)
        draw_ledger(add_panels(figure, grid[grid.nrows - 1].subgridspec(1, 4), 4), view)
    return figure


def _draw_model(panels: list[Axes], view: RunView, f: Function | None, count: int) -> None:
    """Draw maps of two parameters, or slices along any other number. f is left out if it may not be defined there."""
    if count == 2:
        draw_maps(panels, view, f)
    else:
        draw_slices(panels, view, f if contains_slices(view.space) else None)


def _view(source: Any, *, model: bool = True) -> RunView:
    """Return the run to draw. Raise a ValueError if nothing was observed, or if a model is needed but failed."""
    view = RunView.of(source)
    if not view.told:
        raise ValueError("source has no observation, so there is nothing to draw; evaluate at least one point")
    if model and view.ledger is None:
        raise ValueError("source has no model, because it failed; an event of the result says why")
    return view


def _importances(view: RunView) -> Importances:
    """Return the Sobol indices of a run. Raise a ValueError if there are too few values to say."""
    return importances_of(view) if view.importances is None else view.importances


def _number(space: Space, param: str | int) -> int:
    """Return the number of a parameter among those that vary, from its name or its number among all."""
    varied = plain_axes(space, 2)
    names = names_of(space)
    wanted = names[param] if isinstance(param, int) and -len(names) <= param < len(names) else param
    for number, axis in enumerate(varied):
        if axis.name == wanted:
            return number
    raise ValueError(f"params has {param!r}; the parameters that vary are {', '.join(axis.name for axis in varied)}")


def _pair(view: RunView, params: Any) -> tuple[int, int]:
    """Return the numbers of two parameters: those in `params`, or the two that matter most."""
    count = len(axes_of(view.space, 2))
    if count < 2:
        raise ValueError(
            "source has 1 parameter, but contours draws 2; use posterior_1d(result.posterior, lo, hi) or slices(result)"
        )
    if params is not None:
        if isinstance(params, str) or len(params) != 2 or params[0] == params[1]:
            raise ValueError(f"params is {params!r}; give the names of two parameters")
        return _number(view.space, params[0]), _number(view.space, params[1])
    if count == 2 or view.importances is None:
        return 0, 1
    totals = [-one.total for one in view.importances]
    first, second = sorted(int(i) for i in np.argsort(totals, kind="stable")[:2])
    return first, second
