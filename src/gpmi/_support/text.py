"""Text for a prompt: numbers, points and a few aligned lines, plain or as HTML.

Pure functions of plain values. This module knows no class of the library, so every other module may use it. A text made
here is safe to print and to parse: one line of limited length, without control characters. Only a `WholePoint` may
take several lines.
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
NAME = 30  # characters of the name of an output or a parameter, at most
OUTPUTS = 60  # characters of the outputs in the line of a trial, at most
MOST_DIGITS = 9  # of a number that is known very precisely
DIGITS = 6  # digits for display only; to tell a value, pass the exact point or its trial number

Line: TypeAlias = tuple[str, str]  # a name and its text


# Pieces of a line


def rounded(value: float | None) -> str:
    """Format a number with DIGITS significant digits; "none" for None."""
    if value is None or not isinstance(value, int | float):
        return "none" if value is None else repr(value)
    return f"{value or 0:.{DIGITS}g}"  # `or 0`: no minus before a zero


def rough(value: float, digits: int = 3) -> str:
    """Format an estimate with few digits, and without a power of ten if it is below a million."""
    return rounded(float(f"{value:.{digits}g}"))


def round_to_sd(value: float, sd: float) -> str:
    """Format a number to the second digit of its standard deviation, with MOST_DIGITS at most."""
    if not (0.0 < sd < math.inf and math.isfinite(value)):
        return rounded(value)
    places = 1 - math.floor(math.log10(sd))
    nearest = round(value, places) + 0.0  # + 0.0: no minus before a zero
    fixed = f"{nearest:.{places}f}" if 0 < places <= DIGITS else ""
    return fixed if 0 < len(fixed.replace(".", "").lstrip("-0")) <= MOST_DIGITS else f"{nearest:.{MOST_DIGITS}g}"


def distinct_numbers(values: Sequence[float]) -> list[str]:
    """Format numbers with the fewest digits, at least three, whose error is below a twentieth of the smallest gap.

    If all numbers are equal, or there is only one, the relative error is at most a millionth.
    """
    array = np.asarray(values, dtype=float)
    gaps = np.abs(np.diff(array))
    most = 0.05 * float(gaps[gaps > 0.0].min()) if np.any(gaps > 0.0) else 1e-6 * float(np.abs(array).max(initial=0.0))
    for digits in range(3, 18):
        near = [float(f"{value:.{digits}g}") for value in values]
        if all(abs(number - value) <= most for number, value in zip(near, values, strict=True)):
            break
    texts = (f"{number + 0.0:.{max(5, digits)}g}" for number in near)
    return [re.sub(r"e([+-])0*", lambda sign: "e" + sign[1].strip("+"), text) for text in texts]


def shortened(text: str, width: int = WIDTH) -> str:
    """Return the text in one line of at most `width` characters; a longer text is cut.

    White space becomes one blank, and a character that cannot be printed becomes its escape sequence.
    """
    words = " ".join(text[: 4 * width].split())  # the rest would be cut anyway
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 3] + "..."


def clock(seconds: float) -> str:
    """Format a duration as hours, minutes and seconds: 0:01:05."""
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{left:02d}"


def install_command(extra: str) -> str:
    """Return the command that installs an extra, wherever gpmi comes from.

    pip reads the extras of an installed package from its metadata, so the name is enough, whether it came from an index
    or from a clone. A source tree that is on the path without being installed is named by its folder.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        where = distribution("gpmi").metadata["Name"]
    except PackageNotFoundError:
        where = str(Path(__file__).parents[3])
    return f'pip install "{where}[{extra}]"'


def without_password(text: str) -> str:
    """Return the address of a database without its password, because messages end up in logs."""
    return re.sub(r"(://[^:/@]*):.*@", r"\1:***@", text)


