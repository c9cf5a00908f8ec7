"""What people read at a prompt: numbers, points and a few aligned lines, as text and as HTML.

Pure functions of plain values. This module knows no class of the library, so that every other module may use it. A text
made here is safe to print and to parse: one line of limited length, without control characters.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from gpmi._support.types import Point

# Our choices, not tuned.
WIDTH = 120  # characters of a line, at most
POINT = 100  # characters of a point, at most: leaves room for a name before it
VALUE = 40  # characters of one coordinate, at most; a number has 12
MANY = 9  # digits of a number of which so many are known
DIGITS = 6  # of a number: to look at. To tell a value take the point itself, or the number of its trial

Line: TypeAlias = tuple[str, str]  # a name, and what is said of it


# Pieces of a line


def rounded(value: float | None) -> str:
    """A number in DIGITS significant digits; "none" for None."""
    return "none" if value is None else f"{value:.{DIGITS}g}" if isinstance(value, int | float) else repr(value)


def rough(value: float, digits: int = 3) -> str:
    """A number that is not known well, in few digits, and without a power of ten where it is below a million."""
    return rounded(float(f"{value:.{digits}g}"))


def round_to_sd(value: float, sd: float) -> str:
    """A number in the digits that its standard deviation leaves: up to the second digit of sd, and nine at most."""
    if not (0.0 < sd < math.inf and math.isfinite(value)):
        return rounded(value)
    places = 1 - math.floor(math.log10(sd))
    kept = round(value, places) + 0.0  # no minus before a zero
    fixed = f"{kept:.{places}f}" if 0 < places <= DIGITS else ""
    return fixed if 0 < len(fixed.replace(".", "").lstrip("-0")) <= MANY else f"{kept:.{MANY}g}"


def distinct_numbers(values: Sequence[float]) -> list[str]:
    """Numbers in the fewest digits, three at least, that are off by less than a twentieth of the smallest gap.

    Equal numbers, or one alone, are off by at most a millionth of themselves.
    """
    line = np.asarray(values, dtype=float)
    gaps = np.abs(np.diff(line))
    off = 0.05 * float(gaps[gaps > 0.0].min()) if np.any(gaps > 0.0) else 1e-6 * float(np.abs(line).max(initial=0.0))
    for digits in range(3, 18):
        kept = [float(f"{value:.{digits}g}") for value in values]
        if all(abs(one - value) <= off for one, value in zip(kept, values, strict=True)):
            break
    texts = (f"{one + 0.0:.{max(5, digits)}g}" for one in kept)
    return [re.sub(r"e([+-])0*", lambda sign: "e" + sign[1].strip("+"), text) for text in texts]


def shortened(text: str, width: int = WIDTH) -> str:
    """The text in one line of at most `width` characters, its end cut off where it is longer.

    White space becomes one blank, and a character that cannot be printed becomes its escape sequence.
    """
    words = " ".join(text[: 4 * width].split())  # what lies behind is cut off in any case
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 3] + "..."


def clock(seconds: float) -> str:
    """A duration in hours, minutes and seconds, 0:01:05."""
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{left:02d}"


def install_command(extra: str) -> str:
    """The command that adds an extra, wherever gpmi comes from.

    pip takes the extras of what is installed from its metadata, so its name is enough, from an index and from a clone
    alike; a source tree that is on the path without being installed is named by its folder.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        where = distribution("gpmi").metadata["Name"]
    except PackageNotFoundError:
        where = str(Path(__file__).parents[3])
    return f'pip install "{where}[{extra}]"'


def without_password(text: str) -> str:
    """The address of a database without its password: messages end up in logs."""
    return re.sub(r"(://[^:/@]*):.*@", r"\1:***@", text)


