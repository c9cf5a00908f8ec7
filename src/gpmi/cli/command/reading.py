"""Read the value of an evaluation from a program's output: its last line, a line that matches, or a JSON file.

The output is not trusted: it may be anything, of any size. If it has no value, the reason is a sentence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from gpmi._support import checks
from gpmi._support.text import shortened
from gpmi.cli.command import matching
from gpmi.run.evaluation import Measured

Source: TypeAlias = Literal["last line", "match", "json"]

LARGEST_FILE = 1024 * 1024  # bytes of a result file or a study file; a person or a few numbers need less. Our choice
QUOTED = 80  # characters of a program's output that a reason quotes; our choice

# A number as programs write it. Python's float would also accept digits of other scripts, and 1_000.
_NUMBER = re.compile(
    r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf|infinity)", re.ASCII | re.IGNORECASE
)


class NoValue(Exception):
    """There is no value; the message is the reason."""


class PatternTimedOut(NoValue):
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
    """

    source: Source = "last line"
    pattern: str | None = None
    y: str = "y"
    noise_var: str = "noise_var"
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.one_of("source", self.source, get_args(Source))
        if (self.source == "match") != (self.pattern is not None):
            raise ValueError(f"pattern is {self.pattern!r} and source {self.source!r}; only 'match' takes one")
        if self.pattern is not None:
            try:
                groups = re.compile(self.pattern).groupindex
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"pattern is {self.pattern!r}, not a regular expression ({error}); fix it") from None
            missing = [name for name in self.constraints if name not in groups]
            if missing:
                raise ValueError(f"pattern has no group (?P<{missing[0]}>...) for the constraint {missing[0]!r}")

    def value(
        self, output: bytes, file: Path, *, cut: bool = False, cancelled: Callable[[], bool] = _never
    ) -> Measured:
        """Return the value in a program's output; `cut` if the beginning of the output was dropped.

        `cancelled` is polled while a pattern is searched. Once it is true, `program.Cancelled` is raised.
        """
        if self.source == "json":
            return self._of_object(_object_in(file))
        if self.source == "match":
            return self._of_match(output, cut, cancelled)
        lines = output.decode("utf-8", errors="replace").splitlines()
        last = next((line.strip() for line in reversed(lines) if line.strip()), None)
        if last is None:
            raise NoValue("it wrote no output, whose last line should be the value")
        return self._of_object(_parsed(last)) if last.startswith("{") else Measured(_number("y", last))

    def _of_match(self, output: bytes, cut: bool, cancelled: Callable[[], bool]) -> Measured:
        pattern = shortened(repr(self.pattern), QUOTED)
        try:
            found = matching.search(self.pattern or "", output, cancelled)
        except matching.SearchTimedOut:
            raise PatternTimedOut(
                f"the pattern {pattern} took more than {matching.TIMEOUT:g} s on its output; write one without nested "
                "repetition such as (a+)+"
            ) from None
        except (OSError, ValueError) as error:
            raise NoValue(f"the pattern {pattern} cannot be applied to its output ({error})") from None
        if found is None:
            where = "the last part of its output" if cut else "its output"
            raise NoValue(f"no line of {where} matches {pattern}")
        groups = {self.y: found.first} | found.groups
        return self._of_object({name: text for name, text in groups.items() if text is not None})

    def _of_object(self, fields: Mapping[str, Any]) -> Measured:
        for name in (self.y, *self.constraints):
            if name not in fields:
                raise NoValue(f"{name} is missing in its result, which has {shortened(str(list(fields)), QUOTED)}")
        noise_var = _number(self.noise_var, fields[self.noise_var]) if fields.get(self.noise_var) is not None else 0.0
        if noise_var < 0.0:
            raise NoValue(f"{self.noise_var} is {noise_var:g}; a variance cannot be negative")
        constraints = tuple(_number(name, fields[name]) for name in self.constraints)
        return Measured(_number(self.y, fields[self.y]), noise_var, constraints)


def _object_in(file: Path) -> Mapping[str, Any]:
    """Read the JSON object of a result file, of at most LARGEST_FILE bytes."""
    try:
        if not file.is_file():  # reading a pipe would block
            raise NoValue("it wrote no result file, whose path is in GPMI_RESULT_FILE")
        with file.open("rb") as opened:
            data = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise NoValue(f"its result file cannot be read ({error.strerror})") from None
    if len(data) > LARGEST_FILE:
        raise NoValue(f"its result file has more than {LARGEST_FILE // 1024} kB; write a JSON object of a few numbers")
    return _parsed(data.decode("utf-8", errors="replace"))


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        raise NoValue(f"its result is not JSON: {shortened(text, QUOTED)}") from None
    if not isinstance(parsed, dict):
        raise NoValue(f"its result is {shortened(text, QUOTED)}; a JSON object such as {{'y': 0.5}} is needed")
    return parsed


def _number(name: str, given: Any) -> float:
    """Return a finite number that is not too large to square."""
    if isinstance(given, str) and _NUMBER.fullmatch(given.strip()):
        given = float(given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise NoValue(f"{name} is {shortened(repr(given), QUOTED)}, not a number")
    try:
        value = float(given)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise NoValue(f"{name} is {value}")
    if abs(value) > checks.LARGEST:
        raise NoValue(f"{name} is {value:g}, too large to square; give other units")
    return value
