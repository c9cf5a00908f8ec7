"""A run as figures and reports show it: a Result, an Optimizer or a Study, read once.

`view_of` in reading.py decides what kind of view it is. `OutputView` is the view of a run with a single objective: its
values are y. `ValueView` is the same of an output that its user did not name. `FrontView` in front_run.py is the view
of a run whose result is a front. `PartView` is the view of one output of a run with several. Each answers for itself,
so nothing that draws or writes asks for the kind of a run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from gpmi._support.text import error_message, round_to_sd, rounded, shortened
from gpmi._support.types import Array, Event, Point
from gpmi.analysis import FrontAnalysis, FrontBands, FrontLedger
from gpmi.analysis.ledger import Ledger, OptionSummary, RunLedger
from gpmi.space import Axis
from gpmi.trials import AtMost, Goal, Goals, Match, Min, Objective, Trial
from gpmi.views.findings import Finding, NamedPoint, Number
from gpmi.views.front_view import purpose, title_of
from gpmi.views.model_view import ModelView
from gpmi.views.trial_notes import note, output_note
from gpmi.views.trials_view import TrialsView

# Our choices, for figures and reports alike.
LEADERS = 10  # the best trials, which stand out in pictures
NAME = 40  # characters of the name of an output, at most


class Judgement(NamedTuple):
    """What a table says of a trial beside its values: a number with the sd that it is rounded to, or a word."""

    value: float | str | None
    sd: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class RunView(TrialsView, ABC):
    """What figures and reports ask of a run. Everything that needs the model is computed when it is first read."""

    rules: ClassVar[str] = "limits"  # what the requirements are called that make a trial acceptable

    @classmethod
    def read(cls, source: Any) -> tuple[RunLedger | None, FrontAnalysis | None, tuple[Event, ...]]:
        """Return the ledger of a run and what is known of its goals.

        If a model of an output fails, there is none of it, and an event says why: the trials are shown all the same.
        """
        try:
            return *cls.read_model(source), ()
        except Exception as error:
            return None, None, (Event("no model", f"the model failed: {error_message(error)}"),)

    @classmethod
    @abstractmethod
    def read_model(cls, source: Any) -> tuple[RunLedger | None, FrontAnalysis | None]:
        """Return the ledger of a run and what is known of its goals."""

    @classmethod
    def own_fields(cls, goals: Goals) -> dict[str, Any]:
        """Return the fields that only this kind of view has."""
        return {}

    # Outputs

    @property
    def objectives(self) -> dict[str, Objective]:
        """The outputs that are optimised."""
        return self.goals.objectives

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """The named outputs with a value and a model, in the order of the goals."""
        return () if self.analysis is None else tuple(self.analysis.outputs)

    @property
    @abstractmethod
    def each_output(self) -> tuple[OutputView, ...]:
        """The view of each output with a model, a single objective first."""

    @property
    @abstractmethod
    def objective_views(self) -> tuple[OutputView, ...]:
        """The view of each objective with a value."""

    @property
    @abstractmethod
    def focus(self) -> tuple[OutputView, ...]:
        """The outputs that are drawn unless others are asked for: those on which the result depends."""

    @property
    @abstractmethod
    def series(self) -> tuple[OutputView, ...]:
        """The outputs whose values are drawn in their order, a target as the distance from it."""

    @property
    @abstractmethod
    def regret_views(self) -> tuple[OutputView, ...]:
        """The outputs that have a simple regret: none where the result is a front."""

    @property
    @abstractmethod
    def hypervolumes(self) -> tuple[FrontLedger, ...]:
        """The ledgers whose hypervolume is drawn: that of several objectives."""

    def of_output(self, name: str) -> OutputView:
        """Return the view of one output. A limit counts as the direction that keeps it."""
        return self._parts[name]

    @cached_property
    def _parts(self) -> dict[str, PartView]:
        return {name: self._part(name, goal) for name, goal in self.goals.items()}

    def _part(self, name: str, goal: Goal) -> PartView:
        measured = (trial for trial in self.trials if trial.status != "told" or name in trial.outputs)
        shared: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(RunView)}
        shared["trials"] = tuple(_with_value(trial, name) for trial in measured)
        shared["ledger"] = None if self.analysis is None else self.analysis.outputs.get(name)
        return PartView(**shared, key=name, goal=_direction(goal), parent=self)

    def of_objective(self, name: str) -> OutputView:
        """Return the view of an objective as its values are drawn: one with a target as the distance from it."""
        return self.of_output(name).as_shown

    # What can be asked for

    def checked_output(self, name: str) -> str:
        """Return the name of an output; refuse one that does not exist."""
        return self.goals.checked_name(name)

    def checked_objective(self, name: str | None) -> str:
        """Return the name of an objective, by default of the only one; refuse one that does not exist."""
        names = list(self.objectives)
        if name is None and len(names) > 1:
            several = f"output is None, but there are several objectives; give one of {', '.join(map(repr, names))}"
            raise ValueError(f"{several}, or draw plots.hypervolume(run)")
        name = names[0] if name is None else self.checked_output(name)
        if name not in names:
            raise ValueError(f"output is {name!r}, which is no objective; give one of {', '.join(map(repr, names))}")
        return name

    def check_front(self) -> None:
        """Raise a ValueError if the result is a single value."""
        remedy = 'it takes goals={"yield": "max", "cost": "min"}; convergence(run) draws one objective'
        raise ValueError(f"source has one objective, so it has no front; {remedy}")

    # What is said of all outputs

    @property
    def subject(self) -> str:
        """What the model describes, in a sentence about all outputs."""
        return "an output"

    @property
    def purposes(self) -> tuple[str, str]:
        """The name of the goals, and what they are, a line each."""
        return "goals", "\n".join(f"{name}: {purpose(goal)}" for name, goal in self.goals.items())

    @property
    @abstractmethod
    def meaning(self) -> str:
        """What the number is that the ledger reasons about."""

    # What was found

    @property
    def best(self) -> Trial | None:
        """The feasible trial with the best value; None if the result is a front."""
        return None

    @property
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other trial beats in every objective; none if there is a single one."""
        return ()

    @property
    def compromise(self) -> Trial | None:
        """The trial in the middle of the front, if that has several; none without a front."""
        return None

    @property
    def leaders(self) -> tuple[str, tuple[Trial, ...]]:
        """What the trials are that stand out in pictures, and these trials."""
        return "on the front", self.front

    @property
    def compared(self) -> str:
        """How the trials on the front were compared if values are noisy, as a sentence after another one."""
        return ""

    def front_bands(self, x: str, y: str) -> FrontBands | None:
        """Return where the front of two objectives lies; None while it is unknown, and if a band were too costly."""
        return None

    @cached_property
    def front_numbers(self) -> frozenset[int]:
        """The numbers of the trials on the front."""
        return frozenset(trial.number for trial in self.front)

    @property
    @abstractmethod
    def recommended_row(self) -> Array | None:
        """The coordinates (d,) of the point that slices and maps go through; None while there is none."""

    @property
    @abstractmethod
    def centre(self) -> str:
        """What this point is called."""

    @abstractmethod
    def centre_of(self, output: str) -> tuple[str, str]:
        """Return what this point is called in the pictures of an output, and the same in a word or two."""

    @cached_property
    def recommended(self) -> Point | None:
        """The point at `recommended_row`."""
        row = self.recommended_row
        return None if row is None else self.space.decode(row)

    @property
    def recommendation(self) -> Point | None:
        """The point to use; None while it is unknown, and if the result is a front."""
        return None

    @property
    def on_front(self) -> tuple[int, ...] | None:
        """The numbers of the trials on the front in their order; None if the result is a single value."""
        return None

    @property
    def believed(self) -> tuple[float, float, float] | None:
        """The quantiles of f at the recommended point at -1, 0 and 1 sd, in units of y; None while it is unknown."""
        return None

    @property
    @abstractmethod
    def success(self) -> float | None:
        """The probability that an evaluation at this point succeeds and is acceptable; None if nothing speaks to it."""

    @property
    def options(self) -> tuple[OptionSummary, ...]:
        """What is known of each option of each choice; empty without a choice and without a model."""
        return () if self.ledger is None else self.ledger.options

    def options_for(self, output: str) -> tuple[OptionSummary, ...]:
        """Return the same, with the settings at which pictures of an output show the options."""
        return self.options

    @property
    def finding(self) -> Finding:
        """What was found, in words and as points."""
        return self._finding or Finding(before=(self.all_failed or self.why_nothing,))

    @property
    @abstractmethod
    def _finding(self) -> Finding | None:
        """What was found, if anything."""

    @property
    @abstractmethod
    def why_nothing(self) -> str:
        """Why nothing was found, as a sentence."""

    @property
    def sign(self) -> float:
        """1.0 if a large value is better, else -1.0."""
        return 1.0

    # Trials

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The outputs that have an axis beside those of the parameters."""

    @property
    def limit_titles(self) -> tuple[str, ...]:
        """The column of a table with the limits that a trial breaks; none without limits."""
        return ("limit broken",) * bool(self.goals.limits)

    @property
    @abstractmethod
    def judgement_titles(self) -> tuple[str, ...]:
        """The columns of a table with what is said of each trial beside its values."""

    @abstractmethod
    def judgements(self, trial: Trial) -> tuple[Judgement, ...]:
        """Return what these columns say of a trial."""

    @property
    def prediction_words(self) -> str:
        """What these columns are, as a sentence after another one; empty if it is plain."""
        return ""

    def note(self, trial: Trial) -> str:
        """Return what else is known about a trial, in words."""
        return output_note(trial, self.goals)

    @property
    @abstractmethod
    def totals(self) -> Array | None:
        """How much each parameter that varies matters, (p,): its total Sobol index; None while it is unknown.

        It is the same for all outputs of a run, so that their pictures are in the same order: if the result is a front
        the mean over the outputs, otherwise that of the objective.
        """


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputView(ModelView, RunView):
    """The view of a run with a single objective: y is its value, and the model is that of y."""

    ledger: Ledger | None
    key: str  # the output in goals and trials
    goal: Literal["max", "min"]

    @classmethod
    def read_model(cls, source: Any) -> tuple[Ledger | None, FrontAnalysis | None]:
        """Return the ledger of the objective if it has values, and what is known of all outputs."""
        return _with_values(source.ledger), source.front_analysis

    @classmethod
    def own_fields(cls, goals: Goals) -> dict[str, Any]:
        """Return the single objective and its direction."""
        return {"key": goals.single, "goal": goals.direction}

    # Names

    @property
    def given_name(self) -> str:
        """The name of the output; empty if its user did not name it."""
        return self.key

    @property
    def short_name(self) -> str:
        """The same as far as there is room for it."""
        return shortened(self.given_name, NAME)

    @property
    def value_name(self) -> str:
        """What a value is called: the output, or y."""
        return self.given_name or self.called or "y"

    @property
    def function_name(self) -> str:
        """What the model describes: the output, or f."""
        return self.given_name or self.called or "f"

    @property
    def title(self) -> str:
        """What is drawn: the name of a value, or the distance from a target."""
        return title_of(self.key, self.goals[self.key])

    @property
    def noun(self) -> str:
        """What is the largest or the smallest: the title, or a value."""
        return self.title

    @property
    def extreme(self) -> str:
        """What the best value is called."""
        return "largest" if self.goal == "max" else "smallest"

    @property
    def sign(self) -> float:
        """1.0 if a large value is better, else -1.0."""
        return 1.0 if self.goal == "max" else -1.0

    @property
    def best_title(self) -> str:
        """What the best trial is called in a picture; empty if there is none."""
        return "" if self.best is None else f"the best, trial {self.best.number}"

    @property
    def model_title(self) -> str:
        """What the model of this output is called."""
        return f"model of {self.key}"

    @property
    def meaning(self) -> str:
        """What the simple regret is."""
        name = self.function_name
        gap = f"max {name} - {name}(recommended)" if self.goal == "max" else f"{name}(recommended) - min {name}"
        return f"The simple regret is how much the recommended point falls short of the optimum: {gap}."

    # Outputs

    @cached_property
    def each_output(self) -> tuple[OutputView, ...]:
        """This view, and those of the other outputs with a model."""
        return self, *(self.of_output(name) for name in self.output_names if name != self.key)

    @property
    def objective_views(self) -> tuple[OutputView, ...]:
        """This view."""
        return (self,)

    focus = series = regret_views = objective_views

    @property
    def hypervolumes(self) -> tuple[FrontLedger, ...]:
        """None: a single value has no hypervolume."""
        return ()

    def of_output(self, name: str) -> OutputView:
        """Return the view of one output: this view for the objective."""
        return self if name == self.key else super().of_output(name)

    @property
    def as_shown(self) -> Self:
        """The view as its values are drawn in their order: one with a target as the distance from it."""
        return self

    # What was found

    @property
    def recommendation(self) -> Point | None:
        """The point with the best posterior mean; None while it is unknown."""
        return self.recommended

    @cached_property
    def best(self) -> Trial | None:
        """The feasible trial with the best value."""
        feasible = (trial for trial in self.told if trial.feasible)
        return max(feasible, key=lambda trial: self.sign * (trial.y or 0.0), default=None)

    @property
    def leaders(self) -> tuple[str, tuple[Trial, ...]]:
        """The trials with the best values, the best first."""
        ranked = sorted(self.told, key=lambda trial: (trial.feasible, self.sign * (trial.y or 0.0)), reverse=True)
        best = tuple(ranked[:LEADERS])
        return f"the {len(best)} best", best

    @cached_property
    def recommended_row(self) -> Array | None:
        """The coordinates (d,) of the point with the best posterior mean."""
        return None if self.ledger is None else self.ledger.model.recommendation.row

    def centre_of(self, output: str) -> tuple[str, str]:
        """Return what the point with the best posterior mean is called."""
        return "the recommended point", "recommended"

    @property
    def centre(self) -> str:
        """What the point is called that slices and maps go through."""
        return self.centre_of(self.function_name)[0]

    @property
    def centre_name(self) -> str:
        """The same in a word or two."""
        return self.centre_of(self.function_name)[1]

    @property
    def success(self) -> float | None:
        """The probability that an evaluation at this point succeeds and is acceptable; None if nothing speaks to it."""
        row, chance = self.recommended_row, None if self.model is None else self.model.chance
        return None if row is None or chance is None else float(chance(row[None])[0])

    @property
    def why_nothing(self) -> str:
        """Why there is no best value, as a sentence."""
        return f"There is no value that satisfies its {self.rules}." if self.told else "There is no value yet."

    @property
    def _finding(self) -> Finding | None:
        """The best and the recommended point."""
        best = self.best
        if best is None:
            return None
        feasible = " feasible" if best.constraints or self.limit_titles else ""
        label = "" if best.label is None else f", row {best.label}"
        lead = (
            f"The {self.extreme}{feasible} {self.noun} observed is ",
            Number(rounded(best.y)),
            f", trial {best.number}{label}.",
        )
        observed = NamedPoint("best observed", best.x, dict(best.outputs))
        if self.ledger is None:
            return Finding(lead, ("There is no model of these values, so no point is recommended.",), (observed,))
        recommended = NamedPoint("recommended", self.recommended, self._expected)
        is_same = self._settings(best.x) == self._settings(recommended.x)
        which = "the same point" if is_same else "the point where the model's mean is best"
        advice = (f"If {self.value_name} is noisy, use {which}. ", *self._belief(self.ledger))
        return Finding(lead, (advice,), (observed,) if is_same else (observed, recommended))

    def _belief(self, ledger: Ledger) -> tuple[str, ...]:
        """Return what f is at the recommended point, as far as it is known."""
        if self.believed is None:
            return (f"What {self.function_name} is there is {ledger.unknown}.",)
        low, middle, high = self.believed
        least, median, most = (round_to_sd(value, 0.5 * abs(high - low)) for value in (low, middle, high))
        return (
            f"There {self.function_name} is believed to be ",
            Number(median),
            f", {least} to {most} at one standard deviation.",
        )

    def _settings(self, x: Point | None) -> list[str]:
        return [] if x is None else [repr(value) for value in self.values(x)]

    @property
    def _expected(self) -> dict[str, str]:
        """What is expected at the recommended point, by output; nothing while it is unknown."""
        if self.believed is None:
            return {}
        low, middle, high = self.believed
        sd = 0.5 * abs(high - low)
        return {self.key: f"{round_to_sd(middle, sd)} ± {round_to_sd(sd, sd)} expected"}

    # Slices

    def judged_options(self, axis: Axis) -> tuple[OptionSummary, ...]:
        """Return the options of a choice whose own best setting of the other parameters is known, in their order."""
        if len(self.axes(2)) == 1:
            return ()
        return tuple(option for option in self.options if option.parameter == axis.name and option.x is not None)

    def slice_rows(self, axis: Axis) -> Array:
        """Return the points (k, d) of a slice: through the recommended point, or judged options at their own best."""
        row, best = self.recommended_row, [option.x for option in self.judged_options(axis) if option.x is not None]
        assert row is not None
        return np.array([self.space.encode(x) for x in best]) if best else self.along(axis, row)

    # Trials

    @property
    def columns(self) -> tuple[str, ...]:
        """The output that is y."""
        return (self.key,)

    def _has_value(self, trial: Trial) -> bool:
        return trial.y is not None and super()._has_value(trial)

    @property
    def judgement_titles(self) -> tuple[str, ...]:
        """The columns of the prediction for each trial."""
        return "mu", "sd"

    def judgements(self, trial: Trial) -> tuple[Judgement, ...]:
        """Return what was predicted for a trial."""
        return Judgement(trial.mu, trial.sd), Judgement(trial.sd, trial.sd)

    @property
    def prediction_words(self) -> str:
        """What these columns are, as a sentence after another one."""
        return f" mu and sd are the mean and the standard deviation that the model predicted for {self.function_name}."

    # Parameters

    @cached_property
    def totals(self) -> Array | None:
        """How much each parameter that varies matters, (p,): its total Sobol index; None while it is unknown."""
        return mean_totals((self,))


@dataclass(frozen=True, eq=False, kw_only=True)
class ValueView(OutputView):
    """The view of a run whose evaluations return one number, which its user did not name. It may have constraints."""

    rules: ClassVar[str] = "constraints"

    @classmethod
    def read(cls, source: Any) -> tuple[RunLedger | None, FrontAnalysis | None, tuple[Event, ...]]:
        """Return the ledger if there are values. Raise the error of a model that fails."""
        return _with_values(source.ledger), None, ()

    @property
    def given_name(self) -> str:
        """Empty: the output has no name."""
        return ""

    @property
    def title(self) -> str:
        """What a value is called."""
        return self.value_name

    @property
    def noun(self) -> str:
        """What is the largest or the smallest."""
        return "value"

    @property
    def model_title(self) -> str:
        """What the model is called."""
        return "model"

    @property
    def subject(self) -> str:
        """What the model describes."""
        return self.function_name

    def checked_output(self, name: str) -> str:
        """Refuse any name."""
        raise ValueError(f"output is {name!r}, but the run has no goals; leave out output")

    @property
    def purposes(self) -> tuple[str, str]:
        """What is looked for."""
        return "goal", f"the {self.extreme} value"

    def note(self, trial: Trial) -> str:
        """Return what else is known about a trial, in words."""
        return note(trial)


@dataclass(frozen=True, eq=False, kw_only=True)
class PartView(OutputView):
    """The view of one output of a run: y is that output, and the ledger is its own."""

    parent: RunView  # the view of the run

    @property
    def each_output(self) -> tuple[OutputView, ...]:
        """This view."""
        return (self,)

    @property
    def best_title(self) -> str:
        """What the best trial is called in a picture: without its number, which differs between outputs."""
        return "the best"

    @property
    def as_shown(self) -> Self:
        """The view as its values are drawn in their order: one with a target as the distance from it."""
        goal = self.goals[self.key]
        if not isinstance(goal, Match):
            return self
        near = (trial if trial.y is None else replace(trial, y=abs(trial.y - goal.target)) for trial in self.trials)
        return replace(self, trials=tuple(near), goal="min")

    @cached_property
    def recommended_row(self) -> Array | None:
        """The coordinates (d,) of the point of the run that pictures go through, or else of the best mean."""
        row = self.parent.recommended_row
        return super().recommended_row if row is None else row

    def centre_of(self, output: str) -> tuple[str, str]:
        """Return what this point is called."""
        return self.parent.centre_of(output)

    @property
    def options(self) -> tuple[OptionSummary, ...]:
        """What is known of each option: where there is one objective, at the settings that are best for it."""
        return self.parent.options_for(self.key)

    @property
    def totals(self) -> Array | None:
        """How much each parameter that varies matters, (p,), in all outputs of the run; None while it is unknown."""
        return self.parent.totals


def _with_values(ledger: Ledger | None) -> Ledger | None:
    """Return a ledger if it has values."""
    return ledger if ledger is not None and ledger.n else None


def _direction(goal: Goal) -> Literal["max", "min"]:
    """Return which way an output is better. A limit counts as the direction that keeps it."""
    return "min" if isinstance(goal, Min | AtMost) else "max"


def mean_totals(views: tuple[OutputView, ...]) -> Array | None:
    """Return the mean of the total Sobol indices of outputs, (p,); None while they are unknown."""
    totals = [[index.total for index in view.importances] for view in views if view.importances is not None]
    return np.mean(totals, axis=0) if totals else None


def _with_value(trial: Trial, name: str) -> Trial:
    """Return a trial with one of its outputs as y, and without what was predicted for another output."""
    if trial.status != "told":
        return trial
    before = None if trial.outputs_before is None else trial.outputs_before.get(name)
    nothing: dict[str, Any] = dict.fromkeys(("mu", "sd", "phi", "gamma_hat", "explored", "surprise", "information"))
    return replace(
        trial,
        y=trial.outputs[name],
        y_before=before,
        noise_var=trial.output_noise_var.get(name, 0.0),
        repeats=trial.output_repeats.get(name, 1),
        **nothing,
    )
