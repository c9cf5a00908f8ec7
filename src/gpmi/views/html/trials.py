"""All trials in a table that can be sorted, filtered and copied."""

from __future__ import annotations

import math

from gpmi._support.text import round_to_sd, rounded
from gpmi.trials import Trial
from gpmi.views.html.markup import Markup, cell, exact, joined, scrollable, shown, tag
from gpmi.views.run_view import RunView


def trials(run: RunView) -> Markup:
    """Return the section with all trials."""
    if not run.trials:
        return tag("p", "There is no trial yet.")
    labels = any(trial.label is not None for trial in run.trials)
    measured = max((len(trial.constraints) for trial in run.trials), default=0)
    constraints = ["constraint"] if measured == 1 else [f"constraint {i + 1}" for i in range(measured)]
    head = [
        "trial",
        *(["row"] if labels else []),
        *run.titles,
        "y",
        *constraints,
        "status",
        "mu",
        "sd",
        "origin",
        "note",
    ]
    rows = [_row(run, trial, labels, measured) for trial in run.trials]
    best = run.best
    body = [
        tag("tr", cells, class_="best" if best is not None and trial.number == best.number else trial.status)
        for trial, cells in zip(run.trials, rows, strict=True)
    ]
    top = [tag("th", tag("button", title, type="button", class_="sort"), scope="col") for title in head]
    caption = "All trials. mu and sd are the mean and the standard deviation that the model predicted for f."
    table = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", top)),
        tag("tbody", body),
        id="trials-table",
        class_="trials",
    )
    tools = tag(
        "p",
        tag("label", "Filter ", tag("input", type="search", class_="filter", data_table="trials-table")),
        tag("button", "Copy the table", type="button", class_="copy", data_table="trials-table"),
        tag("span", f"{len(run.trials)} of {len(run.trials)}", class_="count", role="status"),
        class_="tools js",
    )
    return joined(tools, scrollable("All trials", table))


def _row(run: RunView, trial: Trial, labels: bool, measured: int) -> list[Markup]:
    constraints = [*trial.constraints, *[None] * measured][:measured]
    row = [tag("th", str(trial.number), scope="row")]
    row += [cell(trial.label)] if labels else []
    row += [cell(value) for value in (*run.values(trial.x), trial.y, *constraints)]
    row.append(tag("td", trial.status))
    row += [_estimate(value, trial.sd) for value in (trial.mu, trial.sd)]
    return [*row, tag("td", trial.origin), tag("td", note(trial), class_="words")]


def _estimate(value: float | None, sd: float | None) -> Markup:
    """Return a cell with the digits that sd leaves meaningful; all of them for sorting and copying."""
    return cell(value) if value is None or sd is None else tag("td", round_to_sd(value, sd), data_v=exact(value))


def note(trial: Trial, *, bars: bool = True) -> str:
    """Return what else is known about a trial, in words. Without `bars` its error bar is left out."""
    notes = [trial.why or ""]
    if trial.y_before is not None:
        notes.append(f"was {rounded(trial.y_before)}")
    if trial.status == "told" and not trial.feasible:
        notes.append("violates a constraint")
    if trial.noise_var and bars:
        notes.append(f"error bar {rounded(math.sqrt(trial.noise_var))}")
    if trial.repeats != 1:
        notes.append(f"mean of {trial.repeats}")
    if trial.fixed:
        pairs = ((key if isinstance(key, str) else f"x{key}", shown(value)) for key, value in trial.fixed.items())
        notes.append("fixed: " + ", ".join(f"{name} = {value}" for name, value in pairs))
    return "; ".join(one for one in notes if one)
