"""Failures, constraints and what else happened that nobody asked for."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.html.subject import Subject
from gpmi.views.html.tables import cell, simple_table

REASONS = 20  # of failures that are listed, the most frequent first; our choice


def failures(subject: Subject) -> Markup | None:
    """How many trials failed and why, which constraints were broken, and how likely the recommended point works."""
    failed = [trial for trial in subject.trials if trial.status == "failed"]
    broken = [trial for trial in subject.told if not trial.feasible]
    measured = max((len(trial.constraints) for trial in subject.told), default=0)
    rejected = [trial for trial in subject.trials if trial.status == "rejected"]
    if not (failed or measured or rejected):
        return None
    said = []
    if failed or rejected:
        also = f", {len(rejected)} points were rejected" if rejected else ""
        said.append(tag("p", f"{len(failed)} of {len(subject.trials)} trials failed{also}."))
    if failed:
        reasons = Counter(trial.why or "no reason given" for trial in failed).most_common()
        rows = [[tag("td", why, class_="words"), cell(count)] for why, count in reasons[:REASONS]]
        said.append(simple_table("Why trials failed", ["reason", "times"], rows))
        said += [tag("p", f"And {len(reasons) - REASONS} other reasons.")] if len(reasons) > REASONS else []
    if measured:
        said.append(
            tag("p", f"{len(broken)} of {len(subject.told)} values came with a constraint that was broken (above 0).")
        )
        rows = []
        for k in range(measured):
            values = np.array([trial.constraints[k] for trial in subject.told if len(trial.constraints) > k])
            name = tag("th", f"constraint {k + 1}" if measured > 1 else "constraint", scope="row")
            rows.append(
                [name, *(cell(v) for v in (float(values.min()), float(values.max()))), cell(int((values > 0.0).sum()))]
            )
        said.append(simple_table("Measured constraints", ["", "smallest", "largest", "times broken"], rows))
    chance = None if subject.model is None else subject.model.chance
    if chance is not None and subject.recommended_row is not None:
        probability = float(chance(subject.recommended_row[None])[0])
        said.append(tag("p", f"The recommended point is believed to work with probability {probability:.0%}."))
    return joined(*said)


def about(subject: Subject) -> Markup:
    """The space, the seed, and the events of the run."""
    rows = [
        ["goal", "the largest value" if subject.goal == "max" else "the smallest value"],
        ["seed", str(subject.seed)],
        ["space", repr(subject.space)],
    ]
    if subject.model is not None:
        rows.append(["model", repr(subject.model)])
    cells = [[tag("th", name, scope="row"), tag("td", words, class_="words lines")] for name, words in rows]
    made = [simple_table("The run", ["", ""], cells)]
    if subject.events:
        counted = Counter((event.kind, event.message) for event in subject.events)
        lines = [
            [tag("td", kind), tag("td", message, class_="words"), cell(times)]
            for (kind, message), times in counted.items()
        ]
        made.append(tag("h3", "What the library did without being asked"))
        made.append(simple_table("Events", ["kind", "what", "times"], lines))
    return joined(*made)
