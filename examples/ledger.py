"""Stop when the regret is below 0.05, and draw what was known on the way.

python examples/ledger.py [ledger.svg]
"""

import sys

import numpy as np

import gpmi
from gpmi.stopping import RegretBelow, Seconds


def f(x: np.ndarray) -> float:
    return float(np.sin(6.0 * x[0]) + 0.3 * np.cos(19.0 * x[0]))


def main() -> None:
    stop = RegretBelow(0.05) | Seconds(60)
    result = gpmi.maximize(f, [(0.0, 2.0)], budget=40, stop=stop, seed=1)
    print(f"stopped: {result.reason}, after {len(result.trials)} evaluations")
    print(result.ledger)
    gpmi.plots.ledger(result, f).savefig(sys.argv[1] if len(sys.argv) > 1 else "ledger.svg")


if __name__ == "__main__":
    main()
