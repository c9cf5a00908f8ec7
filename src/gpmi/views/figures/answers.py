"""Pictures that answer one question each, drawn into axes: how it went, what matters, how f depends on a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi._support.text import shortened
from gpmi._support.types import Array
from gpmi.analysis.importance import Importance
from gpmi.space.axes import Axis
from gpmi.trials import Trial
from gpmi.views.figures.axes import axes_of, label
from gpmi.views.figures.style import BLACK, BLUE, GREY, LIGHT, VERMILION, plain
from gpmi.views.html.subject import Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, in an order in which neighbours differ much.
COLOURS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", BLACK)
FEW = 5  # with fewer runs the band holds all of them, otherwise the central 80 %; our choice
MOST_LINES = 300  # of parallel coordinates: the best, and an even selection of the others; our choice


# Several runs


def groups_of(source: Any) -> dict[str, list[Subject]]:
    """The runs to compare, by label: one run, a list of them, or a mapping from labels to either."""
    if isinstance(source, Mapping):
        named = {str(name): list(runs) if isinstance(runs, list | tuple) else [runs] for name, runs in source.items()}
    else:
        named = {"": list(source) if isinstance(source, list | tuple) else [source]}
    found = {name: [Subject.of(run) for run in runs] for name, runs in named.items()}
    if not found or not all(found.values()):
        raise ValueError("source has no run; give a run, a list of runs, or a dict of them")
    if not any(run.told for runs in found.values() for run in runs):
        raise ValueError("source has no observation, so there is nothing to draw; evaluate at least one point")
    if len({run.goal for runs in found.values() for run in runs}) > 1:
        raise ValueError("source has runs that maximise and runs that minimise; draw them in two pictures")
    return found


def best_so_far(run: Subject) -> Array:
    """The best feasible value after each evaluation, failures counted, (n,); nan before the first."""
    values = [trial.y if trial.feasible else None for trial in _ended(run)]
    sign = 1.0 if run.goal == "max" else -1.0
    best = np.maximum.accumulate([-np.inf if y is None else sign * y for y in values]) if values else np.empty(0)
    return np.where(np.isfinite(best), sign * best, np.nan)


def _ended(run: Subject) -> list[Trial]:
    """The evaluations, failures included, in the order in which they ended."""
    ended = [trial for trial in run.trials if trial.status in ("told", "failed")]
    return sorted(ended, key=lambda trial: trial.order or 0)


def draw_convergence(ax: Axes, groups: Mapping[str, Sequence[Subject]], optimum: float | None) -> None:
    """Draw the best value so far, or its distance from the optimum: a run as a line, several as a median and a band."""
    goal = next(iter(groups.values()))[0].goal
    for (name, runs), colour in zip(groups.items(), COLOURS * (1 + len(groups) // len(COLOURS)), strict=False):
        curves = [best_so_far(run) for run in runs]
        longest = max(len(curve) for curve in curves)
        table = np.stack([_continued(curve, longest) for curve in curves])
        table = table if optimum is None else np.abs(optimum - table)
        t = np.arange(1, longest + 1)
        words = plain(name) + (f" ({len(runs)} runs)" if len(runs) > 1 else "")
        if len(runs) > 1:
            tails = [0.0, 0.5, 1.0] if len(runs) < FEW else [0.1, 0.5, 0.9]
            low, middle, high = np.quantile(table, tails, axis=0)  # nan until all runs have a value
            ax.fill_between(t, low, high, step="post", color=colour, alpha=0.2, linewidth=0.0)
        else:
            (middle,) = table
            if len(groups) == 1 and optimum is None:
                told = runs[0].told
                ax.plot(
                    np.arange(1, len(told) + 1), [trial.y or 0.0 for trial in told], ".", color=GREY, markersize=4.0
                )
        ax.step(t, middle, where="post", color=colour, linewidth=1.6, label=words or "best so far")
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("evaluation")
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    ax.set_ylabel(f"{'largest' if goal == 'max' else 'smallest'} $y$ so far" if optimum is None else "simple regret")
    drawn = [float(v) for curve in ax.get_lines() for v in np.atleast_1d(curve.get_ydata()) if np.isfinite(v)]
    if optimum is not None and min(drawn) > 0.0:
        ax.set_yscale("log")
    if any(groups):
        ax.legend(loc="best")
    ax.grid(True)


def _continued(curve: Array, length: int) -> Array:
    """A run that ended early keeps its best value."""
    return np.concatenate([curve, np.full(length - len(curve), curve[-1] if len(curve) else np.nan)])


# One run


def draw_importances(ax: Axes, run: Subject) -> None:
    """Draw the total and the first-order index of each parameter with their intervals, the largest on top."""
    assert run.importances is not None
    names = {id(one): axis.name for one, axis in zip(run.importances, axes_of(run.space, 2), strict=True)}
    ranked = run.importances.ranked
    at = np.arange(len(ranked), dtype=float)
    for shift, colour, what in ((-0.2, LIGHT, "total"), (0.2, BLUE, "first order")):
        values = [one.total if what == "total" else one.first for one in ranked]
        ends = np.array([one.total_interval if what == "total" else one.first_interval for one in ranked])
        ax.barh(at + shift, values, 0.38, color=colour, edgecolor=BLUE, linewidth=0.6, label=what)
        ax.hlines(at + shift, ends[:, 0], ends[:, 1], color=BLACK, linewidth=1.0)
    ax.set_yticks(at, [shortened(names[id(one)], 24) for one in ranked])
    ax.set_ylim(len(ranked) - 0.5, -0.5)
    ax.set(xlim=(0.0, 1.0), xlabel="share of the variance of $f$ (line: 95 %)")
    ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    ax.grid(True, axis="x")


def draw_dependence(ax: Axes, run: Subject, one: Importance, axis: Axis) -> None:
    """Draw E[f | x_i] with its 95 % interval, and where the queries were."""
    rows = np.zeros((len(one.settings), run.space.dim))
    rows[:, axis.columns] = one.settings
    at, (low, high) = axis.positions(rows), one.effect_interval.T
    if axis.discrete:
        ax.vlines(at, low, high, color=LIGHT, linewidth=7.0, label="95 % interval")
        ax.plot(at, one.effect, "o", color=BLUE, markersize=4.5, label="mean over the others")
    else:
        order = np.argsort(at)
        ax.fill_between(at[order], low[order], high[order], color=LIGHT, linewidth=0.0, label="95 % interval")
        ax.plot(at[order], one.effect[order], color=BLUE, linewidth=1.6, label="mean over the others")
    queries = axis.positions(run.rows)
    how: dict[str, Any] = {"color": BLUE, "alpha": 0.5, "transform": ax.get_xaxis_transform(), "markersize": 9.0}
    ax.plot(queries, np.zeros(len(queries)), "|", **how)
    ax.grid(True)
    label(ax, axis)


def draw_parallel(ax: Axes, run: Subject, axes: Sequence[Axis]) -> None:
    """Draw each trial as a line through its parameters and its value; the better the value, the darker."""
    from matplotlib.collections import LineCollection

    y = np.array([trial.y or 0.0 for trial in run.told])
    shares = [_share(axis, run.rows) for axis in axes]
    lo, hi = float(y.min()), float(y.max())
    shares.append((y - lo) / (hi - lo) if hi > lo else np.full(len(y), 0.5))
    places = np.stack(shares, axis=1)
    places = np.where(np.isfinite(places), places, -0.06)  # an inactive parameter: below its axis
    sign = 1.0 if run.goal == "max" else -1.0
    order = np.argsort(np.where([trial.feasible for trial in run.told], sign * y, -np.inf), kind="stable")
    order = np.concatenate([order[:-10][:: -(-len(order) // MOST_LINES)], order[-10:]])
    x = np.arange(float(places.shape[1]))
    lines = [np.column_stack([x, places[i]]) for i in order]
    ranks = np.linspace(0.15, 1.0, len(order))
    ax.add_collection(LineCollection(lines, cmap="Blues", array=ranks, linewidths=0.9, clim=(0.0, 1.0), clip_on=False))
    ax.plot(x, places[order[-1]], color=VERMILION, linewidth=2.0, label="the best", clip_on=False)
    ax.set(xlim=(-0.1, x[-1] + 0.5), ylim=(-0.08, 1.02), yticks=[])
    names = [*(shortened(axis.name, 14) for axis in axes), "$y$"]
    ax.set_xticks(x, names, rotation=0 if len(x) <= 8 else 45, ha="center" if len(x) <= 8 else "right")
    ax.tick_params(axis="x", length=0.0)
    ends = [_ends(axis) for axis in axes] + [[(0.0, f"{lo:.3g}"), (1.0, f"{hi:.3g}")]]
    for i, marks in enumerate(ends):
        ax.axvline(float(i), color=BLACK, linewidth=0.8, ymin=0.08 / 1.1, ymax=1.08 / 1.1)
        for share, words in marks:
            box = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.8}
            ax.text(i + 0.04, share, plain(shortened(words, 12)), fontsize=7.0, va="center", bbox=box)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.set_title(f"Each trial a line; the {'largest' if run.goal == 'max' else 'smallest'} $y$ is vermilion")


def _share(axis: Axis, rows: Array) -> Array:
    """Where points lie along an axis, from 0 to 1."""
    lo, hi = axis.limits
    at = axis.positions(rows)
    if axis.log:
        lo, hi, at = float(np.log(lo)), float(np.log(hi)), np.log(at)
    share: Array = (at - lo) / (hi - lo)
    return share


def _ends(axis: Axis) -> list[tuple[float, str]]:
    """The smallest and the largest value of an axis, or its words, with their places."""
    rows = np.zeros((len(axis.settings), axis.columns.stop))
    rows[:, axis.columns] = axis.settings
    shares = _share(axis, rows)
    if axis.labels is not None:
        some = range(0, len(axis.labels), -(-len(axis.labels) // 6))
        return [(float(shares[i]), axis.labels[i]) for i in some]
    at = axis.positions(rows)
    return [(float(shares[i]), f"{at[i]:.3g}") for i in (0, -1)]


def draw_calibration(ax: Axes, run: Subject) -> None:
    """Draw the ordered residuals against those of a model that is right, and where 95 % of them would be."""
    from scipy.special import betaincinv, ndtri

    assert run.ledger is not None
    calibration = run.ledger.calibration
    z = np.sort(calibration.ahead)
    n = len(z)
    ax.set_title(f"Residuals / sd: {calibration.verdict}")
    ax.set(xlabel="expected of a model that is right", ylabel="observed")
    if n == 0:
        ax.text(0.5, 0.5, "no value has been predicted yet", color=GREY, ha="center", transform=ax.transAxes)
        ax.set(xticks=[], yticks=[])
        return
    k = np.arange(1.0, n + 1.0)
    expected = ndtri((k - 0.5) / n)
    # The k-th of n uniform numbers is Beta(k, n + 1 - k).
    low, high = (ndtri(betaincinv(k, n + 1.0 - k, share)) for share in (0.025, 0.975))
    ax.fill_between(expected, low, high, color=LIGHT, linewidth=0.0, label="95 % if it is right")
    reach = max(2.0, float(expected[-1]))
    ax.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=0.8)
    ax.plot(expected, z, "o", color=BLUE, markersize=3.5, label=f"{n} residuals")
    ax.legend(loc="upper left")
    ax.grid(True)
