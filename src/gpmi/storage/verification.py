"""Whether a log is whole: its numbers, its checksums, and each suggestion, computed again from what came before."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gpmi.space import SpaceExhausted
from gpmi.storage.entries import Entry
from gpmi.storage.errors import StudyError
from gpmi.storage.replayed import Mirror, given_in, own_version
from gpmi.storage.serialization import point_from_json, text_of


@dataclass(frozen=True)
class Verification:
    """What was checked and what is wrong with it."""

    entries: int  # of the log
    suggestions: int  # that were computed again
    problems: tuple[str, ...]  # each names an entry; empty if all agrees

    @property
    def agrees(self) -> bool:
        return not self.problems

    def __repr__(self) -> str:
        checked = f"{self.entries} entries, {self.suggestions} suggestions computed again"
        return f"<{checked}: {'all agrees' if self.agrees else '; '.join(self.problems)}>"


def verified(entries: list[Entry], description: str, damage: list[str]) -> Verification:
    """Check a log. It costs as much as all suggestions of the study cost when they were made."""
    problems = [f"the file is damaged: {text}" for text in damage]
    before = ""
    for place, one in enumerate(entries):
        if one.seq != place:
            problems.append(f"entry {place} is missing: the next one has the number {one.seq}")
            break
        if not one.follows(before):
            problems.append(f"entry {place} ({one.kind}) does not have the checksum of its content: it was changed")
        before = one.checksum
    suggestions = 0
    try:
        mirror = _first(entries, description, problems)
        for one in entries:
            if one.kind == "asked":
                suggestions += 1
                problems += _compared(mirror, one)
            mirror.play(one)
    except StudyError as error:
        problems.append(str(error))
    return Verification(len(entries), suggestions, tuple(problems))


def _first(entries: list[Entry], description: str, problems: list[str]) -> Mirror:
    """The optimizer before anything happened."""
    if not entries or entries[0].kind != "created":
        raise StudyError("entry 0 does not say how the study was created")
    own: dict[str, Any] = entries[0].said["description"]
    try:
        stored = text_of(json.loads(description))
    except ValueError:
        stored = ""
    if stored != text_of(own):
        problems.append("the description of the study is not that of entry 0: it was changed")
    try:
        return Mirror(own)
    except (TypeError, ValueError, KeyError) as error:
        raise StudyError(f"entry 0 describes no study: {error}") from error


def _compared(mirror: Mirror, one: Entry) -> list[str]:
    """What is wrong with a suggestion."""
    said = one.said
    if said.get("from") != one.seq - 1:
        return [f"entry {one.seq} says that it was made from entry {said.get('from')}, not from the one before it"]
    try:
        again = mirror.propose(given_in(said))
        a, b = (mirror.space.encode(point_from_json(point)) for point in (again["x"], said["x"]))
    except (SpaceExhausted, ValueError, TypeError) as error:
        return [f"entry {one.seq}, trial {said['number']}: cannot be computed again ({error})"]
    if a.tobytes() == b.tobytes() and again["number"] == said["number"]:
        return []
    by = said.get("by", "gpmi")
    other = "" if by == own_version() else f"; it was made by {by}, and this is {own_version()}"
    far = float(abs((a - b) / mirror.space.span).max())
    return [
        f"entry {one.seq}, trial {said['number']}: {said['x']} was suggested, {again['x']} is computed now, "
        f"{far:.2g} of the width of the space away{other}"
    ]
