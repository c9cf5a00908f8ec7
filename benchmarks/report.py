"""From the tables of the comparison to docs/benchmarks/compare.md and its pictures.

    python benchmarks/report.py

Reads docs/benchmarks/compare/runs.csv (`compare.py`) and docs/benchmarks/cost.csv (`cost.py`), as far as they go.
"""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import compare
import cost
import matplotlib.pyplot as plt
import numpy as np
import peers
import problems
from matplotlib.figure import Figure
from numpy.typing import NDArray

Array = NDArray[np.float64]
README = Path(__file__).resolve().parents[1] / "README.md"
DOCS = compare.ROOT / "docs" / "benchmarks"
US = "gpmi"
GP_PEERS = tuple(name for name in peers.PEERS if name not in (US, "random", "CMA-ES", "Optuna TPE"))
DRAWN = 2000  # bootstrap samples
KINDS = {"simple": "simple regret", "mean": "R_T/T"}


@dataclass(frozen=True)
class Runs:
    """What was found: regrets (peer, problem, seed), NaN where there was no run, infinite where the run failed."""

    peers: tuple[str, ...]
    problems: tuple[str, ...]
    seeds: int
    rows: dict[compare.Key, compare.Row]

    @staticmethod
    def load() -> Runs:
        rows = compare.load()
        found = {key[0] for key in rows}
        named = {key[1] for key in rows}
        return Runs(
            tuple(p for p in peers.PEERS if p in found),
            tuple(p for p in problems.NAMES if p in named),
            1 + max(key[2] for key in rows),
            rows,
        )

    @cached_property
    def best(self) -> dict[tuple[str, int], float]:
        """The best value of all runs, by problem and seed; the seed matters for the GP draws only."""
        best: dict[tuple[str, int], float] = {}
        for (_, problem, seed), row in self.rows.items():
            same = [seed] if problem in problems.DRAWS else range(self.seeds)
            value = max(map(float, row["values"].split()), default=-np.inf)
            for s in same:
                best[problem, s] = max(value, best.get((problem, s), -np.inf))
        return best

    def known(self, problem: str, seed: int) -> float | None:
        """The maximum, unless it is not known or a run has exceeded what a search had found."""
        maximum = problems.make(problem, seed).maximum
        exceeded = maximum is not None and self.best[problem, seed] > maximum + 1e-6 * abs(maximum)
        return None if exceeded else maximum

    @cached_property
    def curves(self) -> dict[compare.Key, Array]:
        """The noise-free regret of each of the 60 evaluations of each finished run."""
        curves = {}
        for (peer, problem, seed), row in self.rows.items():
            if row["status"] == "done":
                known = self.known(problem, seed)
                maximum = self.best[problem, seed] if known is None else known
                gaps = maximum - np.array(row["values"].split(), dtype=float)
                curves[peer, problem, seed] = np.maximum(gaps, 0.0)
        return curves

    @cached_property
    def regrets(self) -> dict[str, Array]:
        """Simple regret and R_T/T, each (peer, problem, seed)."""
        tables = {kind: np.full((len(self.peers), len(self.problems), self.seeds), np.nan) for kind in KINDS}
        for (peer, problem, seed), row in self.rows.items():
            at = self.peers.index(peer), self.problems.index(problem), seed
            curve = self.curves.get((peer, problem, seed), np.full(compare.BUDGET, np.inf))
            exact = row["status"] == "done" and self.known(problem, seed) is not None  # not rounded as the values are
            tables["simple"][at] = float(row["simple_regret"]) if exact else curve.min()
            tables["mean"][at] = curve[compare.INITIAL :].mean()
        return tables


# Statistics


def ranks(regret: Array) -> Array:
    """The rank of each peer among all peers, 1 for the lowest regret and the mean rank for ties: (peer, ...)."""
    lower = np.sum(regret[None] < regret[:, None], axis=1)
    equal = np.sum(regret[None] == regret[:, None], axis=1)
    return np.where(np.isnan(regret).any(axis=0), np.nan, lower + (equal + 1) / 2)


