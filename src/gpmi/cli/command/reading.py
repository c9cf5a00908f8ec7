"""Read the value of an evaluation, or its outputs, from what a program wrote: the last line, a match, or a JSON file.

The output is not trusted: it may be anything, of any size. If it has no value, the reason is a sentence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from gpmi._support import checks
from gpmi._support.text import shortened
from gpmi.cli.command import matching
from gpmi.run import Measured

Source: TypeAlias = Literal["last line", "match", "json"]

LARGEST_FILE = 1024 * 1024  # bytes of a result file or a study file; a person or a few numbers need less. Our choice
STEP = "step"  # the group of a pattern for the step of a curve
QUOTED = 80  # characters of a program's output that a reason quotes; our choice

# A number as programs write it. Python's float would also accept digits of other scripts, and 1_000.
NUMBER = re.compile(
    r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf|infinity)", re.ASCII | re.IGNORECASE
)


class NoValue(Exception):
    """There is no value; the message is the reason."""


class BadFormat(NoValue):
    """The output is not what the study file says, so that of every evaluation may be unreadable."""

    remedy = ""  # what to do about it


class PatternTimedOut(BadFormat):
    """The pattern took too long on the output, as it would again."""


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Reading:
    """Where to find the value.

    "last line" is the last line of the output that is not blank: a number, or a JSON object. "match" is the last line
    in which `pattern` is found: the group named `y`, or the first group, or the whole match. "json" is the file whose
    path the program gets in GPMI_RESULT_FILE. `y`, `noise_var` and `constraints` are names in the JSON object, or of
    groups of the pattern. `noise_var` may be missing and is then 0; all constraints must be present.

    In a run with goals, `outputs` has the name of each output in the JSON object, or of its group. `noise_var` is then
    one number for all outputs, or an object with a number by output. `pattern` may be a pattern for each output: its
    value is the group with that name, or the first one, and its variance the group named `noise_var`. An output that is
    null is not measured yet. One that is missing has no value, so the evaluation has failed, unless it is `watched`.
    """

    source: Source = "last line"
    pattern: str | Mapping[str, str] | None = None
    y: str = "y"
    noise_var: str = "noise_var"
    constraints: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    watched: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.one_of("source", self.source, get_args(Source))
        if (self.source == "match") != (self.pattern is not None):
            raise ValueError(f"pattern is {self.pattern!r} and source {self.source!r}; only 'match' takes one")
        for name in (titles := list(self.outputs.values())):
            if name == self.noise_var or titles.count(name) > 1:
                what = "the variances" if name == self.noise_var else "two outputs"
                raise ValueError(f"{name!r} is the name of {what}; give each its own name")
        if isinstance(self.pattern, str):
            groups = _compiled("pattern", self.pattern).groupindex
            missing = [name for name in self.constraints if name not in groups]
            if missing:
                raise ValueError(f"pattern has no group (?P<{missing[0]}>...) for the constraint {missing[0]!r}")
            missing = [name for name, title in self.outputs.items() if title not in groups and name not in self.watched]
            if missing and len(self.outputs) > 1:
                raise ValueError(
                    f"pattern has no group (?P<{self.outputs[missing[0]]}>...) for the output {missing[0]!r}; add it, "
                    "or give a pattern for each output"
                )
        for name, pattern in self.pattern.items() if isinstance(self.pattern, Mapping) else ():
            if name not in self.outputs:
                raise ValueError(f"pattern has {name!r}, which is not an output; {_one_of(self.outputs)}")
            _compiled(f"pattern of {name!r}", pattern)
        if isinstance(self.pattern, Mapping):
            missing = [name for name in self.outputs if name not in self.pattern and name not in self.watched]
            if missing:
                raise ValueError(f"there is no pattern for the output {missing[0]!r}; give one")

    def value(
        self, output: bytes, file: Path, *, cut: bool = False, cancelled: Callable[[], bool] = _never
    ) -> Measured:
        """Return the value or the outputs in what a program wrote; `cut` if the beginning of the output was dropped.

        `cancelled` is polled while a pattern is searched. Once it is true, `program.Cancelled` is raised.
        """
        if self.source == "json":
            return self.of_object(_object_in(file))
        if self.source == "match":
            return self._of_match(output, cut, cancelled)
        lines = output.decode("utf-8", errors="replace").splitlines()
        last = next((line.strip() for line in reversed(lines) if line.strip()), None)
        if last is None:
            what = "the value" if len(self.outputs) < 2 else "a JSON object with the outputs"
            raise BadFormat(f"it wrote no output, whose last line should be {what}")
        return self.of_text(last, "its last line")

    def of_text(self, text: str, what: str = "its value") -> Measured:
        """Return the value or the outputs in a text: a number, or a JSON object."""
        if text.startswith("{"):
            return self.of_object(_parsed(text))
        if len(self.outputs) > 1:
            example = ", ".join(f'"{name}": ...' for name in self.outputs.values())
            raise BadFormat(f"{what} is {shortened(text, QUOTED)}; a JSON object {{{example}}} is needed")
        return self.of_object({self._first: text}) if self.outputs else Measured(_number("y", text))

    @property
    def finds_steps(self) -> bool:
        """Whether the pattern has a group for the step of a curve."""
        return isinstance(self.pattern, str) and STEP in re.compile(self.pattern).groupindex

    def matches(self, output: bytes, cancelled: Callable[[], bool]) -> list[tuple[str, dict[str, str]]]:
        """Return the step and the fields of every line in which the pattern is found, in order."""
        lines = _search(str(self.pattern), output, cancelled, every=True)
        return [(line.groups.get(STEP) or "", self._fields(line)) for line in lines]

    def _fields(self, line: matching.MatchedLine) -> dict[str, str]:
        groups = {self._first: line.first} | line.groups if len(self.outputs) < 2 else line.groups
        return {name: text for name, text in groups.items() if text is not None}

    @property
    def _first(self) -> str:
        """The name of the value, or of the first output."""
        return next(iter(self.outputs.values()), self.y)

    def _of_match(self, output: bytes, cut: bool, cancelled: Callable[[], bool]) -> Measured:
        if isinstance(self.pattern, Mapping):
            return self._of_matches(self.pattern, output, cut, cancelled)
        return self.of_object(self._fields(_last(self.pattern or "", output, cut, cancelled)))

    def _of_matches(
        self, patterns: Mapping[str, str], output: bytes, cut: bool, cancelled: Callable[[], bool]
    ) -> Measured:
        """Search for each output by its own pattern."""
        fields, bars = dict[str, Any](), dict[str, Any]()
        for name, pattern in patterns.items():
            title = self.outputs[name]
            try:
                line = _last(pattern, output, cut, cancelled)
            except PatternTimedOut:
                raise
            except NoValue as error:
                if name in self.watched:
                    continue
                raise type(error)(f"{title}: {error}") from None
            value = line.first if line.groups.get(title) is None else line.groups[title]
            if value is not None:
                fields[title] = value
            if line.groups.get(self.noise_var) is not None:
                bars[title] = line.groups[self.noise_var]
        return self.of_object({**fields, self.noise_var: bars})

    def of_object(self, fields: Mapping[str, Any]) -> Measured:
        """Return the value or the outputs in an object."""
        if self.outputs:
            return self._of_outputs(fields)
        for name in (self.y, *self.constraints):
            if name not in fields:
                raise _missing(name, fields)
        noise_var = _number(self.noise_var, fields[self.noise_var]) if fields.get(self.noise_var) is not None else 0.0
        if noise_var < 0.0:
            raise NoValue(f"{self.noise_var} is {noise_var:g}; a variance cannot be negative")
        constraints = tuple(_number(name, fields[name]) for name in self.constraints)
        return Measured(_number(self.y, fields[self.y]), noise_var, constraints)

    def _of_outputs(self, fields: Mapping[str, Any]) -> Measured:
        """Return the outputs in an object; those that are null are left out."""
        values: dict[str, float] = {}
        for name, title in self.outputs.items():
            if title not in fields and name not in self.watched:
                raise _missing(title, fields)
            if fields.get(title) is not None:
                values[name] = _number(title, fields[title])
        if not values:
            raise NoValue(f"none of its outputs has a value: {shortened(str(list(self.outputs.values())), QUOTED)}")
        return Measured(values, self._bars(fields.get(self.noise_var), values))

    def _bars(self, given: Any, values: Mapping[str, float]) -> dict[str, float]:
        """Return the noise variances of the outputs that have a value."""
        if not isinstance(given, Mapping):
            given = dict.fromkeys((self.outputs[name] for name in values), given)
        names = {title: name for name, title in self.outputs.items()}
        bars: dict[str, float] = {}
        for title, bar in given.items():
            if title not in names:
                raise NoValue(f"{self.noise_var} has {shortened(repr(title), QUOTED)}, which is not an output")
            if names[title] in values and bar is not None:
                bars[names[title]] = variance = _number(f"{self.noise_var} of {title}", bar)
                if variance < 0.0:
                    raise NoValue(f"{self.noise_var} of {title} is {variance:g}; a variance cannot be negative")
        return bars


def _compiled(what: str, pattern: str) -> re.Pattern[str]:
    """Return a regular expression; refuse a text that is none."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{what} is {pattern!r}, not a regular expression ({error}); fix it") from None


