"""The decisions of a run, compared with recorded ones where the arithmetic is another.

The recorded decisions are *imposed*: the optimizer decides, its decision is noted, and the run goes on with the
recorded one. So rounding cannot add up from query to query: each decision is made from what was known when it was
recorded. It must then be the recorded one, up to ROUNDING, unless rounding decided a tie: the best point of another
place had a score within TIE when the run was recorded (the margin in the file), and the recorded one has it here. If
the recorded scores were equal but for their last digits, the recorded one must be NEAR here: fits end elsewhere, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import gpmi
from gpmi.search import drawn_point, finite_search, multistart
from gpmi.search.finite_search import FiniteSearch

ROUNDING = 1e-5  # of a point, in widths of the space; the limit of `gpmi.storage.verification`
TIE = 1e-6  # between two scores, relative to their scale: a gain at which a climb stops
EQUAL, NEAR = 1e-12, 1e-3  # the last digits of scores; what NumPy 1.26 without AVX-512 makes of such a tie is 3.5e-4


class Decision(NamedTuple):
    """A point that was suggested, or whether a curve was stopped."""

    place: Any  # the number of a row, coordinates, or words
    bits: Any
    margin: float | None = None  # of the score to the best one at another place, in the closest search for the point
    distance: float = 0.0  # from the recorded place, in widths of the space
    lack: float = math.inf  # of the recorded point's score to the best one, in the search where it lacks least

    @property
    def difference(self) -> list[float] | None:
        """The distance and the lack, if the decision is not the recorded one."""
        return None if self.distance <= ROUNDING else [self.distance, self.lack]


def unexplained(differences: Sequence[list[float] | None], margins: Sequence[float | None]) -> str | None:
    """Return the first decision that differs from the recorded one, and not by a tie; None if there is none."""
    for place, (difference, margin) in enumerate(zip(differences, margins, strict=True)):
        if difference is None:
            continue
        distance, lack = difference
        if margin is None or margin > TIE or lack > (NEAR if margin <= EQUAL else TIE):
            return f"decision {place} is {distance:.2g} from the recorded one; margin {margin}, lack {lack:.2g}"
    return None


class NotingOptimizer(gpmi.Optimizer):
    """An Optimizer that notes its decisions, and goes on with the imposed ones if there are any."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.decisions: list[Decision] = []
        self.imposed: Iterator[Any] | None = None

    def _compute_suggestion(self, subspace: Any, **options: Any) -> Any:
        with watched_searches() as searches:
            suggestion = super()._compute_suggestion(subspace, **options)
        row = self.space.encode(suggestion.x)
        margin = min((search.margin for search in searches), default=math.inf)
        decision = Decision(self._place(row), row, None if math.isinf(margin) else float(f"{margin:.1e}"))
        if self.imposed is not None:
            recorded = next(self.imposed)
            x = self.space.decode(np.array(recorded) if self.space.rows is None else self.space.rows[recorded])
            at = self.space.encode(x)
            # A starting point that was computed, the best of an earlier study, is the recorded one from here on.
            self._start = tuple((x, at) if np.array_equal(start[1], row) else start for start in self._start)
            distance = float(np.max(np.abs(row - at) / self.space.span, initial=0.0))
            lack = min((search.lack_of(at) for search in searches), default=math.inf)
            decision, suggestion = decision._replace(distance=distance, lack=lack), suggestion._replace(x=x)
        self.decisions.append(decision)
        return suggestion

    def _place(self, row: Any) -> Any:
        return row.tolist() if self.space.rows is None else int(self.space.row_numbers(row)[0])

    def _reason_to_stop(self, trial: Any) -> str | None:
        why = super()._reason_to_stop(trial)
        decision = recorded = "stop" if why else "go on"
        if self.imposed is not None:
            recorded = next(self.imposed)
        self.decisions.append(Decision(decision, decision, distance=0.0 if decision == recorded else math.inf))
        return (why or "imposed") if recorded == "stop" else None


class WatchedSearch(NamedTuple):
    """A search for the point with the best score."""

    score: Callable[[Any], Any]
    best: float
    scale: float  # of the scores: the range of the better half, or the size of the best one
    margin: float  # of the best score to that of another place

    def lack_of(self, row: Any) -> float:
        """Return by how much the score at a point lacks the best one."""
        return abs(self.best - float(self.score(row[None])[0])) / self.scale


@contextmanager
def watched_searches() -> Iterator[list[WatchedSearch]]:
    """Note every search that compares scores of points."""
    searches: list[WatchedSearch] = []
    of_points, of_rows, of_joint = multistart.best_of, finite_search.best_row, FiniteSearch.best_joint

    def watch(objective: Any, points: Any, scores: Any, result: Any, span: Any) -> None:
        if not math.isfinite(result.score) and getattr(objective.policy, "joint", False):
            return  # a draw, which is not a function of a point
        best, finite = float(objective(result.row[None])[0]), scores[np.isfinite(scores)]
        better_half = np.ptp(finite[finite >= np.median(finite)]) if len(finite) else 0.0
        scale = max(better_half, abs(best), 1e-300)
        elsewhere = (np.abs(points - result.row) / span).max(axis=1) > ROUNDING
        margin = np.min(np.abs(scores[elsewhere & np.isfinite(scores)] - best), initial=math.inf) / scale
        searches.append(WatchedSearch(objective, best, float(scale), float(margin)))

    def best_of_points(objective: Any, space: Any, points: Any, scores: Any, *rest: Any) -> Any:
        result = of_points(objective, space, points, scores, *rest)
        watch(objective, points, scores, result, space.span)
        return result

    def best_of_rows(objective: Any, rows: Any, *rest: Any) -> Any:
        result = of_rows(objective, rows, *rest)
        watch(objective, rows, objective(rows), result[0], np.maximum(np.ptp(rows, axis=0), 1e-300))
        return result

    def best_joint(self: Any, objective: Any, *rest: Any) -> Any:
        result = of_joint(self, objective, *rest)
        rows = self._space.rows
        watch(objective, rows, objective(rows), result, np.maximum(np.ptp(rows, axis=0), 1e-300))
        return result

    with (
        patch.object(multistart, "best_of", best_of_points),
        patch.object(drawn_point, "best_of", best_of_points),
        patch.object(finite_search, "best_row", best_of_rows),
        patch.object(FiniteSearch, "best_joint", best_joint),
    ):
        yield searches
