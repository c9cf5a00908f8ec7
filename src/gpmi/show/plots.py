"""Pictures of a posterior and of a run. Every function returns a matplotlib Figure; `figure.savefig(path)` writes it.

Colours mean the same everywhere: blue is what the model believes and what was observed, grey its deviation, black the
true function, vermilion the point it recommends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import moments_in_chunks
from gpmi.ledger.account import Ledger
from gpmi.optimizer import Optimizer, Trial
from gpmi.prior.warp import IDENTITY, Warp
from gpmi.run import Result
from gpmi.space import Candidates, Choice, Int, Parameter, Parameters, Space
from gpmi.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpecBase

_Function: TypeAlias = Callable[[Any], float]  # of one point, in the form of the space

BLUE, VERMILION, BLACK, GREY, LIGHT = "#0072B2", "#D55E00", "#222222", "#8C8C8C", "#D9D9D9"  # after Okabe and Ito
CURVE, GRID, ROWS = 401, 101, 20_000  # points of a curve, along each side of a map, and of a set drawn point by point
FEW = 30  # so many values of a discrete parameter are drawn one by one
LOOKS = 16  # steps at which the regret's interval is computed
NUMBERED = 12  # so many of the first queries carry their number
SHARES = np.array([0.08, 0.16, 0.24, 0.32, 0.4, 0.48, 0.56, 0.64, 0.72, 0.8, 0.87, 0.93, 0.97, 0.99])  # below a level
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


# What the user calls


def posterior_1d(
    posterior: Posterior, lo: float, hi: float, *, f: _Function | None = None, name: str = "$x$"
) -> Figure:
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
    axis = _Axis.of(space.parameters[0], name, slice(0, 1))
    with _style():
        figure = _figure(6.4, 3.8)
        ax = figure.add_subplot()
        _curve(ax, posterior, axis, space.lo, None if f is None else (f, space))
        if posterior.n:
            inside = (lo <= posterior.x[:, 0]) & (posterior.x[:, 0] <= hi)
            _crosses(ax, posterior.x[inside, 0], posterior.y[inside])
        ax.set_ylabel("$y$")
        ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    return figure


def contours(source: Result | Optimizer, f: _Function | None = None) -> Figure:
    """Draw f (if given), the queries in order, the posterior mean and deviation over two parameters.

    f is evaluated at every point of a grid: give it only where it is cheap.
    """
    result = _checked(source)
    _require_two(result.space)
    with _style():
        panels = 3 if f is None else 4
        figure = _figure(*((10.2, 3.2) if f is None else (7.6, 6.4)))
        _maps(_panels(figure, figure.add_gridspec(*((1, 3) if f is None else (2, 2))), panels), result, f)
    return figure


def slices(source: Result | Optimizer, f: _Function | None = None) -> Figure:
    """Draw mu and mu +- sd along each parameter through the recommended point, and f (if given).

    Ticks at the bottom say where the queries were; an interval is drawn at each value of a discrete parameter.
    """
    result = _checked(source)
    count = len(_axes(result.space))
    if f is not None and not _reaches(result.space):
        raise ValueError("f is given, but a slice leaves the candidates, where f may not be defined; leave f out")
    with _style():
        columns = min(count, 4 if count > 6 or count == 4 else 3)
        rows = -(-count // columns)
        figure = _figure(max(6.4, 2.7 * columns), 0.4 + 2.3 * rows)
        _slices(_panels(figure, figure.add_gridspec(rows, columns), count), result, f)
    return figure


def run(source: Result | Optimizer, f: _Function | None = None) -> Figure:
    """Draw the model at the end of a run, and how the run went: best value, phi_t(x_t) and gamma_hat over time.

    The model is drawn as by `contours` with two parameters, as by `posterior_1d` with one, as by `slices` with more;
    f is evaluated at every point that is drawn.
    """
    result = _checked(source)
    axes = _axes(result.space)
    panels = {1: 1, 2: 3 if f is None else 4}.get(len(axes), len(axes))
    columns = min(panels, 4)
    rows = -(-panels // columns)
    with _style():
        figure = _figure(12.6, 2.8 * rows + 2.6)
        grid = figure.add_gridspec(2, 1, height_ratios=[2.8 * rows, 2.3])
        model = _panels(figure, grid[0].subgridspec(rows, columns), panels)
        if len(axes) == 2:
            _maps(model, result, f)
        else:
            _slices(model, result, f if _reaches(result.space) else None)
        _traces(_panels(figure, grid[1].subgridspec(1, 3), 3), result)
    return figure


def ledger(source: Result | Optimizer, f: _Function | None = None) -> Figure:
    """Draw what a run knew and how sure it was: the regret's interval, the information, phi and the residuals.

    With one or two parameters the model at the end is drawn above, as by `run`; f is evaluated at every point of it.
    The interval is computed at LOOKS steps at most, under the model of each.
    """
    result = _checked(source)
    assert result.ledger is not None
    axes = _axes(result.space)
    panels = {1: 1, 2: 3 if f is None else 4}.get(len(axes), 0)
    with _style():
        figure = _figure(12.6, 5.6 if panels else 2.8)
        grid = figure.add_gridspec(2, 1, height_ratios=[2.8, 2.5]) if panels else figure.add_gridspec(1, 1)
        model = _panels(figure, grid[0].subgridspec(1, panels), panels) if panels else []
        if panels > 1:
            _maps(model, result, f)
        elif panels:
            _slices(model, result, f if _reaches(result.space) else None)
        _accounts(_panels(figure, grid[grid.nrows - 1].subgridspec(1, 4), 4), result.ledger)
    return figure


# The axes of a space


@dataclass(frozen=True)
class _Axis:
    """One parameter as an axis of a picture."""

    name: str
    columns: slice  # its coordinates
    settings: Array  # (k, width), the values that are drawn, in the kernel's coordinates
    discrete: bool = False
    log: bool = False
    labels: tuple[str, ...] | None = None  # of the options of a Choice

    @staticmethod
    def of(parameter: Parameter, name: str, columns: slice, points: int = CURVE) -> _Axis:
        if isinstance(parameter, Choice):
            labels = tuple(_plain(str(option)) for option in parameter.options)
            return _Axis(name, columns, parameter.levels, discrete=True, labels=labels)
        if isinstance(parameter, Int):
            settings = _some(parameter.levels, points)
            return _Axis(name, columns, settings, len(parameter.levels) <= FEW, parameter.log)
        lo, hi = parameter.ends[:, 0]
        return _Axis(name, columns, np.linspace(lo, hi, points)[:, None], log=parameter.log)

    def positions(self, rows: Array) -> Array:
        """Where points with coordinates (m, d) lie on this axis, (m,)."""
        part = rows[:, self.columns]
        if self.labels is not None:
            return np.asarray(np.argmax(part, axis=1), dtype=float)
        values: Array = np.exp(part[:, 0]) if self.log else part[:, 0]
        return values

    def along(self, row: Array) -> Array:
        """The points (k, d) in which this parameter takes each of its settings and the others stay as in row (d,)."""
        rows = np.tile(row, (len(self.settings), 1))
        rows[:, self.columns] = self.settings
        return rows

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the axis; cells of half a step are added around discrete values."""
        if self.labels is not None:
            return -0.5, len(self.labels) - 0.5
        lo, hi = (np.exp(self.settings) if self.log else self.settings)[[0, -1], 0]
        step = (hi - lo) / (len(self.settings) - 1) if hi > lo else 1.0
        margin = 0.5 * step if self.discrete else 0.0
        return float(lo - margin), float(hi + margin)

    @property
    def edges(self) -> Array:
        """The borders between the settings, (k + 1,), ends included."""
        at = np.arange(float(len(self.settings))) if self.labels is not None else self.settings[:, 0]
        at = np.exp(at) if self.log else at
        lo, hi = self.limits
        return np.concatenate([[lo], (at[1:] + at[:-1]) / 2.0, [hi]])

    def label(self, ax: Axes, which: str = "x") -> None:
        """Name, scale and ticks of this axis."""
        x = which == "x"
        (ax.set_xlabel if x else ax.set_ylabel)(self.name)
        if self.log:
            (ax.set_xscale if x else ax.set_yscale)("log")
        (ax.set_xlim if x else ax.set_ylim)(*self.limits)
        axis = ax.xaxis if x else ax.yaxis
        if self.labels is not None:
            axis.set_ticks(range(len(self.labels)), self.labels)
        elif self.discrete and not self.log:
            from matplotlib.ticker import MaxNLocator

            axis.set_major_locator(MaxNLocator(nbins=6, integer=bool(np.all(self.settings == np.round(self.settings)))))


