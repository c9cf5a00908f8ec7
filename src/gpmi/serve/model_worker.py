"""Everything that needs a model: suggestions, the summary and the pictures. Large studies use separate processes.

A model of n values holds n^2 numbers, 200 MB for 5,000 values, and its draws take minutes. A separate process keeps
both out of the server, which goes on answering. The process ends when it has been idle for a while, which frees the
memory.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from gpmi._support.types import Point
from gpmi.analysis import Chosen
from gpmi.analysis.ledger import Facts, unsaid
from gpmi.run.study import Study, study
from gpmi.storage import StudyError, point_to_json
from gpmi.views.front_view import pairs_of
from gpmi.views.html import IDS, Section, page, sections
from gpmi.views.html.convergence import progress
from gpmi.views.html.markup import tag
from gpmi.views.reading import view_of
from gpmi.views.run_view import RunView

LARGE = 300  # values. Up to here a suggestion takes 0.1 s and the interval about 1 s; measured once
DRAW_LIMIT = 1000  # values. Here the interval of the regret takes 20 s, and minutes with more; measured once
IDLE_TIMEOUT = 120.0  # seconds after which an idle process ends; our choice
NOT_PICTURES = (
    "found",
    "advice",
    "options",
    "tradeoffs",
    "trials",
)  # sections of a report that the page of a study shows in its own way
TOO_MANY = f"The page does not work this out with more than {DRAW_LIMIT:,} results. The report has the answer."
STATISTICS = ("convergence", "importance", "calibration", "about")  # sections that only statisticians need


Points = list[list[float]]


@dataclass(frozen=True)
class StudySummary:
    """What the model and the ledger say after t values, as plain values: another process may have computed it."""

    t: int
    facts: Facts
    recommended: Any = None  # the point to use, as JSON; None before the first value, and where there is a front
    believed: tuple[float, float, float] | None = None  # mu - sd, mu and mu + sd at that point, in units of y
    front: tuple[int, ...] | None = None  # the trials that no other trial beats in every objective; None without one
    middle: int | None = None  # the trial in the middle of the front
    options: tuple[Section, ...] = ()  # what is known of each option of a choice, as in a report
    # Where the front of two objectives lies, by their names: low, median and high, each as points (x, y).
    bands: Mapping[tuple[str, str], tuple[Points, Points, Points]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return what programs read: the answer, the value of each fact by its key, and the sentences of each."""
        decision, advice = self.facts.decision, self.facts.decision.advice
        front = {} if self.front is None else {"front": self.front, "middle": self.middle}
        sentences = {
            fact.key: {"name": fact.title, "text": fact.text, "statistics": fact.statistics} for fact in self.facts
        }
        return {
            **dict.fromkeys(("interval", "chance", "step", "noise", "missing")),
            **{fact.key: fact.value for fact in self.facts},
            **{"t": self.t, "recommended": self.recommended, "believed": self.believed, **front},
            **{"stop": decision.kind, "answer": decision.text, "needed": decision.needed},
            **{"advice": advice.what, "why": advice.why, "facts": sentences},
        }


@dataclass(frozen=True)
class ChosenPoint:
    """The best predicted point that meets conditions on the outputs, as plain values."""

    x: Point
    outputs: Mapping[str, tuple[float, float]]  # the mean and the sd that are predicted there
    probability: float  # that all conditions and limits hold
    trial: int | None  # the number of the trial at this point, if there is one
    note: str | None = None  # what to know before acting on it
    untried: ChosenPoint | None = None  # the point that meets them most likely, if that is not sure enough


# Tasks


def summarise(source: Study) -> StudySummary:
    """Summarise a study: about 1 s for 300 values, 20 s for 1,000. With more values nothing is drawn."""
    view = view_of(source)
    ledger, recommended = view.ledger or source.optimizer.ledger, view.recommendation
    place: dict[str, Any] = {
        "recommended": None if recommended is None else point_to_json(view.space, recommended),
        "front": view.on_front,
        "middle": None if view.compromise is None else view.compromise.number,
    }
    if ledger.n > DRAW_LIMIT:
        why = f"whether to stop is not computed, because it takes minutes with more than {DRAW_LIMIT:,} values"
        return StudySummary(ledger.n, unsaid(TOO_MANY, f"{why}; `gpmi report` has it"), **place)
    place |= {"options": tuple(sections(view, only=["options"])), "bands": _bands_of(view)}
    return StudySummary(ledger.n, ledger.facts(unit_of(source)), believed=view.believed, **place)


def _bands_of(view: RunView) -> dict[tuple[str, str], tuple[Points, Points, Points]]:
    """Return where the front lies, for each pair of objectives for which it is known."""
    bands = {pair: view.front_bands(*pair) for pair in pairs_of(view.goals)}
    return {pair: (b.low.tolist(), b.median.tolist(), b.high.tolist()) for pair, b in bands.items() if b is not None}


def unit_of(source: Study) -> str:
    """Return the unit of the one result that a study optimises; empty if it has none."""
    return source.optimizer.units.get(source.optimizer.goals.single or "", "")


def find_front(source: Study) -> list[int]:
    """Return the numbers of the trials on the front."""
    return [trial.number for trial in source.front]


