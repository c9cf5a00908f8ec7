"""The sections of a report, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

from gpmi._support import checks
from gpmi.gp.linalg import one_blas_thread
from gpmi.views.html.beliefs import calibration
from gpmi.views.html.course import convergence
from gpmi.views.html.found import advice, found
from gpmi.views.html.importance import importance
from gpmi.views.html.maps import contours
from gpmi.views.html.markup import Markup, tag
from gpmi.views.html.parallel import parallel
from gpmi.views.html.setbacks import about, failures
from gpmi.views.html.slices import slices
from gpmi.views.html.subject import Subject
from gpmi.views.html.tables import trials


@dataclass(frozen=True)
class Section:
    """A part of a report: `html` is what stands below the heading `title`. All texts of the user are escaped."""

    id: str
    title: str
    html: str


Maker: TypeAlias = Callable[[Subject], Markup | None]  # None: there is nothing to say, and no section

_MAKERS: dict[str, tuple[str, Maker]] = {
    "found": ("What was found", found),
    "advice": ("What to do next", advice),
    "convergence": ("How it went", convergence),
    "importance": ("Which parameters matter", importance),
    "slices": ("One parameter at a time", slices),
    "contours": ("Two parameters at a time", contours),
    "parallel": ("All parameters together", parallel),
    "calibration": ("Can the model be believed?", calibration),
    "failures": ("Failures and constraints", failures),
    "trials": ("All trials", trials),
    "about": ("About this run", about),
}
IDS = tuple(_MAKERS)  # the sections that there may be, in order


@one_blas_thread
def sections(source: Any, only: Collection[str] | None = None) -> list[Section]:
    """The sections about a Result, an Optimizer or a Study; with `only` those with these ids.

    A section that has nothing to say is left out. One whose computation fails says so, and the others are made.
    """
    unknown = [name for name in only or () if name not in IDS]
    if unknown:
        raise ValueError(f"only has {checks.shown(unknown)}; the sections are {', '.join(IDS)}")
    subject, made = Subject.of(source), []
    for name, (title, make) in _MAKERS.items():
        if only is not None and name not in only:
            continue
        try:
            html = make(subject)
        except Exception as error:  # what was found must come out, whatever a model says
            html = tag(
                "p", f"This section could not be made: {type(error).__name__}: {error}", class_="advice distrust"
            )
        if html is not None:
            made.append(Section(name, title, str(html)))
    return made
