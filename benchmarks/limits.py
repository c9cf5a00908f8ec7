"""How far does it go? Ten thousand observations, a million candidates, and the growth of the cost in between.

    python benchmarks/limits.py                    every part; writes docs/benchmarks/limits.md; five minutes, 3 GB
    python benchmarks/limits.py --only history     one part, printed only

All times are CPU seconds on one BLAS thread. All memory is the peak resident set of a fresh process that did nothing
else. The exit status is 1 if a promise does not hold. `spikes.py` measures single calls.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import harness
import numpy as np
from problems.functions import Array, minus_hartmann6, wave
from scipy.linalg import lapack

import gpmi
from gpmi.gp.tracking import moments_in_chunks
from gpmi.model.fitting.data import FIT_POINTS
from gpmi.model.fitting.schedule import fit_size

GB = 1e9
Result = dict[str, Any]


def rounds(opt: gpmi.Optimizer, f: Callable[[Array], float], count: int) -> list[float]:
    """Return the CPU seconds of `tell` + `ask`, `count` times, without those of f."""
    x, seconds = opt.ask(), []
    for _ in range(count):
        y = f(x)
        begin = time.process_time()
        opt.tell(x, y)
        x = opt.ask()
        seconds.append(time.process_time() - begin)
    return seconds


# The measurements, each in a fresh process

HISTORY_N, HISTORY_ROUNDS = 10_240, 7  # the first number above 10,000 at which the prior is refitted
STEP_N, STEP_M, STEP_ROUNDS = 200, 1_000_000, 9
GROWTH_N = (192, 512, 1024, 2048, 5120)  # numbers of observations at which the prior is refitted
GROWTH_ROUNDS, GROWTH_SEEDS = 20, 3


def history() -> Result:
    """Measure `tell` + `ask` after more than 10,000 observations, and dpotrf of their covariance matrix."""
    n = HISTORY_N
    opt = gpmi.Optimizer([(0.0, 1.0)] * 6, seed=0, goal="min")
    for x in np.random.default_rng(0).random((n, 6)):
        opt.tell(x, minus_hartmann6(x))
    begin = time.process_time()
    opt.posterior  # noqa: B018  learns the prior, factorises
    learned = time.process_time() - begin
    seconds = rounds(opt, minus_hartmann6, HISTORY_ROUNDS)
    memory = 1024.0 * harness.peak_memory()
    posterior = opt.posterior
    assert posterior is not None
    points = posterior.x[:n]
    c = np.empty((n, n), order="F")
    for begin_row in range(0, n, 512):
        part = slice(begin_row, begin_row + 512)
        c[:, part] = posterior.kernel(points[part], points).T
    c[np.diag_indices(n)] += posterior.noise_var
    begin = time.process_time()
    _, info = lapack.dpotrf(c, lower=1, clean=0, overwrite_a=1)
    assert info == 0
    return {"seconds": seconds, "learned": learned, "dpotrf": time.process_time() - begin, "memory": memory}


def step(policy: gpmi.Policy | None) -> Result:
    """Measure `tell` + `ask` on a million candidates, everything learned, and the variances of all of them."""
    z = np.random.default_rng(0).random((STEP_M, 4))
    opt = gpmi.Optimizer(z, policy, seed=0)
    for x in z[: STEP_N - STEP_ROUNDS // 2 - 1]:
        opt.tell(x, wave(x))
    opt.tell(x := opt.ask(), wave(x))  # the first ask after a fit is lazy, the second starts to track
    seconds = rounds(opt, wave, STEP_ROUNDS)
    memory = 1024.0 * harness.peak_memory()
    posterior = opt.posterior
    assert posterior is not None
    begin = time.process_time()
    moments_in_chunks(posterior, z)
    return {"seconds": seconds, "afresh": time.process_time() - begin, "memory": memory, "n": posterior.n}


def growth() -> Result:
    """Measure the average round around several n, with the fit there spread over the rounds that it serves."""
    rounds(hartmann_run(30, 0), minus_hartmann6, 3)  # imports and first calls
    plain: dict[int, float] = {}
    refit: dict[int, float] = {}
    for p in GROWTH_N:
        usual, fits = [], []
        for seed in range(GROWTH_SEEDS if p < 2000 else 1):
            seconds = rounds(hartmann_run(p - GROWTH_ROUNDS // 2, seed), minus_hartmann6, GROWTH_ROUNDS)
            fits.append(seconds.pop(GROWTH_ROUNDS // 2 - 1))
            usual += seconds
        plain[p], refit[p] = statistics.fmean(usual), statistics.fmean(fits)
        harness.say(f"  n = {p}: {1e3 * plain[p]:.3g} ms, with a fit {1e3 * refit[p]:.3g} ms")
    return {"plain": plain, "refit": refit}


def hartmann_run(n: int, seed: int) -> gpmi.Optimizer:
    """Return an optimizer that was told n random points of Hartmann-6."""
    opt = gpmi.Optimizer([(0.0, 1.0)] * 6, seed=seed, goal="min")
    for x in np.random.default_rng(seed).random((n, 6)):
        opt.tell(x, minus_hartmann6(x))
    return opt


def rounds_per_fit(p: int) -> int:
    """Return how many observations the fit at p serves."""
    return next(k for k in range(1, p + 1) if fit_size(p + k) != p)


CHILDREN: dict[str, Callable[[], Result]] = {
    "history": history,
    "step-default": lambda: step(None),
    "step-gpmi": lambda: step(gpmi.GPMI()),
    "growth": growth,
}


def measured(child: str) -> Result:
    """Return the measurement of a child process."""
    result: Result = harness.measure(__file__, "--child", child)
    return result


# Promises


@dataclass(frozen=True)
class Part:
    """The promises as (text, measured, holds), and the text below them."""

    title: str
    promises: list[tuple[str, str, bool]]
    text: list[str]


def history_part() -> Part:
    result = measured("history")
    median, quarter = statistics.median(result["seconds"]), result["dpotrf"] / 4.0
    return Part(
        f"{HISTORY_N:,} observations in 6 dimensions",
        [
            (
                "n above 10,000, d = 6: `tell` + `ask`, median, at most 1/4 of one dpotrf of that matrix",
                f"1/{result['dpotrf'] / median:.1f}",
                median <= quarter,
            ),
            ("the same under 3 GB", f"{result['memory'] / GB:.2f} GB", result["memory"] < 3 * GB),
        ],
        [
            f"Hartmann-6, everything learned on a subset of {FIT_POINTS}, exact posterior of all. The median of "
            f"{HISTORY_ROUNDS} rounds is {median:.3g} s "
            f"({min(result['seconds']):.3g} to {max(result['seconds']):.3g}), "
            f"dpotrf of the ({HISTORY_N:,}, {HISTORY_N:,}) matrix that lies ready takes {result['dpotrf']:.3g} s. "
            f"Before the first round, learning the prior and the factor once took {result['learned']:.3g} s.",
        ],
    )


def step_part() -> Part:
    promises, text = [], []
    for name, policy in (("default", "the default policy"), ("gpmi", "GP-MI")):
        result = measured(f"step-{name}")
        median = statistics.median(result["seconds"])
        times = result["afresh"] / median
        promises += [
            (
                f"1e6 candidates, d = 4, n = {STEP_N}, {policy}: a step at least 15x cheaper than all variances afresh",
                f"{times:.0f}x",
                times >= 15.0,
            ),
            ("the same under 4 GB", f"{result['memory'] / GB:.2f} GB", result["memory"] < 4 * GB),
        ]
        text.append(
            f"- {policy}: the median of {STEP_ROUNDS} rounds up to n = {result['n']} is {median:.3g} s "
            f"({min(result['seconds']):.3g} to {max(result['seconds']):.3g}), all variances afresh take "
            f"{result['afresh']:.3g} s (`moments_in_chunks`)."
        )
    return Part("A million candidates", promises, ["The prior is learned; the rounds lie between two fits.", "", *text])


def growth_part() -> Part:
    result = measured("growth")
    numbers = np.array(GROWTH_N, dtype=float)
    plain, refit = (np.array([result[key][str(p)] for p in GROWTH_N]) for key in ("plain", "refit"))
    served = np.array([rounds_per_fit(p) for p in GROWTH_N])
    average = plain + (refit - plain) / served
    slope = float(np.polyfit(np.log(numbers), np.log(average), 1)[0])
    steepest = float(np.max(np.diff(np.log(average)) / np.diff(np.log(numbers))))
    lines = ["| n | round without a fit | round with a fit | rounds a fit serves | average |", "|---|---|---|---|---|"]
    lines += [
        f"| {p:,} | {1e3 * a:.3g} ms | {1e3 * b:.3g} ms | {k} | {1e3 * c:.3g} ms |"
        for p, a, b, k, c in zip(GROWTH_N, plain, refit, served, average, strict=True)
    ]
    return Part(
        "How the cost grows",
        [
            (
                f"average CPU per suggestion from n = {GROWTH_N[0]} to {GROWTH_N[-1]:,} grows no faster than n^2",
                f"n^{slope:.2f}; n^{steepest:.2f} at its steepest",
                slope <= 2.0,
            )
        ],
        [
            f"Hartmann-6, everything learned: {GROWTH_ROUNDS} rounds of `tell` + `ask`, half of them before and half "
            f"after a new fit, after random points; the mean over {GROWTH_SEEDS} seeds, one from 2,048 on.",
            "",
            *lines,
        ],
    )


PARTS: dict[str, Callable[[], Part]] = {"history": history_part, "step": step_part, "growth": growth_part}


def promise_table(parts: list[Part]) -> list[str]:
    lines = ["| promise | measured | holds |", "|---|---|---|"]
    return lines + [f"| {t} | {m} | {harness.yes(ok)} |" for part in parts for t, m, ok in part.promises]


def report(parts: list[Part]) -> None:
    """Write the page."""
    text = (
        "CPU times on one BLAS thread, peak memory of a fresh process for each part. Trust the ratios, not the seconds."
    )
    lines = promise_table(parts)
    for part in parts:
        lines += ["", f"## {part.title}", "", *part.text]
    harness.page(__file__, "Limits, measured", text, lines)


def main() -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("--only", choices=PARTS, help="run one part and write no page")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(CHILDREN[arguments.child]()))
        return 0
    parts = []
    for name in [arguments.only] if arguments.only else PARTS:
        harness.say(f"{name} ...")
        parts.append(PARTS[name]())
        harness.say("\n".join([*promise_table(parts[-1:]), "", *parts[-1].text, ""]))
    if not arguments.only:
        report(parts)
    return 0 if all(ok for part in parts for _, _, ok in part.promises) else 1


if __name__ == "__main__":
    sys.exit(main())
