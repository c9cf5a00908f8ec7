"""What is an earlier study worth, and what does it cost where it misleads?

    python benchmarks/transfer.py                          all problems, arms and seeds; an hour; resumes
    python benchmarks/transfer.py --arms earlier cold      some arms, --problems hartmann-3, --seeds 0 1 2
    python benchmarks/transfer.py --report                 write the page, and run nothing

Every run has 15 evaluations and 40 values of a source at random points. The arm "earlier" gives them as
`earlier={"source": values}`. "same function" tells them as values of f, "choice" makes the study one option of a choice
and the source the other one, "cold" does without. BayBE models the study by its `TaskParameter`.

Hartmann-3 has six sources: f itself, f in other units, f plus a smooth function of 30 % of its sd, f with the optimum
moved, -f, and a function that has nothing to do with f. The reactions are those of Ahneman and others (2018): one aryl
halide is the source and another one the study. Rules were tuned on Branin, Hartmann-6, draws of a Gaussian process and
Hartmann-3 itself, with seeds from 100 on and with no other ones.

BayBE needs an environment of its own: python -m venv .venv-baybe, pip install baybe==0.15.0; then run this script there
with PYTHONPATH=src and --arms BayBE. It takes seconds for a suggestion, so it plays some pairs alone, 10 evaluations.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import harness
import numpy as np

Array = Any
NEEDS = "peers"
DATA = harness.ROOT.parent / "shared" / "data" / "aryl_halides" / "data.csv"
PICTURE = harness.ROOT / "docs" / "howto" / "earlier.png"
KEY = ("problem", "source", "seed", "arm")
AFTER = (3, 5, 10, 15)
COLUMNS = (*KEY, *(f"after {n}" for n in AFTER), "cpu ms")
TABLE = harness.Table(harness.DOCS / "transfer.csv", COLUMNS, KEY)
BUDGET, PEER_BUDGET, VALUES = 15, 10, 40
PROBE, PROBE_SEEDS, PAIR_SEEDS = "hartmann-3", range(24), range(10)
SOURCES = ("same", "scaled", "near", "moved", "negated", "unrelated")
EARLIER, SAME, CHOICE, COLD, PEER = "earlier", "same function", "choice", "cold", "BayBE"
ARMS = (EARLIER, SAME, CHOICE, COLD)
PARAMETERS = ["base", "ligand", "additive"]
PEER_COUNT = 8  # pairs of aryl halides that BayBE plays, drawn by default_rng(0)
ENOUGH = 20  # runs of BayBE for a comparison
SIMILAR, NEGATED = 1.5, 1.2  # what the page promises, in units of the regret of CHOICE after 10, and of COLD after 15


# Hartmann-3 and its sources


def probe(source: str, seed: int) -> tuple[Callable[[Array], float], float, Callable[[Array], float]]:
    """Return Hartmann-3, its maximum, and a source."""
    from problems.functions import HARTMANN3_MAXIMUM, hartmann3

    def f(x: Array) -> float:
        return float(hartmann3(np.asarray(x)))

    sd = float(np.std([f(x) for x in np.random.default_rng(5).random((500, 3))]))
    rng = np.random.default_rng([seed, 77])
    omega, phase = rng.standard_normal((400, 3)) / 0.35, rng.uniform(0.0, 2.0 * np.pi, 400)
    weights = rng.standard_normal(400) * np.sqrt(2.0 / 400.0)

    def other(x: Array) -> float:  # about a draw of a Gaussian process with the lengthscale 0.35
        return sd * float(weights @ np.cos(omega @ np.asarray(x) + phase))

    moved = np.array([-0.1, 0.1, -0.1])
    found: dict[str, Callable[[Array], float]] = {
        "same": f,
        "scaled": lambda x: 1000.0 * f(x) + 50_000.0,
        "near": lambda x: f(x) + 0.3 * other(x),
        "moved": lambda x: f(np.clip(np.asarray(x) + moved, 0.0, 1.0)),
        "negated": lambda x: -f(x),
        "unrelated": other,
    }
    return f, HARTMANN3_MAXIMUM, found[source]


def play_probe(source: str, seed: int, arm: str) -> tuple[list[float], float]:
    """Return the regret after each evaluation, and the CPU seconds of the suggestions."""
    import gpmi

    f, maximum, other = probe(source, seed)
    values = [(x, other(x)) for x in np.random.default_rng([seed, 3]).random((VALUES, 3))]
    box, names = [(0.0, 1.0)] * 3, ("x0", "x1", "x2")

    def named(x: Array, task: str) -> dict[str, Any]:
        return {**dict(zip(names, map(float, x), strict=True)), "task": task}

    fixed = None
    if arm == EARLIER:
        opt = gpmi.Optimizer(box, seed=seed, budget=BUDGET, earlier={"source": values})
    elif arm == SAME:
        opt = gpmi.Optimizer(box, seed=seed, budget=BUDGET + VALUES)
        opt.tell_all(values)
    elif arm == CHOICE:
        space = {**dict(zip(names, box, strict=True)), "task": ["source", "study"]}
        opt, fixed = gpmi.Optimizer(space, seed=seed, budget=BUDGET + VALUES), {"task": "study"}
        opt.tell_all([(named(x, "source"), y) for x, y in values])
    else:
        opt = gpmi.Optimizer(box, seed=seed, budget=BUDGET)
    regrets, best, cpu = [], -np.inf, 0.0
    for _ in range(BUDGET):
        begin = time.process_time()
        x = opt.ask(fixed=fixed)
        cpu += time.process_time() - begin
        y = f([x[name] for name in names] if fixed else x)
        begin = time.process_time()
        opt.tell(x, y)
        cpu += time.process_time() - begin
        best = max(best, y)
        regrets.append(maximum - best)
    return regrets, cpu


# Reactions


_tables: dict[str, Any] = {}


def reactions(path: Path = DATA) -> dict[str, Any]:
    """Return the table of each aryl halide: the mean yield of each combination, in the order of the file. Read once."""
    import pandas

    if _tables:
        return _tables
    if not path.exists():
        sys.exit(f"there is no {path}; it is the file data.csv of the aryl halides")
    frame = pandas.read_csv(path).dropna(subset=["aryl_halide"])
    frame["additive"] = frame["additive"].fillna("none")
    for name, part in frame.groupby("aryl_halide", sort=False):
        _tables[name] = part.groupby(PARAMETERS, sort=False, as_index=False)["yield"].mean()
    return _tables


def pairs() -> list[str]:
    """Return all pairs of aryl halides as "source > study", by their numbers in the file."""
    count = range(len(reactions()))
    return [f"{i} > {j}" for i in count for j in count if i != j]


def peer_pairs() -> list[str]:
    """Return the pairs that BayBE plays."""
    every = pairs()
    return [every[i] for i in sorted(np.random.default_rng(0).choice(len(every), PEER_COUNT, replace=False))]


def play_pair(pair: str, seed: int, arm: str) -> tuple[list[float], float]:
    """Return the best yield after each evaluation, and the CPU seconds of the suggestions."""
    tables = list(reactions().values())
    first, second = map(int, pair.split(" > "))
    source = tables[first].sample(VALUES, random_state=seed)
    return (baybe_pair if arm == PEER else gpmi_pair)(source, tables[second], seed, arm)


def gpmi_pair(source: Any, study: Any, seed: int, arm: str) -> tuple[list[float], float]:
    import gpmi

    values = [(dict(row[PARAMETERS]), float(row["yield"])) for _, row in source.iterrows()]
    found = {tuple(row[PARAMETERS]): float(row["yield"]) for _, row in study.iterrows()}
    earlier = {"source": values} if arm == EARLIER else None
    best, every, cpu = -np.inf, list[float](), 0.0
    begin = time.process_time()
    opt = gpmi.Optimizer(study[PARAMETERS], seed=seed, budget=BUDGET, repeats=False, earlier=earlier)
    cpu += time.process_time() - begin
    for _ in range(BUDGET):
        begin = time.process_time()
        x = opt.ask()
        cpu += time.process_time() - begin
        y = found[tuple(x[name] for name in PARAMETERS)]
        begin = time.process_time()
        opt.tell(x, y)
        cpu += time.process_time() - begin
        best = max(best, y)
        every.append(best)
    return every, cpu


def baybe_pair(source: Any, study: Any, seed: int, arm: str) -> tuple[list[float], float]:
    import pandas
    from baybe import Campaign
    from baybe.parameters import CategoricalParameter, TaskParameter
    from baybe.recommenders import BotorchRecommender
    from baybe.searchspace import SearchSpace
    from baybe.settings import Settings
    from baybe.targets import NumericalTarget

    Settings(random_seed=seed).activate()
    both = pandas.concat([source.assign(task="source"), study.assign(task="study")])
    parameters = [CategoricalParameter(name, sorted(both[name].unique()), encoding="OHE") for name in PARAMETERS]
    task = TaskParameter("task", ["source", "study"], active_values=["study"])
    space = SearchSpace.from_dataframe(study[PARAMETERS].assign(task="study"), [*parameters, task])
    campaign = Campaign(
        space, NumericalTarget("yield").to_objective(), BotorchRecommender(), allow_recommending_already_measured=False
    )
    found = {tuple(row[PARAMETERS]): float(row["yield"]) for _, row in study.iterrows()}
    campaign.add_measurements(source.assign(task="source"))
    best, every, cpu = -np.inf, list[float](), 0.0
    for _ in range(PEER_BUDGET):
        begin = time.process_time()
        asked = campaign.recommend(1)
        cpu += time.process_time() - begin
        y = found[tuple(asked.iloc[0][name] for name in PARAMETERS)]
        asked["yield"] = y
        campaign.add_measurements(asked)
        best = max(best, y)
        every.append(best)
    return every, cpu


def play(problem: str, source: str, seed: int, arm: str) -> dict[str, Any]:
    """Play one run and return its row."""
    curve, cpu = play_probe(source, seed, arm) if problem == PROBE else play_pair(source, seed, arm)
    cells = [f"{curve[n - 1]:.6g}" if n <= len(curve) else "" for n in AFTER]
    return dict(zip(COLUMNS, (problem, source, seed, arm, *cells, f"{1000.0 * cpu / len(curve):.3g}"), strict=True))


def runs(problems: Sequence[str], seeds: Sequence[int] | None, arms: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the runs, one seed of all problems before the next."""
    for seed in seeds or PROBE_SEEDS:
        if PROBE in problems:
            for source in SOURCES:
                own = [arm for arm in arms if arm != PEER]
                yield from ((PROBE, source, seed, arm) for arm in own if arm != COLD or source == SOURCES[0])
        if "reactions" in problems and seed in PAIR_SEEDS:
            listed = peer_pairs() if list(arms) == [PEER] else pairs()
            shown = [arm for arm in arms if arm in (EARLIER, COLD, PEER)]
            yield from (("reactions", pair, seed, arm) for pair in listed for arm in shown)


