"""The result of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from gpmi._support.text import Line, WholePoint, cost_text, error_message, event_summary
from gpmi._support.types import Event, Point
from gpmi.analysis.front import CONFIDENCE, Chosen, FrontAnalysis
from gpmi.analysis.ledger import Ledger, forgotten_options, untaken_chance, warning_events
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.warp import IDENTITY, Warp
from gpmi.model.sources import SourceSummary
from gpmi.optimizer import Optimizer
from gpmi.policies import Guarded, Reinvest
from gpmi.space import Space, copied
from gpmi.trials import Trial
from gpmi.trials.dataframe import Printable
from gpmi.trials.goal_summary import found_lines, infeasible_note, waiting_lines
from gpmi.trials.goals import Goals
from gpmi.trials.value_goal import MAXIMISE

NO_RECOMMENDATION = "no recommendation"  # the kind of the event that says why


@dataclass(frozen=True, eq=False, repr=False)
class Result(Printable):
    """The result of a run. It prints as a summary, in a notebook with the best trials."""

    x: Point | None  # the point with the best observed value; None if nothing was evaluated
    y: float | None  # that value
    recommended: Point | None  # the point with the best posterior mean, to use when y is noisy
    trials: tuple[Trial, ...]  # every evaluation, in order
    reason: str  # why it stopped
    events: tuple[Event, ...]  # what the library did unasked
    goal: Literal["max", "min"]
    seed: int
    space: Space
    posterior: Posterior | None  # of warp(y)
    ledger: Ledger | FrontLedger | None = None  # regret, calibration, advice; of a front with several objectives
    warp: Warp = IDENTITY  # usually z = y; see `Optimizer.warp`
    goals: Goals = MAXIMISE  # of the outputs
    front_analysis: FrontAnalysis | None = None  # what is known of the goals; see `front` and `choose`
    cost: float | None = None  # of all evaluations, by the fidelity of the space; None without one
    earlier: tuple[SourceSummary, ...] = ()  # what was made of each earlier study

    @staticmethod
    def of(optimizer: Optimizer, reason: str, *, no_model: str | None = None) -> Result:
        """Return the result so far.

        If `no_model` says why there is no model, or if the model fails, nothing that needs it is filled in.
        """
        best, recommended, posterior = optimizer.best, None, None
        ledger: Ledger | FrontLedger | None = None
        failure: tuple[Event, ...] = ()
        analysis: FrontAnalysis | None = None
        alarm: tuple[Event, ...] = ()
        told = any(trial.status == "told" for trial in optimizer.trials)
        if told and no_model is None:
            try:
                analysis = optimizer.front_analysis if optimizer.goals.named else None
                if optimizer.model is not None:  # that of the single value
                    recommended, posterior = optimizer.recommend(), optimizer.posterior
                ledger = optimizer.ledger
                alarm = (*warning_events(ledger), *forgotten_options(ledger))
                is_earning = isinstance(optimizer.policy, Reinvest | Guarded)
                if is_earning and (missed := untaken_chance(ledger)) is not None:
                    alarm = (*alarm, missed)
            except Exception as error:  # the evaluations must not be lost if the model fails
                failure = (Event(NO_RECOMMENDATION, f"the model failed: {error_message(error)}"),)
        elif told and no_model is not None:
            failure = (Event(NO_RECOMMENDATION, no_model),)
        return Result(
            x=None if best is None else copied(best.x),
            y=None if best is None else best.y,
            recommended=recommended,
            trials=tuple(trial for trial in optimizer.trials if trial.status != "pending" or trial.curve),
            reason=reason,
            events=optimizer.events + alarm + failure,  # includes those of the last model
            goal=optimizer.goal,
            seed=optimizer.seed,
            space=optimizer.space,
            posterior=posterior,
            ledger=ledger,
            warp=IDENTITY if posterior is None else optimizer.warp,
            goals=optimizer.goals,
            front_analysis=analysis,
            cost=None if optimizer.space.fidelity is None else optimizer.spent,
            earlier=optimizer.earlier,
        )

    @property
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other trial beats in every objective, in a run with goals; see `FrontAnalysis.front`."""
        return self._analysis.front

    def choose(
        self,
        where: Mapping[str, Any] | None = None,
        confidence: float = CONFIDENCE,
        *,
        fixed: Any = None,
        **objective: str,
    ) -> Chosen:
        """Return the best predicted point that meets conditions, in a run with goals; see `FrontAnalysis.choose`."""
        return self._analysis.choose(where, confidence, fixed=fixed, **objective)

    @property
    def _analysis(self) -> FrontAnalysis:
        if self.front_analysis is None:
            self.goals.check_named("there is no front")
            raise ValueError("there is no model, so there is no front; r.events says why")
        return self.front_analysis

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write a report to a self-contained HTML file (docs/report.md) and return its path."""
        from gpmi.views.html import write  # only for a report

        return write(self, path, title)

    def all_trials(self) -> tuple[Trial, ...]:
        return self.trials

    def shown_front(self) -> tuple[Trial, ...]:
        return super().shown_front() if self.ledger is None else self.ledger.front

    def summary_lines(self) -> list[Line]:
        goals, count = self.goals, Counter(trial.status for trial in self.trials)
        others = [
            f"{count[status]} {status}" for status in ("stopped", "failed", "rejected", "retracted") if count[status]
        ]
        recommended = self._recommended_lines()
        # Why there is no recommended point is said in its own line.
        said = NO_RECOMMENDATION if recommended else None
        other_events = [(event.kind, event.message) for event in self.events if event.kind != said]
        note = ", by the values told" if self.ledger is None else ""
        best = found_lines(goals, self.trials, self.x, self.y, self.shown_front(), note)
        others, waiting = [*others, *infeasible_note(self.trials)], waiting_lines(self.trials, goals)
        evaluations = f"{len(self.trials) - count['rejected']}"
        spent = "" if self.cost is None else f"; cost {cost_text(self.cost)}"
        return [
            *best,
            *recommended,
            ("evaluations", evaluations + (f", of which {', '.join(others)}" if others else "") + spent),
            *waiting,
            ("stopped", self.reason),
            ("seed", str(self.seed)),
            *(("earlier", str(summary)) for summary in self.earlier),
            ("events", event_summary(other_events)),
        ]

    def _recommended_lines(self) -> list[Line]:
        """Return the line with the recommended point, or why there is none; no line for several objectives."""
        if self.goals.single is None:
            return []
        reasons = [event.message for event in self.events if event.kind == NO_RECOMMENDATION]
        return [("recommended", f"not computed; {reasons[0]}" if reasons else WholePoint.of(self.recommended))]
