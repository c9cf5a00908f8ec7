"""The runs behind tests/test_recording.py: what the optimizer asks and says in them was written down once.

`python tests/recorded_runs.py` writes tests/recording.json anew, with a line for each run that has changed. Do that
only for a change of behaviour that is meant, and say so in the changelog.

Bits depend on the arithmetic: NumPy, SciPy, BLAS, the C library, and the vector units that they use. The file names the
arithmetic that it was written with, and the runs are played with the vector units of PINNED_CORE where the processor
has them. With another arithmetic, decisions are compared instead of bits (decisions.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from decisions import NotingOptimizer

import gpmi
from gpmi import EI, GPMI, GPUCB, Explore, Int, LogEI, Real, Thompson, VarianceBonus, kernels
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.storage.platforms import own_platform

FILE = Path(__file__).with_name("recording.json")
PINNED_CORE = "Haswell"  # a processor of 2013, with AVX2 and FMA and without AVX-512


def pinned() -> dict[str, str]:
    """Return the environment in which NumPy and BLAS use the vector units of PINNED_CORE; what is set already stays.

    NumPy names what it may leave out by groups of features since 2.4 (X86_V4), before by features (AVX512F).
    """
    beyond = [name for name in own_platform()["vectors"].split() if is_beyond(name)]
    names = {"NPY_DISABLE_CPU_FEATURES": " ".join(beyond)} if beyond else {}
    core = {"OPENBLAS_CORETYPE": PINNED_CORE} if platform.machine().lower() in ("x86_64", "amd64") else {}
    return {name: text for name, text in {**core, **names}.items() if name not in os.environ}


def not_pinned(arithmetic: Mapping[str, str]) -> str | None:
    """Return what in the arithmetic of a process is not that of PINNED_CORE; None if all is."""
    beyond = [name for name in arithmetic["vectors"].split() if is_beyond(name)]
    if beyond or not {"X86_V3", "AVX2"}.intersection(arithmetic["vectors"].split()):
        return f"NumPy uses the vector units {arithmetic['vectors']}"
    cores = [library.split()[-1] for library in arithmetic["blas"].split(" and ")]
    return None if set(cores) == {PINNED_CORE} else f"BLAS is {arithmetic['blas']}"


def is_beyond(vectors: str) -> bool:
    """Whether vector units are ones that PINNED_CORE does not have."""
    return vectors == "X86_V4" or vectors.startswith("AVX512")


def arithmetic() -> dict[str, str]:
    """Return what the bits depend on besides the code. The model of the processor matters by its vector units alone."""
    versions = {name: text for name, text in own_platform().items() if name != "cpu"}
    return {"machine": platform.machine(), "system": platform.system(), **versions}


def branin(x: Any) -> float:
    a, b = x
    return float(
        -((b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2) - 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) - 10
    )


def goldstein_price(x: Any) -> float:
    a, b = x
    first = 1 + (a + b + 1) ** 2 * (19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2)
    second = 30 + (2 * a - 3 * b) ** 2 * (18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2)
    return float(-first * second)


def bumps(x: Any) -> float:
    x = np.asarray(x, dtype=float)
    return float(np.exp(-8 * ((x - 0.3) ** 2).sum()) + 0.7 * np.exp(-20 * ((x - 0.8) ** 2).sum()))


def mixed(p: Any) -> float:
    return -((np.log10(p["lr"]) + 3) ** 2) - 0.1 * (p["layers"] - 5) ** 2 + (p["act"] == "tanh") - p["drop"]


def whole(p: Any) -> float:
    return -((p["a"] - 7) ** 2) / 10 - abs(p["b"] - 3) + {"x": 0.0, "y": 1.0, "z": 0.5}[p["c"]]


def frame() -> Any:
    import pandas as pd

    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "drop": rng.random(80).round(3),
            "act": rng.choice(["relu", "tanh", "elu"], 80),
            "layers": rng.integers(1, 9, 80),
        }
    ).assign(lr=10 ** rng.uniform(-5, -1, 80))


class Optimism(gpmi.Policy):
    """A policy of a user."""

    def phi(self, var: Any, state: gpmi.State) -> Any:
        return 2.0 * np.sqrt(var)

    def __repr__(self) -> str:
        return "Optimism()"


def coarse_or_fine(p: Any) -> float:
    f = bumps([p["x"], p["z"]])
    return f if p["mesh"] == "fine" else 2.0 * f - 1.0 + 0.05 * np.sin(9.0 * p["x"])


def curve(p: Any) -> float:
    return bumps([p["x"], p["z"]]) - 1.0 / p["epoch"]


def headed(p: Any) -> float:
    """A hill across the end of the circle."""
    return (
        float(np.cos(np.radians(p["course"] - 352.0)) + np.cos(np.radians(15.0 * p["dial"] - 5.0)))
        - (p["x"] - 0.3) ** 2
    )


def two(x: Any) -> dict[str, float]:
    """Two hills, at different places."""
    x = np.asarray(x, dtype=float)
    return {"yield": bumps(x), "cost": float(((x - 0.7) ** 2).sum())}


def with_waste(x: Any) -> dict[str, float]:
    return {**two(x), "waste": float(x[0] * x[1])}


def mixed_outputs(p: Any) -> dict[str, float]:
    return {"score": mixed(p), "size": p["layers"] * (2.0 if p["act"] == "elu" else 1.0)}


def outputs_of_levels(p: Any) -> dict[str, float]:
    return {"yield": coarse_or_fine(p), "cost": p["x"] + (0.1 if p["mesh"] == "fine" else 0.3) * p["z"]}


def outputs_of_steps(p: Any) -> dict[str, float]:
    return {"yield": curve(p), "time": p["x"] + 0.5 * p["z"]}


def solvent(p: Any) -> float:
    best = {"THF": 40.0, "DMF": 55.0, "DMSO": 50.0, "EtOH": 30.0, "toluene": 25.0}[p["solvent"]]
    return -(((p["temperature"] - best) / 20) ** 2) + best / 60


def blend(p: Any) -> float:
    return p["a"] * p["b"] * 4 + 0.8 * p["c"] - (p["d"] - 0.3) ** 2


def inside(x: Any) -> tuple[float, list[float]]:
    """A value with a measured constraint, which holds where it is at most 0."""
    return bumps(x), [float(x[0] + x[1] - 1.1)]


BRANIN = [(-5.0, 10.0), (0.0, 15.0)]
GOLDSTEIN = [(-2.0, 2.0), (-2.0, 2.0)]
UNIT_1, UNIT_2, UNIT_6 = [(0.0, 1.0)], [(0.0, 1.0)] * 2, [(0.0, 1.0)] * 6
MIXED = {"lr": Real(1e-5, 1e-1, log=True), "layers": Int(1, 8), "act": ["relu", "tanh", "elu"], "drop": (0.0, 0.5)}
WIDE = {"lr": Real(1e-5, 1e-1, log=True), "layers": Int(1, 5000), "act": ["relu", "tanh"], "drop": (0.0, 0.5)}
WHOLE = {"a": Int(0, 20), "b": Int(1, 9), "c": ["x", "y", "z"]}
ROWS = np.random.default_rng(7).random((150, 2))
MANY = np.random.default_rng(8).random((3000, 3))
LEVELS = {"x": (0.0, 1.0), "z": (0.0, 1.0), "mesh": gpmi.Fidelity({"coarse": 1, "fine": 10})}
SOLVENTS = {"THF": [7.5, 66], "DMF": [36.7, 153], "DMSO": [46.7, 189], "EtOH": [24.5, 78], "toluene": [2.4, 111]}
DESCRIBED = {"solvent": gpmi.Choice(list(SOLVENTS), features=SOLVENTS), "temperature": (20.0, 60.0)}
BLEND = dict.fromkeys("abcd", (0.0, 1.0))
CIRCLES = {"course": gpmi.Angle(360), "dial": gpmi.Angle(24, step=0.5), "x": (0.0, 1.0)}
DIAL = {"x": Real(0.0, 1.0, step=0.05), "z": Real(0.0, 2.0, step=0.25)}
STEPS = {"x": (0.0, 1.0), "epoch": gpmi.Fidelity(1, 16), "z": (0.0, 1.0)}
GOALS_OF_LEVELS = {"goals": {"yield": "max", "cost": "min"}}
POLICIES = (
    None, GPMI(), GPUCB(), GPUCB(scale=0.2), VarianceBonus(), EI(), EI("mean"), LogEI(), LogEI("mean"), Thompson(),
    Explore(), Optimism(),
)  # fmt: skip
RBF = {"kernel": kernels.RBF(0.2), "noise_var": 1e-4}
MATERN = {"kernel": kernels.Matern(nu=1.5, lengthscale=[2.0, 3.0], variance=900.0), "noise_var": 1.0}
SUM = {"kernel": kernels.RBF(0.3) + kernels.Linear(0.5), "noise_var": 1e-3}


@dataclass(frozen=True)
class Recipe:
    """One run: a problem, the arguments of an Optimizer, and how its suggestions are evaluated."""

    name: str
    f: Callable[[Any], Any]  # a number, outputs, or a number and its constraints
    space: Any
    steps: int = 18
    noise: float = 0.0
    batch: int = 1  # points asked together; their values come back in reverse
    lag: int = 0  # points that stay pending while the next are asked
    fails: int = 0  # every so many evaluations fail
    forgets: int = 0  # every so many suggestions are given back
    told_first: int = 0  # points told before the first is asked
    reports: tuple[int, ...] = ()  # steps at which values are reported before the last one is told
    ledger: bool = True
    options: dict[str, Any] = field(default_factory=dict)  # aim="earn" where they do not say another


def recipes() -> Iterator[Recipe]:
    """More than 170 runs: boxes, mixed and finite spaces, every prior, policy and goal, batches, failures, outputs."""
    for goal in ("max", "min"):
        for policy in POLICIES:
            label = f"{policy!r}, {goal}"
            options = {"policy": policy, "goal": goal, "seed": 3}
            yield Recipe(
                f"box, learned, {label}", branin, BRANIN, steps=14, ledger=False, options={**options, "budget": 20}
            )
            yield Recipe(
                f"rows, given, {label}", bumps, ROWS, steps=16, noise=0.02, ledger=False, options={**options, **RBF}
            )
        for fit in ("map", "loo", "mcmc"):
            options = {"goal": goal, "fit": fit, "seed": 5}
            yield Recipe(f"box, {fit}, {goal}", branin, BRANIN, steps=20, noise=1.0, options=options)
            yield Recipe(f"mixed, {fit}, {goal}", mixed, MIXED, steps=16, options=options)
            yield Recipe(f"rows, {fit}, {goal}", bumps, ROWS, steps=16, noise=0.02, options=options)
        options = {"goal": goal, "seed": 1}
        yield Recipe(f"one dimension, {goal}", bumps, UNIT_1, steps=16, options=options)
        yield Recipe(f"six dimensions, {goal}", bumps, UNIT_6, steps=20, options={**options, "budget": 40})
        yield Recipe(f"whole numbers, {goal}", whole, WHOLE, options=options)
        yield Recipe(f"many levels, {goal}", mixed, WIDE, steps=14, options=options)
        yield Recipe(f"a frame, {goal}", mixed, frame, options=options)
        yield Recipe(f"many rows, {goal}", bumps, MANY, steps=16, noise=0.01, options=options)
        yield Recipe(f"many rows, given, {goal}", bumps, MANY, noise=0.01, options={**options, **RBF})
        yield Recipe(f"rows once each, {goal}", bumps, ROWS[:25], steps=22, options={**options, "repeats": False})
        yield Recipe(f"a box once each, {goal}", bumps, UNIT_2, steps=14, options={**options, "repeats": False})
        yield Recipe(f"noise learned, {goal}", bumps, UNIT_2, noise=0.05, options={**options, "kernel": RBF["kernel"]})
        yield Recipe(f"kernel learned, {goal}", branin, BRANIN, noise=1.0, options={**options, "noise_var": 1.0})
        yield Recipe(f"matern given, {goal}", branin, BRANIN, noise=1.0, options={**options, **MATERN})
        yield Recipe(f"sum given, {goal}", bumps, UNIT_2, noise=0.03, options={**options, **SUM})
        yield Recipe(f"transformed, {goal}", goldstein_price, GOLDSTEIN, steps=40, options={**options, "budget": 40})
        yield Recipe(f"batches, {goal}", branin, BRANIN, steps=24, batch=4, options=options)
        yield Recipe(
            f"batches by Thompson, {goal}", bumps, UNIT_2, steps=16, batch=4, options={**options, "policy": Thompson()}
        )
        yield Recipe(f"pending, {goal}", bumps, ROWS, steps=20, noise=0.02, lag=3, options={**options, "budget": 30})
        yield Recipe(f"pending mcmc, {goal}", bumps, UNIT_2, steps=14, lag=2, options={**options, "fit": "mcmc"})
        yield Recipe(f"failures, {goal}", branin, BRANIN, steps=20, fails=4, options=options)
        yield Recipe(f"failures on rows, {goal}", bumps, ROWS, steps=20, fails=3, options={**options, **RBF})
        yield Recipe(f"given back, {goal}", bumps, UNIT_2, steps=16, forgets=3, options=options)
        yield Recipe(f"told first, {goal}", branin, BRANIN, steps=12, told_first=12, options=options)
        yield Recipe(f"long, {goal}", bumps, UNIT_2, steps=70, noise=0.05, options={**options, "budget": 70})
        options = {"goal": goal, "seed": 2, "aim": "find"}
        yield Recipe(f"find, box, {goal}", branin, BRANIN, steps=40, options={**options, "budget": 40})
        yield Recipe(f"find, noise, {goal}", bumps, UNIT_2, steps=30, noise=0.05, options=options)
        yield Recipe(f"find, mixed, {goal}", mixed, MIXED, steps=30, options=options)
        yield Recipe(f"find, a frame, {goal}", mixed, frame, steps=30, options=options)
        yield Recipe(f"find, whole numbers, {goal}", whole, WHOLE, steps=30, batch=3, options=options)
        yield Recipe(f"find, levels, {goal}", coarse_or_fine, LEVELS, steps=30, options=options)
        yield Recipe(f"find, pending levels, {goal}", coarse_or_fine, LEVELS, noise=0.02, lag=2, options=options)
        yield Recipe(f"find, curves, {goal}", curve, STEPS, steps=25, reports=(2, 4, 8), options=options)
        yield Recipe(f"find, rows, given, {goal}", bumps, ROWS, steps=30, noise=0.02, options={**options, **RBF})
    yield from runs_with_goals()
    yield from runs_with_more()


def runs_with_goals() -> Iterator[Recipe]:
    """Fronts and single objectives with limits, of every kind of space and policy."""
    front = {"goals": {"yield": "max", "cost": "min"}, "seed": 4}
    limit = {"goals": {"yield": "max", "cost": gpmi.AtMost(0.3)}, "seed": 4}
    three = {"goals": {"yield": "max", "cost": "min", "waste": gpmi.AtMost(0.4)}, "seed": 4}
    target = {"goals": {"yield": gpmi.Match(0.5, within=0.1), "cost": None}, "seed": 4}
    sizes = {"goals": {"score": "max", "size": "min"}, "seed": 4}
    small = {"goals": {"score": gpmi.Max(at_least=-3.0), "size": gpmi.AtMost(8)}, "seed": 4}
    for aim in ("find", "earn"):
        yield Recipe(f"goals, front, {aim}", two, UNIT_2, steps=16, options={**front, "aim": aim})
        yield Recipe(f"goals, limit, {aim}", two, UNIT_2, steps=16, options={**limit, "aim": aim})
        yield Recipe(f"goals, target, {aim}", two, UNIT_2, steps=14, options={**target, "aim": aim})
        yield Recipe(f"goals, mixed front, {aim}", mixed_outputs, MIXED, steps=14, options={**sizes, "aim": aim})
        yield Recipe(f"goals, mixed limit, {aim}", mixed_outputs, MIXED, steps=14, options={**small, "aim": aim})
        yield Recipe(f"goals, rows front, {aim}", two, ROWS, steps=14, options={**front, "aim": aim})
    find: dict[str, Any] = {"aim": "find"}
    stated = {"goals": {"yield": gpmi.Max(at_least=0.2), "cost": gpmi.Min(at_most=0.5)}, "seed": 4, **find}
    weights = gpmi.Weights(**{"yield": 0.7, "cost": 0.3})
    yield Recipe("goals, front with limit", with_waste, UNIT_2, steps=16, options={**three, **find})
    yield Recipe("goals, front under noise", two, UNIT_2, steps=16, noise=0.05, options={**front, **find})
    yield Recipe("goals, stated reference", two, UNIT_2, steps=16, options=stated)
    yield Recipe("goals, weights", two, UNIT_2, steps=14, options={**front, **find, "policy": weights})
    yield Recipe("goals, front in batches", two, UNIT_2, steps=16, batch=4, options={**front, **find})
    yield Recipe("goals, front pending", two, ROWS, steps=14, lag=2, options={**front, **find})
    yield Recipe("goals, front with failures", two, UNIT_2, steps=16, fails=4, options={**front, **find})
    yield Recipe("goals, limit with failures", two, UNIT_2, steps=16, fails=4, options={**limit, **find})
    yield Recipe("goals, front of levels", outputs_of_levels, LEVELS, options={"seed": 4, **find, **GOALS_OF_LEVELS})
    yield Recipe("goals, limit of levels", outputs_of_levels, LEVELS, options={**limit, **find})
    steps = {"goals": {"yield": "max", "time": "min"}, "seed": 4, **find}
    yield Recipe("goals, front of curves", outputs_of_steps, STEPS, steps=16, reports=(2, 4, 8), options=steps)
    yield Recipe(
        "goals, one objective", lambda x: {"yield": bumps(x)}, UNIT_2, options={"goals": {"yield": "max"}, "seed": 2}
    )


def runs_with_more() -> Iterator[Recipe]:
    """Sources, descriptors, counted parameters, steps of instruments, measured limits."""
    rng = np.random.default_rng(21)
    points = rng.random((15, 2))
    same = [(x, bumps(x) + 0.02 * rng.standard_normal()) for x in points]
    other = [(x, -3.0 * bumps(x) + 2.0) for x in points]
    unrelated = [(x, float(np.sin(9.0 * x[0]) * x[1])) for x in points]
    sources = {"same": same, "negated": other, "unrelated": unrelated}
    choose = [
        ({"solvent": "THF", "temperature": float(t)}, solvent({"solvent": "THF", "temperature": t}))
        for t in (25, 40, 55)
    ]
    for goal in ("max", "min"):
        sign = 1.0 if goal == "max" else -1.0
        for name, values in sources.items():
            given = {"earlier": {name: [(x, sign * y) for x, y in values]}, "goal": goal, "seed": 3, "aim": "find"}
            yield Recipe(f"source, {name}, {goal}", bumps, UNIT_2, steps=14, options=given)
        options = {"goal": goal, "seed": 3, "aim": "find"}
        yield Recipe(f"descriptors, {goal}", solvent, DESCRIBED, steps=20, options=options)
        yield Recipe(f"descriptors, earn, {goal}", solvent, DESCRIBED, steps=16, options={**options, "aim": "earn"})
        yield Recipe(f"descriptors under noise, {goal}", solvent, DESCRIBED, noise=0.05, options=options)
        counted = {**options, "constraints": ["count(a, b, c, d > 0) <= 2", "a + b + c + d == 1"]}
        yield Recipe(f"counts, {goal}", blend, BLEND, options=counted)
        yield Recipe(
            f"counts without a sum, {goal}", blend, BLEND, options={**counted, "constraints": "count(a, b, c, d) <= 2"}
        )
        yield Recipe(f"counts, earn, {goal}", blend, BLEND, steps=14, options={**counted, "aim": "earn"})
        yield Recipe(f"steps, {goal}", lambda p: bumps([p["x"], p["z"] / 2]), DIAL, options=options)
        summed = {**options, "constraints": "x + z <= 1.5"}
        yield Recipe(f"steps with a sum, {goal}", lambda p: bumps([p["x"], p["z"] / 2]), DIAL, options=summed)
        yield Recipe(f"steps in batches, {goal}", lambda p: bumps([p["x"], p["z"] / 2]), DIAL, batch=3, options=options)
        yield Recipe(f"angles, {goal}", headed, CIRCLES, options=options)
        yield Recipe(f"angles, earn, {goal}", headed, CIRCLES, steps=14, options={**options, "aim": "earn"})
        yield Recipe(f"measured limit, {goal}", inside, UNIT_2, options=options)
        yield Recipe(f"measured limit, earn, {goal}", inside, UNIT_2, options={**options, "aim": "earn"})
        yield Recipe(f"measured limit on rows, {goal}", inside, ROWS, options=options)
    several = {"earlier": {"THF": choose}, "seed": 3, "aim": "find"}
    yield Recipe("source for descriptors", solvent, DESCRIBED, steps=14, options={**several, "goal": "max"})
    both = {"goals": {"yield": "max", "cost": "min"}, "earlier": {"same": [(x, two(x)) for x in points]}, "seed": 4}
    yield Recipe("goals, source of a front", two, UNIT_2, steps=12, options={**both, "aim": "find"})


class Digest:
    """A digest of numbers to the last bit."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, *values: Any) -> None:
        for value in values:
            plain = float(value) if isinstance(value, int | float | np.floating | np.integer) else value
            data = (
                np.asarray(plain, dtype=float).tobytes()
                if isinstance(plain, float | np.ndarray)
                else repr(plain).encode()
            )
            self._hash.update(data + b";")

    def __str__(self) -> str:
        return self._hash.hexdigest()[:16]


