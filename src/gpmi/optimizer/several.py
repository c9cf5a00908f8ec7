"""The strategy of a run with several objectives, or with a target: a model of each output, and a front."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from gpmi._support.types import Array, Event
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.model.outputs import OutputModel, OutputModels
from gpmi.model.sources import SourceSummary
from gpmi.optimizer.arguments import Arguments
from gpmi.optimizer.curves import probability_to_join_front
from gpmi.optimizer.levels import at_best_level, gain_of_outputs
from gpmi.optimizer.objectives import from_objectives
from gpmi.optimizer.rivals import rivals_of
from gpmi.optimizer.strategy import Comparison, Note, Strategy
from gpmi.optimizer.suggestion import Suggestion
from gpmi.policies.objectives import JointPolicy
from gpmi.search.subspaces import Subspace
from gpmi.trials import Log, Outcome, Trial


class SeveralObjectives(Strategy):
    """No trial is the best: the objectives are traded off, and each output has its own model."""

    def __init__(self, arguments: Arguments, note: Note) -> None:
        super().__init__(arguments, note)
        rivals = rivals_of(arguments)
        self._rivals = [(rival, OutputModels(arguments.goals, rival.output_setting)) for rival in rivals]

    def model(self, log: Log) -> None:
        return None

    def best(self, log: Log) -> None:
        return None

    def choose(self, log: Log, subspace: Subspace, *, repeats: bool) -> Suggestion:
        self.refresh(log)
        models = self._outputs.objectives(log)
        if self._arguments.earlier.studies:
            self._note(*(event for output in models.values() for event in output.model.prior.events))
        for rival, rival_models in self._rivals:
            if rival.leads(log):
                self._note(*(() if rival.event is None else (rival.event,)))
                part = rival.part(log)
                return self._choice(rival_models.objectives(part), log, part, subspace, repeats)
        suggestion = self._choice(models, log, log, subspace, repeats)
        if self._arguments.levels is None:
            return suggestion
        posteriors = [models[name].model.posterior for name in self._arguments.goals.objectives]
        pending = np.array([log.rows[number] for number in log.pending])
        anticipated = [posterior.anticipate(pending) for posterior in posteriors] if len(pending) else posteriors
        return at_best_level(suggestion, anticipated, log, self._arguments.space)

    def _choice(
        self, models: Mapping[str, OutputModel], log: Log, part: Log, subspace: Subspace, repeats: bool
    ) -> Suggestion:
        """Return the policy's choice by the models of a part of the log."""
        goals, policy, seed = self._arguments.goals, self._arguments.policy, self._arguments.seed
        assert isinstance(policy, JointPolicy)
        limits: dict[str, Any] = {"budget": log.horizon, "repeats": repeats}
        suggestion = from_objectives(models, goals, policy, part, subspace, self.chance(log), seed, **limits)
        self._note(*suggestion.events)
        return suggestion

    def prediction(self, log: Log, row: Array, outcome: Outcome) -> Comparison | None:
        """Return how much better the models of all levels predict the outputs of a new value at the target."""
        for rival, rival_models in self._rivals:
            if not rival.is_judged or outcome.status != "told":
                continue
            if not log.exactness.is_target(row) or len(log.reached) < 2:
                continue
            self.refresh(log)
            with suppress(Exception):  # the value is recorded even if a model fails; the next `ask` raises the error
                alone = rival_models.objectives(rival.part(log))
                gain = gain_of_outputs(self._outputs.objectives(log), alone, row, outcome)
                return None if gain is None else partial(_compared, gain)
        return None

    def update(self, log: Log) -> None:
        self.models(log)

    def chance_to_matter(self, log: Log, trial: Trial, rivals: Array) -> float:
        self.refresh(log)
        models, seed = self._outputs.objectives(log), (self._arguments.seed, len(log.told), trial.number)
        return probability_to_join_front(models, self._arguments.goals, log.row(trial.number), rivals, seed)

    def ledger(self, log: Log, events: Mapping[Event, int], n_init: int) -> FrontLedger:
        self.refresh(log)
        return FrontLedger(self.front_analysis(log), n_init)

    def earlier(self) -> tuple[SourceSummary, ...]:
        return self._arguments.earlier.summaries(self._outputs.last())


def _compared(gain: float, log: Log, trial: Trial) -> dict[str, Any]:
    return {"trust": gain}
