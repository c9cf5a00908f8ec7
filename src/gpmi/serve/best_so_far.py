"""What a study has found so far: its best trial or, with several objectives or a target, the trials on its front."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpmi._support.text import rounded
from gpmi._support.types import Point
from gpmi.serve.front_page import front_card
from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.model_worker import StudySummary
from gpmi.serve.output_fields import ON_FRONT, OutputField
from gpmi.serve.parameter_fields import format_point
from gpmi.serve.session import Session, StudySnapshot
from gpmi.trials import Objective, Trial
from gpmi.trials.goal_summary import superlative, told_front
from gpmi.views.html.markup import Child, Markup, tag

LUCK = "A single measurement: part of it may be luck."
NOTHING = tag("p", "Nothing has been measured yet.", class_="empty")


@dataclass(frozen=True)
class BestSoFar(ABC):
    """What pages say of the best trials of a study."""

    session: Session
    snapshot: StudySnapshot
    live: LiveUpdates

    @property
    def at(self) -> str:
        """The address of the study."""
        return f"/study/{self.session.slug}"

    @cached_property
    @abstractmethod
    def marks(self) -> Mapping[int, str]:
        """The numbers of the best trials, each with what a table notes there."""

    @property
    @abstractmethod
    def unit(self) -> str:
        """The unit of what is expected at the point to use."""

    @abstractmethod
    def headline(self) -> list[Child]:
        """Return the best results, for the card with the summary."""

    @abstractmethod
    def card(self) -> Markup | None:
        """Return a card with pictures of the best trials; None if the headline says everything."""

    @abstractmethod
    def follow(self) -> str | None:
        """Let the model be computed if a list of trials needs it; return the log entry up to which it is."""


class BestTrial(BestSoFar):
    """The trial with the best value of the only objective."""

    @property
    def output(self) -> OutputField:
        """The objective."""
        (objective,) = self.session.outputs.objectives
        return objective

    @cached_property
    def marks(self) -> Mapping[int, str]:
        return {} if self.snapshot.best is None else {self.snapshot.best.number: ""}

    @property
    def unit(self) -> str:
        return self.output.unit

    def headline(self) -> list[Child]:
        best, output = self.snapshot.best, self.output
        if best is None:
            return [NOTHING]
        label = "" if best.label is None else f", row {best.label}"
        unit = tag("span", f" {output.unit}", class_="unit") if output.unit else None
        largest = superlative(self.session.goals.objectives[output.name]).capitalize()
        return [
            tag("p", f"{largest} {output.noun} so far", class_="muted over"),
            tag("p", rounded(best.y), unit, class_="big"),
            tag("p", tag("a", f"trial {best.number}", href=f"{self.at}/trial/{best.number}"), label, class_="muted"),
            tag("p", LUCK, class_="muted") if self._may_be_luck(best) else None,
            coordinates(self.session, best.x),
        ]

    def _may_be_luck(self, best: Trial) -> bool:
        """Whether the best result is better than what is expected at the point to use, with its error bar."""
        live = self.live
        if live.summary is None or live.summary[0] < live.state["seq"] or best.repeats > 1 or best.y is None:
            return False
        believed = live.summary[1].believed
        if believed is None:
            return False
        return best.y > believed[2] if self.session.goal == "max" else best.y < believed[0]

    def card(self) -> Markup | None:
        return None

    def follow(self) -> str | None:
        return None


class BestTradeOffs(BestSoFar):
    """The trials that no other one beats in every objective."""

    @cached_property
    def _model(self) -> StudySummary | None:
        """The summary with the front of the model; None if it is not computed for the trials that are shown."""
        summary = self.live.summary
        return None if summary is None or summary[0] < self.snapshot.seq or summary[1].front is None else summary[1]

    @cached_property
    def marks(self) -> Mapping[int, str]:
        """The front of the model, or of the values told while it is computed."""
        if self._model is not None and self._model.front is not None:
            return dict.fromkeys(self._model.front, ON_FRONT)
        front = told_front(self.snapshot.trials, self.session.goals, self.session.space)
        return {trial.number: ON_FRONT for trial in front}

    @property
    def unit(self) -> str:
        return ""

    def headline(self) -> list[Child]:
        """Return the number of trials on the front, and the best trial in each objective."""
        told = [trial for trial in self.snapshot.trials if trial.status == "told"]
        if not told:
            return [NOTHING]
        outputs, refuses, count = self.session.outputs, self.session.goals.refuses, len(self.marks)
        what = "best trade-off" if len(outputs.objectives) > 1 else "best experiment"
        parts: list[Child] = [
            tag("p", f"{count or 'No'} {what}{'s' if count != 1 else ''} so far", class_="count-of-front")
        ]
        accepted = [trial for trial in told if trial.feasible and not refuses(trial.outputs)]
        rows = [self._best(output, output.goal, accepted) for output in outputs if isinstance(output.goal, Objective)]
        parts += [tag("h3", "The best of each"), tag("dl", rows)]
        if len(accepted) < sum(trial.feasible for trial in told):
            parts.append(tag("p", "Only experiments with values that you would accept count.", class_="muted"))
        if outputs.limits and not any(trial.feasible for trial in told):
            limits = ", ".join(output.name for output in outputs.limits)
            parts.append(tag("p", f"No experiment is known to keep all limits yet: {limits}.", class_="muted"))
        return parts

    def _best(self, output: OutputField, goal: Objective, accepted: list[Trial]) -> Markup:
        """Return the best trial in an objective, among those that are accepted."""
        measured = [(trial, value) for trial in accepted if (value := output.value(trial)) is not None]
        best: Child = "–"
        if measured:
            trial = measured[int(np.argmax(goal.oriented(np.array([value for _, value in measured]))))][0]
            link = tag("a", f"trial {trial.number}", href=f"{self.at}/trial/{trial.number}")
            best = [tag("strong", output.format(trial)), ", ", link]
        return tag("div", tag("dt", f"{superlative(goal)} {output.title}"), tag("dd", best))

    def card(self) -> Markup | None:
        is_old = self.live.state["known"] < self.snapshot.seq
        return front_card(self.session, self.snapshot, self.marks, self._model, is_old=is_old)

    def follow(self) -> str | None:
        self.live.note_seq(self.snapshot.seq)
        self.live.up_to_date()
        return str(self.live.state["known"])


def best_so_far(session: Session, snapshot: StudySnapshot, live: LiveUpdates) -> BestSoFar:
    """Return what a study has found so far."""
    kind = BestTradeOffs if session.goals.single is None else BestTrial
    return kind(session, snapshot, live)


def coordinates(session: Session, x: Point) -> Markup:
    """Return a point as a list of parameters."""
    items = [
        tag("div", tag("dt", field.name), tag("dd", f"{text} {field.unit}".strip()))
        for field, text in format_point(session.fields, x)
    ]
    return tag("dl", items)
