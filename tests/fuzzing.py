"""Random cases: `make test` plays a few, always the same; `make fuzz` plays many new ones with the same generators.

The number of cases comes from an environment variable. `make fuzz` prints progress and, at its end, what became of the
cases of each class. A case that fails does not end the others. GPMI_FIRST_SEED repeats a case by its seed.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence

SUMMARY: list[str] = []  # one line for each class of `make fuzz`; conftest.py prints them at the end
LINES = 20  # of progress for each class
SHOWN = 5  # failed cases whose traceback is shown


class Tally:
    """Counts the cases of one class and prints progress where there are many."""

    def __init__(self, name: str, variable: str, few: int) -> None:
        self.name, self.many = name, variable in os.environ
        self.count = int(os.environ.get(variable, few))
        self.played = 0
        self.kinds: Counter[str] = Counter()
        self._begin = time.monotonic()

    def add(self, kind: str) -> None:
        """Count a case by what became of it."""
        self.played += 1
        self.kinds[kind] += 1
        if self.many and self.played <= self.count and self.played % max(1, self.count // LINES) == 0:
            print(f"{self}", file=sys.__stderr__, flush=True)

    def close(self) -> None:
        if self.many:
            SUMMARY.append(str(self))

    def __str__(self) -> str:
        kinds = ", ".join(f"{number} {kind}" for kind, number in self.kinds.most_common())
        return f"{self.name}: {self.played} of {self.count} in {time.monotonic() - self._begin:.0f} s: {kinds}"


def play(
    name: str, variable: str, few: int, case: Callable[[random.Random], str | Sequence[str]], each: int = 1
) -> None:
    """Play cases; each draws from its own generator and returns what became of it.

    A case that plays several at once, `each`, returns what became of every one.
    """
    tally, failures = Tally(name, variable, few), list[str]()
    first = int(os.environ.get("GPMI_FIRST_SEED") or (secrets.randbelow(10**9) if tally.many else 0))
    for seed in range(first, first + -(-tally.count // each)):
        try:
            kinds = case(random.Random(seed))
        except Exception:
            kinds = "failed"
            failures.append(f"{name}: {variable}=1 GPMI_FIRST_SEED={seed}\n{traceback.format_exc()}")
            if tally.many:
                print(failures[-1], file=sys.__stderr__, flush=True)
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            tally.add(kind)
    tally.close()
    assert not failures, f"{len(failures)} of {tally.count} failed\n\n" + "\n".join(failures[:SHOWN])
