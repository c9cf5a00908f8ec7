"""The resource of a search in scikit-learn: a parameter of the estimator, or the number of rows it is trained on.

Its levels are a fidelity, each three times the one below, with costs in proportion. The largest one is the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.base import clone

from gpmi._support import checks
from gpmi.space import Fidelity

SAMPLES = "n_samples"  # the resource that is the number of rows
COLUMN = "n_resources"  # of cv_results_, as in scikit-learn's searches by successive halving
FACTOR = 3  # between two levels, as in scikit-learn
STEPS = 3  # at most this many levels below the target, unless min_resources says otherwise; our choice


@dataclass(frozen=True)
class Resource:
    """A resource and its levels, the largest last."""

    name: str
    levels: tuple[int, ...]
    rows: int = 0  # in all, if the resource is the number of rows

    @staticmethod
    def of(search: Any, branches: Sequence[Mapping[str, Any]], names: Iterable[str], rows: int, least: int) -> Resource:
        """Return the resource of a search, validated.

        `branches` have the constant parameters of each branch, `names` are all parameters that are searched, and
        `least` is the smallest number of rows to train on.
        """
        name = search.resource
        if not isinstance(name, str):
            raise TypeError(f"resource is {checks.shown(name)}; give the name of a parameter, or {SAMPLES!r}")
        if name in names:
            raise ValueError(f"resource is {name!r}, which search_spaces has as well; leave it out there")
        if name == SAMPLES and rows < 2:
            raise ValueError(f"resource is {SAMPLES!r}, but X has n_samples={rows}; give more rows")
        largest = rows if name == SAMPLES else _own_value(search, name, branches)
        smallest = min(least, rows - 1) if name == SAMPLES else 1
        if search.max_resources is not None:
            largest = checks.whole("max_resources", search.max_resources, 2, *([rows] if name == SAMPLES else []))
        if largest is None or largest < 2:
            said = "no whole number above 1" if largest is None else str(largest)
            raise ValueError(f"max_resources is left out, and {name} of the estimator is {said}; give max_resources")
        if search.min_resources is not None:
            smallest = checks.whole("min_resources", search.min_resources, 1)
            if smallest >= largest:
                raise ValueError(f"min_resources is {smallest}; give one below max_resources, {largest}")
            return Resource(name, _levels(smallest, largest), rows)
        return Resource(name, _levels(max(smallest, round(largest / FACTOR**STEPS)), largest), rows)

    @property
    def fidelity(self) -> Fidelity:
        return Fidelity({level: level for level in self.levels})

    @property
    def target(self) -> int:
        return self.levels[-1]

    def params(self, params: Mapping[str, Any], level: int) -> dict[str, Any]:
        """Return the parameters of an estimator at a level."""
        return dict(params) if self.name == SAMPLES else {**params, self.name: level}

    def splitter(self, base: Any, level: int, seed: int, by_class: bool) -> Any:
        """Return the splitter at a level, where `base` is that of the search."""
        return Subsample(base, level / self.rows, seed, by_class) if self.name == SAMPLES else base


def _own_value(search: Any, name: str, branches: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the value that a parameter of the estimator has, in the first branch; refuse one that it does not have."""
    values: list[Any] = []
    for constants in branches:
        estimator = clone(search.estimator).set_params(**clone(dict(constants), safe=False))
        parameters = estimator.get_params()
        if name not in parameters:
            close = get_close_matches(name, [SAMPLES, *parameters], n=3)
            remedy = f"give {' or '.join(map(repr, close))}" if close else f"give one of its parameters, or {SAMPLES!r}"
            where = "" if len(branches) == 1 else " of a branch of search_spaces"
            raise ValueError(
                f"resource is {name!r}, which the estimator {type(estimator).__name__}{where} does not have; {remedy}"
            )
        values.append(parameters[name])
    value = values[0]
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


def _levels(smallest: int, largest: int) -> tuple[int, ...]:
    """Return the levels from the largest one down, each a third of the one above."""
    levels, step = [largest], 1
    while (below := round(largest / FACTOR**step)) >= smallest and below < levels[0]:
        levels.insert(0, below)
        step += 1
    return tuple(levels) if len(levels) > 1 else (smallest, largest)


class Subsample:
    """A splitter whose training sets are shares of those of another; the test sets are the same.

    The rows of a smaller share are among those of a larger one. Of a classifier, each class has its share, and at least
    one row.
    """

    def __init__(self, base: Any, share: float, seed: int, by_class: bool) -> None:
        self._base, self._share, self._seed, self._by_class = base, share, seed, by_class

    def split(self, X: Any, y: Any = None, **options: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the rows to train on and those to test on, for each fold."""
        for fold, (train, test) in enumerate(self._base.split(X, y, **options)):
            rows = np.asarray(train)
            if rows.dtype == bool:
                rows = np.flatnonzero(rows)
            rows = rows[np.random.default_rng([self._seed, fold]).permutation(len(rows))]
            if self._by_class and y is not None and np.ndim(y) == 1:
                rows = rows[_interleaved(np.asarray(y)[rows])]
            yield np.sort(rows[: max(1, round(self._share * len(rows)))]), test


def _interleaved(classes: Any) -> Any:
    """Return an order in which any first part has its share of each class, and one of each class comes first."""
    _, numbers = np.unique(classes, return_inverse=True)
    place = np.empty(len(numbers))
    for number in range(numbers.max() + 1):
        of_class = np.flatnonzero(numbers == number)
        place[of_class] = np.arange(len(of_class)) / len(of_class)
    return np.argsort(place, kind="stable")
