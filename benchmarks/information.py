"""How large is gamma_T, and how far are regrets below the bounds that were claimed? The tables of docs/theory.md.

python benchmarks/information.py                  writes both tables into docs/theory.md; five minutes
python benchmarks/information.py --repetitions 5  fewer runs, printed only
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import harness
import numpy as np

from gpmi import GPMI, GPUCB, Policy, Posterior, State, kernels, theory
from gpmi._support.types import Array
from gpmi.gp.tracking import Tracked, first_best

PAGE = harness.ROOT / "docs" / "theory.md"
NOISE_VAR, DELTA, REPETITIONS = 0.01, 0.1, 200

BOXES = {  # name: kernel, d, points of the grid per axis
    "RBF 0.2, [0, 1]": (kernels.RBF(0.2), 1, 1001),
    "RBF 0.2, [0, 1]^2": (kernels.RBF(0.2), 2, 101),
    "Matern-5/2 0.2, [0, 1]": (kernels.Matern(nu=2.5, lengthscale=0.2), 1, 1001),
    "Matern-5/2 0.2, [0, 1]^2": (kernels.Matern(nu=2.5, lengthscale=0.2), 2, 101),
    "Matern-3/2 0.2, [0, 1]^2": (kernels.Matern(nu=1.5, lengthscale=0.2), 2, 101),
}


def gamma_table() -> str:
    """Return gamma_T on boxes: greedy information, certificates, C_1 gamma_T and the work saved by lazy evaluation."""
    lines = [
        "| kernel, box | grid | T | I_T of the greedy choice | certificate, grid | I_T / (1 - 1/e) | certificate, box "
        "| gamma_T grows at most like | variances evaluated |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (kernel, d, per_axis) in BOXES.items():
        box = [(0.0, 1.0)] * d
        for horizon in (10, 100):
            alone = theory.greedy(kernel, NOISE_VAR, theory.grid(box, per_axis), horizon)
            whole = theory.greedy_on_box(kernel, NOISE_VAR, box, horizon, per_axis=per_axis)
            lines.append(
                f"| {name} | {per_axis}^{d} | {horizon} | {alone.information[-1]:.2f} | {alone.certificate[-1]:.2f} | "
                f"{alone.upper[-1]:.2f} | {whole.certificate[-1]:.2f} | {theory.growth(kernel, d).formula} | "
                f"{100.0 * alone.evaluated / (horizon * alone.size):.0f} % |"
            )
    return "\n".join(lines)


@dataclass(frozen=True)
class Run:
    """One run."""

    regret: Array  # (T,)
    surprise: float  # M_T
    gamma_hat: float


def noisy(kernel: kernels.Kernel, z: Array, f: Array, horizon: int, policy: Policy, rng: np.random.Generator) -> Run:
    """Run in the paper's own setting: y_t = f(x_t) + noise is observed."""
    posterior = Posterior.prior(kernel, NOISE_VAR)
    tracked, star = Tracked.start(posterior, z), int(np.argmax(f))
    regret, expected = np.empty(horizon), np.empty(horizon)
    for t in range(horizon):
        state = State(t + 1, posterior.gamma_hat(), NOISE_VAR, np.nan, np.nan, len(z), 0, horizon)
        row = first_best(policy.score(tracked.mu, tracked.var, state))
        regret[t], expected[t] = f[star] - f[row], tracked.mu[star] - tracked.mu[row]
        posterior = posterior.condition(z[row], f[row] + np.sqrt(NOISE_VAR) * rng.standard_normal())
        tracked = tracked.follow(posterior)
    return Run(regret, float((regret - expected).sum()), posterior.gamma_hat())


def observed(run: theory.RegretRun) -> Run:
    return Run(run.regret, float(run.martingale[-1]), float(run.gamma_hat[-1]))


def regret_table(repetitions: int) -> str:
    """Return R_T of GP-MI in three settings and of GP-UCB, next to their bounds, for draws of the prior."""
    lines = [
        "| f | policy | observed | mean R_T | bound | above it | last query below max f | mean M_T | gamma_hat_T | "
        "C_1 gamma_T |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    line = np.linspace(0.0, 1.0, 200)[:, None]
    cases = {
        "1000 independent arms": (kernels.RBF(1.0), 100.0 * np.arange(1000)[:, None]),
        "Matern-5/2 0.05 on 200 points of [0, 1]": (kernels.Matern(nu=2.5, lengthscale=0.05), line),
        "RBF 0.2 on 200 points of [0, 1]": (kernels.RBF(0.2), line),
    }
    horizon = 200
    for name, (kernel, z) in cases.items():
        gamma = float(theory.greedy(kernel, NOISE_VAR, z, horizon).certificate[-1])
        claimed = theory.theorem_2(gamma, noise_var=NOISE_VAR, delta=DELTA).value
        proven = theory.gp_ucb(gamma, horizon, noise_var=NOISE_VAR, delta=DELTA, size=len(z)).value
        mi, ucb = GPMI(delta=DELTA), GPUCB(delta=DELTA)
        runs: dict[tuple[str, str], list[Run]] = {}
        for repetition in range(repetitions):
            rng = np.random.default_rng([repetition, 5])
            f = rng.standard_normal(1000) if len(z) == 1000 else Posterior.prior(kernel, 0.0).sample(z, rng)[0]
            place = theory.observe_regret(kernel, z, f, horizon, policy=mi, knows="place")
            value = theory.observe_regret(kernel, z, f, horizon, policy=mi, knows="value")
            runs.setdefault(("GP-MI", "r_t, x* known"), []).append(observed(place))
            runs.setdefault(("GP-MI", "r_t, x* unknown"), []).append(observed(value))
            runs.setdefault(("GP-MI", "y_t"), []).append(noisy(kernel, z, f, horizon, mi, rng))
            runs.setdefault(("GP-UCB", "y_t"), []).append(noisy(kernel, z, f, horizon, ucb, rng))
        for (policy, what), these in runs.items():
            bound = proven if policy == "GP-UCB" else claimed
            total = np.array([run.regret.sum() for run in these])
            wrong, surprise = np.mean([run.regret[-1] > 0.0 for run in these]), np.mean([run.surprise for run in these])
            lines.append(
                f"| {name} | {policy} | {what} | {total.mean():.1f} | {bound:.1f} | {np.mean(total > bound):.1%} | "
                f"{wrong:.1%} | {surprise:.1f} | {np.mean([run.gamma_hat for run in these]):.1f} | "
                f"{theory.c1(NOISE_VAR) * gamma:.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    repetitions = parser.parse_args().repetitions
    for mark, table in (("gamma", gamma_table()), ("regret", regret_table(repetitions))):
        harness.say(table)
        if repetitions == REPETITIONS:
            text = PAGE.read_text(encoding="utf-8")
            pattern = rf"(<!-- {mark} -->\n).*?(<!-- end -->)"
            PAGE.write_text(re.sub(pattern, lambda m, t=table: m[1] + t + "\n" + m[2], text, flags=re.S), "utf-8")


if __name__ == "__main__":
    main()
