"""Pass parameters to a program: as arguments made from templates, and as environment variables.

A template becomes one argument, whatever the values are. No text made here is read by a shell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

from gpmi._support import checks

# One argument, or several that are left out together if one of their parameters is inactive.
Template: TypeAlias = str | tuple[str, ...]

OWN = ("python", "params_file", "result_file")  # placeholders besides the parameters
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def text_of(value: Any) -> str:
    """Format a value for a program: a float with all its digits, true and false as in JSON, strings unchanged."""
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, float) else json.dumps(value)


def placeholders(template: str) -> list[str]:
    """Return the names in a template. Braces that do not match raise a ValueError."""
    names = []
    for match in _PLACEHOLDER.finditer(template):
        if match[0] in ("{", "}"):
            raise ValueError(f"{checks.shown(template)} has a single {match[0]!r}; write {2 * match[0]} for one")
        if match[1] is not None:
            names.append(match[1])
    return names


def filled(template: str, values: Mapping[str, str]) -> str:
    """Replace every {name} in the template by its value, once: braces in a value stay as they are."""

    def part(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else values[match[1]]

    return _PLACEHOLDER.sub(part, template)


def arguments(templates: Sequence[Template], values: Mapping[str, str]) -> list[str]:
    """Return one argument for each template. Those that name an inactive parameter are left out, with their group."""
    result: list[str] = []
    for template in templates:
        group = (template,) if isinstance(template, str) else template
        if all(name in values for text in group for name in placeholders(text)):
            result += [filled(text, values) for text in group]
    return result


def variable(name: str) -> str:
    """Return the environment variable that holds a parameter: GPMI_LEARNING_RATE for "learning rate"."""
    return "GPMI_" + re.sub(r"[^A-Z0-9]", "_", name.upper())


def check_names(names: Iterable[str]) -> None:
    """Refuse parameters whose variables would be equal, or are reserved."""
    reserved, owners = {variable(name) for name in (*OWN, "evaluation")}, dict[str, str]()
    for name in names:
        shown, used = checks.shown(name), variable(name)
        if used in reserved:
            raise ValueError(f"parameter {shown} would use the reserved environment variable {used}; rename it")
        if used in owners:
            raise ValueError(
                f"parameters {owners[used]} and {shown} would share the environment variable {used}; rename one"
            )
        owners[used] = shown


def check_template(template: str, names: Sequence[str]) -> None:
    """Refuse a template with a name that is not a parameter."""
    for name in placeholders(template):
        if name not in (*names, *OWN):
            near = get_close_matches(name, [*names, *OWN], n=1)
            remedy = f"did you mean {{{near[0]}}}?" if near else f"give one of {', '.join((*names, *OWN))}"
            raise ValueError(f"{checks.shown(template)} has {{{name}}}, which is not a parameter; {remedy}")


def check_shell(text: str, names: Sequence[str]) -> None:
    """Refuse a shell command with the placeholder of a parameter: a shell gets values in its environment only."""
    for name in (*names, *OWN):
        if re.search(r"(?<!\$)\{" + re.escape(name) + r"\}", text):
            quoted = f'"${variable(name)}"'
            raise ValueError(f"a shell command has {{{name}}}; values are never pasted into it: write {quoted}")
