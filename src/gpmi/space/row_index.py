"""Find the rows of a table that equal a given row, without reading the whole table each time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpmi._support.types import Array, Numbers

_CHUNK = 2**20  # numbers of the table that are hashed at once, 8 MB; our choice, not tuned


@dataclass(frozen=True, eq=False)
class RowIndex:
    """The rows of a table (m, d), sorted by a hash of their bits. 16 bytes for each row."""

    rows: Array  # (m, d)
    hashes: NDArray[np.uint64]  # (m,), ascending
    order: Numbers  # (m,), the row of each hash; rows with equal hashes in ascending order

    @staticmethod
    def of(rows: Array) -> RowIndex:
        """Hash and sort the rows. O(m d + m log m)."""
        step = max(1, _CHUNK // rows.shape[1])
        hashes = np.concatenate([_hashes(rows[i : i + step]) for i in range(0, len(rows), step)])
        order = np.argsort(hashes, kind="stable")
        return RowIndex(rows, hashes[order], order)

    def find(self, row: Array) -> Numbers:
        """Return the numbers of the rows equal to this one, ascending. O(d log m) if there are few."""
        (key,) = _hashes(row[None])
        first, last = np.searchsorted(self.hashes, key, "left"), np.searchsorted(self.hashes, key, "right")
        same_hash = self.order[first:last]
        return same_hash[np.all(self.rows[same_hash] == row, axis=1)]  # other rows may have the same hash

    def count_repeated(self) -> int:
        """Count the rows that equal an earlier one. O(m), and a sort of the rows that share a hash."""
        same = self.hashes[1:] == self.hashes[:-1]
        shared = self.order[np.append(same, False) | np.insert(same, 0, False)]
        return len(shared) - len(np.unique(self.rows[shared] + 0.0, axis=0))


def _hashes(rows: Array) -> NDArray[np.uint64]:
    """Return a linear hash of the bits of each row, modulo 2^64. Equal rows have equal hashes."""
    bits = (rows + 0.0).view(np.uint64)  # -0.0 is 0.0
    bits ^= bits >> np.uint64(32)  # round numbers differ in their first bits only, most of which a product loses
    bits *= _factors(rows.shape[1])
    hashes: NDArray[np.uint64] = bits.sum(axis=1, dtype=np.uint64)
    return hashes


@lru_cache(maxsize=16)
def _factors(d: int) -> NDArray[np.uint64]:
    """Return an odd number for each coordinate, always the same."""
    return np.random.default_rng(0).integers(2**63, size=d, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
