"""What needs a model: the next points, and what is known. For large studies in processes of their own.

A model of n values takes n^2 numbers, 200 MB for 5,000, and minutes for its draws. A process of its own keeps that out
of the server, which goes on answering; it ends when it was not used for a while, and the memory is free again.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from gpmi._support.text import rough
from gpmi._support.types import Point
from gpmi.analysis.ledger.advice import advise
from gpmi.run.study import Study, study
from gpmi.storage.errors import StudyError
from gpmi.storage.serialization import point_to_json
from gpmi.views.html import IDS, Section, page, sections
from gpmi.views.html.markup import tag
from gpmi.views.html.subject import Subject

LARGE = 300  # values: up to here a suggestion takes a tenth of a second, and the interval about one. Measured once
DRAWN = 1000  # values: the interval of the regret then takes 20 s, and minutes with more. Measured once
IDLE = 120.0  # seconds after which a process that nobody used ends; our choice
NOT_PICTURES = ("found", "advice", "trials")  # sections of a report that the page of a study shows in its own way


@dataclass(frozen=True)
class Known:
    """What the model and the ledger say after t values; plain values only, so that it is JSON and HTML alike."""

    t: int
    recommended: Any = None  # the point to use, as JSON; None before the first value
    believed: tuple[float, float, float] | None = None  # mu - sd, mu and mu + sd there, in units of y
    interval: tuple[float, float] | None = None  # of the simple regret, 95 %; None where it is not known or not drawn
    regret: str = ""  # the same in words, or why there is none
    advice: str = "go on"  # or "stop", "distrust"
    why: str = ""


def known(source: Study) -> Known:
    """What is known of a study now. About a second for 300 values, 20 s for 1,000; above that no interval is drawn."""
    subject = Subject.of(source)
    ledger = subject.ledger
    if ledger is None:
        return Known(0, advice="go on", why="nothing has been measured yet")
    point = point_to_json(subject.space, subject.recommended)
    if ledger.n > DRAWN:
        late = f"not drawn: with more than {DRAWN:,} values it takes minutes; `gpmi report` draws it"
        gain = f"one more evaluation is expected to gain at most {rough(ledger.improvement)}"
        return Known(ledger.n, point, subject.believed, None, late, "go on", gain)
    regret, advice = ledger.regret(), advise(ledger)
    low, high = regret.interval()
    interval = (low, high) if regret.known else None
    return Known(ledger.n, point, subject.believed, interval, regret.in_words[0], advice.what, advice.why)


def pictures(source: Study) -> list[Section]:
    """The sections of the report with pictures."""
    told = sum(trial.status == "told" for trial in source.optimizer.trials)
    if told > DRAWN:
        words = f"With more than {DRAWN:,} results they take minutes. The report has them."
        return [Section("pictures-left-out", "Pictures", str(tag("p", words, class_="muted")))]
    return sections(source, only=[name for name in IDS if name not in NOT_PICTURES]) if told else []


def report(source: Study, title: str) -> str:
    """The whole report."""
    return page(source, title)


def asked(source: Study, n: int, fixed: Mapping[Any, Any] | None) -> list[int]:
    """The numbers of the next trials, handed out without a limit of time."""
    return [trial.number for trial in source.ask(n, fixed=fixed or None, lease=math.inf)]


def recommended(source: Study, fixed: Mapping[Any, Any] | None) -> Point:
    return source.recommend(fixed=fixed or None)


TASKS: dict[str, Callable[..., Any]] = {
    **{"known": known, "pictures": pictures, "report": report, "ask": asked, "recommend": recommended}
}


class Thinker:
    """What needs a model of one study. `known` and `pictures` share a process, and `ask` does not wait for them."""

    def __init__(self, address: str, name: str) -> None:
        self._asking, self._reading = (Elsewhere(address, name) for _ in range(2))

    @staticmethod
    def is_large(source: Study) -> bool:
        """Whether the model of a study is kept out of this process."""
        return sum(trial.status == "told" for trial in source.optimizer.trials) > LARGE

    def ask(self, n: int, fixed: Mapping[Any, Any] | None) -> list[int]:
        numbers: list[int] = self._asking("ask", n, fixed)
        return numbers

    def recommend(self, fixed: Mapping[Any, Any] | None) -> Point:
        return self._asking("recommend", fixed)

    def read(self, what: str, source: Study, *given: Any) -> Any:
        """`known`, `pictures` or `report` of a study, wherever that is computed."""
        return self._reading(what, *given) if self.is_large(source) else TASKS[what](source, *given)

    def close(self) -> None:
        self._asking.close()
        self._reading.close()


class Elsewhere:
    """A process that has a study open and does one task after the other; it is started when it is needed."""

    def __init__(self, address: str, name: str) -> None:
        self._about = address, name
        self._lock = threading.Lock()
        self._process: Any = None
        self._line: Connection | None = None
        self._timer: threading.Timer | None = None

    def __call__(self, what: str, *given: Any) -> Any:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            try:
                line = self._started()
                line.send((what, given))
                done, answer = line.recv()
            except (EOFError, OSError) as error:
                self._end()
                raise StudyError(
                    "the process that computes has ended, perhaps for want of memory; try again"
                ) from error
            self._timer = threading.Timer(IDLE, self._end_if_idle)
            self._timer.daemon = True
            self._timer.start()
        if not done:
            raise answer
        return answer

    def _started(self) -> Connection:
        if self._line is None:
            context = get_context("spawn")
            self._line, other = context.Pipe()
            self._process = context.Process(target=_work, args=(other, *self._about), daemon=True)
            self._process.start()
            other.close()  # so that its end is noticed
        return self._line

    def _end(self) -> None:
        line, process, self._line, self._process = self._line, self._process, None, None
        if line is not None:
            line.close()
        if process is not None:
            process.terminate()
            process.join(5.0)

    def _end_if_idle(self) -> None:
        """End the process, unless it was used since this timer was set; what it computes just now goes on."""
        with self._lock:
            if self._timer is threading.current_thread():
                self._end()

    def close(self) -> None:
        """End the process; what it computes just now is given up."""
        if self._process is not None and self._lock.locked():
            self._process.terminate()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._end()


def _work(line: Connection, address: str, name: str) -> None:
    """The other process: tasks come in, answers go out, until nobody is there any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the line
    with study(address, name) as source:
        while True:
            try:
                what, given = line.recv()
            except EOFError:
                return
            try:
                answer = True, TASKS[what](source, *given)
            except Exception as error:
                answer = False, error
            line.send(answer)