def _axes(space: Space, points: int = CURVE) -> list[_Axis]:
    """An axis for each parameter, with at most so many settings of a parameter of numbers."""
    assert isinstance(space, Parameters | Candidates)
    count = len(space.parameters if isinstance(space, Parameters) else space.choices)
    formulas = ["$x$"] if count == 1 else [f"$x_{{{i + 1}}}$" for i in range(count)]
    names = formulas if space.names is None else [_plain(name) for name in space.names]
    if isinstance(space, Parameters):
        parts = zip(space.parameters, names, space.columns, strict=True)
        return [_Axis.of(parameter, name, columns, points) for parameter, name, columns in parts]
    axes, start = [], 0
    for choice, name in zip(space.choices, names, strict=True):
        columns = slice(start, start + (1 if choice is None else choice.width))
        start = columns.stop
        if choice is not None:
            axes.append(_Axis.of(choice, name, columns))
        else:
            values = np.unique(space.encoded[:, columns])[:, None]
            axes.append(_Axis(name, columns, _some(values, points), discrete=len(values) <= FEW))
    return axes


def _plain(name: str) -> str:
    """A user's word as it is: its dollars do not start a formula."""
    return name.replace("$", r"\$")


def _reaches(space: Space) -> bool:
    """Whether slices stay within the space: they leave a finite set of candidates."""
    return not isinstance(space, Candidates) or len(space.choices) == 1


