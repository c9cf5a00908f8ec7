"""Random histories of an optimizer: ask, tell, fail, forget, correct, retract, reject, replay, copy and read.

A list kept by the machine says what must be in the log. On finite sets brute force says which row must be asked. A
copy, by pickle or deepcopy, asks the same next. The number of histories is set by GPMI_HISTORIES (`make fuzz`: 10,000
random ones; `make test`: 150, always the same).
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fuzzing import Tally
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sample_spaces import SPACES

from gpmi import (
    EI,
    GPMI,
    GPUCB,
    GPUCBPE,
    Explore,
    Int,
    LogEI,
    Optimizer,
    Real,
    Reinvest,
    SpaceExhausted,
    Thompson,
    VarianceBonus,
    kernels,
)
from gpmi._support.types import FrozenPoint
from gpmi.analysis.ledger.ledger import SAME
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked
from gpmi.model.model import Model, objective, risk_now
from gpmi.policies import Policy
from gpmi.policies.policy import LOG_SAFE
from gpmi.search.objective import Objective
from gpmi.space import Parameters
from gpmi.trials import Log, Trial
from gpmi.trials.replay import take_over

STEPS = 25  # the most that happens in one history

# How far mu and var may be off by rounding, in units of what they are sums of: |whitened| sqrt(k(z, z)) and k(z, z).
ROUNDING = 1e-12  # of a choice: computed as the search computes it in the end, and not magnified
OF_SCORES = 1e-13  # of a score, relative to itself: EI is the exponential of a logarithm
TWO_WAYS = 1e-9  # of mu from the whitened values and from the weights, which differ by the condition of C


# Spaces


class Estimator:
    """An option that equals only itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Optimism(Policy):
    """A policy of a user, with phi alone."""

    def phi(self, var: Any, state: Any) -> Any:
        return 2.0 * np.sqrt(var)

    def __repr__(self) -> str:
        return "Optimism()"


@dataclass(frozen=True)
class Place:
    """A space as a user writes it, points of it, and a test of whether something is one of them."""

    spec: Any
    points: st.SearchStrategy[Any] = field(repr=False)
    holds: Callable[[Any], bool] = field(repr=False)
    constraints: Any = None
    copies: bool = True  # False: an option equals only itself, so that a copy of the space has other points


BOUNDS = ((0.0, 1.0), (-5.0, 10.0), (-1e6, 1e6), (1e-8, 3e-8), (1e5, 1e5 + 1.0))
OPTIONS = (
    ["relu", "tanh", "elu"],
    [True, 1, None, "1", 1.5],
    [[1, 2], [3], {"a": 1}],
    [(1, [2]), (1, [3])],
    [np.array([1.0]), np.array([1.0, 2.0])],
    [Estimator("a"), Estimator("b"), Estimator("c")],
    ["only"],
)
PARAMETERS = (
    (0.0, 1.0),
    Real(1e-5, 1e-1, log=True),
    Real(-3.0, 7.0),
    Int(0, 4),
    Int(-3, 9_999_995),
    Int(1, 1000, log=True),
    *OPTIONS,
)


def between(lo: float, hi: float) -> st.SearchStrategy[float]:
    return st.one_of(st.sampled_from([lo, hi, lo + 0.25 * (hi - lo)]), st.floats(lo, hi))


@st.composite
def boxes(draw: st.DrawFn) -> Place:
    bounds = draw(st.lists(st.sampled_from(BOUNDS), min_size=1, max_size=3))
    lo, hi = np.array(bounds).T

    def holds(x: Any) -> bool:
        return (
            type(x) is np.ndarray and x.dtype == float and x.shape == lo.shape and bool(np.all((lo <= x) & (x <= hi)))
        )

    return Place(bounds, st.tuples(*(between(*pair) for pair in bounds)).map(np.array), holds)


def values_of(parameter: Any) -> tuple[st.SearchStrategy[Any], Callable[[Any], bool]]:
    """Values of a parameter of a named space, and the test of whether something is one."""
    if isinstance(parameter, list):
        return st.sampled_from(parameter), lambda v: any(type(v) is type(o) and equal(v, o) for o in parameter)
    if isinstance(parameter, Int):
        near = st.integers(parameter.lo, min(parameter.lo + 3, parameter.hi))
        return st.one_of(
            near, st.integers(parameter.lo, parameter.hi)
        ), lambda v: type(v) is int and parameter.lo <= v <= parameter.hi
    lo, hi = parameter if isinstance(parameter, tuple) else (parameter.lo, parameter.hi)
    return between(lo, hi), lambda v: type(v) is float and lo <= v <= hi


@st.composite
def named(draw: st.DrawFn) -> Place:
    parameters = draw(st.lists(st.sampled_from(PARAMETERS), min_size=1, max_size=3))
    spec = {f"p{i}": parameter for i, parameter in enumerate(parameters)}
    parts = {name: values_of(parameter) for name, parameter in spec.items()}

    def holds(x: Any) -> bool:
        return type(x) is dict and list(x) == list(spec) and all(parts[name][1](value) for name, value in x.items())

    points = st.fixed_dictionaries({name: values for name, (values, _) in parts.items()})
    own = any(isinstance(option, Estimator) for p in parameters if isinstance(p, list) for option in p)
    return Place(spec, points, holds, copies=not own)