def play(recipe: Recipe, imposed: list[Any] | None = None) -> dict[str, Any]:
    """What a run decided, what the trials say of it, and what the ledger says at its end.

    With `imposed`, the recorded decisions, the run goes on with these instead of its own.
    """
    space = recipe.space() if callable(recipe.space) else recipe.space
    sign = -1.0 if recipe.options.get("goal") == "min" else 1.0
    optimizer = NotingOptimizer(space, **{"aim": "earn", **recipe.options})
    optimizer.imposed, rng = None if imposed is None else iter(imposed), np.random.default_rng(0)

    def noisy(y: float) -> float:
        return sign * (y + recipe.noise * rng.standard_normal())

    def value(x: Any) -> Any:
        y = recipe.f(x)
        return {name: noisy(output) for name, output in y.items()} if isinstance(y, dict) else noisy(y)

    def tell(x: Any) -> None:
        y = recipe.f(x)
        if isinstance(y, tuple):
            optimizer.tell(x, noisy(y[0]), constraints=y[1])
        else:
            optimizer.tell(x, value(x))

    if recipe.told_first:
        told = np.random.default_rng(1).random((recipe.told_first, 2)) * 10.0
        for x in told:
            optimizer.tell(x, value(x))
    done, waiting = 0, []
    while done < recipe.steps:
        points = optimizer.ask(recipe.batch) if recipe.batch > 1 else [optimizer.ask()]
        if recipe.forgets and done % recipe.forgets == 0:
            optimizer.forget(optimizer.ask())
        waiting += reversed(points)
        while len(waiting) > recipe.lag and done < recipe.steps:
            x = waiting.pop(0)
            done += 1
            if recipe.fails and done % recipe.fails == 0:
                optimizer.fail(x)
            elif all(optimizer.report(x, step, value({**x, "epoch": step})) == "continue" for step in recipe.reports):
                tell(x)
    asked, said = Digest(), Digest()
    for decision in optimizer.decisions:
        asked.add(decision.bits)
    is_front = isinstance(optimizer.ledger, FrontLedger)
    for x in [trial.x for trial in optimizer.front] if is_front else [optimizer.recommend()]:
        asked.add(optimizer.space.encode(x))
    for trial in optimizer.trials:
        numbers = (trial.y, trial.mu, trial.sd, trial.phi, trial.gamma_hat, trial.surprise, trial.information)
        said.add(trial.number, trial.status, trial.origin, trial.order, trial.explored, *numbers)
        if trial.outputs:
            said.add(trial.trust, *trial.outputs.items(), *trial.unmet)
    said.add(*(text for event in optimizer.events for text in (event.kind, event.message)))
    record: dict[str, Any] = {
        "asked": str(asked),
        "said": str(said),
        "decisions": [decision.place for decision in optimizer.decisions],
        "margins": [decision.margin for decision in optimizer.decisions],
    }
    if imposed is not None:
        record["differences"] = [decision.difference for decision in optimizer.decisions]
    ledger = optimizer.ledger
    record["outlook"] = [
        ledger.gain(10).mean,
        ledger.gain(10).probability_above(ledger.smallest_gain),
        ledger.advice.what,
    ]
    if recipe.ledger:
        record["ledger"] = account_of_front(ledger) if is_front else account(ledger)
    return record


