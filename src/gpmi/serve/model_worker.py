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

from gpmi._support.text import percent, rough
from gpmi._support.types import Point
from gpmi.analysis.ledger import Ledger
from gpmi.analysis.ledger.advice import MORE
from gpmi.run.study import Study, study
from gpmi.serve.stop_answer import StopAnswer, front_stop_answer, stop_answer
from gpmi.storage.errors import StudyError
from gpmi.storage.serialization import point_to_json
from gpmi.views.front_view import pairs_of
from gpmi.views.html import IDS, Section, page, sections
from gpmi.views.html.convergence import progress
from gpmi.views.html.markup import tag
from gpmi.views.run_view import RunView

LARGE = 300  # values. Up to here a suggestion takes 0.1 s and the interval about 1 s; measured once
DRAW_LIMIT = 1000  # values. Here the interval of the regret takes 20 s, and minutes with more; measured once
IDLE_TIMEOUT = 120.0  # seconds after which an idle process ends; our choice
NOT_PICTURES = (
    "found",
    "advice",
    "tradeoffs",
    "trials",
)  # sections of a report that the page of a study shows in its own way
NOTHING = "Too early to say: nothing has been measured yet."
TOO_MANY = f"The page does not work this out with more than {DRAW_LIMIT:,} results. The report has the answer."
STATISTICS = ("convergence", "importance", "calibration", "about")  # sections that only statisticians need


@dataclass(frozen=True)
class StudySummary:
    """What the model and the ledger say after t values. It has plain values only, because it is sent as JSON."""

    t: int
    recommended: Any = None  # the point to use, as JSON; None before the first value
    believed: tuple[float, float, float] | None = None  # mu - sd, mu and mu + sd at that point, in units of y
    interval: tuple[float, float] | None = None  # 95 % interval of the simple regret; None if unknown or not drawn
    regret: str = ""  # why there is no interval
    chance: float | None = None  # the probability that ten more results improve on it by more than `step`
    step: float | None = None  # the smallest gain that counts, in units of y
    noise: float | None = None  # the standard deviation of a single value
    advice: str = "go on"  # or "stop", "distrust"
    why: str = ""
    stop: str = "too early"  # the answer to "can I stop?": "yes", "not yet", "too early" or "careful"
    answer: str = ""  # the same as one sentence
    needed: int | None = None  # results until it can be answered


Points = list[list[float]]


@dataclass(frozen=True)
class FrontSummary(StudySummary):
    """What is known of a study with several objectives."""

    front: tuple[int, ...] = ()  # the numbers of the trials that no other trial beats in every objective
    missing: float | None = None  # at most this share of what can be had is missing, with probability 95 %
    lines: tuple[tuple[str, str], ...] = ()  # the numbers behind the advice, in words
    middle: int | None = None  # the trial in the middle of the front
    # Where the front of two objectives lies, by their names: low, median and high, each as points (x, y).
    bands: Mapping[tuple[str, str], tuple[Points, Points, Points]] = field(default_factory=dict)


@dataclass(frozen=True)
class ChosenPoint:
    """The best predicted point that meets conditions on the outputs, as plain values."""

    x: Point
    outputs: Mapping[str, tuple[float, float]]  # the mean and the sd that are predicted there
    probability: float  # that all conditions and limits hold
    trial: int | None  # the number of the trial at this point, if there is one
    note: str | None = None  # what to know before acting on it


# Tasks


def summarise(source: Study) -> StudySummary:
    """Summarise a study: about 1 s for 300 values, 20 s for 1,000. With more values no interval is drawn."""
    goals = source.optimizer.goals
    if goals is not None and goals.single is None:
        return summarise_front(source)
    view = RunView.of(source)
    ledger = view.ledger
    if ledger is None:
        empty = source.optimizer.ledger
        known = _answered(stop_answer(empty)) if isinstance(empty, Ledger) and not empty.n else {"answer": NOTHING}
        return StudySummary(0, advice="go on", why="nothing has been measured yet", **known)
    point = point_to_json(view.space, view.recommended)
    if ledger.n > DRAW_LIMIT:
        skipped = f"not computed, because it takes minutes with more than {DRAW_LIMIT:,} values; `gpmi report` has it"
        why = f"whether to stop is {skipped}"
        return StudySummary(ledger.n, point, regret=skipped, advice="go on", why=why, answer=TOO_MANY)
    regret, gain, advice = ledger.regret(), ledger.gain(MORE), ledger.advice
    known = _answered(stop_answer(ledger, unit_of(source)))
    if not regret.known:
        return StudySummary(ledger.n, point, regret=regret.how, advice=advice.what, why=advice.why, **known)
    low, high = regret.interval()
    step = ledger.smallest_gain
    return StudySummary(
        ledger.n,
        point,
        view.believed,
        (low, high),
        "",
        gain.probability_above(step),
        step,
        ledger.noise_sd,
        advice.what,
        advice.why,
        **known,
    )


