"""All trials in a table that can be sorted, filtered and copied."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpmi._support.text import round_to_sd
from gpmi.trials import Trial
from gpmi.trials.goal_summary import broken_limits
from gpmi.views.html.markup import Markup, cell, exact, joined, scrollable, tag
from gpmi.views.run_view import Judgement, RunView
from gpmi.views.trial_notes import broken_words


def trials(run: RunView) -> Markup:
    """Return the section with all trials."""
    if not run.trials:
        return tag("p", "There is no trial yet.")
    marked = () if run.best is None else (run.best.number,)
    return trials_table(run, run.trials, "trials-table", f"All trials.{run.prediction_words}", marked=marked)


def trials_table(
    run: RunView,
    listed: Sequence[Trial],
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
    outputs = [*run.goals.titles(run.called or "y").values(), *constraints]
    head = ["trial", *(["row"] if labels else []), *run.titles, *outputs]
    head += [] if anchor else ["status", *run.limit_titles, *run.judgement_titles]
    rows = [_row(run, trial, labels, measured, brief=bool(anchor)) for trial in listed]
    body = [
        tag("tr", cells, id=f"{anchor}{trial.number}" if anchor else None,
            class_="best" if trial.number in marked else trial.status)
        for trial, cells in zip(listed, rows, strict=True)
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
        tag("span", f"{len(listed)} of {len(listed)}", class_="count", role="status"),
        class_="tools js",
    )
    return joined(tools, scrollable(caption.partition(".")[0], table))


def _row(run: RunView, trial: Trial, labels: bool, measured: int, *, brief: bool) -> list[Markup]:
    row = [tag("th", str(trial.number), scope="row")]
    row += [cell(trial.label)] if labels else []
    row += [cell(value) for value in run.shown_values(trial)]
    broken = broken_limits(trial)
    row += [cell(trial.values.get(name), "broken" if name in broken else None) for name in run.goals]
    row += [cell(value) for value in [*trial.constraints, *[None] * measured][:measured]]
    if not brief:
        at = f" at step {trial.curve[-1].step}" if trial.curve and trial.status in ("pending", "stopped") else ""
        row.append(tag("td", trial.status + at))
        row += [tag("td", broken_words(trial, run.goals), class_="line") for _ in run.limit_titles]
        row += [_judgement(judgement) for judgement in run.judgements(trial)]
    return [*row, tag("td", trial.origin), tag("td", run.note(trial), class_="words")]


def _judgement(judgement: Judgement) -> Markup:
    """Return a cell with a word, or with the digits that sd leaves meaningful; all of them for sorting and copying."""
    value, sd = judgement
    if value is None or isinstance(value, str) or sd is None:
        return cell(value)
    return tag("td", round_to_sd(value, sd), data_v=exact(value))
