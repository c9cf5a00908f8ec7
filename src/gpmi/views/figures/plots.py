"""Pictures of a posterior, of a run and of its ledger.

Every function returns a matplotlib Figure; `figure.savefig(path)` writes it. `figures.style` says what the colours
mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpmi.analysis.importance import importances as importances_of
from gpmi.gp.posterior import Posterior
from gpmi.space import Parameters, Space
from gpmi.space.axes import Axis, contains_slices
from gpmi.space.axes import axes_of as plain_axes
from gpmi.trials.dataframe import names_of
from gpmi.views.figures.answers import (
    draw_calibration,
    draw_convergence,
    draw_dependence,
    draw_importances,
    draw_parallel,
    groups_of,
)
from gpmi.views.figures.axes import axes_of
from gpmi.views.figures.curves import draw_curve, draw_observations, draw_slices
from gpmi.views.figures.maps import draw_map, draw_maps
from gpmi.views.figures.source import Function, Snapshot
from gpmi.views.figures.style import add_panels, figure_of, new_figure, style
from gpmi.views.figures.traces import draw_accounts, draw_traces
from gpmi.views.html.subject import Subject

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
            f"posterior has {d} coordinates; posterior_1d draws one: use contours(result) or slices(result)"
        )
    try:
        space = Parameters.box([(lo, hi)])
    except (TypeError, ValueError) as error:
        raise type(error)(f"lo is {lo!r} and hi is {hi!r}; give finite numbers with lo < hi") from error
    axis = Axis.of(space.encodings[0], name, slice(0, 1))
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


def contours(
    source: Source,
    f: Function | None = None,
    *,
    params: tuple[str | int, str | int] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw f (if given), the queries in order, the posterior mean and deviation over two parameters.

    `params` are their names or numbers, by default the two that matter most (`gpmi.importances`); the others stay as
    recommended. f is evaluated at every point of a grid: give it only where it is cheap. With `ax` the mean is drawn
    there, with the queries.
    """
    snapshot = Snapshot.of(source)
    pair = _pair(snapshot, params)
    if f is not None and (ax is not None or (len(axes_of(snapshot.space)) > 2 and not contains_slices(snapshot.space))):
        raise ValueError("f is given, but there is one panel, or it may not be defined in this plane; leave f out")
    if ax is not None:
        with style():
            draw_map(ax, snapshot, pair)
        return figure_of(ax)
    with style():
        panels = 3 if f is None else 4
        figure = new_figure(*((10.2, 3.2) if f is None else (7.6, 6.4)))
        draw_maps(
            add_panels(figure, figure.add_gridspec(*((1, 3) if f is None else (2, 2))), panels), snapshot, f, pair
        )
    return figure


def convergence(source: Any, *, optimum: float | None = None, ax: Axes | None = None) -> Figure:
    """Draw the best value so far of one run, or of several: of a list the median and a band, of a dict one for each.

    The band holds the central 80 % of the runs, or all of fewer than five. With `optimum`, the best value that f has,
    its distance from it is drawn, on a logarithmic scale.
    """
    groups = groups_of(source)
    with style():
        ax = ax or new_figure(6.4, 3.8).add_subplot()
        draw_convergence(ax, groups, optimum)
    return figure_of(ax)


def importances(source: Source, *, ax: Axes | None = None) -> Figure:
    """Draw which parameters matter: the first-order and total Sobol indices of `gpmi.importances`, with intervals."""
    run = _with_model(source)
    assert run.importances is not None
    with style():
        ax = ax or new_figure(6.4, 1.1 + 0.45 * len(run.importances)).add_subplot()
        draw_importances(ax, run)
    return figure_of(ax)


