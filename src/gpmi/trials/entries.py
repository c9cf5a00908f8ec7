"""The entries of a log in memory: what happened to which trial, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from gpmi.trials.outcomes import Outcome
from gpmi.trials.trial import Trial

EntryKind: TypeAlias = Literal[
    "added",
    "moved",
    "reported",
    "told",
    "stopped",
    "failed",
    "rejected",
    "forgotten",
    "corrected",
    "retracted",
    "confirmed",
]


class Entry(NamedTuple):
    """One entry of the log: what happened to which trial, and when."""

    kind: EntryKind
    number: int  # of the trial
    time: float  # seconds since 1970
    outcome: Outcome | None = None  # what it was told, or corrected to
    step: int | None = None  # at which a value was reported
    # What was decided with a value about values that do not fit: all doubts of each trial about which some changed.
    doubts: Mapping[int, Mapping[str, str]] | None = None


class Reported(NamedTuple):
    """What became of a value of a curve: its trial, and whether the evaluation should go on."""

    trial: Trial
    goes_on: bool