# The page


class Rows:
    """The rows of the reported seeds, by problem, source and arm."""

    def __init__(self, rows: Sequence[harness.Row]) -> None:
        self.cells: dict[tuple[str, str, str], dict[int, harness.Row]] = {}
        for row in rows:
            if int(row["seed"]) in PROBE_SEEDS:
                self.cells.setdefault((row["problem"], row["source"], row["arm"]), {})[int(row["seed"])] = row

    def of(self, source: str, arm: str, after: int) -> list[float]:
        """Return the regrets of an arm on Hartmann-3. A cold run is the same for all sources."""
        found = self.cells.get((PROBE, SOURCES[0] if arm == COLD else source, arm), {})
        return [float(row[f"after {after}"]) for row in found.values()]

    def median(self, source: str, arm: str, after: int) -> float:
        return float(np.median(self.of(source, arm, after)))

    def yields(self, arm: str, after: int, like: str | None = None) -> list[float]:
        """Return the best yields of an arm in the reactions; with `like`, those of the runs that this arm has, too."""
        found = []
        for pair in pairs():
            own = self.cells.get(("reactions", pair, arm), {})
            kept = own if like is None else self.cells.get(("reactions", pair, like), {})
            found += [float(row[f"after {after}"]) for seed, row in own.items() if seed in kept]
        return found

    def milliseconds(self, arm: str) -> float:
        found = [
            float(row["cpu ms"]) for (_, _, own), part in self.cells.items() if own == arm for row in part.values()
        ]
        return float(np.median(found)) if found else float("nan")


