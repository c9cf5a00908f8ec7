"""The paper's figures, drawn again, and one that the paper does not have: what a lock-in looks like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi.gp.kernels import RBF
from gpmi.gp.posterior import Posterior
from gpmi.views.figures.plots import posterior_1d
from gpmi.views.figures.style import BLACK, new_figure, style
from paper.bounds import Bounds
from paper.experiment import (
    ALGORITHMS,
    BESIDE,
    DEFAULT,
    DELTAS,
    ERRATUM,
    OWN_SCALES,
    PANELS,
    PLACE_KNOWN,
    VALUE_KNOWN,
    with_delta,
)
from paper.summary import Summaries, Summary, half_interval
from paper.tasks import HIMMELBLAU, TASKS
from paper.tasks.fixed import SIDE, without_suffix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Mapping[str, str] = {
    "GP-MI": "#0072B2",
    "GP-UCB": "#222222",
    "GP-UCB / 5": "#8C8C8C",
    "EI, best observed": "#009E73",
    "EI, best mean": "#7FCEB5",
    "Corollary 1": "#E69F00",
    "Thompson": "#CC79A7",
    DEFAULT: "#D55E00",
    PLACE_KNOWN: "#56B4E9",
    VALUE_KNOWN: "#F0E442",
}
# Solid below, dashed above: where two curves are equal, as those of the two EIs without noise, both are seen.
DASHES: Mapping[str, Any] = {
    "GP-UCB / 5": (0, (5, 2)),
    "EI, best mean": (0, (3, 3)),
    "Corollary 1": (0, (1, 1)),
    "Thompson": (0, (6, 2, 1, 2)),
    DEFAULT: (0, (4, 1.5)),
    VALUE_KNOWN: (0, (2, 2)),
}
_RATIO = 8.0  # a panel whose curves end this many times below its top has a logarithmic axis; our choice
_POINTS = 80  # of a curve, which keeps the files small; our choice
OWN = ", a lengthscale for each coordinate"
_TITLES: Mapping[str, str] = {
    "generated-2": "Generated GP (d = 2)",
    "generated-4": "Generated GP (d = 4)",
    "mixture": "Gaussian mixture",
    "himmelblau": "Himmelblau",
    "branin": "Branin",
    "goldstein-price": "Goldstein-Price",
    "tsunami": "Tsunamis",
    "mackey-glass": "Mackey-Glass",
    "generated-2-nu-3": "Generated GP (d = 2), nu = 3",
    "generated-4-nu-3": "Generated GP (d = 4), nu = 3",
    "log-goldstein-price": "Logarithm of Goldstein-Price",
    "arms": "50 independent arms",
    "line": "A smooth draw on a line",
}
TITLES = {**_TITLES, **{name: _TITLES[without_suffix(name)] + OWN for name in OWN_SCALES}}


def save(figures: Mapping[str, Figure], folder: Path) -> None:
    """Each figure as name.svg and name.png; the same figures give the same bytes."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "gpmi"}):
        for name, figure in figures.items():
            for suffix, metadata in ((".svg", {"Date": None}), (".png", None)):
                half_written = folder / f".{name}{suffix}"
                figure.savefig(half_written, format=suffix[1:], dpi=130, metadata=metadata)
                half_written.replace(folder / f"{name}{suffix}")


def all_figures(summaries: Summaries, bounds: Mapping[str, Bounds]) -> dict[str, Figure]:
    """Every figure for which the table has runs; `bounds` are Theorem 2's for the tasks of the erratum."""
    drawn = {task for task, _ in summaries}
    figures = {"inference": inference(), "surfaces": surfaces()}
    for name, tasks in (
        ("regret", PANELS),
        ("regret-beside", tuple(BESIDE)),
        ("regret-by-coordinate", tuple(OWN_SCALES)),
    ):
        if there := [task for task in tasks if task in drawn]:
            figures[name] = panels(summaries, there)
    if "himmelblau" in drawn:
        figures["delta"] = deltas(summaries)
    if there := [task for task in ERRATUM if task in drawn]:
        figures["erratum"] = erratum(summaries, there, bounds)
    return figures


def inference() -> Figure:
    """Figure 1: mu and mu +- sd of a squared exponential prior after four observations."""
    x, y = np.array([[0.1], [0.35], [0.55], [0.9]]), np.array([-0.4, 0.9, 0.3, 0.8])
    return posterior_1d(Posterior.prior(RBF(lengthscale=0.15), 1e-4).condition(x, y), 0.0, 1.0)


def surfaces() -> Figure:
    """Figure 2: the mixture and the tilted Himmelblau function on their grids."""
    with _figure(8.0, 3.6) as figure:
        for i, name in enumerate(("mixture", "himmelblau")):
            task = TASKS[name].sample(np.random.default_rng(0))
            low, high = np.array(HIMMELBLAU.bounds if name == "himmelblau" else ((0.0, 1.0), (0.0, 1.0))).T
            x1, x2 = (low + (high - low) * task.candidates).T.reshape(2, SIDE, SIDE)
            ax: Any = figure.add_subplot(1, 2, i + 1, projection="3d")
            ax.plot_surface(
                x1, x2, task.values.reshape(SIDE, SIDE), cmap="viridis", linewidth=0.0, rcount=SIDE, ccount=SIDE
            )
            ax.set(title=f"({'ab'[i]}) {TITLES[name]}", xlabel="$x_1$", ylabel="$x_2$", zlabel="$f$, in sd")
            ax.set_box_aspect(None, zoom=0.88)  # or the last label is cut off
    return figure


