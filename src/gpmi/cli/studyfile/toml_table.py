"""Tables of a study file that know their lines, so that a message can point at them.

`tomllib` reads the text and refuses what is not TOML, but it does not say where a value stands. The text is therefore
read once more for the lines alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpmi._support.plain_table import Place, Table, TableError


class StudyFileError(TableError):
    """A study file that cannot be used: `file:line: what is wrong; the remedy`."""


class FileTable(Table):
    """One table of the file, and where it stands."""

    def __init__(self, content: Mapping[str, Any], file: Path, lines: Mapping[Place, int], place: Place = ()) -> None:
        super().__init__(content, place)
        self.file, self._lines = file, lines

    def error(self, message: str, place: Place) -> StudyFileError:
        named = ".".join(f"[{part}]" if isinstance(part, int) else part for part in place).replace(".[", "[")
        prefix = f"{named}: " if place else ""
        return StudyFileError(f"{self.file}:{line_of(self._lines, place)}: {prefix}{message}", place)

    def attached(self, text: str) -> str:
        """Return the content of the file that a value names, beside the study file."""
        path = self.file.parent / text
        if not path.is_file():
            raise ValueError(f"it is {text!r}, which is no file; give a CSV file beside the study file")
        return path.read_text(encoding="utf-8-sig")

    def inside(self, content: Mapping[str, Any], place: Place) -> FileTable:
        return FileTable(content, self.file, self._lines, place)


# Lines

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}\n#]*")


def line_of(lines: Mapping[Place, int], place: Place) -> int:
    """Return the line of the innermost part of a place that has one; 1 if none has."""
    while place not in lines and place:
        place = place[:-1]
    return lines.get(place, 1)


def lines_of(text: str) -> dict[Place, int]:
    """Return the line, from 1, of every key, table and array element of a text that `tomllib` accepts. O(length)."""
    return _LineReader(text).read()


class _LineReader:
    """Reads a text that `tomllib` has accepted once more, for the lines alone."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._line, self._counted = 1, 0  # the line at the position up to which newlines were counted
        self._lines: dict[Place, int] = {}
        self._arrays: dict[Place, int] = {}  # how many tables an array of tables has so far

    def read(self) -> dict[Place, int]:
        table: Place = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)
        return self._lines

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match is not None, "tomllib has accepted the text"
        self._at = match.end()
        return match[0]

    def _note(self, place: Place) -> None:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        self._lines.setdefault(place, self._line)

    def _header(self) -> Place:
        """Read [table] or [[array of tables]]. A part that is such an array stands for its last table."""
        several = self._text.startswith("[[", self._at)
        self._at += 2 if several else 1
        begin, keys = self._at, self._key()
        place: Place = ()
        for i, key in enumerate(keys):
            place = (*place, key)
            if several and i == len(keys) - 1:
                self._arrays[place] = self._arrays.get(place, 0) + 1
            if place in self._arrays:
                place = (*place, self._arrays[place] - 1)
        self._skip(_SPACE)
        self._at += 2 if several else 1
        assert begin < self._at
        self._note(place)
        return place

    def _key(self) -> list[str]:
        """Read a key, dotted or not, as its parts."""
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            if self._text[self._at] in "\"'":
                quoted = self._skip(_STRING)
                parts.append(next(iter(tomllib.loads(f"{quoted} = 0"))))
            else:
                parts.append(self._skip(_BARE))
            self._skip(_SPACE)
            if self._text[self._at] != ".":
                return parts
            self._at += 1

    def _pair(self, table: Place) -> None:
        keys = self._key()
        for i in range(len(keys)):
            self._note((*table, *keys[: i + 1]))
        self._at += 1  # the sign =
        self._skip(_SPACE)
        self._value((*table, *keys))

    def _value(self, place: Place) -> None:
        first = self._text[self._at]
        if first in "\"'":
            self._skip(_STRING)
        elif first == "[":
            self._array(place)
        elif first == "{":
            self._inline(place)
        else:
            self._skip(_SCALAR)

    def _array(self, place: Place) -> None:
        self._at += 1
        number = 0
        self._skip(_BLANK)
        while self._text[self._at] != "]":
            self._note((*place, number))
            self._value((*place, number))
            number += 1
            self._skip(_BLANK)
            if self._text[self._at] == ",":
                self._at += 1
                self._skip(_BLANK)
        self._at += 1

    def _inline(self, place: Place) -> None:
        self._at += 1
        self._skip(_BLANK)
        while self._text[self._at] != "}":
            self._pair(place)
            self._skip(_BLANK)
            if self._text[self._at] == ",":
                self._at += 1
                self._skip(_BLANK)
        self._at += 1