def probe_lines(rows: Rows) -> list[str]:
    head = ["source", "after", EARLIER, SAME, CHOICE, COLD]
    cells = [
        [source if after == 5 else "", after, *(f"{rows.median(source, arm, after):.4f}" for arm in ARMS)]
        for source in SOURCES
        for after in (5, 10, 15)
    ]
    return harness.table(head, cells)


def promise_lines(rows: Rows) -> list[str]:
    def ratio(source: str, arm: str, after: int, to: str | None = None) -> float:
        return rows.median(source, EARLIER, after) / rows.median(to or source, arm, after)

    lines = []
    for source in ("same", "scaled", "near", "moved"):
        found = ratio(source, CHOICE, 10, "same" if source == "scaled" else None)
        lines.append([f"{source}: after 10, in units of the choice", f"at most {SIMILAR}", found, found <= SIMILAR])
    scaled = ratio("scaled", EARLIER, 10, "same")
    lines.append(["scaled: after 10, in units of same", "at most 1.1", scaled, scaled <= 1.1])
    for source in ("negated", "unrelated"):
        found = ratio(source, COLD, 15)
        lines.append([f"{source}: after 15, in units of cold", f"at most {NEGATED}", found, found <= NEGATED])
    return harness.table(
        ["promise", "bound", "measured", "holds"],
        [[what, bound, f"{value:.2f}", harness.yes(bool(holds))] for what, bound, value, holds in lines],
    )


