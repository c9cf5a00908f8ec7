"""Random histories of a study beside an Optimizer in memory that hears the same: they ask the same, to the last bit.

The study is closed and opened again at random, by two openings; the Optimizer is pickled and deep-copied at random. A
third of the studies have goals: their outputs are told one by one, in any order.
"""

from __future__ import annotations

import copy
import pickle
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import play
from sample_spaces import SPACES

import gpmi

pytest.importorskip("sqlalchemy")

from gpmi.space import SpaceExhausted

STEPS = 25
STORABLE = sorted(name for name in SPACES if "function" not in name)  # a study does not store functions
WORDS = (
    *("ask", "ask", "ask", "ask", "tell", "tell", "tell", "tell", "fail", "forget", "reject"),
    *("point", "reject point", "tell all", "correct", "retract", "fixed", "open", "open", "copy", "read"),
)
LATE = ("late", "late", "late", "again")  # more words of a study with goals
FIELDS = (
    *("number", "status", "y", "y_before", "noise_var", "repeats", "constraints", "origin", "why"),
    *("outputs", "output_noise_var", "output_repeats", "outputs_before", "unmet"),
)


@cache
def own_points(name: str) -> list[Any]:
    space, constraints = SPACES[name]
    return gpmi.Optimizer(space, constraints=constraints, seed=1, n_init=24).ask(24)


