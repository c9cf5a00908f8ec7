"""What do the tables of the comparison say? Writes docs/benchmarks/compare.md, the pages below it and their pictures.

    python benchmarks/report.py      half a minute

Reads docs/benchmarks/compare/runs.csv (`compare.py`) and docs/benchmarks/cost.csv (`cost.py`), complete or not. Its
first table goes into README.md as well.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import harness
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
import problems
from matplotlib.figure import Figure
from numpy.typing import NDArray
from peers import comparison
from peers import optimisers as peers
from peers.statistics import Verdict, ahead, colours, interval, medians, ranks, slope, table, with_interval
from problems import held_out
from problems.functions import Array

NEEDS = "peers"
README = harness.ROOT / "README.md"
COMPARE = harness.DOCS / "compare"
US, EARN = "gpmi", "gpmi earn"
GP_PEERS = tuple(name for name in peers.PEERS if name not in (US, EARN, "random", "CMA-ES", "Optuna TPE"))
MISS = 0.01  # a run misses if its gap is above this share of the spread of f
KINDS = {"simple": "simple regret", "mean": "R_T/T"}
GROUPS = {"the twenty problems": problems.NAMES, "the ten held out": held_out.NAMES}
STARTS = {"own": "each tool's own start", "common": "ten common points"}


@dataclass(frozen=True)
class Runs:
    """The runs of one setting, as tables (peer, problem, seed) with NaN where there was no run."""

    start: str
    budget: int
    peers: tuple[str, ...]
    problems: tuple[str, ...]
    rows: dict[comparison.Run, comparison.Row]  # of this setting
    best: dict[tuple[str, int], float]  # the best value of all settings, by problem and seed

    @staticmethod
    def of(rows: dict[comparison.Run, comparison.Row], start: str, budget: int, names: Sequence[str]) -> Runs:
        mine = {run: row for run, row in rows.items() if (run.start, run.budget) == (start, budget)}
        mine = {run: row for run, row in mine.items() if run.problem in names}
        found, named = {run.peer for run in mine}, {run.problem for run in mine}
        in_order = tuple(p for p in peers.PEERS if p in found), tuple(p for p in names if p in named)
        return Runs(start, budget, *in_order, mine, best_values(rows))

    @property
    def title(self) -> str:
        return f"{STARTS[self.start]}, T = {self.budget}"

    @property
    def seeds(self) -> int:
        return 1 + max((run.seed for run in self.rows), default=0)

    def maximum(self, problem: str, seed: int) -> float:
        """Return the maximum, or the best value of all runs where it is unknown or a run has exceeded it."""
        maximum, best = problems.make(problem, seed).maximum, self.best[problem, seed]
        return best if maximum is None or best > maximum + 1e-6 * abs(maximum) else maximum

    @cached_property
    def curves(self) -> dict[comparison.Run, Array]:
        """Return the noise-free regret of the first sixty evaluations of each finished run."""
        return {
            run: np.maximum(self.maximum(run.problem, run.seed) - np.array(row["values"].split(), dtype=float), 0.0)
            for run, row in self.rows.items()
            if row["status"] == "done"
        }

    @cached_property
    def regrets(self) -> dict[str, Array]:
        """Return simple regret, R_T/T and whether the run missed (1 or 0). A failed run has infinite regret."""
        shape = len(self.peers), len(self.problems), self.seeds
        tables = {kind: np.full(shape, np.nan) for kind in (*KINDS, "miss")}
        for run, row in self.rows.items():
            at = self.peers.index(run.peer), self.problems.index(run.problem), run.seed
            maximum, done = self.maximum(run.problem, run.seed), row["status"] == "done"
            simple = max(maximum - float(row["best"]), 0.0) if done else np.inf
            tables["simple"][at] = simple
            tables["mean"][at] = maximum - float(row["mean"]) if done else np.inf
            tables["miss"][at] = float(simple > MISS * problems.spread(run.problem, maximum))
        return tables

    def without(self, *names: str) -> Runs:
        """Return the same runs without these peers."""
        left = tuple(peer for peer in self.peers if peer not in names)
        rows = {run: row for run, row in self.rows.items() if run.peer in left}
        return Runs(self.start, self.budget, left, self.problems, rows, self.best)

    @cached_property
    def covering(self) -> list[int]:
        """Return the peers with a run on every problem, which can be ranked."""
        seen = {peer: {run.problem for run in self.rows if run.peer == peer} for peer in self.peers}
        return [i for i, peer in enumerate(self.peers) if len(seen[peer]) == len(self.problems)]

    @cached_property
    def shared(self) -> NDArray[np.bool_]:
        """Return the pairs (problem, seed) that all covering peers have."""
        shared: NDArray[np.bool_] = ~np.isnan(self.regrets["simple"][self.covering]).any(axis=0)
        return shared

    def ranks(self, kind: str) -> dict[str, Array]:
        """Return the ranks (problem, seed) of the covering peers on the pairs they share, NaN on others."""
        scored = ranks(self.regrets[kind][self.covering])
        return {self.peers[i]: scored[k] for k, i in enumerate(self.covering)}

    def misses(self) -> dict[str, Array]:
        """Return which of the shared pairs (problem, seed) the covering peers missed, NaN on others."""
        return {self.peers[i]: np.where(self.shared, self.regrets["miss"][i], np.nan) for i in self.covering}


def best_values(rows: dict[comparison.Run, comparison.Row]) -> dict[tuple[str, int], float]:
    """Return the best value of all runs, by problem and seed. The seed matters for the GP draws only."""
    best: dict[tuple[str, int], float] = {}
    seeds = range(1 + max(run.seed for run in rows))
    for run, row in rows.items():
        if row["status"] == "done":
            for seed in [run.seed] if run.problem in problems.DRAWS else seeds:
                key = run.problem, seed
                best[key] = max(float(row["best"]), best.get(key, -np.inf))
    return best


# Sections of the page


def rank_section(runs: Runs) -> str:
    """Return mean ranks and shares of misses, on the pairs that all covering peers have."""
    scored = {kind: runs.ranks(kind) for kind in KINDS}
    missed = runs.misses()
    order = sorted(missed, key=lambda peer: float(np.nanmean(scored["simple"][peer])))
    body = [
        [
            peer,
            *(with_interval(interval(scored[kind][peer]), "{:.2f}") for kind in KINDS),
            with_interval(interval(missed[peer]), "{:.0%}"),
        ]
        for peer in order
    ]
    return table(["", *(f"mean rank, {words}" for words in KINDS.values()), "runs that miss"], body)


def pair_section(runs: Runs) -> str:
    body = []
    for peer in runs.peers:
        if peer not in (US, EARN):
            shares = [_share(runs, US, peer, kind) for kind in KINDS]
            pairs = int((~np.isnan(ahead(*_both(runs, US, peer, "simple")))).sum())
            ours, theirs = (
                np.where(np.isnan(a + b), np.nan, a) for a, b in itertools.permutations(_both(runs, US, peer, "miss"))
            )
            both = f"{np.nanmean(ours):.0%}, {np.nanmean(theirs):.0%}"
            body.append([peer, str(pairs), *(with_interval(share, "{:.0%}") for share in shares), both])
    head = ["peer", "pairs", *(f"gpmi ahead, {words}" for words in KINDS.values()), "misses, gpmi's and the peer's"]
    return table(head, body)


def _both(runs: Runs, us: str, peer: str, kind: str) -> tuple[Array, Array]:
    regret = runs.regrets[kind]
    return regret[runs.peers.index(us)], regret[runs.peers.index(peer)]


def _share(runs: Runs, us: str, peer: str, kind: str) -> tuple[float, float, float]:
    return interval(ahead(*_both(runs, us, peer, kind)))


def median_section(runs: Runs, kind: str) -> str:
    """Return medians of the regret. The last column is the median peer, marked where gpmi is worse."""
    middle = medians(runs.regrets[kind])
    worse = worse_than_typical(runs) if kind == "simple" else ()
    body = []
    for j, problem in enumerate(runs.problems):
        mark = " **gpmi is worse**" if problem in worse else ""
        body.append([problem, *(_short(v) for v in middle[:, j]), _short(typical(runs, kind)[j]) + mark])
    return table(["", *runs.peers, "median peer"], body)


def typical(runs: Runs, kind: str) -> Array:
    """Return, for each problem, the median over the peers without ours of their medians over the seeds."""
    others = [i for i, peer in enumerate(runs.peers) if peer not in (US, EARN)]
    middle: Array = np.nanmedian(medians(runs.regrets[kind])[others], axis=0)
    return middle


def worse_than_typical(runs: Runs) -> list[str]:
    ours = medians(runs.regrets["simple"])[runs.peers.index(US)]
    return [p for p, mine, other in zip(runs.problems, ours, typical(runs, "simple"), strict=True) if mine > other]


def miss_section(runs: Runs) -> str:
    body = []
    for j, problem in enumerate(runs.problems):
        cells = []
        for missed in runs.regrets["miss"][:, j]:
            known = missed[~np.isnan(missed)]
            cells.append(f"{int(known.sum())} of {len(known)}" if len(known) else "")
        body.append([problem, *cells])
    return table(["", *runs.peers], body)


def _short(value: float) -> str:
    return "" if np.isnan(value) else "failed" if np.isinf(value) else f"{value:.2g}"


# What was promised


def _first(found: dict[str, Array], us: str, form: str) -> tuple[bool, str]:
    """Return whether our mean is the lowest, and a text with ours and the best of the others."""
    means = {peer: float(np.nanmean(values)) for peer, values in found.items()}
    best = min((peer for peer in means if peer != us), key=means.__getitem__)
    return means[us] <= means[best], f"{form.format(means[us])}, next {best} {form.format(means[best])}"


def promises(runs: Runs) -> list[Verdict]:
    """Return what was promised of both aims, in one setting on one group of problems."""
    rivals = runs.without(EARN)
    shares = {peer: _share(rivals, US, peer, "simple") for peer in rivals.peers if peer != US}
    lowest = min(shares, key=lambda peer: shares[peer][0])
    worse = worse_than_typical(rivals)
    means = {peer: float(np.nanmean(values)) for peer, values in runs.ranks("mean").items()}
    place = 1 + sum(mean < means[US] for mean in means.values())
    result = [
        Verdict("first by mean rank on simple regret", *_first(rivals.ranks("simple"), US, "{:.2f}")),
        Verdict("first by share of misses", *_first(rivals.misses(), US, "{:.0%}")),
        Verdict(
            "ahead of every peer in 60 % of the pairs",
            shares[lowest][0] >= 0.6,
            f"lowest {lowest}, {shares[lowest][0]:.0%}",
        ),
        Verdict("on no problem worse than the median peer", not worse, ", ".join(worse) or "none"),
        Verdict("at least third on R_T/T", place <= 3, f"place {place} of {len(means)}"),
    ]
    earning = Verdict("earn: first on R_T/T", *_first(runs.without(US).ranks("mean"), EARN, "{:.2f}"))
    return [*result, earning]


def promise_table(settings: Iterable[tuple[str, Runs]], first: int | None = None) -> str:
    """Return a line for each setting and group of problems, a column for each promise, bold where it does not hold."""
    found = [(title, runs, promises(runs)[:first]) for title, runs in settings]
    body = [
        [title, f"{int(runs.shared.sum())}", *(v.figures if v.holds else f"**{v.figures}**" for v in verdicts)]
        for title, runs, verdicts in found
    ]
    return table(["", "pairs", *(verdict.claim for verdict in found[0][2])], body)


# Costs


@dataclass(frozen=True)
class Costs:
    """CPU seconds per suggestion by peer and n, from the table of cost.py."""

    rows: list[dict[str, str]]

    @cached_property
    def seconds(self) -> dict[str, dict[int, float]]:
        found: dict[str, dict[int, float]] = {}
        for row in self.rows:
            if row["status"] == "done":
                found.setdefault(row["peer"], {})[int(row["n"])] = float(row["cpu"])
        return found

    def cheapest(self, n: int) -> tuple[str, float] | None:
        """Return the GP peer with the lowest cost at n."""
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
            fewer = "" if int(row["rounds"]) == comparison.ROUNDS else f", {row['rounds']} rounds"
            text = f"{float(row['cpu']):.3g} ({row['memory']} MB{fewer})"
        cells[row["peer"], int(row["n"])] = text
    names = [name for name in peers.PEERS if any(key[0] == name for key in cells)]
    body = [[name, *(cells.get((name, n), "") for n in sizes)] for name in names]
    return table(["", *(f"n = {n}" for n in sizes)], body)


# Pictures


def save(figure: Figure, name: str) -> None:
    figure.savefig(COMPARE / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def draw_ranks(settings: list[tuple[str, Runs]]) -> None:
    """Draw the mean ranks on simple regret, a panel for each setting."""
    lines = -(-len(settings) // 2)
    figure, axes = plt.subplots(lines, 2, figsize=(9, 2.6 * lines), layout="constrained", squeeze=False)
    for axis, (title, runs) in itertools.zip_longest(axes.flat, settings, fillvalue=("", None)):
        if runs is None:
            axis.axis("off")
            continue
        found = sorted(((interval(r), name) for name, r in runs.ranks("simple").items()), reverse=True)
        for y, ((mean, lo, hi), name) in enumerate(found):
            colour = colours([name])[name]["color"]
            axis.plot([lo, hi], [y, y], color=colour, linewidth=2)
            axis.plot(mean, y, "o", color=colour)
        axis.set_yticks(range(len(found)), [name for _, name in found], fontsize=7)
        axis.set_title(title, fontsize=8)
        axis.grid(axis="x", alpha=0.3)
    figure.supxlabel("mean rank, simple regret", fontsize=9)
    save(figure, "ranks")


def draw_curves(runs: Runs) -> None:
    """Draw, for each problem, the median over the seeds of the best regret so far, for sixty evaluations."""
    columns = 4
    lines = -(-len(runs.problems) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(12, 2.3 * lines), layout="constrained", squeeze=False)
    for axis in axes.flat[len(runs.problems) :]:
        axis.axis("off")
    for axis, problem in zip(axes.flat, runs.problems, strict=False):
        for peer, style in colours(runs.peers).items():
            found = [c for run, c in runs.curves.items() if (run.peer, run.problem) == (peer, problem)]
            if found:
                middle = np.median(np.minimum.accumulate(found, axis=1), axis=0)
                axis.plot(1 + np.arange(len(middle)), np.where(middle > 0.0, middle, np.nan), label=peer, **style)
        axis.set_yscale("log")
        axis.set_title(problem, fontsize=9)
        axis.tick_params(labelsize=7)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8)
    figure.supylabel("simple regret against the number of evaluations, median over the seeds", fontsize=9)
    save(figure, f"curves-simple-{runs.start}-{runs.budget}")


def draw_cost(costs: Costs) -> None:
    figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, style in colours([name for name in peers.PEERS if name in costs.seconds]).items():
        at = costs.seconds[name]
        axis.plot(list(at), list(at.values()), "o-", markersize=3, label=name, **style)
    axis.set(xscale="log", yscale="log", xlabel="observations n", ylabel="CPU seconds per suggestion")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, "cost")


# The pages


def failures(rows: dict[comparison.Run, comparison.Row]) -> str:
    failed = [f"{', '.join(map(str, run))}: {row['status']}" for run, row in rows.items() if row["status"] != "done"]
    return "\n".join(f"- {line}" for line in failed) if failed else "No run failed."


def effort_section(rows: dict[comparison.Run, comparison.Row]) -> str:
    body = []
    for peer in peers.PEERS:
        mine = {run: row for run, row in rows.items() if run.peer == peer}
        if mine:
            versions = ", ".join(sorted({row["version"] for row in mine.values()}))
            cpu = [[float(row["cpu"]) for run, row in mine.items() if run.budget == t] for t in comparison.BUDGETS]
            memory = max(int(row["memory"]) for row in mine.values())
            effort = (f"{np.median(seconds):.3g}" if seconds else "" for seconds in cpu)
            body.append([peer, versions, str(len(mine)), *effort, str(memory)])
    return table(["peer", "version", "runs", "CPU seconds, T = 60", "CPU seconds, T = 200", "peak memory, MB"], body)


IN_README = 4  # promises about simple regret; those about R_T / T are on the page


def checked() -> str:
    """Return how many of gpmi's rows a later version repeats."""
    if not comparison.CHECKED.exists():
        return ""
    found = json.loads(comparison.CHECKED.read_text())
    return (
        f" gpmi's {found['of']} rows are of the version under *Runs*. At {found['version']} {found['runs']} of them, "
        f"spread over all, were played again: {found['same']} are the same in every digit that is kept."
    )


