"""Verify a log: its numbers, its checksums, and each suggestion, computed again from the entries before it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gpmi._support.types import Point
from gpmi.optimizer import Optimizer
from gpmi.space import SpaceExhausted
from gpmi.storage.entries import StoredEntry, own_version
from gpmi.storage.errors import StudyError
from gpmi.storage.replayed import ReplayedLog, fixed_in
from gpmi.storage.serialization import arguments, point_from_json, point_to_json, text_of


@dataclass(frozen=True)
class Verification:
    """What was checked, and the problems that were found."""

    entries: int  # of the log
    suggestions: int  # that were computed again
    problems: tuple[str, ...]  # each names an entry; empty if all agrees

    @property
    def agrees(self) -> bool:
        return not self.problems

    def __repr__(self) -> str:
        checked = f"{self.entries} entries, {self.suggestions} suggestions computed again"
        return f"<{checked}: {'all agrees' if self.agrees else '; '.join(self.problems)}>"


def verify(entries: list[StoredEntry], description: str, damage: list[str]) -> Verification:
    """Check a log. This costs as much as all suggestions of the study cost when they were made."""
    problems = [f"the file is damaged: {text}" for text in damage]
    before = ""
    for place, entry in enumerate(entries):
        if entry.seq != place:
            problems.append(f"entry {place} is missing: the next one has the number {entry.seq}")
            break
        if not entry.follows(before):
            problems.append(f"entry {place} ({entry.kind}) does not have the checksum of its content: it was changed")
        before = entry.checksum
    suggestions = 0
    try:
        optimizer = _optimizer(entries, description, problems)
        for entry in entries:
            if entry.kind == "asked":
                suggestions += 1
                problems += _compare(optimizer, entry)
            optimizer.log.replay(entry)
    except StudyError as error:
        problems.append(str(error))
    return Verification(len(entries), suggestions, tuple(problems))


class ReplayedOptimizer(Optimizer):
    """An Optimizer with a replayed log, which computes suggestions again."""

    def __init__(self, description: Any) -> None:
        super().__init__(**arguments(description))
        self._log = self.log = ReplayedLog(self.space, self.budget)

    def suggested(self, fixed: Any) -> Point:
        """Return the next suggestion without adding it to the log."""
        return self._compute_suggestion(self._subspaces.with_fixed(fixed)).x


def _optimizer(entries: list[StoredEntry], description: str, problems: list[str]) -> ReplayedOptimizer:
    """Return the optimizer of the study before the first trial."""
    if not entries or entries[0].kind != "created":
        raise StudyError("entry 0 does not say how the study was created")
    own = entries[0].content.get("description")
    try:
        stored = text_of(json.loads(description))
    except (ValueError, RecursionError):
        stored = ""
    if stored != text_of(own):
        problems.append("the description of the study is not that of entry 0: it was changed")
    try:
        return ReplayedOptimizer(own)
    except Exception as error:
        raise StudyError(f"entry 0 describes no study: {type(error).__name__}: {error}") from error


def _compare(optimizer: ReplayedOptimizer, entry: StoredEntry) -> list[str]:
    """Return the problems of a stored suggestion."""
    content, space, number = entry.content, optimizer.space, optimizer.log.next_number
    if content.get("from") != entry.seq - 1:
        return [f"entry {entry.seq} was made from entry {content.get('from')}, and not from the entry before it"]
    try:
        again = point_to_json(space, optimizer.suggested(fixed_in(content)))
        a, b = (space.encode(point_from_json(point)) for point in (again, content["x"]))
    except (SpaceExhausted, ValueError, TypeError) as error:
        return [f"entry {entry.seq}, trial {content['number']}: cannot be computed again ({error})"]
    if a.tobytes() == b.tobytes() and number == content["number"]:
        return []
    by = content.get("by", "gpmi")
    other = "" if by == own_version() else f"; it was made by {by}, and this is {own_version()}"
    far = float(abs((a - b) / space.span).max())
    return [
        f"entry {entry.seq}, trial {content['number']}: {content['x']} was suggested, {again} is computed now, "
        f"{far:.2g} of the width of the space away{other}"
    ]
