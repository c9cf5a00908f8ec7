"""Search a program's output by a regular expression of the user, in a process with a deadline.

Python's `re` backtracks: (a+)+b takes a time exponential in the length of the line. It cannot be interrupted in a
thread and blocks all others, so it runs in a subprocess. That costs some 20 ms, about as much as a shell.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gpmi._support.text import shortened
from gpmi.cli.command import program

TIMEOUT = 20.0  # seconds for one search; a pattern without nested repetition needs milliseconds. Our choice
QUOTED = 120  # characters of an error that the reason quotes; our choice

# A group of more than 1000 characters is not a number. It is cut off, and marked so that it does not become one.
_SCRIPT = """
import json, re, sys
with open(sys.argv[1], encoding="utf-8") as file:
    given = json.load(file)
pattern = re.compile(given["pattern"])
numbers = [i for i in range(1, pattern.groups + 1) if i != pattern.groupindex.get("step")]
def cut(text):
    return text if text is None or len(text) <= 1000 else text[:1000] + "..."
lines, matches = given["output"].splitlines(), []
for line in lines if given["every"] else reversed(lines):
    found = pattern.search(line)
    if found:
        groups = {name: cut(text) for name, text in found.groupdict().items()}
        matches.append([groups, cut(found[numbers[0]] if numbers else found[0])])
        if not given["every"]:
            break
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump(matches, file)
"""


class SearchTimedOut(Exception):
    """The search was ended at its deadline."""


class MatchedLine(NamedTuple):
    """A line that matches: its named groups, and the first group (not that of a step) or else the whole match."""

    groups: dict[str, str | None]
    first: str | None


def search(pattern: str, output: bytes, cancelled: Callable[[], bool], *, every: bool = False) -> list[MatchedLine]:
    """Search the lines of the output from the last one on, or `every` one. Raise `SearchTimedOut` after TIMEOUT s.

    Once `cancelled` is true, `program.Cancelled` is raised. A ValueError says why the pattern cannot be applied.
    """
    with tempfile.TemporaryDirectory(prefix="gpmi-", ignore_cleanup_errors=True) as folder:
        file, matches = Path(folder, "search.json"), Path(folder, "matches.json")
        given = {"pattern": pattern, "every": every, "output": output.decode("utf-8", errors="replace")}
        file.write_text(json.dumps(given))
        argv = [sys.executable, "-I", "-S", "-c", _SCRIPT, str(file), str(matches)]
        ended = program.run(argv, cwd=Path(folder), env=os.environ, timeout=TIMEOUT, cancelled=cancelled)
        if ended.timed_out:
            raise SearchTimedOut
        if ended.code:
            lines = ended.errors.decode("utf-8", errors="replace").split("\n")
            last = next((line for line in reversed(lines) if line.strip()), f"exit code {ended.code}")
            raise ValueError(shortened(last, QUOTED))
        return [MatchedLine(*match) for match in json.loads(matches.read_text())]
