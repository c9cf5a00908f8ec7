"""Verify a log: its numbers, its checksums, and each suggestion and stop, computed again from what was before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from gpmi._support.types import Point
from gpmi.optimizer import Optimizer
from gpmi.storage.entries import StoredEntry, own_version
from gpmi.storage.errors import StudyError
from gpmi.storage.platforms import described_platform, own_platform
from gpmi.storage.replayed import ReplayedLog, fixed_in
from gpmi.storage.serialization import arguments, point_from_json, point_to_json, text_of
from gpmi.trials import Outcome, Trial

# Under another BLAS kernel suggestions moved by up to 7e-8 of the width of the space. The limit is our choice.
ROUNDING = 1e-5
Verdict: TypeAlias = Literal["equal", "equal up to rounding on another platform", "different"]


@dataclass(frozen=True)
class Verification:
    """What was checked, and the problems that were found. It is true unless something is different."""

    entries: int  # of the log
    suggestions: int  # that were computed again
    problems: tuple[str, ...]  # each names an entry; empty if nothing is different
    rounded: tuple[str, ...] = ()  # suggestions of another platform that are equal up to rounding; each names an entry

    @property
    def agrees(self) -> bool:
        """Whether everything is equal, at least up to rounding on another platform."""
        return not self.problems

    @property
    def verdict(self) -> Verdict:
        if self.problems:
            return "different"
        return "equal up to rounding on another platform" if self.rounded else "equal"

    def __bool__(self) -> bool:
        return self.agrees

    def __repr__(self) -> str:
        checked = f"{self.entries} entries, {self.suggestions} suggestions computed again"
        return f"<{checked}: {'; '.join([self.verdict, *(self.problems or self.rounded[:1])])}>"


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
    suggestions, rounded = 0, list[str]()
    try:
        optimizer = _optimizer(entries, description, problems)
        for entry in entries:
            if entry.kind == "asked":
                suggestions += 1
                difference = _compare(optimizer, entry)
                if difference is not None:
                    (rounded if difference.is_rounding else problems).append(difference.text)
            optimizer.log.replay(entry)
            if entry.kind == "reported" and (difference := _compare_stop(optimizer, entry)) is not None:
                (rounded if difference.is_rounding else problems).append(difference.text)
    except StudyError as error:
        problems.append(str(error))
    return Verification(len(entries), suggestions, tuple(problems), tuple(rounded))


class ReplayedOptimizer(Optimizer):
    """An Optimizer with a replayed log, which computes suggestions again."""

    def __init__(self, description: Any) -> None:
        super().__init__(**arguments(description))
        self._log = self.log = JudgingLog(self.space, self.budget, self.goals)
        self.log.judge = self.is_stopped

    def suggested(self, fixed: Any) -> Point:
        """Return the next suggestion without adding it to the log."""
        return self._compute_suggestion(self._subspaces.with_fixed(fixed)).x

    def is_stopped(self, trial: Trial) -> bool:
        """Whether a pending trial is stopped where its curve ends now."""
        return self._reason_to_stop(trial) is not None


class JudgingLog(ReplayedLog):
    """A replayed log that decides again whether to stop, after each value of a curve and before its stored answer."""

    judge: Callable[[Trial], bool]
    answer: bool | Exception = False  # to the last value

    def report(self, number: int, step: int, outcome: Outcome, when: float | None = None) -> Trial:
        trial = super().report(number, step, outcome, when)
        try:
            self.answer = self.judge(trial)
        except Exception as error:
            self.answer = error
        return trial


def _optimizer(entries: list[StoredEntry], description: str, problems: list[str]) -> ReplayedOptimizer:
    """Return the optimizer of the study before the first trial."""
    if not entries or entries[0].kind != "created":
        raise StudyError("entry 0 does not say how the study was created")
    original = entries[0].content.get("description")
    try:
        stored = text_of(json.loads(description))
    except (ValueError, RecursionError):
        stored = ""
    if stored != text_of(original):
        problems.append("the description of the study is not that of entry 0: it was changed")
    try:
        return ReplayedOptimizer(original)
    except Exception as error:
        raise StudyError(f"entry 0 describes no study: {type(error).__name__}: {error}") from error


class Difference(NamedTuple):
    """How a stored suggestion differs from the one that is computed now."""

    text: str
    is_rounding: bool = False


def _compare(optimizer: ReplayedOptimizer, entry: StoredEntry) -> Difference | None:
    """Compute a stored suggestion again; return None if it is equal to the last bit."""
    content, space, number = entry.content, optimizer.space, optimizer.log.next_number
    where = f"entry {entry.seq}, trial {content.get('number')}"
    if content.get("from") != entry.seq - 1:
        text = f"entry {entry.seq} was made from entry {content.get('from')}, and not from the entry before it"
        return Difference(text)
    try:
        again = point_to_json(space, optimizer.suggested(fixed_in(content)))
        a, b = (space.encode(point_from_json(point)) for point in (again, content["x"]))
    except Exception as error:
        return Difference(f"{where}: cannot be computed again ({error})")
    if a.tobytes() == b.tobytes() and number == content["number"]:
        return None
    far = float(abs((a - b) / space.span).max())
    moved = f"{where}: {content['x']} was suggested, {again} is computed now, {far:.2g} of the width of the space away"
    other = _other_maker(content, optimizer.log.platform)
    return Difference(f"{moved}{other}", is_rounding=bool(other) and far <= ROUNDING and number == content["number"])


def _compare_stop(optimizer: ReplayedOptimizer, entry: StoredEntry) -> Difference | None:
    """Decide again whether to stop at a value of a curve, which was just replayed; None if the answer is the same.

    On another platform the probability to win may be rounded to the other side of its limit.
    """
    content = entry.content
    if content.get("late") or content.get("unjudged"):
        return None
    where, was, now = f"entry {entry.seq}, trial {content['number']}", "stopped" in content, optimizer.log.answer
    if isinstance(now, Exception):
        return Difference(f"{where}: whether it is stopped at step {content['step']} cannot be computed again ({now})")
    if now == was:
        return None
    were, are = ("stopped", "would go on") if was else ("not stopped", "would be stopped")
    decided = f"{where}: it was {were} at step {content['step']}, and now it {are}"
    other = _other_maker(content, optimizer.log.platform)
    return Difference(f"{decided}{other}", is_rounding=bool(other))


def _other_maker(content: Mapping[str, Any], platform: Any) -> str:
    """Return a clause about who made an entry, if it was another version or platform; otherwise nothing."""
    maker = (content.get("by", "gpmi"), content.get("platform", platform))
    if maker == (own_version(), dict(own_platform())):
        return ""
    then, now = (f"{by} with {described_platform(on)}" for by, on in (maker, (own_version(), own_platform())))
    return f"; it was made by {then}, and this is {now}"
