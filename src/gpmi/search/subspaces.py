"""The whole space and the parts of it with fixed coordinates, each with the search and the initial design in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpmi._support.types import FrozenPoint
from gpmi.search.initial_design import InitialDesign
from gpmi.search.search import Search
from gpmi.space import Space

SUBSPACES = 8  # parts of the space whose searches are cached: a few contexts that come again and again. Our choice


@dataclass(frozen=True, eq=False)
class Subspace:
    """The whole space or a part of it, with the caches of the searches in it."""

    space: Space
    search: Search
    design: InitialDesign
    fixed: FrozenPoint | None = None  # the fixed coordinates, by name or number; None for the whole space


class Subspaces:
    """The whole space, and a cache of the parts that were used last. The cache changes the cost only."""

    def __init__(self, space: Space, seed: int, *, repeats: bool, cover: bool) -> None:
        self._seed, self._repeats, self._cover = seed, repeats, cover
        self.whole = self._subspace(space)
        self._parts: dict[tuple[tuple[int, bytes], ...], Subspace] = {}

    def with_fixed(self, fixed: Any) -> Subspace:
        """Return the part with these fixed coordinates, a dict; the whole space for None or an empty dict."""
        if fixed is None or fixed == {}:
            return self.whole
        space = self.whole.space.with_fixed(fixed)
        key = space.fixed_coordinates
        if not key:  # only constants are fixed
            return self.whole
        part = self._parts.pop(key, None) or self._subspace(space, FrozenPoint(space.fixed_values()))
        self._parts[key] = part  # as the last one used
        if len(self._parts) > SUBSPACES:
            del self._parts[next(iter(self._parts))]
        return part

    def _subspace(self, space: Space, fixed: FrozenPoint | None = None) -> Subspace:
        search = Search(space, self._seed, repeats=self._repeats)
        return Subspace(space, search, InitialDesign(space, self._seed, cover=self._cover), fixed)
