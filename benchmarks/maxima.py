"""Where are the maxima of the problems that have no closed form, and what are the means of all problems?

python benchmarks/maxima.py      writes benchmarks/problems/maxima.json; half an hour
"""

from __future__ import annotations

import json
from collections.abc import Callable

import harness
import numpy as np
import problems
from problems import held_out
from problems.functions import METAL, Array, gp_draw, hartmann_mixed, mixture, search
from problems.held_out import ALLOYS, HELD_OUT, alloys

SEEDS = 20  # draws whose maxima are stored
SLOW = ("svr-diabetes", "boosting-cancer", "svc-wine")


def search_mixed() -> float:
    """Return the maximum of hartmann_mixed: a search over the three reals for each setting of the others."""
    settings = [(a, b, c) for a in range(13) for b in range(13) for c in METAL]

    def at(a: int, b: int, c: str) -> Callable[[Array], float]:
        return lambda u: hartmann_mixed({"x1": u[0], "x2": u[1], "x3": u[2], "x4": a, "x5": b, "x6": c})

    rough = {setting: search(at(*setting), problems.unit(3), starts=1, screen=128) for setting in settings}
    best = sorted(settings, key=lambda setting: -rough[setting])[:20]
    return max(search(at(*setting), problems.unit(3), starts=5, screen=2000) for setting in best)


def search_alloys() -> float:
    """Return the maximum of `alloys`: a search over u and v for each pair of choices, with five layers."""
    pairs = [(a, c) for a in ALLOYS["alloy"] for c in ALLOYS["coating"]]

    def at(alloy: str, coating: str) -> Callable[[Array], float]:
        return lambda z: alloys({"alloy": alloy, "coating": coating, "u": z[0], "v": z[1], "layers": 5})

    return max(search(at(*pair), [(-1.0, 1.2)] * 2) for pair in pairs)


def mean(problem: problems.Problem) -> float:
    """Return the mean of f over 20,000 uniform points of its space, over 200 where f is slow."""
    return float(np.mean(problems.values_at_random(problem, 200 if problem.name in SLOW else 20_000)))


def main() -> None:
    harness.parser(__doc__).parse_args()
    maxima = {"mixture": search(mixture, problems.unit(2)), "hartmann-mixed": search_mixed()}
    for name, (d, stream, _) in problems.DRAWS.items():
        for seed in range(SEEDS):
            maxima[f"{name}/{seed}"] = search(gp_draw(d, stream, seed), problems.unit(d))
    maxima |= {f"mean/{name}": mean(problem) for name, problem in problems.FIXED.items()}
    for name, (bounds, f) in held_out.SEARCHED.items():
        maxima[name] = search(f, bounds, starts=200, screen=100_000)
    maxima["alloys"] = search_alloys()
    maxima |= {f"mean/{name}": mean(problem) for name, problem in HELD_OUT.items()}
    problems.MAXIMA.write_text(json.dumps(maxima, indent=1) + "\n")


if __name__ == "__main__":
    main()
