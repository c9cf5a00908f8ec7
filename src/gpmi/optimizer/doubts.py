"""Which values are doubtful: those that miss what was predicted before they came, and do not fit the others after.

It is decided when a value is told, and recorded in the log with that value. So a suggestion is a function of the log,
and a run that goes on elsewhere goes on with the same decision. Until a doubt is answered, the first one about each
output is set aside: no model knows its value, and its trial counts as one whose value is still to come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from gpmi._support.types import Event, Numbers, Observations
from gpmi.analysis.misfit import LATER, SUSPECT, Misfit, misfit
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.model import ModelSetting
from gpmi.model.orientation import Orientation
from gpmi.trials import Log

Doubts = Mapping[int, Mapping[str, str]]  # all doubts of each trial about which some changed


@dataclass(frozen=True, eq=False)
class OutputValues:
    """The values of one output, and how far each was from its prediction."""

    name: str
    setting: ModelSetting
    orientation: Orientation
    numbers: tuple[int, ...]  # of the trials behind the rows of the model, in order
    surprises: tuple[float, ...]  # of these rows: each was predicted from those before it

    def suspects(self, log: Log, number: int) -> dict[int, bool]:
        """Return the trials that may be doubtful, and whether they surprised: this one and the LATER values before it.

        Values of the initial design had no prediction. The largest and the smallest of all values is judged with the
        first values that the policy chose, if it is one of them: the decimal point may have slipped.
        """
        rows = {row: surprise for row, surprise in zip(self.numbers, self.surprises, strict=True)}  # the last is y
        told = [trial for trial in rows if log[trial].status == "told"]
        recent = [trial for trial in [*[other for other in told if other != number][-LATER:], number] if trial in rows]
        suspects = {trial: log[trial].origin != "design" for trial in recent if abs(rows[trial]) > SUSPECT}
        if sum(log[trial].origin == "policy" for trial in told) <= LATER + 1:
            extremes = (pick(told, key=lambda trial: log[trial].values[self.name]) for pick in (min, max))
            suspects |= {trial: False for trial in extremes if log[trial].origin == "design"}
        return {trial: surprised for trial, surprised in suspects.items() if self.name not in (log[trial].doubts or {})}


def judges(priors: PriorSchedule) -> bool:
    """Return whether values are judged at all: if the kernel is learned, and the noise has no heavy tails.

    A given kernel is the user's, to the letter. Heavy tails make any value possible.
    """
    return priors.learns_kernel and not priors.student_noise


def doubt_events(log: Log) -> list[Event]:
    """Return an event for each value that does not fit the others, with the question whether it is right. O(n)"""
    return [Event("doubtful value", f"trial {t.number}: {t.doubt}") for t in log.trials if t.doubt is not None]


def doubts_after(log: Log, outputs: Iterable[OutputValues], number: int) -> Doubts:
    """Return what changes about doubts with the value of a trial, which was told last."""
    changes: dict[int, dict[str, str]] = {}
    for output in outputs:
        suspects = output.suspects(log, number)
        if suspects:
            for trial, why in _Judge(log, output).judged(suspects).items():
                texts = changes.setdefault(trial, dict(log[trial].doubts or {}))
                texts.pop(output.name, None)
                texts |= {output.name: why} if why else {}
    return changes


class _Judge:
    """Judges values of one output, each from all others but the one that is set aside."""

    def __init__(self, log: Log, output: OutputValues) -> None:
        self._output, self._log = output, log
        self._numbers, observed = log.observed_output(output.name, all_values=True)
        self._observed = _oriented(observed, output.orientation)
        self._aside = log.set_aside.get(output.name)

    def judged(self, suspects: Mapping[int, bool]) -> dict[int, str]:
        """Return why each suspect is doubtful, and an empty text for a doubt that is none any more.

        The value that is set aside comes first: one that misses its prediction, too, may show that it was right.
        """
        changes: dict[int, str] = {}
        name, log = self._output.name, self._log
        open_doubts = [n for n in dict.fromkeys(self._numbers) if (log[n].doubts or {}).get(name)]
        for number in open_doubts:
            judgement = self._misfit(number)
            if judgement is not None and judgement.fits:
                changes[number] = ""
                self._aside = None if number == self._aside else self._aside
        for number, surprised in suspects.items():
            judgement = self._misfit(number)
            if judgement is not None and (judgement.is_doubtful if surprised else judgement.shifted):
                changes[number] = judgement.why
                self._aside = number if self._aside is None else self._aside
        return changes

    def _misfit(self, number: int) -> Misfit | None:
        """Return how far the value of a trial is from what the others predict."""
        numbers, observed = np.array(self._numbers), self._observed
        place = int(np.nonzero(numbers == number)[0][-1])  # of several values of a curve, the last
        aside = np.zeros(len(numbers), dtype=bool) if self._aside is None else numbers == self._aside
        others = np.nonzero(~aside & (np.arange(len(numbers)) != place))[0]
        sign = -1.0 if self._output.orientation.mirrors else 1.0
        return misfit(self._output.setting, _rows(observed, others), observed.part(place, place + 1), sign)


def _rows(observed: Observations, rows: Numbers) -> Observations:
    return Observations.of(observed.x[rows], observed.y[rows], observed.noise_var[rows], observed.repeats[rows])


def _oriented(observed: Observations, orientation: Orientation) -> Observations:
    return replace(observed, y=orientation.values(observed.y))