@st.composite
def tables(draw: st.DrawFn) -> Place:
    """Candidates on a coarse grid, so that rows are equal now and then."""
    m, d = draw(st.integers(1, 40)), draw(st.integers(1, 2))
    grid = st.integers(0, draw(st.sampled_from([1, 5, 50])))
    cells = draw(st.lists(st.tuples(*[grid] * d), min_size=m, max_size=m))
    table = np.array(cells) * draw(st.sampled_from([0.1, 1e-6, 1e6]))
    rows = {row.tobytes() for row in table + 0.0}

    def holds(x: Any) -> bool:
        return type(x) is np.ndarray and x.dtype == float and x.tobytes() in rows

    return Place(table, st.sampled_from(range(m)).map(lambda i: table[i].copy()), holds)


@st.composite
def frames(draw: st.DrawFn) -> Place:
    m = draw(st.integers(1, 30))
    columns = {
        "x": st.integers(0, 20).map(lambda i: i / 20),
        "n": st.integers(0, 5),
        "word": st.sampled_from(["a", "b", "c"]),
        "flag": st.booleans(),
    }
    names = draw(st.lists(st.sampled_from(sorted(columns)), min_size=1, max_size=3, unique=True))
    rows = [{name: draw(columns[name]) for name in names} for _ in range(m)]
    return Place(pd.DataFrame(rows), st.sampled_from(rows).map(dict), lambda x: isinstance(x, dict) and x in rows)


@st.composite
def grids(draw: st.DrawFn) -> Place:
    """Evenly spaced candidates in one or two dimensions: ties by symmetry."""
    side, d = draw(st.sampled_from([2, 5, 11])), draw(st.integers(1, 2))
    axes = np.meshgrid(*[np.linspace(0.0, 1.0, side)] * d)
    table = np.stack([axis.ravel() for axis in axes], axis=1)
    rows = {row.tobytes() for row in table}
    return Place(
        table,
        st.sampled_from(range(len(table))).map(lambda i: table[i].copy()),
        lambda x: type(x) is np.ndarray and x.tobytes() in rows,
    )


@cache
def constrained(name: str) -> Place:
    """A space under constraints or conditions; its points are those of an initial design."""
    spec, constraints = SPACES[name]
    design = Optimizer(spec, constraints=constraints, n_init=24, seed=0)
    points, space = design.ask(24), design.space

    def holds(x: Any) -> bool:
        try:
            row = space.encode(x)
        except (TypeError, ValueError):
            return False
        is_point = isinstance(x, np.ndarray if space.names is None else dict)
        return is_point and (not isinstance(space, Parameters) or bool(space.feasible_set.contains(row[None])[0]))

    return Place(spec, st.sampled_from(points).map(copy.deepcopy), holds, constraints)


PLACES = st.one_of(boxes(), named(), tables(), frames(), grids(), st.sampled_from(sorted(SPACES)).map(constrained))


# Arguments

POLICIES = (
    None, Reinvest(), GPMI(), GPMI(alpha=0.01), GPUCB(), GPUCB(scale=0.2), VarianceBonus(), EI(), EI("mean"), LogEI(),
    LogEI("mean"), Explore(), Thompson(), Optimism(), GPUCBPE(), GPUCBPE(scale=0.01),
)  # fmt: skip
KERNELS = (
    None,
    kernels.RBF(0.3),
    kernels.RBF(3.0, variance=100.0),
    kernels.Matern(nu=0.5, lengthscale=0.5),
    kernels.Matern(nu=1.5, lengthscale=1.0, variance=1e-6),
    kernels.Matern(nu=2.5, lengthscale=0.4) + kernels.Linear(0.3),
    kernels.RBF(1.0) * kernels.Linear(2.0),
    kernels.RBF(lengthscale=None),
    kernels.Matern(nu=1.5, lengthscale=None, variance=1.0),
    kernels.RBF(lengthscale=None, variance=None) + kernels.Linear(variance=None),
)
NOISE = (None, 0.0, 1e-16, 1e-9, 1e-4, 1.0, 1e4)


class Known:
    """A prior mean function of any point."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, x: Any) -> float:
        values = x.values() if isinstance(x, dict) else x.tolist()
        return self.scale * float(sum(np.sin(value) for value in values if isinstance(value, int | float)))

    def __repr__(self) -> str:
        return f"Known({self.scale})"


MEANS = (None, None, None, None, Known(1.0), Known(1e6))
ERROR_BARS = ({}, {}, {}, {"noise_var": 1.0}, {"noise_var": 1e-4, "repeats": 3}, {"repeats": 100}, {"noise_var": 1e20})


REASONS = (None, None, "diverged", "no\nmemory", "x" * 500, "")
LIMITS = (0.0, -1.0, 1.0, -1e-9, 3, np.float64(-2.5), -1e30, 1e30)  # values of constraints
NO_LIMITS = (1.0, "1", [None], [float("nan")], [[1.0]], [1e101], ["1"], [True], [0.0] * 4)


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    kernel = draw(st.sampled_from(KERNELS))
    fits = ["map"] * 8 + ["loo", "mcmc"] if kernel is None or kernel.unknown else ["map"]
    fit = draw(st.sampled_from(fits))
    return {
        "noise": draw(st.sampled_from(["normal"] * 5 + ["student"])) if fit == "map" else "normal",
        "policy": draw(st.sampled_from(POLICIES)),
        "aim": draw(st.sampled_from(["find", "find", "earn"])),
        "kernel": kernel,
        "noise_var": draw(st.sampled_from(NOISE)),
        "fit": fit,
        "n_init": draw(st.sampled_from([None, None, 0, 1, 3])),
        "budget": draw(st.sampled_from([None, 1, 20])),
        "repeats": draw(st.sampled_from([True, True, False])),
        "goal": draw(st.sampled_from(["max", "min"])),
        "seed": draw(st.integers(0, 3)),
        "mean": draw(st.sampled_from(MEANS)),
    }


UNITS = st.floats(-1.0, 1.0).map(lambda u: u if abs(u) > 1e-6 else 0.0)
SIZES = st.sampled_from([1.0, 1.0, 1.0, 1e-30, 1e-6, 1e3, 1e12, 1e40, 1e90])
ODD = st.sampled_from([0.0, -0.0, 1.0, 1.0, -1000.0, -1e12, 1e90, -1e90, 5e-324, 3, np.float32(0.5), np.int64(-2)])
BAD = st.sampled_from([float("nan"), float("inf"), 1e101, None, "1", [1.0], 1j, np.array([1.0]), 10**400])
NOT_POINTS = (None, "x", 1.5, True, [], {}, {"p0": object()}, np.array([np.nan]), np.zeros((2, 2)), np.full(3, 1e300))


# The machine


@dataclass
class Kept:
    """What the machine knows of a trial."""

    number: int
    x: Any
    y: float | None = None
    status: str = "pending"
    asked: bool = True
    first: float | None = None  # the value before it was corrected or retracted
    noise: tuple[float, int] = (0.0, 1)
    constraints: tuple[float, ...] = ()
    why: str | None = None


def equal(a: Any, b: Any) -> bool:
    """Whether two points are the same, options being the very objects or equal copies of them."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape and bool(np.all(a == b))
    if isinstance(a, dict) and isinstance(b, dict):
        return set(a) == set(b) and all(equal(a[name], b[name]) for name in a)
    return a is b or (isinstance(a, bool) == isinstance(b, bool) and bool(a == b))


