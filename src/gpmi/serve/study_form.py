"""What was typed into the form of a new study, as the table that a study file has (`gpmi.run.study_table`).

The form only turns text into plain values. What they mean, and what cannot be, is checked as in study files. A problem
names the field beside which it is shown.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from gpmi._support.plain_table import Place, Table, TableError
from gpmi._support.text import VALUE, shortened
from gpmi.run.study_table import KINDS as PARAMETERS
from gpmi.run.study_table import ORDERED, ResultsTable, StudyTable, read_results, read_table
from gpmi.serve.cell_parsing import parse_number
from gpmi.serve.refusal_words import in_form_words
from gpmi.trials import Goals

# Our choices.
MAX_PARAMETERS = 100
MAX_OUTPUTS = 20
MAX_NAME = 80  # characters of the name of an output
MAX_BUDGET = 10**6
MAX_RULES = 200  # lines of rules

SEVERAL = "several outputs"
GOALS = (("max", "the largest result"), ("min", "the smallest result"), ("goals", SEVERAL))
AIMS = (("find", "the best point"), ("earn", "every experiment"))
KEYS = {"real": "number", "int": "whole"}  # of kinds of parameters whose key in the form is not the word of the table
KINDS = (
    *((KEYS.get(word, word), kind.kind_in_words) for word, kind in PARAMETERS.items() if word != ORDERED),
    *(("ordered", "one of a list in order"), ("fidelity", "how exactly it is measured")),
)
PURPOSES = (
    *(("max", "make it large"), ("min", "make it small"), ("match", "match a target")),
    *(("least", "must be at least"), ("most", "must be at most"), ("watch", "only watch it")),
)
# What the number of an output means, by its purpose.
NUMBERS = {
    **{"max": "The worst you would still accept", "min": "The worst you would still accept"},
    **{"match": "The target", "least": "The limit", "most": "The limit", "watch": "No number is needed"},
}
# What may be said of any result: the end of the field's name, the key of the table, and the title.
DETAILS = (("unit", "unit"), ("low", "bounds"), ("high", "bounds"), ("error", "error_bar"))


class FormProblem(ValueError):
    """What is wrong with a form, and the field beside which to say so."""

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.field = field


def field_of(error: Exception) -> str:
    """Return the field beside which to show an error; nothing if it is about no field."""
    return error.field if isinstance(error, FormProblem) else ""


@dataclass
class Content:
    """A table of plain values, and the field of the form that each of its places comes from."""

    values: dict[str, Any] = field(default_factory=dict)
    fields: dict[Place, str] = field(default_factory=dict)

    def put(self, place: Place, value: Any, name: str) -> None:
        """Set the value at a place, which comes from a field."""
        inner: dict[Any, Any] = self.values
        for key in place[:-1]:
            inner = inner.setdefault(key, {})
        inner[place[-1]] = value
        self.fields[place] = name

    def append(self, key: str, value: Any, name: str) -> None:
        """Append a value to a list at the top."""
        values = self.values.setdefault(key, [])
        self.fields[key, len(values)] = name
        values.append(value)

    def field_of(self, place: Place) -> str:
        """Return the field of a place, or of the nearest one around it."""
        while place and place not in self.fields:
            place = place[:-1]
        return self.fields.get(place, "")


def typed_study(typed: Mapping[str, str]) -> StudyTable:
    """Return the study that a form describes. A FormProblem says what is wrong, and with which field."""
    content = Content()
    _put_results(typed, content)
    _put_parameters(typed, content)
    _put_rules(typed, content)
    study: StudyTable = _checked(content, read_table)
    return study


def typed_results(typed: Mapping[str, str]) -> ResultsTable:
    """Return what a form says about results and about the run, without parameters."""
    content = Content()
    _put_results(typed, content)
    results: ResultsTable = _checked(content, read_results)
    return results


def space_of(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters that were filled in."""
    return dict(typed_study({"goal": "max", "aim": "find", **typed}).parameters)


def goals_of(typed: Mapping[str, str]) -> Goals | None:
    """Return the goals that were filled in; None if there is one result without a name."""
    return typed_results({"aim": "find", **typed}).goals


