"""Rival hypotheses: other accounts of f, which compete with the model of a run for the choice of the next point.

A rival has a prior, the part of the log that it knows, and a rule that says when it leads: by how well it predicted, or
by turns where predictions are a poor judge. The model of the run has all values and everything that is known of the
space. To add a rival, write a subclass here and name it in `rivals_of`; `trials/target.py` has parts of a log, which
may lose values as well as gain them. What competes within one fit (an earlier study, a transformation of y) is decided
by the evidence of that fit, in `model/fitting`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from gpmi._support.types import Event
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.model import ModelSetting
from gpmi.optimizer.arguments import Arguments
from gpmi.optimizer.levels import IGNORED, trust
from gpmi.trials import Log
from gpmi.trials.target import at_target


@dataclass(frozen=True, eq=False)
class Rival(ABC):
    """Another account of f."""

    priors: PriorSchedule  # of a single score
    output_setting: Callable[[str], ModelSetting]  # of each output, where there are several
    event: ClassVar[Event | None] = None  # noted when it leads
    redesigns: ClassVar[bool] = False  # whether the initial design is completed within its part of the log
    is_judged: ClassVar[bool] = False  # whether its predictions are compared with those of the run's model

    @abstractmethod
    def part(self, log: Log) -> Log:
        """Return what it knows of a log."""

    @abstractmethod
    def leads(self, log: Log) -> bool:
        """Whether it chooses the next point."""


@dataclass(frozen=True, eq=False)
class TargetAlone(Rival):
    """The values at the target of a fidelity with levels say more without the others. Judged by its predictions."""

    event: ClassVar[Event | None] = IGNORED
    redesigns: ClassVar[bool] = True
    is_judged: ClassVar[bool] = True

    def part(self, log: Log) -> Log:
        return at_target(log)

    def leads(self, log: Log) -> bool:
        return trust(log) < 0.0


@dataclass(frozen=True, eq=False)
class NamesAlone(Rival):
    """Options are known by their names, not by their descriptors, which may mislead. It leads at every second query."""

    def part(self, log: Log) -> Log:
        return log

    def leads(self, log: Log) -> bool:
        return len(log) % 2 == 1


def rivals_of(arguments: Arguments) -> tuple[Rival, ...]:
    """Return the rivals of a run."""
    rivals: list[Rival] = []
    if arguments.levels is not None:
        setting = partial(arguments.output_setting, levels=False)
        rivals.append(TargetAlone(arguments.single_priors(), setting))
    has_turns = arguments.goals.single is not None and arguments.learns_kernels and not arguments.earlier.studies
    if arguments.space.features is not None and has_turns and not rivals:
        rivals.append(NamesAlone(arguments.single_priors(features=None), arguments.output_setting))
    return tuple(rivals)
