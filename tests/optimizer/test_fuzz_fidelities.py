"""Random histories with a fidelity: curves and levels with failures, contexts, constraints, several outputs and copies.

The log is what was reported; best is at the target; the cost is that of what was reported; a replay and a copy ask the
same, to the last bit. `make fuzz` plays many (GPMI_FIDELITIES).
"""

from __future__ import annotations

import copy
import math
import pickle
import random
from typing import Any

import numpy as np
import pytest
from fuzzing import play

import gpmi
from gpmi import Choice, Fidelity, Int, Optimizer, Real, SpaceExhausted
from gpmi.trials import costs

FIDELITIES = {
    "steps": Fidelity(1, 12),
    "late steps": Fidelity(3, 40, cost={10: 30, 40: 60}),
    "two levels": Fidelity({"coarse": 1, "fine": 7}),
    "three levels": Fidelity({10: 1, 100: 4, 1000: 9}),
    "timed levels": Fidelity(["coarse", "fine"]),
}
SPACES: dict[str, tuple[dict[str, Any], list[str] | None]] = {
    "box": ({"x": (0.0, 1.0), "z": (-1.0, 2.0)}, None),
    "mixed": ({"x": Real(1e-3, 1.0, log=True), "n": Int(1, 6), "c": Choice(["a", "b", "c"])}, None),
    "finite": ({"n": Int(1, 5), "c": Choice(["a", "b"])}, None),
    "sum": ({"x": (0.0, 1.0), "z": (0.0, 1.0)}, ["x + z <= 1.2"]),
    "branches": ({"c": Choice(["a", "b"]), "x": Real(0.0, 1.0, when={"c": "a"}), "z": (0.0, 1.0)}, None),
}
STEPS = 25  # of a history