def coordinate(value: Any) -> str:
    """One coordinate of a point, as Python would read it: a number in a few digits, or an option in quotes."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    return rounded(value) if isinstance(value, float) else shortened(repr(value), VALUE)


def point(x: Point | None, width: int = POINT) -> str:
    """A point as Python would read it, `[0.5, 0.25]` or `{'rate': 0.001, 'kind': 'relu'}`; "none" for None.

    Where that is longer than `width`, the last coordinates are replaced by their number.
    """
    if x is None:
        return "none"
    some = width // 3 + 1  # a coordinate takes at least three characters, so that no more of them fit
    if isinstance(x, Mapping):
        left, right = "{", "}"
        items = [f"{shortened(repr(name), VALUE)}: {coordinate(x[name])}" for name in list(x)[:some]]
    elif np.ndim(x) == 1:
        left, right = "[", "]"
        items = [coordinate(value) for value in list(x)[:some]]
    else:  # no point at all: a repr must not raise
        return shortened(repr(x), width)
    for shown in range(len(items), -1, -1):
        rest = [f"... {len(x) - shown} more"] if shown < len(x) else []
        text = left + ", ".join(items[:shown] + rest) + right
        if len(text) <= width:
            break
    return text


def tally(words: Iterable[str]) -> str:
    """The words in the order in which they first appear, with their number where it is not 1: "jitter (3), fit"."""
    counts = Counter(words)
    return ", ".join(word if count == 1 else f"{word} ({count})" for word, count in counts.items()) or "none"


def event_summary(events: Sequence[Line]) -> str:
    """Events, each a kind and a message, in one line: all of one alone, otherwise how many there are of each."""
    return ": ".join(events[0]) if len(events) == 1 else tally(kind for kind, _ in events)


def interval(low: float, high: float, median: float) -> str:
    """A credible interval of level 95 % and the median, in words."""
    return f"{rough(low)} to {rough(high)} with probability 95 %, median {rough(median)}"


# What is said of an interval

UNKNOWN = "not known: the values do not say yet how much f varies"


def not_covered(*, failures: bool = False) -> Line:
    """What an interval cannot cover where the prior is learned; with `failures`, where trials have failed as well."""
    more = "; regions where trials probably fail" if failures else ""
    return "not covered", f"peaks that no query came near{more}"


# Lines


def aligned(lines: Sequence[Line]) -> str:
    """One line of at most WIDTH characters for each pair, the names in a column of their own."""
    column = max((len(name) for name, _ in lines), default=0) + 2
    return "\n".join(f"{name:<{column}}{shortened(text, WIDTH - column)}" for name, text in lines)


def best_lines(goal: Literal["max", "min"], x: Point | None, y: float | None, *, measured: bool = False) -> list[Line]:
    """The best value told and where it was observed; with `measured` constraints, the best that keeps to them."""
    name = f"{'largest' if goal == 'max' else 'smallest'} {'feasible ' if measured else ''}y"
    return [(name, rounded(y))] + ([] if x is None else [("at x", point(x))])


def trial_line(number: int, x: Point, y: float | None, status: str, origin: str, notes: Sequence[str] = ()) -> str:
    """A trial in one line: `Trial(7, x=[0.5, 0.25], y=1.25, told, policy)`; y is left out where there is none.

    `notes` come last: its error bar, the first value that it had.
    """
    more = "".join(f", {note}" for note in notes)
    before, after = f"Trial({number}, x=", ("" if y is None else f", y={rounded(y)}") + f", {status}, {origin}{more})"
    return before + point(x, WIDTH - len(before) - len(after)) + after


def regret_lines(t: int, recommended: Point, simple: str, cumulative: str, how: str, *, learned: bool) -> list[Line]:
    """The regrets after t values. `simple` and `cumulative` come from `interval`; `learned` if the prior is learned."""
    return [
        ("after", f"{t} values"),
        ("recommended", point(recommended)),
        ("simple regret", simple),
        *([not_covered()] if learned else []),
        ("cumulative", cumulative),
        ("drawn as", how),
    ]


def ledger_lines(n: int, chosen: int, explored: int, information: float, calibration: str) -> list[Line]:
    """What a ledger knows without a draw of the regret: n values, of which the policy chose some."""
    return [
        ("values", f"{n}, of which the policy chose {chosen}: {explored} to explore"),
        ("information", f"{information:.4g} nats"),
        ("calibration", calibration),
    ]


# HTML


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of escaped texts; without a `head` the first cell of each row is its name."""
    from html import escape  # only a notebook needs it

    left = ' style="text-align: left"'
    top = "".join(f'<th scope="col"{left}>{escape(text)}</th>' for text in head)
    body = []
    for row in rows:
        cells = [f"<td{left}>{escape(text)}</td>" for text in row]
        if not head:
            cells[0] = f'<th scope="row"{left}>{escape(row[0])}</th>'
        body.append(f"<tr>{''.join(cells)}</tr>")
    return "<table>" + (f"<thead><tr>{top}</tr></thead>" if head else "") + f"<tbody>{''.join(body)}</tbody></table>"


def html_lines(lines: Sequence[Line]) -> str:
    """The lines of `aligned` as a table of two columns."""
    return html_table((), [(name, shortened(text)) for name, text in lines])