COPIES: dict[str, Callable[[Optimizer], Optimizer]] = {
    "pickle": lambda opt: pickle.loads(pickle.dumps(opt)),
    "pickle, protocol 2": lambda opt: pickle.loads(pickle.dumps(opt, 2)),
    "deepcopy": copy.deepcopy,
    "twice": lambda opt: copy.deepcopy(pickle.loads(pickle.dumps(opt))),
}


class Histories(RuleBasedStateMachine):
    """One optimizer, and beside it a list of what was done."""

    place: Place
    options: dict[str, Any]
    opt: Optimizer
    tally: Tally

    def teardown(self) -> None:
        self.tally.add("histories")

    @initialize(place=PLACES, options=arguments(), size=SIZES, data=st.data())
    def start(self, place: Place, options: dict[str, Any], size: float, data: st.DataObject) -> None:
        first = data.draw(st.one_of(st.none(), st.none(), st.lists(place.points, min_size=1, max_size=3)))
        self.place, self.size = place, size
        self.options = {**options, "x0": first, "constraints": place.constraints}
        self.limits = data.draw(st.sampled_from([0, 0, 0, 0, 1, 2]))  # constraints measured beside each value
        self.opt = self.fresh()
        self.kept: list[Kept] = []
        self.outcomes: list[int] = []

    def fresh(self) -> Optimizer:
        return Optimizer(self.place.spec, **self.options)

    def pending(self) -> list[Kept]:
        return [kept for kept in self.kept if kept.status == "pending"]

    def next_number(self) -> int:
        return max((entry.number for entry in self.opt._log.entries), default=-1) + 1

    def row(self, x: Any) -> bytes:
        return self.opt.space.encode(x).tobytes()

    # What happens

    @rule(n=st.sampled_from([None, None, None, 1, 2, 3]))
    def ask(self, n: int | None) -> None:
        before = self.opt.trials
        try:
            points = [self.opt.ask()] if n is None else self.opt.ask(n)
        except SpaceExhausted:
            assert self.exhausted(before)
            assert self.opt.trials == before
            return
        assert 1 <= len(points) <= (n or 1)
        if len(points) < (n or 1):
            assert self.exhausted(self.opt.trials)
        for x in points:
            self.add(x)
        for i, trial in enumerate(self.opt.trials[len(before) :]):
            self.check_choice(trial, self.opt.trials[: len(before) + i])

    def context(self, data: st.DataObject) -> dict[Any, Any]:
        """Some coordinates of a point of the space, by name or number."""
        x = data.draw(self.place.points)
        items = dict(x) if isinstance(x, dict) else dict(enumerate(x.tolist()))
        keys = data.draw(st.lists(st.sampled_from(sorted(items)), min_size=1, unique=True))
        for key in keys:  # and those that a coordinate depends on; the list grows while it is read
            keys += [parent for parent in self.parents(key) if parent not in keys]
        return {key: items[key] for key in keys}

    def parents(self, key: Any) -> list[Any]:
        """The parameters that a coordinate depends on."""
        space = self.opt.space
        if not isinstance(space, Parameters) or space.names is None:
            return []
        return list(space.parameters[space.names.index(key)].when or ())

    @rule(data=st.data(), n=st.sampled_from([None, None, 1, 3]))
    def ask_in_a_context(self, data: st.DataObject, n: int | None) -> None:
        before, fixed = self.opt.trials, self.context(data)
        again = self.fresh().replay(before)
        part = self.opt.space.with_fixed(fixed)
        try:
            points = [self.opt.ask(fixed=fixed)] if n is None else self.opt.ask(n, fixed=fixed)
        except SpaceExhausted:
            assert part.rows is not None and self.opt.trials == before
            return
        assert 1 <= len(points) <= (n or 1) and (len(points) == (n or 1) or part.rows is not None)
        for x in points:
            self.add(x)
            same = [again.ask(fixed=fixed)] if n is None else []
            assert all(self.row(x) == self.row(z) for z in same)
            assert all(equal(x[key], value) for key, value in fixed.items())
            assert part.contains(self.opt.space.encode(x))
        for trial in self.opt.trials[len(before) :]:
            assert set(trial.fixed or ()) == set(part.fixed_values())
        if n is not None:
            assert [self.row(x) for x in again.ask(n, fixed=fixed)] == [self.row(x) for x in points]

    @rule(data=st.data())
    def recommend_in_a_context(self, data: st.DataObject) -> None:
        fixed = self.context(data)
        if not self.told():
            self.refused(lambda: self.opt.recommend(fixed=fixed))
            return
        x = self.opt.recommend(fixed=fixed)
        assert self.place.holds(x) and all(equal(x[key], value) for key, value in fixed.items())
        rows = self.opt.space.with_fixed(fixed).rows
        model = self.opt.model
        assert model is not None
        if rows is not None and model.chance is None:
            means = np.mean([posterior.mu(rows) for posterior in model.mixture], axis=0)
            slack = self.slack_of_means(model, rows)
            (number,) = np.flatnonzero(np.all(rows == self.opt.space.encode(x), axis=1))[:1]
            assert means[number] + slack[number] >= np.max(means - slack)

    @rule(
        fixed=st.sampled_from(
            [3, "x", [1], {"nothing": 1}, {99: 0.0}, {None: 1}, {0: "x", "p0": object(), "x": object()}]
        )
    )
    def no_context(self, fixed: Any) -> None:
        self.refused(lambda: self.opt.ask(fixed=fixed))
        self.refused(lambda: self.opt.recommend(fixed=fixed))

    def add(self, x: Any) -> None:
        assert self.place.holds(x), f"{x!r} is not in {self.place.spec!r}"
        self.kept.append(Kept(self.opt.trials[len(self.kept)].number, x))

    @precondition(lambda self: self.pending())
    @rule(data=st.data(), by=st.sampled_from(["point", "trial", "number", "numpy number"]))
    def tell(self, data: st.DataObject, by: str) -> None:
        kept, name = self.named(data, by)
        y, bar = self.value(data), self.said(data)
        self.settle(kept, self.opt.tell(name, y, **bar), y, bar)

    def said(self, data: st.DataObject) -> dict[str, Any]:
        """What is said beside a value: error bars, repeats, constraints."""
        return {**data.draw(st.sampled_from(ERROR_BARS)), **self.measured(data)}

    def measured(self, data: st.DataObject) -> dict[str, Any]:
        if self.limits == 0:
            return data.draw(st.sampled_from([{}, {}, {"constraints": None}, {"constraints": []}]))
        value = st.one_of(st.floats(-1.0, 1.0), st.sampled_from(LIMITS))
        return {"constraints": data.draw(st.lists(value, min_size=self.limits, max_size=self.limits))}

    @precondition(lambda self: self.pending())
    @rule(data=st.data(), by=st.sampled_from(["point", "trial", "number"]))
    def fail(self, data: st.DataObject, by: str) -> None:
        kept, name = self.named(data, by)
        kept.why = data.draw(st.sampled_from(REASONS))
        trial = self.opt.fail(name) if kept.why is None else self.opt.fail(name, why=kept.why)
        self.settle(kept, trial, None)

    @precondition(lambda self: self.pending())
    @rule(data=st.data(), by=st.sampled_from(["point", "trial", "number"]))
    def forget(self, data: st.DataObject, by: str) -> None:
        kept, name = self.named(data, by)
        self.opt.forget(name)
        self.kept.remove(kept)

    @rule(data=st.data())
    def tell_own_point(self, data: st.DataObject) -> None:
        x, y = data.draw(self.place.points), self.value(data)
        self.tell_point(x, y, self.said(data))

    @precondition(lambda self: not self.limits)
    @rule(data=st.data(), more=st.sampled_from([0.0, 0.0, 0.25]))
    def tell_all(self, data: st.DataObject, more: float) -> None:
        """Several values at once, each told to the first trial that waits at its point, or to a new one."""
        points = data.draw(st.lists(self.place.points, max_size=4))
        bars = [data.draw(st.sampled_from([0.0, 0.0, 1e-4])) for _ in points]
        values = [self.value(data) for _ in points]
        said = [(x, y, bar) if bar else (x, y) for x, y, bar in zip(points, values, bars, strict=True)]
        told = self.opt.tell_all(said, noise_var=more)
        for x, y, bar, trial in zip(points, values, bars, told, strict=True):
            self.settle(self.kept_at(x, trial), trial, y, {"noise_var": bar + more})

    @precondition(lambda self: not self.limits)
    @rule(data=st.data(), bad=BAD)
    def tell_all_but_one_is_bad(self, data: st.DataObject, bad: Any) -> None:
        x = data.draw(self.place.points)
        self.refused(lambda: self.opt.tell_all([(x, 1.0), (x, bad)]))

    # What is said afterwards

    @precondition(lambda self: self.ended("told", "failed", "retracted"))
    @rule(data=st.data(), by=st.sampled_from(["trial", "number", "numpy number"]), check=st.booleans())
    def correct(self, data: st.DataObject, by: str, check: bool) -> None:
        kept, name = self.named_later(data, by, "told", "failed", "retracted")
        y, bar = self.value(data), data.draw(st.sampled_from(ERROR_BARS))
        if len(kept.constraints) != self.limits or data.draw(st.booleans()):
            bar = {**bar, **self.measured(data)}
        if len(kept.constraints) != self.limits and any(other is not kept for other in self.told()):
            self.refused(lambda: self.opt.correct(name, y))
        trial = self.opt.correct(name, y, **bar)
        kept.constraints = limits_of(bar, kept.constraints)
        kept.why = None
        kept.first = kept.y if kept.first is None else kept.first
        kept.y, kept.status = float(y), "told"
        kept.noise = bar.get("noise_var", kept.noise[0]), bar.get("repeats", kept.noise[1])
        assert (trial.number, trial.status, trial.surprise) == (kept.number, "told", None)
        self.replays(check)

    @precondition(lambda self: self.ended("told", "failed", "rejected"))
    @rule(data=st.data(), by=st.sampled_from(["trial", "number"]), check=st.booleans())
    def retract(self, data: st.DataObject, by: str, check: bool) -> None:
        kept, name = self.named_later(data, by, "told", "failed", "rejected")
        assert self.opt.retract(name).status == "retracted"
        kept.first = kept.y if kept.first is None else kept.first
        kept.y, kept.status = None, "retracted"
        self.replays(check)

    @precondition(lambda self: self.pending())
    @rule(data=st.data(), by=st.sampled_from(["point", "trial", "number"]), check=st.booleans())
    def reject(self, data: st.DataObject, by: str, check: bool) -> None:
        kept, name = self.named(data, by)
        self.turn_down(kept, self.opt.reject(name))
        self.replays(check)

    @rule(data=st.data(), check=st.booleans())
    def reject_own_point(self, data: st.DataObject, check: bool) -> None:
        x = data.draw(self.place.points)
        kept = self.pending_at(x)
        trial = self.opt.reject(x)
        if kept is None:
            kept = Kept(trial.number, x, asked=False)
            self.kept.append(kept)
        self.turn_down(kept, trial)
        self.replays(check)

    def turn_down(self, kept: Kept, trial: Trial) -> None:
        kept.status = "rejected"
        self.outcomes.append(kept.number)
        assert (trial.number, trial.status, trial.y) == (kept.number, "rejected", None)

    def ended(self, *statuses: str) -> list[Kept]:
        return [kept for kept in self.kept if kept.status in statuses]

    def named_later(self, data: st.DataObject, by: str, *statuses: str) -> tuple[Kept, Any]:
        kept = data.draw(st.sampled_from(self.ended(*statuses)))
        if by == "trial":
            return kept, next(trial for trial in self.opt.trials if trial.number == kept.number)
        return kept, kept.number if by == "number" else np.int64(kept.number)

    def replays(self, check: bool) -> None:
        if check:
            self.asks_the_same(self.fresh().replay(self.opt.trials))

    @precondition(lambda self: self.pending())
    @rule(data=st.data(), step=st.sampled_from([-1, 1]))
    def tell_beside(self, data: st.DataObject, step: int) -> None:
        """A whole number next to a pending one is another point; a real number off by a rounding is the same one."""
        kept, y = data.draw(st.sampled_from(self.pending())), self.value(data)
        if isinstance(self.place.spec, dict):
            moved = {
                name: value + step if isinstance(self.place.spec[name], Int) else value
                for name, value in kept.x.items()
            }
            if self.place.holds(moved):
                self.tell_point(moved, y, self.measured(data))
        elif isinstance(self.place.spec, list):
            rounded = np.nextafter(kept.x, step * np.inf)
            if self.place.holds(rounded) and len(self.pending()) == 1:
                limits = self.measured(data)
                self.settle(kept, self.opt.tell(rounded, y, **limits), y, limits)

    def tell_point(self, x: Any, y: Any, bar: Any = None) -> None:
        trial = self.opt.tell(x, y, **(bar or {}))
        self.settle(self.kept_at(x, trial), trial, y, bar)

    def kept_at(self, x: Any, trial: Trial) -> Kept:
        """The pending trial that was told by its point, or a new one."""
        kept = self.pending_at(x)
        if kept is None:
            kept = Kept(trial.number, x, asked=False)
            assert all(trial.number > other.number for other in self.kept)
            self.kept.append(kept)
        return kept

    def pending_at(self, x: Any) -> Kept | None:
        """The pending trial that is meant by a point: the first at it, or the only one that rounds to it."""
        same = [kept for kept in self.pending() if self.row(kept.x) == self.row(x)]
        near = [] if same else [kept for kept in self.pending() if self.rounds_to(kept.x, x)]
        return (same or near)[0] if same or len(near) == 1 else None

    def rounds_to(self, a: Any, b: Any) -> bool:
        space = self.opt.space
        return bool(np.all(np.abs(space.encode(a) - space.encode(b)) <= space.rounding))

    def named(self, data: st.DataObject, by: str) -> tuple[Kept, Any]:
        """A pending trial and a name for it. By a point the first of equals is meant."""
        kept = data.draw(st.sampled_from(self.pending()))
        if by == "point":
            return next(other for other in self.pending() if self.row(other.x) == self.row(kept.x)), kept.x
        if by == "trial":
            return kept, next(trial for trial in self.opt.pending if trial.number == kept.number)
        return kept, kept.number if by == "number" else np.int64(kept.number)

    def value(self, data: st.DataObject) -> Any:
        return data.draw(st.one_of(UNITS.map(lambda u: u * self.size), UNITS.map(lambda u: u * self.size), ODD))

    def settle(self, kept: Kept, trial: Trial, y: Any, bar: Any = None) -> None:
        kept.y, kept.status = (None, "failed") if y is None else (float(y), "told")
        kept.noise = (bar or {}).get("noise_var", 0.0), (bar or {}).get("repeats", 1)
        kept.constraints = limits_of(bar or {}, ())
        self.outcomes.append(kept.number)
        assert (trial.number, trial.status) == (kept.number, kept.status)

    # What is refused

    @rule(data=st.data(), bad=BAD)
    def tell_a_bad_value(self, data: st.DataObject, bad: Any) -> None:
        self.refused(lambda: self.opt.tell(data.draw(self.place.points), bad))
        if self.ended("told"):
            self.refused(lambda: self.opt.correct(self.ended("told")[0].number, bad))
        if self.pending():
            self.refused(lambda: self.opt.tell(self.pending()[0].number, bad))

    @rule(data=st.data(), bad=st.sampled_from(NO_LIMITS), why=st.sampled_from([1, True, ["x"], b"x"]))
    def bad_constraints_and_reasons(self, data: st.DataObject, bad: Any, why: Any) -> None:
        x = data.draw(self.place.points)
        if self.told() or bad != [0.0] * 4:  # any number of them may come with the first value
            self.refused(lambda: self.opt.tell(x, 1.0, constraints=bad))
        if self.told() and self.limits:
            self.refused(lambda: self.opt.tell(x, 1.0))
            self.refused(lambda: self.opt.tell_all([(x, 1.0)]))
        if self.pending():
            self.refused(lambda: self.opt.fail(self.pending()[0].number, why))

    @rule(x=st.sampled_from(NOT_POINTS))
    def no_point(self, x: Any) -> None:
        for call in (
            self.opt.fail,
            self.opt.forget,
            self.opt.reject,
            self.opt.retract,
            lambda x: self.opt.tell(x, 1.0),
        ):
            self.refused(lambda call=call: call(x))

    @rule(data=st.data())
    def not_pending(self, data: st.DataObject) -> None:
        x = data.draw(self.place.points)
        if not any(self.rounds_to(kept.x, x) for kept in self.pending()):
            self.refused(lambda: self.opt.fail(x))
            self.refused(lambda: self.opt.forget(x))
        for number in (-1, self.next_number(), *(kept.number for kept in self.kept if kept.status != "pending")):
            for call in (self.opt.fail, self.opt.forget, self.opt.reject, lambda number: self.opt.tell(number, 1.0)):
                self.refused(lambda call=call, number=number: call(number))
        for number in (-1, self.next_number(), *(kept.number for kept in self.pending())):
            for call in (self.opt.retract, lambda number: self.opt.correct(number, 1.0)):
                self.refused(lambda call=call, number=number: call(number))

    @rule(trials=st.sampled_from([None, 3, [None], ["x"], [1.0]]), n=st.sampled_from([0, -1, 1.5, "2", True]))
    def nonsense(self, trials: Any, n: Any) -> None:
        self.refused(lambda: self.opt.replay(trials))
        self.refused(lambda: self.opt.ask(n))

    @precondition(lambda self: len(self.kept) > 0)
    @rule(data=st.data())
    def replay_with_a_bad_trial(self, data: st.DataObject) -> None:
        trials = list(self.opt.trials)
        i = data.draw(st.integers(0, len(trials) - 1))
        odd = [
            {"x": "x"},
            {"status": "lost"},
            {"origin": None},
            {"y": float("nan"), "status": "told"},
            {"order": -1},
            {"why": 3},
        ]
        odd += [{"constraints": "x"}, {"constraints": (1e300,)}]
        trials[i] = replace(trials[i], **data.draw(st.sampled_from(odd)))
        self.refused(lambda: self.opt.replay(trials))

    def refused(self, call: Callable[[], Any]) -> None:
        """The call raises a ValueError or TypeError and changes nothing."""
        before = self.everything()
        with pytest.raises((ValueError, TypeError)):
            call()
        after = self.everything()
        assert all(a is b for a, b in zip(before[0], after[0], strict=True)) and before[1:] == after[1:]

    def everything(self) -> tuple[Any, ...]:
        opt = self.opt
        return opt.trials, opt._log.entries, [trial.number for trial in opt.pending], opt.events

    # What is read

    @precondition(lambda self: self.told())
    @rule()
    def recommend(self) -> None:
        x = self.opt.recommend()
        assert self.place.holds(x)
        rows, model = self.opt.space.rows, self.model(self.log_of(self.opt.trials))
        if model.chance is not None:
            self.check_that_it_works(x, model)
        elif rows is not None:
            means = np.array([posterior.mu(rows) for posterior in model.mixture])
            slack = self.slack_of_means(model, rows)
            mean, number = means.mean(axis=0), int(self.opt.space.row_numbers(self.opt.space.encode(x))[0])
            assert mean[number] + slack[number] >= np.max(mean - slack), (number, mean, slack)
            if mean[number] == mean.max() and not all_equal(model):  # with equal values a tie goes to a told point
                assert not np.any(np.all(means[:, :number] == means[:, [number]], axis=0)), (number, means)

    @staticmethod
    def slack_of_means(model: Model, rows: Any) -> Any:
        """How far the mean of a recommended row may be below the largest one, (m,)."""
        slack = np.mean([mu_rounding(posterior, rows, TWO_WAYS) for posterior in model.mixture], axis=0)
        if all_equal(model):  # then a told point is it, if no mean is larger by a share of the prior's sd
            slack += ROUNDING * np.sqrt(model.posterior.kernel.diagonal(rows).max())
        return slack

    def check_that_it_works(self, x: Any, model: Model) -> None:
        """It was told a value, no constraint was broken there, and it probably succeeds; unless no point is so."""
        places: dict[bytes, list[Kept]] = {}
        for kept in self.told():
            places.setdefault(self.row(kept.x), []).append(kept)
        kept_there = places[self.row(x)]

        def works(told: list[Kept]) -> bool:
            sums = np.sum([kept.constraints for kept in told], axis=0)
            return bool(np.all(sums <= 0.0)) and bool(model.allowed(self.opt.space.encode(told[0].x)[None])[0])

        if any(works(told) for told in places.values()):
            assert works(kept_there)
        else:
            assert any(event.kind == "nothing feasible" for event in self.opt.events)

    @precondition(lambda self: not self.told())
    @rule()
    def nothing_to_recommend(self) -> None:
        self.refused(self.opt.recommend)
        assert self.opt.best is None and self.opt.posterior is None and self.opt.model is None

    @rule()
    def read_the_model(self) -> None:
        posterior, told = self.opt.posterior, self.told()
        if posterior is None:
            assert not told
            return
        np.testing.assert_array_equal(posterior.x, [self.opt.space.encode(kept.x) for kept in told])
        y = np.array([kept.y for kept in told])
        warp = self.opt.warp
        if self.options["noise"] == "normal":
            np.testing.assert_array_equal(posterior.y, warp(y) + 0.0)
        best = self.opt.best
        feasible = [kept for kept in told if all(value <= 0.0 for value in kept.constraints)]
        assert (best is None) == (not feasible)
        if best is not None:
            values = [kept.y for kept in feasible if kept.y is not None]
            assert best.y == (max(values) if self.options["goal"] == "max" else min(values))
            assert best.number == next(kept.number for kept in feasible if kept.y == best.y)
        mu, var = posterior(posterior.x)
        assert np.all(np.isfinite(mu)) and np.all(np.isfinite(var))
        np.testing.assert_array_less(
            np.abs(mu - posterior.mu(posterior.x)), mu_rounding(posterior, posterior.x, TWO_WAYS)
        )

    @rule()
    def read_the_texts(self) -> None:
        assert repr(self.opt) and self.opt._repr_html_()
        assert all(repr(trial) for trial in self.opt.trials) and repr(self.opt.space)
        table = self.opt.to_dataframe()
        assert len(table) == len(self.kept)
        assert table["status"].tolist() == [kept.status for kept in self.kept]

    @rule(draws=st.sampled_from([False, False, False, True]))
    def read_the_ledger(self, draws: bool) -> None:
        ledger = self.opt.ledger
        assert ledger.n == len(self.told()) and repr(ledger)
        assert [step.y for step in ledger.steps] == [kept.y for kept in self.told()]
        if ledger.n:
            assert ledger.improvement >= 0.0 and ledger.noise_sd >= 0.0 and ledger.floor >= 0.0
        if draws:
            assert str(ledger)

    # What begins again

    @rule(go_on=st.booleans())
    def replay(self, go_on: bool) -> None:
        again = self.fresh()
        assert again.replay(self.opt.trials) is again
        assert [trial.number for trial in again.trials] == [kept.number for kept in self.kept]
        self.asks_the_same(again)
        if go_on:  # the number of a forgotten trial, if it was the last, is given again
            new = {kept.number: trial.number for kept, trial in zip(self.kept, again.trials, strict=True)}
            for kept in self.kept:
                kept.number = new[kept.number]
            self.outcomes = [new[number] for number in self.outcomes]
            self.opt = again

    @rule(how=st.sampled_from(sorted(COPIES)), go_on=st.booleans())
    def copy(self, how: str, go_on: bool) -> None:
        again = COPIES[how](self.opt)
        self.asks_the_same(again)
        if go_on and self.place.copies:
            self.opt = again

    def asks_the_same(self, again: Optimizer) -> None:
        before = self.opt.trials
        try:
            x = self.opt.ask()
        except SpaceExhausted:
            assert self.exhausted(before)
            with pytest.raises(SpaceExhausted):
                again.ask()
            return
        assert self.opt.space.encode(x).tobytes() == again.space.encode(again.ask()).tobytes()
        self.add(x)
        self.check_choice(self.opt.trials[-1], before)

    # What must hold

    @invariant()
    def the_log_is_what_was_done(self) -> None:
        trials = self.opt.trials
        assert [t.number for t in trials] == [kept.number for kept in self.kept]
        assert [t.status for t in trials] == [kept.status for kept in self.kept]
        assert [t.y for t in trials] == [kept.y for kept in self.kept]
        assert [t.y_before for t in trials] == [kept.first for kept in self.kept]
        assert [(t.noise_var, t.repeats) for t in trials] == [kept.noise for kept in self.kept]
        assert [t.constraints for t in trials] == [kept.constraints for kept in self.kept]
        assert [t.why is None for t in trials] == [kept.why is None for kept in self.kept]
        assert all(type(t.y) is float for t in trials if t.y is not None)
        assert [t.origin != "user" for t in trials] == [kept.asked for kept in self.kept]
        for trial, kept in zip(trials, self.kept, strict=True):
            if kept.status == "told" and kept.asked and not equal(trial.x, kept.x):
                raise AssertionError(f"asked {kept.x!r}, recorded {trial.x!r}")
            assert equal(dict(trial.x) if isinstance(trial.x, FrozenPoint) else trial.x, kept.x)
        assert [t.number for t in sorted((t for t in trials if t.order is not None), key=order)] == self.outcomes
        assert [t.number for t in self.opt.pending] == [kept.number for kept in self.pending()]

    def told(self) -> list[Kept]:
        by_number = {kept.number: kept for kept in self.kept}
        return [by_number[number] for number in self.outcomes if by_number[number].status == "told"]

    # Brute force

    def log_of(self, trials: tuple[Trial, ...]) -> Log:
        log = Log()
        take_over(log, trials, [self.opt.space.encode(trial.x) for trial in trials])
        return log

    def model(self, log: Log) -> Model:
        observed = log.observed
        oriented = replace(observed, y=self.opt._arguments.orientation.values(observed.y))
        return Model.after(self.opt._strategy.setting(log), oriented).with_outcomes(log.outcomes)

    def excluded(self, trials: tuple[Trial, ...]) -> Any:
        rows = self.opt.space.rows
        assert rows is not None
        gone = {
            self.row(t.x)
            for t in trials
            if t.status in ("failed", "rejected") or (t.status != "retracted" and not self.options["repeats"])
        }
        return np.array([row.tobytes() in gone for row in rows])

    def exhausted(self, trials: tuple[Trial, ...]) -> bool:
        return self.opt.space.rows is not None and bool(self.excluded(trials).all())

    def check_choice(self, trial: Trial, before: tuple[Trial, ...]) -> None:
        """On a finite set, the row has the largest score of all that may be asked; of equals it is the lowest."""
        rows, policy = self.opt.space.rows, self.opt.policy
        if rows is None:
            self.check_barriers(trial, before)
            return
        number = int(self.opt.space.row_numbers(self.opt.space.encode(trial.x))[0])
        excluded = self.excluded(before)
        if trial.origin == "design":
            return
        assert not excluded[number]
        if policy.joint or self.options["policy"] is None:  # the library's own choice need not be one argmax
            return
        if isinstance(policy, GPUCBPE) and trial.phi is None:  # it explores beside a pending point: test_batches.py
            assert any(other.status == "pending" and other.phi is not None for other in before)
            return
        log, budget = self.log_of(before), self.options["budget"]
        horizon = None if budget is None else max(1, budget - log.unchosen)
        model = self.model(log)
        scored = objective(model, policy, log, horizon)
        log_p = np.zeros(len(rows)) if model.chance is None else model.chance.log(rows)
        if risk_now(log, horizon).used_up and not np.all(excluded | (log_p < LOG_SAFE)):
            excluded = excluded | (log_p < LOG_SAFE)
            assert not excluded[number]
        parts = scored.members or (scored,)
        low = np.mean([score(part, rows, -ROUNDING) for part in parts], axis=0)
        high = np.mean([score(part, rows, ROUNDING) for part in parts], axis=0)
        assert high[number] + OF_SCORES * abs(high[number]) >= low[~excluded].max(), (number, low, high)
        moments = np.concatenate([m for part in parts for m in (part.posterior(rows), tracked(part.posterior, rows))])
        moments = np.concatenate([moments, log_p[None]])
        equals = np.flatnonzero(~excluded & np.all(moments == moments[:, [number]], axis=0))
        assert number == equals[0], (number, equals)

    def check_barriers(self, trial: Trial, before: tuple[Trial, ...]) -> None:
        """Nothing is asked again at a rejected point, unless nothing else was found."""
        space = self.opt.space
        for other in before:
            away = np.abs(space.encode(trial.x) - space.encode(other.x)) > SAME * space.span
            assert other.status != "rejected" or away.any() or any(e.kind == "repeat" for e in self.opt.events)


