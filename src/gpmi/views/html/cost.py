"""What a run with a fidelity cost: the best value at the target against what was spent."""

from __future__ import annotations

from gpmi._support.text import rounded
from gpmi.views.fidelity_view import spending
from gpmi.views.html.markup import Markup, cell, joined, simple_table, tag
from gpmi.views.html.svg import LETTER, Size, drawn
from gpmi.views.pictures.cost import LEVEL, ROW
from gpmi.views.pictures.cost import cost as cost_of
from gpmi.views.run_view import OutputView, RunView

WIDTH, VALUES = 440.0, 190.0  # pixels of a picture, and of the part that has the values


def cost(run: RunView) -> Markup | None:
    """Return the best value against the cost, and how often each level was measured; None without a fidelity."""
    whole, fidelity = spending(run), run.fidelity
    if not len(whole.spent):
        return None
    counts = [int((whole.row == i).sum()) for i in range(len(fidelity.row_names))]
    rows = [
        [tag("th", name, scope="row"), *(tag("td", price) for price in prices), cell(count)]
        for (name, *prices), count in zip(fidelity.prices, counts, strict=True)
    ]
    pictures = [drawn(cost_of(view), _size(view)) for view in run.objective_views if view.told]
    lead = f"{fidelity.cost_name.capitalize()}: {rounded(float(whole.spent[-1]))} for {len(whole.spent)} trials."
    return joined(
        tag("p", lead),
        tag("div", pictures, class_="figures large") if pictures else None,
        simple_table("What was measured", fidelity.head, rows[::-1]),
    )


def _size(run: OutputView) -> Size:
    """Return a size with room for the rows of the levels, and for their names on the right."""
    names = run.fidelity.row_names
    right = 12.0 + LETTER * min(LEVEL, max(map(len, names)))
    size = Size(WIDTH, 0.0, right=right)
    return Size(WIDTH, size.top + VALUES * (1.0 + ROW * len(names)) + size.bottom, right=right)