def panels(summaries: Summaries, tasks: Sequence[str]) -> Figure:
    """Figure 3: mean R_T / T with its 95 % interval; beside each panel the share that never queried the maximiser,
    and the mean regret of the last 50 queries."""
    rows = -(-len(tasks) // 2)
    with _figure(11.0, 2.9 * rows + 0.3) as figure:
        axes = figure.subplots(rows, 4, squeeze=False, width_ratios=(1.0, 0.62, 1.0, 0.62))
        for ax in axes.flat[2 * len(tasks) :]:
            ax.axis("off")
        for i, task in enumerate(tasks):
            ax, side = axes.flat[2 * i], axes.flat[2 * i + 1]
            _curves(ax, {name: summaries[task, name] for name in ALGORITHMS})
            title = TITLES[task].removesuffix(OWN)
            ax.set(title=f"({chr(ord('a') + i)}) {title}", xlabel="$T$", ylabel="$R_T / T$")
            _legend(side, {name: summaries[task, name] for name in ALGORITHMS})
    return figure


def deltas(summaries: Summaries) -> Figure:
    """Figure 4: GP-MI on Himmelblau for several delta."""
    with _figure(5.0, 3.2) as figure:
        ax = figure.subplots()
        shades, dashes = ("#08306B", "#2171B5", "#6BAED6", "#F28E2B"), ("-", (0, (5, 2)), (0, (2, 2)), (0, (1, 1)))
        for delta, shade, dash in zip(DELTAS, shades, dashes, strict=True):
            summary = summaries["himmelblau", with_delta("GP-MI", delta)]
            _curve(ax, summary, shade, f"$\\delta$ = {delta:g}", dash, positive=True)
        ax.set(title="GP-MI on Himmelblau", xlabel="$T$", ylabel="$R_T / T$", yscale="log")
        ax.legend()
    return figure


def erratum(summaries: Summaries, tasks: Sequence[str], bounds: Mapping[str, Bounds]) -> Figure:
    """R_T of every run of GP-MI (thin), the mean of each algorithm (thick), and what Theorem 2 claimed (dotted)."""
    with _figure(5.2 * len(tasks), 3.6) as figure:
        for ax, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
            there = {name: summaries[task, name] for name in COLOURS if (task, name) in summaries}
            steps = np.arange(1, there["GP-MI"].curves.shape[1] + 1)
            kept = np.unique(np.geomspace(1, len(steps), 3 * _POINTS).round().astype(int)) - 1
            runs = (steps * there["GP-MI"].curves)[:, kept]
            ax.plot(steps[kept], runs.T, color=COLOURS["GP-MI"], linewidth=0.3, alpha=0.35)
            for name, summary in there.items():
                mean, dashes = (steps * summary.curves.mean(axis=0))[kept], DASHES.get(name, "-")
                ax.plot(steps[kept], mean, color=COLOURS[name], linewidth=2.0, linestyle=dashes, label=name)
            ax.axhline(bounds[task].claimed, color=BLACK, linestyle=":", label="Theorem 2, withdrawn, at the last $T$")
            label = f"the bound that stands for {DEFAULT}, at the last $T$"
            ax.axhline(bounds[task].kept, color=COLOURS[DEFAULT], linestyle=":", label=label)
            ax.set(title=TITLES[task], xlabel="$T$", ylabel="$R_T$", xscale="log", yscale="log")
            ax.set_ylim(0.01, None)  # the legend is below the curves
            ax.legend(loc="lower right")
    return figure


def _curves(ax: Axes, algorithms: Mapping[str, Summary]) -> None:
    means = np.array([summary.curves.mean(axis=0) for summary in algorithms.values()])
    logarithmic = float(means[:, -1].min()) * _RATIO < float(means[:, min(9, means.shape[1] - 1)].max())
    for name, summary in sorted(algorithms.items(), key=lambda item: item[0] in DASHES):
        _curve(ax, summary, COLOURS[name], name, DASHES.get(name, "-"), positive=logarithmic)
    if logarithmic and means.min() > 0.0:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0.0, None)


def _curve(ax: Axes, summary: Summary, colour: str, label: str, dashes: Any = "-", *, positive: bool = False) -> None:
    steps = np.unique(np.linspace(1, summary.curves.shape[1], _POINTS).round().astype(int))
    curves = summary.curves[:, steps - 1]
    mean = curves.mean(axis=0)
    ax.plot(steps, mean, color=colour, linewidth=1.3, linestyle=dashes, label=label)
    if len(curves) > 1:
        half = half_interval(curves)
        low = np.maximum(mean - half, 0.1 * mean) if positive else mean - half  # a logarithmic axis has no 0
        ax.fill_between(steps, low, mean + half, color=colour, alpha=0.2, linewidth=0.0)


def _legend(ax: Axes, algorithms: Mapping[str, Summary]) -> None:
    """Algorithm, share that never queried the maximiser, mean regret of the last 50 queries, in the curves' colours."""
    ax.axis("off")
    lines = [("", "never", "last 50", BLACK)]
    lines += [(name, f"{s.never:.0%}", f"{s.last.mean():.1g}", COLOURS[name]) for name, s in algorithms.items()]
    for i, (name, never, last, colour) in enumerate(lines):
        y = 0.97 - i / len(lines)
        for x, text, side in ((-0.12, name, "left"), (0.74, never, "right"), (1.08, last, "right")):
            ax.text(x, y, text, color=colour, ha=side, va="top", fontsize=7.0, transform=ax.transAxes)


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    """A figure in the library's style, which holds inside the block."""
    with style():
        yield new_figure(width, height)
