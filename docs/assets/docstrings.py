"""How the site reads docstrings: "name : what it is" of a section of parameters is a description, not a type.

The types are those of the signature, so the docstrings of this project do not say them again.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

SECTION = re.compile(
    r"^((?:Parameters|Attributes)\n-{3,}\n)(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", flags=re.DOTALL | re.MULTILINE
)
ENTRY = re.compile(r"^(\w[\w, *]*?) : (.*(?:\n[ \t].*)*)$", flags=re.MULTILINE)


class Descriptions(Extension):
    """Rewrites the sections before they are parsed."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = SECTION.sub(section, obj.docstring.value)


def section(found: re.Match[str]) -> str:
    """The entries; what is said beside them goes before the section."""
    entries = [entry(one) for one in ENTRY.finditer(found[2])]
    if not entries:
        return found[0]
    beside = ENTRY.sub("", found[2]).strip()
    return (f"{beside}\n\n" if beside else "") + found[1] + "\n".join(entries) + "\n\n"


def entry(found: re.Match[str]) -> str:
    """One description, for each of the names that it is given for."""
    return "\n".join(f"{name}\n    {found[2]}" for name in found[1].split(", "))
