"""What do the tables of the comparison say? Writes docs/benchmarks/compare.md, the pages below it and their pictures.

    python benchmarks/report.py      half a minute

Reads docs/benchmarks/compare/runs.csv (`compare.py`) and docs/benchmarks/cost.csv (`cost.py`), complete or not, and
takes the verdicts of `bbob.py` and `recommended.py`. Three sentences and what does not hold go into README.md and
docs/index.md as well.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from datetime import date

import harness
import matplotlib

matplotlib.use("svg")
import bbob
import matplotlib.pyplot as plt
import numpy as np
import problems
import recommended
from matplotlib.figure import Figure
from peers import comparison
from peers import optimisers as peers
from peers.evidence import LACKING, PICTURE, Solved, draw
from peers.regrets import EARN, KINDS, MISS, US, Costs, Runs
from peers.statistics import Verdict, ahead, colours, interval, medians, slope, table, with_interval
from problems import held_out
from problems.functions import Array

NEEDS = "peers"
README, INDEX = harness.ROOT / "README.md", harness.ROOT / "docs" / "index.md"
COMPARE = harness.DOCS / "compare"
GROUPS = {"the twenty problems": problems.NAMES, "the ten held out": held_out.NAMES}


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
        Verdict("on no problem worse than the middle one of the other tools", not worse, ", ".join(worse) or "none"),
        Verdict("at least third on R_T/T", place <= 3, f"place {place} of {len(means)}"),
    ]
    earning = Verdict("earn: first on R_T/T", *_first(runs.without(US).ranks("mean"), EARN, "{:.2f}"))
    return [*result, earning]


def promise_table(settings: Iterable[tuple[str, Runs]]) -> str:
    """Return a line for each setting and group of problems, a column for each promise, bold where it does not hold."""
    found = [(title, runs, promises(runs)) for title, runs in settings]
    body = [
        [title, f"{int(runs.shared.sum())}", *(v.figures if v.holds else f"**{v.figures}**" for v in verdicts)]
        for title, runs, verdicts in found
    ]
    return table(["", "pairs", *(verdict.claim for verdict in found[0][2])], body)


# Costs


def cost_verdicts(costs: Costs) -> list[Verdict]:
    ours = costs.seconds.get(US, {})
    result = []
    for share, sizes in ((10, (20, 50, 100, 200)), (40, (500, 1000))):
        after = " and ".join(f"{n:,}" for n in sizes[:: len(sizes) - 1])
        claim = f"CPU per suggestion at most 1/{share} of that of the next Gaussian process, after {after} values"
        known = [(n, ours[n], found) for n in sizes if n in ours and (found := costs.cheapest(n)) is not None]
        held = all(us <= c / share for _, us, (_, c) in known) if len(known) == len(sizes) else None
        shown = [part for part in known if held is not False or part[1] > part[2][1] / share]
        # Rounded down, because 1/39.98 is not 1/40.
        figures = "; ".join(f"n = {n}: 1/{int(10 * c / us) / 10} of {peer}'s {c:.3g} s" for n, us, (peer, c) in shown)
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
other functions, and a third time at d0041ab: that rule had cost it the third place on R_T/T of the twenty problems \
with 200 evaluations, so its far points became rarer, in a way that was chosen on hills and development functions \
again. For 0.2.0 all rows of gpmi were played a fourth time, with the versions under *Runs*. Most runs differ from \
those before: a third policy was dropped, and fits and searches changed, judged on other problems. Nothing was changed \
after a look at the ten.
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


def sentences(whole: Runs, solved: Solved, costs: Costs, folder: str) -> list[str]:
    """Return three measured sentences. `folder` leads from the page to docs/benchmarks/."""
    ours, theirs = (float(solved.share(peer)[-1]) for peer in (US, solved.next_best))
    first = ours >= theirs
    title, place = ("It finds the best point more often", "next") if first else ("How often it finds the best", "best")
    count = f"{solved.runs:,} runs of {len(solved.peers)} methods on {len(solved.problems)} problems"
    outside = bbob.verdict()
    tests = f"[{len(bbob.RUNS.rows()):,} runs]({folder}bbob.md)"
    advice = f"[{len(recommended.RUNS.rows()):,} runs]({folder}recommended.md)"
    found = [
        f"**{title}:** within {MISS:.0%} of the maximum after {whole.budget} evaluations in {ours:.0%} of the runs; "
        f"the {place} other tool, {solved.next_best}, in {theirs:.0%} ([{count}]({folder}compare.md)).",
        "**On functions that others chose, and with noise:** mean rank on the BBOB suite, where 1 is always first: "
        f"{'not measured yet' if outside.holds is None else outside.figures} ({tests}). With noise, "
        f"{recommended.sentence()} ({advice}).",
    ]
    seconds = costs.seconds.get(US, {})
    known = {n: other for n in seconds if (other := costs.cheapest(n)) is not None}
    if known:
        times = [known[n][1] / seconds[n] for n in known]
        names = " and ".join(sorted({peer for peer, _ in known.values()}))
        count = f"{sum(int(row['rounds']) for row in costs.rows)} suggestions"
        found.append(
            f"**What a suggestion costs:** {1000 * seconds[min(known)]:.0f} ms of CPU after {min(known)} values and "
            f"{1000 * seconds[max(known)]:.0f} ms after {max(known):,}; the cheapest other Gaussian process, {names}, "
            f"takes {min(times):.0f} to {max(times):.0f} times as long "
            f"([{count}]({folder}compare.md#cpu-seconds-per-suggestion))."
        )
    return found


def unmet(settings: list[tuple[str, Runs]], costs: Costs) -> str:
    """Return one line with the promises that do not hold, and those that were not measured."""
    by_claim: dict[str, list[Verdict]] = {}
    for _, runs in settings:
        for verdict in promises(runs):
            by_claim.setdefault(verdict.claim, []).append(verdict)
    broken = []
    for claim, found in by_claim.items():
        named = [name for verdict in found if not verdict.holds for name in verdict.figures.split(", ")]
        figures = ", ".join(dict.fromkeys(named))
        if figures:
            failing = sum(not verdict.holds for verdict in found)
            broken.append(f'"{claim}" ({figures}, in {failing} of {len(found)} settings of start, budget and problems)')
    others = [*cost_verdicts(costs), bbob.verdict(), *recommended.verdicts()]
    broken += [f'"{verdict.claim}" ({verdict.figures})' for verdict in others if verdict.holds is False]
    absent = [f'"{verdict.claim}"' for verdict in others if verdict.holds is None]
    text = f"**What we aimed at and missed:** {'. Also: '.join(broken)}." if broken else "All that we aimed at holds."
    return text + (f" Not measured yet: {', '.join(absent)}." if absent else "")


def caption(solved: Solved) -> str:
    """Return what the picture shows and how it is counted."""
    fewest, most = solved.seeds
    return (
        f"Left: the share of runs within {MISS:.0%} of the best value, against the number of evaluations. In detail: "
        f"the gap to the maximum of f is at most {MISS:.0%} of its spread, the maximum minus the "
        "mean over the space. Each tool has its own start. Every problem counts once: its share is the mean over the "
        f"seeds that a tool has, {fewest} to {most}. Counted are the {solved.runs:,} runs on the "
        f"{len(solved.problems)} problems that all drawn tools have. A tool is drawn if it lacks at most {LACKING} of "
        f"the problems. Bands are 95 % bootstrap bands over the problems, for gpmi and {solved.next_best}. Right: CPU "
        "seconds of ask and tell on Hartmann-6 after so many values, for tools that were measured at two sizes or more."
    )


def body(rows: dict[comparison.Run, comparison.Row], settings: list[tuple[str, Runs]], costs: Costs) -> str:
    """Return the page that begins with the picture, without its head."""
    whole = settings[0][1]
    solved = Solved.of(whole)
    pages = dict.fromkeys((runs.title, f"compare/{runs.start}-{runs.budget}.md") for _, runs in settings)
    parts = [
        f"![How often each tool finds the best point, and what a suggestion costs]({PICTURE})",
        caption(solved),
        "## In short",
        *sentences(whole, solved, costs, ""),
        unmet(settings, costs),
        "- [Mean ranks and every promise, setting by setting](compare/ranks.md)\n"
        + "\n".join(f"- Problem by problem: [{title}]({page})" for title, page in pages)
        + "\n- [The BBOB suite](bbob.md)\n- [The recommended point under noise](recommended.md)",
        "## What was tuned on what",
        TUNED,
        "## CPU seconds per suggestion",
        "ask + tell on Hartmann-6, refits included, mean over 20 consecutive rounds after n told points; peak memory. "
        "Other work shared the two cores; from one measurement to the next the ratios moved by up to a third, so gpmi "
        "and Emukit took five turns at each n, of which the median is shown.",
        cost_section(costs) if costs.rows else "Not measured yet: `make bench NAME=cost`.",
        "## Runs",
        effort_section(rows),
        failures(rows),
    ]
    return "\n\n".join(parts)


def rank_page(settings: list[tuple[str, Runs]], costs: Costs) -> str:
    """Return the page with every promise and the mean ranks of all settings."""
    parts = [
        "# Ranks and promises",
        "Part of [the comparison](../compare.md), which says what the words mean and how many runs there are. Written "
        f"on {date.today()}.",
        "## What was promised",
        "Bold where it does not hold. Ranks and misses are those on the pairs (problem, seed) that all ranked tools "
        "have; the number of pairs is in the first column.",
        promise_table(settings),
        "\n".join(map(str, cost_verdicts(costs))),
        "![mean ranks](ranks.svg)",
    ]
    for title, runs in settings:
        name = f"{runs.start}-{runs.budget}.md"
        parts += [f"## {title[0].upper()}{title[1:]}", rank_section(runs), f"Problem by problem: [{name}]({name})."]
    return "\n\n".join(parts) + "\n"


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


def into_front_pages(settings: list[tuple[str, Runs]], costs: Costs) -> None:
    """Write what was measured, and what does not hold, between the two marks of README.md and docs/index.md."""
    begin, end = "<!-- compare: written by make bench NAME=report -->", "<!-- compare: end -->"
    whole = settings[0][1]
    solved = Solved.of(whole)
    for path in (README, INDEX):
        folder = f"{harness.DOCS.relative_to(path.parent).as_posix()}/"
        before, rest = path.read_text(encoding="utf-8").split(begin)
        text = "\n\n".join([begin, *sentences(whole, solved, costs, folder), unmet(settings, costs), end])
        path.write_text(before + text + rest.split(end)[1], encoding="utf-8")


def write(new: int) -> None:
    """Write all pages and pictures. `new` is the number of rows that were made just now."""
    plt.rcParams.update({"svg.hashsalt": US, "svg.fonttype": "none"})
    comparison.tidy()
    rows, costs = comparison.load(), Costs(comparison.COSTS.rows())
    groups = {"all thirty problems": comparison.NAMES, **GROUPS}
    settings = []
    for start, budget in itertools.product(comparison.STARTS, comparison.BUDGETS):
        first = (start, budget) == (comparison.STARTS[0], comparison.BUDGETS[0])
        chosen = groups if first else GROUPS  # all thirty together only where every tool has most runs
        named = [(name, Runs.of(rows, start, budget, names)) for name, names in chosen.items()]
        complete = [(name, runs) for name, runs in named if {US, EARN} < {runs.peers[i] for i in runs.covering}]
        settings += [(f"{runs.title}, {name}", runs) for name, runs in complete]
        if complete:
            both = Runs.of(rows, start, budget, comparison.NAMES)
            draw_curves(both)
            (COMPARE / f"{start}-{budget}.md").write_text(details(both))
    draw_ranks(settings)
    draw(Solved.of(settings[0][1]), costs)
    (COMPARE / "ranks.md").write_text(rank_page(settings, costs), encoding="utf-8")
    text = INTRODUCTION + checked()
    harness.page(
        __file__, "gpmi and its peers", text, [body(rows, settings, costs)], name="compare", runs=len(rows), new=new
    )
    into_front_pages(settings, costs)


def main() -> None:
    harness.parser(__doc__).parse_args()
    write(new=0)


if __name__ == "__main__":
    main()