def limits_of(said: dict[str, Any], before: tuple[float, ...]) -> tuple[float, ...]:
    """The constraints that a trial has when this was said of it."""
    given = said.get("constraints")
    return before if given is None else tuple(float(value) for value in given)


def order(trial: Trial) -> int:
    assert trial.order is not None
    return trial.order


def mu_rounding(posterior: Posterior, z: Any, rounding: float) -> Any:
    """How far mu(z) = mean + whitened . v may be off; |v|^2 <= k(z, z)."""
    norm = np.sqrt(posterior.n) * np.max(np.abs(posterior.whitened), initial=0.0)  # squares could underflow
    return 1e-300 + rounding * (np.abs(posterior.prior_mean(z)) + norm * np.sqrt(posterior.kernel.diagonal(z)))


def all_equal(model: Model) -> bool:
    """Whether the values are equal as the model has them: under heavy-tailed noise 0 and 5e-324 are."""
    y = model.posterior.observed
    return bool(np.ptp(y) <= ROUNDING * np.abs(y).max())


def score(part: Objective, z: Any, off: float) -> Any:
    """The scores at z if mu and var are off by their rounding, in the direction of `off`: they grow with both."""
    mu, var = part.posterior(z)
    sign = np.sign(off)
    mu = mu + sign * mu_rounding(part.posterior, z, abs(off))
    return part.weighed(
        part.policy.score(mu, np.maximum(var + off * part.posterior.kernel.diagonal(z), 0.0), part.state), z
    )


def tracked(posterior: Posterior, z: Any) -> tuple[Any, Any]:
    """mu and var at z, one observation after the other."""
    prior = Posterior.prior(posterior.kernel, posterior.noise_var, posterior.mean, posterior.trend)
    moments = Tracked.start(prior, z).follow(posterior)
    return moments.mu, moments.var


def play(few: int, variable: str) -> None:
    """Play a few histories, always the same ones; or as many new ones as the environment variable says."""
    Histories.tally = tally = Tally("histories of an optimizer", variable, few)
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    try:
        run_state_machine_as_test(
            Histories,
            settings=settings(
                max_examples=tally.count,
                stateful_step_count=STEPS,
                derandomize=not tally.many,
                database=None,
                deadline=None,
                suppress_health_check=checks,
                phases=[Phase.generate, Phase.shrink],
                report_multiple_bugs=False,
                print_blob=True,
            ),
        )
    finally:
        tally.close()


@pytest.mark.usefixtures("few_draws")
def test_a_few_histories() -> None:
    play(15, "GPMI_NO_HISTORIES")


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_many_histories() -> None:
    play(150, "GPMI_HISTORIES")
