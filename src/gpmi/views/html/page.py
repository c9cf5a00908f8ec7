"""The report as one file: sections, style and script in one page, which loads nothing."""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from gpmi._support import checks
from gpmi.views.html.markup import Markup, tag
from gpmi.views.html.sections import sections
from gpmi.views.html.subject import Subject

STYLE = files("gpmi.views.html").joinpath("report.css").read_text(encoding="utf-8")
SCRIPT = files("gpmi.views.html").joinpath("report.js").read_text(encoding="utf-8")


def page(source: Any, title: str | None = None) -> str:
    """A page about a Result, an Optimizer or a Study, complete in itself.

    Its content security policy allows its own style and script, by their hashes, and nothing else.
    """
    subject = Subject.of(source)
    made = sections(subject)
    heading = title if title is not None else f"Report of {subject.name}" if subject.name else "Report of a run"
    policy = f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; base-uri 'none'"
    links = [tag("li", tag("a", one.title, href=f"#{one.id}")) for one in made]
    parts = [
        tag("section", tag("h2", one.title, id=f"{one.id}-title"), Markup(one.html), id=one.id,
            aria_labelledby=f"{one.id}-title")
        for one in made
    ]  # fmt: skip
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", heading),
        tag("style", Markup(STYLE)),
    )
    body = tag(
        "body",
        tag("header", tag("h1", heading), tag("nav", tag("ul", links), aria_label="Sections")),
        tag("main", parts),
        tag("script", Markup(SCRIPT)),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, "\n", body, lang="en") + "\n"


def write(source: Any, path: str | os.PathLike[str], title: str | None = None) -> Path:
    """Write the page to a file and return its path. One that cannot be written is a ValueError before any work."""
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"path is {str(target)!r}, which is a folder; give a file, such as report.html")
    checks.writable_folder("path", target, target.parent)
    target.write_text(page(source, title), encoding="utf-8")
    return target


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"