def _last(pattern: str, output: bytes, cut: bool, cancelled: Callable[[], bool]) -> matching.MatchedLine:
    """Return the last line of the output that matches."""
    lines = _search(pattern, output, cancelled)
    if not lines:
        where = "the last part of its output" if cut else "its output"
        raise BadFormat(f"no line of {where} matches {shortened(repr(pattern), QUOTED)}")
    return lines[-1]


def _search(
    pattern: str, output: bytes, cancelled: Callable[[], bool], *, every: bool = False
) -> list[matching.MatchedLine]:
    """Return the last line of the output that matches, or every one."""
    shown = shortened(repr(pattern), QUOTED)
    try:
        return matching.search(pattern, output, cancelled, every=every)
    except matching.SearchTimedOut:
        raise PatternTimedOut(
            f"the pattern {shown} took more than {matching.TIMEOUT:g} s on its output; write one without nested "
            "repetition such as (a+)+"
        ) from None
    except (OSError, ValueError) as error:
        raise BadFormat(f"the pattern {shown} cannot be applied to its output ({error})") from None


def _missing(name: str, fields: Mapping[str, Any]) -> BadFormat:
    return BadFormat(f"{name} is missing in its result, which has {shortened(str(list(fields)), QUOTED)}")


def _one_of(names: Collection[str]) -> str:
    return f"give one of {', '.join(names)}" if names else "it needs goals"


