"""The ledger's advice, in a word and a sentence: stop, go on, or distrust the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MORE, UNLIKELY = 10, 0.05  # stop if MORE evaluations gain anything with a probability of at most UNLIKELY


@dataclass(frozen=True)
class Advice:
    """What to do next, and why."""

    what: Literal["stop", "go on", "distrust"]
    why: str
