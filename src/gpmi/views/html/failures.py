"""Failures and constraints: how many trials failed and why, and which constraints were violated."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gpmi.views.html.markup import Markup, cell, joined, simple_table, tag
from gpmi.views.run_view import RunView

MAX_REASONS = 20  # that are listed, the most frequent first; our choice


def failures(run: RunView) -> Markup | None:
    """Return the section; None if nothing failed or was rejected and no constraint was measured."""
    failed = [trial for trial in run.trials if trial.status == "failed"]
    infeasible = [trial for trial in run.told if not trial.feasible]
    measured = max((len(trial.constraints) for trial in run.told), default=0)
    rejected = [trial for trial in run.trials if trial.status == "rejected"]
    if not (failed or measured or rejected):
        return None
    parts = []
    if failed or rejected:
        also = f", {len(rejected)} were rejected" if rejected else ""
        parts.append(tag("p", f"{len(failed)} of {len(run.trials)} trials failed{also}."))
    if failed:
        reasons = Counter(trial.why or "no reason given" for trial in failed).most_common()
        rows = [[tag("td", why, class_="words"), cell(count)] for why, count in reasons[:MAX_REASONS]]
        parts.append(simple_table("Why trials failed", ["reason", "times"], rows))
        more = len(reasons) - MAX_REASONS
        parts += [tag("p", f"There are {more} other reasons.")] if more > 0 else []
    if measured:
        text = f"{len(infeasible)} of {len(run.told)} values violate a constraint (it was measured above 0)."
        parts.append(tag("p", text))
        rows = []
        for k in range(measured):
            values = np.array([trial.constraints[k] for trial in run.told if len(trial.constraints) > k])
            name = tag("th", f"constraint {k + 1}" if measured > 1 else "constraint", scope="row")
            rows.append(
                [name, *(cell(v) for v in (float(values.min()), float(values.max()))), cell(int((values > 0.0).sum()))]
            )
        parts.append(simple_table("Measured constraints", ["", "smallest", "largest", "times violated"], rows))
    chance = None if run.model is None else run.model.chance
    if chance is not None and run.recommended_row is not None:
        probability = float(chance(run.recommended_row[None])[0])
        parts.append(tag("p", f"The recommended point is believed to succeed with probability {probability:.0%}."))
    return joined(*parts)
