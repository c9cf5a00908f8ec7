"""The steps that a program writes while it runs: lines with a step and the value there.

A line is a step and a number, "12 0.93", or a step and a JSON object, '12 {"loss": 0.5, "seconds": 31}'. If the value
is found by a pattern with a group named `step`, it is each line in which the pattern is found. Any other line means
nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from gpmi._support.text import shortened
from gpmi.cli.command.program import Ended
from gpmi.cli.command.reading import NUMBER, QUOTED, BadFormat, NoValue, Reading

Value: TypeAlias = float | Mapping[str, float]

_LINE = re.compile(rf"\s*(\d{{1,12}})\s+({NUMBER.pattern}|\{{.*)\s*", re.ASCII | re.IGNORECASE)
_STEP = re.compile(r"\s*(\d{1,12})\s*", re.ASCII)


class PrintedCurve:
    """The steps of one evaluation, in order. A program that is run again reports the later ones."""

    def __init__(self, reading: Reading, name: str, first: int, last: int) -> None:
        self._reading, self._name, self._first, self._last = reading, name, first, last
        self._reported = 0  # the last step that was passed on, by any attempt
        self.restart()

    def restart(self) -> None:
        """Expect the steps from the first one on: the program is run again."""
        self._seen: tuple[int, Value] | None = None

    def reports(self, lines: Sequence[bytes], cancelled: Callable[[], bool]) -> Iterator[tuple[int, Value]]:
        """Yield the new steps among these lines with their values; the last step of all is kept for `final`.

        Raise `NoValue` for a step that is out of order or out of range, or has no value.
        """
        for step, value in self._found(lines, cancelled):
            self._check(step, value)
            self._seen = step, value
            if self._reported < step < self._last:
                self._reported = step
                yield step, value

    def final(self, ended: Ended, file: Path, cancelled: Callable[[], bool]) -> Value:
        """Return the value at the last step, of a program that has ended well: reported, or read as without steps."""
        if self._seen is not None and self._seen[0] == self._last:
            return self._seen[1]
        if self._seen is not None and self._ends_with_a_step(ended.output):
            raise NoValue(f"it ended at step {self._seen[0]}, and {self._name} goes to {self._last}")
        return self._reading.value(ended.output, file, cut=ended.cut, cancelled=cancelled).y

    def _found(self, lines: Sequence[bytes], cancelled: Callable[[], bool]) -> Iterator[tuple[int, Value]]:
        if self._reading.finds_steps:
            for text, fields in self._reading.matches(b"\n".join(lines), cancelled):
                if _STEP.fullmatch(text) is None:
                    raise BadFormat(f"its step is {shortened(text, QUOTED)}, not a whole number")
                with _named(int(text)):
                    value = self._reading.of_object(fields).y
                yield int(text), value
            return
        for line in lines:
            match = _LINE.fullmatch(line.decode("utf-8", errors="replace"))
            if match is not None:
                with _named(int(match[1])):
                    value = self._reading.of_text(match[2]).y
                yield int(match[1]), value

    def _check(self, step: int, value: Value) -> None:
        if not self._first <= step <= self._last:
            raise NoValue(f"it wrote step {step}, but {self._name} goes from {self._first} to {self._last}")
        if self._seen is None or step > self._seen[0]:
            return
        if (step, value) != self._seen:
            raise NoValue(f"it wrote step {step} after step {self._seen[0]}; steps must grow")

    def _ends_with_a_step(self, output: bytes) -> bool:
        if self._reading.source != "last line":
            return self._reading.finds_steps
        lines = [line for line in output.decode("utf-8", errors="replace").splitlines() if line.strip()]
        return bool(lines) and _LINE.fullmatch(lines[-1]) is not None


@contextmanager
def _named(step: int) -> Iterator[None]:
    """Name the step in the reason why it has no value."""
    try:
        yield
    except NoValue as error:
        raise type(error)(f"step {step}: {error}") from None
