"""The strategy of a run with a single score: one model of it, and the policy's choice under that model or a rival's."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpmi._support.types import Array, Event, Observations
from gpmi.analysis.ledger.ledger import Ledger, LedgerCache
from gpmi.model.model import Model, PendingPosteriors, information_of
from gpmi.model.sources import SourceSummary
from gpmi.optimizer.arguments import Arguments
from gpmi.optimizer.curves import probability_to_win
from gpmi.optimizer.doubts import OutputValues, judges
from gpmi.optimizer.escape import UNBOUNDED_MU, UNBOUNDED_SD
from gpmi.optimizer.levels import RivalModel, at_best_level
from gpmi.optimizer.rivals import Rival, rivals_of
from gpmi.optimizer.strategy import Comparison, Note, Strategy
from gpmi.optimizer.suggestion import Suggestion, from_design, from_policy, predicted_fields
from gpmi.policies import Policy
from gpmi.search.subspaces import Subspace
from gpmi.trials import Log, Outcome, Trial
from gpmi.trials.target import values_at_target


class SingleScore(Strategy):
    """One value is maximised or minimised: y, or the output of the only objective."""

    def __init__(self, arguments: Arguments, note: Note) -> None:
        self._rivals, self._orientation = rivals_of(arguments), arguments.orientation
        self._output = arguments.goals.single
        super().__init__(arguments, note)

    def _start_again(self) -> None:
        super()._start_again()
        self._pending_posteriors = PendingPosteriors()
        self._ledger_cache = LedgerCache({}, {})  # draws read from the last ledger, for the next one
        self._last: Model | None = None  # after the values told when it was last used
        # Behind the policy's last choice, plus the values told since; `surprise` is measured against it.
        self._at_choice: Model | None = None
        settings = [replace(self._setting, priors=rival.priors.cleared()) for rival in self._rivals]
        self._rival_models = [RivalModel(setting, self._orientation) for setting in settings]

    @property
    def _policy(self) -> Policy:
        return self._arguments.policy

    @property
    def is_fitted(self) -> bool:
        return self._at_choice is not None

    def _observed(self, log: Log) -> Observations:
        """Return the values, oriented, with their coordinates and noise."""
        observed, orientation = log.observed, self._orientation
        return replace(observed, y=orientation.values(observed.y)) if orientation.mirrors else observed

    def model(self, log: Log) -> Model:
        self.refresh(log)
        model = Model.after(self.setting(log), self._observed(log), self._at_choice, self._last)
        self._last = model = model.with_outcomes(log.outcomes)
        self._note(*model.prior.events)
        if model.warp.bends:
            self._note(Event("transformed", f"the model is that of {self._orientation.warp(model.warp)}"))
        self._note(*model.posterior.events, *model.events)
        return model

    def best(self, log: Log) -> Trial | None:
        reached = [number for number in log.reached if log[number].feasible]
        values = [self._orientation.value(log[number].y or 0.0) for number in reached]
        return log[reached[int(np.argmax(values))]] if reached else None

    # Choice

    def choose(self, log: Log, subspace: Subspace, *, repeats: bool) -> Suggestion:
        self._at_choice = model = self.model(log)
        limits: dict[str, Any] = {"budget": log.horizon, "repeats": repeats}
        for rival, rival_model in zip(self._rivals, self._rival_models, strict=True):
            if rival.leads(log):
                return self._noted(self._choose_by_rival(rival, rival_model, log, subspace, limits))
        pending = self._pending_posteriors
        suggestion = from_policy(model, self._policy, log, subspace, pending, self._orientation, **limits)
        if self._arguments.levels is not None:
            suggestion = at_best_level(
                suggestion, [pending.extend(0, model.posterior, log)], log, self._arguments.space
            )
        return self._noted(suggestion)

    def _choose_by_rival(
        self, rival: Rival, rival_model: RivalModel, log: Log, subspace: Subspace, limits: Mapping[str, Any]
    ) -> Suggestion:
        part = rival.part(log)
        if rival.event is not None:
            self._note(rival.event)
        if rival.redesigns:
            design = from_design(subspace, self._setting, part, self._arguments.n_init, anew=True)
            if design is not None:
                return design
        model = rival_model.after(part)
        return from_policy(model, self._policy, part, subspace, PendingPosteriors(), self._orientation, **limits)

    def _noted(self, suggestion: Suggestion) -> Suggestion:
        self._note(*suggestion.events)
        return suggestion

    def predicted(self, log: Log, row: Array, fields: Mapping[str, Any]) -> dict[str, Any]:
        model = self._at_choice
        if fields.get("mu") is None or model is None:
            return dict(fields)
        (mu,), (var,) = self._pending_posteriors.extend(0, model.posterior, log)(row[None])
        notes = {k: v for k, v in (fields["policy_notes"] or {}).items() if k not in (UNBOUNDED_MU, UNBOUNDED_SD)}
        return {**fields, **predicted_fields(model, self._orientation, float(mu), float(var), notes)}

    # Comparison of a value with its prediction

    def prediction(self, log: Log, row: Array, outcome: Outcome) -> Comparison | None:
        """Return how to compare the next value; None if a learned prior has not been used yet."""
        if outcome.y is None and self._output not in outcome.outputs:
            return None
        self.refresh(log)
        if not (self._setting.priors.is_fixed or (log.unchosen < len(log) and log.told)):
            return None
        with suppress(Exception):  # the value must be recorded even if the model fails; the next `ask` raises the error
            before = self.model(log) if self._at_choice is None else self._at_choice.extended(self._observed(log))
            return partial(self._compared, before)
        return None

    def _compared(self, before: Model, log: Log, trial: Trial) -> dict[str, Any]:
        """Return how the new value compares with its prediction. O(n^2), which the next `ask` then need not do."""
        observed = self._observed(log)
        try:
            model = before.extended(observed)
        except Exception:  # as above
            return {}
        self._at_choice = model
        mu, var, surprise = model.prediction_of_last(before, observed)
        fields: dict[str, float] = {}
        if trial.mu is None:
            median, fields["sd"] = model.stated(mu, math.sqrt(var))
            fields["mu"] = self._orientation.value(median)
        fields["surprise"] = self._orientation.value(surprise)
        for rival, rival_model in zip(self._rivals, self._rival_models, strict=True):
            if rival.is_judged and (gain := rival_model.gain(before, trial, rival.part(log))) is not None:
                fields["trust"] = gain
        fields["information"] = information_of(var, float(model.posterior.noise[-1]))
        return fields

    def judged(self, log: Log, outputs: Collection[str]) -> Iterator[OutputValues]:
        """Yield what is judged: the score by the model that chose the last point, and other outputs by theirs."""
        score, model = self._output, self._at_choice
        yield from super().judged(log, [name for name in outputs if name != score])
        if (
            score is not None
            and score in outputs
            and model is not None
            and model.n == len(log.observed)
            and judges(self._setting.priors)
        ):
            numbers, ahead = tuple(log.observed_numbers), model.posterior.ahead.surprise.tolist()
            recorded = [log[number].surprise for number in numbers]  # a later prior may have bent to a wrong value
            surprises = [there if then is None else then for then, there in zip(recorded, ahead, strict=True)]
            yield OutputValues(score, self.setting(log), self._orientation, numbers, tuple(surprises))

    def chance_to_matter(self, log: Log, trial: Trial, rivals: Array) -> float:
        return probability_to_win(self.model(log), log.row(trial.number), rivals)

    # Reading

    def update(self, log: Log) -> None:
        if log.told:
            self.model(log)

    def ledger(self, log: Log, events: Mapping[Event, int], n_init: int) -> Ledger:
        self.refresh(log)
        return Ledger(
            trials=tuple(log[number] for number in log.reached),
            **values_at_target(log),
            outcomes=log.outcomes,
            failures=tuple(log[number] for number in log.failed),
            events=tuple((told, event) for event, told in events.items()),
            orientation=self._orientation,
            setting=self.setting(log),
            earlier=(self._at_choice, self._last),
            cache=self._ledger_cache,
            doubtful=tuple(trial for trial in log.trials if trial.doubt is not None),
        )

    def earlier(self) -> tuple[SourceSummary, ...]:
        return self._arguments.earlier.summaries({self._arguments.goals.single or "": self._last})
