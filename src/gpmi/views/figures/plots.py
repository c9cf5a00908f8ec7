"""Figures of a posterior, of a run, of its ledger and of its front.

Every function returns a Matplotlib Figure; `figure.savefig(path)` writes it. `figures.style` says what the colours
mean. In a run with goals, `output` is the name of the output to draw, by default the single objective. With several
objectives, a figure without `output` has all of them, or the error says which there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpmi._support import checks, refusals
from gpmi.analysis import Importances
from gpmi.analysis import importances as importances_of
from gpmi.gp import Posterior
from gpmi.space import CURVE, Axis, Parameters, Space, axes_of, contains_slices
from gpmi.trials import names_of
from gpmi.views.fidelity_view import curves_of
from gpmi.views.figures.backtest import Backtest, draw_backtest
from gpmi.views.figures.contours import draw_map, draw_maps
from gpmi.views.figures.convergence import groups_of
from gpmi.views.figures.drawing import draw
from gpmi.views.figures.front import draw_front, draw_hypervolume
from gpmi.views.figures.style import (
    add_legend,
    add_panels,
    figure_of,
    label_first_column,
    legend_above,
    new_figure,
    style,
    without_math,
)
from gpmi.views.figures.ternary import draw_ternary
from gpmi.views.figures.traces import draw_ledger, draw_traces
from gpmi.views.front_run import FrontView
from gpmi.views.front_view import complete, pairs_of
from gpmi.views.model_view import bounds_of
from gpmi.views.pictures import calibration as calibration_pictures
from gpmi.views.pictures import convergence as convergence_pictures
from gpmi.views.pictures import importance as importance_pictures
from gpmi.views.pictures.cost import cost as cost_picture
from gpmi.views.pictures.curves import curves as curves_picture
from gpmi.views.pictures.parallel_coordinates import parallel_coordinates
from gpmi.views.pictures.picture import Picture, Ruler
from gpmi.views.pictures.slices import DEVIATION, MEAN, Function, curve, observations, of_function, values_of
from gpmi.views.pictures.slices import slices as slices_of
from gpmi.views.reading import view_of
from gpmi.views.run_view import OutputView, PartView, RunView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

WIDE = 8  # columns of parallel coordinates; the names of more are rotated
LABEL = 2.1  # inches of an entry of a legend; our choice
Source: TypeAlias = Any  # a Result, an Optimizer or a Study
FAILED = "source has no model, because it failed; an event of the result says why"


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
        raise refusals.reworded(error, f"lo is {lo!r} and hi is {hi!r}; give finite numbers with lo < hi") from error
    axis = Axis.of(space.encodings[0], name, slice(0, 1))
    with style():
        figure = new_figure(6.4, 3.8)
        ax = figure.add_subplot()
        rows = axis.along(space.lo)
        bounds = bounds_of(posterior, rows)
        marks, y = curve(axis, rows, bounds, MEAN, DEVIATION), [bounds.ravel()]
        if f is not None:
            y.append(values_of(f, space, rows))
            marks.append(of_function(axis, rows, y[-1]))
        if posterior.n:
            inside = (lo <= posterior.x[:, 0]) & (posterior.x[:, 0] <= hi)
            y.append(posterior.y[inside])
            marks.append(observations(axis, posterior.x[inside], y[-1]))
        draw(ax, Picture("", "", Ruler.of(axis), Ruler.fitted("", np.concatenate(y)), marks))
        ax.set(xlabel=name, ylabel="$y$")
        add_legend(ax, ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    return figure


def front(source: Source, *, ax: Axes | None = None) -> Figure:
    """Draw the front of several objectives: all trials, a staircase, and where the model believes the front to be.

    Blue trials are on the front; pale crosses break a limit. The grey band holds the true front with probability 90 %
    on each ray from the reference, and dashed lines are what was stated as acceptable. With three and more objectives
    there is a panel for each pair; its band is the front of these two alone. An objective with a target is drawn as the
    distance from it. With `ax` there must be two objectives.
    """
    view = _front_view(source)
    pairs = pairs_of(view.goals)
    if not pairs:
        (name,) = view.objectives
        raise ValueError(f"{name} is the only objective, so there is no front to draw; use convergence(run)")
    if ax is not None and len(pairs) > 1:
        raise ValueError(f"ax is given for {len(view.objectives)} objectives, which take a panel a pair; leave ax out")
    with style():
        if ax is None:
            columns = min(3, len(pairs))
            rows = -(-len(pairs) // columns)
            figure = new_figure(*((6.4, 4.6) if len(pairs) == 1 else (4.0 * columns, 0.5 + 3.4 * rows)))
            panels = add_panels(figure, figure.add_gridspec(rows, columns), len(pairs))
        else:
            panels = [ax]
        for panel, pair in zip(panels, pairs, strict=True):
            draw_front(panel, view, pair)
        _add_legend(panels, ax)
    return figure_of(panels[0])


def hypervolume(source: Source, *, ax: Axes | None = None) -> Figure:
    """Draw the hypervolume of the front after each trial with all objectives, and how much is still to be had.

    It is the volume of what the front dominates above a fixed reference: what was stated as acceptable, or beyond the
    worst of the first trials (`FrontLedger.reference`). The band is a 95 % interval of what the best possible front
    would have in addition.
    """
    view = _front_view(source)
    if view.ledger is None:
        raise ValueError(FAILED)
    if view.ledger.reference is None:
        why = f"not known yet: {view.ledger.reference_words}"
        raise ValueError(f"the reference of the hypervolume is {why}")
    with style():
        ax = ax or new_figure(6.4, 3.8).add_subplot()
        draw_hypervolume(ax, view)
    return figure_of(ax)


def contours(
    source: Source,
    f: Function | None = None,
    *,
    params: tuple[str | int, str | int] | None = None,
    output: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw f (if given), the queries in order, the posterior mean and deviation over two parameters.

    `params` are their names or numbers, by default the two that matter most (`gpmi.importances`); the others stay as
    recommended. f is evaluated at every point of a grid, so give it only if it is cheap. With `ax`, only the mean and
    the queries are drawn, into `ax`. With several objectives there is a row for each output, or for `output`.
    """
    views = _views(source, output)
    pair = _pair(views, params)
    if f is not None and (ax is not None or (len(axes_of(views[0].space)) > 2 and not contains_slices(views[0].space))):
        raise ValueError("f is given, but there is one panel, or f may not be defined in this plane; leave f out")
    if ax is not None:
        with style():
            draw_map(ax, _only(views), pair)
        return figure_of(ax)
    with style():
        panels, shape = (3, (1, 3)) if f is None else (4, (2, 2))
        width, height = (10.2, 3.2) if f is None else (7.6, 6.4)
        figure = new_figure(width, height * len(views))
        for view, row in zip(views, _blocks(figure, len(views), shape, panels), strict=True):
            draw_maps(row, view, _part(f, view), pair)
    return figure


