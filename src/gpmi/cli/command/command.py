"""A program as a function of a point."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from gpmi._support import checks
from gpmi._support.text import shortened
from gpmi.cli.command import program
from gpmi.cli.command.curves import PrintedCurve, Value
from gpmi.cli.command.reading import BadFormat, NoValue, PatternTimedOut, Reading
from gpmi.cli.command.remedy import remedy
from gpmi.cli.command.templates import (
    OWN,
    Template,
    arguments,
    check_names,
    check_shell,
    check_template,
    text_of,
    variable,
)
from gpmi.run import EvaluationFailed, Failure, Measured

QUOTED = 120  # characters of a program's last line that the reason of a failure quotes; our choice


Reports: TypeAlias = Generator[tuple[int, Value], None, None]


class ProgramFailed(EvaluationFailed):
    """A program that reports steps has no value in the end; the message is the reason."""


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Command:
    """Evaluates a point by running a program: `command(point)` returns a `Measured` value, or a `Failure`.

    With `steps` it returns a generator of (step, value), which reads them while the program runs. Closing it ends the
    program as a timeout does. If there is no value, it raises `ProgramFailed`.

    Parameters
    ----------
    run : templates of the arguments, the program first: ["train", "--lr={lr}"]. Each becomes one argument, whatever
        the values are. A tuple of templates is left out as a whole if it names an inactive parameter. A text is passed
        unchanged to /bin/sh instead: a shell gets values as "$GPMI_LR" only.
    names : the names of the parameters.
    reading : where to find the value.
    timeout : seconds after which the process group is ended, by SIGTERM and then SIGKILL.
    retries : how often a program that failed or took too long is run again.
    cwd : the folder in which it runs.
    env : variables of the environment, besides those of this process.
    steps : the parameter whose value is the last step that the program reports, and the first step.
    repairable : whether a failure to read the output has a remedy: a run that has no value yet then ends with it.

    A program also gets each active parameter as the variable GPMI_<NAME>, and all of them in a JSON file whose path is
    GPMI_PARAMS_FILE. It may write its result as JSON to the path GPMI_RESULT_FILE. Both files are in a new folder,
    which is removed in the end.
    """

    run: tuple[Template, ...] | str
    names: tuple[str, ...]
    reading: Reading = field(default_factory=Reading)
    timeout: float | None = None
    retries: int = 0
    cwd: Path = Path()
    env: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[str, int] | None = None
    repairable: bool = False

    def __post_init__(self) -> None:
        check_names(self.names)
        if isinstance(self.run, str):
            check_shell(self.run, self.names)
        else:
            for template in self.run:
                for text in (template,) if isinstance(template, str) else template:
                    check_template(text, self.names)
            if not self.run or not self.run[0]:
                raise ValueError(f"run is {checks.shown(self.run)}; give the program and its arguments")
        if self.timeout is not None:
            checks.positive("timeout", self.timeout)
        checks.whole("retries", self.retries, 0)

    def __call__(
        self, point: Mapping[str, Any], cancelled: Callable[[], bool] = _never
    ) -> Measured | Failure | Reports:
        """Evaluate a point. `cancelled` is polled meanwhile; once it is true, `program.Cancelled` is raised."""
        if self.steps is not None:
            return self._reports(point, PrintedCurve(self.reading, *self.steps, int(point[self.steps[0]])), cancelled)
        for attempt in range(self.retries + 1):
            try:
                return self._once(point, cancelled)
            except NoValue as error:
                failure = _failure(error, attempt)
                if isinstance(error, PatternTimedOut):
                    break
        return failure

    def _reports(self, point: Mapping[str, Any], curve: PrintedCurve, cancelled: Callable[[], bool]) -> Reports:
        """Yield the steps of an evaluation with their values, the last one when the program has ended well."""
        for attempt in range(self.retries + 1):
            try:
                yield from self._steps_once(point, curve, cancelled)
                return
            except NoValue as error:
                failure = _failure(error, attempt)
                if isinstance(error, PatternTimedOut):
                    break
        raise ProgramFailed(failure)

    def _once(self, point: Mapping[str, Any], cancelled: Callable[[], bool]) -> Measured:
        with self._prepared(point) as (argv, how, result):
            try:
                ended = program.run(argv, **how, cancelled=cancelled)
            except (OSError, ValueError) as error:  # a text with a zero byte is a ValueError
                raise self._not_started(argv, error) from None
            self._check_end(ended)
            with self._advised(ended.output):
                return self.reading.value(ended.output, result, cut=ended.cut, cancelled=cancelled)

    def _steps_once(self, point: Mapping[str, Any], curve: PrintedCurve, cancelled: Callable[[], bool]) -> Reports:
        curve.restart()
        with self._prepared(point) as (argv, how, result):
            running = program.lines(argv, **how, cancelled=cancelled)
            with closing(running):
                while True:
                    try:
                        lines = next(running)
                    except StopIteration as end:
                        ended: program.Ended = end.value
                        break
                    except (OSError, ValueError) as error:
                        raise self._not_started(argv, error) from None
                    with self._advised(b"\n".join(lines)):
                        yield from curve.reports(lines, cancelled)
            self._check_end(ended)
            with self._advised(ended.output):
                value = curve.final(ended, result, cancelled)
        assert self.steps is not None
        yield int(point[self.steps[0]]), value

    @contextmanager
    def _prepared(self, point: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, Any], Path]]:
        """Make the files of an evaluation; give its arguments, how to run it, and the path of its result."""
        with tempfile.TemporaryDirectory(prefix="gpmi-", ignore_cleanup_errors=True) as folder:
            params, result = Path(folder, "params.json"), Path(folder, "result.json")
            params.write_text(json.dumps(dict(point)), encoding="utf-8")
            paths = dict(zip(OWN, (sys.executable, str(params), str(result)), strict=True))
            values = {name: text_of(value) for name, value in point.items()}
            argv = ["/bin/sh", "-c", self.run] if isinstance(self.run, str) else arguments(self.run, values | paths)
            yield argv, {"cwd": self.cwd, "env": self._environment(values, paths), "timeout": self.timeout}, result

    @contextmanager
    def _advised(self, output: bytes) -> Iterator[None]:
        """Add the remedy to an error about this output."""
        try:
            yield
        except BadFormat as error:
            if self.repairable:
                error.remedy = remedy(self.reading, output, steps=self.steps is not None)
            raise

    def _not_started(self, argv: Sequence[str], error: Exception) -> NoValue:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return NoValue(f"{shortened(argv[0], QUOTED)} cannot be started in {self.cwd}: {reason}")

    def _check_end(self, ended: program.Ended) -> None:
        if ended.timed_out:
            raise NoValue(f"timeout: it took longer than {self.timeout:g} s")
        if ended.code:
            raise NoValue(_describe_end(ended))

    def _environment(self, values: Mapping[str, str], paths: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of this process, with the variables of this evaluation instead of an outer one's."""
        ours = {variable(name): text for name, text in [*values.items(), *paths.items()]}
        outer = {variable(name) for name in self.names}
        return {name: text for name, text in os.environ.items() if name not in outer} | {**self.env, **ours}


def _failure(error: NoValue, attempt: int) -> Failure:
    counts = attempt > 0 and not isinstance(error, PatternTimedOut)
    why = f"{error} (attempt {attempt + 1})" if counts else str(error)
    return Failure(why, error.remedy if isinstance(error, BadFormat) else "")


def _describe_end(ended: program.Ended) -> str:
    """Describe a bad end: the exit code or the signal, and the last line of the errors, or else of the output."""
    if ended.code > 0:
        end = f"exit code {ended.code}"
    else:
        try:
            end = f"ended by {signal.Signals(-ended.code).name}"
        except ValueError:
            end = f"ended by signal {-ended.code}"
    for data in (ended.errors, ended.output):
        lines = [line for line in data.decode("utf-8", errors="replace").splitlines() if line.strip()]
        if lines:
            return f"{end}: {shortened(lines[-1], QUOTED)}"
    return end
