"""Can the model be believed? What it predicted before each value, and the value that came."""

from __future__ import annotations

from gpmi.analysis.ledger import VERDICTS
from gpmi.views.html.markup import Markup, joined, sentence, simple_table, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import SMALL, drawn
from gpmi.views.pictures.calibration import quantiles, residuals
from gpmi.views.run_view import OutputView, RunView


def calibration(run: RunView) -> Markup | None:
    """Return the verdict, the residuals in their order, and how many fell into their intervals; for each output."""
    parts = [(view, html) for view in run.each_output if (html := _verdict(view)) is not None]
    return with_headings(parts) if parts else None


def _verdict(run: OutputView) -> Markup | None:
    if run.ledger is None:
        return None
    judged = run.ledger.calibration
    verdict = tag("p", tag("strong", sentence(judged.verdict), " "), VERDICTS[judged.verdict])
    reason = tag("p", f"Evidence: {judged.reason}.", class_="muted")
    if not len(judged.ahead):
        return joined(verdict, reason)
    rows = [
        [tag("th", f"{level:.0%}", scope="row"), tag("td", f"{share:.0%}")] for level, share in judged.coverage.items()
    ]
    table = simple_table(
        "How many values fell into the intervals", ["of the values should be inside", "were inside"], rows
    )
    figures = [drawn(residuals(run.ledger), SMALL), drawn(quantiles(run.ledger), SMALL)]
    return joined(verdict, reason, tag("div", figures, class_="figures"), table)
