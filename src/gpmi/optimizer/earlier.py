"""The earlier studies of an Optimizer: what they say about each output, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.sobol import far_apart
from gpmi._support.types import Array, Event
from gpmi.model.fitting.source_rows import SourceRows
from gpmi.model.model import Model
from gpmi.model.outputs import orientation_of
from gpmi.model.sources import KnownSources, SourceSummary, known_sources, summaries
from gpmi.optimizer.suggestion import APART
from gpmi.space import Space
from gpmi.trials.goal_kinds import Match
from gpmi.trials.goals import Goals
from gpmi.trials.sources import EarlierStudy, sources_of


class EarlierStudies:
    """The argument `earlier` of an Optimizer, validated. Each study is fitted alone once for each output.

    `where` are the arguments of a `PriorSchedule` about the space.
    """

    def __init__(self, given: Any, space: Space, goals: Goals, where: Mapping[str, Any]) -> None:
        self.studies: tuple[EarlierStudy, ...] = sources_of(given, space, goals)
        self._space, self._goals, self._where = space, goals, where
        self._outputs = list(goals.objectives)
        self._known: dict[str, KnownSources] = {}

    def check(self, kernel: Any, mean: Any, noise: Any) -> None:
        """Refuse arguments of an Optimizer that do not go with earlier studies."""
        if not self.studies:
            return
        if kernel is not None:
            raise ValueError(
                f"kernel is {checks.shown(kernel)}, but with earlier= it is learned; leave out one of them"
            )
        if mean is not None:
            raise ValueError(
                f"mean is {checks.shown(mean)}, but earlier= is a prior mean as well; leave out one of them"
            )
        if noise == "student":
            raise ValueError("noise is 'student', but earlier= needs normal noise; leave out one of them")
        for name in self._space.target_values:
            raise ValueError(
                f"the space has the fidelity {name!r}, which earlier= does not support; leave out one of them"
            )

    def rows(self, output: str) -> SourceRows | None:
        """Return the values that the model of an output is conditioned on; None if there are none."""
        return self._of(output).rows if self.studies and output in self._outputs else None

    def _of(self, output: str) -> KnownSources:
        if output not in self._known:
            oriented = orientation_of(self._goals[output])
            self._known[output] = known_sources(self.studies, output, oriented, self._space, **self._where)
        return self._known[output]

    @property
    def best(self) -> list[Array]:
        """The best point of each study for each output; of those that are close, one.

        A target has none: a study may have other units.
        """
        aimed = [output for output in self._outputs if not isinstance(self._goals[output], Match)]
        sources = [self._of(output) for output in aimed] if self.studies else []
        rows = [row for source in sources for row in source.best]
        unit = (np.array(rows).reshape(-1, self._space.dim) - self._space.lo) / self._space.span
        return [rows[i] for i in far_apart(unit, np.arange(len(unit)), APART)]

    @property
    def events(self) -> list[Event]:
        """What was left out, and why."""
        skipped = [study.event for study in self.studies if study.event is not None]
        return [*skipped, *(event for output in self._outputs if self.studies for event in self._of(output).events)]

    def summaries(self, models: Mapping[str, Model | None]) -> tuple[SourceSummary, ...]:
        """Return what the models of the outputs make of each study, by the output if there are several."""
        listed: list[SourceSummary] = []
        for output in self._outputs if self.studies else ():
            of_output = summaries(self.studies, output, models.get(output))
            several = len(self._outputs) > 1
            listed += [
                summary._replace(name=f"{summary.name} ({output})") if several else summary for summary in of_output
            ]
        return tuple(listed)
