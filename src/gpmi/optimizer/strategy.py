"""What an Optimizer asks of its strategy: the models of a run, and the choice of the next point.

There is one strategy for a single score (`single.py`) and one for several objectives (`several.py`). The log decides
what they answer: whatever a strategy keeps saves time alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from gpmi._support.types import Array, Event
from gpmi.analysis.front import FrontAnalysis, FrontCache
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.analysis.ledger.ledger import Ledger
from gpmi.analysis.misfit import FEWEST
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.model.model import Model, ModelSetting
from gpmi.model.outputs import OutputModel, OutputModels, orientation_of
from gpmi.model.sources import SourceSummary
from gpmi.optimizer.arguments import Arguments
from gpmi.optimizer.doubts import Doubts, OutputValues, doubts_after, judges
from gpmi.optimizer.suggestion import Suggestion
from gpmi.search.subspaces import Subspace
from gpmi.trials import Log, Outcome, Trial

Note = Callable[..., None]  # how an Optimizer notes events
# What became of the prediction of a value: fields of its trial, once the value is in the log.
Comparison = Callable[[Log, Trial], dict[str, Any]]


class Strategy(ABC):
    """How a run models its values, and how it chooses the next point."""

    def __init__(self, arguments: Arguments, note: Note) -> None:
        self._arguments, self._note = arguments, note
        self._setting: ModelSetting = arguments.setting
        self._seen: tuple[int, int] | None = None  # the revision of the log behind what is kept, and its late outputs
        self._outputs = OutputModels(arguments.goals, arguments.output_setting)
        self._start_again()

    def refresh(self, log: Log) -> None:
        """Drop everything derived from values that were corrected or retracted since."""
        if self._seen is not None and self._seen[0] == log.revision:
            if self._seen[1] != log.late:
                self._front_cache = FrontCache()
        elif self._seen is not None:
            self._setting = self._setting.cleared()
            self._start_again()
        self._seen = log.revision, log.late

    def _start_again(self) -> None:
        """Drop everything that was learned from values."""
        self._front_cache = FrontCache()  # draws read from the last ledger, for the next one

    def setting(self, log: Log) -> ModelSetting:
        """Return what the model of a single score begins with."""
        return self._setting.with_preloaded(log.told_before_asking)

    def chance(self, log: Log) -> SuccessProbability | None:
        """Return the probability that an evaluation succeeds and keeps all limits; None if nothing speaks to it."""
        setting, outcomes = self.setting(log), log.outcomes
        return None if outcomes is None else setting.feasibility.chance(outcomes, setting.preloaded)

    def models(self, log: Log) -> Mapping[str, OutputModel]:
        """Return the model of each output with a value, as if it were the only one."""
        self.refresh(log)
        return self._outputs.all(log)

    def front_analysis(self, log: Log) -> FrontAnalysis:
        """Return what is known of the goals: the front, and the choice of a point from it."""
        models = self.models(log)  # first: it drops what is outdated
        below = set(log.told).difference(log.reached)  # the target of the fidelity
        ended = (trial for trial in log.trials if trial.status not in ("pending", "stopped"))
        trials, given = tuple(trial for trial in ended if trial.number not in below), self._arguments
        target, chance = given.space.target, self.chance(log)
        return FrontAnalysis(given.goals, target, given.seed, trials, models, chance, self._front_cache)

    def predicted(self, log: Log, row: Array, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a suggestion that was moved to a row (d,), with what is predicted there."""
        return dict(fields)

    @property
    def is_fitted(self) -> bool:
        """Whether a value can be compared with its prediction without a fit just for it."""
        return True

    def doubts(self, log: Log, trial: Trial, outputs: Collection[str]) -> Doubts:
        """Return what changes about doubtful values with the outputs that a trial was told last."""
        self.refresh(log)
        return doubts_after(log, self.judged(log, outputs), trial.number)

    def judged(self, log: Log, outputs: Collection[str]) -> Iterator[OutputValues]:
        """Yield what is judged about these outputs: each value against what was predicted before it came.

        Nothing is judged before the policy has chosen a point: then there may be many values at once.
        """
        for name in outputs if log.unchosen < len(log) else ():
            if judges(self._arguments.output_setting(name).priors) and len(log.observed_output(name)[0]) > FEWEST:
                setting, numbers, surprises = self._outputs.surprises(name, log)
                orientation = orientation_of(self._arguments.goals[name])
                yield OutputValues(name, setting, orientation, tuple(numbers), tuple(surprises))

    @abstractmethod
    def model(self, log: Log) -> Model | None:
        """Return the model of the single score after all values; None if there are several objectives."""

    @abstractmethod
    def update(self, log: Log) -> None:
        """Bring the models up to date."""

    @abstractmethod
    def best(self, log: Log) -> Trial | None:
        """Return the trial with the best value; None before the first, or if there are several objectives."""

    @abstractmethod
    def choose(self, log: Log, subspace: Subspace, *, repeats: bool) -> Suggestion:
        """Return the policy's choice."""

    @abstractmethod
    def prediction(self, log: Log, row: Array, outcome: Outcome) -> Comparison | None:
        """Predict a value before it is recorded; None if no model is there to be compared with it."""

    @abstractmethod
    def chance_to_matter(self, log: Log, trial: Trial, rivals: Array) -> float:
        """Return the probability that a trial on its way ends better than its rivals (m, d)."""

    @abstractmethod
    def ledger(self, log: Log, events: Mapping[Event, int], n_init: int) -> Ledger | FrontLedger:
        """Return the ledger. `events` come with the number of values when each first occurred."""

    @abstractmethod
    def earlier(self) -> tuple[SourceSummary, ...]:
        """Return what the last models make of each earlier study."""