class History:
    """A study with two openings, and its twin in memory."""

    def __init__(self, rng: random.Random, path: Path) -> None:
        self.rng, self.path, self.name = rng, path, rng.choice(STORABLE)
        space, constraints = SPACES[self.name]
        options: dict[str, Any] = {
            "constraints": constraints,
            "seed": rng.randrange(1000),
            "goal": rng.choice(["max", "min"]),
            "aim": rng.choice(["find", "earn"]),
            "n_init": rng.choice([None, 2, 5]),
            "noise": rng.choice(["normal", "normal", "normal", "student"]),
            "policy": rng.choice([None, None, None, gpmi.LogEI(), gpmi.GPUCB(scale=0.2), gpmi.Thompson(), gpmi.GPMI()]),
        }
        self.size, self.limits = rng.choice([1.0, 1.0, 1e-6, 1e6]), rng.choice([0, 0, 0, 1])
        self.goals: dict[str, Any] = rng.choice([{}, {}, self.some_goals()])
        if self.goals:
            single = sum(goal is not None and not isinstance(goal, gpmi.AtMost) for goal in self.goals.values()) == 1
            options |= {"goals": self.goals, "goal": "max", "policy": options["policy"] if single else None}
            options |= {
                "kernel": rng.choice([None, None, {"yield": gpmi.kernels.RBF(0.4), "ph": None}]) if single else None
            }
            self.limits = 0
        self.twin = gpmi.Optimizer(space, **options)
        self.studies = [gpmi.study(path, space=space, **options), gpmi.study(path)]
        self.holder: dict[int, int] = {}  # which opening has each pending trial
        self.words: list[str] = []

    def some_goals(self) -> dict[str, Any]:
        goals = {"yield": self.rng.choice(["max", "min", gpmi.Max(at_least=-1.0)]), "ph": None}
        more: dict[str, Any] = {"cost": "min", "size": gpmi.Match(0.0, within=1.0), "salt": gpmi.AtMost(0.5)}
        return goals | {name: more[name] for name in self.rng.sample(sorted(more), self.rng.randint(0, 3))}

    def play(self) -> None:
        for _ in range(STEPS):
            self.words.append(word := self.rng.choice(WORDS + LATE if self.goals else WORDS))
            getattr(self, word.replace(" ", "_"))(self.rng.randrange(2))
        for which in (0, 1):
            self.open(which)
        self.compare()
        self.ask(0)
        found = self.studies[0].verify()
        assert found.verdict == "equal" and not self.studies[0].warnings, found

    def compare(self) -> None:
        for study in self.studies:
            mine, its = study.trials, self.twin.trials
            for field in FIELDS:
                assert [getattr(one, field) for one in mine] == [getattr(one, field) for one in its], field
            rows = [[self.twin.space.encode(one.x).tobytes() for one in trials] for trials in (mine, its)]
            assert rows[0] == rows[1]

    # Words

    def ask(self, which: int, fixed: Any = None) -> None:
        pending = {trial.number: trial for trial in self.twin.pending}
        free = [number for number in pending if number not in self.holder and self.is_part(pending[number], fixed)]
        try:
            trial = self.studies[which].ask(fixed=fixed)
        except SpaceExhausted:
            assert not free
            with pytest.raises(SpaceExhausted):
                self.twin.ask(fixed=fixed)
            return
        self.holder[trial.number] = which
        if free:
            assert trial.number in free
            return
        x = self.twin.ask(fixed=fixed)
        assert trial.number == self.twin.trials[-1].number
        assert self.twin.space.encode(x).tobytes() == self.twin.space.encode(trial.x).tobytes()

    def is_part(self, trial: gpmi.Trial, fixed: Any) -> bool:
        part = (self.twin.space.with_fixed(fixed).fixed_values() or None) if fixed else None  # no constants
        return (None if trial.fixed is None else dict(trial.fixed)) == part

    def fixed(self, which: int) -> None:
        x = self.rng.choice(own_points(self.name))
        items = dict(x) if isinstance(x, dict) else dict(enumerate(x.tolist()))
        if self.name != "branches":  # there a coordinate may depend on another one
            key = self.rng.choice(sorted(items))
            self.ask(which, {key: items[key]})

    def tell(self, which: int) -> None:
        if number := self.some("pending"):
            y, said = self.value(), self.said()
            self.studies[which].tell(number[0], y, **said)
            self.twin.tell(number[0], y, **said)

    def late(self, which: int) -> None:
        """Tell some of the outputs that a trial lacks."""
        waiting = [t for t in self.twin.trials if t.status == "told" and len(t.outputs) < len(self.goals)]
        if waiting:
            trial = self.rng.choice(waiting)
            y, said = self.outputs([name for name in self.goals if name not in trial.outputs]), self.said()
            self.studies[which].tell(trial.number, y, **said)
            self.twin.tell(trial.number, y, **said)

    def again(self, which: int) -> None:
        """Deliver again what a trial was told, as after an acknowledgement that was lost: nothing changes."""
        study = self.studies[which]
        entries = [one for one in study.log() if one.kind == "told" and "x" not in one.content]
        if entries:
            content = self.rng.choice(entries).content
            if study.trials and {t.number: t.status for t in study.trials}[content["number"]] == "told":
                study.tell(content["number"], content["outputs"])

    def point(self, which: int) -> None:
        x, y, said = self.own_point(), self.value(), self.said()
        if x is not None and self.lacking(x, y) is None:
            self.studies[which].tell(x, y, **said)
            self.twin.tell(x, y, **said)

    def lacking(self, x: Any, y: Any) -> int | None:
        """The trial at a point that would take these outputs: an Optimizer tells it, a study makes a new trial."""
        space = self.twin.space
        for trial in self.twin.trials if self.goals else ():
            near = np.all(np.abs(space.encode(trial.x) - space.encode(x)) <= space.rounding)
            if near and trial.status == "told" and not trial.outputs.keys() & y.keys():
                return trial.number
        return None

    def tell_all(self, which: int) -> None:
        x = self.own_point()
        if x is not None and not self.limits:
            observations = [(x, self.value()), (x, self.value(), 0.5)]
            self.studies[which].optimizer.tell_all(observations)
            self.twin.tell_all(observations)

    def fail(self, which: int) -> None:
        if number := self.some("pending"):
            why = self.rng.choice([None, "the pump\nstopped", "ü" * 50])
            self.studies[which].fail(number[0], why)
            self.twin.fail(number[0], why)

    def forget(self, which: int) -> None:
        if number := self.some("pending"):
            self.studies[which].forget(number[0])
            self.twin.forget(number[0])

    def reject(self, which: int) -> None:
        if number := self.some("pending"):
            self.studies[which].reject(number[0])
            self.twin.reject(number[0])

    def reject_point(self, which: int) -> None:
        if (x := self.own_point()) is not None:
            self.studies[which].reject(x)
            self.twin.reject(x)

    def correct(self, which: int) -> None:
        if number := self.some("told", "failed", "retracted"):
            y, said = self.value(), self.said()
            self.studies[which].correct(number[0], y, **said)
            self.twin.correct(number[0], y, **said)

    def retract(self, which: int) -> None:
        if number := self.some("told", "failed", "rejected"):
            self.studies[which].retract(number[0])
            self.twin.retract(number[0])

    def open(self, which: int) -> None:
        """Close one opening, which gives its pending trials back, and open the study again."""
        self.studies[which].close()
        self.studies[which] = gpmi.study(self.path)
        self.holder = {number: holder for number, holder in self.holder.items() if holder != which}

    def copy(self, which: int) -> None:
        self.twin = copy.deepcopy(self.twin) if which else pickle.loads(pickle.dumps(self.twin))

    def read(self, which: int) -> None:
        self.compare()
        study = self.studies[which]
        if self.goals:
            assert [t.number for t in study.front] == [t.number for t in self.twin.front]
        assert (study.best is None) == (self.twin.best is None)
        assert study.best is None or self.twin.best is None or study.best.y == self.twin.best.y

    # Draws

    def some(self, *statuses: str) -> list[int]:
        numbers = [trial.number for trial in self.twin.trials if trial.status in statuses]
        return [self.rng.choice(numbers)] if numbers else []

    def own_point(self) -> Any:
        """A point where no trial is pending."""
        x, encode = self.rng.choice(own_points(self.name)), self.twin.space.encode
        taken = {encode(trial.x).tobytes() for trial in self.twin.pending}
        return None if encode(x).tobytes() in taken else x

    def value(self) -> Any:
        return self.outputs(list(self.goals)) if self.goals else self.size * self.rng.gauss(0.0, 1.0)

    def outputs(self, names: list[str]) -> dict[str, float]:
        some = self.rng.sample(names, self.rng.choice([len(names), self.rng.randint(1, len(names))]))
        return {name: self.size * self.rng.gauss(0.0, 1.0) for name in some}

    def said(self) -> dict[str, Any]:
        said: dict[str, Any] = self.rng.choice([{}, {}, {"noise_var": 0.25 * self.size**2}, {"repeats": 3}])
        return {**said, "constraints": [self.rng.gauss(0.0, 1.0)]} if self.limits else said


@pytest.mark.fuzz
def test_a_study_and_an_optimizer_in_memory_ask_the_same(tmp_path: Path) -> None:
    def case(rng: random.Random) -> str:
        history = History(rng, tmp_path / f"{rng.getrandbits(64):x}.db")
        try:
            history.play()
        except Exception as error:
            error.add_note(f"{history.name}: {', '.join(history.words)}")
            raise
        finally:
            for study in history.studies:
                study.close()
        return "with goals" if history.goals else "replayed"

    play("histories of a study", "GPMI_STUDIES", 9, case)
