"""Failures and constraints: how many trials failed and why, and which constraints were violated."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gpmi._support.text import percent
from gpmi.trials.goal_summary import at_target, broken_limits
from gpmi.views.html.markup import Markup, cell, joined, sentence, simple_table, tag
from gpmi.views.run_view import RunView

MAX_REASONS = 20  # that are listed, the most frequent first; our choice


def failures(run: RunView) -> Markup | None:
    """Return the section; None if nothing failed or was rejected and there is no constraint and no limit."""
    failed = [trial for trial in run.trials if trial.status == "failed"]
    infeasible = [trial for trial in run.told if trial.is_infeasible]
    measured = max((len(trial.constraints) for trial in run.told), default=0)
    rejected = [trial for trial in run.trials if trial.status == "rejected"]
    limits = run.goals.limits
    if not (failed or measured or rejected or (limits and run.told)):
        return None
    parts = []
    if failed or rejected:
        also = f", {len(rejected)} were rejected" if rejected else ""
        parts.append(tag("p", f"{len(failed)} of {len(run.trials)} trials failed{also}."))
    if failed:
        reasons = Counter(trial.why or "no reason given" for trial in failed).most_common()
        rows = [[tag("td", why, class_="words"), cell(count)] for why, count in reasons[:MAX_REASONS]]
        parts.append(simple_table("Why trials failed", ["reason", "times"], rows))
        others = len(reasons) - MAX_REASONS
        parts += [tag("p", f"There are {others} other reasons.")] if others > 0 else []
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
    if limits:
        parts += _limits(run)
    if run.success is not None:
        parts.append(tag("p", sentence(f"{run.centre} is believed to succeed with probability {percent(run.success)}")))
    return joined(*parts)


def _limits(run: RunView) -> list[Markup]:
    """Return how often each limit was broken, and what was measured."""
    told = [trial for trial in at_target(run.trials, run.space) if trial.status == "told"]
    broken = [broken_limits(trial) for trial in told]
    rows = []
    for name, limit in run.goals.limits.items():
        values = [trial.outputs[name] for trial in told if name in trial.outputs]
        times = sum(name in names for names in broken)
        ends = [cell(min(values)), cell(max(values))] if values else [tag("td"), tag("td")]
        rows.append(
            [tag("th", name, scope="row"), tag("td", str(limit)), *ends, cell(times), cell(len(told) - len(values))]
        )
    head = ["output", "limit", "smallest measured", "largest measured", "times broken", "not measured yet"]
    count = sum(map(bool, broken))
    return [tag("p", f"{count} of {len(told)} trials break a limit."), simple_table("Limits", head, rows)]
