"""The report: its sections in order, and the page that holds them with style and script in one file."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from gpmi._support import checks, folders
from gpmi.gp import one_blas_thread
from gpmi.views.html.calibration import calibration
from gpmi.views.html.contours import contours
from gpmi.views.html.convergence import convergence
from gpmi.views.html.cost import cost
from gpmi.views.html.curves import curves
from gpmi.views.html.failures import failures
from gpmi.views.html.importance import importance
from gpmi.views.html.markup import Markup, tag
from gpmi.views.html.mixture import mixture
from gpmi.views.html.options import options
from gpmi.views.html.overview import about, advice, found
from gpmi.views.html.parallel_coordinates import parallel_coordinates
from gpmi.views.html.slices import slices
from gpmi.views.html.tradeoffs import tradeoffs
from gpmi.views.html.trials import trials
from gpmi.views.reading import view_of
from gpmi.views.run_view import RunView

STYLE = files("gpmi.views.html").joinpath("report.css").read_text(encoding="utf-8")
SCRIPT = files("gpmi.views.html").joinpath("report.js").read_text(encoding="utf-8")


def csp_hash(text: str) -> str:
    """Return the hash by which a content security policy allows an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"


# The content security policy of a report allows its own style and script, by their hashes, and nothing else.
POLICY = f"default-src 'none'; style-src {csp_hash(STYLE)}; script-src {csp_hash(SCRIPT)}; base-uri 'none'"

IDENTITY = "gpmi-study"  # the name of the meta element with the identity of the study


# Sections


@dataclass(frozen=True)
class Section:
    """A part of a report: `html` is the text below the heading `title`. All user text in it is escaped."""

    id: str
    title: str
    html: str


Builder: TypeAlias = Callable[[RunView], Markup | None]  # None: the section is left out

_BUILDERS: dict[str, tuple[str, Builder]] = {
    "found": ("What was found", found),
    "advice": ("What to do next", advice),
    "tradeoffs": ("The best trade-offs", tradeoffs),
    "convergence": ("How it went", convergence),
    "curves": ("The curves", curves),
    "cost": ("What it cost", cost),
    "importance": ("Which parameters matter", importance),
    "options": ("The options", options),
    "mixture": ("The mixture", mixture),
    "slices": ("One parameter at a time", slices),
    "contours": ("Two parameters at a time", contours),
    "parallel": ("All parameters together", parallel_coordinates),
    "calibration": ("Can the model be believed?", calibration),
    "failures": ("Failures and constraints", failures),
    "trials": ("All trials", trials),
    "about": ("About this run", about),
}
IDS = tuple(_BUILDERS)  # the ids of all sections, in order


@one_blas_thread
def sections(
    source: Any, only: Collection[str] | None = None, on_section: Callable[[str], None] = lambda _: None
) -> list[Section]:
    """Return the sections about a Result, an Optimizer or a Study; with `only`, those with these ids.

    `on_section` is called with the title of each before it is built.

    A section that has nothing to show is left out. A section that fails says so, and the others are still built.
    """
    unknown = [name for name in only or () if name not in IDS]
    if unknown:
        raise ValueError(f"only has {checks.shown(unknown)}; the sections are {', '.join(IDS)}")
    run, built = view_of(source), []
    for name, (title, build) in _BUILDERS.items():
        if only is not None and name not in only:
            continue
        on_section(title)
        try:
            html = build(run)
        except Exception as error:  # the results must be shown even if the model fails
            text = f"This section could not be built: {type(error).__name__}: {error}"
            html = tag("p", text, class_="advice distrust")
        if html is not None:
            built.append(Section(name, title, str(html)))
    return built


# The page


def page(source: Any, title: str | None = None, on_section: Callable[[str], None] = lambda _: None) -> str:
    """Return a complete HTML page about a Result, an Optimizer or a Study. It loads nothing."""
    run = view_of(source)
    built = sections(run, on_section=on_section)
    heading = title if title is not None else f"Report of {run.name}" if run.name else "Report of a run"
    links = [tag("li", tag("a", section.title, href=f"#{section.id}")) for section in built]
    parts = [
        tag("section", tag("h2", section.title, id=f"{section.id}-title"), Markup(section.html), id=section.id,
            aria_labelledby=f"{section.id}-title")
        for section in built
    ]  # fmt: skip
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        *([tag("meta", name=IDENTITY, content=run.identity)] if run.identity else []),
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


def study_in(path: Path) -> str | None:
    """Return the identity of the study that a file reports on; None if it is no report of a study."""
    with path.open(encoding="utf-8", errors="replace") as file:
        head = file.read(10_000)
    identity = re.search(rf'<meta name="{IDENTITY}" content="([^"]*)"', head)
    return None if identity is None else identity[1]


def write(
    source: Any,
    path: str | os.PathLike[str],
    title: str | None = None,
    on_section: Callable[[str], None] = lambda _: None,
) -> Path:
    """Write the page to a file and return its path. A path that cannot be written is a ValueError before any work."""
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"path is {str(target)!r}, which is a folder; give a file, such as report.html")
    folders.writable_folder("path", target, target.parent)
    target.write_text(page(source, title, on_section), encoding="utf-8")
    return target
