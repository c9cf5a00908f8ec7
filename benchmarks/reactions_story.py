"""A screen of couplings, four ways: how many experiments does it take to find a good recipe?

    python benchmarks/reactions_story.py     writes docs/reactions.md and its picture; some minutes

The reactions are those of Ahneman and others (2018), read from ../shared/data/aryl_halides. The new study is about one
aryl halide; the earlier one, about another. Descriptors are those of `gpmi.chem.features`, which needs RDKit and
mordredcommunity. Both halides and the seeds were chosen before the first run, by their place in the file.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import harness
import numpy as np
from problems import laboratory_tables

import gpmi
from gpmi.analysis.random_order import best_of_random

TARGET, SOURCE = 6, 3  # places in the file: 1-bromo-4-ethylbenzene, and 1-chloro-4-methoxybenzene
SEEDS, BUDGET, LOOKS = 20, 40, (5, 10, 20, 30, 40)
PAGE = harness.ROOT / "docs" / "reactions.md"
PICTURE = harness.ROOT / "docs" / "reactions.png"


def play(table: Any, seed: int, **options: Any) -> list[float]:
    """Return the best yield after each experiment of one run."""
    space = gpmi.Space.of(table.parameters, features=options.pop("features", None))
    known = {tuple(row): y for row, y in zip(table.parameters.to_numpy().tolist(), table.y.tolist(), strict=True)}
    opt = gpmi.Optimizer(space, seed=seed, budget=BUDGET, bounds=(0, 100), **options)
    best: list[float] = []
    for _ in range(BUDGET):
        x = opt.ask()
        y = known[tuple(x[name] for name in table.parameters)]
        opt.tell(x, y)
        best.append(max(y, best[-1]) if best else y)
    return best


def arms(target: Any, source: Any) -> dict[str, dict[str, Any]]:
    """Return the options of each way to run the study."""
    features = {name: gpmi.chem.features(smiles) for name, smiles in target.smiles.items()}
    rows = source.parameters.to_dict("records")
    earlier = {"earlier": {"the other halide": list(zip(rows, source.y.tolist(), strict=True))}}
    return {
        "names alone": {},
        "descriptors": {"features": features},
        "the earlier study": earlier,
        "both": {"features": features, **earlier},
    }


def draw(curves: dict[str, np.ndarray], random: np.ndarray, best: float) -> None:
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.6, 4.2), layout="constrained")
    t = np.arange(1, BUDGET + 1)
    axis.plot(t, random[1 : BUDGET + 1], color="#8C8C8C", label="random order")
    colours = ("#56B4E9", "#009E73", "#E69F00", "#0072B2")
    for (name, runs), colour in zip(curves.items(), colours, strict=True):
        axis.plot(t, runs.mean(axis=0), color=colour, label=name, linewidth=1.8)
    axis.axhline(best, color="#D55E00", linestyle="--", linewidth=1.0, label="the best of all")
    axis.set(xlabel="experiments", ylabel="best yield so far, %", xlim=(1, BUDGET))
    axis.legend(frameon=False, loc="lower right")
    axis.grid(alpha=0.25)
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    harness.parser(__doc__).parse_args()
    try:
        names = laboratory_tables.halides()
    except laboratory_tables.NotInstalled as missing:
        sys.exit(str(missing))
    target, source = (laboratory_tables.load(names[place]) for place in (TARGET, SOURCE))
    curves, seconds = {}, {}
    for name, options in arms(target, source).items():
        begin = time.process_time()
        curves[name] = np.array([play(target, seed, **dict(options)) for seed in range(SEEDS)])
        seconds[name] = (time.process_time() - begin) / (SEEDS * BUDGET)
        harness.say(f"{name}: {curves[name].mean(axis=0)[[look - 1 for look in LOOKS]].round(1)}")
    random, _ = best_of_random(target.y, BUDGET)
    best = float(target.y.max())
    draw(curves, random, best)
    rows = [["random order", *(f"{random[look]:.1f}" for look in LOOKS), ""]]
    for name, runs in curves.items():
        rows.append([name, *(f"{runs[:, look - 1].mean():.1f}" for look in LOOKS), f"{1e3 * seconds[name]:.0f} ms"])
    until = {
        name: statistics.median(
            next((t for t, y in enumerate(run, 1) if y >= 0.95 * best), BUDGET + 1) for run in runs.tolist()
        )
        for name, runs in curves.items()
    }
    words = ", ".join(f"{name} {'over ' if n > BUDGET else ''}{min(n, BUDGET):g}" for name, n in until.items())
    text = PAGE.read_text(encoding="utf-8")
    mark, end = "<!-- written by benchmarks/reactions_story.py -->\n", "<!-- end -->"
    head, tail = text[: text.index(mark) + len(mark)], text[text.index(end) :]
    lines = [
        "![The best yield so far against experiments: random order, names alone, descriptors, an earlier study, both]"
        "(reactions.png)",
        "",
        *harness.table(["best yield after", *map(str, LOOKS), "CPU for an experiment"], rows),
        "",
        f"The best of the {len(target.y)} reactions gives {best:.1f} %. Experiments until half of the runs have 95 % "
        f"of that: {words}.",
        "",
        f"Study: {target.name}. Earlier study: {source.name}, {len(source.y)} reactions. Means of {SEEDS} runs; a "
        f"random order is computed exactly. Written by `make bench NAME=reactions_story` on "
        f"{time.strftime('%Y-%m-%d')}, commit {harness.commit()}; {harness.machine('rdkit', 'mordredcommunity')}.",
    ]
    PAGE.write_text(head + "\n".join(lines) + "\n" + tail, encoding="utf-8")
    harness.say(f"wrote {PAGE.relative_to(harness.ROOT)}")


if __name__ == "__main__":
    main()