def convergence(
    source: Any, *, optimum: float | None = None, output: str | None = None, ax: Axes | None = None
) -> Figure:
    """Draw the best value so far of a run, of a list of runs (median and band), or of a dict of either (one for each).

    The band covers the central 80 % of the runs, or all of fewer than five. With `optimum`, the best value of f, the
    distance from it is drawn, on a logarithmic scale. With several objectives, `output` is one of them; `hypervolume`
    draws all of them together.
    """
    groups = groups_of(source, output)
    with style():
        ax = ax or new_figure(6.4, 3.8).add_subplot()
        runs = [run for group in groups.values() for run in group]
        picture = convergence_pictures.comparison(groups, optimum)
        if len(runs) == 1 and optimum is None:
            picture = replace(picture, marks=convergence_pictures.values(runs[0]).marks)
        draw(ax, picture)
        add_legend(ax)
    return figure_of(ax)


def backtest(source: Any, *, ax: Axes | None = None) -> Figure:
    """Draw a `gpmi.BacktestResult`: the best value after each experiment of gpmi, of batches and of a random order.

    Lines are means. Bands cover the central 80 % of the runs of gpmi one at a time (blue; all of fewer than five) and
    of random orders (grey, exact). The dashed line is the best row of the table, a dotted line the order in which the
    rows were done.
    """
    if not isinstance(source, Backtest):
        raise TypeError(f"source is {checks.shown(source)}; give the result of gpmi.backtest")
    with style():
        ax = ax or new_figure(6.4, 3.8).add_subplot()
        draw_backtest(ax, source)
    return figure_of(ax)


