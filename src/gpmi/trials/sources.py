"""Values of earlier studies that a user gives by name: `earlier={"last year": study}`.

A named source is a function that is related to that of the new study, not the same one. A plain list of values from
before, without a name, is told instead (`Optimizer.tell_all`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from gpmi._support.checks import shown
from gpmi._support.types import Array, Event, Observations, Point
from gpmi.space import Space
from gpmi.trials.dataframe import trials_given
from gpmi.trials.files import from_frame
from gpmi.trials.goals import Goals
from gpmi.trials.outcomes import Outcome, details_of
from gpmi.trials.outputs import NONE
from gpmi.trials.trial import Trial

OTHER_COLUMNS = {"status", "noise_var", "repeats"}  # of a table of trials: it is read as such
_LISTS = "give a study, a Result, trials, a DataFrame, or a list of (x, y)"


class SourceValue(NamedTuple):
    """A value of a source as it is stored: a point in the form of its own study, and what was measured there."""

    x: Point
    y: float | None
    noise_var: float = 0.0
    repeats: int = 1
    outputs: Mapping[str, float] = NONE  # of a study with goals
    output_noise_var: Mapping[str, float] = NONE
    output_repeats: Mapping[str, int] = NONE

    def of(self, output: str) -> tuple[float, float, int] | None:
        """Return the value of an output, its noise variance and its repeats; None if it has none. y stands for any."""
        if not self.outputs:
            return None if self.y is None else (self.y, self.noise_var, self.repeats)
        if output not in self.outputs:
            return None
        return self.outputs[output], self.output_noise_var.get(output, 0.0), self.output_repeats.get(output, 1)


@dataclass(frozen=True, eq=False)
class EarlierStudy:
    """The values of an earlier study, those inside the space of the new one with their coordinates."""

    name: str
    values: tuple[SourceValue, ...]
    rows: Array  # (n, d)
    inside: tuple[int, ...]  # the numbers of the values behind the rows

    def observed(self, output: str) -> Observations:
        """Return its values of an output, as they were measured."""
        values = [(row, self.values[i].of(output)) for row, i in zip(self.rows, self.inside, strict=True)]
        measured = [(row, *value) for row, value in values if value is not None]
        if not measured:
            return Observations.of(np.empty((0, self.rows.shape[1])), np.empty(0))
        x, y, noise, repeats = zip(*measured, strict=True)
        return Observations.of(np.array(x), np.array(y, float), np.array(noise, float), np.array(repeats, float))

    @property
    def event(self) -> Event | None:
        """Say how many of its values lie outside the space, if any."""
        skipped = len(self.values) - len(self.inside)
        if not skipped:
            return None
        text = f"{skipped} of the {len(self.values)} values of {self.name!r} lie outside the space and are left out"
        return Event("source skipped", text)


def names_sources(earlier: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether earlier= names its sources: then they are related functions, not values of the same one."""
    return isinstance(earlier, Mapping)


def sources_of(earlier: Any, space: Space, goals: Goals) -> tuple[EarlierStudy, ...]:
    """Validate the argument `earlier` of an Optimizer and return its sources, sorted by name."""
    if not earlier and (earlier is None or names_sources(earlier)):
        return ()
    if not names_sources(earlier):
        remedy = 'name them if they are of a related function, earlier={"last year": ...}; tell values of the same'
        raise TypeError(f"earlier is {shown(earlier)}; {remedy} function, opt.tell_all(...)")
    return tuple(_source(name, earlier[name], space, goals) for name in sorted(earlier, key=_checked_name))


def values_of(name: str, given: Any, space: Space, goals: Goals) -> tuple[SourceValue, ...]:
    """Return the values of a source. Trials without one are left out."""
    where = f"earlier[{name!r}]"
    if isinstance(given, str | PathLike):
        remedy = "open it with gpmi.study(path), or give its trials"
        raise TypeError(f"{where} is {shown(given)}, a path, which an Optimizer does not open; {remedy}")
    if hasattr(given, "columns") and hasattr(given, "iloc"):  # a DataFrame
        plain = not goals.named and space.names is not None and not OTHER_COLUMNS & set(given.columns)
        given = _rows_of(where, given, space.names or ()) if plain else from_frame(given, space, goals)
    if isinstance(given, Mapping):
        raise TypeError(f"{where} is {shown(given)}; {_LISTS}")
    values = []
    for observation in trials_given(where, given):
        if isinstance(observation, Trial) and observation.status != "told":
            continue
        values.append(observation if isinstance(observation, SourceValue) else _value(where, observation, goals))
    _check_outputs(where, values, goals)
    return tuple(values)


