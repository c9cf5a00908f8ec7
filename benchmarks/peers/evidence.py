"""The picture of evidence: how often each tool finds the best point, and what a suggestion costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import harness
import numpy as np
import problems
from problems.functions import Array

from . import comparison
from . import optimisers as peers
from .regrets import EARN, MISS, US, Costs, Runs
from .statistics import DRAWN, colours

PICTURE = "evidence.png"
LACKING = 1  # problems that a drawn tool may lack: bayesian-optimization has no run in a hundred dimensions


@dataclass(frozen=True)
class Solved:
    """When each tool has come within 1 % of the spread of f, on the problems that all drawn tools have.

    Every problem counts once, whatever the number of seeds that a tool has on it.
    """

    peers: tuple[str, ...]
    problems: tuple[str, ...]
    when: dict[str, list[Array]]  # by peer: for each problem the evaluations needed with each seed, or infinity

    @staticmethod
    def of(runs: Runs) -> Solved:
        has: dict[str, dict[str, list[comparison.Run]]] = {peer: {} for peer in runs.peers}
        for run in runs.rows:
            has[run.peer].setdefault(run.problem, []).append(run)
        enough = len(runs.problems) - LACKING
        drawn = tuple(peer for peer in runs.peers if len(has[peer]) >= enough and peer != EARN)  # an aim, not a tool
        common = tuple(name for name in runs.problems if all(name in has[peer] for peer in drawn))
        when = {peer: [np.array([needed(runs, run) for run in has[peer][name]]) for name in common] for peer in drawn}
        return Solved(drawn, common, when)

    @property
    def runs(self) -> int:
        """Return the number of runs that are counted."""
        return sum(len(times) for found in self.when.values() for times in found)

    @property
    def seeds(self) -> tuple[int, int]:
        """Return the lowest and the highest number of runs of a tool on a problem."""
        counts = [len(times) for found in self.when.values() for times in found]
        return min(counts), max(counts)

    @property
    def next_best(self) -> str:
        """Return the tool of others with the highest share at the end."""
        return max((peer for peer in self.peers if peer not in peers.OURS), key=lambda peer: self.share(peer)[-1])

    def shares(self, peer: str) -> Array:
        """Return the shares (problem, evaluations) of the runs that are solved after 1, 2, ... 60 evaluations."""
        steps = 1 + np.arange(comparison.BUDGETS[0])
        return np.array([(times[:, None] <= steps).mean(axis=0) for times in self.when[peer]])

    def share(self, peer: str) -> Array:
        """Return the share of runs solved after 1, 2, ... 60 evaluations, the mean over the problems."""
        mean: Array = self.shares(peer).mean(axis=0)
        return mean

    def band(self, peer: str) -> tuple[Array, Array]:
        """Return the 95 % bootstrap band of `share`, over the problems."""
        count = len(self.problems)
        rows = np.random.default_rng(0).integers(count, size=(DRAWN, count))
        lo, hi = np.quantile(self.shares(peer)[rows].mean(axis=1), [0.025, 0.975], axis=0)
        return lo, hi


def needed(runs: Runs, run: comparison.Run) -> float:
    """Return the evaluations until the run has come within 1 % of the spread of f, or infinity."""
    if run not in runs.curves:
        return np.inf
    maximum = runs.maximum(run.problem, run.seed)
    close = runs.curves[run] <= MISS * problems.spread(run.problem, maximum)
    return 1.0 + float(np.argmax(close)) if close.any() else np.inf


def draw(solved: Solved, costs: Costs) -> None:
    """Draw how often the best point is found against the number of evaluations, and what a suggestion costs."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
    final = {}
    for peer, style in colours(solved.peers).items():
        share, (lo, hi) = 100 * solved.share(peer), solved.band(peer)
        steps = 1 + np.arange(len(share))
        left.plot(steps, share, **style)
        final[peer] = float(share[-1])
        if peer in (US, solved.next_best):  # the bands of all would hide each other
            left.fill_between(steps, 100 * lo, 100 * hi, color=style["color"], alpha=0.13, linewidth=0)
    left.set(
        xlim=(1, len(steps)), ylim=(0, None), xlabel="evaluations", ylabel="runs within 1 % of the best value, in %"
    )
    left.text(2, left.get_ylim()[1], "bands: with other problems of this kind, 95 %", fontsize=8, color="0.4", va="top")
    left.set_title("How often the best point is found", loc="left", fontweight="bold")
    label_ends(left, final, len(steps))
    last = {}
    for peer, style in colours([name for name in peers.PEERS if len(costs.seconds.get(name, ())) > 1]).items():
        sizes, seconds = zip(*sorted(costs.seconds[peer].items()), strict=True)
        right.plot(sizes, seconds, "o-", markersize=3, **style)
        last[peer] = sizes[-1], seconds[-1]
    right.set(xscale="log", yscale="log", xlabel="values so far", ylabel="CPU seconds for one suggestion")
    right.xaxis.set_major_formatter(lambda n, _: f"{n:,.0f}")
    right.yaxis.set_major_formatter(lambda seconds, _: f"{seconds:g}")
    right.set_title("What a suggestion costs", loc="left", fontweight="bold")
    label_points(right, last)
    for axis in (left, right):
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(harness.DOCS / PICTURE, dpi=110, metadata={"Software": None})
    plt.close(figure)


def label_ends(axis: Any, ends: dict[str, float], x: float) -> None:
    """Write the names beside the ends of the lines, moved apart where they would overlap."""
    lo, hi = axis.get_ylim()
    apart, y = 0.045 * (hi - lo), -np.inf
    for peer in sorted(ends, key=ends.__getitem__):
        y = max(ends[peer], y + apart)
        style = colours([peer])[peer]
        weight = "bold" if peer == US else "normal"
        at = {"xytext": (x * 1.03, y), "textcoords": "data", "annotation_clip": False, "va": "center"}
        text = f"{peer}, {ends[peer]:.0f} %"
        axis.annotate(text, (x, ends[peer]), color=style["color"], fontweight=weight, fontsize=9, **at)


def label_points(axis: Any, last: dict[str, tuple[float, float]]) -> None:
    """Write the names beside the last points, moved apart where they would overlap."""
    taken: list[tuple[float, float]] = []
    for peer in sorted(last, key=lambda peer: last[peer][1]):
        x, y = last[peer]
        while any(abs(np.log(x / u)) < 1.5 and abs(np.log(y / v)) < 0.35 for u, v in taken):
            y *= 1.1
        taken.append((x, y))
        weight = "bold" if peer == US else "normal"
        style = colours([peer])[peer]
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
        at = {"va": "center", "bbox": box, "zorder": 4, "annotation_clip": False}
        axis.annotate(peer, (x * 1.1, y), color=style["color"], fontweight=weight, fontsize=9, **at)
