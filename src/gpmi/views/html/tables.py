"""Tables: cells that can be copied, and the trials to sort and to filter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from gpmi._support.text import coordinate, round_to_sd, rounded
from gpmi.trials import Trial
from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.html.subject import Subject


def exact(value: Any) -> str:
    """A value as it is copied: every digit of a number, a word without quotes."""
    if value is None:
        return ""
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        value = value.item()
    return repr(value) if isinstance(value, float) else str(value)


def shown(value: Any) -> str:
    """A value as it is looked at: a number in a few digits, a word without quotes; nothing for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else coordinate(value)


def cell(value: Any) -> Markup:
    """A cell of a table. A number that is rounded keeps all its digits for sorting and copying."""
    text, full = shown(value), exact(value)
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if numeric and full != text:
        return tag("td", text, data_v=full)
    return tag("td", text, class_="number" if numeric else None)


def copy_button(label: str, text: str) -> Markup:
    """A button that copies a text."""
    return tag("button", label, type="button", class_="copy", data_copy=text)


def simple_table(caption: str, head: Sequence[str], rows: Iterable[Iterable[Any]]) -> Markup:
    """A table with a caption for those who do not see it, that scrolls sideways where it is too wide."""
    top = tag("tr", [tag("th", title, scope="col") for title in head])
    body = [tag("tr", row) for row in rows]
    return scrolled(
        caption, tag("table", tag("caption", caption, class_="unseen"), tag("thead", top), tag("tbody", body))
    )


def scrolled(label: str, table: Markup) -> Markup:
    """What may be wider than a phone; it can be scrolled with the keyboard, too."""
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)


# The trials


def trials(subject: Subject) -> Markup:
    """All trials, to sort by any column and to filter by any text."""
    if not subject.trials:
        return tag("p", "There is no trial yet.")
    labels = any(trial.label is not None for trial in subject.trials)
    measured = max((len(trial.constraints) for trial in subject.trials), default=0)
    limits = ["constraint"] if measured == 1 else [f"constraint {i + 1}" for i in range(measured)]
    head = [
        "trial",
        *(["row"] if labels else []),
        *subject.titles,
        "y",
        *limits,
        "status",
        "mu",
        "sd",
        "origin",
        "note",
    ]
    rows = [_row(subject, trial, labels, measured) for trial in subject.trials]
    best = subject.best
    body = [
        tag("tr", cells, class_="best" if best is not None and trial.number == best.number else trial.status)
        for trial, cells in zip(subject.trials, rows, strict=True)
    ]
    top = [tag("th", tag("button", title, type="button", class_="sort"), scope="col") for title in head]
    table = tag(
        "table",
        tag("caption", "All trials. mu and sd are what the model predicted for f at the point.", class_="unseen"),
        tag("thead", tag("tr", top)),
        tag("tbody", body),
        id="trials-table",
        class_="trials",
    )
    tools = tag(
        "p",
        tag("label", "Filter ", tag("input", type="search", class_="filter", data_table="trials-table")),
        tag("button", "Copy the table", type="button", class_="copy", data_table="trials-table"),
        tag("span", f"{len(subject.trials)} of {len(subject.trials)}", class_="count", role="status"),
        class_="tools js",
    )
    return joined(tools, scrolled("All trials", table))


def _row(subject: Subject, trial: Trial, labels: bool, measured: int) -> list[Markup]:
    limits = [*trial.constraints, *[None] * measured][:measured]
    row = [tag("th", str(trial.number), scope="row")]
    row += [cell(trial.label)] if labels else []
    row += [cell(value) for value in (*subject.values(trial.x), trial.y, *limits)]
    said = [_estimate(value, trial.sd) for value in (trial.mu, trial.sd)]
    return [*row, tag("td", trial.status), *said, tag("td", trial.origin), tag("td", note(trial), class_="words")]


def _estimate(value: float | None, sd: float | None) -> Markup:
    """A cell with as many digits as sd leaves; all of them for sorting and copying."""
    return cell(value) if value is None or sd is None else tag("td", round_to_sd(value, sd), data_v=exact(value))


def note(trial: Trial, *, bars: bool = True) -> str:
    """What else is known of a trial, in words; without `bars` not its error bar."""
    notes = [trial.why or ""]
    if trial.y_before is not None:
        notes.append(f"was {rounded(trial.y_before)}")
    if trial.status == "told" and not trial.feasible:
        notes.append("breaks a constraint")
    if trial.noise_var and bars:
        notes.append(f"error bar {rounded(math.sqrt(trial.noise_var))}")
    if trial.repeats != 1:
        notes.append(f"mean of {trial.repeats}")
    if trial.fixed:
        named = ((key if isinstance(key, str) else f"x{key}", shown(value)) for key, value in trial.fixed.items())
        notes.append("given: " + ", ".join(f"{name} = {value}" for name, value in named))
    return "; ".join(one for one in notes if one)