TUNED = """\
- The policies' constants, the fit's priors and the searches were chosen on the twenty problems, on generated draws \
and on the development functions of [find.md](find.md), over the life of the project: the twenty are no fresh test.
- The ten held out were listed and committed before any tool had run on one of them, and gpmi ran \
on them once at dcecb42. It ran again at 50d220d for a rule that was chosen on the hills of [hills.md](hills.md), on \
other functions, and a third time at d0041ab, the version named below: that rule had cost it the third place on R_T/T \
of the twenty problems with 200 evaluations, so its far points became rarer, in a way that was chosen on hills and \
development functions again. 194 of the 765 older runs of "find" changed then, all in at most three dimensions. \
Nothing was changed after a look at the ten.
- The rows of "earn" were played again, too: all 420 are the same in every digit that is kept.
- No peer was tuned; each is configured as its manual recommends (`benchmarks/peers/optimisers.py`)."""


INTRODUCTION = (
    "Every tool in its recommended configuration (`benchmarks/peers/optimisers.py`), from its own initial design and "
    "from ten points common to all, with 60 and with 200 evaluations, the design included. Twenty problems "
    "(`benchmarks/problems/__init__.py`) and ten that were held out (`benchmarks/problems/held_out.py`). `gpmi` is "
    'aim="find" with nothing set but the budget, `gpmi earn` is aim="earn". Simple regret is the gap of the best '
    "noise-free value among all queries, R_T/T the mean gap of the queries after the common design. A run *misses* if "
    f"its simple regret is above {MISS:.0%} of the spread of f, its maximum minus its mean over the space. Where the "
    "maximum is not known, the best value of all runs stands for it. Intervals are 95 % bootstrap intervals over "
    "problems and seeds. A failed run counts as the worst. Who has no run on some problem is not ranked, but compared "
    "pair by pair. Every run is in `compare/runs.csv`."
)


