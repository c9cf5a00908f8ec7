"""What an answer means: that of a pending trial, of one that has an outcome already, or of a point nobody asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpmi._support.types import Point
from gpmi.space import Space
from gpmi.storage.entries import Entry
from gpmi.storage.replayed import Mirror
from gpmi.storage.serialization import point_from_json, point_to_json
from gpmi.trials import Trial

NOT_SAID = ("kind", "token", "worker", "at")


def written(space: Space, x: Point) -> Any:
    """A point that somebody tells, checked, as JSON."""
    space.encode(x)
    return point_to_json(space, x)


def answer(optimizer: Mirror, delivery: dict[str, Any]) -> dict[str, Any]:
    """What the entry says that is written for a delivery.

    A value of a trial that is no longer pending is an observation at its point (`of` says which trial it was meant
    for). A failure of such a trial changes nothing and is noted as late. Where the log was replaced by another copy,
    which has no such trial, or another one with its number, the point that was evaluated is a trial of its own.
    """
    said = {name: value for name, value in delivery.items() if name not in NOT_SAID}
    number = delivery.get("number")
    if number is None:
        return {**said, "number": optimizer.next_number}
    point = optimizer.point_of(number)
    if "at" in delivery and (point is None or point_to_json(optimizer.space, point) != delivery["at"]):
        return {**said, "number": optimizer.next_number, "of": number, "x": delivery["at"]}
    if point is None:
        raise ValueError(f"trial is {number}: there is no such trial")
    if optimizer.is_pending(number):
        return said
    if delivery["kind"] == "failed":
        return {**said, "late": True}
    return {**said, "number": optimizer.next_number, "of": number, "x": point_to_json(optimizer.space, point)}


def is_of_another(before: Entry, delivery: dict[str, Any]) -> bool:
    """Whether what is in the log comes from another worker, and says something else: then both count."""
    return before.worker != delivery.get("worker") and not _says_the_same(before, delivery)


def _says_the_same(before: Entry, delivery: dict[str, Any]) -> bool:
    return before.kind == delivery["kind"] and before.said.get("y") == delivery.get("y")


def repeated(optimizer: Mirror, before: Entry, delivery: dict[str, Any]) -> Trial:
    """The trial of a delivery that is in the log already; a ValueError if it said something else."""
    said = before.said
    if not _says_the_same(before, delivery):
        number = said.get("of", said["number"])
        was = f"the value {said['y']!r}" if before.kind == "told" else "a failure"
        raise ValueError(
            f"trial is {number}, for which this worker told {was} already; correct({number}, y) replaces a value, and "
            "tell(x, y) with its point adds another observation"
        )
    return settled(optimizer, said)


def settled(optimizer: Mirror, said: dict[str, Any]) -> Trial:
    """The trial that an entry is about."""
    number = int(said["number"])
    if number not in optimizer.forgotten:
        return optimizer.at(number)
    return Trial(number, optimizer.forgotten[number], None, "retracted", "user")


def foreseen(optimizer: Mirror, delivery: dict[str, Any]) -> Trial:
    """The trial as it will be once a delivery that waits has arrived."""
    status: Any = delivery["kind"]
    if "number" not in delivery:
        x = optimizer.space.freeze(optimizer.space.canonical(point_from_json(delivery["x"])))
        return Trial(optimizer.next_number, x, delivery["y"], "told", "user")
    known = settled(optimizer, delivery)
    return replace(known, y=delivery.get("y"), status=status) if known.status == "pending" else known
