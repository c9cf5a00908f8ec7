"""Random histories of an optimizer with goals: outputs one by one in any order, corrections, failures, copies.

A list kept beside the optimizer says what must be in the log. A replay of the trials and a copy, by pickle or deepcopy,
ask the same next, to the last bit. The number of histories is set by GPMI_GOALS (`make fuzz`: 2,000 random ones;
`make test`: a few, always the same).
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from fuzzing import play
from sample_spaces import SPACES

from gpmi import (
    EHVI,
    GPUCB,
    AtLeast,
    AtMost,
    LogEI,
    Match,
    Max,
    Min,
    Optimizer,
    Scalarised,
    SpaceExhausted,
    Thompson,
    kernels,
)
from gpmi.analysis.ledger.ledger import SAME
from gpmi.trials.outputs import Outputs

STEPS = 25
WORDS = (
    *("ask",) * 6,
    *("tell",) * 6,
    *("late",) * 5,
    *("batch", "fixed", "fail", "forget", "reject", "reject_point", "point", "point", "tell_all", "correct", "correct"),
    *("retract", "refused", "read", "replay", "replay", "copy", "copy"),
)
SIZES = (1.0, 1.0, 1.0, 1e-6, 1e6, 1e-30, 1e40, 1e90)
BARS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {"noise_var": 0.25},
    {"repeats": 3},
    {"noise_var": 1e-4, "repeats": 100},
)
FIELDS = ("status", "outputs", "output_noise_var", "output_repeats", "outputs_before", "unmet", "y", "y_before", "why")


@cache
def own_points(name: str) -> list[Any]:
    space, constraints = SPACES[name]
    return Optimizer(space, constraints=constraints, seed=1, n_init=24).ask(24)


def random_goals(rng: random.Random, size: float) -> dict[str, Any]:
    """One to five objectives, some limits and watched outputs, in any order."""
    objectives = ["max", "min", Max(at_least=-size), Min(at_most=size), Match(0.5 * size, within=size)]
    count = rng.choice([1, 1, 2, 2, 2, 3, 4, 5])
    goals = {f"f{i}": rng.choice(objectives) for i in range(count)}
    goals |= {f"g{i}": rng.choice([AtLeast(-0.3 * size), AtMost(0.3 * size)]) for i in range(rng.choice([0, 0, 1, 2]))}
    goals |= dict.fromkeys([f"w{i}" for i in range(rng.choice([0, 0, 1]))])
    return dict(rng.sample(sorted(goals.items(), key=lambda pair: pair[0]), len(goals)))


def random_options(rng: random.Random, goals: dict[str, Any]) -> dict[str, Any]:
    objectives = [name for name, goal in goals.items() if isinstance(goal, str | Max | Min | Match)]
    single = len(objectives) == 1 and not isinstance(goals[objectives[0]], Match)
    joint = [Scalarised(), Scalarised(scale=1.0), EHVI() if len(objectives) <= 4 else None]
    policies = [LogEI(), GPUCB(scale=0.2), Thompson()] if single else joint
    some = rng.sample(sorted(goals), rng.randint(1, len(goals)))
    return {
        "seed": rng.randrange(1000),
        "aim": rng.choice(["find", "find", "earn"]),
        "policy": rng.choice([None, None, None, *policies]),
        "n_init": rng.choice([None, None, 0, 2, 5]),
        "budget": rng.choice([None, None, 1, 20]),
        "repeats": rng.choice([True, True, False]),
        "noise": rng.choice(["normal"] * 5 + ["student"]),
        "kernel": rng.choice(
            [None] * 4 + [kernels.RBF(0.4), dict.fromkeys(some, kernels.Matern(nu=1.5, lengthscale=0.5))]
        ),
        "noise_var": rng.choice([None] * 4 + [0.0, 1e-2, dict.fromkeys(some, 1e-4)]),
    }


@dataclass
class Kept:
    """What the history knows of a trial."""

    number: int
    row: bytes
    status: str = "pending"
    asked: bool = True
    outputs: dict[str, float] = field(default_factory=dict)
    noise: dict[str, tuple[float, int]] = field(default_factory=dict)  # by output: noise_var and repeats
    first: dict[str, float] | None = None
    y_before: float | None = None
    why: str | None = None


class History:
    """An optimizer with goals, and beside it what was said."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.name = rng, rng.choice(sorted(SPACES))
        self.space, constraints = SPACES[self.name]
        self.size = rng.choice(SIZES)
        self.goals = random_goals(rng, self.size)
        self.options = {"goals": self.goals, "constraints": constraints, **random_options(rng, self.goals)}
        self.opt = self.fresh()
        self.kept: list[Kept] = []
        self.order: list[int] = []
        self.words: list[str] = []

    def fresh(self) -> Optimizer:
        return Optimizer(self.space, **self.options)

    def play(self) -> None:
        for _ in range(STEPS):
            self.words.append(word := self.rng.choice(WORDS))
            getattr(self, word)()
            self.check()
        self.replay()
        self.copy()

    # What happens

    def ask(self) -> None:
        self.add(lambda: [self.opt.ask()])

    def batch(self) -> None:
        count = self.rng.randint(2, 3)
        self.add(lambda: self.opt.ask(count))

    def fixed(self) -> None:
        x = self.rng.choice(own_points(self.name))
        items = dict(x) if isinstance(x, dict) else dict(enumerate(x.tolist()))
        key = self.rng.choice(sorted(items))
        spec: Any = SPACES[self.name][0]
        has_condition = isinstance(spec, dict) and getattr(spec[key], "when", None) is not None
        if not has_condition and (self.name != "branches" or key == "kind"):  # there constraints exclude others
            again = self.fresh().replay(self.opt.trials)
            points = self.add(lambda: [self.opt.ask(fixed={key: items[key]})])
            for point in points:
                assert point[key] == items[key]
                assert self.row(again.ask(fixed={key: items[key]})) == self.row(point)

    def add(self, ask: Callable[[], list[Any]]) -> list[Any]:
        before = self.opt.trials
        try:
            points = ask()
        except SpaceExhausted:
            assert self.opt.space.rows is not None and self.opt.trials == before
            return []
        for x, trial in zip(points, self.opt.trials[len(before) :], strict=True):
            row = self.opt.space.encode(x)
            assert self.opt.space.contains(row)
            self.check_choice(row, [one for one in self.opt.trials if one.number < trial.number])
            self.kept.append(Kept(trial.number, row.tobytes()))
        assert self.opt.goals is not None
        repeated = any(event.kind == "repeat" for event in self.opt.events)
        if self.opt.goals.single is None and self.opt.space.rows is None and not repeated:
            assert len({self.row(x) for x in points}) == len(points)
        return points

    def check_choice(self, row: Any, before: Any) -> None:
        """What was rejected, a row that failed and, without repeats, a row that was asked are not asked again."""
        space, repeats = self.opt.space, self.options["repeats"]
        for trial in before:
            apart = np.abs(row - space.encode(trial.x))
            if space.rows is None:
                free = trial.status != "rejected" or any(event.kind == "repeat" for event in self.opt.events)
                assert free or np.any(apart > SAME * space.span)
            elif trial.status in ("failed", "rejected") or (not repeats and trial.status != "retracted"):
                assert apart.any()

    def tell(self) -> None:
        if (kept := self.some("pending")) is not None:
            said, bars = self.said(), self.rng.choice(BARS)
            self.told(kept, self.opt.tell(self.name_of(kept), said, **bars), said, bars)

    def late(self) -> None:
        """Tell some outputs that are missing."""
        waiting = [kept for kept in self.kept if kept.status == "told" and len(kept.outputs) < len(self.goals)]
        if waiting:
            kept, bars = self.rng.choice(waiting), self.rng.choice(BARS)
            said = self.said([name for name in self.goals if name not in kept.outputs])
            self.told(kept, self.opt.tell(self.name_of(kept), said, **bars), said, bars)

    def point(self) -> None:
        """Tell outputs at a point: to a trial that waits for them there, or as a new one."""
        x, said, bars = self.rng.choice(own_points(self.name)), self.said(), self.rng.choice(BARS)
        trial = self.opt.tell(x, said, **bars)
        self.told(self.kept_for(x, said, trial.number), trial, said, bars)

    def tell_all(self) -> None:
        given = [(self.rng.choice(own_points(self.name)), self.said(), self.rng.choice([0.0, 0.5])) for _ in range(3)]
        extra = self.rng.choice([0.0, 0.25, {self.rng.choice(sorted(self.goals)): 0.25}])
        told = self.opt.tell_all([(x, said, own) if own else (x, said) for x, said, own in given], noise_var=extra)
        for (x, said, own), trial in zip(given, told, strict=True):
            more = extra if isinstance(extra, dict) else dict.fromkeys(said, extra)
            bars = {"noise_var": {name: own + more.get(name, 0.0) for name in said}}
            self.told(self.kept_for(x, said, trial.number), trial, said, bars)

    def told(self, kept: Kept, trial: Any, said: dict[str, float], bars: dict[str, Any]) -> None:
        if kept.status == "pending":
            self.order.append(kept.number)
        kept.status = "told"
        kept.outputs |= said
        noise, repeats = bars.get("noise_var", 0.0), bars.get("repeats", 1)
        kept.noise |= {name: (noise[name] if isinstance(noise, dict) else noise, repeats) for name in said}
        assert (trial.number, trial.status) == (kept.number, "told")
        assert trial.outputs == kept.outputs

    def fail(self) -> None:
        if (kept := self.some("pending")) is not None:
            kept.why, kept.status = self.rng.choice([None, "no crystals"]), "failed"
            self.opt.fail(self.name_of(kept), kept.why)
            self.order.append(kept.number)

    def forget(self) -> None:
        if (kept := self.some("pending")) is not None:
            self.opt.forget(self.name_of(kept))
            self.kept.remove(kept)

    def reject(self) -> None:
        if (kept := self.some("pending")) is not None:
            self.opt.reject(self.name_of(kept))
            kept.status = "rejected"
            self.order.append(kept.number)

    def reject_point(self) -> None:
        x = self.rng.choice(own_points(self.name))
        kept = self.pending_at(x)
        trial = self.opt.reject(x)
        if kept is None:
            self.kept.append(kept := Kept(trial.number, self.row(x), asked=False))
        kept.status = "rejected"
        self.order.append(kept.number)

    def correct(self) -> None:
        if (kept := self.some("told", "failed", "retracted")) is not None:
            said, bars = self.said(), self.rng.choice(BARS)
            self.opt.correct(kept.number, said, **bars)
            self.outdate(kept)
            kept.status, kept.why, kept.outputs = "told", None, {**kept.outputs, **said}
            for name in said:
                noise, repeats = kept.noise.get(name, (0.0, 1))
                kept.noise[name] = bars.get("noise_var", noise), bars.get("repeats", repeats)
            kept.noise = {name: own for name, own in kept.noise.items() if name in kept.outputs}

    def retract(self) -> None:
        if (kept := self.some("told", "failed", "rejected")) is not None:
            self.opt.retract(kept.number)
            self.outdate(kept)
            kept.status, kept.outputs = "retracted", {}

    def outdate(self, kept: Kept) -> None:
        if kept.outputs:
            kept.first = {**kept.outputs, **(kept.first or {})}
            single = self.opt.goals.single if self.opt.goals is not None else None
            kept.y_before = kept.first.get(single) if single is not None else None

    # What is refused

    def refused(self) -> None:
        x, name = self.rng.choice(own_points(self.name)), self.rng.choice(sorted(self.goals))
        bad = self.rng.choice(
            [
                {},
                {"no": 1.0},
                {name: "1"},
                {name: float("nan")},
                {name: None},
                {name: 1e101},
                1.0,
                [1.0],
                None,
                {3: 1.0},
            ]
        )
        calls: list[Callable[[], Any]] = [
            lambda: self.opt.tell(x, bad),
            lambda: self.opt.tell_all([(x, {name: 1.0}), (x, bad)]),
            lambda: self.opt.tell(x, {name: 1.0}, noise_var={"no": 1.0}),
            lambda: self.opt.tell(x, {name: 1.0}, constraints=[1.0]),
            lambda: self.opt.tell(x, {name: 1.0}, repeats=0),
        ]
        if (kept := self.some("told")) is not None:
            calls.append(lambda: self.opt.correct(kept.number, bad))
            calls.append(lambda: self.opt.tell(kept.number, kept.outputs))
            trials = list(self.opt.trials)
            i = next(i for i, trial in enumerate(trials) if trial.number == kept.number)
            trials[i] = replace(trials[i], outputs={"no": 1.0})
            calls.append(lambda: self.fresh().replay(trials))
        for call in calls:
            before = self.opt.trials, self.opt._log.entries, self.opt.events
            with pytest.raises((TypeError, ValueError)):
                call()
            assert all(a is b for a, b in zip(before[0], self.opt.trials, strict=True))
            assert before[1:] == (self.opt._log.entries, self.opt.events)

    # What is read

    def read(self) -> None:
        opt = self.opt
        assert repr(opt) and opt._repr_html_() and all(repr(trial) for trial in opt.trials)
        assert len(opt.to_dataframe()) == len(self.kept)
        models = opt.models
        for name in self.goals:
            told = [kept for kept in self.in_order() if kept.status == "told" and name in kept.outputs]
            assert (name in models) == bool(told)
            if told:
                assert models[name].numbers == tuple(kept.number for kept in told)
                (prediction,) = models[name].predict(np.frombuffer(told[0].row)[None])
                assert np.isfinite(prediction.mean) and prediction.sd >= 0.0
        front = opt.front
        for trial in front:
            assert (
                trial.feasible and opt.goals is not None and all(name in trial.outputs for name in opt.goals.objectives)
            )
        assert len({self.row(trial.x) for trial in front}) == len(front)

    def replay(self) -> None:
        again = self.fresh().replay(self.opt.trials)
        for name in ("number", *FIELDS, "noise_var", "repeats", "origin", "policy_notes", "mu", "sd", "ended"):
            assert [getattr(t, name) for t in again.trials] == [getattr(t, name) for t in self.opt.trials], name
        self.asks_the_same(again)
        if self.rng.random() < 0.5:  # the number of a forgotten trial, if it was the last, is given again
            new = {kept.number: trial.number for kept, trial in zip(self.kept, again.trials, strict=True)}
            for kept in self.kept:
                kept.number = new[kept.number]
            self.order = [new[number] for number in self.order]
            self.opt = again

    def copy(self) -> None:
        how = self.rng.choice([copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt))])
        again = how(self.opt)
        self.asks_the_same(again)
        if self.rng.random() < 0.5:
            self.opt = again

    def asks_the_same(self, again: Optimizer) -> None:
        points = self.add(lambda: [self.opt.ask()])
        if not points:
            with pytest.raises(SpaceExhausted):
                again.ask()
            return
        assert self.row(again.ask()) == self.row(points[0])

    # What must hold

    def check(self) -> None:
        opt = self.opt
        trials = {trial.number: trial for trial in opt.trials}
        assert list(trials) == [kept.number for kept in self.kept]
        assert opt.goals is not None
        single = opt.goals.single
        for kept in self.kept:
            trial = trials[kept.number]
            assert self.row(trial.x) == kept.row and (trial.origin != "user") == kept.asked
            assert trial.status == kept.status and trial.why == kept.why
            assert dict(trial.outputs) == kept.outputs and isinstance(trial.outputs, Outputs)
            assert list(trial.outputs) == [name for name in self.goals if name in kept.outputs]
            assert trial.outputs_before == kept.first and trial.y_before == kept.y_before
            assert trial.y == (kept.outputs.get(single) if single is not None else None)
            assert dict(trial.output_noise_var) == {name: own for name, (own, _) in kept.noise.items() if own}
            assert dict(trial.output_repeats) == {name: times for name, (_, times) in kept.noise.items() if times != 1}
            if kept.status == "told":
                assert trial.unmet == opt.goals.unmet(kept.outputs)
        ended = sorted((trial for trial in trials.values() if trial.order is not None), key=lambda t: t.order or 0)
        assert [trial.number for trial in ended] == self.order

    # Draws

    def said(self, names: list[str] | None = None) -> dict[str, float]:
        names = list(self.goals) if names is None else names
        some = names if self.rng.random() < 0.4 else self.rng.sample(names, self.rng.randint(1, len(names)))
        return {name: self.value() for name in self.rng.sample(some, len(some))}

    def value(self) -> float:
        return self.rng.choice([self.size * self.rng.uniform(-1.0, 1.0)] * 8 + [0.0, self.size, -self.size])

    def some(self, *statuses: str) -> Kept | None:
        found = [kept for kept in self.kept if kept.status in statuses]
        return self.rng.choice(found) if found else None

    def name_of(self, kept: Kept) -> Any:
        """A trial or its number."""
        trial = next(trial for trial in self.opt.trials if trial.number == kept.number)
        return self.rng.choice([trial, kept.number, np.int64(kept.number)])

    def in_order(self) -> list[Kept]:
        by_number = {kept.number: kept for kept in self.kept}
        return [by_number[number] for number in self.order]

    def row(self, x: Any) -> bytes:
        return self.opt.space.encode(x).tobytes()

    def pending_at(self, x: Any) -> Kept | None:
        return self.find(x, [kept for kept in self.kept if kept.status == "pending"])

    def kept_for(self, x: Any, said: dict[str, float], number: int) -> Kept:
        """The trial that gets these outputs at a point: pending there, told without them, or new with this number."""
        told = [kept for kept in self.kept if kept.status == "told" and not kept.outputs.keys() & said.keys()]
        found = self.pending_at(x) or self.find(x, told)
        if found is None:
            assert all(number > kept.number for kept in self.kept)
            self.kept.append(found := Kept(number, self.row(x), asked=False))
        return found

    def find(self, x: Any, among: list[Kept]) -> Kept | None:
        """The first trial at a point, or the only one that rounds to it."""
        space, row = self.opt.space, self.opt.space.encode(x)
        same = [kept for kept in among if kept.row == row.tobytes()]
        near = [kept for kept in among if np.all(np.abs(np.frombuffer(kept.row) - row) <= space.rounding)]
        return same[0] if same else near[0] if len(near) == 1 else None


def case(rng: random.Random) -> str:
    history = History(rng)
    try:
        history.play()
    except Exception as error:
        error.add_note(f"{history.name}, {history.size}, {history.options}: {', '.join(history.words)}")
        raise
    return (
        "several objectives" if history.opt.goals is not None and history.opt.goals.single is None else "one objective"
    )


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_histories_with_goals() -> None:
    play("histories with goals", "GPMI_GOALS", 20, case)
