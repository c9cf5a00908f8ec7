"""A ledger with chosen numbers, for tests of what is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpmi.analysis.ledger import facts
from gpmi.analysis.ledger.calibration import Calibration
from gpmi.analysis.ledger.facts import Caveat, Fact, RunLedger
from gpmi.analysis.ledger.gain import Gain
from gpmi.analysis.ledger.options import OptionSummary
from gpmi.space import Space

FINE = np.linspace(-1.6, 1.6, 20)  # residuals of a model that is right
WRONG = np.full(20, 4.0)  # of one that is over-confident


@dataclass(frozen=True, eq=False, repr=False)
class SampleLedger(RunLedger):
    """A ledger in which ten more evaluations gain something by `chance`, and a better point exists by `missed`."""

    chance: float
    missed: float = 0.0
    step: float = 1.5
    noise: float = 1.5
    given: float | None = None  # the standard deviation of the noise, if it is given
    residuals: tuple[float, ...] = tuple(FINE)
    tried: int | None = None  # the number of values of the option DMF, if there is a choice
    why_unknown: str | None = None
    nothing: ClassVar[str] = "nothing"

    n: ClassVar[int] = 20  # type: ignore[assignment]
    space: ClassVar[Space] = Space.of([(0.0, 1.0)])  # type: ignore[assignment]
    lacking: ClassVar[int] = 3  # type: ignore[assignment]

    @property
    def unknown(self) -> str | None:
        return self.why_unknown

    @property
    def calibrations(self) -> Mapping[str, Calibration]:
        return {"": Calibration(np.array(self.residuals), lambda: None)}  # type: ignore[arg-type, return-value]

    @property
    def smallest_gain(self) -> float:
        return self.step

    def gain(self, evaluations: int = 10) -> Gain:
        return Gain(evaluations, np.where(np.arange(1000) < 1000 * self.chance, 2.0 * self.step, 0.0))

    @property
    def gain_unit(self) -> float:
        return 1.0

    def stagnates(self, evaluations: int) -> bool:
        return False

    def amount(self, size: float) -> str:
        return f"{size:g}"

    @property
    def least_gain(self) -> str:
        return f"{self.step:g}"

    def improvement_in_words(self, unit: str) -> str:
        return facts.improvement(self.step, self.noise, self.given, unit)

    @property
    def scarcest(self) -> OptionSummary | None:
        return None if self.tried is None else OptionSummary("solvent", "DMF", self.tried, idle=0)

    def caveat(self, unit: str = "") -> Caveat:
        return facts.better_point(self.missed, 0.25 * self.step, 10.0 * self.step, unit)

    def run_facts(self) -> list[Fact]:
        return [facts.values(self.n, 15, 3)]

    def missing_fact(self) -> Fact:
        return facts.distance(0.0, 3.0)

    def noise_fact(self) -> Fact:
        return facts.noise(self.noise, (self.noise, self.noise))

    def other_facts(self) -> list[Fact]:
        return [facts.information(2.0), *facts.calibrations(self)]