def body(rows: dict[comparison.Run, comparison.Row], settings: list[tuple[str, Runs]], costs: Costs) -> str:
    """Return the page of all settings, without its head."""
    parts = [
        "## What was promised",
        "Bold where it does not hold. Ranks and misses are those on the pairs (problem, seed) that all ranked tools "
        "have; the number of pairs is in the first column.",
        promise_table(settings),
        "\n".join(map(str, cost_verdicts(costs))),
        "## What was tuned on what",
        TUNED,
    ]
    for title, runs in settings:
        name = f"compare/{runs.start}-{runs.budget}.md"
        parts += [f"## {title[0].upper()}{title[1:]}", rank_section(runs), f"Problem by problem: [{name}]({name})."]
    parts += [
        "![mean ranks](compare/ranks.svg)",
        "## CPU seconds per suggestion",
        "ask + tell on Hartmann-6, refits included, mean over 20 consecutive rounds after n told points; peak memory. "
        "Other work shared the two cores; from one measurement to the next the ratios moved by up to a third, so gpmi "
        "and Emukit took five turns at each n, of which the median is shown.",
        f"{cost_section(costs)}\n\n![cost](compare/cost.svg)"
        if costs.rows
        else "Not measured yet: `make bench NAME=cost`.",
        "## Runs",
        effort_section(rows),
        failures(rows),
    ]
    return "\n\n".join(parts)


