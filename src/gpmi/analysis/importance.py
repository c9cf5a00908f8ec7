"""How much of the variation of f each parameter accounts for: first-order and total Sobol indices.

Let x have independent parameters, each uniform over its own values as `gpmi.space` spreads them: a logarithmic one by
its logarithm, a choice by its options. With V the variance of f(x),

    first_i = Var(E[f | x_i]) / V             what x_i explains alone
    total_i = E[Var(f | all but x_i)] / V     what is lost if x_i is not known: alone and together with others

f is uncertain, and so are its indices. Functions are drawn from the ledger's belief, equally many from each of its
posteriors. The index that is reported is the median of their indices, and the interval is that of their indices. With a
learned prior it is wider: functions of users are sums of functions of one parameter more often than draws of a Gaussian
process are, which has no such sums in its prior. docs/benchmarks/importance.md has the coverage.

A kernel of distances such as Matern's is not a product over the parameters, so there is no closed form. The integral
over x_i is a Gauss rule or a sum over all levels. The integral over the other parameters is a mean over m Sobol points.
Each of these gives a line along x_i, and the values along the m lines give both indices and the curve E[f | x_i].

Constraints: x is uniform on the feasible part of the space. Only the feasible part of a line counts, and the points are
weighted so that both conditional distributions are right. Candidates: the other columns are those of a row of the
table, and x_i is any value of its column, as often as it occurs. If the rows form a full grid, this is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpmi._support.sobol import sobol
from gpmi._support.text import shortened
from gpmi._support.types import Array, Mask
from gpmi.analysis.front import FrontAnalysis
from gpmi.analysis.ledger.facts import RunLedger
from gpmi.analysis.ledger.ledger import Ledger, of_value
from gpmi.analysis.ledger.regret import Interval, credible_interval
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.paths import Paths, PathSampler, has_features
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import mean_in_chunks
from gpmi.space import Candidates, Parameters, Space
from gpmi.space.axes import Axis, axes_of
from gpmi.trials.goals import Goals

LEVEL = 0.95  # of the intervals, as everywhere
WIDER = 1.5  # the factor of an interval's two halves with a learned prior; chosen on development functions and seeds
# Our choices, for the cost. tests/analysis/test_importance.py compares the indices with brute force.
NODES = 20  # of the Gauss rule along a parameter; a parameter with at most this many levels takes each of them once
LINES = 128, 1024  # lines along each parameter, at least and at most, for the mean
DRAWN_LINES = 64, 128  # the same for the drawn functions
WORK = 1.5e8  # the approximate number of kernel values behind each of the two: decides between the limits
_JOINT = 128  # points at which functions without random features are drawn
DRAWS = 128  # functions: a quantile of 2.5 % is then estimated with an sd of 1.4 %
_FEATURES = 2048  # random features of all posteriors together; each has its own
_AT_ONCE = 2**16  # kernel values and features computed at once: 0.5 MB stays in the cache, and halves the time
_OWN_FUNCTIONS = 64  # lines if a constraint is a function of the user, which is called at every point
_LOG2_TRIED = 17  # log2 of the number of points tried to find feasible ones: 20 ms for each parameter
_ENOUGH = 64  # feasible points, at least; with fewer the constraints are ignored


class HasLedger(Protocol):
    """A Result, an Optimizer or a Study."""

    @property
    def goals(self) -> Goals: ...

    @property
    def ledger(self) -> RunLedger | None: ...


@dataclass(frozen=True, eq=False)
class Importance:
    """The importance of one parameter."""

    name: str
    first: float  # the median of the indices of the drawn functions
    total: float
    first_interval: Interval
    total_interval: Interval
    axis: Axis
    settings: Array  # (q, width), the values of the parameter along a line, as coordinates
    effect: Array  # (q,), E[f | x_i] there, in units of y
    effect_interval: Array  # (q, 2)


@dataclass(frozen=True, eq=False, repr=False)
class Importances:
    """The Sobol indices of all parameters that vary, in their order. At a prompt they are a table."""

    each: tuple[Importance, ...]
    note: str  # the set of points that they refer to

    @property
    def ranked(self) -> tuple[Importance, ...]:
        """The same importances, the largest total index first."""
        return tuple(sorted(self.each, key=lambda importance: -importance.total))

    def __iter__(self) -> Iterator[Importance]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __repr__(self) -> str:
        width = max(9, *(len(shortened(importance.name, 30)) for importance in self.each)) if self.each else 9
        head = f"{'parameter':<{width}}  first  95 %           total  95 %"
        lines = [
            f"{shortened(importance.name, 30):<{width}}  {importance.first:5.3f}  {_words(importance.first_interval)}  "
            f"{importance.total:5.3f}  {_words(importance.total_interval)}"
            for importance in self.each
        ]
        return "\n".join([head, *lines, self.note])


def importances(source: HasLedger, output: str | None = None) -> Importances:
    """Return the Sobol indices of f with 95 % intervals, from a Result, an Optimizer or a Study.

    They come from the ledger's belief. Raise a ValueError while that claims nothing, before `ledger.needed` values. In
    a run with goals `output` names the output that f is: any that has values, by default the single objective.

    The numbers are the same on every call: random numbers come from (seed, t). O(n) for each of about 20 p m points and
    each posterior, with p parameters and m = 64 or 128 lines. A thousand values in ten dimensions take a few seconds.
    """
    ledger = _ledger(source) if output is None else _ledger_of(source, output)
    if not ledger.n:
        raise ValueError("source has no value, so nothing is known about its parameters; tell values first")
    if ledger.unknown is not None:
        raise ValueError(f"which parameters of source matter is {ledger.unknown}")
    return _importances(ledger)


def _ledger(source: HasLedger) -> Ledger:
    """Return the ledger of a run with a single objective."""
    if not hasattr(source, "ledger"):
        raise TypeError(f"source is {source!r}; give a Result, an Optimizer or a Study")
    if source.ledger is None:
        raise ValueError("source has no model, so nothing is known about its parameters; tell values first")
    names = ", ".join(map(repr, source.goals))
    remedy = f'give output="...", one of {names}'
    return of_value(source.ledger, f"output is None, but there are several objectives; {remedy}")


def _ledger_of(source: HasLedger, output: str) -> Ledger:
    """Return the ledger of one output of a run with goals."""
    has_analysis = getattr(getattr(source, "goals", None), "named", ())
    analysis = getattr(source, "front_analysis", None) if has_analysis else None
    if not isinstance(analysis, FrontAnalysis):
        raise ValueError(f"output is {output!r}, but the run has no goals or no model; leave out output")
    name = analysis.goals.checked_name(output)
    if name not in analysis.outputs:
        raise ValueError(f"{name} has no value yet, so nothing is known about it; tell some first")
    return analysis.outputs[name]


@one_blas_thread
def _importances(ledger: Ledger) -> Importances:
    space, seed, posteriors = ledger.space.target, ledger.setting.seed, ledger.belief.posteriors
    axes = axes_of(ledger.space, 2)
    lines, few = _lines(len(axes), ledger.n, len(posteriors), space)
    measure = _measure(space, axes, lines, seed)
    rng = np.random.default_rng([seed, ledger.n, 0, 6])  # no suggestion draws from it
    start, size, count = ledger.model.recommendation.row, -(-DRAWS // len(posteriors)), _FEATURES // len(posteriors)
    drawn = [_paths(posterior, measure, start, size, count, rng) for posterior in posteriors]
    each = [_one(axis, measure.along(i), few, drawn, ledger) for i, axis in enumerate(axes)]
    return Importances(tuple(each), measure.note)


def _lines(p: int, n: int, posteriors: int, space: Space) -> tuple[int, int]:
    """Return the numbers of lines along each of p parameters, for the mean and for the drawn functions: powers of two.

    n is the number of observations.
    """
    if isinstance(space, Parameters) and space.constraints.functions:
        return _OWN_FUNCTIONS, _OWN_FUNCTIONS
    points = WORK / (max(p, 1) * NODES)
    wanted = ((points / max(n, 1), LINES), (points / (n * posteriors + _FEATURES), DRAWN_LINES))
    lines, few = (int(2 ** np.floor(np.log2(np.clip(value, *limits)))) for value, limits in wanted)
    return lines, few


# Where f is evaluated


class ParameterLines(NamedTuple):
    """m lines of q points along one parameter, and the probability of each point of a line."""

    rows: Array  # (m, q, d)
    weights: Array  # (m, q), the distribution of x_i given the others: each row sums to 1
    settings: Array  # (q, width)
    uneven: bool = False  # whether only some of the lines meet a point, because of constraints


@dataclass(frozen=True, eq=False)
class ProductMeasure:
    """Independent parameters, made from the unit cube; with constraints, their feasible part."""

    space: Parameters
    numbers: tuple[int, ...]  # of the parameters that vary
    u: Array  # (m, p)
    inside: bool  # whether constraints are respected
    note: str

    def along(self, i: int) -> ParameterLines:
        j = self.numbers[i]
        at, weights = _nodes(self.space.encodings[j])
        u = np.repeat(self.u[:, None], len(at), axis=1)
        u[:, :, j] = at
        law = np.tile(weights, (len(self.u), 1))
        rows = self.space.from_unit(u.reshape(-1, u.shape[2])).reshape(*law.shape, -1)
        if self.inside:
            law *= self.space.feasible_set.contains(rows.reshape(-1, rows.shape[2])).reshape(law.shape)
            (missed,) = np.nonzero(law.sum(axis=1) == 0.0)  # the feasible part lies between two nodes
            nearest = np.abs(at - self.u[missed, j, None]).argmin(axis=1)
            rows[missed, nearest], law[missed, nearest] = self.space.from_unit(self.u[missed]), 1.0
            law /= law.sum(axis=1, keepdims=True)
        return ParameterLines(rows, law, self.space.encodings[j].from_unit(at), self.inside)


@dataclass(frozen=True, eq=False)
class TableMeasure:
    """Rows of a table, one column after the other replaced by all its values."""

    rows: Array  # (m, d), some of the candidates
    everything: Array  # (all, d)
    axes: tuple[Axis, ...]
    note: str

    def along(self, i: int) -> ParameterLines:
        columns = self.axes[i].columns
        settings, counts = np.unique(self.everything[:, columns], axis=0, return_counts=True)
        weights = counts / counts.sum()
        if len(settings) > NODES and settings.shape[1] == 1:  # equally spaced quantiles
            values = np.sort(self.everything[:, columns.start])
            share = (np.arange(NODES) + 0.5) / NODES
            settings = values[(share * len(values)).astype(np.intp)][:, None]
            weights = np.full(NODES, 1.0 / NODES)
        rows = np.repeat(self.rows[:, None], len(settings), axis=1)
        rows[:, :, columns] = settings
        return ParameterLines(rows, np.tile(weights, (len(rows), 1)), settings)


def _measure(space: Space, axes: list[Axis], lines: int, seed: int) -> ProductMeasure | TableMeasure:
    """Return the distribution of x, represented by about as many points as there will be lines."""
    if isinstance(space, Candidates):
        unique = np.unique(space.encoded, axis=0)
        picked = np.random.default_rng([seed, 0, 0, 7]).permutation(len(unique))[:lines]
        note = "over the candidates, each column taken as independent of the others"
        # in random order: the first ones are a sample, too
        return TableMeasure(unique[picked], unique, tuple(axes), note)
    assert isinstance(space, Parameters)
    varying = [axis.columns for axis in axes]
    numbers = tuple(j for j, columns in enumerate(space.columns) if columns in varying)
    log2 = int(np.log2(lines))
    u, note = sobol(space.unit_dim, log2, (seed, 8)), "over the whole space"
    if not space.constraints.texts:
        return ProductMeasure(space, numbers, u, False, note)
    for log2_tried in range(log2, _LOG2_TRIED + 1):
        u = sobol(space.unit_dim, log2_tried, (seed, 8))
        u = u[space.feasible_set.contains(space.from_unit(u))]
        if len(u) >= lines or (space.constraints.functions and log2_tried > 11):
            break
    if len(u) >= _ENOUGH:
        return ProductMeasure(space, numbers, u[:lines], True, "over the feasible part of the space")
    note = "over the whole space, ignoring the constraints, because they leave very little of it"
    return ProductMeasure(space, numbers, sobol(space.unit_dim, log2, (seed, 8)), False, note)


def _nodes(part: Any) -> tuple[Array, Array]:
    """Return points (q,) of [0, 1] and their weights: the levels of a parameter with few of them, else a Gauss rule."""
    if part.count is not None and part.count <= NODES:
        fine = (np.arange(8192) + 0.5) / 8192
        level = part.level_numbers(part.from_unit(fine)).astype(np.intp)
        counts = np.bincount(level)
        (there,) = np.nonzero(counts)
        middles = np.array([np.median(fine[level == k]) for k in there])
        return middles, counts[there] / counts.sum()
    x, w = np.polynomial.legendre.leggauss(NODES)
    return 0.5 * (x + 1.0), 0.5 * w


# The values of f there


def _paths(
    posterior: Posterior,
    measure: ProductMeasure | TableMeasure,
    start: Array,
    size: int,
    count: int,
    rng: np.random.Generator,
) -> Paths:
    """Draw `size` functions from a posterior, with `count` random features.

    A kernel without random features is drawn at the points of some lines.
    """
    rough = has_features(posterior.kernel)
    z = start[None] if rough else np.unique(measure.along(0).rows[:, 0], axis=0)[:_JOINT]
    return PathSampler.of(posterior, z).paths(size, rng, rough=rough, count=count)


def _one(axis: Axis, lines: ParameterLines, few: int, drawn: list[Paths], ledger: Ledger) -> Importance:
    """Return the indices along one parameter: those of the drawn functions, on the first few of the lines."""
    _, q, d = lines.rows.shape
    mean = _in_units_of_y(ledger, mean_in_chunks(ledger.model.posterior, lines.rows.reshape(-1, d))).reshape(-1, q, 1)
    flat = lines.rows[:few].reshape(-1, d)
    step = max(1, _AT_ONCE // (len(drawn[0].centres) + _FEATURES // len(drawn)))
    parts = [flat[begin : begin + step] for begin in range(0, len(flat), step)]
    values = np.concatenate([np.concatenate([paths.everywhere(part) for part in parts]) for paths in drawn], axis=1)
    values = _in_units_of_y(ledger, values).reshape(-1, q, values.shape[1])
    exact_indices, rough_indices = (indices(mean[:m], lines.weights[:m], uneven=lines.uneven) for m in (len(mean), few))
    drawn_indices = indices(values, lines.weights[:few], uneven=lines.uneven)
    # Fewer lines shift the indices of the mean and those of the drawn functions alike: the shift is subtracted.
    firsts, totals, effects = (
        each + (exact - rough) for each, exact, rough in zip(drawn_indices, exact_indices, rough_indices, strict=True)
    )
    firsts, totals = np.clip(firsts, 0.0, 1.0), np.clip(totals, 0.0, 1.0)
    learned, tails = not ledger.setting.priors.is_fixed, [0.5 * (1.0 - LEVEL), 0.5 * (1.0 + LEVEL)]
    return Importance(
        name=axis.name,
        first=float(np.median(firsts)),
        total=float(np.median(totals)),
        first_interval=index_interval(firsts, learned=learned),
        total_interval=index_interval(totals, learned=learned),
        axis=axis,
        settings=lines.settings,
        effect=effects.mean(axis=1),
        effect_interval=np.quantile(effects, tails, axis=1).T,
    )


def index_interval(draws: Array, *, learned: bool) -> Interval:
    """Return a 95 % interval for an index from draws of it; with a learned prior, WIDER on both sides of the median."""
    interval = credible_interval(draws, LEVEL)
    if not learned:
        return interval
    middle = float(np.median(draws))
    low, high = (middle + WIDER * (end - middle) for end in interval)
    return Interval(max(low, 0.0), min(high, 1.0))


def _in_units_of_y(ledger: Ledger, z: Array) -> Array:
    return ledger.orientation.values(ledger.model.to_units_of_y(z))


def indices(values: Array, weights: Array, *, uneven: bool = False) -> tuple[Array, Array, Array]:
    """Return first-order and total index (s,) and E[f | x_i] (q, s) of s functions with values (m, q, s) along m lines.

    weights (m, q) are the law of x_i on each line. All lines have the same probability, so the joint law of line and
    point is weights / m. The decomposition is exact under that law, whatever the number of lines: first <= total <= 1
    if all lines have the same weights. If the lines are `uneven`, E[f | x_i] is a mean over the few lines that meet a
    point; what this adds to its variance is estimated and subtracted from the first-order index.
    """
    joint = weights / len(weights)
    centre = np.einsum("mq,mqs->s", joint, values)
    off = values - centre
    mass = joint.sum(axis=0)
    given = np.einsum("mq,mqs->qs", joint, off) / np.where(mass > 0.0, mass, 1.0)[:, None]
    line = np.einsum("mq,mqs->ms", weights, off)
    variance = np.einsum("mq,mqs->s", joint, off**2)
    first = mass @ given**2
    if uneven:
        first = np.maximum(first - mass @ np.minimum(_error(off - given, joint), given**2), 0.0)
    total = np.maximum(variance - np.mean(line**2, axis=0), 0.0)
    scale = np.maximum(np.abs(centre), np.abs(off).max(axis=(0, 1), initial=0.0))
    flat: Mask = variance <= 1e-24 * scale**2  # f varies only by rounding: all indices are 0
    unit = np.where(flat, 1.0, variance)
    return np.where(flat, 0.0, first / unit), np.where(flat, 0.0, total / unit), given + centre


def _error(off: Array, joint: Array) -> Array:
    """Return the variances (q, s) of weighted means over lines, from deviations (m, q, s); inf where one line has all
    weight.
    """
    mass, squares = joint.sum(axis=0), (joint**2).sum(axis=0)
    mass = np.where(mass > 0.0, mass, 1.0)
    lines = np.maximum(mass**2 / np.where(squares > 0.0, squares, 1.0), 1.0)  # the effective number of lines
    spread = np.einsum("mq,mqs->qs", joint**2, off**2) / mass[:, None] ** 2
    several: Mask = lines > 1.0 + 1e-9
    return np.where(several[:, None], spread * (lines / np.where(several, lines - 1.0, 1.0))[:, None], np.inf)


def _words(interval: Interval) -> str:
    return f"{interval.lower:5.3f} to {interval.upper:5.3f}"
