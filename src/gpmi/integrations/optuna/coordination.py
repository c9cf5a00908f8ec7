"""How the workers of a study coordinate without a server: each publishes the point of its trial once it is chosen.

The payload is kept in system attributes of the trial. A worker waits until every trial that was started earlier has
its point. So it knows these points, and no two workers choose the same point at the same time.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial

KEY = "gpmi:point"
PART = 1000  # characters of an attribute: some databases hold 2,045, and escaping doubles quotes
# Seconds without progress after which the first earlier trial is given up: many times what a choice takes. Our choice.
PATIENCE = 30.0
LATEST = 300.0  # seconds after which a trial without a point will not get one any more; our choice
PAUSES = (0.01, 0.2)  # seconds between polls, first and longest: on SQLite, readers block writers


def publish(storage: BaseStorage, trial_id: int, payload: Mapping[str, Any]) -> None:
    """Write the payload of a trial, so that others see all of it or nothing."""
    text = json.dumps(payload)
    parts = [text[i : i + PART] for i in range(0, len(text), PART)]
    for i in range(len(parts) - 1, 0, -1):
        storage.set_trial_system_attr(trial_id, f"{KEY}:{i}", parts[i])
    storage.set_trial_system_attr(trial_id, KEY, [len(parts), parts[0]])


def published(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the payload in these system attributes; None if there is none."""
    if KEY not in attributes:
        return None
    count, first = attributes[KEY]
    payload: dict[str, Any] = json.loads("".join([first, *(attributes[f"{KEY}:{i}"] for i in range(1, count))]))
    return payload


def await_earlier(running: Callable[[], Sequence[FrozenTrial]], number: int, given_up: set[int]) -> None:
    """Wait until every running trial with a lower number has its point.

    After PATIENCE seconds without progress, the first of them is added to `given_up`: its worker has died, or uses
    another sampler. They are given up one at a time, so that workers waiting for the same trial do not all continue at
    once. A trial that has parameters got them from elsewhere.
    """
    pause, last, since = PAUSES[0], set[int](), time.monotonic()
    while waiting := {trial.number for trial in running() if trial.number < number and _undecided(trial)} - given_up:
        if waiting != last:
            last, since = waiting, time.monotonic()
        elif time.monotonic() - since > PATIENCE:
            given_up.add(min(waiting))
            continue
        time.sleep(pause * (0.5 + random.random()))
        pause = min(1.5 * pause, PAUSES[1])


def is_shared(trial: FrozenTrial, x: Mapping[str, float], running: Sequence[FrozenTrial]) -> bool:
    """Whether another running trial has published the same point."""
    others = (published(other.system_attrs) for other in running if other.number != trial.number)
    return bool(x) and any(payload is not None and payload["x"] == x for payload in others)


def _undecided(trial: FrozenTrial) -> bool:
    return KEY not in trial.system_attrs and not trial.params and seconds_since(trial.datetime_start) < LATEST


def seconds_since(moment: datetime | None) -> float:
    """Return the seconds since a time noted by Optuna, which is local time; 0 for None."""
    return 0.0 if moment is None else (datetime.now() - moment).total_seconds()