def details(all_runs: Runs) -> str:
    """Return the page of one setting, with all problems."""
    return (
        "\n\n".join(
            [
                f"# {all_runs.title[0].upper()}{all_runs.title[1:]}",
                "Part of [the comparison](../compare.md).",
                "## Pair by pair",
                pair_section(all_runs),
                "## Simple regret, medians",
                median_section(all_runs, "simple"),
                f"![simple regret](curves-simple-{all_runs.start}-{all_runs.budget}.svg)",
                "## Runs that miss",
                miss_section(all_runs),
                "## R_T/T, medians",
                median_section(all_runs, "mean"),
            ]
        )
        + "\n"
    )


def into_readme(settings: list[tuple[str, Runs]], costs: Costs) -> None:
    """Write the first promises of each setting and the cost between the README's two marks. The page has the others."""
    begin, end = "<!-- compare: written by make bench NAME=report -->", "<!-- compare: end -->"
    before, rest = README.read_text(encoding="utf-8").split(begin)
    text = "\n".join(
        [
            begin,
            f"A column is a promise, with what was measured; bold where it does not hold. Written on {date.today()}.",
            "",
            promise_table(settings, first=IN_README),
            "",
            *map(str, cost_verdicts(costs)),
            end,
        ]
    )
    README.write_text(before + text + rest.split(end)[1], encoding="utf-8")


