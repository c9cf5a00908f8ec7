"""The page of a study: a table to enter results, a form to ask for suggestions, the summary, front and pictures."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from starlette.requests import Request
from starlette.responses import Response

from gpmi.serve.bench_entry import REMEMBERED, can_be_moved, entry_fold, remembered_name, used_control, who_field
from gpmi.serve.best_so_far import best_so_far
from gpmi.serve.front_page import ChoiceInput, choice_card
from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.output_fields import Cell, OutputField
from gpmi.serve.page_layout import Refusal, form, hidden, labelled, notices, select
from gpmi.serve.parameter_fields import ParameterField
from gpmi.serve.session import MAX_BATCH, Session, StudySnapshot
from gpmi.serve.summary import pictures, summary_card
from gpmi.serve.trial_table import recent_results
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, joined, scrollable, tag

MAX_ROWS = 200  # trials waiting for a result that one page shows; our choice
MAX_CELLS = 2400  # fields of these trials; with those that lack outputs below MAX_FIELDS of a form; our choice
BESIDE = 3  # fields of a row besides its outputs and parameters: a note, files, and a reason
SHOWN = 2  # trials that a narrow page shows at first; lab.css has the same number; our choice
MAX_COLUMNS = 9  # of a table that does not scroll; our choice
LETTER, PADDING = 9.0, 13.0  # pixels of a letter and between columns; measured once in Chromium
BESIDE_KNOWN = 800.0  # pixels that a table has beside "What is known" on a page of 1280; a wider one goes above it
COUNT = "gpmi_n"  # the cookie with the number of suggestions that were asked for last
FAILED = "It failed because of these settings"
ACCIDENT = "A mishap, such as a broken beaker, tells nothing about the settings: withdraw it, or let it wait."
MAX_NAMED = 20  # running trials that are listed by number; our choice


@dataclass(frozen=True)
class InvalidInput:
    """Input that could not be saved. It is shown again where it was typed, with what is wrong."""

    cells: Mapping[Cell, str] = field(default_factory=dict)  # by the number of the trial and the index of the output
    problems: Mapping[Cell, str] = field(default_factory=dict)
    questioned: Mapping[Cell, str] = field(default_factory=dict)  # saved if they come again, unchanged
    pasted: str = ""
    unused: str = ""  # pasted and left out, because it did not fit
    paste_problem: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)
    ask_problem: str = ""
    added: Mapping[str, str] = field(default_factory=dict)  # that was not suggested
    added_problem: str = ""
    added_questioned: Mapping[int, str] = field(default_factory=dict)  # by the index of the output
    choice: ChoiceInput | None = None
    beside: Mapping[str, str] = field(default_factory=dict)  # the fields of `bench_entry`
    beside_problems: Mapping[int, str] = field(default_factory=dict)  # by the number of the trial
    who: str | None = None
    refusal: Refusal | None = None  # what the top of the page says


def study_body(
    request: Request,
    session: Session,
    snapshot: StudySnapshot,
    live: LiveUpdates,
    rejected: InvalidInput,
    choice: ChoiceInput | None = None,
) -> Markup:
    """Return everything below the heading."""
    at, shown = f"/study/{session.slug}", rejected.choice or choice
    entry, best = entry_form(request, session, snapshot, rejected), best_so_far(session, snapshot, live)
    return joined(
        tag(
            "div",
            next_to_try(entry),
            summary_card(session, snapshot, live, best),
            recent_results(session, snapshot, best.marks),
            class_="columns wide" if entry.width > BESIDE_KNOWN else "columns",
        ),
        _fold("front", "The best trade-offs so far", best.card()),
        _fold("recipe", "Find a recipe", choice_card(request, session, snapshot, shown, at), keep=shown is not None),
        pictures(live),
    )


def _fold(name: str, title: str, card: Markup | None, *, keep: bool = False) -> Markup | None:
    """Return a card in a fold, which the script closes where there is little room, unless it has an answer to show."""
    if not card:
        return None
    return tag(
        "details",
        tag("summary", title),
        card,
        id=f"{name}-fold",
        open=True,
        data_keep="yes" if keep else None,
        class_="card fold picture around",
    )


# Results


def next_to_try(entry: EntryForm) -> Markup:
    """Return the table of waiting trials with a cell for each result, and the forms below it."""
    session, rejected = entry.session, entry.rejected
    shown = {trial.number for trial in (*entry.waiting, *entry.incomplete)}
    without_row = [
        f"{problem} You typed: {typed}" if (typed := _typed(rejected, number)) else problem
        for (number, _), problem in rejected.problems.items()
        if number not in shown
    ]
    without_row += [
        f"{problem} You typed: {_typed_beside(rejected, number)}"
        for number, problem in rejected.beside_problems.items()
        if number not in shown
    ]
    return tag(
        "section",
        tag("h2", "Next to try", id="next-title"),
        notices(without_row, "wrong"),
        entry.tables(),
        _ask_form(entry.request, session, rejected, entry.at, first=not entry.waiting),
        tag("div", _running(entry.snapshot), id="running", data_live=True),
        _own_measurement(entry.request, session, rejected, entry.at),
        class_="card next",
        aria_labelledby="next-title",
    )


def _typed(rejected: InvalidInput, number: int) -> str:
    return ", ".join(text for (trial, _), text in rejected.cells.items() if trial == number)


def _typed_beside(rejected: InvalidInput, number: int) -> str:
    mine = (text for name, text in rejected.beside.items() if str(number) in name.split("-") and text.strip())
    return ", ".join([*mine, _typed(rejected, number)])


@dataclass(frozen=True)
class EntryForm(ABC):
    """The form to enter results: a table of trials with a cell for each output, and a box to paste columns into."""

    request: Request
    session: Session
    snapshot: StudySnapshot
    rejected: InvalidInput
    waiting: Sequence[Trial]  # those that are shown
    incomplete: Sequence[Trial]

    class_: ClassVar[str] = "sheet"  # of a table
    further_width: ClassVar[float] = 0.0  # of the columns behind the outputs, in pixels
    further_heads: ClassVar[tuple[Child, ...]] = ()  # of these columns

    @property
    def at(self) -> str:
        """The address of the study."""
        return f"/study/{self.session.slug}"

    @property
    def width(self) -> float:
        """About how wide the table of waiting trials is, in pixels: what cannot be wrapped in its columns."""
        width = 50.0 + self.further_width
        for parameter in (each for each in self.session.fields if each.varies):
            values = parameter.options or tuple(end for end in (parameter.lo, parameter.hi) if end is not None)
            value = max((len(word) for option in values for word in parameter.format(option).split()), default=0)
            width += PADDING + LETTER * max(value, *map(len, parameter.title.split()))
        titles = (output.title.split() for output in self.session.outputs)
        return width + sum(PADDING + max(104.0, LETTER * max(map(len, words))) for words in titles)

    @abstractmethod
    def tables(self) -> Markup:
        """Return the form with its tables."""

    @abstractmethod
    def _beside(self, trial: Trial, fold: Markup) -> list[Markup]:
        """Return the cells behind those of the outputs; `fold` has the fields for what is entered beside results."""

    @abstractmethod
    def _in_cell(self, trial: Trial, fold: Markup) -> Child:
        """Return what stands below the control of an output."""

    @abstractmethod
    def _paste_words(self) -> tuple[str, str, str, str]:
        """Return the title of the box to paste columns into, the label of its control, an example and a hint."""

    @property
    def nothing(self) -> Markup:
        return tag("p", "No experiment is waiting for a result. Ask for suggestions below.", class_="empty")

    def form(self, *tables: Child) -> Markup:
        return form(
            self.request,
            f"{self.at}/results",
            tag("button", "Save results", class_="unseen", tabindex="-1"),  # the button that Enter presses
            *tables,
            tag("div", who_field(self.request, self.rejected.who), class_="who"),
            tag("p", tag("button", "Save results", class_="main"), class_="save"),
            id="results",
            autocomplete="off",
        )

    def waiting_table(self) -> Markup:
        """Return the waiting trials."""
        steps = [tag("p", f"The result is the value at {field.name} {field.options[0]}.", class_="muted")
                 for field in self.session.fields if field.kind == "steps"]  # fmt: skip
        count = len(self.waiting)
        show_all = f"Show all {count} experiments"
        return joined(
            hidden("order", ",".join(str(trial.number) for trial in self.waiting)),
            *steps,
            self._table(self.waiting, "Experiments to do, with a cell for each result"),
            tag("button", show_all, type="button", class_="second narrow", data_all="waiting")
            if count > SHOWN
            else None,
            tag("p", tag("a", "Print these experiments", href=f"{self.at}/sheet"), class_="print"),
        )

    def incomplete_table(self) -> Child:
        """Return the trials that lack outputs, with a cell for each. Those that nobody waits for are folded."""
        missing = self.snapshot.missing
        needed = [trial for trial in self.incomplete if trial.number in missing]
        others = [trial for trial in self.incomplete if trial.number not in missing]
        parts: list[Child] = []
        if needed:
            names = {name for trial in needed for name in missing[trial.number]}
            titles = ", ".join(output.title for output in self.session.outputs if output.name in names)
            heading = tag("h3", f"Still missing: {titles}")
            parts += [heading, self._table(needed, "Experiments that lack a result")]
        if others:
            table = self._table(others, "Experiments that may get more outputs")
            typed = any(number == trial.number for trial in others for number, _ in self.rejected.cells)
            text = f"Add outputs that nobody waits for ({len(others)} experiment{'s' if len(others) > 1 else ''})"
            parts.append(tag("details", tag("summary", text), table, open=typed or None, class_="more"))
        return parts

    def _table(self, trials: Sequence[Trial], caption: str) -> Markup:
        fields = [field for field in self.session.fields if field.varies]
        labels = any(trial.label is not None for trial in trials)
        head: list[Child] = ["Trial", *(["Row"] if labels else []), *(field.title for field in fields)]
        head += [*map(_output_head, self.session.outputs), *self.further_heads]
        top = tag("tr", [tag("th", title, scope="col") for title in head])
        body = [self._row(trial, labels) for trial in trials]
        inner = tag("caption", caption, class_="unseen"), tag("thead", top), tag("tbody", body)
        table = tag("table", *inner, class_=self.class_)
        return table if len(head) <= MAX_COLUMNS else scrollable(caption, table)

    def _row(self, trial: Trial, labels: bool) -> Markup:
        number, rejected = trial.number, self.rejected
        fixed, suggested = set(trial.fixed or ()), self.snapshot.suggested.get(number)
        settings, movable = [], can_be_moved(trial)
        for index, parameter in enumerate(self.session.fields):
            if not parameter.varies:
                continue
            text = parameter.shown(trial.x)
            was = text if suggested is None else parameter.shown(suggested)
            notes = ["fixed"] if parameter.key in fixed else [f"suggested {was}"] if was != text else []
            value = tag("span", text, [tag("small", f" {note}", class_="fixed") for note in notes])
            control = used_control(parameter, trial, index, rejected.beside) if movable else None
            settings.append(tag("td", value, control, data_label=parameter.title, class_="setting"))
        fold = entry_fold(self.session, trial, rejected.beside, rejected.beside_problems.get(number), in_row=True)
        cells = [
            _entry(output, number, rejected, self._in_cell(trial, fold))
            if output.value(trial) is None
            else tag("td", output.format(trial), data_label=output.title, class_="told-value")
            for output in self.session.outputs
        ]
        return tag(
            "tr",
            tag("th", f"#{number}", scope="row", data_label="Trial"),
            tag("td", str(trial.label), data_label="Row") if labels else None,
            *settings,
            *cells,
            *self._beside(trial, fold),
            id=f"row-{number}",
            data_number=str(number),
        )

    def paste_box(self) -> Markup:
        """Return the box to paste columns into."""
        rejected, (title, label, example, hint) = self.rejected, self._paste_words()
        area = tag("textarea", rejected.pasted, name="pasted", id="pasted", rows="5", placeholder=example)
        return tag(
            "details",
            tag("summary", title),
            tag("p", rejected.paste_problem, class_="problem", role="alert") if rejected.paste_problem else None,
            labelled(label, area, hint),
            unused_column(rejected, reason=False),
            open=bool(rejected.paste_problem) or None,
            class_="more",
        )


class ResultForm(EntryForm):
    """The form for one result. All that belongs to a trial stands in its cell."""

    def tables(self) -> Markup:
        paste = self.paste_box() if len(self.waiting) > 1 or self.rejected.paste_problem else None
        table = self.form(self.waiting_table(), paste) if self.waiting else self.nothing
        return tag("div", table, id="waiting", data_live="rows")

    def _beside(self, trial: Trial, fold: Markup) -> list[Markup]:
        return []

    def _in_cell(self, trial: Trial, fold: Markup) -> Child:
        return [fold, _no_result(trial.number, self.rejected)]

    def _paste_words(self) -> tuple[str, str, str, str]:
        hint = (
            "Leave a line empty if there is no result yet. Write “failed” and a reason for a failure. With two "
            "columns, the first is the number of the trial."
        )
        label = f"One result per line, from the first row to the last ({len(self.waiting)} rows)"
        return "Paste a column from a spreadsheet", label, "4.1\n3,8\nfailed: pump stopped", hint


class OutputsForm(EntryForm):
    """The form for outputs that may come one by one. A last column has all that belongs to a trial."""

    class_: ClassVar[str] = "sheet several"
    further_width: ClassVar[float] = 144.0
    further_heads: ClassVar[tuple[Child, ...]] = (tag("span", "Anything else", class_="unseen"),)

    def tables(self) -> Markup:
        """Return one form, so that saving one table does not lose what was typed into the other one."""
        has_box = self.waiting or self.incomplete or self.rejected.paste_problem
        first = self.waiting_table() if self.waiting else self.nothing
        return self.form(
            tag("div", first, id="waiting", data_live="rows"),
            tag("div", self.incomplete_table(), id="incomplete", data_live="rows"),
            self.paste_box() if has_box else None,
        )

    def _beside(self, trial: Trial, fold: Markup) -> list[Markup]:
        number = trial.number
        link = tag("a", "Change it", href=f"{self.at}/trial/{number}", aria_label=f"Change trial {number}")
        last = _no_result(number, self.rejected) if trial.status == "pending" else link
        return [tag("td", fold, last, class_="other")]

    def _in_cell(self, trial: Trial, fold: Markup) -> Child:
        return None

    def _paste_words(self) -> tuple[str, str, str, str]:
        outputs, last = self.session.outputs, self.session.outputs[-1].title
        hint = (
            "The lines are in the order of “Next to try”. Only some outputs, or trials in another order: write the "
            f"names of the columns in the first line, such as “trial” and “{last}”."
        )
        label = f"One experiment per line. The columns: {', '.join(output.title for output in outputs)}"
        return "Paste columns from a spreadsheet", label, f"trial\t{last}\n7\t0.97\n8\t0.95", hint


def entry_form(request: Request, session: Session, snapshot: StudySnapshot, rejected: InvalidInput) -> EntryForm:
    """Return the form to enter the results of a study."""
    kind = OutputsForm if session.goals.named else ResultForm
    most = min(MAX_ROWS, max(1, MAX_CELLS // (len(session.outputs) + len(session.fields) + BESIDE)))
    waiting, incomplete = snapshot.waiting[:most], snapshot.incomplete[::-1][:most]
    return kind(request, session, snapshot, rejected, waiting, incomplete)


def _output_head(output: OutputField) -> Child:
    words = output.short_purpose
    return joined(output.title, tag("small", f" {words}", class_="goal")) if words else output.title


def _entry(output: OutputField, number: int, rejected: InvalidInput, below: Child) -> Markup:
    """Return the cell to type an output into."""
    name, cell = output.control(number), (number, output.index)
    problem, described = rejected.problems.get(cell), f"problem-{number}{output.suffix}"
    control = tag(
        "input",
        type="text",
        id=name,
        name=name,
        value=rejected.cells.get(cell, ""),
        inputmode="decimal",
        enterkeyhint="done",
        aria_label=output.label(number),
        aria_invalid="true" if problem else None,
        aria_describedby=described if problem else None,
        placeholder=output.placeholder,
        data_output=str(output.index),
        class_="result",
    )
    message = tag("p", problem, id=described, class_="problem") if problem else None
    asked = hidden(f"sure-{name}", rejected.questioned[cell]) if cell in rejected.questioned else None
    return tag("td", control, asked, message, below, data_label=output.title, class_="entry")


def _no_result(number: int, rejected: InvalidInput) -> Markup:
    """Return the buttons for a trial that has no result."""
    n, why = str(number), rejected.beside.get(f"why-{number}", "")
    return tag(
        "details",
        tag("summary", "No result?", aria_label=f"No result of trial {number}?"),
        labelled("Reason", tag("input", type="text", name=f"why-{n}", value=why, maxlength="200")),
        tag("p", tag("button", FAILED, name="fail", value=n), " similar settings are avoided from now on"),
        tag("p", tag("button", "Skip it", name="reject", value=n), " it will not be done, and is not suggested again"),
        tag("p", tag("button", "Withdraw", name="forget", value=n), " as if it had never been suggested"),
        tag("p", ACCIDENT),
        open=bool(why) or None,
        class_="more",
    )


def unused_column(rejected: InvalidInput, *, reason: bool = True) -> Markup | None:
    """Return what was pasted and left out, perhaps with the reason; None if there is nothing."""
    if not rejected.unused:
        return None
    return tag(
        "div",
        tag("p", rejected.paste_problem, class_="problem", role="alert") if reason else None,
        tag("p", "This was pasted and not used. Paste it again if you need it.", class_="muted"),
        tag("pre", rejected.unused),
        id="unused",
    )


# Suggestions


def remembered_count(request: Request) -> str:
    """Return how many suggestions the browser asked for last."""
    typed = request.cookies.get(COUNT, "")
    return typed if re.fullmatch("[1-9][0-9]{0,2}", typed) and int(typed) <= MAX_BATCH else "1"


def remember_count(response: Response, count: int) -> None:
    response.set_cookie(COUNT, str(count), max_age=REMEMBERED, httponly=True, samesite="lax")


def _ask_form(request: Request, session: Session, rejected: InvalidInput, at: str, *, first: bool) -> Markup:
    typed = rejected.asked
    count = tag("input", type="number", name="n", value=typed.get("n", remembered_count(request)), min="1",
                max=str(MAX_BATCH), id="n", required=True)  # fmt: skip
    controls = [_control(field, "given", typed) for field in session.fields if field.varies]
    return form(
        request,
        f"{at}/ask",
        tag("p", rejected.ask_problem, class_="problem", role="alert") if rejected.ask_problem else None,
        tag(
            "div",
            labelled("How many?", count, class_="field short"),
            tag("button", "Suggest experiments" if first else "Suggest more", class_="main" if first else "second"),
            class_="together",
        ),
        tag(
            "details",
            tag("summary", "Is anything fixed today?"),
            tag(
                "p",
                "Fill in what you cannot choose, such as today's temperature. Everything else is chosen to suit it.",
                class_="muted",
            ),
            tag("div", controls, class_="grid"),
            open=any(key.startswith("given-") and value for key, value in typed.items()) or None,
            class_="more",
        ),
        id="ask",
        data_busy="Computing …",
    )


def _control(field: ParameterField, prefix: str, typed: Mapping[str, str], wrong: str = "") -> Markup:
    """Return the control for the value of a parameter; `wrong` is the name of a control to correct."""
    name = f"{prefix}-{field.key}"
    value, invalid = typed.get(name, ""), "true" if name == wrong else None
    if field.kind == "choice":
        options = [("", "–"), *((str(option), str(option)) for option in field.options)]
        return labelled(field.title, select(name, options, value, id=name, aria_invalid=invalid))
    hint = None if field.lo is None or field.hi is None else f"{field.format(field.lo)} to {field.format(field.hi)}"
    control = tag("input", type="text", name=name, id=name, value=value, inputmode="text", aria_invalid=invalid)
    return labelled(field.title, control, hint)


def _running(snapshot: StudySnapshot) -> Child:
    running = snapshot.running
    if not running:
        return None
    rest = "" if len(running) <= MAX_NAMED else ", …"
    numbers = ", ".join(f"#{trial.number}" for trial in running[:MAX_NAMED]) + rest
    subject = "experiment is" if len(running) == 1 else "experiments are"
    return tag("p", f"{len(running)} {subject} being run by programs: {numbers}.", class_="muted")


def _own_measurement(request: Request, session: Session, rejected: InvalidInput, at: str) -> Markup:
    typed, wrong = (
        rejected.added,
        rejected.refusal.at if rejected.added_problem and rejected.refusal else "",
    )
    controls = [_control(field, "own", typed, wrong) for field in session.fields if field.varies]
    names = [f"own-result{output.suffix}" for output in session.outputs]
    results: list[Markup] = []
    for output, name in zip(session.outputs, names, strict=True):
        invalid = "true" if name == wrong or output.index in rejected.added_questioned else None
        control = tag("input", type="text", name=name, id=name, value=typed.get(name, ""), aria_invalid=invalid)
        results.append(labelled(output.title, control))
    asked = [hidden(f"sure-{names[i]}", text) for i, text in rejected.added_questioned.items()]
    return tag(
        "details",
        tag("summary", "Add a measurement of your own"),
        tag("p", rejected.added_problem, class_="problem", role="alert") if rejected.added_problem else None,
        form(
            request,
            f"{at}/observe",
            hidden("who", remembered_name(request)),
            asked,
            tag("p", "For an experiment that was not suggested.", class_="muted"),
            tag("div", controls, results, class_="grid"),
            tag("p", tag("button", "Add it", class_="second")),
        ),
        open=bool(rejected.added_problem) or None,
        id="own",
        class_="more",
    )