def coordinate(value: Any) -> str:
    """Format one coordinate as Python would read it: a number with few digits, or an option in quotes."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    return rounded(value) if isinstance(value, float) else shortened(repr(value), VALUE)


class WholePoint(str):
    """A point with all its coordinates, to copy into Python. It has line breaks between coordinates if it is long."""

    @staticmethod
    def of(x: Point | None, width: int = POINT) -> str:
        """Format a point whole, in lines of `width` characters where its coordinates are not longer."""
        if x is None or (not isinstance(x, Mapping) and np.ndim(x) != 1):  # or no point at all
            return point(x, width)
        if isinstance(x, Mapping):
            left, right, items = "{", "}", [f"{name!r}: {_whole_coordinate(x[name])}" for name in x]
        else:
            left, right, items = "[", "]", [_whole_coordinate(value) for value in x]
        lines = [left]
        for i, item in enumerate(items):
            piece = item + ("," if i < len(items) - 1 else right)
            fits = len(lines[-1]) + 1 + len(piece) <= width
            if i == 0:
                lines[-1] += piece
            elif fits:
                lines[-1] += " " + piece
            else:
                lines.append(" " + piece)
        return WholePoint("\n".join(lines) if items else left + right)


def _whole_coordinate(value: Any) -> str:
    """Format one coordinate as `coordinate` does, but a text of any length whole."""
    return repr(value) if isinstance(value, str) else coordinate(value)


def point(x: Point | None, width: int = POINT) -> str:
    """Format a point as Python would read it, `[0.5, 0.25]` or `{'rate': 0.001, 'kind': 'relu'}`; "none" for None.

    If that is longer than `width`, the last coordinates are replaced by their count.
    """
    if x is None:
        return "none"
    most = width // 3 + 1  # no more fit, because a coordinate takes at least three characters
    if isinstance(x, Mapping):
        left, right = "{", "}"
        items = [f"{shortened(repr(name), VALUE)}: {coordinate(x[name])}" for name in list(x)[:most]]
    elif np.ndim(x) == 1:
        left, right = "[", "]"
        items = [coordinate(value) for value in list(x)[:most]]
    else:  # not a point, but a repr must not raise
        return shortened(repr(x), width)
    for shown in range(len(items), -1, -1):
        rest = [f"... {len(x) - shown} more"] if shown < len(x) else []
        text = left + ", ".join(items[:shown] + rest) + right
        if len(text) <= width:
            break
    return text


def some_of(items: Sequence[str], width: int) -> str:
    """Join items by commas, with the number of those that do not fit into `width` characters: "3, 5, ... 4 more"."""
    for shown in range(min(len(items), width), 0, -1):  # an item takes at least one character
        rest = [f"... {len(items) - shown} more"] if shown < len(items) else []
        text = ", ".join([*items[:shown], *rest])
        if len(text) <= width:
            return text
    return f"{len(items)} in all" if items else ""


def tally(words: Iterable[str]) -> str:
    """List the words in order of first appearance, with their count where it is not 1: "jitter (3), fit"."""
    counts = Counter(words)
    return ", ".join(word if count == 1 else f"{word} ({count})" for word, count in counts.items()) or "none"


def error_message(error: BaseException) -> str:
    """Return the message of an exception, or a substitute where its own `str` fails."""
    try:
        return str(error)
    except BaseException:
        return "its message cannot be printed"


def event_summary(events: Sequence[Line]) -> str:
    """Summarise events, each a kind and a message, in one line: the text of a single one, otherwise a tally."""
    return ": ".join(events[0]) if len(events) == 1 else tally(kind for kind, _ in events)


# Lines


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Format a table: the cells of each column begin at the same place, and no line ends with blanks."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def aligned(lines: Sequence[Line]) -> str:
    """Format one line of at most WIDTH characters for each pair, with the names in a column of their own.

    A `WholePoint` may take several lines.
    """
    column = max((len(name) for name, _ in lines), default=0) + 2
    texts = [
        text.replace("\n", "\n" + " " * column) if isinstance(text, WholePoint) else shortened(text, WIDTH - column)
        for _, text in lines
    ]
    return "\n".join(f"{name:<{column}}{text}" for (name, _), text in zip(lines, texts, strict=True))


def best_lines(
    goal: Literal["max", "min"], x: Point | None, y: float | None, *, measured: bool = False, output: str = "y"
) -> list[Line]:
    """Return lines with the best value and its point; with `measured` constraints, the best feasible value.

    `output` is the name of the value.
    """
    name = f"{'largest' if goal == 'max' else 'smallest'} {'feasible ' if measured else ''}{shortened(output, NAME)}"
    return [(name, rounded(y))] + ([] if x is None else [("at x", WholePoint.of(x))])


def trial_line(
    number: int,
    x: Point,
    y: float | None,
    status: str,
    origin: str,
    notes: Sequence[str] = (),
    outputs: Mapping[str, float] | None = None,
) -> str:
    """Format a trial in one line: `Trial(7, x=[0.5, 0.25], y=1.25, told, policy)`; without y if it has none.

    The outputs of a run with goals stand in place of y. `notes` come last, such as the error bar or the first value of
    a corrected trial.
    """
    details = "".join(f", {note}" for note in notes)
    value = "" if y is None else f", y={rounded(y)}"
    if outputs:
        value = (
            f", {some_of([f'{shortened(name, NAME)}={rounded(output)}' for name, output in outputs.items()], OUTPUTS)}"
        )
    before, after = f"Trial({number}, x=", f"{value}, {status}, {origin}{details})"
    return before + point(x, WIDTH - len(before) - len(after)) + after


def percent(probability: float) -> str:
    """Format a probability that was estimated from draws: never 0 % or 100 %."""
    return "below 1 %" if probability < 0.01 else "above 99 %" if probability > 0.99 else f"{100.0 * probability:.0f} %"


# HTML


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of escaped texts. Without a `head` the first cell of each row is its name."""
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
    """Return the lines of `aligned` as a table of two columns."""
    whole = [(name, text if isinstance(text, WholePoint) else shortened(text)) for name, text in lines]
    return html_table((), whole)


def cost_text(cost: float) -> str:
    """Return a cost for people: whole from 100 on, with commas; three digits below."""
    return f"{cost:,.0f}" if cost >= 100.0 or cost == round(cost) else f"{cost:.3g}"
