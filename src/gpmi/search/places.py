"""Where a point is looked for: the whole space, or the part of it with given coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpmi._support.types import FrozenPoint
from gpmi.search.screens import Design
from gpmi.search.search import Search
from gpmi.space import Space

REMEMBERED = 8  # parts of the space whose searches are kept: a few contexts that come again and again. Our choice


@dataclass(frozen=True, eq=False)
class Place:
    """A space, with what is remembered of the searches in it."""

    space: Space
    search: Search
    design: Design
    fixed: FrozenPoint | None = None  # the coordinates that are given, by name or number; None for the whole space


class Places:
    """The whole space and the parts of it that were asked for last. What it remembers changes the cost alone."""

    def __init__(self, space: Space, seed: int, *, repeats: bool, cover: bool) -> None:
        self._seed, self._repeats, self._cover = seed, repeats, cover
        self.whole = self._place(space)
        self._parts: dict[tuple[tuple[int, bytes], ...], Place] = {}

    def given(self, fixed: Any) -> Place:
        """The part with these coordinates, a dict; the whole for None or an empty dict."""
        if fixed is None or fixed == {}:
            return self.whole
        space = self.whole.space.with_fixed(fixed)
        key = space.fixed_coordinates
        if not key:  # constants alone
            return self.whole
        place = self._parts.pop(key, None) or self._place(space, FrozenPoint(space.fixed_values()))
        self._parts[key] = place  # as the last
        if len(self._parts) > REMEMBERED:
            del self._parts[next(iter(self._parts))]
        return place

    def _place(self, space: Space, fixed: FrozenPoint | None = None) -> Place:
        search = Search(space, self._seed, repeats=self._repeats)
        return Place(space, search, Design(space, self._seed, cover=self._cover), fixed)
