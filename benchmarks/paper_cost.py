"""What does a run of the paper cost, next to scikit-learn's regressor refitted at every step?

    python benchmarks/paper_cost.py     writes docs/benchmarks/paper_cost.md; some seconds

GP-MI, 200 steps after ten initial points, on 1000 candidates (the task generated-2). Both know the hyper-parameters:
GaussianProcessRegressor(optimizer=None) is fitted to the data at each step and asked for mu and sd at all candidates.
CPU seconds with one BLAS thread, alternating in one process; the median of the ratios of pairs.
"""

from __future__ import annotations

import time

import harness
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

import gpmi
from paper.simulate import Problem, scores, simulate
from paper.tasks import TASKS, Task

INITIAL, HORIZON, PAIRS = 10, 200, 5


def by_gpmi(task: Task, seed: int) -> list[int]:
    """Run as `make paper` does, the covariance of the candidates included."""
    policy = scores(gpmi.GPMI(), HORIZON)
    return simulate(Problem.of(task), policy, np.random.default_rng(seed), INITIAL, HORIZON)


def by_optimizer(task: Task, seed: int) -> list[int]:
    """Run with the Optimizer, which does not know the covariance beforehand."""
    rng = np.random.default_rng(seed)
    opt = gpmi.Optimizer(task.candidates, gpmi.GPMI(), kernel=task.kernel, noise_var=task.noise_var)
    rows = {tuple(x): i for i, x in enumerate(task.candidates)}
    for row in task.initial(rng):
        opt.tell(task.candidates[row], task.observe(row, rng))
    queries = []
    for _ in range(HORIZON):
        x = opt.ask()
        queries.append(rows[tuple(x)])
        opt.tell(x, task.observe(queries[-1], rng))
    return queries


def by_sklearn(task: Task, seed: int) -> list[int]:
    """Run Algorithm 1 with a regressor that is refitted at every step."""
    rng = np.random.default_rng(seed)
    model = GaussianProcessRegressor(Matern(length_scale=1.0, nu=1.5), alpha=task.noise_var, optimizer=None)
    queries = [int(row) for row in task.initial(rng)]
    y = [task.observe(row, rng) for row in queries]
    gamma_hat, alpha = 0.0, np.log(2e6)
    for _ in range(HORIZON):
        mu, sd = model.fit(task.candidates[queries], y).predict(task.candidates, return_std=True)
        phi = np.sqrt(alpha) * (np.sqrt(sd**2 + gamma_hat) - np.sqrt(gamma_hat))
        row = int(np.argmax(mu + phi))
        gamma_hat += sd[row] ** 2
        queries.append(row)
        y.append(task.observe(row, rng))
    return queries[INITIAL:]


def main() -> None:
    harness.parser(__doc__).parse_args()
    seconds: dict[str, list[float]] = {}
    same = 0
    for seed in range(PAIRS):
        task = TASKS["generated-2"].sample(np.random.default_rng(seed))
        queries = []
        for name, run in (("make paper", by_gpmi), ("gpmi.Optimizer", by_optimizer), ("scikit-learn", by_sklearn)):
            started = time.process_time()
            queries.append(run(task, seed))
            seconds.setdefault(name, []).append(time.process_time() - started)
        same += queries[0] == queries[1] == queries[2]
        print(seed, {name: round(each[-1], 3) for name, each in seconds.items()}, flush=True)
    theirs = np.array(seconds["scikit-learn"])
    text = (
        f"GP-MI, {HORIZON} steps on 1000 candidates, {PAIRS} draws. scikit-learn's regressor is refitted to the data "
        f"at each step with fixed hyper-parameters. The queries of the three are the same in {same} of {PAIRS} draws."
    )
    head = ("", "CPU seconds of a run, median", "of scikit-learn's, median of the pairs")
    rows = [
        (name, f"{np.median(each):.3f}", f"1/{np.median(theirs / np.array(each)):.0f}")
        for name, each in seconds.items()
    ]
    title, runs = "What a run of the paper costs", 3 * PAIRS
    harness.page(__file__, title, text, harness.table(head, rows), runs=runs, packages=["scikit-learn"])


if __name__ == "__main__":
    main()