# The parts of the pictures


def _curve(
    ax: Axes,
    posterior: Posterior,
    axis: _Axis,
    row: Array,
    true: tuple[_Function, Space] | None,
    warp: Warp = IDENTITY,
) -> None:
    """mu, mu +- sd and f along an axis through the point with coordinates row, in units of y."""
    rows = axis.along(row)
    at = axis.positions(rows)
    low, mu, high = _band(posterior, rows, warp)
    if axis.discrete:
        error = np.stack([mu - low, high - mu])
        ax.errorbar(at, mu, error, fmt="none", color=LIGHT, elinewidth=7.0, label=r"$\mu \pm \sigma$")
        ax.plot(at, mu, "o", color=BLUE, markersize=4.5, label=_centre(warp))
    else:
        ax.fill_between(at, low, high, color=LIGHT, linewidth=0.0, label=r"$\mu \pm \sigma$")
        ax.plot(at, mu, color=BLUE, linewidth=1.6, label=_centre(warp))
    if true is not None:
        form = {"linestyle": "none", "marker": "_"} if axis.discrete else {"linestyle": (0, (4, 2))}
        ax.plot(at, _values(*true, rows), color=BLACK, linewidth=1.0, label="$f$", **form)
    ax.grid(True)
    axis.label(ax)


def _crosses(ax: Axes, at: Array, y: Array) -> None:
    """Observations."""
    how: dict[str, Any] = {"color": BLUE, "markersize": 6.0, "markeredgewidth": 1.4, "zorder": 3, "clip_on": False}
    ax.plot(at, y, "x", label="observations", **how)


def _slices(panels: list[Axes], result: Result, f: _Function | None) -> None:
    """A curve for each parameter, on a common scale."""
    posterior, row = _model(result)
    trials = _told(result)
    queries = np.array([result.space.encode(trial.x) for _, trial in trials])
    alone = len(panels) == 1
    for i, (ax, axis) in enumerate(zip(panels, _axes(result.space), strict=True)):
        _curve(ax, posterior, axis, row, None if f is None else (f, result.space), result.warp)
        at = axis.positions(queries)
        if alone:
            _crosses(ax, at, np.array([trial.y for _, trial in trials]))
        else:
            ax.plot(
                at, np.zeros(len(at)), "|", color=BLUE, alpha=0.5, transform=ax.get_xaxis_transform(), markersize=9.0
            )
        ax.plot(axis.positions(row[None]), result.warp.inverse(posterior.mu(row)), "*", **_star(), label="recommended")
        if i:
            ax.sharey(panels[0])
        cell = ax.get_subplotspec()
        first = cell is not None and cell.is_first_col()
        ax.tick_params(labelleft=first)
        ax.set_ylabel("$y$" if first else "")
    figure = panels[0].get_figure()
    assert figure is not None
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=5, loc="outside upper left")