class History:
    """An optimizer, and a list of what was reported to it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        own, constraints = SPACES[rng.choice(sorted(SPACES))]
        self.fidelity = FIDELITIES[rng.choice(sorted(FIDELITIES))]
        names = list(own)
        names.insert(rng.randint(0, len(names)), "fidelity")
        space = {name: self.fidelity if name == "fidelity" else own[name] for name in names}
        goals = rng.choice([None, None, {"a": "max", "b": "min"}, {"a": "min", "b": gpmi.AtMost(0.5)}])
        self.arguments: dict[str, Any] = {
            "space": space,
            "constraints": constraints,
            "goals": goals,
            "seed": rng.randrange(1000),
            "n_init": rng.choice([None, 2, 4]),
            "aim": rng.choice(["find", "find", "earn"]),
            "repeats": rng.choice([True, True, False]),
            "budget": rng.choice([None, 30]),
        } | ({} if goals else {"goal": rng.choice(["max", "min"])})
        self.opt = self.fresh()
        self.reported: dict[int, list[tuple[int, Any]]] = {}

    def fresh(self) -> Optimizer:
        return Optimizer(**self.arguments)

    def value(self, x: Any) -> Any:
        numbers = [v for k, v in x.items() if isinstance(v, float) and k != "fidelity"]
        f = math.sin(3.0 * sum(numbers)) + 0.1 * self.rng.gauss(0.0, 1.0)
        return f if self.arguments["goals"] is None else {"a": f, "b": f * f + self.rng.random()}

    # What happens

    def ask(self) -> None:
        n, before = self.rng.choice([None, None, 3]), self.opt.trials
        fixed = self.rng.choice([None, None, None, {"fidelity": self.rng.choice(self.fidelity.labels)}])
        if before and fixed is None and self.rng.random() < 0.3:
            key = "c" if "c" in self.arguments["space"] else "z"
            fixed = {key: self.rng.choice(before).x[key]} if key in before[0].x else None
        again = self.fresh().replay(before)
        try:
            asked = [self.opt.ask(fixed=fixed)] if n is None else self.opt.ask(n, fixed=fixed)
        except SpaceExhausted:
            return
        assert asked == ([again.ask(fixed=fixed)] if n is None else again.ask(n, fixed=fixed))
        for x in asked:
            self.opt.space.encode(x)  # raises outside of the space
            assert self.fidelity.has_steps is False or x["fidelity"] == (fixed or {}).get(
                "fidelity", self.fidelity.target
            )

    def report(self) -> None:
        trial = self.some("pending", "stopped")
        if trial is None or not self.fidelity.has_steps:
            return
        step = trial.curve[-1].step if trial.curve else self.fidelity.levels - 1
        for _ in range(self.rng.randint(1, 6)):
            step += self.rng.choice([1, 1, 2, 5])
            if step > trial.x["fidelity"]:
                return
            y = self.value(trial.x)
            answer = self.opt.report(trial.number, step, y)
            self.reported.setdefault(trial.number, []).append((step, y))
            if self.rng.random() < 0.1 and step < trial.x["fidelity"]:
                assert self.opt.report(trial.number, step, y) == answer
            if answer == "stop":
                return

    def tell(self) -> None:
        trial = self.some("pending", "stopped")
        if trial is not None:
            y = self.value(trial.x)
            self.opt.tell(trial.number, y)
            if self.fidelity.has_steps:
                self.reported.setdefault(trial.number, []).append((trial.x["fidelity"], y))

    def tell_point(self) -> None:
        if self.opt.trials:
            x = dict(self.rng.choice(self.opt.trials).x)
            x["fidelity"] = self.fidelity.target if self.fidelity.has_steps else self.rng.choice(self.fidelity.labels)
            y = self.value(x)
            trial = self.opt.tell(x, y)
            if self.fidelity.has_steps:
                self.reported.setdefault(trial.number, []).append((self.fidelity.last or 0, y))

    def fail(self) -> None:
        if (trial := self.some("pending")) is not None:
            self.opt.fail(trial.number, "diverged")

    def reject(self) -> None:
        if (trial := self.some("pending")) is not None:
            self.opt.reject(trial.number)

    def forget(self) -> None:
        if (trial := self.some("pending")) is not None:
            self.opt.forget(trial.number)
            self.reported.pop(trial.number, None)

    def correct(self) -> None:
        if (trial := self.some("told")) is not None:
            y = self.value(trial.x)
            self.opt.correct(trial.number, y)
            if self.fidelity.has_steps:
                self.reported[trial.number][-1] = (trial.x["fidelity"], y)

    def retract(self) -> None:
        if (trial := self.some("told", "failed", "stopped")) is not None:
            self.opt.retract(trial.number)

    def copy(self) -> None:
        self.opt = self.rng.choice([copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt))])(self.opt)

    def read(self) -> None:
        assert repr(self.opt)
        told = [t for t in self.opt.trials if t.status == "told"]
        if self.opt.goals.single is None:
            assert all(trial.x["fidelity"] == self.fidelity.target for trial in self.opt.front)
        elif any(trial.y is not None for trial in told):
            assert self.opt.recommend()["fidelity"] == self.fidelity.target

    # What must hold

    def some(self, *statuses: str) -> Any:
        found = [trial for trial in self.opt.trials if trial.status in statuses]
        return self.rng.choice(found) if found else None

    def check(self) -> None:
        log, best = self.opt._log, self.opt.best
        if best is not None:
            reached = [t for t in self.opt.trials if t.feasible and t.x["fidelity"] == self.fidelity.target]
            sign = -1.0 if self.opt.goal == "min" else 1.0
            assert sign * best.y == max(sign * t.y for t in reached if t.y is not None)  # type: ignore[operator]
        spent = 0.0
        for trial in self.opt.trials:
            kept = self.reported.get(trial.number, [])
            if trial.status != "retracted":
                found = [(report.step, report.y) for report in trial.curve]
                assert found == [(step, y) for step, y in kept], (trial, kept)
            if trial.status not in ("rejected", "retracted") and self.fidelity.has_steps and kept:
                spent += self.fidelity.cost_of(kept[-1][0])
            elif trial.status == "failed" and self.fidelity.has_steps:
                spent += self.fidelity.cost_of(self.fidelity.levels)  # it has at least begun
            elif trial.status in ("told", "failed") and not self.fidelity.has_steps and not self.fidelity.learns_costs:
                spent += self.fidelity.cost_of(trial.x["fidelity"])
        if not self.fidelity.learns_costs:
            assert costs.spent(log) == pytest.approx(spent)
        assert len(log.observed) == len(log.observed_numbers)


def case(rng: random.Random) -> str:
    history = History(rng)
    names = ["ask"] * 4 + ["report"] * 5 + ["tell"] * 4
    names += ["tell_point", "fail", "reject", "forget", "correct", "retract", "copy", "read"]
    for _ in range(STEPS):
        getattr(history, rng.choice(names))()
        history.check()
    again = history.fresh().replay(history.opt.trials)
    np.testing.assert_array_equal(again._log.observed.x, history.opt._log.observed.x)
    np.testing.assert_array_equal(again._log.observed.y, history.opt._log.observed.y)
    return "steps" if history.fidelity.has_steps else "levels"


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_histories_with_a_fidelity() -> None:
    play("histories with a fidelity", "GPMI_FIDELITIES", 40, case)