def _checked(content: Content, read: Callable[[Table], Any]) -> Any:
    """Return what a table says. An error gets the words and the field of the form."""
    try:
        return read(Table(content.values))
    except TableError as error:
        about = ""
        if len(error.place) > 1 and error.place[0] in ("parameters", "goals"):
            kind = "Parameter" if error.place[0] == "parameters" else "Output"
            about = f"{kind} {shortened(str(error.place[1]), VALUE)!r}: "
        _refuse(f"{about}{in_form_words(error)}", content.field_of(error.place))


def _refuse(text: str, name: str = "") -> NoReturn:
    raise FormProblem(text, name) from None


@contextmanager
def _at(name: str, about: str = "") -> Iterator[None]:
    """Let errors in this block point at a field."""
    try:
        yield
    except FormProblem:
        raise
    except (ValueError, TypeError) as error:
        _refuse(f"{about}{error}", name)


def _number(typed: Mapping[str, str], name: str, about: str = "") -> float | None:
    """Return the number in a field; None if it is empty."""
    text = typed.get(name, "").strip()
    if not text:
        return None
    with _at(name, about):
        return parse_number(text)[0]


def _whole(value: float) -> int | float:
    return int(value) if value == round(value) else value


# Results


def _put_results(typed: Mapping[str, str], content: Content) -> None:
    if typed.get("goal") not in dict(GOALS) or typed.get("aim") not in dict(AIMS):
        _refuse("The goal, or what counts, is missing; choose one of the list", "goal")
    content.put(("aim",), typed["aim"], "aim")
    rows = output_rows(typed)
    if typed["goal"] != "goals":
        if rows:
            chosen = dict(GOALS)[typed["goal"]]
            _refuse(f"Outputs are filled in, but “{chosen}” is chosen; choose “{SEVERAL}”, or clear them", "goal")
        _put_one_result(typed, content)
    else:
        for i in rows[:MAX_OUTPUTS]:
            _put_output(typed, i, content)
        outputs = content.values.get("goals", {}).values()
        if not outputs:
            _refuse("There is no output; give the name of at least one", "output-name-0")
        if not any(output.get("goal") in ("max", "min") or "match" in output for output in outputs):
            _refuse("No output is made large, made small or matched to a target; choose that for one at least",
                    "output-kind-0")  # fmt: skip
    for name, title, most in (("budget", "number of experiments", MAX_BUDGET), ("seed", "seed", 2**53)):
        value = _number(typed, name, f"The {title}: ")
        if value is not None:
            least = 1 if name == "budget" else 0
            if value != round(value) or not least <= value <= most:
                _refuse(
                    f"The {title} is {typed[name].strip()}; give a whole number from {least} to {most:,}, or leave it "
                    "empty", name)  # fmt: skip
            content.put((name,), int(value), name)


def _put_one_result(typed: Mapping[str, str], content: Content) -> None:
    name = _checked_name(typed.get("result-name", "").strip(), "The name of the result", "result-name")
    place: Place = ("goals", name) if name else ()
    if name:
        content.put((*place, "goal"), typed["goal"], "result-name")
        content.fields[place] = "result-name"
    else:
        content.put(("goal",), typed["goal"], "goal")
    _put_details(typed, content, place, lambda key: f"result-{key}", "The result: ")


def _put_details(
    typed: Mapping[str, str], content: Content, place: Place, field_of: Callable[[str], str], about: str
) -> None:
    """Put unit, bounds and error bar of a result, if they were typed."""
    if unit := typed.get(field_of("unit"), "").strip():
        content.put((*place, "unit"), unit, field_of("unit"))
    low, high = (_number(typed, field_of(end), about) for end in ("low", "high"))
    if low is not None or high is not None:
        content.put((*place, "bounds"), [low, high], field_of("low" if low is not None else "high"))
    if (bar := _number(typed, field_of("error"), about)) is not None:
        content.put((*place, "error_bar"), bar, field_of("error"))


def output_rows(typed: Mapping[str, str]) -> list[int]:
    """Return the rows of outputs in which something was typed."""
    pattern = r"output-(?:name|number|within|unit|low|high|error)-(0|[1-9][0-9]?)"
    rows = {int(key[1]) for name, text in typed.items() if (key := re.fullmatch(pattern, name)) and text.strip()}
    return sorted(rows)


def _checked_name(name: str, what: str, field: str) -> str:
    if len(name) > MAX_NAME:
        _refuse(f"{what} has {len(name)} characters; give at most {MAX_NAME}", field)
    return name


