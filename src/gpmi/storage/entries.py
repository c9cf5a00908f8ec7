"""Stored entries: one row of a study's log each, with a checksum that covers it and all entries before it.

The functions below turn an entry of the log in memory into the content of a stored one. `gpmi.storage.replayed` is the
way back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, TypeAlias

from gpmi.space import Space
from gpmi.storage.errors import StudyError
from gpmi.storage.serialization import plain, point_to_json, text_of
from gpmi.storage.stored_outcomes import outcome_to_json
from gpmi.trials import Entry, Outcome, Trial
from gpmi.trials.trial import PREDICTIONS

Kind: TypeAlias = Literal[
    "created",
    "budget",
    "asked",
    "leased",
    "moved",
    "noted",
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


@dataclass(frozen=True)
class StoredEntry:
    """A row of the table of events."""

    seq: int  # its place in the log of its study, from 0, without gaps
    kind: Kind
    body: str  # JSON
    time: float  # by the clock of the database, in seconds since 1970
    worker: str  # who wrote it
    token: str  # of the delivery: a delivery that arrives twice is stored once
    checksum: str

    @property
    def content(self) -> dict[str, Any]:
        """The body as an object."""
        try:
            content = json.loads(self.body)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise StudyError(
                f"entry {self.seq} of the log cannot be read, so the file was damaged or changed by hand; "
                "use an intact copy, or rescue the readable entries with a database tool"
            )
        return content

    def follows(self, before: str) -> bool:
        """Whether its checksum fits its content and `before`, the checksum of the previous entry."""
        return self.checksum == checksum(before, self.seq, self.kind, self.body, self.time, self.worker, self.token)


def next_entry(
    before: str, seq: int, kind: Kind, content: Mapping[str, Any], *, time: float, worker: str, token: str
) -> StoredEntry:
    """Return the entry that follows one with the checksum `before`."""
    body = text_of(content)
    return StoredEntry(seq, kind, body, time, worker, token, checksum(before, seq, kind, body, time, worker, token))


def checksum(before: str, seq: int, kind: str, body: str, time: float, worker: str, token: str) -> str:
    """Return the first 128 bits of SHA-256 over the previous checksum and the content: any change shows in it."""
    whole = text_of([before, seq, kind, body, float(time).hex(), worker, token])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


# Contents


def content_of(space: Space, entry: Entry, trial: Trial | None, *, is_new: bool) -> tuple[Kind, dict[str, Any]]:
    """Return the kind and content that store an entry.

    `is_new`: the entry also creates its trial, so it must include the point.
    """
    content: dict[str, Any] = {"number": entry.number}
    if entry.kind == "added":
        assert trial is not None
        return "asked", content | _asked(space, trial)
    if (
        entry.outcome is not None
    ):  # a correction stores all fields: a field now at its default may have had another value before
        content |= outcome_to_json(entry.outcome, complete=entry.kind == "corrected")
    if is_new and trial is not None:
        content["x"] = point_to_json(space, trial.x)
    if entry.kind == "moved" and trial is not None:
        content["x"] = point_to_json(space, trial.x)
    if entry.kind == "told" and trial is not None:
        content["said"] = predictions_of(trial)
    if entry.doubts:
        content["doubts"] = {str(number): dict(texts) for number, texts in entry.doubts.items()}
    return entry.kind, content


def content_of_report(trial: Trial, step: int, outcome: Outcome) -> dict[str, Any]:
    """Return the content that stores a value of a curve, and why its trial was stopped there if it was."""
    content = {"number": trial.number, "step": step, **outcome_to_json(outcome), "by": own_version()}
    return content | {"stopped": trial.why} if trial.status == "stopped" else content


def _asked(space: Space, trial: Trial) -> dict[str, Any]:
    asked = {"x": point_to_json(space, trial.x), "origin": trial.origin}
    if trial.fixed is not None:
        asked["fixed"] = [[key, plain("fixed", value)] for key, value in trial.fixed.items()]
    return {**asked, "said": predictions_of(trial), "by": own_version()}


def predictions_of(trial: Trial) -> dict[str, Any]:
    """Return the fields of a trial that a model has filled; each note of the policy is stored under its own name."""
    values = {name: getattr(trial, name) for name in PREDICTIONS if name != "policy_notes"}
    values |= trial.policy_notes or {}
    return {name: plain(name, value) for name, value in values.items() if value is not None}


@lru_cache
def own_version() -> str:
    """Return the version of this gpmi. The version that made a suggestion can compute it again."""
    with suppress(PackageNotFoundError):
        return f"gpmi {version('gpmi')}"
    return "gpmi"
