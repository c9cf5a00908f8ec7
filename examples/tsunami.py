"""Where does an island make the tsunami behind it worst? Every evaluation is a simulation, about 20 s on one core.

    python examples/tsunami.py [evaluations] [how fine the mesh is, 1 for that of the table]

Needs pip install "gpmi[tsunami,plots,cli]".
"""

import sys

import gpmi
from gpmi.tasks import tsunami

budget = int(sys.argv[1]) if len(sys.argv) > 1 else 15
settings = tsunami.Settings().refined(float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)


def amplification(p: dict) -> float:
    return tsunami.simulate(**p, settings=settings).amplification


result = gpmi.maximize(amplification, tsunami.SPACE, budget=budget, seed=0, progress=sys.stderr.isatty())
print(f"worst of {len(result.trials)}: {result.y:.3f} times the run-up one radius of the island's foot aside, at")
for name, value in result.x.items():
    print(f"  {name:12} {value:.4g}")
gpmi.plots.run(result).savefig("tsunami.png", dpi=150)
