"""What the workers of a study tell each other, without a server: the point of each trial, as soon as it is chosen.

It stands in system attributes of the trial. A worker chooses the point of its trial when all that were begun before it
have theirs, so that it knows them, and no two choose the same at the same time.
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
PART = 1000  # characters of one attribute: some databases hold 2,045, and quotes may become two of them
PATIENCE = (
    30.0  # seconds after which the first of the earlier trials is given up; our choice: many times what one takes
)
LATEST = 300.0  # a trial that was begun so many seconds ago and has no point will not have one; our choice
PAUSES = (0.01, 0.2)  # seconds between two looks, from the first to the last: on SQLite those who look keep others off


def publish(storage: BaseStorage, trial_id: int, said: Mapping[str, Any]) -> None:
    """Write what is said of a trial; others see all of it or nothing."""
    text = json.dumps(said)
    parts = [text[i : i + PART] for i in range(0, len(text), PART)]
    for i in range(len(parts) - 1, 0, -1):
        storage.set_trial_system_attr(trial_id, f"{KEY}:{i}", parts[i])
    storage.set_trial_system_attr(trial_id, KEY, [len(parts), parts[0]])


def published(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was said of the trial with these system attributes; None if nothing was."""
    if KEY not in attributes:
        return None
    count, first = attributes[KEY]
    said: dict[str, Any] = json.loads("".join([first, *(attributes[f"{KEY}:{i}"] for i in range(1, count))]))
    return said


def await_earlier(running: Callable[[], Sequence[FrozenTrial]], number: int, given_up: set[int]) -> None:
    """Wait until every running trial with a lower number has its point.

    After PATIENCE without any progress the first of them is `given_up` for ever: its worker has died, or has another
    sampler. One after the other, so that those who wait for the same one do not go on at the same moment. A trial that
    has parameters has got them without us.
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
    """Whether another running trial has published this very point."""
    others = (published(other.system_attrs) for other in running if other.number != trial.number)
    return bool(x) and any(said is not None and said["x"] == x for said in others)


def _undecided(trial: FrozenTrial) -> bool:
    return KEY not in trial.system_attrs and not trial.params and seconds_since(trial.datetime_start) < LATEST


def seconds_since(moment: datetime | None) -> float:
    """The seconds since a moment as Optuna notes it, in local time; 0 if it has not come."""
    return 0.0 if moment is None else (datetime.now() - moment).total_seconds()
