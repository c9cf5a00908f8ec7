"""What is a context worth that nobody controls? The regret with the context known to the policy, and without.

    python benchmarks/contexts.py      writes docs/benchmarks/contexts.md; ten minutes

Two coordinates are chosen and one, the context, is drawn anew for every evaluation. "context" asks with
`fixed={2: context}`, so that the model has three coordinates. "ignored" is the same optimizer on the two coordinates
that are chosen, for which the context is noise. "random" chooses at random. The regret of an evaluation is the maximum
of f over the two coordinates under its context, minus f. The problems are functions of three coordinates, the last of
them the context, with their maxima under a context from a fine search; seeds 0 to 9. Nothing was tuned on them: what
"earn" does under fixed coordinates was chosen on other functions, with seeds from 100.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import harness
import numpy as np
from problems.functions import Array, hartmann3, matern_draw

import gpmi

BUDGET, SEEDS = 60, range(10)
LONG, FEW = 200, range(3)  # a probe with more evaluations, and its seeds
FRESH = 10  # new contexts, for which a point is recommended after a run
SIDE = 21  # grid points of each coordinate, from which the maximum under a context is climbed


def moving_peak(x: Array) -> float:
    """Return a peak whose place depends on the context, on a slope."""
    a, b, c = x
    return float(np.exp(-8.0 * ((a - 0.2 - 0.6 * c) ** 2 + (b - 0.8 + 0.5 * c) ** 2)) + 0.2 * c)


PROBLEMS: dict[str, Callable[[int], Callable[[Array], float]]] = {
    "moving peak": lambda seed: moving_peak,
    "Hartmann-3, the last coordinate given": lambda seed: hartmann3,
    "draws of a Matern-5/2 process": lambda seed: matern_draw(3, 2.5, 0.4, [17, seed]),
}


def maximum(f: Callable[[Array], float], context: float) -> float:
    """Return the maximum over the first two coordinates of the unit cube: the best of a grid, climbed."""
    from scipy.optimize import minimize

    side = np.linspace(0.0, 1.0, SIDE)
    grid = np.array([[a, b, context] for a in side for b in side])
    values = np.array([f(x) for x in grid])
    starts = grid[np.argsort(-values)[:3], :2]
    ends = [minimize(lambda z: -f(np.append(z, context)), z, bounds=[(0.0, 1.0)] * 2) for z in starts]
    return max(float(values.max()), *(-float(end.fun) for end in ends))


@cache
def met(name: str, seed: int, budget: int) -> tuple[Array, Array]:
    """Return the contexts of a run and after it, with their maxima, (budget + FRESH,) each, the same for all arms."""
    f, contexts = PROBLEMS[name](seed), np.random.default_rng([3, seed]).random(budget)
    contexts = np.append(contexts, np.random.default_rng([5, seed]).random(FRESH))
    return contexts, np.array([maximum(f, context) for context in contexts.tolist()])


def run(name: str, seed: int, arm: str, budget: int = BUDGET) -> tuple[Array, float]:
    """Return the regret of each evaluation, (budget,), and the mean regret of the points for new contexts."""
    (contexts, maxima), f, random = met(name, seed, budget), PROBLEMS[name](seed), np.random.default_rng([4, seed])
    box = [(0.0, 1.0)] * (3 if arm.startswith("context") else 2)
    opt = gpmi.Optimizer(box, aim="find" if "find" in arm else "earn", budget=budget, seed=seed)
    regrets = np.empty(budget)
    for t, context in enumerate(contexts[:budget].tolist()):
        if arm == "random":
            x = np.append(random.random(2), context)
        elif arm.startswith("context"):
            x = opt.ask(fixed={2: context})
        else:
            x = np.append(opt.ask(), context)
        y = f(x)
        if arm != "random":
            opt.tell(x[: len(box)], y)
        regrets[t] = maxima[t] - y
    if not arm.startswith("context"):
        return regrets, float("nan")
    used = [f(opt.recommend(fixed={2: context})) for context in contexts[budget:].tolist()]
    return regrets, float(np.mean(maxima[budget:] - used))


ARMS = {
    "context": '`aim="earn"`, the context given',
    "ignored": '`aim="earn"`, the context ignored',
    "context, find": '`aim="find"`, the context given',
    "random": "random",
}


def main() -> None:
    harness.parser(__doc__).parse_args()
    lines = [f"| | {' | '.join(PROBLEMS)} |", f"|---|{'---|' * len(PROBLEMS)}"]
    means: dict[tuple[str, str], Array] = {}
    advised: dict[tuple[str, str], float] = {}
    for arm, words in ARMS.items():
        cells = []
        for name in PROBLEMS:
            runs = [run(name, seed, arm) for seed in SEEDS]
            regrets = np.array([regret for regret, _ in runs])
            means[arm, name] = regrets.mean(axis=1)
            advised[arm, name] = float(np.mean([after for _, after in runs]))
            cells.append(f"{regrets.mean():.3f}; {regrets[:, BUDGET // 2 :].mean():.3f}")
        lines.append(f"| {words} | {' | '.join(cells)} |")
        harness.say(lines[-1])
    shares = [f"{name}: {means['context', name].mean() / means['ignored', name].mean():.2f}" for name in PROBLEMS]
    wins = [f"{int((means['context', n] < 0.5 * means['ignored', n]).sum())} of {len(SEEDS)}" for n in PROBLEMS]
    after = [f"{name}: {advised['context', name]:.3f} and {advised['context, find', name]:.3f}" for name in PROBLEMS]
    probe = []
    for name in PROBLEMS:
        given, ignored = (
            np.mean([run(name, seed, arm, LONG)[0].mean() for seed in FEW]) for arm in ("context", "ignored")
        )
        probe.append(f"{name}: {given:.3f} and {ignored:.3f}, {given / ignored:.2f}")
        harness.say(probe[-1])
    *_, text = (__doc__ or "").split("\n\n")
    body = [
        f"## The mean regret of {BUDGET} evaluations, R_T / T",
        "",
        f"The mean of {len(SEEDS)} seeds; of all evaluations, the initial design included, and of the second half.",
        "",
        *lines,
        "",
        f"R_T / T with the context over that without, {'; '.join(shares)}. Below half in {', '.join(wins)} runs.",
        "",
        f"What is recommended after a run for {FRESH} contexts that are new has the mean regret, earn and find, "
        f"{'; '.join(after)}.",
        "",
        f"With {LONG} evaluations, {len(FEW)} seeds, R_T / T with the context and without, and their ratio, "
        f"{'; '.join(probe)}.",
        "",
    ]
    runs = len(PROBLEMS) * (len(ARMS) * len(SEEDS) + 2 * len(FEW))
    harness.page(__file__, "Fixed coordinates", " ".join(text.split()), body, runs=runs)


if __name__ == "__main__":
    main()
