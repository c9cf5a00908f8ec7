"""The regrets of a run under the model: joint draws, and intervals from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.text import Line, WholePoint, aligned
from gpmi._support.types import Array, Mask, Point
from gpmi.analysis.ledger.contexts import HOW, ContextQueries, draw_gaps
from gpmi.analysis.ledger.facts import NOT_COVERED, interval
from gpmi.analysis.ledger.maxima import draw_maxima
from gpmi.analysis.ledger.region import Region
from gpmi.gp.posterior import Posterior
from gpmi.model.model import Model
from gpmi.space import Space

# Draws of max f. With 512 a probability of 0.95 is estimated with an sd of sqrt(0.95 * 0.05 / 512) = 0.01. On a box
# each draw is climbed, which costs more, so there are 256 and the sd is 0.014.
DRAWS = 512  # on a finite set
PATHS = 256  # on a box
EXACT = 128  # candidates at which regions that work are drawn exactly: our limit on the cost, not tuned


class Interval(NamedTuple):
    """A credible interval."""

    lower: float
    upper: float


@dataclass(frozen=True, eq=False, repr=False)
class Regret:
    """Joint draws of the regrets of a run, in units of y, from the posterior of f after t values."""

    t: int
    recommended: Point
    simple: Array  # (DRAWS or PATHS,), max f - f(recommended); (1,), infinite, if it is not known
    cumulative: Array  # the same for the sum over the policy's queries x_s of max f - f(x_s)
    where: Array  # (the same, d), coordinates of a maximum of each drawn f; (0, d) if the regret is not known
    how: str  # how max f was drawn, and what is approximate about it; if it is not known, why
    learned: bool = False  # whether the prior is learned: then the interval begins at 0

    def interval(self, level: float = 0.95) -> Interval:
        """Return a credible interval for the simple regret.

        It is `credible_interval`, or [0, q(level)] if the prior is learned, or [0, inf] if it is not known.
        """
        if self.learned:  # one-sided: nearly all misses of a learned prior are above
            level = checks.probability("level", level)
            return Interval(0.0, float(np.quantile(self.simple, level)) if self.known else np.inf)
        return credible_interval(self.simple, level)

    @property
    def known(self) -> bool:
        """Whether the regret is known. With a learned prior it is not after a few values, or while all are equal."""
        return bool(np.isfinite(self.simple).all())

    def probability_below(self, eps: float) -> float:
        """Return the probability that the simple regret is at most eps."""
        return float(np.mean(self.simple <= eps))

    @property
    def in_words(self) -> tuple[str, str]:
        """The 95 % intervals and medians of the simple regret (`interval`) and of the cumulative regret, as text."""
        if not self.known:
            return self.how, self.how
        both = (self.interval(), self.simple), (credible_interval(self.cumulative, 0.95), self.cumulative)
        first, second = (interval(*limits, float(np.median(draws))) for limits, draws in both)
        return first, second

    @property
    def lines(self) -> list[Line]:
        """The lines of its text."""
        simple, cumulative = self.in_words
        return [
            ("after", f"{self.t} values"),
            ("recommended", WholePoint.of(self.recommended)),
            ("simple regret", simple),
            *([(NOT_COVERED.title, NOT_COVERED.statistics)] if self.learned else []),
            ("cumulative", cumulative),
            ("drawn as", self.how),
        ]

    def __repr__(self) -> str:
        return aligned(self.lines)


def credible_interval(draws: Array, level: float) -> Interval:
    """Return the shorter of [0, q(level)] and the equal-tailed interval, for a quantity >= 0.

    The latter is [q((1 - level) / 2), q((1 + level) / 2)]. Given the data, each of the two contains the quantity with
    probability `level`; so does the shorter one. The second is shorter while the draws are far from 0. The first is
    shorter if 0 is possible. On a finite set the recommended point may be the best one, and an interval that cuts off
    2.5 % at 0 would then be wrong.
    """
    tail = 0.5 * (1.0 - checks.probability("level", level))
    low, one_sided, high = np.quantile(draws, [tail, level, 1.0 - tail]).tolist()
    return Interval(low, high) if high - low < one_sided else Interval(0.0, one_sided)


def draw_regret(
    model: Model,
    mixture: Sequence[Posterior],
    queries: Array,
    rng: np.random.Generator,
    parts: int = 1,
    *,
    within: Space | None = None,
    contexts: Sequence[ContextQueries] = (),
) -> Regret:
    """Draw max f, f at the recommended point and f at the policy's `queries` (k, d), jointly, under a mixture.

    With `parts` there are fewer draws, in proportion: the mixture is then 1/`parts` of the full one. With `within`, a
    part of the space with fixed coordinates, the regret is that of this part. `contexts` replaces `queries`; each of
    its queries is compared within its own part of the space.
    """
    space, seed = within or model.setting.space, model.setting.seed
    recommended = model.recommendation.row_in(space)
    at = np.concatenate([recommended[None], queries])
    size = -(-(DRAWS if space.rows is not None else PATHS) // (parts * len(mixture)))
    regions = regions_of(model, space, at[:1], size, len(mixture))
    pairs = list(zip(mixture, regions, strict=True))
    maxima = [draw_maxima(posterior, space, at, size, rng, seed, region) for posterior, region in pairs]
    best = model.to_units_of_y(np.concatenate([draws.best for draws in maxima]))
    values = model.to_units_of_y(np.concatenate([draws.at for draws in maxima]))
    where = np.concatenate([draws.where for draws in maxima])
    gaps = np.maximum(best[:, None] - values, 0.0)
    how = maxima[0].how + (f"; under {len(mixture)} draws of the prior" if len(mixture) > 1 else "")
    how += "" if model.chance is None else "; only points that work count, under draws of what works"
    learned, cumulative = not model.setting.priors.is_fixed, gaps[:, 1:].sum(axis=1)
    if contexts:
        several = [draw_gaps(posterior, contexts, size, rng, seed, region) for posterior, region in pairs]
        best, values = (model.to_units_of_y(np.concatenate([pair[i] for pair in several])) for i in (0, 1))
        cumulative, how = np.maximum(best - values, 0.0).sum(axis=1), f"{how}; {HOW}"
    return Regret(model.n, space.decode(recommended), gaps[:, 0], cumulative, where, how, learned)


def regions_of(model: Model, space: Space, first: Array, size: int, count: int) -> list[Region | None]:
    """Return `size` draws of what works for each of `count` posteriors; None if nothing failed."""
    if model.chance is None:
        return [None] * count
    rng = np.random.default_rng([model.setting.seed, model.n, 0, 6])  # no suggestion draws from it
    exact = first if space.rows is None else np.concatenate([first, space.rows[:EXACT]])
    drawn = Region.drawn(model.chance, exact, size * count, rng)
    return [drawn.part(number * size + np.arange(size)) for number in range(count)]


def unknown_regret(model: Model, space: Space, why: str) -> Regret:
    """Return the regret if the values do not support an interval: it may be anything."""
    draws = np.full(1, np.inf)
    nowhere = np.empty((0, space.dim))
    return Regret(model.n, space.decode(model.recommendation.row_in(space)), draws, draws, nowhere, why, True)


def trailing_repeats(queries: Array, same: float) -> int:
    """Return how many queries at the end of the list (k, d) are within `same` of the last, in widths of the space."""
    away: Mask = np.abs(queries - queries[-1:]).max(axis=1, initial=0.0) > same
    far = np.flatnonzero(away)
    return len(queries) - (int(far[-1]) + 1 if len(far) else 0)