def ahead(ours: Array, theirs: Array) -> Array:
    """1 where ours is lower, 1/2 for a tie, 0 where it is higher, NaN where one is missing."""
    result = np.where(ours < theirs, 1.0, np.where(ours == theirs, 0.5, 0.0))
    return np.where(np.isnan(ours) | np.isnan(theirs), np.nan, result)


def interval(table: Array) -> tuple[float, float, float]:
    """The mean of a table (problem, seed) with its 95 % bootstrap interval: problems are drawn, then seeds in each."""
    rng = np.random.default_rng(0)
    p, s = table.shape
    rows = rng.integers(p, size=(DRAWN, p, 1))
    columns = rng.integers(s, size=(DRAWN, p, s))
    drawn = table[rows, columns].reshape(DRAWN, -1)
    filled = ~np.isnan(drawn)
    means = np.where(filled, drawn, 0.0).sum(axis=1) / np.maximum(filled.sum(axis=1), 1)
    lo, hi = np.quantile(means[filled.any(axis=1)], [0.025, 0.975])
    return float(np.nanmean(table)), float(lo), float(hi)


def medians(regret: Array) -> Array:
    """Median over the seeds, (peer, problem); NaN where a peer has no run."""
    with np.errstate(all="ignore"):
        return np.array(
            [[np.median(r[~np.isnan(r)]) if (~np.isnan(r)).any() else np.nan for r in peer] for peer in regret]
        )


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The exponent of the growth between the first and the last size."""
    return float(np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0]))


# Sections of the page


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def common(runs: Runs) -> list[tuple[str, list[int]]]:
    """Groups of peers to be ranked together, on the pairs that all of a group have.

    The peers with a run on every problem, and all peers if there are others.
    """
    seen = {peer: {key[1] for key in runs.rows if key[0] == peer} for peer in runs.peers}
    covering = [i for i, peer in enumerate(runs.peers) if len(seen[peer]) == len(runs.problems)]
    every = list(range(len(runs.peers)))
    groups = [("All peers, on the pairs (problem, seed) that all of them have", every)]
    if covering != every and len(covering) > 1:
        groups.insert(0, ("The peers with runs on every problem, on the pairs (problem, seed) they share", covering))
    return groups


def rank_section(runs: Runs) -> str:
    parts = []
    for title, group in common(runs):
        scored = {kind: ranks(runs.regrets[kind][group]) for kind in KINDS}
        pairs = int((~np.isnan(scored["simple"][0])).sum())
        if pairs == 0:
            continue
        found = {kind: [interval(peer) for peer in scored[kind]] for kind in KINDS}
        order = sorted(range(len(group)), key=lambda i: found["simple"][i][0] + found["mean"][i][0])
        body = [[runs.peers[group[i]], *(_with_interval(found[kind][i], "{:.2f}") for kind in KINDS)] for i in order]
        head = ["", *(f"mean rank, {words}" for words in KINDS.values())]
        parts.append(f"{title}: {pairs} pairs.\n\n{table(head, body)}")
    return "\n\n".join(parts)


def pair_section(runs: Runs) -> str:
    body = []
    for peer in runs.peers:
        if peer != US:
            shares = [_share(runs, peer, kind) for kind in KINDS]
            pairs = int((~np.isnan(ahead(*_both(runs, peer, "simple")))).sum())
            body.append([peer, str(pairs), *(_with_interval(share, "{:.0%}") for share in shares)])
    return table(["peer", "pairs", *(f"gpmi ahead, {words}" for words in KINDS.values())], body)


def _both(runs: Runs, peer: str, kind: str) -> tuple[Array, Array]:
    regret = runs.regrets[kind]
    return regret[runs.peers.index(US)], regret[runs.peers.index(peer)]


def _share(runs: Runs, peer: str, kind: str) -> tuple[float, float, float]:
    return interval(ahead(*_both(runs, peer, kind)))


def median_section(runs: Runs, kind: str) -> str:
    """Medians of the regret; the last column is the median peer, marked where gpmi is worse."""
    middle = medians(runs.regrets[kind])
    others = [i for i, peer in enumerate(runs.peers) if peer != US]
    body = []
    for j, problem in enumerate(runs.problems):
        typical = float(np.nanmedian(middle[others, j]))
        worse = US in runs.peers and middle[runs.peers.index(US), j] > typical
        body.append(
            [problem, *(_short(v) for v in middle[:, j]), _short(typical) + (" **gpmi is worse**" if worse else "")]
        )
    return table(["", *runs.peers, "median peer"], body)


def _short(value: float) -> str:
    return "" if np.isnan(value) else "failed" if np.isinf(value) else f"{value:.2g}"


def _with_interval(estimate: tuple[float, float, float], form: str) -> str:
    mean, lo, hi = (form.format(value) for value in estimate)
    return f"{mean} ({lo} to {hi})"


@dataclass(frozen=True)
class Verdict:
    claim: str
    holds: bool | None  # None: not measured
    figures: str

    def __str__(self) -> str:
        word = {True: "holds", False: "**misses**", None: "not measured"}[self.holds]
        return f"- {self.claim}: {word}. {self.figures}"


def verdicts(runs: Runs, costs: Costs) -> list[Verdict]:
    return [*regret_verdicts(runs), *cost_verdicts(costs)]


def regret_verdicts(runs: Runs) -> list[Verdict]:
    first = "first by mean rank on {}"
    share = "ahead of every peer in at least 60 % of the pairs on {}"
    never = "on no problem a median simple regret worse than the median peer's"
    if US not in runs.peers:
        claims = [form.format(words) for words in KINDS.values() for form in (first, share)]
        return [Verdict(claim, None, "") for claim in (*claims, never)]
    result = []
    for kind, words in KINDS.items():
        lines = []
        for _, group in common(runs):
            scored = ranks(runs.regrets[kind][group])
            if US in (names := [runs.peers[i] for i in group]) and not np.isnan(scored).all():
                means = dict(zip(names, np.nanmean(scored, axis=(1, 2)), strict=True))
                best = min((name for name in names if name != US), key=means.__getitem__)
                lines.append((means[US] < means[best], f"{means[US]:.2f}, next {best} {means[best]:.2f}"))
        held = all(ok for ok, _ in lines) if lines else None
        result.append(Verdict(first.format(words), held, "; ".join(text for _, text in lines)))
        shares = {peer: _share(runs, peer, kind) for peer in runs.peers if peer != US}
        lowest = min(shares, key=lambda peer: shares[peer][0])
        figures = f"Lowest: {lowest}, {_with_interval(shares[lowest], '{:.0%}')}"
        result.append(Verdict(share.format(words), shares[lowest][0] >= 0.6, figures))
    middle = medians(runs.regrets["simple"])
    us = runs.peers.index(US)
    typical = np.nanmedian(np.delete(middle, us, axis=0), axis=0)
    worse = [problem for j, problem in enumerate(runs.problems) if middle[us, j] > typical[j]]
    return [*result, Verdict(never, not worse, f"Worse on: {', '.join(worse)}" if worse else "")]


# Costs


@dataclass(frozen=True)
class Costs:
    """CPU seconds per suggestion by peer and n, from the table of cost.py."""

    rows: list[dict[str, str]]

    @staticmethod
    def load() -> Costs:
        if not cost.TABLE.exists():
            return Costs([])
        with cost.TABLE.open(newline="") as file:
            return Costs(list(csv.DictReader(file)))

    @cached_property
    def seconds(self) -> dict[str, dict[int, float]]:
        found: dict[str, dict[int, float]] = {}
        for row in self.rows:
            if row["status"] == "done":
                found.setdefault(row["peer"], {})[int(row["n"])] = float(row["cpu"])
        return found

    def cheapest(self, n: int) -> tuple[str, float] | None:
        """The GP peer with the lowest cost at n."""
        at = {peer: self.seconds[peer][n] for peer in GP_PEERS if n in self.seconds.get(peer, {})}
        return min(at.items(), key=lambda item: item[1]) if at else None


def cost_verdicts(costs: Costs) -> list[Verdict]:
    ours = costs.seconds.get(US, {})
    result = []
    for share, sizes in ((10, (20, 50, 100, 200)), (40, (500, 1000))):
        claim = f"CPU per suggestion at most 1/{share} of the cheapest GP peer's at n = {', '.join(map(str, sizes))}"
        known = [(n, ours[n], found) for n in sizes if n in ours and (found := costs.cheapest(n)) is not None]
        figures = "; ".join(f"n = {n}: 1/{c / us:.1f} of {peer}'s {c:.3g} s" for n, us, (peer, c) in known)
        held = all(us <= c / share for _, us, (_, c) in known) if len(known) == len(sizes) else None
        result.append(Verdict(claim, held, figures))
    claim = "average cost growing no faster than n^2 from 200 to 5,000"
    if 200 in ours and 5000 in ours:
        power = slope([200, 5000], [ours[200], ours[5000]])
        return [*result, Verdict(claim, power <= 2.0, f"It grows as n^{power:.2f}")]
    return [*result, Verdict(claim, None, "")]


def cost_section(costs: Costs) -> str:
    sizes = sorted({int(row["n"]) for row in costs.rows})
    cells: dict[tuple[str, int], str] = {}
    for row in costs.rows:
        text = row["status"]
        if text == "done":
            fewer = "" if int(row["rounds"]) == cost.ROUNDS else f", {row['rounds']} rounds"
            text = f"{float(row['cpu']):.3g} ({row['memory']} MB{fewer})"
        cells[row["peer"], int(row["n"])] = text
    names = [name for name in peers.PEERS if any(key[0] == name for key in cells)]
    body = [[name, *(cells.get((name, n), "") for n in sizes)] for name in names]
    return table(["", *(f"n = {n}" for n in sizes)], body)


# Pictures


def colours(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How each peer is drawn: gpmi in black and thick, the others in colours of their own."""
    palette = matplotlib.color_sequences["tab20"]
    styles: dict[str, dict[str, Any]] = {}
    for i, name in enumerate(peers.PEERS):
        styles[name] = {"color": palette[(2 * i) % 20 + (2 * i) // 20], "linewidth": 1.1, "zorder": 2}
    styles[US] = {"color": "black", "linewidth": 2.2, "zorder": 3}
    return {name: styles[name] for name in names}


def save(figure: Figure, name: str) -> None:
    figure.savefig(DOCS / "compare" / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def draw_ranks(runs: Runs) -> None:
    _, group = common(runs)[0]
    names = [runs.peers[i] for i in group]
    figure, axes = plt.subplots(1, 2, figsize=(9, 0.32 * len(names) + 1.2), layout="constrained")
    for axis, (kind, words) in zip(axes, KINDS.items(), strict=True):
        found = sorted(zip([interval(r) for r in ranks(runs.regrets[kind][group])], names, strict=True), reverse=True)
        for y, ((mean, lo, hi), name) in enumerate(found):
            colour = colours(names)[name]["color"]
            axis.plot([lo, hi], [y, y], color=colour, linewidth=2)
            axis.plot(mean, y, "o", color=colour)
        axis.set_yticks(range(len(found)), [name for _, name in found])
        axis.set_xlabel(f"mean rank, {words}")
        axis.grid(axis="x", alpha=0.3)
    save(figure, "ranks")


def draw_curves(runs: Runs, kind: str) -> None:
    """The median over the seeds, for each problem, of the best regret so far or of the mean regret so far."""
    columns = 4
    lines = -(-len(runs.problems) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(12, 2.3 * lines), layout="constrained", squeeze=False)
    for axis in axes.flat[len(runs.problems) :]:
        axis.axis("off")
    so_far: Callable[[Array], Array]
    if kind == "simple":
        so_far = np.minimum.accumulate
    else:

        def so_far(gaps: Array) -> Array:
            later = gaps[compare.INITIAL :]
            return np.cumsum(later) / np.arange(1, len(later) + 1)

    for axis, problem in zip(axes.flat, runs.problems, strict=False):
        for peer, style in colours(runs.peers).items():
            curves = [so_far(c) for key, c in runs.curves.items() if key[:2] == (peer, problem)]
            if curves:
                middle = np.median(curves, axis=0)
                x = np.arange(compare.BUDGET - len(middle) + 1, compare.BUDGET + 1)
                axis.plot(x, np.where(middle > 0.0, middle, np.nan), label=peer, **style)
        axis.set_yscale("log")
        axis.set_title(problem, fontsize=9)
        axis.tick_params(labelsize=7)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8)
    figure.supylabel(f"{KINDS[kind]} against the number of evaluations, median over the seeds", fontsize=9)
    save(figure, f"curves-{kind}")


def draw_cost(costs: Costs) -> None:
    figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, style in colours([name for name in peers.PEERS if name in costs.seconds]).items():
        at = costs.seconds[name]
        axis.plot(list(at), list(at.values()), "o-", markersize=3, label=name, **style)
    axis.set(xscale="log", yscale="log", xlabel="observations n", ylabel="CPU seconds per suggestion")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, "cost")


# The page


def failures(runs: Runs) -> str:
    failed = [f"{p}, {q}, seed {s}: {r['status']}" for (p, q, s), r in runs.rows.items() if r["status"] != "done"]
    return "\n".join(f"- {line}" for line in failed) if failed else "No run failed."


def effort_section(runs: Runs) -> str:
    body = []
    for peer in runs.peers:
        rows = [row for key, row in runs.rows.items() if key[0] == peer]
        versions = ", ".join(sorted({row["version"] for row in rows}))
        cpu = np.median([float(row["cpu"]) for row in rows])
        memory = max(int(row["memory"]) for row in rows)
        body.append([peer, versions, str(len(rows)), f"{cpu:.3g}", str(memory)])
    return table(["peer", "version", "runs", "CPU seconds in a run, median", "peak memory, MB"], body)


def machine() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, {date.today()}"


def page(runs: Runs, costs: Costs) -> str:
    parts = [
        "# gpmi and its peers",
        f"{len(runs.problems)} problems, up to {runs.seeds} seeds, {compare.BUDGET} evaluations of which the first "
        f"{compare.INITIAL} are common to all. Every peer in its recommended configuration (`benchmarks/peers.py`), "
        "the problems in `benchmarks/problems.py`, every run in `compare/runs.csv`. Simple regret is the gap of the "
        "best noise-free value among all queries, R_T/T the mean gap of the fifty suggested ones. Where the maximum is "
        "not known, the best value of all runs stands for it. Intervals are 95 % bootstrap intervals over problems and "
        "seeds. A failed run counts as the worst. Peers with fewer runs are compared on the pairs that they have.",
        f"Measured on {machine()}.",
        "## What was promised",
        "\n".join(map(str, verdicts(runs, costs))),
        "## Mean ranks",
        rank_section(runs),
        "![mean ranks](compare/ranks.svg)",
        "## Pair by pair",
        pair_section(runs) if US in runs.peers else "No runs of gpmi yet.",
        "## Simple regret, medians",
        median_section(runs, "simple"),
        "![simple regret](compare/curves-simple.svg)",
        "## R_T/T, medians",
        median_section(runs, "mean"),
        "![cumulative regret](compare/curves-mean.svg)",
        "## CPU seconds per suggestion",
        "ask + tell on Hartmann-6, refits included, mean over 20 consecutive rounds after n told points; peak memory.",
        f"{cost_section(costs)}\n\n![cost](compare/cost.svg)" if costs.rows else "Not measured yet: `make bench-cost`.",
        "## Runs",
        effort_section(runs),
        failures(runs),
    ]
    return "\n\n".join(parts) + "\n"


def into_readme(runs: Runs, costs: Costs) -> None:
    """What was promised and what was measured, between the README's two marks."""
    begin, end = "<!-- compare: written by make bench-report -->", "<!-- compare: end -->"
    before, rest = README.read_text(encoding="utf-8").split(begin)
    words = {True: "yes", False: "**no**", None: "not measured"}
    body = [[v.claim, v.figures.replace("|", "/"), words[v.holds]] for v in verdicts(runs, costs)]
    text = "\n".join([begin, f"Measured on {machine()}.", "", table(["promise", "measured", "holds"], body), end])
    README.write_text(before + text + rest.split(end)[1], encoding="utf-8")


def main() -> None:
    plt.rcParams.update({"svg.hashsalt": US, "svg.fonttype": "none"})
    runs, costs = Runs.load(), Costs.load()
    draw_ranks(runs)
    for kind in KINDS:
        draw_curves(runs, kind)
    if costs.rows:
        draw_cost(costs)
    (DOCS / "compare.md").write_text(page(runs, costs))
    into_readme(runs, costs)


if __name__ == "__main__":
    main()
