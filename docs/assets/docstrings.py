"""How the site reads docstrings and signatures.

In a section of parameters "name : text" is a description, not a type: the types are those of the signature. A function
of `**options: Unpack[...]` is listed with the signature that `inspect` shows, which has every argument and its default.
"""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from griffe import Extension, Function, Object, Parameter, ParameterKind, Parameters, dynamic_import
from griffe import get_expression as expression

SECTION = re.compile(
    r"^((?:Parameters|Attributes)\n-{3,}\n)(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", flags=re.DOTALL | re.MULTILINE
)
ENTRY = re.compile(r"^(\w[\w, *]*?) : (.*(?:\n[ \t].*)*)$", flags=re.MULTILINE)


class Descriptions(Extension):
    """Rewrites the sections before they are parsed, and the signatures that are not written out."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = SECTION.sub(section, obj.docstring.value)

    def on_function(self, *, func: Function, **kwargs: Any) -> None:
        if any(str(one.annotation).startswith("Unpack[") for one in func.parameters):
            func.parameters = Parameters(*map(parameter(func), signature(func).parameters.values()))


def signature(func: Function) -> inspect.Signature:
    """Import the function and return its signature."""
    return inspect.signature(dynamic_import(func.path))


def parameter(func: Function) -> Any:
    """Return a function that translates a parameter of `inspect`, whose annotation is a text."""

    def translated(one: inspect.Parameter) -> Parameter:
        def parsed(text: str) -> Any:
            return expression(ast.parse(text, mode="eval").body, parent=func.parent)

        return Parameter(
            one.name,
            annotation=None if one.annotation is one.empty else parsed(one.annotation),
            kind=ParameterKind(one.kind.description),
            default=None if one.default is one.empty else repr(one.default),
        )

    return translated


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