def _maps(panels: list[Axes], result: Result, f: _Function | None) -> None:
    """f, the queries, mu and sd over two parameters. f and mu have the same colours."""
    from matplotlib.ticker import MaxNLocator

    posterior, recommended = _model(result)
    sheet = _Sheet.of(result.space)
    low, mu, high = _band(posterior, sheet.rows, result.warp)
    sd = 0.5 * (high - low)
    true = None if f is None else _values(f, result.space, sheet.rows)
    shown = mu if true is None else true
    levels = _levels(shown, mu, best_is_large=result.goal == "max")
    *function, queries, mean, deviation = panels
    if true is not None:
        sheet.fill(function[0], true, levels, "viridis", "Function $f$")
    sheet.lines(queries, shown, levels)
    _queries(queries, result, sheet)
    sheet.fill(mean, mu, levels, "viridis", _centre(result.warp).capitalize())
    steps = np.array(MaxNLocator(9).tick_values(0.0, float(sd.max()) or 1.0))
    sheet.fill(deviation, sd, steps, "Greys", r"Posterior deviation $\sigma$")
    for ax in (queries, mean, deviation):
        hollow = {"markerfacecolor": "none", "markeredgecolor": VERMILION} if ax is queries else {}
        ax.plot(*sheet.positions(recommended[None]), "*", **{**_star(), **hollow})


