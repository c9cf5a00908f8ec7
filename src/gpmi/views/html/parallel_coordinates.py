"""All parameters together: each trial is a line, and the best ones are emphasised."""

from __future__ import annotations

from gpmi.views.html.markup import Markup, joined, scrollable, tag
from gpmi.views.html.svg import Size, chart_of, figure, legend_of
from gpmi.views.pictures.parallel_coordinates import parallel_coordinates as picture_of
from gpmi.views.run_view import RunView

STEP, HEIGHT = 96.0, 300.0  # pixels from column to column


def parallel_coordinates(run: RunView) -> Markup | None:
    """Return a line through the coordinates and the value of each trial. The best trials, or the front, are darker."""
    if not run.told or len(run.axes(2)) < 2:
        return None
    picture = picture_of(run)
    size = Size(STEP * (picture.x.hi - picture.x.lo) + 30.0, HEIGHT, left=10.0, right=20.0, bottom=26.0)
    svg = chart_of(picture, size).svg(picture.title, picture.words)
    return joined(tag("p", picture.caption), legend_of(picture), figure(scrollable(picture.title, svg, "scroll wide")))
