"""HTML and SVG as values, with all user text escaped, and tables whose cells can be copied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, TypeAlias

from gpmi._support.text import coordinate


class Markup(str):
    """Text that is already HTML. Any other text comes from the user and is escaped."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | Iterable[Any] | None"

VOID = frozenset({"input", "meta", "br", "hr"})  # HTML elements without an end tag
_UNPRINTABLE = {code: None for code in (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F)}  # HTML forbids them


# Elements


def tag(name: str, /, *children: Child, **attributes: Any) -> Markup:
    """Return an element. `class_` stands for class, and an underscore for a hyphen.

    An attribute that is None or False is left out; True is an attribute without a value. Children that are not Markup
    are escaped; a list is joined.
    """
    parts = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        parts.append(f" {attribute}" if value is True else f' {attribute}="{escaped(short_number(value))}"')
    head = f"<{name}{''.join(parts)}>"
    return Markup(head if name in VOID else f"{head}{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """Join children, escaping those that are not Markup."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str | int | float):
            parts.append(escaped(short_number(child)))
        elif child is not None:
            parts.append(joined(*child))
    return Markup("".join(parts))


def escaped(text: str) -> str:
    """Escape user text and remove the characters that HTML forbids."""
    return escape(text.translate(_UNPRINTABLE).encode("utf-8", "replace").decode())


def short_number(value: Any) -> str:
    """Return a float with at most two decimals, as SVG needs it; any other value as text."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:.6g}"
    return str(value)


def sentence(text: str) -> str:
    """Return a clause as a sentence: its first letter in upper case, and a full stop at its end."""
    return f"{text[:1].upper()}{text[1:]}."


# Tables


def exact(value: Any) -> str:
    """Return a value to copy: all digits of a number, an option without quotes; nothing for None."""
    if value is None:
        return ""
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        value = value.item()
    return repr(value) if isinstance(value, float) else str(value)


def shown(value: Any) -> str:
    """Return a value to read: a number in a few digits, an option without quotes; nothing for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else coordinate(value)


def cell(value: Any, class_: str | None = None) -> Markup:
    """Return a table cell. A rounded number keeps all its digits for sorting and copying."""
    text, full = shown(value), exact(value)
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if numeric and full != text:
        return tag("td", text, data_v=full, class_=class_)
    classes = " ".join(name for name in ("number" if numeric else None, class_) if name)
    return tag("td", text, class_=classes or None)


def copy_button(label: str, text: str) -> Markup:
    """Return a button that copies a text to the clipboard."""
    return tag("button", label, type="button", class_="copy", data_copy=text)


def simple_table(caption: str, head: Sequence[str], rows: Iterable[Iterable[Any]]) -> Markup:
    """Return a table with a caption for screen readers. A wide table scrolls sideways."""
    top = tag("tr", [tag("th", title, scope="col") for title in head])
    body = [tag("tr", row) for row in rows]
    return scrollable(
        caption, tag("table", tag("caption", caption, class_="unseen"), tag("thead", top), tag("tbody", body))
    )


def scrollable(label: str, table: Markup, class_: str = "scroll") -> Markup:
    """Wrap what may be wider than a phone. It can be scrolled with the keyboard, too."""
    return tag("div", table, class_=class_, tabindex="0", role="region", aria_label=label)