def account(ledger: Any) -> list[Any]:
    """The ledger's numbers and words."""
    now, before = ledger.regret(), ledger.regret(max(1, ledger.n - 3))
    numbers = [ledger.improvement, ledger.floor, ledger.noise_sd, *ledger.calibration.coverage_left_out.values()]
    for regret in (now, before):
        numbers += [*regret.interval(), *regret.interval(0.5), *np.quantile(regret.cumulative, [0.1, 0.9])]
    lock_in = ledger.lock_in
    words = [ledger.calibration.verdict, now.how, None if lock_in is None else lock_in.since]
    return [*(float(number) for number in numbers), *words]


def account_of_front(ledger: FrontLedger) -> list[Any]:
    """The numbers and words of a front's ledger."""
    missing, outputs = ledger.missing, ledger.outputs
    numbers = [ledger.hypervolume, missing.median, *missing.interval(), *missing.share()]
    coverages = [list(outputs[name].calibration.coverage_left_out.values()) for name in outputs]
    words = [missing.how, *(outputs[name].calibration.verdict for name in outputs)]
    return [*(float(number) for number in (*numbers, *(value for values in coverages for value in values))), *words]


def record(runs: Mapping[str, list[Any] | None]) -> dict[str, Any]:
    """Return the arithmetic and the records of the named runs, played in a process with pinned vector units.

    Each name comes with the decisions to impose, or with None.
    """
    done = subprocess.run(
        [sys.executable, __file__, "--play"],
        input=json.dumps(runs),
        env={**os.environ, **pinned()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    by_name = {recipe.name: recipe for recipe in recipes()}
    if sys.argv[1:] == ["--play"]:
        runs = {name: play(by_name[name], imposed) for name, imposed in json.load(sys.stdin).items()}
        print(json.dumps({"arithmetic": arithmetic(), "runs": runs}))
        return
    before = json.loads(FILE.read_text())["runs"] if FILE.exists() else {}
    recorded = record(dict.fromkeys(by_name))
    if problem := not_pinned(recorded["arithmetic"]):
        sys.exit(f"the runs were not played with the arithmetic of {PINNED_CORE}, so nothing was written: {problem}")
    for name, run in recorded["runs"].items():
        changed = [part for part in run if before.get(name, {}).get(part) != run[part]]
        if changed:
            print(f"{name}: {', '.join(changed)}")
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(run)}" for name, run in recorded["runs"].items())
    FILE.write_text(f'{{"arithmetic": {json.dumps(recorded["arithmetic"])},\n"runs": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
