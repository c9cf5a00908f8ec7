"""What a fidelity adds to pages and to the API: curves, trials that were stopped on the way, levels or steps.

`evaluations_of` decides once, when a study is opened. Without a fidelity, each trial is evaluated to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gpmi.serve.output_fields import Results
from gpmi.space import FidelityColumn, Options, Space, Steps
from gpmi.trials import Trial


class Evaluations:
    """Trials that are evaluated to their end."""

    statuses: ClassVar[tuple[str, ...]] = ("told", "pending", "failed", "rejected", "retracted")

    def study_json(self) -> dict[str, Any]:
        """Return what the JSON of a study has about its fidelity."""
        return {}

    def trial_json(self, trial: Trial, results: Results) -> dict[str, Any]:
        """Return what the JSON of a trial has about its way to the target of the fidelity."""
        return {}


@dataclass(frozen=True)
class PartialEvaluations(Evaluations):
    """Trials that are evaluated at levels, or step by step."""

    fidelity: FidelityColumn

    statuses: ClassVar[tuple[str, ...]] = ("told", "pending", "stopped", "failed", "rejected", "retracted")

    def study_json(self) -> dict[str, Any]:
        """Return the name of the fidelity, and its levels with their costs or its steps."""
        about, name = self.fidelity.fidelity, self.fidelity.name
        match about.domain:
            case Steps(first, last):
                return {"fidelity": {"name": name, "first": first, "last": last}}
            case Options(labels):
                costs = [None if about.learns_costs else about.cost_of(label) for label in labels]
                levels = [{"level": label, "cost": cost} for label, cost in zip(labels, costs, strict=True)]
                return {"fidelity": {"name": name, "levels": levels}}
        raise AssertionError(about)

    def trial_json(self, trial: Trial, results: Results) -> dict[str, Any]:
        return {"curve": [{"step": report.step, **results.measured_json(report.y)} for report in trial.curve]}


def evaluations_of(space: Space) -> Evaluations:
    """Return how the trials of a space are evaluated."""
    return Evaluations() if space.fidelity is None else PartialEvaluations(space.fidelity)
