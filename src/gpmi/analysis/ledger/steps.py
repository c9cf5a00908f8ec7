"""One step of the account of a run: a value told, with what was predicted for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from gpmi._support.types import Event, Point
from gpmi.trials import Origin, Trial

Choice: TypeAlias = Literal["explored", "exploited"]


@dataclass(frozen=True, eq=False)
class Step:
    """One value told, with what the model predicted for it. Steps are in the order of the values: t = 1, 2, ...

    Predictions are None where no model was in use yet: with a learned prior, before the policy's first choice.
    """

    t: int
    x: Point
    y: float
    origin: Origin
    mu: float | None  # this and the next three are those of the `Trial`
    sd: float | None
    phi: float | None
    gamma_hat: float | None
    information: float | None  # nats that y told about f
    surprise: float | None  # (y - mu) / sqrt(var + noise_var)
    choice: Choice | None  # "explored" if `Trial.explored`; None where the policy did not choose the point
    events: tuple[Event, ...]  # what the library did without being asked, after this value and before the next

    @staticmethod
    def of(t: int, trial: Trial, events: tuple[Event, ...]) -> Step:
        """What a told trial says."""
        assert trial.y is not None
        choice: Choice | None = None if trial.explored is None else "explored" if trial.explored else "exploited"
        said = (trial.mu, trial.sd, trial.phi, trial.gamma_hat, trial.information, trial.surprise)
        return Step(t, trial.x, trial.y, trial.origin, *said, choice, events)
