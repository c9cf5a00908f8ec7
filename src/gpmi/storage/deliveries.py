"""Deliveries: values and failures on their way into the log of a study, each stored exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpmi.storage.entries import StoredEntry
from gpmi.trials import Outcome


@dataclass(frozen=True)
class Delivery:
    """A value or a failure of a trial, or of an observation that nobody had asked for."""

    outcome: Outcome
    token: str  # the same for each attempt to deliver it
    worker: str  # who delivers it
    number: int | None  # of the trial; None for an observation at a point
    point: Any  # the evaluated point as JSON; None if an earlier version did not write it

    def to_json(self) -> dict[str, Any]:
        """Return the delivery as the outbox stores it."""
        where = {"x": self.point} if self.number is None else {"number": self.number, "at": self.point}
        sender = {"kind": self.outcome.status, "token": self.token, "worker": self.worker}
        return {**self.outcome.to_json(), **sender, **where}

    @staticmethod
    def from_json(stored: dict[str, Any]) -> Delivery:
        """Read a delivery from the outbox."""
        kind, number = stored["kind"], stored.get("number")
        if kind not in ("told", "failed"):
            raise ValueError(f"it is of the kind {kind!r}; a delivery is told or failed")
        point = stored["x"] if number is None else stored.get("at")
        return Delivery(Outcome.from_json(kind, stored), stored["token"], stored.get("worker", ""), number, point)

    def equals(self, entry: StoredEntry) -> bool:
        """Whether an entry has the same value, or is a failure as well."""
        stored = entry.content
        same = stored.get("y") == self.outcome.y and stored.get("outputs", {}) == dict(self.outcome.outputs)
        return entry.kind == self.outcome.status and same

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
