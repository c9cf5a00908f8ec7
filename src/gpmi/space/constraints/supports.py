"""The support of a point: which of the counted parameters are on, that is, have another value than 0.

For each support, the others fixed at 0, what is left is a space without counts. So a support is to the search what a
setting of discrete parameters is: it is drawn, then changed in small moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpmi._support.types import Array, Mask, Numbers
from gpmi.space.constraints.counts import Count
from gpmi.space.layout import Layout

# Our choices, not tuned.
_LARGEST = 0.5  # the share of points with as many parameters on as a count allows: they have the most freedom
_REDRAWS = 16  # of supports that break a count, where counts share parameters
_SHARES = (0.25, 0.5, 0.75)  # of its width, at which a parameter is tried that comes on
FEW = 20  # up to this many supports are each asked once in the initial design, in their middle
_DRAWN = 1024  # supports that are drawn to find the few; 20 are then missed with a probability below 1e-20
_MOST_MOVES = 512  # changes of a support that are tried at one point


@dataclass(frozen=True, eq=False)
class Supports:
    """The supports that counts allow. `numbers` (m, p) are level numbers, which for a Real are its coordinate."""

    layout: Layout
    counts: tuple[Count, ...]

    @cached_property
    def counted(self) -> Numbers:
        """The numbers of the c parameters that counts name."""
        return np.unique([j for count in self.counts for j in count.members]).astype(np.intp)

    @cached_property
    def reals(self) -> Numbers:
        """The numbers of those that are Real."""
        is_real = [self.layout.parameters[j].count is None for j in self.counted]
        result: Numbers = self.counted[np.array(is_real, dtype=bool)]
        return result

    @cached_property
    def zero(self) -> Array:
        """The level number of the value 0 of each, (c,)."""
        parameters = [self.layout.parameters[j] for j in self.counted]
        return np.array([0.0 if p.choice is None else float(p.choice.options.index(0)) for p in parameters])

    @cached_property
    def needed(self) -> Mask:
        """Which of them a count may need to be on, (c,)."""
        members = {j for count in self.counts if count.lower > 0 for j in count.members}
        return np.array([j in members for j in self.counted.tolist()], dtype=bool)

    @cached_property
    def _places(self) -> list[Numbers]:
        """The members of each count, as positions in `counted`."""
        return [np.searchsorted(self.counted, count.members) for count in self.counts]

    def on(self, numbers: Array) -> Mask:
        """Return which of them are on, (m, c)."""
        result: Mask = numbers[:, self.counted] != self.zero
        return result

    def allowed(self, on: Mask) -> Mask:
        """Return which supports (m, c) all counts allow, (m,)."""
        good = np.ones(len(on), dtype=bool)
        for count, places in zip(self.counts, self._places, strict=True):
            number = on[:, places].sum(axis=1)
            good &= (count.lower <= number) & (number <= count.upper)
        return good

    # Drawing

    def draw(self, numbers: Array, rng: np.random.Generator, most: int | None = None) -> Array:
        """Return level numbers (m, p) with random supports, at most `most` different ones.

        A parameter that stays on keeps its number.
        """
        if len(numbers) == 0:
            return numbers
        on = self._random(len(numbers), rng)
        if most is not None and len(kept := np.unique(on, axis=0)) > most:
            kept = kept[rng.permutation(len(kept))[:most]]
            on = kept[rng.integers(len(kept), size=len(on))]
        return self.with_support(numbers, on, rng)

    def _random(self, m: int, rng: np.random.Generator, *, largest: bool = False) -> Mask:
        """Draw supports (m, c), or only those with the most parameters on.

        Some break a count if counts that share parameters hardly hold together.
        """
        on = np.ones((m, len(self.counted)), dtype=bool)
        left = np.arange(m)
        for _ in range(_REDRAWS):
            for count, places in zip(self.counts, self._places, strict=True):
                rank = np.argsort(np.argsort(rng.random((len(left), len(places))), axis=1), axis=1)
                sizes = np.full(len(left), count.upper) if largest else self._sizes(count, len(left), rng)
                on[np.ix_(left, places)] = rank < sizes[:, None]
            left = left[~self.allowed(on[left])]
            if not len(left):
                break
        return on

    def _sizes(self, count: Count, m: int, rng: np.random.Generator) -> Numbers:
        """Draw how many members are on, (m,): the most that are allowed, or any support with equal probability."""
        k = len(count.members)
        sizes = np.arange(min(count.lower, k), min(count.upper, k) + 1)
        weights = np.array([float(math.comb(k, size)) for size in sizes.tolist()])
        drawn = rng.choice(sizes, size=m, p=weights / weights.sum())
        return np.where(rng.random(m) < _LARGEST, sizes[-1], drawn)

    def with_support(self, numbers: Array, on: Mask, rng: np.random.Generator) -> Array:
        """Return level numbers (m, p) with these supports (m, c). What comes on gets a random value."""
        numbers, was_on = numbers.copy(), self.on(numbers)
        for k, j in enumerate(self.counted.tolist()):
            fresh = self._at_share(k, rng.random(len(numbers)))
            numbers[:, j] = np.where(on[:, k], np.where(was_on[:, k], numbers[:, j], fresh), self.zero[k])
        return numbers

    def _at_share(self, k: int, u: Array) -> Array:
        """Return level numbers (m,) other than that of 0, at shares u (m,) of the k-th counted parameter."""
        encoding = self.layout.encodings[self.counted[k]]
        if encoding.count is None:
            return np.asarray(np.maximum(u, 1e-3) * float(encoding.ends[1, 0]))
        others = np.delete(np.arange(float(encoding.count)), int(self.zero[k]))
        return others[np.minimum((u * len(others)).astype(np.intp), len(others) - 1)]

    @cached_property
    def few(self) -> Mask:
        """All supports (k, c) with as many parameters on as counts allow, in random order; none if k > FEW.

        Where counts share parameters, they are those that were drawn.
        """
        rng = np.random.default_rng(0)
        on = np.unique(self._random(_DRAWN, rng, largest=True), axis=0)
        on = on[self.allowed(on)]
        return rng.permutation(on if len(on) <= FEW else on[:0])

    def in_the_middle(self, numbers: Array, on: Mask) -> Array:
        """Return level numbers (m, p) with these supports (m, c), and in the middle of what is on."""
        numbers = numbers.copy()
        for k, j in enumerate(self.counted.tolist()):
            numbers[:, j] = np.where(on[:, k], self._at_share(k, np.array([0.5])), self.zero[k])
        return numbers

    # Moves

    def swap(self, numbers: Array, share: float, rng: np.random.Generator) -> Array:
        """Return level numbers (m, p), of which about a share have another support: one more, one less, or both."""
        on = self.on(numbers)
        for i in np.flatnonzero(rng.random(len(numbers)) < share):
            moves = self._moves(on[i])
            if len(moves):
                on[i] = moves[rng.integers(len(moves))]
        return self.with_support(numbers, on, rng)

    def moves(self, numbers: Array) -> Array:
        """Return level numbers (k, p) with other supports than that of a point (p,): one more on, one less, or both.

        A parameter that comes on is tried at the value of the one that goes off, and at some shares of its width.
        """
        before = self.on(numbers[None])[0]
        moves = self._moves(before)
        value = self.layout.values(numbers[None])[0]
        tried_rows = []
        for after in moves:
            new, gone = np.flatnonzero(after & ~before), np.flatnonzero(before & ~after)
            base = numbers.copy()
            base[self.counted[gone]] = self.zero[gone]
            if not len(new):
                tried_rows.append(base[None])
                continue
            k, j = int(new[0]), int(self.counted[new[0]])
            levels = self._at_share(k, np.array(_SHARES))
            if len(gone) and self.layout.encodings[j].count is None:
                most = float(self.layout.encodings[j].ends[1, 0])
                levels = np.append(min(float(value[self.counted[gone[0]]]), most), levels)
            tried = np.repeat(base[None], len(levels), axis=0)
            tried[:, j] = levels
            tried_rows.append(tried)
        every = np.concatenate(tried_rows) if tried_rows else np.empty((0, len(numbers)))
        moves_tried = (
            np.unique(np.linspace(0, len(every) - 1, _MOST_MOVES).astype(int)) if len(every) > _MOST_MOVES else ...
        )
        return every[moves_tried]

    def _moves(self, on: Mask) -> Mask:
        """Return the supports next to one (c,) that are allowed, (k, c)."""
        eye = np.eye(len(on), dtype=bool)
        off, is_on = np.flatnonzero(~on), np.flatnonzero(on)
        pairs = eye[off][:, None] | eye[is_on][None]
        changes = np.concatenate([pairs.reshape(-1, len(on)), eye])
        moved: Mask = on ^ changes
        return moved[self.allowed(moved)]
