"""Does gpmi find better points than other tools on functions that others chose? The BBOB suite, once.

    python benchmarks/bbob.py [--tools ...] [--dimensions ...]    plays what is missing and writes the page
    python benchmarks/bbob.py --report                            writes the page from the table

The 24 noise-free functions of BBOB (package ioh) in 2, 5 and 10 dimensions, instance 1 of each, on their box [-5, 5]^d.
A run has 100 evaluations from the tool's own start, seed 0, and each tool is configured as in `compare.py`. Each run
has its own process, one BLAS thread and 15 minutes of CPU. A run that takes longer, or raises, is a row with its reason
in `status`, and counts as the worst. BoTorch's LogEI takes a minute a run.

The functions, instance, seed, budget and targets were fixed before any run. gpmi runs once, after its last change, and
nothing is chosen by the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import harness
import numpy as np
from peers import optimisers as peers
from peers import playing
from peers.statistics import Verdict, ahead, colours, interval, ranks, table, with_interval
from problems.functions import Array

NEEDS = "peers"
FUNCTIONS, DIMENSIONS = range(1, 25), (2, 5, 10)
INSTANCE, BUDGET, SEED = 1, 100, 0
TOOLS = ("gpmi", "gpmi earn", "random", "CMA-ES", "Optuna TPE", "Emukit EI", "Optuna GP", "BoTorch LogEI")
TARGETS = 10.0 ** np.linspace(2, -8, 51)  # gaps to reach: those of COCO, the platform of the suite
GROUPS = {
    "separable": range(1, 6),
    "moderate conditioning": range(6, 10),
    "one hill, badly scaled": range(10, 15),
    "many hills, ordered": range(15, 20),
    "many hills, hardly ordered": range(20, 25),
}
US = "gpmi"
COLUMNS = ("tool", "version", "function", "dimension", "status", "gap", "cpu", "improvements")
RUNS = harness.Table(harness.DOCS / "bbob.csv", COLUMNS, ("tool", "function", "dimension"))


class Run(NamedTuple):
    """A run: a key of the table."""

    tool: str
    function: int
    dimension: int


def gap_of(function: int, dimension: int) -> Callable[[Array], float]:
    """Return f minus its minimum."""
    import ioh

    problem: Any = ioh.get_problem(function, INSTANCE, dimension, ioh.ProblemClass.BBOB)
    return lambda x: max(problem(x) - problem.optimum.y, 0.0)


def play(run: Run, gap: Callable[[Array], float]) -> harness.Row:
    """Minimise the gap on [-5, 5]^d and return the row of the run.

    `gap` is the smallest gap, `cpu` the seconds in ask and tell, `improvements` each evaluation that was better than
    all before, with its gap.
    """
    tool = peers.make(run.tool, [(-5.0, 5.0)] * run.dimension, SEED, BUDGET, alone=True)
    peers.one_thread()
    gaps: list[float] = []

    def observe(x: Array) -> float:
        gaps.append(gap(x))
        return -gaps[-1]

    return row(run, gaps, *playing.play(tool, observe, BUDGET, ([], [])))


def row(run: Run, gaps: list[float], cpu: float, status: str) -> harness.Row:
    best = np.minimum.accumulate(gaps) if gaps else np.empty(0)
    better = [i for i in range(len(best)) if i == 0 or best[i] < best[i - 1]]
    return {
        "tool": run.tool,
        "version": peers.version(run.tool),
        "function": str(run.function),
        "dimension": str(run.dimension),
        "status": status,
        "gap": f"{best[-1]:.6g}" if status == "done" else "",
        "cpu": f"{cpu:.4g}",
        "improvements": " ".join(f"{i + 1}:{best[i]:.6g}" for i in better),
    }


def _play_and_store(run: Run) -> None:
    RUNS.append(play(run, gap_of(run.function, run.dimension)))


def place(found: harness.Row) -> tuple[int, int, int]:
    return TOOLS.index(found["tool"]), int(found["dimension"]), int(found["function"])


# The page


@dataclass(frozen=True)
class Found:
    """The rows of the table, as smallest gaps by tool, function and dimension."""

    rows: Sequence[harness.Row]

    @cached_property
    def curves(self) -> dict[Run, Array]:
        """Return the smallest gap after 1, 2, ... evaluations of each run; infinite for a failed one."""
        result = {}
        for found in self.rows:
            curve = np.full(BUDGET, np.inf)
            if found["status"] == "done":
                for number, gap in (text.split(":") for text in found["improvements"].split()):
                    curve[int(number) - 1 :] = float(gap)
            result[Run(found["tool"], int(found["function"]), int(found["dimension"]))] = curve
        return result

    def tools(self, dimensions: Sequence[int], functions: Sequence[int] = FUNCTIONS) -> list[str]:
        """Return the tools with all runs of these functions in these dimensions."""
        every = [(f, d) for d in dimensions for f in functions]
        return [tool for tool in TOOLS if all(Run(tool, f, d) in self.curves for f, d in every)]

    def gaps(self, tools: Sequence[str], dimensions: Sequence[int], functions: Sequence[int] = FUNCTIONS) -> Array:
        """Return the gaps (tool, function and dimension, 1) at the end."""
        every = [(f, d) for d in dimensions for f in functions]
        return np.array([[[self.curves[Run(tool, f, d)][-1]] for f, d in every] for tool in tools])

    def ranks(self, dimensions: Sequence[int], functions: Sequence[int] = FUNCTIONS) -> dict[str, Array]:
        """Return the ranks of the tools that have all these runs."""
        tools = self.tools(dimensions, functions)
        return dict(zip(tools, ranks(self.gaps(tools, dimensions, functions)), strict=True)) if tools else {}

    def solved(self, tool: str, dimensions: Sequence[int]) -> Array:
        """Return the share of (function, target) pairs reached after 1, 2, ... evaluations."""
        curves = np.array([self.curves[Run(tool, f, d)] for d in dimensions for f in FUNCTIONS])
        share: Array = (curves[:, :, None] <= TARGETS).mean(axis=(0, 2))
        return share


def verdict() -> Verdict:
    """Return whether gpmi is first by mean rank of all tools that have all runs."""
    found = Found(RUNS.rows())
    means = {tool: float(np.mean(values)) for tool, values in found.ranks(DIMENSIONS).items() if tool != "gpmi earn"}
    claim = f"first by mean rank on the {len(FUNCTIONS)} functions of BBOB in 2, 5 and 10 dimensions"
    if US not in means:
        return Verdict(claim, None, "")
    best = min((tool for tool in means if tool != US), key=means.__getitem__)
    return Verdict(claim, means[US] <= means[best], f"gpmi {means[US]:.2f}, next {best} {means[best]:.2f}")


def rank_table(found: Found, head: str, columns: dict[str, tuple[Sequence[int], Sequence[int]]]) -> str:
    """Return mean ranks, a row for each tool and a column for each set of dimensions and functions."""
    scored = {title: found.ranks(*chosen) for title, chosen in columns.items()}
    first = next(iter(scored.values()))
    last = {tool: len(TOOLS) + i for i, tool in enumerate(TOOLS)}
    order = sorted(TOOLS, key=lambda tool: float(np.mean(first[tool])) if tool in first else last[tool])
    body = [
        [tool, *(with_interval(interval(of[tool]), "{:.2f}") if tool in of else "" for of in scored.values())]
        for tool in order
        if any(tool in of for of in scored.values())
    ]
    return table([head, *columns], body)


def pair_table(found: Found) -> str:
    """Return, for each other tool, in how many pairs (function, dimension) gpmi is ahead."""
    body = []
    for tool in TOOLS:
        dimensions = [d for d in DIMENSIONS if {US, tool} <= set(found.tools([d]))]
        if tool != US and dimensions:
            ours, theirs = found.gaps([US, tool], dimensions)
            share = with_interval(interval(ahead(ours, theirs)), "{:.0%}")
            body.append([tool, str(len(ours)), share])
    return table(["tool", "pairs", "gpmi ahead"], body)


def gap_table(found: Found, dimension: int) -> str:
    """Return the gap at the end of every run in one dimension, the smallest of a function in bold."""
    tools = found.tools([dimension])
    body = []
    for f in FUNCTIONS:
        gaps = [found.curves[Run(tool, f, dimension)][-1] for tool in tools]
        cells = [f"**{gap:.2g}**" if gap == min(gaps) else f"{gap:.2g}" for gap in gaps]
        body.append([f"f{f}", *cells])
    return table(["", *tools], body)


def draw(found: Found) -> None:
    """Draw the share of (function, target) pairs reached against the number of evaluations."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": US, "svg.fonttype": "none"})
    figure, axes = plt.subplots(1, len(DIMENSIONS), figsize=(11, 3.6), layout="constrained", sharey=True)
    for axis, d in zip(axes, DIMENSIONS, strict=True):
        for tool, style in colours(found.tools([d])).items():
            axis.plot(1 + np.arange(BUDGET), found.solved(tool, [d]), label=tool, **style)
        axis.set(title=f"{d} dimensions", xlabel="evaluations")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("share of targets reached")
    handles = {name: line for axis in axes for line, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=8, fontsize=8)
    figure.savefig(harness.DOCS / "bbob.svg", metadata={"Date": None})
    plt.close(figure)


