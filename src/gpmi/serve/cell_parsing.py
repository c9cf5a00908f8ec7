"""What people type into a cell: a number, perhaps with a decimal comma or an error bar, "failed", or nothing yet.

Error messages say how to write it instead. They are shown beside the cell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpmi._support.text import shortened

FAILED = ("failed", "fail", "failure", "error", "crashed", "broken")
EMPTY = ("", "-", "–", "—", "?")  # no value yet
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ERROR_BAR = re.compile(r"\s*(?:±|\+/-|\+-)\s*")
_FAILED = re.compile(rf"({'|'.join(FAILED)})\b\s*[:;,.–-]?\s*(.*)", re.IGNORECASE | re.DOTALL)
MAX_LENGTH = 300  # characters of a cell; our choice
TRIAL = -1  # stands for the column with the numbers of the trials


@dataclass(frozen=True)
class ParsedCell:
    """The meaning of one cell."""

    y: float | None = None
    noise_var: float = 0.0  # the square of the number after ±
    failed: bool = False
    why: str | None = None
    note: str | None = None  # how it was read, if it could have meant something else

    @property
    def empty(self) -> bool:
        return self.y is None and not self.failed


def parse_cell(typed: str, unit: str = "") -> ParsedCell:
    """Read a cell; its unit may be typed with the number. Raise a ValueError that says how to write it instead."""
    text = typed.strip()
    if text in EMPTY:
        return ParsedCell()
    if len(text) > MAX_LENGTH:
        raise ValueError(f"{shortened(text, 40)!r} is too long for a result; give a number, or “failed: ” and a reason")
    failed = _FAILED.fullmatch(text)
    if failed:
        return ParsedCell(failed=True, why=failed[2].strip() or None)
    value, *bars = _ERROR_BAR.split(text)
    if len(bars) > 1:
        raise ValueError(f"{shortened(text, 40)!r} has two error bars; write it as 4.1 ± 0.2")
    y, note = parse_number(value, unit, may_fail=True)
    if not bars:
        return ParsedCell(y, note=note)
    sd, sd_note = parse_number(bars[0], unit)
    if sd < 0:
        raise ValueError(f"{shortened(text, 40)!r} has a negative error bar; write it as 4.1 ± 0.2")
    return ParsedCell(y, sd * sd, note=note or sd_note)


def parse_number(typed: str, unit: str = "", *, may_fail: bool = False) -> tuple[float, str | None]:
    """Read a number. Also return how it was read, if it had a decimal comma or a space between thousands.

    `unit` may stand behind it; any other unit is refused: 4.1 g are not 4.1 mg. `may_fail` is for results: the message
    then says how to enter a failure.
    """
    text = _without_unit(typed.strip(), unit).replace("−", "-")
    shown = shortened(text, 40)
    if len(text) > MAX_LENGTH:  # the regular expression below takes quadratic time
        raise ValueError(f"{shown!r} is too long for a number; give fewer digits")
    plain = re.sub(r"(?<=[0-9])[ \u00a0\u202f'’](?=[0-9]{3}(?![0-9]))", "", text)
    if "," in plain:
        plain = _without_comma(plain, shown)
    if not _NUMBER.fullmatch(plain):
        if plain.lower().lstrip("+-") in ("nan", "n/a", "#n/a", "na", "inf", "infinity"):
            remedy = "leave the cell empty if there is none yet, or write “failed”" if may_fail else "give a number"
            raise ValueError(f"{shown!r} is not a {'result' if may_fail else 'number'}; {remedy}")
        starts_like_a_number = re.match(r"[+-]?[0-9]", plain)
        missing = "give a number, or write “failed”" if may_fail else "give a number"
        hint = "write the number without its unit" if starts_like_a_number else missing
        raise ValueError(f"{shown!r} is not a number; {hint}")
    value = float(plain)
    if not math.isfinite(value):
        raise ValueError(f"{shown!r} is too large; give it in other units")
    return value, None if plain == text else f"{shown} was read as {plain}"


def _without_unit(text: str, unit: str) -> str:
    """Return a text without its unit, if that stands behind a digit."""
    number = text.removesuffix(unit).rstrip() if unit else text
    return number if re.search(r"[0-9.]$", number) and not unit[:1].isdigit() else text


def _without_comma(plain: str, shown: str) -> str:
    if re.fullmatch(r"[+-]?[0-9]{1,3}(\.[0-9]{3})+,[0-9]+", plain):  # 1.234,5
        return plain.replace(".", "").replace(",", ".")
    if re.fullmatch(r"[+-]?[0-9]{1,3}(,[0-9]{3})+\.[0-9]*", plain):  # 1,234.5
        return plain.replace(",", "")
    if re.fullmatch(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+", plain):  # 1,234
        raise ValueError(
            f"{shown!r} can mean {plain.replace(',', '.', 1)} or {plain.replace(',', '')}; write it without a comma"
        )
    if plain.count(",") == 1 and "." not in plain:  # 3,7
        return plain.replace(",", ".")
    raise ValueError(f"{shown!r} is not a number; write it with a decimal point and without commas")


def parse_column(pasted: str, numbers: Sequence[int], unit: str = "") -> dict[int, str]:
    """Split a column copied from a spreadsheet into cells, by the number of their trial.

    Each line has one cell, in the order of `numbers`; or two cells, the number of the trial and its result. If there
    is one line too many and the first one is not a result, it is taken for the title of the column.
    """
    lines = _lines(pasted)
    rows = [line.split("\t") for line in lines]
    if any(len(row) > 2 for row in rows):
        raise ValueError(f"There are {max(map(len, rows))} columns; copy only the column with the results")
    if any(len(row) == 2 for row in rows):
        return {number: row[1] if len(row) == 2 else "" for number, row in _by_trial_number(rows, numbers).items()}
    if len(lines) == len(numbers) + 1 and _is_title(lines[0], unit):
        lines = lines[1:]
    if len(lines) > len(numbers):
        raise ValueError(f"There are {len(lines)} lines for {len(numbers)} trials; copy one result for each row")
    return dict(zip(numbers, lines, strict=False))


def parse_table(
    pasted: str, numbers: Sequence[int], outputs: Sequence[str], units: Sequence[str] = ()
) -> dict[tuple[int, int], str]:
    """Split columns copied from a spreadsheet into cells, by the number of their trial and the index of their output.

    There is a column for each output, in their order, and perhaps one with the numbers of the trials before them. Or
    the first line has the names of the columns: those of outputs, and "trial". Lines without the number of a trial are
    in the order of `numbers`.
    """
    rows = [line.split("\t") for line in _lines(pasted)]
    width = max(map(len, rows), default=0)
    rows = [row + [""] * (width - len(row)) for row in rows]
    columns = _titles(rows[0], outputs) if rows else None
    if columns is not None:
        rows = rows[1:]
    elif width in (len(outputs), len(outputs) + 1):
        columns = [*([TRIAL] if width > len(outputs) else []), *range(len(outputs))]
        behind = {i: unit for i, unit in enumerate(units)}
        if rows and all(_is_title(cell, behind.get(i, "")) for i, cell in zip(columns, rows[0], strict=True)):
            rows = rows[1:]
    else:
        names = ", ".join(shortened(output, 40) for output in outputs)
        raise ValueError(
            f"The columns are {width}, the outputs {len(outputs)}; copy a column for each of {names}, in this order, "
            "or write the names of the columns in the first line"
        )
    if TRIAL in columns:
        at = columns.index(TRIAL)
        moved = [[row[at], *row[:at], *row[at + 1 :]] for row in rows if any(cell.strip() for cell in row)]
        placed = _by_trial_number(moved, numbers)
        columns = columns[:at] + columns[at + 1 :]
        lines = {number: row[1:] for number, row in placed.items()}
    elif len(rows) > len(numbers):
        raise ValueError(f"There are {len(rows)} lines for {len(numbers)} trials; copy one line for each row")
    else:
        lines = dict(zip(numbers, rows, strict=False))
    return {(n, i): text for n, row in lines.items() for i, text in zip(columns, row, strict=True) if text.strip()}


def _titles(row: Sequence[str], outputs: Sequence[str]) -> list[int] | None:
    """Return the index of the output of each column, TRIAL for their numbers; None if the row has no name of one."""
    indices = {"trial": TRIAL, "#": TRIAL, **{name.strip().casefold(): i for i, name in enumerate(outputs)}}
    names = [cell.strip().casefold() for cell in row]
    if not any(indices.get(name, TRIAL) != TRIAL for name in names):
        return None
    for cell, name in zip(row, names, strict=True):
        if name not in indices or names.count(name) > 1:
            twice = "is there twice" if name in indices else "is not an output"
            others = ", ".join(shortened(output, 40) for output in outputs)
            raise ValueError(f"The column {shortened(cell, 40)!r} {twice}; name the columns trial, {others}")
    return [indices[name] for name in names]


def _lines(pasted: str) -> list[str]:
    lines = pasted.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _by_trial_number(rows: list[list[str]], numbers: Sequence[int]) -> dict[int, list[str]]:
    """Return rows that begin with the number of a trial, by this number."""
    by_number: dict[int, list[str]] = {}
    for i, row in enumerate(rows):
        number = row[0].strip().lstrip("#")
        if not re.fullmatch(r"[0-9]{1,9}", number):
            if i == 0 and _is_title(row[0]):
                continue
            raise ValueError(
                f"Line {i + 1} begins with {shortened(row[0], 40)!r}; with two columns, the first must be the trial"
            )
        if int(number) not in numbers:
            raise ValueError(f"Line {i + 1} is about trial {int(number)}, which is not waiting for a result here")
        if int(number) in by_number:
            raise ValueError(f"Trial {int(number)} is in two lines; give each trial once")
        by_number[int(number)] = row
    return by_number


def _is_title(line: str, unit: str = "") -> bool:
    try:
        return parse_cell(line, unit).empty and bool(line.strip())
    except ValueError:
        return True