def partial_dependence(
    source: Source, params: Sequence[str | int] | str | int | None = None, *, ax: Axes | None = None
) -> Figure:
    """Draw how f depends on parameters, one panel each: its mean over all others, with a 95 % interval.

    `params` are names or numbers, by default the six that matter most. `ax` takes one of them.
    """
    run = _with_model(source)
    assert run.importances is not None
    axes = axes_of(run.space)
    if params is None:
        chosen = [
            int(i) for i in np.argsort([-one.total for one in run.importances], kind="stable")[: 6 if ax is None else 1]
        ]
    else:
        chosen = [_number(run.space, name) for name in ([params] if isinstance(params, str | int) else params)]
    if ax is not None and len(chosen) != 1:
        raise ValueError(f"ax is given for {len(chosen)} parameters; give one of them in params, or no ax")
    with style():
        if ax is None:
            columns = min(len(chosen), 3)
            rows = -(-len(chosen) // columns)
            figure = new_figure(max(4.2, 2.9 * columns), 0.5 + 2.3 * rows)
            panels = add_panels(figure, figure.add_gridspec(rows, columns), len(chosen))
        else:
            panels = [ax]
        for i, (panel, number) in enumerate(zip(panels, chosen, strict=True)):
            draw_dependence(panel, run, run.importances.each[number], axes[number])
            if i:
                panel.sharey(panels[0])
            cell = panel.get_subplotspec()
            if ax is not None or cell is None or cell.is_first_col():
                panel.set_ylabel("$f$")
        if ax is None:
            figure.legend(*panels[0].get_legend_handles_labels(), ncols=2, loc="outside upper left")
    return figure_of(panels[0])


def parallel(source: Source, *, ax: Axes | None = None) -> Figure:
    """Draw all parameters together: each trial a line through its coordinates and its value, the better the darker."""
    run = _with_model(source, model=False)
    axes = axes_of(run.space)
    with style():
        ax = ax or new_figure(max(6.4, 1.05 * (len(axes) + 1)), 3.8).add_subplot()
        draw_parallel(ax, run, axes)
    return figure_of(ax)


def calibration(source: Source, *, ax: Axes | None = None) -> Figure:
    """Draw whether the model can be believed: its residuals in order, against those of a model that is right."""
    run = _with_model(source)
    with style():
        ax = ax or new_figure(4.6, 4.2).add_subplot()
        draw_calibration(ax, run)
    return figure_of(ax)


def slices(source: Source, f: Function | None = None) -> Figure:
    """Draw mu and mu +- sd along each parameter through the recommended point, and f (if given).

    Ticks at the bottom say where the queries were; an interval is drawn at each value of a discrete parameter.
    """
    snapshot = Snapshot.of(source)
    count = len(axes_of(snapshot.space))
    if f is not None and not contains_slices(snapshot.space):
        raise ValueError("f is given, but a slice leaves the space, where f may not be defined; leave f out")
    with style():
        columns = min(count, 4 if count > 6 or count == 4 else 3)
        rows = -(-count // columns)
        figure = new_figure(max(6.4, 2.7 * columns), 0.4 + 2.3 * rows)
        draw_slices(add_panels(figure, figure.add_gridspec(rows, columns), count), snapshot, f)
    return figure


def run(source: Source, f: Function | None = None) -> Figure:
    """Draw the model at the end of a run, and how the run went: best value, phi_t(x_t) and gamma_hat over time.

    The model is drawn as by `contours` with two parameters, as by `posterior_1d` with one, as by `slices` with more;
    f is evaluated at every point that is drawn.
    """
    snapshot = Snapshot.of(source)
    count = len(axes_of(snapshot.space))
    panels = {1: 1, 2: 3 if f is None else 4}.get(count, count)
    columns = min(panels, 4)
    rows = -(-panels // columns)
    with style():
        figure = new_figure(12.6, 2.8 * rows + 2.6)
        grid = figure.add_gridspec(2, 1, height_ratios=[2.8 * rows, 2.3])
        _draw_model(add_panels(figure, grid[0].subgridspec(rows, columns), panels), snapshot, f, count)
        draw_traces(add_panels(figure, grid[1].subgridspec(1, 3), 3), snapshot)
    return figure


def ledger(source: Source, f: Function | None = None) -> Figure:
    """Draw what a run knew and how sure it was: the regret's interval, the information, phi and the residuals.

    With one or two parameters the model at the end is drawn above, as by `run`; f is evaluated at every point of it.
    The interval is computed at 8 moments at most, under the model of each.
    """
    snapshot = Snapshot.of(source)
    assert snapshot.ledger is not None
    count = len(axes_of(snapshot.space))
    panels = {1: 1, 2: 3 if f is None else 4}.get(count, 0)
    with style():
        figure = new_figure(12.6, 5.6 if panels else 2.8)
        grid = figure.add_gridspec(2, 1, height_ratios=[2.8, 2.5]) if panels else figure.add_gridspec(1, 1)
        if panels:
            _draw_model(add_panels(figure, grid[0].subgridspec(1, panels), panels), snapshot, f, count)
        draw_accounts(add_panels(figure, grid[grid.nrows - 1].subgridspec(1, 4), 4), snapshot.ledger)
    return figure


def _draw_model(panels: list[Axes], snapshot: Snapshot, f: Function | None, count: int) -> None:
    """Draw maps of two parameters, and slices along any other number; f is left out where it may not be defined."""
    if count == 2:
        draw_maps(panels, snapshot, f)
    else:
        draw_slices(panels, snapshot, f if contains_slices(snapshot.space) else None)


def _with_model(source: Any, *, model: bool = True) -> Subject:
    """The run to draw; a ValueError if nothing was observed, or if the model failed that is needed."""
    run = Subject.of(source)
    if not run.told:
        raise ValueError("source has no observation, so there is nothing to draw; evaluate at least one point")
    if model and run.ledger is None:
        raise ValueError("source has no model: it failed, and an event of the result says why")
    return run


def _number(space: Space, param: str | int) -> int:
    """The number of a parameter, given by name or number among all, among those that vary."""
    known = plain_axes(space, 2)
    names = names_of(space)
    wanted = names[param] if isinstance(param, int) and -len(names) <= param < len(names) else param
    for number, axis in enumerate(known):
        if axis.name == wanted:
            return number
    raise ValueError(f"params has {param!r}; the parameters that vary are {', '.join(axis.name for axis in known)}")


def _pair(snapshot: Snapshot, params: Any) -> tuple[int, int]:
    """The numbers of two parameters: those that were asked for, or those that matter most."""
    count = len(axes_of(snapshot.space, 2))
    if count < 2:
        raise ValueError(
            "source has 1 parameter; contours draws two: use posterior_1d(result.posterior, lo, hi) or slices(result)"
        )
    if params is not None:
        if isinstance(params, str) or len(params) != 2 or params[0] == params[1]:
            raise ValueError(f"params is {params!r}; give the names of two parameters")
        return _number(snapshot.space, params[0]), _number(snapshot.space, params[1])
    if count == 2:
        return 0, 1
    found = importances_of(snapshot)
    first, second = sorted(int(i) for i in np.argsort([-one.total for one in found], kind="stable")[:2])
    return first, second