def effort_table(found: Found) -> str:
    body = []
    for tool in TOOLS:
        mine = [r for r in found.rows if r["tool"] == tool]
        cpu = [[float(r["cpu"]) for r in mine if r["dimension"] == str(d)] for d in DIMENSIONS]
        if mine:
            versions = ", ".join(sorted({r["version"] for r in mine}))
            failed = sum(r["status"] != "done" for r in mine)
            cells = (f"{np.median(seconds):.3g}" if seconds else "" for seconds in cpu)
            body.append([tool, versions, str(len(mine)), str(failed), *cells])
    return table(["tool", "version", "runs", "failed", *(f"CPU seconds, {d} dimensions" for d in DIMENSIONS)], body)


def write(new: int) -> None:
    """Write the page and its picture. `new` is the number of rows that were made just now."""
    found = Found(RUNS.rows())
    draw(found)
    text = (
        "The 24 noise-free functions of the BBOB suite (package `ioh`) in 2, 5 and 10 dimensions, instance "
        f"{INSTANCE} of each, {BUDGET} evaluations, from each tool's own start, seed {SEED}, every tool configured as "
        "in [the comparison](compare.md). The suite is of others, and gpmi was not tuned on it: functions, instance, "
        "seed, budget and targets were fixed before any run, and gpmi ran once, at the version below. The gap is f "
        "minus its minimum. Ranks are those of the smallest gap; intervals are 95 % bootstrap intervals over the "
        "functions. A failed run counts as the worst. A tool is ranked where it has all runs of a column."
    )
    by_dimension = {"all": (DIMENSIONS, FUNCTIONS), **{f"{d} dimensions": ((d,), FUNCTIONS) for d in DIMENSIONS}}
    lines = [
        "## What was promised",
        str(verdict()),
        "![share of targets reached against the number of evaluations](bbob.svg)",
        f"The share of pairs (function, target) that a tool has reached. Targets are the {len(TARGETS)} gaps from "
        "100 down to 1e-8 of COCO, evenly on a logarithmic scale.",
        "## Mean ranks",
        rank_table(found, "", by_dimension),
        "By group of functions, all dimensions together:",
        rank_table(found, "", {name: (DIMENSIONS, group) for name, group in GROUPS.items()}),
    ]
    if US in found.tools([DIMENSIONS[0]]):
        lines += ["## Pair by pair", pair_table(found)]
    for d in DIMENSIONS:
        lines += [f"## Gaps at the end, {d} dimensions", gap_table(found, d)]
    lines += [
        "## Runs",
        effort_table(found),
        "Emukit's regression is that of its own example, fitted from one start. In some runs it takes all values for "
        "noise and stays there, as on f1 in 2 dimensions.",
    ]
    body = ["\n\n".join(lines)]
    harness.page(__file__, "The BBOB suite", text, body, runs=len(found.rows), new=new, packages=("ioh",))


def main() -> None:
    parser = harness.parser(__doc__, report=True)
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS, metavar="TOOL")
    parser.add_argument("--dimensions", nargs="+", type=int, default=list(DIMENSIONS), choices=DIMENSIONS)
    chosen = parser.parse_args()
    wanted = [Run(tool, f, d) for tool in chosen.tools for d in chosen.dimensions for f in FUNCTIONS]
    todo = [] if chosen.report else RUNS.missing(wanted)
    playing.in_turn(todo, _play_and_store, lambda run, reason: RUNS.append(row(run, [], 0.0, reason)))
    RUNS.tidy(place, latest=True)
    write(new=len(todo))


if __name__ == "__main__":
    main()
