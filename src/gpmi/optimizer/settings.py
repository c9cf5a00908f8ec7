"""Suggestions at settings that instruments have: where parameters have steps, the nearest setting takes its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpmi._support.types import Array, Event
from gpmi.optimizer.suggestion import Suggestion
from gpmi.space import Space
from gpmi.trials import Log

# The fields of a suggestion that was moved to a row (d,), with what is predicted there.
Predicted = Callable[[Log, Array, Mapping[str, Any]], dict[str, Any]]


def at_settings(
    choice: Suggestion, log: Log, space: Space, predicted: Predicted
) -> tuple[Suggestion, tuple[Event, ...]]:
    """Return a suggestion at settings near it, without a trial if possible, and what to know of them.

    A point that has a trial comes rather than one that was rejected.
    """
    row, events = space.encode(choice.x), list[Event]()
    rejected = {log.row(number).tobytes() for number in log.rejected}
    near, is_found = space.settable(row, rejected.union(log.places))
    if near.tobytes() in rejected:
        near, is_found = space.settable(row, rejected)
    if near.tobytes() in rejected:
        events.append(Event("rejected again", f"all settings near {choice.x} were rejected; one of them was asked"))
    if not is_found:
        events.append(Event("no setting", f"no settings near {choice.x} keep the constraints; check the steps"))
    if np.array_equal(near, row):
        return choice, tuple(events)
    if near.tobytes() in log.places:
        message = "all settings near a suggestion have trials, so one of them was asked again"
        events.append(Event("repeat", message))
    fields = predicted(log, near, choice.fields)
    return choice._replace(x=space.decode(near), fields=fields), tuple(events)