def _put_output(typed: Mapping[str, str], i: int, content: Content) -> None:
    field = f"output-name-{i}"
    name = _checked_name(typed.get(field, "").strip(), f"The name of output {i + 1}", field)
    if not name:
        _refuse(f"Output {i + 1} has no name; give it one, or clear its row", field)
    if name in content.values.get("goals", {}):
        _refuse(f"There are two outputs {shortened(name, VALUE)!r}; give each its own name", field)
    about, place = f"Output {shortened(name, VALUE)!r}: ", ("goals", name)
    kind = typed.get(f"output-kind-{i}", "")
    number, within = (_number(typed, f"output-{key}-{i}", about) for key in ("number", "within"))
    numbered, kinded = f"output-number-{i}", f"output-kind-{i}"
    if kind not in dict(PURPOSES):
        _refuse(f"{about}what it is for is missing; choose one of the list", kinded)
    if within is not None and kind != "match":
        _refuse(f"{about}it has a distance, but no target; clear the distance, or choose “match a target”",
                f"output-within-{i}")  # fmt: skip
    if number is None and kind in ("match", "least", "most"):
        _refuse(f"{about}{NUMBERS[kind].lower()} is empty; give a number", numbered)
    if kind == "match" and within is None:
        _refuse(f"{about}the distance from the target that you would accept is empty; give a number",
                f"output-within-{i}")  # fmt: skip
    if kind == "watch" and number is not None:
        _refuse(f"{about}it is only watched, but has a number; clear the number, or say what it is for", numbered)
    content.fields[place] = field
    if kind in ("max", "min", "watch"):
        content.put((*place, "goal"), kind, kinded)
    key = {"max": "at_least", "min": "at_most", "least": "at_least", "most": "at_most", "match": "match"}.get(kind)
    if key is not None and number is not None:
        content.put((*place, key), number, numbered)
    if within is not None:
        content.put((*place, "within"), within, f"output-within-{i}")
    _put_details(typed, content, place, lambda key: f"output-{key}-{i}", about)


# Parameters


def parameter_rows(typed: Mapping[str, str]) -> dict[int, str]:
    """Return the names of the parameters that were filled in, by their rows."""
    rows = sorted(int(key[5:]) for key in typed if re.fullmatch(r"name-(?:0|[1-9][0-9]{0,2})", key))
    named: dict[int, str] = {}
    for i in rows[:MAX_PARAMETERS]:
        name = typed[f"name-{i}"].strip()
        if not name:
            if any(typed.get(f"{key}-{i}", "").strip() for key in ("lo", "hi", "options", "step")):
                _refuse(f"Parameter {i + 1} has no name; give it one, or clear its row", f"name-{i}")
            continue
        if name in named.values():
            _refuse(f"There are two parameters {shortened(name, VALUE)!r}; give each its own name", f"name-{i}")
        named[i] = name
    return named


def _put_parameters(typed: Mapping[str, str], content: Content) -> None:
    named = parameter_rows(typed)
    if not named:
        _refuse("There is no parameter; give at least one with a name", "name-0")
    for i, name in named.items():
        content.fields["parameters", name] = f"name-{i}"
        _put_parameter(typed, i, name, content)


