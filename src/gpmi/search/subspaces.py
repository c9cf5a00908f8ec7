"""The whole space and the parts of it with fixed coordinates, each with the search and the initial design in it.

Where the space has a fidelity, points are searched at its target only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpmi._support.types import FrozenPoint
from gpmi.search.finite_search import FiniteSearch
from gpmi.search.initial_design import InitialDesign
from gpmi.search.screened_search import ScreenedSearch
from gpmi.search.search import Search
from gpmi.space import Parameters, Space

SUBSPACES = 8  # parts of the space whose searches are cached: a few contexts that come again and again. Our choice


@dataclass(frozen=True, eq=False)
class Subspace:
    """The whole space or a part of it, with the caches of the searches in it."""

    space: Space
    search: Search
    design: InitialDesign
    fixed: FrozenPoint | None = None  # the coordinates that the user fixed, by name or number; None for none


class Subspaces:
    """The whole space, and a cache of the parts that were used last. The cache changes the cost only."""

    def __init__(self, space: Space, seed: int, *, repeats: bool, cover: bool) -> None:
        self._seed, self._repeats, self._cover = seed, repeats, cover
        self._space = space
        self.whole = self._subspace(space.target)
        self._parts: dict[tuple[tuple[int, bytes], ...], Subspace] = {}

    def with_fixed(self, fixed: Any) -> Subspace:
        """Return the part with these fixed coordinates, a dict; the whole space for None or an empty dict."""
        if fixed is None or fixed == {}:
            return self.whole
        given, at_target = self._space.with_fixed(fixed), self._space.target_values
        values = FrozenPoint(given.fixed_values())
        if not values:  # only constants are fixed
            return self.whole
        space = self._space.with_fixed({**values, **at_target}) if at_target else given
        key = given.fixed_coordinates
        part = self._parts.pop(key, None) or self._subspace(space, values)
        self._parts[key] = part  # as the last one used
        if len(self._parts) > SUBSPACES:
            del self._parts[next(iter(self._parts))]
        return part

    def _subspace(self, space: Space, fixed: FrozenPoint | None = None) -> Subspace:
        search = search_of(space, self._seed, repeats=self._repeats)
        return Subspace(space, search, InitialDesign(space, self._seed, cover=self._cover), fixed)


def search_of(space: Space, seed: int, *, repeats: bool) -> Search:
    """Return the search of a space; `repeats` says whether a row of a finite set may be asked again."""
    if space.rows is not None:
        return FiniteSearch(space, space.rows, repeats=repeats)
    assert isinstance(space, Parameters)
    return ScreenedSearch(space, seed)
