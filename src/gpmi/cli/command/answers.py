"""The value of an evaluation, read from what a program wrote: its last line, a line that matches, or a JSON file.

What a program writes is not trusted: it may be anything of any size. Whatever is no value is a reason in words.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from gpmi._support import checks
from gpmi._support.text import shortened
from gpmi.run.evaluation import Measured

Source: TypeAlias = Literal["last line", "match", "json"]

LARGEST_FILE = 1024 * 1024  # bytes of a result file; a few numbers need no more. Our choice
QUOTED = 80  # characters of a program's output that a reason quotes; our choice

# A number as programs write it. Python's float would also take digits of other scripts, and 1_000.
_NUMBER = re.compile(
    r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf|infinity)", re.ASCII | re.IGNORECASE
)


class NoValue(Exception):
    """Why there is no value, in words."""


@dataclass(frozen=True)
class Reading:
    """Where a value is found.

    "last line" is the last line of the output that is not blank: a number, or a JSON object. "match" is the last line
    that `pattern` is found in: the group named `y`, or the first group, or all of it. "json" is the file whose path the
    program gets in GPMI_RESULT_FILE. `y`, `noise_var` and `constraints` are the names in the JSON object, or of groups
    of the pattern. A value without `noise_var` has none; all constraints must be there.
    """

    source: Source = "last line"
    pattern: str | None = None
    y: str = "y"
    noise_var: str = "noise_var"
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.one_of("source", self.source, get_args(Source))
        if (self.source == "match") != (self.pattern is not None):
            raise ValueError(f"pattern is {self.pattern!r} and source {self.source!r}; they are for each other")
        if self.pattern is not None:
            try:
                groups = re.compile(self.pattern).groupindex
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"pattern is {self.pattern!r}, no regular expression ({error}); mend it") from None
            missing = [name for name in self.constraints if name not in groups]
            if missing:
                raise ValueError(f"pattern has no group (?P<{missing[0]}>...) for the constraint {missing[0]!r}")

    def value(self, output: bytes, file: Path, *, cut: bool = False) -> Measured:
        """The value in what a program wrote; `cut` if the beginning of its output is missing."""
        if self.source == "json":
            return self._of_object(_object_in(file))
        lines = output.decode("utf-8", errors="replace").splitlines()
        if self.source == "match":
            return self._of_match(lines, cut)
        last = next((line.strip() for line in reversed(lines) if line.strip()), None)
        if last is None:
            raise NoValue("it wrote nothing to its output, whose last line is the value")
        return self._of_object(_parsed(last)) if last.startswith("{") else Measured(_number("y", last))

    def _of_match(self, lines: Sequence[str], cut: bool) -> Measured:
        pattern = re.compile(self.pattern or "")
        found = next((match for line in reversed(lines) if (match := pattern.search(line))), None)
        if found is None:
            where = "the last part of its output" if cut else "its output"
            raise NoValue(f"no line of {where} matches {shortened(repr(self.pattern), QUOTED)}")
        groups = dict(found.groupdict())
        if self.y not in groups:
            groups[self.y] = found[1] if pattern.groups else found[0]
        return self._of_object({name: text for name, text in groups.items() if text is not None})

    def _of_object(self, said: Mapping[str, Any]) -> Measured:
        for name in (self.y, *self.constraints):
            if name not in said:
                raise NoValue(f"{name} is missing in its result, which has {shortened(str(list(said)), QUOTED)}")
        noise_var = _number(self.noise_var, said[self.noise_var]) if said.get(self.noise_var) is not None else 0.0
        if noise_var < 0.0:
            raise NoValue(f"{self.noise_var} is {noise_var:g}; a variance is not negative")
        constraints = tuple(_number(name, said[name]) for name in self.constraints)
        return Measured(_number(self.y, said[self.y]), noise_var, constraints)


def _object_in(file: Path) -> Mapping[str, Any]:
    """The JSON object of a result file, of which no more than LARGEST_FILE bytes are read."""
    try:
        if not file.is_file():  # a pipe would be waited for
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
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise NoValue(f"its result is no JSON: {shortened(text, QUOTED)}") from None
    if not isinstance(said, dict):
        raise NoValue(f"its result is {shortened(text, QUOTED)}; a JSON object such as {{'y': 0.5}} is needed")
    return said


def _number(name: str, said: Any) -> float:
    """A finite number that is not too large to be computed with."""
    if isinstance(said, str) and _NUMBER.fullmatch(said.strip()):
        said = float(said)
    if isinstance(said, bool) or not isinstance(said, int | float):
        raise NoValue(f"{name} is {shortened(repr(said), QUOTED)}, no number")
    try:
        value = float(said)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise NoValue(f"{name} is {value}")
    if abs(value) > checks.LARGEST:
        raise NoValue(f"{name} is {value:g}, too large to square; give other units")
    return value