def _object_in(file: Path) -> Mapping[str, Any]:
    """Read the JSON object of a result file, of at most LARGEST_FILE bytes."""
    try:
        if not file.is_file():  # reading a pipe would block
            raise BadFormat("it wrote no result file, whose path is in GPMI_RESULT_FILE")
        with file.open("rb") as opened:
            data = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise BadFormat(f"its result file cannot be read ({error.strerror})") from None
    if len(data) > LARGEST_FILE:
        raise BadFormat(
            f"its result file has more than {LARGEST_FILE // 1024} kB; write a JSON object of a few numbers"
        )
    return _parsed(data.decode("utf-8", errors="replace"))


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFormat(f"its result is not JSON: {shortened(text, QUOTED)}") from None
    if not isinstance(parsed, dict):
        raise BadFormat(f"its result is {shortened(text, QUOTED)}; a JSON object such as {{'y': 0.5}} is needed")
    return parsed


def _number(name: str, given: Any) -> float:
    """Return a finite number that is not too large to square."""
    if isinstance(given, str) and NUMBER.fullmatch(given.strip()):
        given = float(given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        kind = NoValue if given is None else BadFormat  # null says that there is no value
        raise kind(f"{name} is {shortened(repr(given), QUOTED)}, not a number")
    try:
        value = float(given)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise NoValue(f"{name} is {value}")
    if abs(value) > checks.LARGEST:
        raise NoValue(f"{name} is {value:g}, too large to square; give other units")
    return value
