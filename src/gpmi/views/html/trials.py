"""All trials in a table that can be sorted, filtered and copied."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from gpmi._support.text import round_to_sd, rounded, shortened
from gpmi.trials import Trial
from gpmi.trials.goal_summary import broken_limits
from gpmi.trials.goals import AtMost, Goals
from gpmi.views.html.markup import Markup, cell, exact, joined, scrollable, shown, tag
from gpmi.views.run_view import RunView

NAME = 40  # characters of the name of an output, at most


def trials(run: RunView) -> Markup:
    """Return the section with all trials."""
    if not run.trials:
        return tag("p", "There is no trial yet.")
    caption = "All trials."
    if not run.has_front:
        caption += (
            f" mu and sd are the mean and the standard deviation that the model predicted for {run.function_name}."
        )
    return trials_table(run, run.trials, "trials-table", caption, marked=() if run.best is None else (run.best.number,))


def trials_table(
    run: RunView,
    some: Sequence[Trial],
    name: str,
    caption: str,
    *,
    marked: Collection[int] = (),
    anchor: str = "",
) -> Markup:
    """Return trials as a table to sort, filter and copy. `marked` are emphasised.

    With an `anchor` all of them are on the front, so columns about that are left out, and the ids of the rows begin
    with it.
    """
    labels = any(trial.label is not None for trial in run.trials)
    measured = max((len(trial.constraints) for trial in run.trials), default=0)
    constraints = ["constraint"] if measured == 1 else [f"constraint {i + 1}" for i in range(measured)]
    outputs = [run.value_name, *constraints] if not run.goals.named else list(run.goals)
    head = ["trial", *(["row"] if labels else []), *run.titles, *outputs]
    if not anchor:
        head += ["status", *(["limit broken"] if run.goals.limits else [])]
        head += ["front"] if run.has_front else ["mu", "sd"]
    rows = [_row(run, trial, labels, measured, brief=bool(anchor)) for trial in some]
    body = [
        tag("tr", cells, id=f"{anchor}{trial.number}" if anchor else None,
            class_="best" if trial.number in marked else trial.status)
        for trial, cells in zip(some, rows, strict=True)
    ]  # fmt: skip
    titles = [*head, "origin", "note"]
    top = [tag("th", tag("button", title, type="button", class_="sort"), scope="col") for title in titles]
    table = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", top)),
        tag("tbody", body),
        id=name,
        class_="trials",
    )
    tools = tag(
        "p",
        tag("label", "Filter ", tag("input", type="search", class_="filter", data_table=name)),
        tag("button", "Copy the table", type="button", class_="copy", data_table=name),
        tag("span", f"{len(some)} of {len(some)}", class_="count", role="status"),
        class_="tools js",
    )
    return joined(tools, scrollable(caption.partition(".")[0], table))


def _row(run: RunView, trial: Trial, labels: bool, measured: int, *, brief: bool) -> list[Markup]:
    row = [tag("th", str(trial.number), scope="row")]
    row += [cell(trial.label)] if labels else []
    row += [cell(value) for value in run.shown_values(trial)]
    if not run.goals.named:
        constraints = [*trial.constraints, *[None] * measured][:measured]
        row += [cell(value) for value in (trial.y, *constraints)]
    else:
        broken = broken_limits(trial)
        row += [cell(trial.outputs.get(name), "broken" if name in broken else None) for name in run.goals]
    if not brief:
        at = f" at step {trial.curve[-1].step}" if trial.curve and trial.status in ("pending", "stopped") else ""
        row.append(tag("td", trial.status + at))
        if run.goals.limits:
            row.append(tag("td", broken_words(trial, run.goals), class_="line"))
        if run.has_front:
            row.append(tag("td", "yes" if trial.number in run.front_numbers else ""))
        else:
            row += [_estimate(value, trial.sd) for value in (trial.mu, trial.sd)]
    words = note(trial) if not run.goals.named else output_note(trial, run.goals)
    return [*row, tag("td", trial.origin), tag("td", words, class_="words")]


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


def broken_words(trial: Trial, goals: Goals) -> str:
    """Return the limits that a trial breaks, in words; one that was not measured yet is not broken."""
    found = ((name, goals.limits[name]) for name in broken_limits(trial))
    sides = ((name, "above" if isinstance(limit, AtMost) else "below", limit.value) for name, limit in found)
    return ", ".join(f"{shortened(name, NAME)} {side} {rounded(value)}" for name, side, value in sides)


def output_note(trial: Trial, goals: Goals) -> str:
    """Return what else is known about a trial of a run with goals, in words, without the limits that it breaks.

    An output that is only watched may be missing.
    """
    notes = []
    if trial.status == "told":
        missing = [name for name, goal in goals.items() if goal is not None and name not in trial.outputs]
        notes += [f"{', '.join(missing)} not measured yet"] if missing else []
    before = {} if trial.outputs_before is None else trial.outputs_before
    changed = [f"{name} {rounded(y)}" for name, y in before.items() if trial.outputs.get(name) != y]
    notes += [f"was {', '.join(changed)}"] if changed else []
    bars = [f"{name} {rounded(math.sqrt(variance))}" for name, variance in trial.output_noise_var.items() if variance]
    notes += [f"error bar of {', '.join(bars)}"] if bars else []
    notes += [f"{name} is the mean of {count}" for name, count in trial.output_repeats.items() if count != 1]
    own = note(replace(trial, unmet=(), constraints=(), y_before=None, noise_var=0.0, repeats=1))
    return "; ".join(one for one in (*notes, own) if one)
