"""Outcomes as a study stores them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpmi.trials.outcomes import DEFAULTS, OUTPUTS, STORED, Ending, Outcome


def outcome_to_json(outcome: Outcome, *, complete: bool = False) -> dict[str, Any]:
    """Return the fields that differ from their defaults, or all that are not None."""
    values = {name: getattr(outcome, name) for name in STORED}
    stored = {name: value for name, value in values.items() if value != DEFAULTS[name] or complete}
    if complete:  # a study without goals stores nothing about outputs
        left_out = ("y", "noise_var", "repeats", "constraints") if outcome.outputs else OUTPUTS
        stored = {name: value for name, value in stored.items() if name not in left_out}
    return {name: _plain(value) for name, value in stored.items() if value is not None}


def outcome_from_json(status: Ending, stored: Mapping[str, Any]) -> Outcome:
    """Return the validated outcome of a stored object; a missing field has its default, other keys are ignored."""
    return Outcome(status, **stored_fields(stored)).checked()


def stored_fields(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an outcome that a stored object has; a correction stores only those that change."""
    return {name: stored[name] for name in STORED if stored.get(name) is not None}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
