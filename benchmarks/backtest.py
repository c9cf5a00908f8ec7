"""How many experiments would gpmi have saved on tables of real reactions?

    python benchmarks/backtest.py [--cores N]    writes backtest.md and the example of docs/howto/backtest.md; 2 minutes

The tables are those of Ahneman and others (2018): the yield of a coupling for every combination of base, ligand and
additive, one table for each of 15 aryl halides. They are read from ../shared/data/aryl_halides. Each is played as
`gpmi backtest` plays it, with its defaults and batches of 5. The how-to page shows the first aryl halide of the file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import harness

import gpmi

DATA = harness.ROOT.parent / "shared" / "data" / "aryl_halides" / "data.csv"
HOWTO = harness.ROOT / "docs" / "howto" / "backtest.md"
BATCH = 5
PARAMETERS = ("base", "ligand", "additive")
BLOCK = re.compile(r"(<!-- written by benchmarks/backtest.py -->\n).*?(<!-- end -->)", flags=re.DOTALL)


def tables(path: Path) -> dict[str, Any]:
    """Return the table of each aryl halide, in the order of the file."""
    import pandas

    frame = pandas.read_csv(path).dropna(subset=["aryl_halide"])
    return {name: part[[*PARAMETERS, "yield"]] for name, part in frame.groupby("aryl_halide", sort=False)}


def main() -> None:
    made = harness.parser(__doc__, cores=True)
    made.add_argument("--data", type=Path, default=DATA, help="the table (default: %(default)s)")
    arguments = made.parse_args()
    if not arguments.data.exists():
        sys.exit(f"there is no {arguments.data}; give --data with the file data.csv of the aryl halides")
    results = {}
    for name, table in tables(arguments.data).items():
        results[name] = gpmi.backtest(table, "yield", batch=BATCH, workers=arguments.cores)
        harness.say(f"{name}: {results[name].sentence}")
    head = ["aryl halide", "rows", "gpmi", f"{BATCH} at a time", "random order", "best row: gpmi", "random"]
    head += ["gain after 20", "after 50"]
    rows = [[name, found.rows, *cells(found)] for name, found in results.items()]
    saved = sorted(half(found, "random order") - half(found, "gpmi") for found in results.values())
    least, middle, most = saved[0], saved[len(saved) // 2], saved[-1]
    count = f"{least} to {most}, median {middle}"
    body = [
        *harness.table(head, rows),
        "",
        f"Experiments saved until one of the best 1 % of the rows is found: {count}.",
    ]
    text = (
        "Each line is a table of about 276 combinations of base, ligand and additive (Ahneman and others 2018), played "
        "by `gpmi backtest` with its defaults: 20 seeds, 100 experiments. Experiments are counted until "
        "half of the runs have found one of the best 1 % of the rows, or the best row; a random order is computed "
        f"exactly, and batches of {BATCH} count whole. The gain is the share of the way from a random order to the "
        "best row. [Would it have helped?](../howto/backtest.md) is the how-to page."
    )
    runs = sum(2 * len(found.seeds) for found in results.values())
    harness.page(__file__, "Experiments saved on tables of reactions", text, body, runs=runs)
    name, found = next(iter(results.items()))
    others = f"it saves {least} to {most} experiments, {middle} in the middle"
    example(name, found, f"On the [tables of all {len(results)} aryl halides](../benchmarks/backtest.md) {others}.")


def half(found: gpmi.BacktestResult, order: str) -> int:
    """Return the experiments by which half of the runs have found a good row; the budget if they have not."""
    needed = found.targets[-1].needed[order].half
    return found.budget if needed is None else needed


def cells(found: gpmi.BacktestResult) -> list[str]:
    """Return the cells of a result: experiments needed, and gains."""
    orders = ["gpmi", f"gpmi, {BATCH} at a time", "random order"]
    needed = [found.targets[-1].needed[order].half for order in orders]
    needed += [found.targets[0].needed[order].half for order in (orders[0], orders[2])]
    counts = [f"over {found.budget}" if one is None else str(one) for one in needed]
    return [*counts, *(f"{100.0 * found.gain['gpmi'][k]:.0f} %" for k in (20, 50))]


def example(name: str, found: gpmi.BacktestResult, others: str) -> None:
    """Write what the backtest of one table prints into the how-to page, its picture, and a sentence on the others."""
    found.plot().savefig(HOWTO.with_suffix(".png"), dpi=110)
    lines = [f"$ gpmi backtest reactions.csv --value yield --batch {BATCH}"]
    lines += [f"gpmi: {event.message}" for event in found.events]
    block = "\n".join(["```", *lines, repr(found), "picture: backtest.png", "```"])
    picture = (
        f"![The best yield after each experiment, for {name}: gpmi, batches of {BATCH}, a random order](backtest.png)"
    )
    page = HOWTO.read_text(encoding="utf-8")
    HOWTO.write_text(BLOCK.sub(lambda m: f"{m[1]}{block}\n\n{picture}\n\n{others}\n{m[2]}", page), encoding="utf-8")
    harness.say(f"wrote {HOWTO.relative_to(harness.ROOT)}")


if __name__ == "__main__":
    main()
