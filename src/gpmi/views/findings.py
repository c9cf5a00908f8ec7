"""What was found in a run, as sentences and points. Pages mark it up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from gpmi._support.types import Point


class Number(str):
    """A number in a sentence that is worth emphasising."""


Sentence: TypeAlias = str | tuple[str, ...]  # parts of a sentence follow each other


class NamedPoint(NamedTuple):
    """A point with what was measured there, or is expected there, if anything is known."""

    title: str
    x: Point | None
    outputs: Mapping[str, float] | Mapping[str, str]
    short: str = ""  # the title on a button

    @property
    def button(self) -> str:
        """What the point is called on a button."""
        return self.short or f"the {self.title} point"


class Finding(NamedTuple):
    """The sentences about what was found, and its points."""

    lead: Sentence = ()
    before: tuple[Sentence, ...] = ()  # paragraphs before the points
    points: tuple[NamedPoint, ...] = ()
    after: tuple[Sentence, ...] = ()