def unit_of(source: Study) -> str:
    """Return the unit of the one result that a study optimises; empty if it has none."""
    units, goals = source.optimizer.units, source.optimizer.goals
    if isinstance(units, str):
        return units
    return units.get(goals.single or "", "") if units is not None and goals is not None else ""


def _answered(found: StopAnswer) -> dict[str, Any]:
    return {"stop": found.what, "answer": found.text, "needed": found.needed}


def summarise_front(source: Study) -> FrontSummary:
    """Summarise a study with several objectives."""
    view = RunView.of(source)
    ledger = view.front_ledger
    if ledger is None:
        return FrontSummary(0, advice="go on", why="nothing has been measured yet", answer=NOTHING)
    known: dict[str, Any] = {"front": tuple(trial.number for trial in view.front)}
    if view.middle is not None and len(view.front) > 1:
        known["middle"] = view.middle.number
    if ledger.n > DRAW_LIMIT:
        why = f"whether to stop is not computed, because it takes minutes with more than {DRAW_LIMIT:,} values"
        return FrontSummary(ledger.n, why=why, answer=TOO_MANY, **known)
    advice = ledger.advice
    known |= _answered(front_stop_answer(ledger))
    if ledger.unknown is not None:
        return FrontSummary(ledger.n, advice=advice.what, why=advice.why, **known)
    step, missing = ledger.smallest_gain, ledger.missing.share()[1]
    chance = ledger.gain(MORE).probability_above(step)
    why = advice.why
    if advice.what != "distrust":  # the same in words that need no hypervolume
        why = f"{MORE} more experiments improve the trade-offs by more than 1 % with probability {percent(chance)}"
        why += f"; at most {rough(100.0 * missing, 2)} % of what can be had is missing, with probability 95 %"
    lines, bands = tuple(ledger.answer()[1:]), dict[tuple[str, str], tuple[Points, Points, Points]]()
    for pair in pairs_of(ledger.goals):
        if (found := view.front_bands(*pair)) is not None:
            bands[pair] = (found.low.tolist(), found.median.tolist(), found.high.tolist())
    known |= {"missing": missing, "lines": lines, "bands": bands}
    return FrontSummary(ledger.n, chance=chance, step=step, advice=advice.what, why=why, **known)


def find_front(source: Study) -> list[int]:
    """Return the numbers of the trials on the front."""
    return [trial.number for trial in source.front]


def choose(source: Study, output: str, direction: str, where: Mapping[str, Any], confidence: float) -> ChosenPoint:
    """Return the best predicted point that meets conditions."""
    argument = f"{output}_" if output in ("self", "where", "confidence", "fixed") else output  # its own arguments
    found = source.choose(where, confidence, **{argument: direction})
    outputs = {name: (one.mean, one.sd) for name, one in found.outputs.items()}
    trial = None if found.trial is None else found.trial.number
    return ChosenPoint(found.x, outputs, found.probability, trial, found.note)


def draw_pictures(source: Study) -> list[Section]:
    """Return the sections of the report that have pictures."""
    told = sum(trial.status == "told" for trial in source.optimizer.trials)
    if told > DRAW_LIMIT:
        text = f"With more than {DRAW_LIMIT:,} results the pictures take minutes. The report has them."
        return [Section("pictures-left-out", "Pictures", str(tag("p", text, class_="muted")))]
    if not told:
        return []
    view = replace(RunView.of(source), called="the result")
    found = sections(view, only=[name for name in IDS if name not in NOT_PICTURES])
    shown = progress(view)
    return [Section("progress", "How it went", str(shown)), *found] if shown is not None else found


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
        told, goals = sum(trial.status == "told" for trial in source.optimizer.trials), source.optimizer.goals
        return told * (1 if goals is None else len(goals)) > LARGE

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
