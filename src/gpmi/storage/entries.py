"""One entry of the log of a study: what happened, when, and a checksum that covers it and all entries before it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gpmi.storage.errors import StudyError
from gpmi.storage.serialization import text_of

Kind: TypeAlias = Literal[
    "created", "budget", "asked", "leased", "told", "failed", "rejected", "forgotten", "corrected", "retracted"
]


@dataclass(frozen=True)
class Entry:
    """A row of the table of events."""

    seq: int  # its place in the log of its study, from 0, without gaps
    kind: Kind
    body: str  # JSON
    time: float  # by the clock of the database, in seconds since 1970
    worker: str  # who said it
    token: str  # of the delivery: what is delivered twice is written once
    checksum: str

    @property
    def said(self) -> dict[str, Any]:
        """What it says."""
        try:
            said = json.loads(self.body)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise StudyError(
                f"entry {self.seq} of the log cannot be read, so the file was damaged or changed by hand; "
                "take a copy that is whole, or take out what is readable with a database tool"
            )
        return said

    def follows(self, before: str) -> bool:
        """Whether its checksum is that of its content and of the entries before it."""
        return self.checksum == checksum(before, self.seq, self.kind, self.body, self.time, self.worker, self.token)


def entry(before: str, seq: int, kind: Kind, said: dict[str, Any], *, time: float, worker: str, token: str) -> Entry:
    """The entry that comes after one with the checksum `before`."""
    body = text_of(said)
    return Entry(seq, kind, body, time, worker, token, checksum(before, seq, kind, body, time, worker, token))


def checksum(before: str, seq: int, kind: str, body: str, time: float, worker: str, token: str) -> str:
    """The first 128 bits of SHA-256 over the checksum before and the content: a change of any entry shows in it."""
    whole = text_of([before, seq, kind, body, float(time).hex(), worker, token])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]
