"""Sections that have a part for each output of a run with goals."""

from __future__ import annotations

from collections.abc import Sequence

from gpmi._support.text import shortened
from gpmi.views.front_view import purpose
from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.run_view import OutputView

NAME = 60  # characters of the name of an output in a heading, at most


def with_headings(parts: Sequence[tuple[OutputView, Markup]]) -> Markup:
    """Join the parts of a section, one for each output, each under the name of its output if there are several."""
    if len(parts) == 1 and len(parts[0][0].goals) == 1:
        return parts[0][1]
    return joined(*(part for view, html in parts for part in (heading(view), html)))


def heading(view: OutputView) -> Markup:
    """Return the name of an output and what it is for, as a heading."""
    words = tag("span", f" {purpose(view.goals[view.key])}", class_="muted")
    return tag("h3", shortened(view.key, NAME), words)