def _put_parameter(typed: Mapping[str, str], i: int, name: str, content: Content) -> None:
    kind, about = typed.get(f"kind-{i}", "number"), f"Parameter {shortened(name, VALUE)!r}: "
    place, options = ("parameters", name), typed.get(f"options-{i}", "").strip()
    is_list = kind in ("choice", "ordered")
    unit, is_log = typed.get(f"unit-{i}", "").strip(), typed.get(f"log-{i}") == "on"
    if is_list:
        listed = [option.strip() for option in re.split(r"[,;\n]", options) if option.strip()]
        if len(listed) < 2:
            _refuse(f"{about}give at least two options, separated by commas", f"options-{i}")
        content.put((*place, kind), listed, f"options-{i}")
        return
    word = {key: word for word, key in KEYS.items()}.get(kind, kind)
    if is_log and not hasattr(PARAMETERS.get(word), "log"):
        _refuse(f"{about}it has no logarithmic scale; clear the box, or choose another kind", f"log-{i}")
    if unit:
        content.put((*place, "unit"), unit, f"unit-{i}")
    if kind == "fidelity" and options:
        if any(typed.get(f"{end}-{i}", "").strip() for end in ("lo", "hi")):
            _refuse(f"{about}it has options and steps; clear the options, or clear “From” and “To”", f"options-{i}")
        with _at(f"options-{i}", about):
            content.put((*place, kind), _levels_of(options), f"options-{i}")
        return
    what = "the smallest and the largest value"
    if kind == "fidelity":
        what = "the first and the last step, or levels as options"
    ends: list[float] = []
    for end, title in (("lo", "From"), ("hi", "To")):
        value = _number(typed, f"{end}-{i}", about)
        if value is None:
            _refuse(f"{about}“{title}” is empty; give {what}", f"{end}-{i}")
        ends.append(value)
    step = _number(typed, f"step-{i}", about)
    if kind in ("whole", "fidelity"):
        if any(end != round(end) for end in ends):
            other = "number" if kind == "whole" else "one of a list"
            _refuse(f"{about}give whole numbers, or choose the kind “{other}”", f"lo-{i}")
        ends = [int(end) for end in ends]
    content.put((*place, word), ends, f"lo-{i}")
    if step is not None:
        if kind == "fidelity":
            _refuse(f"{about}every step is passed, so it has no “In steps of”; clear it", f"step-{i}")
        content.put((*place, "step"), _whole(step) if kind == "whole" else step, f"step-{i}")
    if is_log:
        content.put((*place, "log"), True, f"log-{i}")


def _levels_of(typed: str) -> dict[str, float] | list[str]:
    """Return the levels of a fidelity: a list, or a table with their costs.

    Semicolons or lines separate them where there are any, so that a cost may have a decimal comma.
    """
    names, costs = list[str](), dict[str, float]()
    for part in re.split(r"[;\n]" if re.search(r"[;\n]", typed.strip()) else ",", typed):
        name, colon, cost = part.strip().rpartition(":")
        if not part.strip():
            continue
        if colon and not name.strip():
            raise ValueError(f"the cost {shortened(cost.strip(), VALUE)!r} has no level; write it as “coarse: 1”")
        if colon and not cost.strip():
            raise ValueError(f"the level {shortened(name.strip(), VALUE)!r} has no cost after its colon; give a number")
        level = name.strip() if colon else part.strip()
        if level in names:
            raise ValueError(f"the level {shortened(level, VALUE)!r} is there twice; give each level once")
        names.append(level)
        if colon:
            costs[level] = parse_number(cost)[0]
    if costs and len(costs) < len(names):
        raise ValueError("give the cost of every level, or of none")
    return costs or names


# Rules


def _put_rules(typed: Mapping[str, str], content: Content) -> None:
    named = parameter_rows(typed)
    content.fields["constraints",] = "rules" if typed.get("rules", "").strip() else "mixture-sum"
    content.fields["parameters",] = "conditions" if typed.get("conditions", "").strip() else "name-0"
    _put_mixture(typed, named, content)
    for line in _lines(typed, "rules"):
        content.append("constraints", line, "rules")
    for line in _lines(typed, "forbidden"):
        pairs = [_pair(part, "forbidden", "“solvent = water, base = NaH”") for part in line.split(",") if part.strip()]
        table = {key: _own_value(typed, named, key, text, "forbidden") for key, text in pairs}
        content.append("forbidden", table, "forbidden")
    _put_features(typed, named, content)
    for line in _lines(typed, "conditions"):
        about = "“ligand only if metal = Pd”"
        name, only_if, condition = line.partition(" only if ")
        if not only_if or name.strip() not in named.values():
            names = ", ".join(named.values())
            _refuse(f"{shortened(line, VALUE)!r} does not begin with a parameter and “only if”; write it like {about}; "
                    f"the parameters are {names}", "conditions")  # fmt: skip
        parent, text = _pair(condition, "conditions", about)
        values = [_own_value(typed, named, parent, part, "conditions") for part in text.split(",") if part.strip()]
        content.put(("parameters", name.strip(), "when"), {parent: values}, "conditions")


