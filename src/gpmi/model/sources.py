"""Earlier studies in the model: functions that are related to f, each with its own mean, scale and noise.

The values of a source are fitted alone once, for its noise and its best point. After that they are rows of every fit,
with a correlation that is learned (`fitting.source_rows`), and f is conditioned on them (`gpmi.gp.conditioned`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpmi._support.types import Array, Event, Observations
from gpmi.gp.kernels import Levels
from gpmi.model.fitting.data import standardised, subset
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.fitting.source_rows import SourceRows
from gpmi.model.fitting.unknowns import BOUNDS_NOISE
from gpmi.model.model import Model, ModelSetting
from gpmi.model.orientation import Orientation
from gpmi.space import Space
from gpmi.trials.sources import EarlierStudy

# The largest number of values of all sources together that is used, each with an equal share: a suggestion costs as
# much as with that many more values of the study. Our choice, not tuned.
MOST_VALUES = 256
CLOSE, LOOSE = 0.7, 0.3  # correlations from which a source is called similar, or a little similar; our choice


@dataclass(frozen=True, eq=False)
class KnownSources:
    """The sources of one output: those of use as rows, and the best point of each, by its own model."""

    rows: SourceRows | None  # None if no source is of use
    best: tuple[Array, ...] = ()  # (d,) each; the source with the most values first
    events: tuple[Event, ...] = ()


class SourceSummary(NamedTuple):
    """What a study made of an earlier one."""

    name: str
    values: int  # inside the space
    correlation: float | None  # learned, in [-1, 1]; None if it is not used
    reason: str = ""  # why it is not used

    def __str__(self) -> str:
        count = f"{self.values} value{'s' if self.values != 1 else ''}"
        if self.correlation is None:
            return f"{self.name}: {self.reason}" + (f", {count}" if self.values > 1 else "")
        size, against = abs(self.correlation), self.correlation < 0.0
        how = "similar" if size >= CLOSE else "a little similar" if size >= LOOSE else "hardly related"
        how = how.replace("similar", "opposite") if against else how
        return f"{self.name}: {how}, correlation {self.correlation:.2f}, {count}"


def known_sources(
    sources: Iterable[EarlierStudy], output: str, orientation: Orientation, space: Space, seed: int, **where: Any
) -> KnownSources:
    """Return the sources of an output, fitted alone; `where` are the span and groups of a `PriorSchedule`. O(n^3)."""
    parts: list[tuple[Array, Array, Array]] = []
    names, best, events = [], list[tuple[int, Array]](), list[Event]()
    sources = tuple(sources)
    for source in sources:
        given = source.observed(output)
        if (reason := why_useless(given)) is not None:
            events.append(Event("source ignored", f"{source.name!r} {reason}, so there is nothing to learn from it"))
            continue
        observed, event = _limited(source.name, given, max(2, MOST_VALUES // len(sources)))
        events += event
        oriented = replace(observed, y=orientation.values(observed.y))
        priors = PriorSchedule(None, None, "map", seed=seed, **where, transforms=False)
        model = Model.after(ModelSetting(space, priors, seed), oriented)
        rows = model.posterior
        _, scale, y = standardised(rows.y)
        noise = np.maximum(rows.noise / scale**2, np.exp(BOUNDS_NOISE[0]))
        parts.append((rows.x, y, noise))
        names.append(source.name)
        best.append((len(observed), model.recommendation.row))
    if not parts:
        return KnownSources(None, events=tuple(events))
    number = np.concatenate([np.full(len(part[1]), i) for i, part in enumerate(parts)])
    x, y, noise = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    ordered = sorted(best, key=lambda pair: -pair[0])
    return KnownSources(SourceRows(x, y, noise, number, tuple(names)), tuple(row for _, row in ordered), tuple(events))


def why_useless(observed: Observations) -> str | None:
    """Return why nothing can be learned from the values of a source; None if something can."""
    if len(observed) < 2:
        return "has one value" if len(observed) else "has no values"
    if not np.any(standardised(observed.y)[2]):
        return "has equal values only"
    return None


def _limited(name: str, observed: Observations, most: int) -> tuple[Observations, list[Event]]:
    """Return at most `most` of the values, among them the largest and the smallest."""
    n = len(observed)
    if n <= most:
        return observed, []
    rows = subset(observed.y, most)
    subsample = Observations.of(observed.x[rows], observed.y[rows], observed.noise_var[rows], observed.repeats[rows])
    return subsample, [Event("source subset", f"{len(subsample)} of the {n} values of {name!r} are used")]


def summaries(sources: Iterable[EarlierStudy], output: str, model: Model | None) -> tuple[SourceSummary, ...]:
    """Return what the model of an output makes of the sources; None: there is no model yet."""
    result = []
    correlations = {} if model is None else correlations_of(model)
    for source in sources:
        observed = source.observed(output)
        correlation, reason = correlations.get(source.name), ""
        if (useless := why_useless(observed)) is not None:
            reason = f"ignored, because it {useless}"
        elif model is None:
            reason = "not compared yet"
        elif correlation is None:
            reason = "ignored, because the values here are predicted better without it"
        result.append(SourceSummary(source.name, len(observed), correlation, reason))
    return tuple(result)


def correlations_of(model: Model) -> Mapping[str, float]:
    """Return the learned correlation of f with each source that the model uses."""
    sources, kernel = model.prior.sources, model.prior.kernel
    if sources is None or not isinstance(kernel, Levels):
        return {}
    return dict(zip(sources.rows.names, kernel.correlations, strict=True))
