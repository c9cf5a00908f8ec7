"""What to do about an output that cannot be read: how to print the value, or a pattern that finds it.

The patterns are made from the lines of the output that look like `name: number` or `name = number`.
"""

from __future__ import annotations

import re

from gpmi._support.text import shortened
from gpmi.cli.command.reading import NUMBER, QUOTED, Reading

_NAMED = re.compile(
    rf"(?P<name>[^\W\d][\w ./()\[\]-]*?)(?P<before>\s*)(?P<sign>[:=])(?P<after>\s*)(?:{NUMBER.pattern})(?P<rest>\S*)",
    re.IGNORECASE,
)
_DIGITS = r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)"  # where a unit follows without a space
FAILED = "If only this evaluation has no value: let the program print nan, or end with an exit code other than 0."
RECORDED = "This output was not recorded: repair it, and run the same command again."


def remedy(reading: Reading, output: bytes, *, steps: bool = False) -> str:
    """Return lines that quote the end of the output and say how a study file or a program is repaired."""
    lines = [line.strip() for line in output.decode("utf-8", errors="replace").splitlines() if line.strip()]
    last = f"Its last line: {shortened(lines[-1], QUOTED)}" if lines else "It printed nothing."
    return "\n".join([last, *_ways(reading, lines, steps), FAILED, RECORDED])


def _ways(reading: Reading, lines: list[str], steps: bool) -> list[str]:
    if reading.source == "json":
        fields = ", ".join(f'"{name}": ...' for name in reading.outputs.values() or (reading.y, *reading.constraints))
        return [f"Let it write the JSON object {{{fields}}} to the file that GPMI_RESULT_FILE names."]
    if steps:
        return [
            'Let it print a line such as "12 0.93" for each step, and the value last; or write in the study file',
            *_table(r"'epoch (?P<step>\d+): (\S+)'"),
        ]
    if len(reading.outputs) > 1:
        example = ", ".join(f'"{name}": ...' for name in reading.outputs.values())
        patterns = [f"{_key(name)} = {_quoted(pattern(lines, title))}" for name, title in reading.outputs.items()]
        first, text = f"the JSON object {{{example}}}", f"{{ {', '.join(patterns)} }}"
    else:
        first, text = "only the number", _quoted(pattern(lines, *reading.outputs.values()))
    change = "Change the pattern in" if reading.source == "match" else "write in"
    start = "" if reading.source == "match" else f"Let it print {first} as its last line; or "
    return [f"{start}{change} the study file, as in", *_table(text)]


def _table(text: str) -> list[str]:
    return ["    [value]", '    from = "match"', f"    pattern = {text}"]


def pattern(lines: list[str], name: str | None = None) -> str:
    """Return a pattern for the last line with a name and a number, or with this name."""
    for line in reversed(lines):
        for match in _NAMED.finditer(line[-1000:]):  # no label is longer; the search may take quadratic time
            label = match["name"].strip()
            if "'" in label or (name is not None and label.split()[-1].casefold() != name.casefold()):
                continue
            spaces = [r"\s*" if match[part] else "" for part in ("before", "after")]
            group = _DIGITS if match["rest"] else r"(\S+)"
            return f"{_escaped(label)}{spaces[0]}{match['sign']}{spaces[1]}{group}"
    return rf"{_escaped(name or 'value')}:\s*(\S+)"


def _escaped(text: str) -> str:
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


def _quoted(text: str) -> str:
    """Return a literal string of TOML."""
    return f"'{text}'" if "'" not in text else f"'''{text}'''"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