def _rows_of(where: str, frame: Any, names: Sequence[str]) -> list[tuple[dict[str, Any], Any]]:
    """Return the points and values of a table with a column for each parameter and one named y; others are ignored.

    Cells without a value are left out, and so are rows without y. Points outside the space are skipped later.
    """
    if missing := [name for name in (*names, "y") if name not in frame.columns]:
        raise ValueError(f"{where} is a table without {missing}; give it a column for each parameter, and y")
    rows = frame[[*names, "y"]].to_dict("records")
    points = [{name: cell for name, cell in row.items() if cell is not None and cell == cell} for row in rows]
    return [({name: point[name] for name in names if name in point}, point["y"]) for point in points if "y" in point]


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise TypeError(f"earlier has the name {shown(name)}; give each source a text as its name")
    return name


def _value(where: str, observation: Any, goals: Goals) -> SourceValue:
    if isinstance(observation, Trial):
        details = details_of(observation)
        Outcome("told", observation.y, **details).checked()
        kept = ("noise_var", "repeats", "outputs", "output_noise_var", "output_repeats")
        return SourceValue(observation.x, observation.y, **{name: details[name] for name in kept if name in details})
    if not isinstance(observation, tuple | list) or len(observation) not in (2, 3):
        raise TypeError(f"{where} has {shown(observation)}; give (x, y), (x, y, noise_var) or a Trial")
    x, y, noise_var = observation[0], observation[1], observation[2] if len(observation) == 3 else 0.0
    if isinstance(y, Mapping):
        outcome = goals.outcome(y, noise_var=noise_var)
        return SourceValue(x, None, outputs=outcome.outputs, output_noise_var=outcome.output_noise_var)
    outcome = Outcome.value(y, noise_var=noise_var)
    return SourceValue(x, outcome.y, outcome.noise_var)


def _check_outputs(where: str, values: Iterable[SourceValue], goals: Goals) -> None:
    """Refuse a source that measured something else than this study does."""
    for value in values:
        mismatch = goals.mismatch(value.y, value.outputs)
        if mismatch is not None:
            raise ValueError(f"{where} {mismatch}")


def _source(name: str, given: Any, space: Space, goals: Goals) -> EarlierStudy:
    values = values_of(name, given, space, goals)
    _check_parameters(name, values, space)
    rows, inside, reason = [], [], ""
    for i, value in enumerate(values):
        try:
            rows.append(space.encode(value.x))
            inside.append(i)
        except (TypeError, ValueError) as error:
            reason = str(error)
    if values and not rows:
        remedy = "leave it out, or give the space that it had"
        raise ValueError(f"earlier[{name!r}] has {len(values)} values, none of them in the space ({reason}); {remedy}")
    return EarlierStudy(name, values, np.array(rows) if rows else np.empty((0, space.dim)), tuple(inside))


def _check_parameters(name: str, values: tuple[SourceValue, ...], space: Space) -> None:
    """Refuse points that do not have the parameters of the space. One that is inactive may be absent from some."""
    if space.names is None or not values:
        return
    where = f"earlier[{name!r}]"
    if not all(isinstance(value.x, Mapping) for value in values):
        odd = next(value.x for value in values if not isinstance(value.x, Mapping))
        raise ValueError(f"{where} has the point {shown(odd)}; give points as dicts of {', '.join(space.names)}")
    there = dict.fromkeys(key for value in values for key in value.x)
    if missing := [parameter for parameter in space.names if parameter not in there]:
        remedy = "add the value that it had then to each point, or leave the source out"
        raise ValueError(f"{where} has points without {', '.join(map(repr, missing))}; {remedy}")
    if unknown := [parameter for parameter in there if parameter not in space.names]:
        remedy = "drop it from the points if it does not matter, or leave the source out"
        raise ValueError(f"{where} has points with {', '.join(map(repr, unknown))}, not in the space; {remedy}")
