"""HTML and SVG as values: whatever is not markup already is escaped where it enters."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, TypeAlias


class Markup(str):
    """A text that is HTML already. Any other text is one of the user, and is escaped."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | Iterable[Any] | None"

VOID = frozenset({"input", "meta", "br", "hr"})  # elements of HTML without an end tag
_UNPRINTABLE = {code: None for code in (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F)}  # no text may hold them


def tag(name: str, /, *children: Child, **attributes: Any) -> Markup:
    """An element. `class_` stands for class, an underscore for a hyphen; an attribute that is None is left out.

    True is an attribute without a value. Children that are not Markup are escaped; of a list each one.
    """
    parts = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        parts.append(f" {attribute}" if value is True else f' {attribute}="{clean(number(value))}"')
    head = f"<{name}{''.join(parts)}>"
    return Markup(head if name in VOID else f"{head}{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """Children one after the other, escaped where they are not Markup."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str | int | float):
            parts.append(clean(number(child)))
        elif child is not None:
            parts.append(joined(*child))
    return Markup("".join(parts))


def clean(text: str) -> str:
    """A text of the user, escaped, without characters that HTML forbids."""
    return escape(text.translate(_UNPRINTABLE).encode("utf-8", "replace").decode())


def number(value: Any) -> str:
    """A number as short as SVG needs it, two decimals at most; a text as it is."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:.6g}"
    return str(value)
