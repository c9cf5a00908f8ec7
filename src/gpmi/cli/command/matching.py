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
for line in reversed(given["output"].splitlines()):
    found = pattern.search(line)
    if found:
        def cut(text):
            return text if text is None or len(text) <= 1000 else text[:1000] + "..."
        groups = {name: cut(text) for name, text in found.groupdict().items()}
        print(json.dumps([groups, cut(found[1] if pattern.groups else found[0])]))
        break
"""


class SearchTimedOut(Exception):
    """The search was ended at its deadline."""


class MatchedLine(NamedTuple):
    """The last line that matches: its named groups, and the first group or else the whole match."""

    groups: dict[str, str | None]
    first: str | None


def search(pattern: str, output: bytes, cancelled: Callable[[], bool]) -> MatchedLine | None:
    """Search the lines of the output from the last one on. Raise `SearchTimedOut` after TIMEOUT seconds.

    Once `cancelled` is true, `program.Cancelled` is raised. A ValueError says why the pattern cannot be applied.
    """
    with tempfile.TemporaryDirectory(prefix="gpmi-", ignore_cleanup_errors=True) as folder:
        file = Path(folder, "search.json")
        file.write_text(json.dumps({"pattern": pattern, "output": output.decode("utf-8", errors="replace")}))
        argv = [sys.executable, "-I", "-S", "-c", _SCRIPT, str(file)]
        ended = program.run(argv, cwd=Path(folder), env=os.environ, timeout=TIMEOUT, cancelled=cancelled)
    if ended.timed_out:
        raise SearchTimedOut
    if ended.code:
        lines = ended.errors.decode("utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), f"exit code {ended.code}")
        raise ValueError(shortened(last, QUOTED))
    return MatchedLine(*json.loads(ended.output)) if ended.output.strip() else None