def curves(source: Source, *, output: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw the curve of every trial over its steps, in a run whose fidelity has steps; the best one is thick.

    Blue curves reached the target, grey ones were stopped, black ones are still running. Dashed lines with a grey band
    are where the model believes some of those that were stopped or are running to go on to: the median and 80 %. With
    several objectives there is a panel for each output, or for `output`.
    """
    views = _fidelity_views(source, output, steps=True)
    with style():
        if ax is None:
            figure = new_figure(6.8, 0.3 + 3.9 * len(views))
            panels = add_panels(figure, figure.add_gridspec(len(views), 1), len(views))
        else:
            panels = [_ax_of(ax, views)]
        for panel, view in zip(panels, views, strict=True):
            draw(panel, curves_picture(view))
        _add_legend(panels, ax)
    return figure_of(panels[0])


def cost(source: Source, *, output: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw the best value at the target against what was spent, in a run with a fidelity.

    Marks below are the measurements: a row for each level, or for those that reached the last step and those that did
    not. With several objectives there is a panel for each of them, or for `output`.
    """
    views = _fidelity_views(source, output, steps=False)
    with style():
        if ax is None:
            figure = new_figure(6.8, 3.9 * len(views))
            panels = add_panels(figure, figure.add_gridspec(len(views), 1), len(views))
        else:
            panels = [_ax_of(ax, views)]
        for panel, view in zip(panels, views, strict=True):
            draw(panel, cost_picture(view))
        _add_legend(panels, ax)
    return figure_of(panels[0])


def _fidelity_views(source: Any, output: str | None, *, steps: bool) -> Sequence[OutputView]:
    """Return the outputs to draw of a run with a fidelity. Raise a ValueError if there is nothing to draw.

    With `steps` they are those with a curve, also while no trial has reached the target. Otherwise they are objectives.
    """
    view = view_of(source)
    view.fidelity.check(has_curves=steps)
    default = view.focus if steps else view.objective_views
    views = default if output is None else _views(source, output)
    if not steps and not any(view.told for view in views):
        raise ValueError(f"no trial has reached {view.fidelity.name} {view.fidelity.target}, so there is no value yet")
    if steps and not any(map(curves_of, views)):
        raise ValueError("source has no curve, so there is nothing to draw; report a step first")
    return views


def importances(source: Source, *, output: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw which parameters matter: the first-order and total Sobol indices of `gpmi.importances`, with intervals.

    With several objectives there is a panel for each output, or for `output`.
    """
    views = _judged(_views(source, output))
    indices_by_view = [_importances(view) for view in views]
    with style():
        if ax is None:
            figure = new_figure(6.4, 0.3 + (0.8 + 0.45 * len(indices_by_view[0])) * len(views))
            panels = add_panels(figure, figure.add_gridspec(len(views), 1), len(views))
        else:
            panels = [_ax_of(ax, views)]
        for panel, view, indices in zip(panels, views, indices_by_view, strict=True):
            draw(panel, importance_pictures.importances(view, indices))
        _add_legend(panels, ax)
    return figure_of(panels[0])


def partial_dependence(
    source: Source,
    params: Sequence[str | int] | str | int | None = None,
    *,
    output: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw how f depends on parameters, one panel each: its mean over all others, with a 95 % interval.

    `params` are names or numbers, by default the six that matter most; with `ax`, a single one. With several objectives
    there are rows for each output, or for `output`.
    """
    views = _judged(_views(source, output))
    indices_by_view, axes = [_importances(view) for view in views], axes_of(views[0].space)
    if params is None:
        totals = np.mean([[index.total for index in indices] for indices in indices_by_view], axis=0)
        chosen = [int(i) for i in np.argsort(-totals, kind="stable")[: 6 if ax is None else 1]]
    else:
        chosen = [_number(views[0].space, name) for name in ([params] if isinstance(params, str | int) else params)]
    if ax is not None and len(chosen) != 1:
        raise ValueError(f"ax is given for {len(chosen)} parameters; give one in params, or leave ax out")
    with style():
        if ax is None:
            columns = min(len(chosen), 3)
            rows = -(-len(chosen) // columns)
            figure = new_figure(max(4.2, 2.9 * columns), 0.5 + 2.3 * rows * len(views))
            blocks = _blocks(figure, len(views), (rows, columns), len(chosen))
        else:
            blocks = [[_ax_of(ax, views)]]
        for panels, view, indices in zip(blocks, views, indices_by_view, strict=True):
            y = importance_pictures.effects(view, [indices.each[number] for number in chosen])
            for panel, number in zip(panels, chosen, strict=True):
                draw(panel, importance_pictures.dependence(view, axes[number], indices.each[number], y))
        if ax is None:
            label_first_column([panel for panels in blocks for panel in panels])
        _add_legend(blocks[0], ax)
    return figure_of(blocks[0][0])


def parallel(source: Source, *, ax: Axes | None = None) -> Figure:
    """Draw all parameters together: each trial is a line through its coordinates and its value, the ten best are blue.

    With several objectives the line goes through all outputs, and the trials on the front are blue.
    """
    view = _view(source, model=False)
    picture = parallel_coordinates(view)
    with style():
        panel = ax or new_figure(max(6.4, 1.05 * len(picture.x.named)), 3.8).add_subplot()
        draw(panel, picture)
        if len(picture.x.named) > WIDE:
            panel.tick_params(axis="x", rotation=45)
        _add_legend([panel], ax)
    return figure_of(panel)


def calibration(source: Source, *, output: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw whether the model can be believed: its ordered residuals against those of a correct model.

    With several objectives there is a panel for each output, or for `output`.
    """
    views = _views(source, output)
    with style():
        if ax is None:
            columns = min(3, len(views))
            rows = -(-len(views) // columns)
            figure = new_figure(4.6 if columns == 1 else 3.8 * columns, (4.2 if columns == 1 else 3.6) * rows)
            panels = add_panels(figure, figure.add_gridspec(rows, columns), len(views))
        else:
            panels = [_ax_of(ax, views)]
        for panel, view in zip(panels, views, strict=True):
            assert view.ledger is not None
            draw(panel, calibration_pictures.quantiles(view.ledger))
            panel.set_title(_verdict(view))
            add_legend(panel, loc="upper left")
    return figure_of(panels[0])


def slices(source: Source, f: Function | None = None, *, output: str | None = None) -> Figure:
    """Draw mu and mu +- sd along each parameter through the recommended point, and f (if given).

    Ticks at the bottom show where the queries were. A discrete parameter has an interval at each of its values. Each
    option of a choice is drawn at its own best setting of all other parameters (`options` of the ledger), as soon as
    that is known. With several objectives there are rows for each output, or for `output`, through the trial in the
    middle of the front.
    """
    views = _views(source, output)
    space = views[0].space
    count = len(axes_of(space))
    if f is not None and not contains_slices(space):
        raise ValueError("f is given, but a slice leaves the space, and f may not be defined there; leave f out")
    with style():
        columns = min(count, 4 if count > 6 or count == 4 else 3)
        rows = -(-count // columns)
        figure = new_figure(max(6.4, 2.7 * columns), 0.4 + 2.3 * rows * len(views))
        blocks = _blocks(figure, len(views), (rows, columns), count)
        for view, panels in zip(views, blocks, strict=True):
            _draw_slices(panels, view, _part(f, view))
        _add_legend([panel for panels in blocks for panel in panels], None)
    return figure


def ternary(source: Source, *, output: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw the posterior mean over the three most important components of a mixture, everything else as recommended.

    A mixture is three parameters or more whose sum is fixed, as by the constraint "a + b + c == 1". With several
    objectives there is a triangle for each output, or for `output`.
    """
    views = _views(source, output)
    if not views[0].triangles:
        raise ValueError("source has no mixture: no three parameters with a constraint such as 'a + b + c == 1'")
    with style():
        panels = [_ax_of(ax, views)] if ax is not None else []
        if not panels:
            figure = new_figure(4.4 * len(views), 4.0)
            panels = add_panels(figure, figure.add_gridspec(1, len(views)), len(views))
        for panel, view in zip(panels, views, strict=True):
            draw_ternary(panel, view, view.triangles[0])
    return figure_of(panels[0])


def run(source: Source, f: Function | None = None, *, output: str | None = None) -> Figure:
    """Draw the model at the end of a run, and how the run went: best value, phi_t(x_t) and gamma_hat over time.

    The model is drawn as by `posterior_1d` for one parameter, by `contours` for two, and by `slices` for more.
    f is evaluated at every point that is drawn. With several objectives it is the front, the hypervolume and the values
    of each output; with `output`, the model of that output and its values.
    """
    return _draw_run(_asked(source, output), f)


@singledispatch
def _draw_run(view: RunView, f: Function | None) -> Figure:
    raise NotImplementedError


@_draw_run.register(OutputView)
def _(view: OutputView, f: Function | None) -> Figure:
    """Draw the model at the end of a run, and how the run went."""
    count = len(axes_of(view.space))
    panels = {1: 1, 2: 3 if f is None else 4}.get(count, count)
    columns = min(panels, 4)
    rows = -(-panels // columns)
    with style():
        figure = new_figure(12.6, 2.8 * rows + 2.6)
        grid = figure.add_gridspec(2, 1, height_ratios=[2.8 * rows, 2.3])
        _draw_model(add_panels(figure, grid[0].subgridspec(rows, columns), panels), view, _part(f, view), count)
        _draw_course(view, figure, grid[1])
    return figure


@singledispatch
def _draw_course(view: OutputView, figure: Figure, place: SubplotSpec) -> None:
    """Draw how a run went."""
    draw_traces(add_panels(figure, place.subgridspec(1, 3), 3), view)


@_draw_course.register(PartView)
def _(view: PartView, figure: Figure, place: SubplotSpec) -> None:
    """Draw the values of one output."""
    panel = figure.add_subplot(place)
    draw(panel, convergence_pictures.values(view.as_shown))
    legend_above(panel)


@_draw_run.register(FrontView)
def _(view: FrontView, f: Function | None) -> Figure:
    """Draw the front, the hypervolume and the values of each output of a run with several objectives."""
    pairs, outputs = pairs_of(view.goals)[:3], view.series or tuple(map(view.of_objective, view.objectives))
    has_volume = view.ledger is not None and view.ledger.reference is not None
    with style():
        figure = new_figure(12.6, 6.2)
        grid = figure.add_gridspec(2, 1, height_ratios=[3.6, 2.3])
        above = add_panels(figure, grid[0].subgridspec(1, max(1, len(pairs) + has_volume)), len(pairs) + has_volume)
        for ax, pair in zip(above, pairs, strict=False):
            draw_front(ax, view, pair)
        if has_volume:
            draw_hypervolume(above[-1], view, legend=False)
        below = add_panels(figure, grid[1].subgridspec(1, len(outputs)), len(outputs))
        for ax, output in zip(below, outputs, strict=True):
            draw(ax, convergence_pictures.values(output))
        _add_legend([*above, *below], None)
    return figure


def ledger(source: Source, f: Function | None = None, *, output: str | None = None) -> Figure:
    """Draw what a run knew and how sure it was: the regret's interval, the information, phi and the residuals.

    With one or two parameters the final model is drawn above, as by `run`; f is evaluated at every point of it.
    The interval is computed at most at 8 moments, each under the model of that moment. With several objectives it is
    the hypervolume and the residuals of each output; with `output`, the model of that output and its residuals.
    """
    return _draw_ledger(_asked(source, output), f)


@singledispatch
def _draw_ledger(view: RunView, f: Function | None) -> Figure:
    raise NotImplementedError


@_draw_ledger.register(OutputView)
def _(view: OutputView, f: Function | None) -> Figure:
    """Draw the model of one or two parameters, and what the ledger knows."""
    count = len(axes_of(view.space))
    panels = {1: 1, 2: 3 if f is None else 4}.get(count, 0)
    with style():
        figure = new_figure(12.6, 5.6 if panels else 2.8)
        grid = figure.add_gridspec(2, 1, height_ratios=[2.8, 2.5]) if panels else figure.add_gridspec(1, 1)
        if panels:
            _draw_model(add_panels(figure, grid[0].subgridspec(1, panels), panels), view, _part(f, view), count)
        _draw_numbers(view, figure, grid[grid.nrows - 1])
    return figure


@singledispatch
def _draw_numbers(view: OutputView, figure: Figure, place: SubplotSpec) -> None:
    """Draw what the ledger of a run knows."""
    *traces, last = add_panels(figure, place.subgridspec(1, 4), 4)
    draw_ledger(traces, view)
    _draw_residuals(last, view)


@_draw_numbers.register(PartView)
def _(view: PartView, figure: Figure, place: SubplotSpec) -> None:
    """Draw the residuals of one output."""
    _draw_residuals(figure.add_subplot(place), view)


@_draw_ledger.register(FrontView)
def _(view: FrontView, f: Function | None) -> Figure:
    """Draw the hypervolume and the residuals of each output of a run with several objectives."""
    if view.ledger is None:
        raise ValueError(FAILED)
    has_volume = view.ledger.reference is not None
    with style():
        figure = new_figure(12.6, 3.0)
        count = len(view.each_output) + has_volume
        panels = add_panels(figure, figure.add_gridspec(1, count), count)
        if has_volume:
            draw_hypervolume(panels[0], view, legend=False)
        for ax, part in zip(panels[has_volume:], view.each_output, strict=True):
            _draw_residuals(ax, part)
    return figure


def _draw_residuals(ax: Axes, view: OutputView) -> None:
    assert view.ledger is not None
    draw(ax, calibration_pictures.residuals(view.ledger))
    ax.set_title(_verdict(view))


def _verdict(view: OutputView) -> str:
    assert view.ledger is not None
    name = f"Residuals of {without_math(view.short_name)} / sd" if view.given_name else "Residuals / sd"
    return f"{name}: {view.ledger.calibration.verdict}"


def _draw_model(panels: list[Axes], view: OutputView, f: Function | None, count: int) -> None:
    """Draw maps of two parameters, or slices along any other number. f is left out if it may not be defined there."""
    if count == 2:
        draw_maps(panels, view, f)
    else:
        _draw_slices(panels, view, f if contains_slices(view.space) else None)
        _add_legend(panels, None)


def _draw_slices(panels: list[Axes], view: OutputView, f: Function | None) -> None:
    for panel, picture in zip(panels, slices_of(view, view.axes(CURVE), f), strict=True):
        draw(panel, picture)
        panel.set_xlabel("\n".join([panel.get_xlabel(), picture.caption]).strip())
    label_first_column(panels)


def _view(source: Any, *, model: bool = True) -> RunView:
    """Return the run to draw. Raise a ValueError if nothing was observed, or if a model is needed but failed."""
    view = view_of(source)
    if not view.told:
        raise ValueError("source has no observation, so there is nothing to draw; evaluate at least one point")
    if model and view.ledger is None and not view.output_names:
        raise ValueError(FAILED)
    return view


def _views(source: Any, output: str | None) -> Sequence[OutputView]:
    """Return the outputs to draw: the one that is named, a single objective, or all of them if there are several."""
    view = _view(source)
    return view.focus if output is None else (_named(view, output),)


def _named(view: RunView, output: str) -> OutputView:
    """Return an output. Raise a ValueError if it has no values."""
    name = view.checked_output(output)
    if name not in view.output_names:
        raise ValueError(f"{name} has no value yet, so there is nothing to draw; tell some first")
    return view.of_output(name)


def _asked(source: Any, output: str | None) -> RunView:
    """Return the run to draw as a whole, or one output of it."""
    view = _view(source, model=output is not None)
    return view if output is None else _named(view, output)


def _front_view(source: Any) -> FrontView:
    """Return a run with several objectives. Raise a ValueError if it has none."""
    view = _view(source, model=False)
    view.check_front()
    assert isinstance(view, FrontView)
    measured = complete(view.told, view.goals)
    if not measured:
        raise ValueError("no trial has all objectives yet, so there is no front to draw; tell the other outputs")
    return view


def _only(views: Sequence[OutputView]) -> OutputView:
    if len(views) > 1:
        names = ", ".join(repr(view.key) for view in views)
        raise ValueError(f'ax is given for {len(views)} outputs; give output="...", one of {names}, or leave ax out')
    return views[0]


def _ax_of(ax: Axes, views: Sequence[OutputView]) -> Axes:
    """Return the axes for a single output. Raise a ValueError if there are several."""
    _only(views)
    return ax


def _blocks(figure: Figure, count: int, shape: tuple[int, int], panels: int) -> list[list[Axes]]:
    """Add `count` blocks of panels below each other, each with a grid of this shape."""
    if count == 1:
        return [add_panels(figure, figure.add_gridspec(*shape), panels)]
    outer = figure.add_gridspec(count, 1)
    return [add_panels(figure, outer[i].subgridspec(*shape), panels) for i in range(count)]


def _add_legend(panels: Sequence[Axes], ax: Axes | None) -> None:
    """Add one legend for all panels above them; into `ax` if it was given."""
    if ax is None:
        figure = figure_of(panels[0])
        figure.legend(*_all_labels(panels), ncols=int(figure.get_figwidth() / LABEL), loc="outside upper left")
    else:
        add_legend(ax)


def _all_labels(panels: Sequence[Axes]) -> tuple[list[Any], list[str]]:
    """Return the handles and labels of the legends of all panels, each label once."""
    handles: dict[str, Any] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return list(handles.values()), list(handles)


def _part(f: Function | None, view: OutputView) -> Function | None:
    """Return the function of one output, where f returns a dict of them."""
    if f is None or not callable(f):
        return f
    whole: Callable[[Any], Any] = f

    def part(x: Any) -> Any:
        y = whole(x)
        return y.get(view.key, np.nan) if isinstance(y, Mapping) else y

    return part


def _importances(view: OutputView) -> Importances:
    """Return the Sobol indices of a run. Raise a ValueError if there are too few values to say."""
    return importances_of(view) if view.importances is None else view.importances


def _judged(views: Sequence[OutputView]) -> Sequence[OutputView]:
    """Return the views whose Sobol indices are known; the first one if none is, for its error."""
    return [view for view in views if view.importances is not None] or views[:1]


def _number(space: Space, param: str | int) -> int:
    """Return the number of a parameter among those that vary, from its name or its number among all."""
    varied = axes_of(space, 2)
    names = names_of(space)
    wanted = names[param] if isinstance(param, int) and -len(names) <= param < len(names) else param
    for number, axis in enumerate(varied):
        if axis.name == wanted:
            return number
    raise ValueError(f"params has {param!r}; the parameters that vary are {', '.join(axis.name for axis in varied)}")


def _pair(views: Sequence[OutputView], params: Any) -> tuple[int, int]:
    """Return the numbers of two parameters: those in `params`, or the two that matter most, for all views together."""
    view = views[0]
    count = len(axes_of(view.space, 2))
    if count < 2:
        raise ValueError(
            "source has 1 parameter, but contours draws 2; use posterior_1d(result.posterior, lo, hi) or slices(result)"
        )
    if params is not None:
        if isinstance(params, str) or len(params) != 2 or params[0] == params[1]:
            raise ValueError(f"params is {params!r}; give the names of two parameters")
        return _number(view.space, params[0]), _number(view.space, params[1])
    totals = None if count == 2 else [[index.total for index in view.importances] for view in views if view.importances]
    if not totals:
        return 0, 1
    first, second = sorted(int(i) for i in np.argsort(-np.mean(totals, axis=0), kind="stable")[:2])
    return first, second