def share(rows: Rows, arm: str) -> str:
    """Say how many of the runs of an arm are in the table."""
    return f"{len(rows.yields(arm, 3))} of the {len(pairs()) * len(PAIR_SEEDS)} runs"


def mean_and_error(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values) / np.sqrt(max(1, len(values))):.1f}" if len(values) else ""


def reaction_lines(rows: Rows) -> list[str]:
    head = ["arm", "runs", *(f"after {n}" for n in AFTER), "ms a suggestion"]
    cells = []
    for arm in (EARLIER, COLD):
        found = [mean_and_error(rows.yields(arm, n, EARLIER)) for n in AFTER]
        cells.append([arm, len(rows.yields(arm, 3, EARLIER)), *found, f"{rows.milliseconds(arm):.0f}"])
    for arm in (EARLIER, COLD, PEER):
        found = [mean_and_error(rows.yields(arm, n, PEER)) if n <= PEER_BUDGET else "" for n in AFTER]
        name = f"{arm}, the runs of BayBE"
        cells.append([name, len(rows.yields(arm, 3, PEER)), *found, f"{rows.milliseconds(arm):.0f}"])
    return harness.table(head, cells)


def difference_lines(rows: Rows) -> list[str]:
    lines = []
    for n in (5, 10):
        own, peer = (np.array(rows.yields(arm, n, PEER)) for arm in (EARLIER, PEER))
        if len(own) == len(peer) >= ENOUGH:
            gap = own - peer
            error = np.std(gap) / np.sqrt(len(gap))
            lines.append(f"- earlier minus BayBE after {n}: {gap.mean():.1f} ± {error:.1f} % of yield, {len(gap)} runs")
    return lines