def choose(source: Study, output: str, direction: str, where: Mapping[str, Any], confidence: float) -> ChosenPoint:
    """Return the best predicted point that meets conditions."""
    argument = f"{output}_" if output in ("self", "where", "confidence", "fixed") else output  # its own arguments
    return _plain(source.choose(where, confidence, **{argument: direction}))


def _plain(chosen: Chosen) -> ChosenPoint:
    """Return a chosen point as plain values."""
    outputs = {name: (output.mean, output.sd) for name, output in chosen.outputs.items()}
    trial = None if chosen.trial is None else chosen.trial.number
    untried = None if chosen.untried is None else _plain(chosen.untried)
    return ChosenPoint(chosen.x, outputs, chosen.probability, trial, chosen.note, untried)


def draw_pictures(source: Study) -> list[Section]:
    """Return the sections of the report that have pictures."""
    told = sum(trial.status == "told" for trial in source.optimizer.trials)
    if told > DRAW_LIMIT:
        text = f"With more than {DRAW_LIMIT:,} results the pictures take minutes. The report has them."
        return [Section("pictures-left-out", "Pictures", str(tag("p", text, class_="muted")))]
    if not told:
        return []
    view = replace(view_of(source), called="the result")
    pictures = sections(view, only=[name for name in IDS if name not in NOT_PICTURES])
    course = progress(view)
    return [Section("progress", "How it went", str(course)), *pictures] if course is not None else pictures


def render_report(source: Study, title: str) -> str:
    """Return the whole report as HTML."""
    return page(source, title)


def suggest(source: Study, n: int, fixed: Mapping[Any, Any] | None) -> list[int]:
    """Ask for n points and return the numbers of their trials. Their leases never expire."""
    return [trial.number for trial in source.ask(n, fixed=fixed or None, lease=math.inf)]


def recommend(source: Study, fixed: Mapping[Any, Any] | None) -> Point:
    return source.recommend(fixed=fixed or None)


TASKS: dict[str, Callable[..., Any]] = {
    **{"summary": summarise, "pictures": draw_pictures, "report": render_report},
    **{"ask": suggest, "recommend": recommend, "front": find_front, "choose": choose},
}


# Where they run


class ModelWorker:
    """Runs the tasks of one study: in this process if it is small, in subprocesses if it is large.

    Suggestions and summaries have separate processes, so that a suggestion does not wait for a summary.
    """

    def __init__(self, address: str, name: str) -> None:
        self._suggesting, self._summarising = (ModelProcess(address, name) for _ in range(2))

    @staticmethod
    def is_large(source: Study) -> bool:
        """Whether the models of a study are kept out of this process."""
        told = sum(trial.status == "told" for trial in source.optimizer.trials)
        return told * len(source.optimizer.goals) > LARGE

    def ask(self, n: int, fixed: Mapping[Any, Any] | None) -> list[int]:
        numbers: list[int] = self._suggesting("ask", n, fixed)
        return numbers

    def recommend(self, fixed: Mapping[Any, Any] | None) -> Point:
        return self._suggesting("recommend", fixed)

    def read(self, task: str, source: Study, *arguments: Any) -> Any:
        """Run a task that changes nothing, here or in the other process."""
        return self._summarising(task, *arguments) if self.is_large(source) else TASKS[task](source, *arguments)

    def close(self) -> None:
        self._suggesting.close()
        self._summarising.close()


class ModelProcess:
    """A process that has a study open and runs one task after the other. It is started when it is needed."""

    def __init__(self, address: str, name: str) -> None:
        self._study = address, name
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._timer: threading.Timer | None = None

    def __call__(self, task: str, *arguments: Any) -> Any:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            try:
                pipe = self._started()
                pipe.send((task, arguments))
                succeeded, answer = pipe.recv()
            except (EOFError, OSError) as error:
                self._end()
                raise StudyError("the process with the model has ended, perhaps out of memory; try again") from error
            self._timer = threading.Timer(IDLE_TIMEOUT, self._end_if_idle)
            self._timer.daemon = True
            self._timer.start()
        if not succeeded:
            raise answer
        return answer

    def _started(self) -> Connection:
        if self._pipe is None:
            context = get_context("spawn")
            self._pipe, other_end = context.Pipe()
            self._process = context.Process(target=_run_tasks, args=(other_end, *self._study), daemon=True)
            self._process.start()
            other_end.close()  # otherwise `recv` would not notice that the process has ended
        return self._pipe

    def _end(self) -> None:
        pipe, process, self._pipe, self._process = self._pipe, self._process, None, None
        if pipe is not None:
            pipe.close()
        if process is not None:
            process.terminate()
            process.join(5.0)

    def _end_if_idle(self) -> None:
        """End the process, unless it has been used since this timer was set. A running task is not interrupted."""
        with self._lock:
            if self._timer is threading.current_thread():
                self._end()

    def close(self) -> None:
        """End the process. A running task is abandoned."""
        if self._process is not None and self._lock.locked():
            self._process.terminate()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._end()


def _run_tasks(pipe: Connection, address: str, name: str) -> None:
    """Run tasks in the other process until the server closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the pipe
    with study(address, name) as source:
        while True:
            try:
                task, arguments = pipe.recv()
            except EOFError:
                return
            try:
                answer = True, TASKS[task](source, *arguments)
            except Exception as error:
                answer = False, error
            pipe.send(answer)
