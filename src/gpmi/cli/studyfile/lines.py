"""The line on which each key and each element of a TOML text stands, so that a message can point at it.

`tomllib` reads the text and refuses what is no TOML; it does not say where a value stood. This reads a text that it has
accepted once more, for the places alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]  # keys and positions, from the outside inwards

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


def line_of(lines: Mapping[Path, int], path: Path) -> int:
    """The line of the innermost part of a path that has one; 1 if none has."""
    while path not in lines and path:
        path = path[:-1]
    return lines.get(path, 1)


def lines_of(text: str) -> dict[Path, int]:
    """The line, from 1, of every key, table and array element of a text that `tomllib` accepts. O(length)."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._line, self._counted = 1, 0  # the line of the place up to which newlines were counted
        self._lines: dict[Path, int] = {}
        self._arrays: dict[Path, int] = {}  # how many tables an array of tables has so far

    def read(self) -> dict[Path, int]:
        table: Path = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)
        return self._lines

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        assert found is not None, "tomllib has accepted the text"
        self._at = found.end()
        return found[0]

    def _note(self, path: Path) -> None:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        self._lines.setdefault(path, self._line)

    def _header(self) -> Path:
        """[table] or [[array of tables]]; each part that is such an array stands for its last table."""
        several = self._text.startswith("[[", self._at)
        self._at += 2 if several else 1
        begin, keys = self._at, self._key()
        path: Path = ()
        for i, key in enumerate(keys):
            path = (*path, key)
            if several and i == len(keys) - 1:
                self._arrays[path] = self._arrays.get(path, 0) + 1
            if path in self._arrays:
                path = (*path, self._arrays[path] - 1)
        self._skip(_SPACE)
        self._at += 2 if several else 1
        assert begin < self._at
        self._note(path)
        return path

    def _key(self) -> list[str]:
        """A key, dotted or not, as its parts."""
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

    def _pair(self, table: Path) -> None:
        keys = self._key()
        for i in range(len(keys)):
            self._note((*table, *keys[: i + 1]))
        self._at += 1  # the sign =
        self._skip(_SPACE)
        self._value((*table, *keys))

    def _value(self, path: Path) -> None:
        first = self._text[self._at]
        if first in "\"'":
            self._skip(_STRING)
        elif first == "[":
            self._array(path)
        elif first == "{":
            self._inline(path)
        else:
            self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        self._at += 1
        number = 0
        self._skip(_BLANK)
        while self._text[self._at] != "]":
            self._note((*path, number))
            self._value((*path, number))
            number += 1
            self._skip(_BLANK)
            if self._text[self._at] == ",":
                self._at += 1
                self._skip(_BLANK)
        self._at += 1

    def _inline(self, path: Path) -> None:
        self._at += 1
        self._skip(_BLANK)
        while self._text[self._at] != "}":
            self._pair(path)
            self._skip(_BLANK)
            if self._text[self._at] == ",":
                self._at += 1
                self._skip(_BLANK)
        self._at += 1
