"""What people type into a cell: a number, perhaps with a decimal comma or an error bar, "failed", or nothing yet."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpmi._support.text import shortened

FAILED = ("failed", "fail", "failure", "error", "crashed", "broken")
MISSING = ("", "-", "–", "—", "?")  # no value yet
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BARS = re.compile(r"\s*(?:±|\+/-|\+-)\s*")
_FAILED = re.compile(rf"({'|'.join(FAILED)})\b\s*[:;,.–-]?\s*(.*)", re.IGNORECASE | re.DOTALL)
LONGEST = 300  # characters of a cell, at most: our choice


@dataclass(frozen=True)
class Cell:
    """What one cell says."""

    y: float | None = None
    noise_var: float = 0.0  # the square of what stands behind ±
    failed: bool = False
    why: str | None = None
    note: str | None = None  # how it was read, where it could have meant something else

    @property
    def empty(self) -> bool:
        return self.y is None and not self.failed


def cell(said: str) -> Cell:
    """What was typed; a ValueError that says how to write it otherwise."""
    words = said.strip()
    if words in MISSING:
        return Cell()
    if len(words) > LONGEST:
        raise ValueError(f"{shortened(words, 40)!r} is too long for a result; give a number, or failed: and the reason")
    failed = _FAILED.fullmatch(words)
    if failed:
        return Cell(failed=True, why=failed[2].strip() or None)
    value, *bars = _BARS.split(words)
    if len(bars) > 1:
        raise ValueError(f"{shortened(words, 40)!r} has two error bars; write it as 4.1 ± 0.2")
    y, note = number(value)
    if not bars:
        return Cell(y, note=note)
    sd, other = number(bars[0])
    if sd < 0:
        raise ValueError(f"{shortened(words, 40)!r} has a negative error bar; write it as 4.1 ± 0.2")
    return Cell(y, sd * sd, note=note or other)


def number(said: str) -> tuple[float, str | None]:
    """A number, and how it was read if it had a decimal comma or a space between thousands."""
    words = said.strip().replace("−", "-")
    shown = shortened(words, 40)
    if len(words) > LONGEST:  # what is read below takes the square of the length
        raise ValueError(f"{shown!r} is too long for a number; give fewer digits")
    plain = re.sub(r"(?<=[0-9])[ \u00a0\u202f'’](?=[0-9]{3}(?![0-9]))", "", words)
    if "," in plain:
        plain = _without_comma(plain, shown)
    if not _NUMBER.fullmatch(plain):
        if plain.lower().lstrip("+-") in ("nan", "n/a", "#n/a", "na", "inf", "infinity"):
            raise ValueError(f"{shown!r} is no result; leave the cell empty if there is none yet, or write failed")
        hint = (
            "write the number without its unit" if re.match(r"[+-]?[0-9]", plain) else "give a number, or write failed"
        )
        raise ValueError(f"{shown!r} is not a number; {hint}")
    value = float(plain)
    if not math.isfinite(value):
        raise ValueError(f"{shown!r} is too large; give it in other units")
    return value, None if plain == words else f"{shown} was read as {plain}"


def _without_comma(plain: str, shown: str) -> str:
    if re.fullmatch(r"[+-]?[0-9]{1,3}(\.[0-9]{3})+,[0-9]+", plain):  # 1.234,5
        return plain.replace(".", "").replace(",", ".")
    if re.fullmatch(r"[+-]?[0-9]{1,3}(,[0-9]{3})+\.[0-9]*", plain):  # 1,234.5
        return plain.replace(",", "")
    if re.fullmatch(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+", plain):  # 1,234
        raise ValueError(
            f"{shown!r} can be {plain.replace(',', '.', 1)} or {plain.replace(',', '')}; write it without comma"
        )
    if plain.count(",") == 1 and "." not in plain:  # 3,7
        return plain.replace(",", ".")
    raise ValueError(f"{shown!r} is not a number; write it with a point, without commas")


def column(pasted: str, numbers: Sequence[int]) -> dict[int, str]:
    """The cells of a column copied from a spreadsheet, by the numbers of the trials they belong to.

    One cell in a line, in the order of the trials; or two, of which the first is the number of the trial. A first
    line that is no result is taken for the title of the column where there is one line too many.
    """
    lines = pasted.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    rows = [line.split("\t") for line in lines]
    if any(len(row) > 2 for row in rows):
        raise ValueError(f"there are {max(map(len, rows))} columns; copy the column of the results alone")
    if any(len(row) == 2 for row in rows):
        return _by_number(rows, numbers)
    if len(lines) == len(numbers) + 1 and _is_title(lines[0]):
        lines = lines[1:]
    if len(lines) > len(numbers):
        raise ValueError(
            f"there are {len(lines)} lines for {len(numbers)} trials; copy as many results as there are rows"
        )
    return dict(zip(numbers, lines, strict=False))


def _by_number(rows: list[list[str]], numbers: Sequence[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for i, row in enumerate(rows):
        named = row[0].strip().lstrip("#")
        if not named.isdecimal():
            if i == 0 and _is_title(row[0]):
                continue
            raise ValueError(
                f"line {i + 1} begins with {shortened(row[0], 40)!r}; of two columns the first is the trial"
            )
        if int(named) not in numbers:
            raise ValueError(f"line {i + 1} is about trial {int(named)}, which waits for no result here")
        if int(named) in found:
            raise ValueError(f"trial {int(named)} stands in two lines; give each once")
        found[int(named)] = row[1] if len(row) == 2 else ""
    return found


def _is_title(line: str) -> bool:
    try:
        return cell(line).empty and bool(line.strip())
    except ValueError:
        return True
