"""Goals of named outputs: an evaluation returns a dict, and each output has a goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpmi._support import checks
from gpmi.trials.goal_kinds import KINDS, AtLeast, AtMost, Goal, Match, Max, Min
from gpmi.trials.goals import Goals
from gpmi.trials.outcomes import Outcome, checked_details
from gpmi.trials.outputs import NONE, Outputs, by_output, checked_output
from gpmi.trials.trial import Trial
from gpmi.trials.value_goal import MAXIMISE

_FORMS = '"max", "min", gpmi.Max, gpmi.Min, gpmi.Match, gpmi.AtLeast, gpmi.AtMost, or None to watch it'
_EXAMPLE = '{"yield": "max", "cost": "min"}'
_INSTANCES: Mapping[type, str] = {
    Max: 'gpmi.Max() or "max"',
    Min: 'gpmi.Min() or "min"',
    Match: "gpmi.Match(42, within=3)",
    AtLeast: "gpmi.AtLeast(0.95)",
    AtMost: "gpmi.AtMost(0.95)",
}


@dataclass(frozen=True)
class NamedGoals(Goals):
    """The goals of the outputs that a user named."""

    @staticmethod
    def of(given: Any) -> NamedGoals:
        """Return the goals that a user gives as a dict, validated."""
        if isinstance(given, NamedGoals):
            return given
        if not isinstance(given, Mapping):
            raise TypeError(f"goals is {checks.shown(given)}; give a dict of outputs, such as {_EXAMPLE}")
        if not given:
            raise ValueError(f"goals is {checks.shown(given)}, without an output; give a dict such as {_EXAMPLE}")
        goals = NamedGoals(tuple((_checked_name(name), _checked_goal(name, goal)) for name, goal in given.items()))
        if not goals.objectives:
            raise ValueError(
                f"goals is {checks.shown(dict(given))}, without an objective; give at least one output the goal "
                '"max", "min" or gpmi.Match'
            )
        return goals

    @staticmethod
    def from_json(stored: Any) -> NamedGoals:
        """Return the goals of a stored description, validated."""
        given: dict[str, Goal] = {}
        for written in stored:
            about = {key: value for key, value in written.items() if key not in ("output", "kind")}
            if written["output"] in given:
                raise ValueError(f"goals has the output {written['output']!r} twice; an output has one goal")
            given[written["output"]] = KINDS[written["kind"]](**about) if "kind" in written else None
        return NamedGoals.of(given)

    @property
    def purpose(self) -> dict[str, Any]:
        """The goals as arguments of `Optimizer`."""
        return {"goals": self}

    @property
    def named(self) -> tuple[str, ...]:
        """The outputs that the user named."""
        return tuple(self)

    def titles(self, unnamed: str) -> dict[str, str]:
        """Return what to call each output. `unnamed` is the name for the output that the user did not name."""
        return {name: name for name in self}

    @property
    def example(self) -> str:
        """How the outputs of an evaluation are given, for messages."""
        return f"{{{', '.join(f'{name!r}: ...' for name in self)}}}"

    def checked(self, outputs: Any) -> dict[str, float]:
        """Return measured outputs as numbers; refuse an unknown name and anything that is not a finite number."""
        if not isinstance(outputs, Mapping):
            raise TypeError(
                f"y is {checks.shown(outputs)}, but the run has goals; give a dict of outputs, {self.example}"
            )
        if not outputs:
            raise ValueError(
                f"y is {checks.shown(outputs)}, without an output; give at least one of {', '.join(map(repr, self))}, "
                "or call fail(x) for an evaluation that has none"
            )
        return {self.checked_name(name): checked_output(name, value) for name, value in outputs.items()}

    def entered(self, plain: Sequence[float], outputs: Mapping[str, float]) -> float | dict[str, float]:
        """Return the outputs that a person enters; refuse a number without a name."""
        if plain:
            words = " ".join(f"{name}=..." for name in self)
            raise ValueError(f"{plain[0]:g} was given without a name, but the study has goals; give {words}")
        return self.checked(outputs)

    def entered_noise(self, plain: Sequence[float], outputs: Mapping[str, float]) -> float | dict[str, float]:
        """Return the variances of errors: the last number for all outputs, or by output."""
        if plain and outputs:
            raise ValueError("noise_var has a number for all outputs and one for an output; give only one kind")
        return dict(outputs) if outputs else plain[-1] if plain else 0.0

    def outcome(self, y: Any, **details: Any) -> Outcome:
        """Return measured outputs, validated. `noise_var` and `repeats` are one number for all, or a dict by output."""
        details, values = dict(checked_details(details)), self.checked(y)
        constraints = details.get("constraints")
        if constraints is not None and checks.shape(constraints) != (0,):
            raise ValueError(
                f"constraints is {checks.shown(constraints)}, but the run has goals; give the output a limit, "
                "gpmi.AtMost or gpmi.AtLeast, and tell its value with the others"
            )
        return Outcome(
            "told",
            outputs=Outputs(values),
            output_noise_var=by_output("noise_var", details.get("noise_var", 0.0), values),
            output_repeats=by_output("repeats", details.get("repeats", 1), values),
        ).checked()

    def corrected(self, before: Outcome, y: Any, **details: Any) -> Outcome:
        """Return an outcome with other values of some outputs. Their noise_var and repeats stay unless given."""
        checked = dict(checked_details(details))
        for name, stored, usual in (
            ("noise_var", before.output_noise_var, 0.0),
            ("repeats", before.output_repeats, 1),
        ):
            given = checked.get(name)
            if given is None or isinstance(given, Mapping):
                kept = {key: stored.get(key, usual) for key in y} if isinstance(y, Mapping) else {}
                checked[name] = {**kept, **(given or {})}
        return before.with_outputs(self.outcome(y, **checked))

    def check(self, outcome: Outcome, count: int | None) -> None:
        """Raise unless a value fits the goals. `count` is how many constraints came with the values before."""
        self.checked(outcome.outputs or outcome.y)

    def mismatch(self, y: float | None, outputs: Mapping[str, float]) -> str | None:
        """Return why a value of another study says nothing about these outputs; None if it does."""
        if self.single is None and not outputs:
            return f"has one value y, but this study has several objectives; give a list of (x, {self.example})"
        if outputs and not any(name in self for name in outputs):
            return f"measured {', '.join(map(repr, outputs))}, but this study measures {', '.join(map(repr, self))}"
        return None

    def adopted(self, trial: Trial) -> Trial:
        """Return a trial of another run, where y is the output of a single objective.

        Refuse outputs without a goal, and y where there are several objectives.
        """
        if trial.outputs or trial.outputs_before:
            for name in {**trial.outputs, **(trial.outputs_before or {})}:
                if name not in self:
                    remedy = f"give it one, such as goals={{..., {name!r}: None}} to watch it"
                    raise ValueError(f"trial {trial.number} has the output {name!r}, which has no goal here; {remedy}")
            return trial
        if trial.y is None and trial.y_before is None:
            return trial
        if trial.constraints or not self.required:
            has = "constraints" if trial.constraints else "one value y"
            raise ValueError(f"trial {trial.number} has {has}, but the run has goals; give (x, {self.example}) instead")
        (name,) = self.required
        return replace(
            trial,
            outputs=NONE if trial.y is None else Outputs({name: trial.y}),
            output_noise_var=Outputs({name: trial.noise_var}) if trial.noise_var else NONE,
            output_repeats=Outputs({name: trial.repeats}) if trial.repeats != 1 else NONE,
            outputs_before=None if trial.y_before is None else Outputs({name: trial.y_before}),
        )

    def derived(self, outcome: Outcome) -> dict[str, Any]:
        """Return the fields of a trial that follow from its outputs: y of a single objective, and the limits unmet."""
        if not outcome.outputs:
            return {}
        name, outputs = self.single, outcome.outputs
        fields: dict[str, Any] = {"outputs": self.ordered(outputs), "unmet": self.unmet(outputs)}
        if name is None or name not in outputs:
            return fields | {"y": None, "noise_var": 0.0, "repeats": 1}
        noise_var, repeats = outcome.output_noise_var.get(name, 0.0), outcome.output_repeats.get(name, 1)
        return fields | {"y": outputs[name], "noise_var": noise_var, "repeats": repeats}

    def __str__(self) -> str:
        return ", ".join(f"{name} ({'watched' if goal is None else goal})" for name, goal in self.pairs)


def given_goals(given: Any) -> Goals:
    """Return the goals that a caller gives; None stands for one number whose direction does not matter."""
    if isinstance(given, Goals):
        return given
    return MAXIMISE if given is None else NamedGoals.of(given)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise TypeError(f"goals has the output {checks.shown(name)}; give its name, a string that is not blank")
    return name


def _checked_goal(name: str, goal: Any) -> Goal:
    if goal is None or isinstance(goal, Max | Min | Match | AtLeast | AtMost):
        return goal
    if isinstance(goal, str) and goal in ("max", "min"):
        return Max() if goal == "max" else Min()
    about = f"goals has {name!r}: {checks.shown(goal)}"
    if isinstance(goal, str) and goal.lower().startswith(("max", "min")):
        raise ValueError(f"{about}; did you mean {goal.lower()[:3]!r}?")
    if isinstance(goal, type) and goal in KINDS.values():
        raise TypeError(f"{about}, a class; give an instance, {_INSTANCES[goal]}")
    if isinstance(goal, list | tuple | set | frozenset):
        raise TypeError(
            f"{about}, but an output has one goal: give gpmi.Max(at_least=...) or gpmi.Min(at_most=...) for a "
            "direction and the worst value that is acceptable"
        )
    raise TypeError(f"{about}; give {_FORMS}")
