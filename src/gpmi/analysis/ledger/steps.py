"""One step of the ledger: a value, with the model's prediction of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from gpmi._support.types import Event, Point
from gpmi.trials import Origin, Trial

StepChoice: TypeAlias = Literal["explored", "exploited"]


@dataclass(frozen=True, eq=False)
class Step:
    """One value, with the model's prediction of it. Steps are in the order of the values: t = 1, 2, ...

    Predictions are None while no model is in use: with a learned prior, before the policy's first choice.
    """

    t: int
    x: Point
    y: float
    origin: Origin
    mu: float | None  # this and the next three as in `Trial`
    sd: float | None
    phi: float | None
    gamma_hat: float | None
    information: float | None  # of y about f, in nats
    surprise: float | None  # (y - mu) / sqrt(var + noise_var)
    choice: StepChoice | None  # "explored" if `Trial.explored`; None if the policy did not choose the point
    events: tuple[Event, ...]  # between this value and the next

    @staticmethod
    def of(t: int, trial: Trial, events: tuple[Event, ...]) -> Step:
        """Return the step of a trial with a value."""
        assert trial.y is not None
        choice: StepChoice | None = None if trial.explored is None else "explored" if trial.explored else "exploited"
        predicted = (trial.mu, trial.sd, trial.phi, trial.gamma_hat, trial.information, trial.surprise)
        return Step(t, trial.x, trial.y, trial.origin, *predicted, choice, events)