def draw(rows: Rows) -> None:
    """Draw the median regrets of four sources for docs/howto/earlier.md."""
    from gpmi.views.figures.style import style

    shown = (EARLIER, SAME, COLD)
    with style():
        import matplotlib.pyplot as plt

        figure, panels = plt.subplots(1, 4, figsize=(9.0, 2.6), sharey=True, layout="constrained")
        for source, panel in zip(("same", "moved", "negated", "unrelated"), panels, strict=True):
            for arm, mark in zip(shown, ("o-", "s--", "^:"), strict=True):
                panel.semilogy(AFTER, [rows.median(source, arm, n) for n in AFTER], mark, label=arm)
            panel.set_title(f"source: {source}")
            panel.set_xlabel("evaluations")
        panels[0].set_ylabel("median regret")
        panels[2].legend(loc="lower left")
        figure.savefig(PICTURE, dpi=110)
        plt.close(figure)
    harness.say(f"wrote {PICTURE.relative_to(harness.ROOT)}")


def write_page(new: int) -> None:
    rows = Rows(TABLE.rows())
    draw(rows)
    count = sum(len(part) for part in rows.cells.values())
    text = (
        f"A run has {BUDGET} evaluations, and {VALUES} values of a source at random points. `earlier` gives these as a "
        "named source, `same function` tells them as values of f, `choice` makes source and study the options of a "
        "choice, and `cold` does without. Rules were chosen on Branin, Hartmann-6, draws of a Gaussian process and "
        "Hartmann-3 itself, with other seeds and the same kinds of sources."
    )
    body = [
        "## Hartmann-3",
        "",
        f"Median regret of {len(PROBE_SEEDS)} runs. The sources are f itself, 1000 f + 50000, f plus a smooth function "
        "of 30 % of its sd, f with the optimum moved by 0.1 in each coordinate, -f, and an unrelated function.",
        "",
        *probe_lines(rows),
        "",
        *promise_lines(rows),
        "",
        "## Reactions",
        "",
        "The best yield in %, mean and standard error. One aryl halide is the source, another one the study, labels "
        f"only (Ahneman and others 2018). {share(rows, EARLIER)} of all ordered pairs and {len(PAIR_SEEDS)} seeds are "
        "in the table. BayBE 0.15 with its `TaskParameter` takes seconds for a suggestion. It plays the pairs "
        f"{', '.join(peer_pairs())}, of which {len(rows.yields(PEER, 3))} runs are finished; the other arms are shown "
        "for the same runs.",
        "",
        *reaction_lines(rows),
        "",
        "A cold run depends on the study and the seed alone, so for one seed there are only 15 different ones. The "
        "standard errors do not account for that.",
        "",
        *difference_lines(rows),
    ]
    harness.page(__file__, "What is an earlier study worth?", text, body, runs=count, new=new)


def main() -> None:
    made = harness.parser(__doc__, cores=True, report=True)
    made.add_argument("--problems", nargs="+", default=[PROBE, "reactions"], choices=[PROBE, "reactions"])
    made.add_argument("--arms", nargs="+", default=list(ARMS), choices=[*ARMS, PEER])
    made.add_argument("--seeds", nargs="+", type=int)
    made.add_argument("--data", type=Path, default=DATA, help="the table of reactions (default: %(default)s)")
    arguments = made.parse_args()
    reactions(arguments.data)
    new = 0
    if not arguments.report:
        new = harness.resume(TABLE, runs(arguments.problems, arguments.seeds, arguments.arms), play, arguments.cores)
        TABLE.tidy(lambda row: (row["problem"], row["source"], row["arm"], int(row["seed"])), latest=True)
    if PEER not in arguments.arms:
        write_page(new)


if __name__ == "__main__":
    main()
