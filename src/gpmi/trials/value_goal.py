"""The goal of a run whose evaluations return one number, y: a single output that its user does not name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpmi._support import checks
from gpmi._support.checks import checked_value
from gpmi._support.name_hints import SEVERAL
from gpmi.trials.goal_kinds import Max, Min
from gpmi.trials.goals import Goals, checked_goal
from gpmi.trials.outcomes import OUTPUTS, Outcome, check_count
from gpmi.trials.outputs import NONE, Y
from gpmi.trials.trial import Trial


@dataclass(frozen=True)
class ValueGoal(Goals):
    """The goal of a run whose evaluations return one number, y: to maximise it, or to minimise it."""

    @staticmethod
    def to(direction: str) -> ValueGoal:
        """Return the goal to maximise ("max") or to minimise y ("min")."""
        checked_goal(direction)
        return ValueGoal(((Y, Min() if direction == "min" else Max()),))

    @property
    def purpose(self) -> dict[str, Any]:
        """The goal as an argument of `Optimizer`."""
        return {"goal": self.direction}

    @property
    def named(self) -> tuple[str, ...]:
        """The outputs that the user named: none."""
        return ()

    @property
    def example(self) -> str:
        """How the value of an evaluation is given, for messages."""
        return "y"

    def titles(self, unnamed: str) -> dict[str, str]:
        """Return what to call y: the name that is given."""
        return {Y: unnamed}

    def entered(self, plain: Sequence[float], outputs: Mapping[str, float]) -> float:
        """Return the number that a person enters; refuse numbers by output."""
        if outputs:
            raise ValueError(f"{next(iter(outputs))} is an output, but the study has no goals; give one number")
        return plain[0]

    def entered_noise(self, plain: Sequence[float], outputs: Mapping[str, float]) -> float:
        """Return the variance of the error, 0 if none was entered."""
        return self.entered([*plain[-1:], 0.0], outputs)

    def outcome(self, y: Any, **details: Any) -> Outcome:
        """Return a value with its details, validated."""
        return Outcome.value(y, **details)

    def checked(self, outputs: Any) -> dict[str, float]:
        """Return y as a number by output."""
        return {Y: checked_value(outputs)}

    def corrected(self, before: Outcome, y: Any, **details: Any) -> Outcome:
        """Return an outcome with another value; details that are None stay as they are."""
        return before.corrected(y, **details)

    def check(self, outcome: Outcome, count: int | None) -> None:
        """Raise unless a value is one number, with as many constraints as the values before."""
        if outcome.outputs:
            raise TypeError(f"y is {checks.shown(dict(outcome.outputs))}, but the run has no goals; {SEVERAL}")
        check_count(outcome.constraints, count)

    def mismatch(self, y: float | None, outputs: Mapping[str, float]) -> str | None:
        """Return why a value of another study says nothing about y; None if it does."""
        if y is not None:
            return None
        names = ", ".join(map(repr, outputs))
        return f"measured {names}, but this study has one value; give goals=, or a list of (x, y)"

    def adopted(self, trial: Trial) -> Trial:
        """Return a trial of another run with its value y alone. Refuse outputs without a single y."""
        if trial.status == "told" and trial.y is None:
            names = ", ".join(trial.outputs)
            raise ValueError(f"trial {trial.number} has the outputs {names} and no single y; {SEVERAL}")
        nothing: Any = {**dict.fromkeys(OUTPUTS, NONE), "outputs_before": None, "unmet": ()}
        return replace(trial, **nothing)

    def derived(self, outcome: Outcome) -> dict[str, Any]:
        """Return the fields of a trial that follow from its outputs: none, y is the value itself."""
        return {}

    def __str__(self) -> str:
        return self.direction


MAXIMISE = ValueGoal.to("max")  # of a run about which nothing else is said
