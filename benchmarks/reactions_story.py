"""A screen of couplings, four ways: how many experiments does it take to find a good recipe?

    python benchmarks/reactions_story.py     writes docs/reactions.md and its picture; some minutes

The reactions are those of Ahneman and others (2018), read from ../shared/data/aryl_halides. Each of the 15 aryl halides
is a study. Its earlier study is the halide three places before it in the file: the same halogen on another ring.
Descriptors are those of `gpmi.chem.features`, which needs RDKit and mordredcommunity.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import harness
import numpy as np
from problems import laboratory_tables

import gpmi
from gpmi.analysis.random_order import best_of_random

SEEDS, BUDGET, LOOKS = 4, 40, (5, 10, 20, 30, 40)
BEFORE = 3  # places in the file between a study and its earlier study
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


def draw(curves: dict[str, np.ndarray]) -> None:
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.6, 4.2), layout="constrained")
    t = np.arange(1, BUDGET + 1)
    colours = ("#8C8C8C", "#56B4E9", "#009E73", "#E69F00", "#0072B2")
    for (name, runs), colour in zip(curves.items(), colours, strict=True):
        axis.plot(t, runs.mean(axis=0), color=colour, label=name, linewidth=1.8)
    axis.set(xlabel="experiments", ylabel="best yield so far, in % of the best possible", xlim=(1, BUDGET))
    axis.legend(frameon=False, loc="lower right")
    axis.grid(alpha=0.25)
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    harness.parser(__doc__).parse_args()
    try:
        names = laboratory_tables.halides()
    except laboratory_tables.NotInstalled as missing:
        sys.exit(str(missing))
    found: dict[str, list[Any]] = {}
    seconds: dict[str, float] = {}
    for place, name in enumerate(names):
        target, source = laboratory_tables.load(name), laboratory_tables.load(names[place - BEFORE])
        share = 100.0 / float(target.y.max())
        found.setdefault("random order", []).append(share * best_of_random(target.y, BUDGET)[0])
        for arm, options in arms(target, source).items():
            begin = time.process_time()
            runs = [play(target, seed, **dict(options)) for seed in range(SEEDS)]
            seconds[arm] = seconds.get(arm, 0.0) + time.process_time() - begin
            found.setdefault(arm, []).append(share * np.mean(runs, axis=0))
        harness.say(f"{time.strftime('%H:%M:%S')} {name}")
    curves = {arm: np.array(runs) for arm, runs in found.items()}
    draw(curves)
    rows = []
    for arm, runs in curves.items():
        cost = f"{1e3 * seconds[arm] / (len(names) * SEEDS * BUDGET):.0f} ms" if arm in seconds else ""
        rows.append([arm, *(f"{runs[:, look - 1].mean():.0f} %" for look in LOOKS), cost])
    text = PAGE.read_text(encoding="utf-8")
    mark, end = "<!-- written by benchmarks/reactions_story.py -->\n", "<!-- end -->"
    head, tail = text[: text.index(mark) + len(mark)], text[text.index(end) :]
    lines = [
        "![The best yield so far against experiments: random order, names alone, descriptors, an earlier study, both]"
        "(reactions.png)",
        "",
        *harness.table(["best yield, of the best possible, after", *map(str, LOOKS), "CPU a suggestion"], rows),
        "",
        f"Means over {len(names)} aryl halides with {SEEDS} runs each; a random order is computed exactly. Written by "
        f"`make bench NAME=reactions_story` on {time.strftime('%Y-%m-%d')}, commit {harness.commit()}; "
        f"{harness.machine('rdkit', 'mordredcommunity')}.",
    ]
    PAGE.write_text(head + "\n".join(lines) + "\n" + tail, encoding="utf-8")
    harness.say(f"wrote {PAGE.relative_to(harness.ROOT)}")


if __name__ == "__main__":
    main()