def write(new: int) -> None:
    """Write all pages and pictures. `new` is the number of rows that were made just now."""
    plt.rcParams.update({"svg.hashsalt": US, "svg.fonttype": "none"})
    comparison.tidy()
    rows, costs = comparison.load(), Costs(comparison.COSTS.rows())
    settings = []
    for start, budget in itertools.product(comparison.STARTS, comparison.BUDGETS):
        groups = [(name, Runs.of(rows, start, budget, names)) for name, names in GROUPS.items()]
        complete = [(name, runs) for name, runs in groups if {US, EARN} < {runs.peers[i] for i in runs.covering}]
        settings += [(f"{runs.title}, {name}", runs) for name, runs in complete]
        if complete:
            both = Runs.of(rows, start, budget, comparison.NAMES)
            draw_curves(both)
            (COMPARE / f"{start}-{budget}.md").write_text(details(both))
    draw_ranks(settings)
    if costs.rows:
        draw_cost(costs)
    text = INTRODUCTION + checked()
    harness.page(
        __file__, "gpmi and its peers", text, [body(rows, settings, costs)], name="compare", runs=len(rows), new=new
    )
    into_readme(settings, costs)


def main() -> None:
    harness.parser(__doc__).parse_args()
    write(new=0)


if __name__ == "__main__":
    main()
