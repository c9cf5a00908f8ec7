"""How exactly the trials of a run are measured, where the space has no fidelity: all of them as exactly as can be.

With a fidelity, trials are measured at levels (`levels.AtLevels`) or step by step (`curves.InSteps`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpmi._support.types import Array
from gpmi.trials.output_rows import OutputRow
from gpmi.trials.trial import Trial


class Exactness:
    """What a log asks of the fidelity of its space. A `row` is the coordinates (d,) of a trial."""

    def is_target(self, row: Array) -> bool:
        """Whether a value at a row is what the goal is about."""
        return True

    def reached(self, told: Sequence[int], rows: Mapping[int, Array]) -> Sequence[int]:
        """Return those of the trials with a value that were measured at the target."""
        return told

    def cost_of(self, trial: Trial, row: Array) -> float:
        """Return the cost of a trial so far; 0 without a fidelity."""
        return 0.0

    def costs_of_levels(self, trials: Iterable[Trial], rows: Mapping[int, Array]) -> list[float]:
        """Return the cost of each level; there are none without a fidelity."""
        return []

    def next_costs(
        self, trials: Mapping[int, Trial], rows: Mapping[int, Array], pending: Iterable[int]
    ) -> tuple[float, dict[int, float]]:
        """Return the least cost of a further trial, and that of what is next in each pending trial, by number."""
        return 0.0, {}

    # Curves, which only trials that are measured step by step have

    def check_steps(self) -> None:
        """Refuse a value on the way, unless trials pass through steps."""
        raise ValueError('the space has no steps to report; give it a fidelity such as "epoch": gpmi.Fidelity(1, 52)')

    def check_curve(self, trial: Trial) -> None:
        """Refuse the curve of a trial of another run."""
        if trial.curve:
            remedy = "give it a fidelity with steps, gpmi.Fidelity(1, 52)"
            raise ValueError(f"trial {trial.number} has a curve, but this space has no steps; {remedy}")

    def last_step(self, row: Array | None) -> int:
        """Return the step at which a trial at a row ends; None stands for a trial whose row is not known."""
        return 0

    def enters(self, trial: Trial, row: Array, place: int) -> bool:
        """Whether a value of a curve enters the model."""
        return False

    def at_step(self, row: Array, step: int) -> Array:
        """Return the row of the same point at a step."""
        return row

    def ended(self, trial: Trial, row: Array) -> Trial:
        """Return a trial with an outcome as the log keeps it."""
        return trial

    def values_of(self, name: str, trial: Trial, row: Array) -> Iterator[OutputRow]:
        """Yield the values of an output of a trial that enter its model: those on the way, and the last one."""
        if trial.status == "told" and name in trial.values:
            yield OutputRow(trial.order or 0, trial.number, row, trial.values[name], *trial.noise_of(name))