@dataclass(frozen=True)
class _Sheet:
    """The points of a map over two parameters."""

    axes: tuple[_Axis, _Axis]
    rows: Array  # (m, d)
    shape: tuple[int, int] | None  # of the grid they make; None for scattered points

    @staticmethod
    def of(space: Space) -> _Sheet:
        a, b = _axes(space, CURVE if isinstance(space, Candidates) else GRID)
        shape = len(a.settings), len(b.settings)
        if isinstance(space, Candidates):
            rows = np.unique(space.encoded, axis=0)
            if len(rows) < shape[0] * shape[1] or len(rows) > ROWS:
                return _Sheet((a, b), rows[:: -(-len(rows) // ROWS)], None)
        return _Sheet((a, b), np.concatenate([b.along(row) for row in a.along(space.lo)]), shape)

    @property
    def smooth(self) -> bool:
        return self.shape is not None and not any(axis.discrete for axis in self.axes)

    def positions(self, rows: Array) -> tuple[Array, Array]:
        return self.axes[0].positions(rows), self.axes[1].positions(rows)

    def _grid(self, values: Array) -> list[Array]:
        return [part.reshape(self.shape or (-1,)) for part in (*self.positions(self.rows), values)]

    def fill(self, ax: Axes, values: Array, levels: Array, cmap: str, title: str) -> None:
        """Values as filled contours, cells or dots, with their scale."""
        from matplotlib import colormaps
        from matplotlib.colors import BoundaryNorm, ListedColormap

        darkest = 0.75 if cmap == "Greys" else 1.0
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
        _scale(ax, drawn, ticks=levels[:: -max(1, len(levels) // 6)], spacing="uniform")

    def lines(self, ax: Axes, values: Array, levels: Array) -> None:
        """Values as thin lines, or the points alone where there are no lines: a background."""
        inner = levels[(levels > values.min()) & (levels < values.max())]
        if self.smooth and len(inner):
            ax.contour(*self._grid(values), levels=inner, colors=LIGHT, linewidths=0.6, linestyles="solid")
        elif self.shape is None:
            ax.plot(*self.positions(self.rows), ".", color=LIGHT, markersize=3.0, rasterized=True)

    def frame(self, ax: Axes, title: str) -> None:
        self.axes[0].label(ax, "x")
        self.axes[1].label(ax, "y")
        ax.set_title(title)


def _queries(ax: Axes, result: Result, sheet: _Sheet) -> None:
    """The queries, darker with time: crosses for the initial design and points told unasked, dots for the policy's."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    trials = _told(result)
    order = np.array([t for t, _ in trials])
    chosen = np.array([trial.origin == "policy" for _, trial in trials])
    x, y = sheet.positions(np.array([result.space.encode(trial.x) for _, trial in trials]))
    sheet.frame(ax, "Queries in order (\N{MULTIPLICATION SIGN} initial)")
    scale: dict[str, Any] = {
        "cmap": LinearSegmentedColormap.from_list("order", ["#9ECAE1", BLUE, "#08254A"]),
        "vmin": 1,
        "vmax": max(2, len(result.trials)),
        "s": 26.0,
        "clip_on": False,
        "zorder": 3,
    }
    ax.scatter(x[~chosen], y[~chosen], c=order[~chosen], marker="x", linewidths=1.4, **scale)
    drawn = ax.scatter(x[chosen], y[chosen], c=order[chosen], linewidths=0.5, edgecolors="white", **scale)
    _scale(ax, drawn, ticks=MaxNLocator(6, integer=True))
    places = ax.transAxes.inverted().transform(ax.transData.transform(np.column_stack([x, y])))
    for i, place in enumerate(places[:NUMBERED]):
        if all(np.hypot(*(place - other)) > 0.06 for other in places[:i]):  # the first of several close together
            inward = tuple(np.where(place > 0.93, -9.0, 4.0))
            how: dict[str, Any] = {"fontsize": 7.5, "color": BLACK, "zorder": 4}
            ax.annotate(str(order[i]), tuple(place), inward, "axes fraction", "offset points", **how)


def _scale(ax: Axes, drawn: Any, **how: Any) -> None:
    """The colour bar of what was drawn."""
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(drawn, ax=ax, aspect=25, pad=0.04, **how)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.0, labelsize=8.0)
    bar.ax.minorticks_off()


def _traces(panels: list[Axes], result: Result) -> None:
    """The best value, phi_t(x_t) (or the deviation, for a policy without phi) and gamma_hat at each evaluation."""
    from matplotlib.ticker import MaxNLocator

    told = _told(result)
    chosen = [(t, trial) for t, trial in told if trial.origin == "policy"]
    phi = [(t, trial.phi) for t, trial in chosen if trial.phi is not None]
    sd = [(t, trial.sd) for t, trial in chosen if trial.sd is not None]
    gamma_hat = [(t, trial.gamma_hat) for t, trial in chosen if trial.gamma_hat is not None]
    best, bonus, paid = panels
    first = chosen[0][0] if chosen else len(result.trials) + 1
    for ax in panels:
        ax.set(xlabel="evaluation $t$", xlim=(0.5, max(2, len(result.trials)) + 0.5))
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.grid(True)
        if first > 1:
            ax.axvspan(0.5, first - 0.5, color=LIGHT, alpha=0.45, linewidth=0.0, zorder=0, label="initial design")
    _best(best, result, told)
    if phi:
        _trace(bonus, phi, r"Bonus at the query $\phi_t(x_t)$")
        _widen(bonus, [value for _, value in phi])
    else:
        _trace(bonus, sd, r"Deviation at the query $\sigma_t(x_t)$")
        _widen(bonus, [value for _, value in sd])
    _trace(paid, gamma_hat, r"Variance paid for before $t$, $\hat\gamma_{t-1}$")


def _accounts(panels: list[Axes], ledger: Ledger) -> None:
    """The simple regret's interval, the information, phi_t(x_t) and the residuals at each value told."""
    from matplotlib.ticker import MaxNLocator

    regret, information, bonus, residuals = panels
    for ax in panels:
        ax.set(xlabel="values told $t$", xlim=(0.5, max(2, ledger.n) + 0.5))
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.grid(True)
    _regret(regret, ledger)
    steps = ledger.steps
    told = [(step.t, step.information) for step in steps if step.information is not None]
    gathered = [(t, float(total)) for (t, _), total in zip(told, np.cumsum([i for _, i in told]), strict=True)]
    _trace(information, [(t, total) for t, total in gathered if np.isfinite(total)], "Information, nats")
    phi = [(step.t, step.phi) for step in steps if step.phi is not None]
    _trace(bonus, phi, r"Bonus $\phi_t(x_t)$ ($\circ$ exploited)" if phi else r"The policy has no $\phi$")
    _widen(bonus, [value for _, value in phi])
    exploited = [(step.t, step.phi) for step in steps if step.phi is not None and step.choice == "exploited"]
    hollow: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": BLUE, "markersize": 4.0}
    bonus.plot([t for t, _ in exploited], [phi for _, phi in exploited], "o", **hollow)
    _residuals(residuals, ledger)


def _regret(ax: Axes, ledger: Ledger) -> None:
    """The 95 % interval and the median of the simple regret, at LOOKS steps at most, once the policy has chosen."""
    first = next((step.t for step in ledger.steps if step.choice is not None), ledger.n)
    looks = np.unique(np.linspace(first, ledger.n, LOOKS).round().astype(int))
    found = [ledger.regret(int(t)) for t in looks]
    low, high = np.array([regret.interval() for regret in found]).T
    middle = np.array([np.median(regret.simple) for regret in found])
    positive = high[high > 0.0]
    if len(positive) and positive.max() > 100.0 * positive.min():
        floor = 0.1 * float(positive.min())
        low, middle, high = (np.maximum(values, floor) for values in (low, middle, high))
        ax.set_yscale("log")
        ax.set_ylim(bottom=floor)
    else:
        ax.set_ylim(bottom=0.0, top=1.05 * float(high.max()) or 1.0)
    ax.fill_between(looks, low, high, color=LIGHT, linewidth=0.0, label="95 % interval")
    ax.plot(looks, middle, color=BLUE, linewidth=1.6, label="median")
    ax.set_title(r"Simple regret, $\max f - f$(recommended)")
    ax.legend(loc="best")


def _residuals(ax: Axes, ledger: Ledger) -> None:
    """The one-step-ahead residuals on the central 50 % and 95 % of N(0, 1)."""
    z = [(step.t, step.surprise) for step in ledger.steps if step.surprise is not None]
    for width, shade in ((1.96, 0.45), (0.674, 0.9)):
        ax.axhspan(-width, width, color=LIGHT, alpha=shade, linewidth=0.0, zorder=0)
    ax.plot([t for t, _ in z], [value for _, value in z], ".", color=BLUE, markersize=5.0)
    ax.set_title(f"Residuals / sd: {ledger.calibration.verdict}")
    reach = max([3.0, *(abs(value) for _, value in z)])
    ax.set_ylim(-1.08 * reach, 1.08 * reach)


def _trace(ax: Axes, values: list[tuple[int, float]], title: str) -> None:
    ax.set_title(title)
    ax.plot([t for t, _ in values], [v for _, v in values], color=BLUE, linewidth=1.2, marker=".", markersize=4.0)
    if not values:
        ax.text(0.5, 0.5, "the policy has chosen no query yet", color=GREY, ha="center", transform=ax.transAxes)
        ax.set_yticks([])


def _widen(ax: Axes, values: list[float]) -> None:
    """A logarithmic scale for values of several orders of magnitude; those that rounding made <= 0 are left out."""
    positive = [value for value in values if value > 0.0]
    if positive and max(positive) > 100.0 * min(positive):
        ax.set_yscale("log", nonpositive="mask")


def _best(ax: Axes, result: Result, told: list[tuple[int, Trial]]) -> None:
    t, y = np.array([(t, trial.y) for t, trial in told], dtype=float).T
    best = (np.maximum if result.goal == "max" else np.minimum).accumulate(y)
    ax.plot(t, y, ".", color=GREY, markersize=4.0, label="observed")
    ax.step(t, best, where="post", color=BLUE, linewidth=1.6, label="best so far")
    ax.set_title("Best value so far")
    ax.legend(loc="lower right" if result.goal == "max" else "upper right")


# Numbers


def _band(posterior: Posterior, rows: Array, warp: Warp) -> tuple[Array, Array, Array]:
    """mu - sd, mu and mu + sd at the points rows (m, d), in units of y."""
    mu, var = moments_in_chunks(posterior, rows)
    sd = np.sqrt(var)
    return warp.inverse(mu - sd), warp.inverse(mu), warp.inverse(mu + sd)


def _centre(warp: Warp) -> str:
    """What the middle of a band is."""
    return "posterior median" if warp.bends else r"posterior mean $\mu$"


def _values(f: _Function, space: Space, rows: Array) -> Array:
    """f at the points with coordinates rows (m, d)."""
    if not callable(f):
        raise TypeError(f"f is {f!r}; give a function of one point, or leave it out")
    values = np.array([np.asarray(f(space.decode(row)), dtype=float).item() for row in rows])
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"f returned {values[bad]} at x = {space.decode(rows[bad])!r}; leave f out of the picture")
    return values


def _levels(values: Array, others: Array, *, best_is_large: bool) -> Array:
    """Levels that cover values and others: equal areas of `values` between them, and smaller ones near the best.

    So a function of any skewness shows its shape, and where its optimum is.
    """
    lo, hi = min(values.min(), others.min()), max(values.max(), others.max())
    size = max(abs(lo), abs(hi))
    if hi - lo <= 1e-9 * size:
        return np.array([lo, hi]) + np.array([-0.5, 0.5]) * (size or 1.0)
    distinct = np.unique(values)
    if len(distinct) <= len(SHARES):
        inner = (distinct[1:] + distinct[:-1]) / 2.0
    else:
        inner = np.quantile(values, SHARES if best_is_large else 1.0 - SHARES, method="nearest")
    step = 10.0 ** np.floor(np.log10((hi - lo) / 100.0))  # levels of two or three digits
    rounded = np.round(inner / step) * step
    return np.unique(np.concatenate([[np.floor(lo / step) * step, np.ceil(hi / step) * step], rounded]))


def _some(values: Array, most: int) -> Array:
    """At most `most` of the ascending values (k, 1), evenly spread, with both ends."""
    if len(values) <= most:
        return values
    wanted = np.linspace(values[0, 0], values[-1, 0], most)
    return np.take(values, np.unique(np.searchsorted(values[:, 0], wanted).clip(0, len(values) - 1)), axis=0)


# Checks and set-up


def _checked(source: Any) -> Result:
    """The result to draw."""
    if isinstance(source, Optimizer):
        source = Result.of(source, "running")
    if not isinstance(source, Result):
        raise TypeError(f"source is {source!r}; give what maximize returned, or an Optimizer")
    if source.posterior is None:
        raise ValueError("source has no observation, so there is nothing to draw; evaluate at least one point")
    return source


def _model(result: Result) -> tuple[Posterior, Array]:
    """The posterior and the coordinates of the recommended point."""
    assert result.posterior is not None
    return result.posterior, result.space.encode(result.recommended)


def _told(result: Result) -> list[tuple[int, Trial]]:
    """The trials with a value, each with its place t = 1, 2, ... in the run."""
    return [(t, trial) for t, trial in enumerate(result.trials, 1) if trial.status == "told"]


def _require_two(space: Space) -> None:
    count = len(_axes(space, 2))
    if count != 2:
        remedy = "posterior_1d(result.posterior, lo, hi)" if count == 1 else "slices(result)"
        raise ValueError(f"source has {count} parameter{'s'[: count != 1]}; contours draws two: use {remedy}")


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def _panels(figure: Figure, grid: GridSpecBase, count: int) -> list[Axes]:
    """The first `count` cells of a grid, row by row."""
    return [figure.add_subplot(grid[divmod(i, grid.ncols)]) for i in range(count)]


def _style() -> Any:
    """The library's style, for as long as a figure is drawn."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "gpmi[plots]"') from error
    return matplotlib.rc_context(STYLE)


def _star() -> dict[str, Any]:
    """How the recommended point is marked."""
    return {
        "color": VERMILION,
        "markersize": 12.0,
        "markeredgecolor": "white",
        "markeredgewidth": 0.8,
        "zorder": 5,
        "clip_on": False,
    }