def _put_features(typed: Mapping[str, str], named: Mapping[int, str], content: Content) -> None:
    """Put the descriptors of options: tables, separated by empty lines, whose first cell is the name of a list."""
    lists = [name for i, name in named.items() if typed.get(f"kind-{i}") in ("choice", "ordered")]
    for block in re.split(r"\n[ \t]*\n", typed.get("features", "").replace("\r\n", "\n")):
        if not block.strip():
            continue
        lines = block.strip("\n").split("\n")
        separator = max(",;\t", key=lines[0].count)
        rows = csv.reader(lines, delimiter=separator)
        name = re.split(r"[,;\t]", lines[0])[0].strip()
        if name not in lists:
            _refuse(f"{shortened(name, VALUE)!r} is not one of a list; begin the table with the name of a parameter: "
                    f"{', '.join(lists) or 'there is none'}", "features")  # fmt: skip
        text = io.StringIO()
        with _at("features", f"{name}: the table cannot be read: "):
            try:
                for row in rows:
                    cells = [cell.strip() for cell in row]
                    csv.writer(text).writerow(cells[:1] + [_descriptor(cell, separator) for cell in cells[1:]])
            except csv.Error as error:
                raise ValueError(str(error)) from None
        content.put(("parameters", name, "features"), text.getvalue(), "features")


def _descriptor(cell: str, separator: str) -> str:
    """Return a cell of a table of descriptors, with a decimal point where it has a decimal comma."""
    if separator == "," or not re.fullmatch(r"[+−-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?", cell):
        return cell
    return repr(parse_number(cell)[0])


def _lines(typed: Mapping[str, str], name: str) -> list[str]:
    lines = [line.strip() for line in typed.get(name, "").splitlines() if line.strip()]
    if len(lines) > MAX_RULES:
        _refuse(f"There are {len(lines)} lines; give at most {MAX_RULES}", name)
    return lines


def _put_mixture(typed: Mapping[str, str], named: Mapping[int, str], content: Content) -> None:
    """Put the sum of the parts that were ticked, and how many of them may be used."""
    parts = {i: name for i, name in named.items() if typed.get(f"part-{i}") == "on"}
    total, most = (_number(typed, f"mixture-{key}", "The mixture: ") for key in ("sum", "most"))
    if not parts:
        if total is not None or most is not None:
            field = "mixture-sum" if total is not None else "mixture-most"
            _refuse("The mixture has no parts; tick the parameters that are its parts, or clear the number", field)
        return
    for i, name in parts.items():
        if not name.isidentifier():
            _refuse(
                f"Parameter {shortened(name, VALUE)!r}: it is part of a mixture, so its name must be one word of "
                f"letters, digits and _; rename it, as in {_word(name)!r}", f"name-{i}")  # fmt: skip
        if typed.get(f"kind-{i}", "number") not in ("number", "whole"):
            _refuse(f"Parameter {shortened(name, VALUE)!r}: it is part of a mixture, so it must be a number; choose "
                    "another kind, or clear its box", f"kind-{i}")  # fmt: skip
    if len(parts) < 2:
        _refuse("The mixture has one part; tick at least two parameters", f"part-{next(iter(parts))}")
    whole = 1 if total is None else _whole(total)
    content.append("constraints", f"{' + '.join(parts.values())} == {whole}", "mixture-sum")
    if most is not None:
        if most != round(most) or not 1 <= most <= len(parts):
            _refuse(f"At most {typed['mixture-most'].strip()} of the {len(parts)} parts cannot be; give a whole number "
                    f"from 1 to {len(parts)}, or leave it empty", "mixture-most")  # fmt: skip
        content.append("constraints", f"count({', '.join(parts.values())} > 0) <= {int(most)}", "mixture-most")


def _word(name: str) -> str:
    """Return a name as one word."""
    word = re.sub(r"\W+", "_", name).strip("_")
    return word if word.isidentifier() else f"p_{word}"


def _pair(text: str, field: str, example: str) -> tuple[str, str]:
    """Return a name and the text after its sign =."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip("= "):
        _refuse(f"{shortened(text.strip(), VALUE)!r} is not a parameter with a value; write it like {example}", field)
    return name.strip(), value.strip("= ")


def _own_value(typed: Mapping[str, str], named: Mapping[int, str], name: str, text: str, field: str) -> Any:
    """Return a value of a parameter from its text: a number, or an option."""
    kinds = {parameter: typed.get(f"kind-{i}", "number") for i, parameter in named.items()}
    if kinds.get(name) not in ("number", "whole"):
        return text.strip()
    with _at(field, f"{name}: "):
        return _whole(parse_number(text)[0]) if kinds[name] == "whole" else parse_number(text)[0]
