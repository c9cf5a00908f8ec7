"""The view of a run whose result is a front: several objectives, or a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support.text import rough, rounded, shortened
from gpmi._support.types import Array
from gpmi.analysis import FrontAnalysis, FrontBands, FrontLedger
from gpmi.analysis.ledger import OptionSummary, share_missing
from gpmi.trials import Match, Trial
from gpmi.trials.goal_summary import superlative, told_front
from gpmi.views.findings import Finding, NamedPoint, Number
from gpmi.views.front_view import MAX_BANDS, pairs_of
from gpmi.views.run_view import NAME, Judgement, OutputView, RunView, mean_totals


@dataclass(frozen=True, eq=False, kw_only=True)
class FrontView(RunView):
    """The view of a run with several objectives, or with a target: what was found is a front."""

    ledger: FrontLedger | None

    @classmethod
    def read_model(cls, source: Any) -> tuple[FrontLedger | None, FrontAnalysis | None]:
        """Return the ledger of the front, and what is known of all outputs."""
        ledger = source.ledger
        return ledger, source.front_analysis if ledger is None else ledger.analysis

    # Outputs

    @cached_property
    def each_output(self) -> tuple[OutputView, ...]:
        """The view of each output with a model."""
        return tuple(self.of_output(name) for name in self.output_names)

    @cached_property
    def objective_views(self) -> tuple[OutputView, ...]:
        """The view of each objective with a value."""
        return tuple(view for view in self.each_output if view.key in self.objectives)

    @property
    def focus(self) -> tuple[OutputView, ...]:
        """The only objective, if it has values; otherwise all outputs."""
        return self.objective_views if len(self.objectives) == 1 and self.objective_views else self.each_output

    @property
    def series(self) -> tuple[OutputView, ...]:
        """All outputs, one with a target as the distance from it."""
        return tuple(view.as_shown for view in self.each_output)

    @property
    def regret_views(self) -> tuple[OutputView, ...]:
        """None: a front has no simple regret."""
        return ()

    @property
    def hypervolumes(self) -> tuple[FrontLedger, ...]:
        """The ledger of several objectives."""
        return (self.ledger,) if self.ledger is not None and len(self.objectives) > 1 else ()

    @property
    def meaning(self) -> str:
        """What the hypervolume is."""
        rest = "from the reference on: the more, the better."
        return f"The hypervolume is the volume of what the front dominates, {rest}"

    # What was found

    @cached_property
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other trial beats in every objective; by the values told if there is no model."""
        return told_front(self.trials, self.goals, self.space) if self.analysis is None else self.analysis.front

    @cached_property
    def middle(self) -> Trial | None:
        """The trial on the front that is farthest from the worst value there in every objective: a compromise."""
        if not self.front:
            return None
        values = np.stack([self._oriented(name) for name in self.objectives], axis=1)
        worst, span = values.min(axis=0), np.ptp(values, axis=0)
        shares = (values - worst) / np.where(span > 0.0, span, 1.0) + (span == 0.0)
        return self.front[int(np.argmax(shares.min(axis=1)))]

    @property
    def compromise(self) -> Trial | None:
        """The trial in the middle of the front, if that has several."""
        return self.middle if len(self.front) > 1 else None

    def _oriented(self, name: str) -> Array:
        """Return an objective on the front, larger is better, (n,)."""
        values = [trial.outputs[name] for trial in self.front]
        return np.array([float(self.objectives[name].oriented(np.asarray(value))) for value in values])

    @cached_property
    def is_noisy(self) -> bool:
        """Whether an objective is noisy, so that the front compares posterior means and not the values told."""
        if self.analysis is None:
            return False
        trials, compared = self.analysis.known
        columns = ((goal, [trial.outputs[name] for trial in trials]) for name, goal in self.objectives.items())
        told = np.stack([goal.oriented(np.array(y, dtype=float)) for goal, y in columns], axis=1)
        return not np.array_equal(told, compared)

    def check_front(self) -> None:
        """Do nothing: there are several objectives, or a target."""

    @property
    def on_front(self) -> tuple[int, ...]:
        """The numbers of the trials on the front in their order."""
        return tuple(trial.number for trial in self.front)

    def front_bands(self, x: str, y: str) -> FrontBands | None:
        """Return where the front of two objectives lies; None while it is unknown, and if a band were too costly."""
        pairs = pairs_of(self.goals)
        if self.ledger is None or len(pairs) > MAX_BANDS:
            return None
        bands = self.ledger.front_bands(x, y)
        is_drawn = bands is not None and np.ptp(bands.high, axis=0).any()  # without a front it is a point
        return bands if is_drawn else None

    @cached_property
    def recommended_row(self) -> Array | None:
        """The coordinates (d,) of `middle`."""
        return None if self.middle is None else self.space.encode(self.middle.x)

    def centre_of(self, output: str) -> tuple[str, str]:
        """Return what `middle` is called; without a front the pictures of an output go through its best point."""
        if self.middle is None:
            return f"the point with the best {output}", f"best {output}"
        where = "in the middle of the front" if len(self.front) > 2 else "on the front"
        name = f"trial {self.middle.number}"
        return f"{name} ({where})", name

    @property
    def centre(self) -> str:
        """What the point is called that slices and maps go through."""
        return self.centre_of("output")[0]

    @cached_property
    def totals(self) -> Array | None:
        """How much each parameter that varies matters, (p,): the mean over the outputs; None while it is unknown."""
        return mean_totals(self.each_output)

    @property
    def success(self) -> float | None:
        """The probability that an evaluation at `middle` succeeds and keeps all limits; None if it is unknown."""
        row, chance = self.recommended_row, None if self.analysis is None else self.analysis.chance
        return None if row is None or chance is None else float(chance(row[None])[0])

    @property
    def options(self) -> tuple[OptionSummary, ...]:
        """What is known of each option for each objective without a target: at that its largest value is not best."""
        targets = {name for name, goal in self.goals.items() if isinstance(goal, Match)}
        return tuple(option for option in super().options if option.output not in targets)

    def options_for(self, output: str) -> tuple[OptionSummary, ...]:
        """Return what is known of each option for one objective; nothing for a limit."""
        return tuple(option for option in self.options if option.output == output)

    @property
    def why_nothing(self) -> str:
        """Why there is no front, as a sentence."""
        what = "has all objectives, keeps all limits and is acceptable" if self.told else "has a value"
        return f"No trial {what} yet."

    @property
    def _finding(self) -> Finding | None:
        """How large the front is, its ends and its middle, and how much it covers."""
        if not self.front:
            return None
        are = "1 is" if len(self.front) == 1 else f"{len(self.front)} are"
        elsewhere = "no other trial is better in one objective without being worse in another"
        lead = f"Of {len(self.told)} trials, {are} on the front: {elsewhere}."
        if len(self.objectives) == 1:
            (name,), best = self.objectives, self.front[0]
            value = rounded(best.outputs[name])
            lead = f"Trial {best.number} is the closest to the target of {name}: {value}.{self.compared}"
        covered = (_coverage(ledger, ledger.reference) for ledger in self.hypervolumes if ledger.reference is not None)
        return Finding((lead,), (), self._ends(), tuple(covered))

    def _ends(self) -> tuple[NamedPoint, ...]:
        """Return the best trial on the front for each objective, and the one in the middle."""
        named: dict[int, list[str]] = {}
        for name, goal in self.objectives.items():
            best = self.front[int(np.argmax(self._oriented(name)))]
            named.setdefault(best.number, []).append(f"{superlative(goal)} {shortened(name, NAME)}")
        if self.middle is not None and len(self.front) > 2:
            named.setdefault(self.middle.number, []).append("in the middle")
        trials = {trial.number: trial for trial in self.front}
        return tuple(
            NamedPoint(f"{', '.join(words)} (trial {n})", trials[n].x, dict(trials[n].outputs), f"trial {n}")
            for n, words in named.items()
        )

    @property
    def compared(self) -> str:
        """How the trials on the front were compared if values are noisy, as a sentence after another one."""
        return " Where values are noisy, what the model believes is compared, not a single lucky value." * self.is_noisy

    # Trials

    @property
    def columns(self) -> tuple[str, ...]:
        """All outputs."""
        return tuple(self.goals)

    @property
    def judgement_titles(self) -> tuple[str, ...]:
        """The column that says which trials are on the front."""
        return ("front",)

    def judgements(self, trial: Trial) -> tuple[Judgement, ...]:
        """Return whether a trial is on the front."""
        return (Judgement("yes" if trial.number in self.front_numbers else ""),)


def _coverage(ledger: FrontLedger, reference: Mapping[str, float]) -> tuple[str, ...]:
    """Return how much a front covers and how much is still to be had, in words."""
    worst = " and ".join(f"{shortened(name, NAME)} {rounded(value)}" for name, value in reference.items())
    missing = ledger.missing
    rest = f"How much is still to be had is {missing.how}."
    if missing.known:
        rest = f"Missing is {share_missing(missing.share()[1])}."
    volume = Number(rough(ledger.hypervolume, 4))
    return "The hypervolume of the front is ", volume, f": how much it covers, counted from {worst}. ", rest
