"""What does a change cost in instructions? Two source trees under valgrind, which other processes do not disturb.

    python benchmarks/instructions.py                     the working tree against BEFORE; writes the page; ten minutes
    python benchmarks/instructions.py --before HEAD~1     against another revision; printed only

n values of a function on a box are told, a suggestion is made, and then `ROUNDS` more rounds of ask and tell. The
instructions of a run without these rounds are subtracted. `before_after.py` measures times of two trees in turns.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
from before_after import f

BEFORE = "1b78e4a"  # the last commit before constraints, failures, error bars, corrections and contexts
ROUNDS = 20
CASES = [(20, 6), (60, 6), (60, 2)]  # values, coordinates
COUNT = ["valgrind", "--tool=exp-bbv", "--instr-count-only=yes", "--bb-out-file=/dev/null", "--pc-out-file=/dev/null"]


def main_of_child(n: int, d: int, count: int) -> None:
    """Make the run that is counted: aim="find" with nothing else set."""
    import numpy as np

    import gpmi

    rng = np.random.default_rng(n)
    optimizer = gpmi.Optimizer([(0.0, 1.0)] * d, seed=0)
    for x in rng.random((n, d)):
        optimizer.tell(x, f(x))
    for _ in range(1 + count):
        x = optimizer.ask()
        optimizer.tell(x, f(x))
    print("asked", *(float(value).hex() for value in x))


def counted(tree: Path, n: int, d: int, count: int) -> tuple[int, str]:
    """Return the instructions of one run with the package of one tree, and its last query."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
    command = [*COUNT, sys.executable, __file__, "--child", str(n), str(d), str(count)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    number = re.search(r"Total instructions: (\d+)", done.stderr + done.stdout)
    if done.returncode or number is None:
        raise SystemExit(f"n = {n}, d = {d} fails with {tree}:\n{done.stderr}")
    return int(number.group(1)), next(line for line in done.stdout.splitlines() if line.startswith("asked"))


def row(trees: tuple[Path, Path], n: int, d: int) -> str:
    """Return one line of the table: millions of instructions of a suggestion in both trees."""
    costs, asked = [], []
    for tree in trees:
        (without, _), (instructions, last) = counted(tree, n, d, 0), counted(tree, n, d, ROUNDS)
        costs.append((instructions - without) / ROUNDS)
        asked.append(last)
    millions = " | ".join(f"{1e-6 * cost:.2f}" for cost in costs)
    same = harness.yes(len(set(asked)) == 1)
    return f"| {d}-d box, n = {n} | {millions} | {costs[1] / costs[0]:.3f} | {same} |"


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--before", default=BEFORE, help="a git revision (default: %(default)s)")
    parser.add_argument("--child", nargs=3, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        main_of_child(*arguments.child)
        return
    if shutil.which(COUNT[0]) is None:
        raise SystemExit(
            "valgrind, which counts the instructions, is missing; install it (Debian: apt install valgrind)"
        )
    rows = ["| what | before | after | ratio | same queries |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        trees = harness.extract(arguments.before, Path(folder)), harness.ROOT / "src"
        for n, d in CASES:
            rows.append(row(trees, n, d))
            harness.say(rows[-1])
    if arguments.before == BEFORE:
        text = (
            f"{BEFORE}, the last commit before constraints, failures, error bars, corrections and given coordinates, "
            f"against the working tree at {harness.commit()}. Millions of instructions of `ask` + `tell` with none of "
            f"these used and nothing else set, fits included, mean of {ROUNDS} suggestions after n values and one "
            "suggestion; counted by valgrind, so other processes change nothing. valgrind has BLAS use the kernels of "
            "an older processor. The bar is a ratio of 1.05. Instructions are not seconds: what waits for memory costs "
            "more than it counts."
        )
        harness.page(__file__, "What a suggestion costs in instructions", text, rows)


if __name__ == "__main__":
    main()
