"""One parameter at a time: the model through the recommended point, with its standard deviation and the queries."""

from __future__ import annotations

from itertools import chain

from gpmi.space import Axis
from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import Size, drawn, legend_of
from gpmi.views.pictures.slices import OWN_BEST
from gpmi.views.pictures.slices import slices as slices_of
from gpmi.views.run_view import OutputView, RunView

POINTS = 61  # of a curve; our choice
MAX_SLICES = 12  # the most important parameters are drawn; our choice
SIZE = Size(320.0, 210.0, bottom=40.0)


def slices(run: RunView) -> Markup | None:
    """Return mu and mu +- sd along each parameter through the recommended point; of each output of a run with goals."""
    views = [view for view in run.each_output if view.recommended_row is not None and view.active_axes(POINTS)]
    if not views:
        return None
    parts = [(view, pictures) for view in views if (pictures := slices_of(view, _movable(view)))]
    if not parts:
        return tag("p", "The constraints allow no parameter of the recommended point to change alone.")
    count = len(views[0].active_axes(POINTS))
    lead = f"How {run.subject} changes with one parameter while the others stay at {views[0].centre} (the star). "
    lead += "The curves hold at these other settings; at others they may differ."
    mixed = " and ".join(", ".join(mixture.names) for mixture in run.mixtures)
    lead += f" When one of {mixed} rises, the others of the mixture fall in proportion." if mixed else ""
    lead += f" The {MAX_SLICES} most important parameters of {count} are drawn." if count > MAX_SLICES else ""
    judged = [axis.name for axis in views[0].active_axes(POINTS)[:MAX_SLICES] if views[0].judged_options(axis)]
    lead += f" The options of {' and '.join(judged)} are drawn {OWN_BEST} of the other parameters." if judged else ""
    grid = "figures small" if len(parts) > 1 else "figures"
    figures = [
        (view, tag("div", [drawn(picture, SIZE, legend=False) for picture in pictures], class_=grid))
        for view, pictures in parts
    ]
    return joined(tag("p", lead), legend_of(*chain(*(pictures for _, pictures in parts))), with_headings(figures))


def _movable(run: OutputView) -> list[Axis]:
    """Return the most important parameters that the constraints allow to change."""
    return [axis for axis in run.active_axes(POINTS)[:MAX_SLICES] if run.inside(run.slice_rows(axis)).any()]
