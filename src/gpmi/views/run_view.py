"""A run as figures and reports see it: a Result, an Optimizer or a Study, read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from gpmi._support.text import error_message, without_password
from gpmi._support.types import Array, Event, Mask, Point
from gpmi.analysis.front import FrontAnalysis
from gpmi.analysis.importance import Importances, importances
from gpmi.analysis.ledger import Ledger, regret_history
from gpmi.analysis.ledger.front_ledger import FrontBands, FrontLedger
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import mean_in_chunks, moments_in_chunks
from gpmi.model.fitting.warp import IDENTITY, Warp
from gpmi.model.model import Model
from gpmi.space import Parameters, Space
from gpmi.space.axes import Axis, axes_of
from gpmi.space.mixtures import Mixture, Triangle, mixtures_of
from gpmi.trials import Trial
from gpmi.trials.dataframe import names_of
from gpmi.trials.goal_summary import at_target, told_front
from gpmi.trials.goals import MAXIMISE, AtMost, Goals, Match, Min, Objective
from gpmi.trials.value_bounds import OPEN, ValueBounds
from gpmi.views.front_view import has_bands

# Our choices, for figures and reports alike.
MAX_LINES = 300  # trials in parallel coordinates: the best, and an even selection of the others
TOP_TRIALS = 10  # the best trials, which are emphasised there
WIDE_RANGE = 100.0  # a trace that spans this factor gets a logarithmic scale


class RegretHistory(NamedTuple):
    """The simple regret after t values, at some moments of a run, (k,) each."""

    t: Array
    low: Array  # the ends of the 95 % interval
    median: Array
    high: Array
    floor: float | None  # where a logarithmic scale begins, because it has no 0; None if a linear scale is enough


@dataclass(frozen=True, eq=False)
class RunView:
    """The state of a run at one moment. Everything that needs the model is computed when it is first read.

    In a run with goals, `of_output` is the view of one output: y is that output, and the ledger is its own. With
    several objectives only these views have a `ledger`; the view of the run has a `front_ledger`.
    """

    trials: tuple[Trial, ...]
    ledger: Ledger | None  # None if nothing was told, if the model failed, or with several objectives
    goal: Literal["max", "min"]
    space: Space
    seed: int
    events: tuple[Event, ...]
    reason: str | None = None  # why the run stopped
    budget: int | None = None
    name: str | None = None  # of a study
    identity: str | None = None  # of a study, wherever its database is
    goals: Goals = MAXIMISE
    analysis: FrontAnalysis | None = None  # of a run with goals; None if the model failed
    front_ledger: FrontLedger | None = None  # of a run with several objectives
    output: str | None = None  # the name of y in a run with goals; None with several objectives
    called: str | None = None  # what the result of a run without goals is called; f and y by default
    parent: RunView | None = None  # the view of the run, if this is the view of one of its outputs
    earlier: tuple[str, ...] = ()  # what was made of each earlier study, a line each

    @staticmethod
    def of(source: Any) -> RunView:
        """Read a Result, an Optimizer or a Study. Raise a TypeError for anything else."""
        if isinstance(source, RunView):
            return source
        try:
            trials, goals = tuple(source.trials), source.goals
            ledger, analysis, failure = _read(source, goals)
            needed: dict[str, Any] = {
                "goal": source.goal,
                "space": source.space,
                "seed": source.seed,
                "events": (*source.events, *failure),
            }
        except AttributeError:
            raise TypeError(f"source is {source!r}; give a Result, an Optimizer or a Study") from None
        front_ledger = ledger if isinstance(ledger, FrontLedger) else None
        own = ledger if isinstance(ledger, Ledger) and ledger.n else None
        name = getattr(source, "name", None)
        optional: dict[str, Any] = {key: getattr(source, key, None) for key in ("reason", "budget", "identity")}
        return RunView(
            trials,
            own,
            **needed,
            **optional,
            name=None if name is None else without_password(str(name)),
            goals=goals,
            analysis=analysis,
            front_ledger=front_ledger,
            output=goals.single if goals.named else None,
            earlier=tuple(map(str, getattr(source, "earlier", ()))),
        )

    # Outputs

    @property
    def has_front(self) -> bool:
        """Whether this is a run with several objectives, or with a target: what was found is a front."""
        return self.goals.single is None and self.output is None

    @property
    def value_name(self) -> str:
        """What a value is called: the output of a run with goals, otherwise y."""
        return self.output or self.called or "y"

    @property
    def function_name(self) -> str:
        """What the model describes: the output of a run with goals, otherwise f."""
        return self.output or self.called or "f"

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """The outputs with a value and a model, in the order of the goals; () in a run without goals."""
        return () if self.analysis is None else tuple(self.analysis.outputs)

    @cached_property
    def each_output(self) -> tuple[RunView, ...]:
        """The view of each output with a model, a single objective first; this view itself in a run without goals."""
        if not self.goals.named or self.parent is not None:
            return (self,)
        others = tuple(self.of_output(name) for name in self.output_names if name != self.output)
        return others if self.output is None else (self, *others)

    def of_output(self, name: str) -> RunView:
        """Return the view of one output that has values. A limit counts as the direction that keeps it."""
        return self if name == self.output else self._views[name]

    @cached_property
    def _views(self) -> dict[str, RunView]:
        return {name: self._view(name) for name in self.output_names}

    def _view(self, name: str) -> RunView:
        assert self.analysis is not None
        known = (trial for trial in self.trials if trial.status != "told" or name in trial.outputs)
        return replace(
            self,
            trials=tuple(_with_value(trial, name) for trial in known),
            ledger=self.analysis.outputs[name],
            goal="min" if isinstance(self.goals[name], Min | AtMost) else "max",
            front_ledger=None,
            output=name,
            parent=self,
        )

    def of_objective(self, name: str) -> RunView:
        """Return the view of an objective with values, as it is shown: one with a target as the distance from it."""
        found, goal = self.of_output(name), self.objectives[name]
        if not isinstance(goal, Match):
            return found
        near = (trial if trial.y is None else replace(trial, y=abs(trial.y - goal.target)) for trial in found.trials)
        return replace(found, trials=tuple(near), goal="min")

    @cached_property
    def objectives(self) -> dict[str, Objective]:
        """The outputs that are optimised; none in a run without goals."""
        return self.goals.objectives if self.goals.named else {}

    @cached_property
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other trial beats in every objective; by the values told if there is no model."""
        if not self.goals.named:
            return ()
        return told_front(self.trials, self.goals, self.space) if self.analysis is None else self.analysis.front

    @cached_property
    def is_noisy(self) -> bool:
        """Whether an objective is noisy, so that the front compares posterior means and not the values told."""
        if self.analysis is None:
            return False
        known, compared = self.analysis.known
        columns = ((goal, [trial.outputs[name] for trial in known]) for name, goal in self.objectives.items())
        told = np.stack([goal.oriented(np.array(y, dtype=float)) for goal, y in columns], axis=1)
        return not np.array_equal(told, compared)

    @cached_property
    def front_numbers(self) -> frozenset[int]:
        """The numbers of the trials on the front."""
        return frozenset(trial.number for trial in self.front)

    @cached_property
    def middle(self) -> Trial | None:
        """The trial on the front that is farthest from the worst value there in every objective: a compromise."""
        if not self.front:
            return None
        values = np.array(
            [[float(goal.oriented(np.asarray(trial.outputs[name]))) for name, goal in self.objectives.items()]
             for trial in self.front]
        )  # fmt: skip
        worst, span = values.min(axis=0), np.ptp(values, axis=0)
        shares = (values - worst) / np.where(span > 0.0, span, 1.0) + (span == 0.0)
        return self.front[int(np.argmax(shares.min(axis=1)))]

    def front_bands(self, x: str, y: str) -> FrontBands | None:
        """Return where the front of two objectives lies; None while it is unknown, and if a band were too costly."""
        if self.front_ledger is None or not self.goals.named or not has_bands(self.goals):
            return None
        found = self.front_ledger.front_bands(x, y)
        return (
            found if found is not None and np.ptp(found.high, axis=0).any() else None
        )  # without a front it is a point

    @cached_property
    def centre(self) -> str:
        """What the point is called that slices and maps go through."""
        run = self if self.parent is None else self.parent
        if not run.has_front:
            return "the recommended point"
        if run.middle is None:
            return f"the point with the best {self.function_name}"
        where = "in the middle of the front" if len(run.front) > 2 else "on the front"
        return f"trial {run.middle.number} ({where})"

    @property
    def centre_name(self) -> str:
        """The same in a word or two."""
        run = self if self.parent is None else self.parent
        if not run.has_front:
            return "recommended"
        return f"best {self.function_name}" if run.middle is None else f"trial {run.middle.number}"

    # Trials

    @cached_property
    def told(self) -> tuple[Trial, ...]:
        """The trials with a value, in the order in which the values came; with several objectives, of any output.

        Where there is a fidelity, those at its target.
        """
        found = [trial for trial in self.trials if self._has_value(trial)]
        return tuple(sorted(found, key=lambda trial: trial.order or 0))

    @cached_property
    def ended(self) -> tuple[Trial, ...]:
        """The trials that are not pending, in the order in which they were suggested."""
        return tuple(trial for trial in self.trials if trial.status != "pending")

    @cached_property
    def numbered(self) -> list[tuple[int, Trial]]:
        """The trials with a value, each with its place t = 1, 2, ... among those that have ended."""
        return [(t, trial) for t, trial in enumerate(self.ended, 1) if self._has_value(trial)]

    def _has_value(self, trial: Trial) -> bool:
        is_told = trial.status == "told" and (trial.y is not None or self.has_front)
        return is_told and trial.number in self._at_target

    @cached_property
    def _at_target(self) -> frozenset[int]:
        return frozenset(trial.number for trial in at_target(self.trials, self.space))

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of trials of each status."""
        return Counter(trial.status for trial in self.trials)

    @cached_property
    def best(self) -> Trial | None:
        """The feasible trial with the best value; None with several objectives."""
        if self.has_front:
            return None
        sign = 1.0 if self.goal == "max" else -1.0
        return max((t for t in self.told if t.feasible), key=lambda t: sign * (t.y or 0.0), default=None)

    @cached_property
    def names(self) -> list[str]:
        """The names of the parameters; x0, x1, ... if points are arrays."""
        return names_of(self.space)

    @cached_property
    def titles(self) -> list[str]:
        """The names with their units."""
        units = {axis.name: axis.title for axis in self.axes(2)}
        if (found := self.space.fidelity) is not None and found.fidelity.unit:
            units[found.name] = f"{found.name} ({found.fidelity.unit})"
        return [units.get(name, name) for name in self.names]

    def shown_values(self, trial: Trial) -> list[Any]:
        """Return the coordinates of a trial for a table. Where the fidelity has steps, it is the one that it reached.

        None stands for an inactive parameter, and for a trial that has reported no step.
        """
        values, found = self.values(trial.x), self.space.fidelity
        if found is not None and found.fidelity.has_steps:
            values[self.names.index(found.name)] = trial.curve[-1].step if trial.curve else None
        return values

    def values(self, x: Point) -> list[Any]:
        """Return the coordinates of a point in the order of the names; None for an inactive parameter."""
        return [x.get(name) for name in self.names] if isinstance(x, Mapping) else np.asarray(x).tolist()

    # Axes

    def axes(self, points: int) -> list[Axis]:
        """Return the parameters that vary, as axes with at most `points` settings."""
        return axes_of(self.space, points)

    def axes_by_importance(self, points: int) -> list[Axis]:
        """Return the same axes, the most important one first."""
        axes, totals = self.axes(points), self.totals
        return axes if totals is None else [axes[i] for i in np.argsort(-totals, kind="stable")]

    @cached_property
    def totals(self) -> Array | None:
        """How much each parameter that varies matters, (p,): its total Sobol index; None while it is unknown.

        It is the same for all outputs of a run, so that their pictures are in the same order: with several objectives
        the mean over the outputs, otherwise that of the objective.
        """
        if self.parent is not None:
            return self.parent.totals
        views = self.each_output if self.has_front else (self,)
        known = [[one.total for one in found] for view in views if (found := view.importances) is not None]
        return np.mean(known, axis=0) if known else None

    def active_axes(self, points: int) -> list[Axis]:
        """Return the same axes, without those that are inactive at the recommended point; none without a model."""
        row = self.recommended_row
        if row is None:
            return []
        return [axis for axis in self.axes_by_importance(points) if np.isfinite(axis.positions(row[None])[0])]

    @cached_property
    def mixtures(self) -> tuple[Mixture, ...]:
        """The parameters whose sum is fixed."""
        return mixtures_of(self.space)

    def mixture_of(self, axis: Axis) -> Mixture | None:
        """Return the mixture that a parameter belongs to; None if it can change alone."""
        return next((one for one in self.mixtures if axis.columns.start in one.columns), None)

    def along(self, axis: Axis, row: Array) -> Array:
        """Return points (k, d) through row (d,) in which a parameter takes each of its settings.

        The others stay, except in a mixture: there the other components share the rest in proportion.
        """
        mixture = self.mixture_of(axis)
        return axis.along(row) if mixture is None else mixture.moved(row, axis.columns.start, axis.settings[:, 0])

    @cached_property
    def triangles(self) -> tuple[Triangle, ...]:
        """The three most important components of each mixture that has as many, through the recommended point."""
        row, found = self.recommended_row, []
        for one in self.mixtures:
            if row is None or len(one.columns) < 3:
                continue
            order = [axis.columns.start for axis in self.axes_by_importance(2) if axis.columns.start in one.columns]
            members = sorted(one.columns.index(column) for column in order[:3])
            total = float(sum(row[one.columns[i]] for i in members))
            if len(members) == 3 and total > sum(one.lows[i] for i in members) + 1e-9:
                found.append(Triangle(one, (members[0], members[1], members[2]), total))
        return tuple(found)

    def inside(self, rows: Array) -> Mask:
        """Return which points (m, d) are within the ranges of the parameters and satisfy the known constraints."""
        if not isinstance(self.space, Parameters):
            return np.ones(len(rows), dtype=bool)
        near = 1e-9 * self.space.span
        within: Mask = np.all((rows >= self.space.lo - near) & (rows <= self.space.hi + near), axis=1)
        return within & self.space.feasible_set.contains(rows)

    @cached_property
    def rows(self) -> Array:
        """The coordinates of `told`, (n, d)."""
        return np.array([self.space.encode(trial.x) for trial in self.told]).reshape(len(self.told), self.space.dim)

    # The model

    @property
    def model(self) -> Model | None:
        """The model after all values, oriented so that larger is better."""
        return None if self.ledger is None else self.ledger.model

    @cached_property
    def posterior(self) -> Posterior | None:
        """The posterior of warp(y)."""
        return None if self.ledger is None else self.ledger.orientation.posterior(self.ledger.model.posterior)

    @cached_property
    def warp(self) -> Warp:
        """The transformation of y under the posterior; the identity without a model."""
        return IDENTITY if self.ledger is None else self.ledger.orientation.warp(self.ledger.model.warp)

    @cached_property
    def recommended_row(self) -> Array | None:
        """The coordinates (d,) of the point with the best posterior mean; with several objectives, of `middle`."""
        if self.parent is not None and (row := self.parent.recommended_row) is not None:
            return row
        if self.has_front and self.middle is not None:
            return self.space.encode(self.middle.x)
        return None if self.ledger is None else self.ledger.model.recommended

    @cached_property
    def recommended(self) -> Point | None:
        """The point at `recommended_row`."""
        row = self.recommended_row
        return None if row is None else self.space.decode(row)

    def mean(self, rows: Array) -> Array:
        """Return the posterior mean at points (m, d), (m,), in units of y. Needs a model."""
        assert self.posterior is not None
        return self.possible.clip(self.warp.inverse(mean_in_chunks(self.posterior, rows)))

    def bounds(self, rows: Array, width: float = 1.0) -> Array:
        """Return mu - sd, mu and mu + sd at points (m, d), (3, m), in units of y. Needs a model.

        `width` is another number of standard deviations.
        """
        assert self.posterior is not None
        return self.possible.clip(bounds_of(self.posterior, rows, self.warp, width))

    @property
    def possible(self) -> ValueBounds:
        """The bounds of y: what is drawn of the model stays within them."""
        return OPEN if self.ledger is None else self.ledger.orientation.bounds(self.ledger.setting.bounds)

    @cached_property
    def believed(self) -> tuple[float, float, float] | None:
        """The quantiles of f at the recommended point at -1, 0 and 1 sd, in units of y; None while it is unknown."""
        if self.ledger is None or self.ledger.unknown is not None:
            return None
        from scipy.special import ndtr

        ledger, levels = self.ledger, ndtr(np.array([-1.0, 0.0, 1.0]))
        found = ledger.model.to_units_of_y(ledger.belief.quantiles(ledger.model.recommended, levels))
        low, middle, high = np.sort(ledger.orientation.values(found)).tolist()
        return low, middle, high

    @cached_property
    def importances(self) -> Importances | None:
        """The Sobol indices; None while they are unknown."""
        return None if self.ledger is None or self.ledger.unknown is not None else importances(self)

    @cached_property
    def regret_history(self) -> RegretHistory | None:
        """The simple regret at some moments of the run; None while it is unknown."""
        found = () if self.ledger is None else regret_history(self.ledger)
        if not found:
            return None
        low, high = np.array([regret.interval() for regret in found]).T
        median = np.array([np.median(regret.simple) for regret in found])
        positive = high[high > 0.0]
        wide = len(positive) > 0 and positive.max() > WIDE_RANGE * positive.min()
        floor = 0.1 * float(positive.min()) if wide else None
        return RegretHistory(np.array([float(regret.t) for regret in found]), low, median, high, floor)


def _read(source: Any, goals: Goals) -> tuple[Ledger | FrontLedger | None, FrontAnalysis | None, tuple[Event, ...]]:
    """Return the ledger of a run and, with goals, what is known of them.

    If a model of an output fails, there is none of it, and an event says why: the trials are shown all the same.
    """
    if not goals.named:
        return source.ledger, None, ()
    try:
        ledger = source.ledger
        return ledger, ledger.analysis if isinstance(ledger, FrontLedger) else source.front_analysis, ()
    except Exception as error:
        return None, None, (Event("no model", f"the model failed: {error_message(error)}"),)


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


def bounds_of(posterior: Posterior, rows: Array, warp: Warp = IDENTITY, width: float = 1.0) -> Array:
    """Return mu - sd, mu and mu + sd at points (m, d), (3, m), in units of y. O(n^2 m) for n observations.

    `width` is another number of standard deviations.
    """
    mu, var = moments_in_chunks(posterior, rows)
    sd = width * np.sqrt(var)
    return warp.inverse(np.array([mu - sd, mu, mu + sd]))
