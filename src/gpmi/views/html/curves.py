"""The curves of a run whose fidelity has steps: each over its steps, and where it was believed to go on to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpmi.space import Space
from gpmi.trials import Trial
from gpmi.trials.value_goal import MAXIMISE
from gpmi.views.fidelity_view import KINDS, curves_of, stop_reasons
from gpmi.views.html.markup import Markup, cell, joined, simple_table, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import Size, drawn
from gpmi.views.pictures.curves import curve_of
from gpmi.views.pictures.curves import curves as picture_of
from gpmi.views.run_view import OutputView, RunView

SIZE = Size(440.0, 260.0)
MAX_REASONS = 20  # that are listed, the most frequent first; our choice


def curves(run: RunView) -> Markup | None:
    """Return the curves, why trials were stopped, and how many; None if the fidelity has no steps."""
    parts = [(view, drawn(picture_of(view), SIZE)) for view in run.focus if curves_of(view)]
    if not parts:
        return None
    counts = Counter(curve.kind for curve in curves_of(parts[0][0]))
    words = ", ".join(f"{counts[kind]} {text}" for kind, text in KINDS.items() if counts[kind])
    lead = f"Each line is a trial over {run.fidelity.name}: {words}."
    reasons = stop_reasons(run)
    rows = [[tag("td", why, class_="words"), cell(count)] for why, count in reasons[:MAX_REASONS]]
    table = simple_table("Why trials were stopped", ["why they were stopped", "times"], rows) if rows else None
    return joined(tag("p", lead), with_headings(parts), table)


def trial_curve(space: Space, trial: Trial, outputs: Sequence[str | None]) -> Markup | None:
    """Return the curve of one trial as a small picture for each output that it reported; None without a curve.

    It needs no model. An output without a name is y.
    """
    drawings = list[Markup]()
    for name in outputs:
        run = OutputView(
            trials=(trial,), ledger=None, goals=MAXIMISE, space=space, seed=0, events=(), key=name or "y", goal="max"
        )
        drawings += [drawn(curve_of(run, curve), Size(320.0, 180.0)) for curve in curves_of(run)]
    return tag("div", drawings, class_="figures") if drawings else None
