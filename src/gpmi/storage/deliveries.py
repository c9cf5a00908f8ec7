"""Deliveries: values, stops and failures on their way into the log of a study, each stored exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gpmi._support import checks
from gpmi.storage.entries import StoredEntry
from gpmi.storage.stored_outcomes import outcome_from_json, outcome_to_json
from gpmi.trials import Outcome
from gpmi.trials.outcomes import OUTPUTS
from gpmi.trials.outputs import Outputs


@dataclass(frozen=True)
class Delivery:
    """A value, a stop or a failure of a trial, a value of its curve, or an observation that nobody had asked for."""

    outcome: Outcome
    token: str  # the same for each attempt to deliver it
    worker: str  # who delivers it
    number: int | None  # of the trial; None for an observation at a point
    point: Any  # the evaluated point as JSON; None if an earlier version did not write it
    step: int | None = None  # of a value on the way to the target of the fidelity

    def to_json(self) -> dict[str, Any]:
        """Return the delivery as the outbox stores it."""
        where = {"x": self.point} if self.number is None else {"number": self.number, "at": self.point}
        kind: dict[str, Any] = (
            {"kind": self.outcome.status} if self.step is None else {"kind": "reported", "step": self.step}
        )
        return {**outcome_to_json(self.outcome), **kind, "token": self.token, "worker": self.worker, **where}

    @staticmethod
    def from_json(stored: dict[str, Any]) -> Delivery:
        """Read a delivery from the outbox."""
        kind, number = stored["kind"], stored.get("number")
        if kind not in ("told", "stopped", "failed", "reported"):
            raise ValueError(f"it is of the kind {kind!r}; a delivery is told, stopped, failed or reported")
        point, sender = stored["x"] if number is None else stored.get("at"), stored.get("worker", "")
        step = checks.whole("step", stored["step"], 1) if kind == "reported" else None
        outcome = outcome_from_json("told" if kind == "reported" else kind, stored)
        return Delivery(outcome, stored["token"], sender, number, point, step)

    def equals(self, entry: StoredEntry) -> bool:
        """Whether an entry has the same value, or is a failure as well."""
        stored = entry.content
        same = stored.get("y") == self.outcome.y and stored.get("outputs", {}) == dict(self.outcome.outputs)
        kind = self.outcome.status if self.step is None else "reported"
        return entry.kind == kind and same

    def told_before(self, entries: Iterable[StoredEntry]) -> ToldBefore:
        """Return what these entries say of the same trial. Refuse the delivery if its worker has said otherwise."""
        places, mine, others = list[int](), dict[str, float](), dict[str, float]()
        about = [entry for entry in entries if self._is_about(entry)]
        changes = [i for i, entry in enumerate(about) if entry.kind in ("corrected", "retracted")]
        for i, entry in enumerate(about):
            content, is_current = entry.content, not changes or i > changes[-1]
            outputs = content.get("outputs", {}) if entry.kind == "told" else {}
            if entry.kind in ("corrected", "retracted"):
                continue
            if entry.worker != self.worker:
                others |= outputs if content["number"] == self.number and is_current else {}
                continue
            if not is_current:  # it was corrected since: only the same value once more is known
                outputs = {name: y for name, y in outputs.items() if self.outcome.outputs.get(name) == y}
            if outputs or is_current:
                places.append(content["number"])
            mine |= outputs
            if is_current and (entry.kind == "failed" or _differ(outputs, self.outcome.outputs)):
                self.check_repetition(entry)
        return ToldBefore(tuple(places), mine, others)

    def _is_about(self, entry: StoredEntry) -> bool:
        """Whether an entry is about the outcome of the same trial."""
        if entry.kind not in ("told", "failed", "corrected", "retracted"):
            return False
        content = entry.content
        number: int = content.get("of", content["number"])
        return number == self.number and not content.get("late")

    def without(self, names: Iterable[str]) -> Delivery:
        """Return the delivery without some of its outputs."""
        gone = set(names)
        parts: Any = {
            field: Outputs({name: y for name, y in getattr(self.outcome, field).items() if name not in gone})
            for field in OUTPUTS
        }
        return replace(self, outcome=replace(self.outcome, **parts))

    def competes_with(self, entry: StoredEntry) -> bool:
        """Whether an entry for the same trial comes from another worker and differs: then both count."""
        return entry.worker != self.worker and not self.equals(entry)

    def check_repetition(self, entry: StoredEntry) -> None:
        """Refuse the delivery if its worker has delivered something else for the same trial."""
        if not self.equals(entry):
            number = entry.content.get("of", entry.content["number"])
            value = entry.content.get("y", entry.content.get("outputs"))
            was = f"the value {value!r}" if entry.kind == "told" else "a failure"
            raise ValueError(
                f"trial {number} already has {was} from this worker; use correct({number}, y) to replace it, "
                "or tell(x, y) to add an observation"
            )


class ToldBefore(NamedTuple):
    """What was told of a trial, by output: by the worker of a delivery, and of the trial itself by others."""

    places: tuple[int, ...]  # the trials that the worker's values are in: the trial, or observations at its point
    mine: dict[str, float]
    others: dict[str, float]


def _differ(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    """Whether an output that both have is not the same."""
    return any(a[name] != b[name] for name in a if name in b)
