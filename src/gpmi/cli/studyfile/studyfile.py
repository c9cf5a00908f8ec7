"""Read and check a study file. A mistake is refused with the file, the line and the remedy."""

from __future__ import annotations

import inspect
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gpmi._support import checks
from gpmi.cli.command import Command, Reading
from gpmi.cli.command.reading import LARGEST_FILE
from gpmi.cli.command.templates import Template, check_names, check_shell, check_template
from gpmi.cli.studyfile.toml_table import StudyFileError, Table, lines_of, nearest
from gpmi.run import stopping
from gpmi.run.pools import MOST_WORKERS
from gpmi.space import Choice, Fidelity, Forbidden, Int, Parameter, Real, Space
from gpmi.trials.goals import AtLeast, AtMost, Goal, Goals, Match, Max, Min, Objective

AnyParameter: TypeAlias = Parameter | Fidelity

DATABASE = "study.db"  # in the folder of the file, unless it names another
SERVERS = ("postgresql://", "postgres://", "postgresql+")

TOP = (
    *("name", "database", "goal", "aim", "budget", "cost", "seed", "workers", "timeout", "retries", "constraints"),
    *("forbidden", "parameters", "goals", "command", "value", "stop", "earlier"),
)
KINDS: dict[str, Callable[..., Parameter]] = {
    **{"real": Real, "int": Int, "choice": Choice},
    "ordered": partial(Choice, ordered=True),
}
FIDELITY = "fidelity"  # a kind of parameter beside these: levels with their costs, or steps
FIDELITY_FORMS = (
    "{ fidelity = { coarse = 1, fine = 60 } } for levels with their costs, or { fidelity = [1, 52] } for steps"
)
COMMAND = ("run", "shell", "folder", "environment")
VALUE = ("from", "pattern", "y", "noise_var", "constraints", "outputs")
GOALS = ("goal", "match", "within", "at_least", "at_most")
GOAL_FORMS = '"max", "min", "watch", or a table such as { at_least = 0.95 } or { match = 42, within = 3 }'
# Rules without a key in [stop]: `Budget` has one at the top, `PhiBelow` is only useful combined with `&`.
NOT_IN_FILES = (stopping.Rule, stopping.Either, stopping.Both, stopping.Budget, stopping.PhiBelow)
STOP: dict[str, Callable[..., stopping.Rule]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): rule  # RegretBelow is regret_below
    for name, rule in vars(stopping).items()
    if isinstance(rule, type) and issubclass(rule, stopping.Rule) and rule not in NOT_IN_FILES
}
STOP_SEVERAL = ("seconds", "stagnation", "gain_below")  # the rules that several objectives have, too
_REMEDY = f"give one of {', '.join(STOP_SEVERAL)}, or a budget"


@dataclass(frozen=True)
class StudyFile:
    """The contents of a study file."""

    path: Path
    name: str  # of the study in the database
    database: str  # a path, or the address of a server
    goal: Literal["max", "min"]
    aim: Literal["find", "earn"]
    budget: int | None
    seed: int | None
    workers: int
    parameters: Mapping[str, AnyParameter]
    constraints: tuple[Any, ...]  # of the space: strings and `Forbidden`
    command: Command | None  # None if people evaluate: for `gpmi ask` and `gpmi serve`
    stop: stopping.Rule | None
    cost: float | None = None  # what to spend, in units of the costs of the fidelity
    goals: Goals | None = None  # of the outputs; `goal` is then "max" and means nothing
    earlier: Mapping[str, str] = field(default_factory=dict)  # databases of earlier studies, by name


def read_study(path: str | Path) -> StudyFile:
    """Read a study file. A mistake raises a StudyFileError that points at its line."""
    path = Path(path)
    try:
        with path.open("rb") as opened:
            data = opened.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise StudyFileError(f"{path}: it cannot be read ({reason}); give the path of a study file") from None
    if len(data) > LARGEST_FILE:
        raise StudyFileError(f"{path}: it has more than {LARGEST_FILE // 1024} kB; give a study file")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")  # editors of Windows write a mark in front
        content = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StudyFileError(f"{path}:{line}: it is not UTF-8 text; save it as such") from None
    except tomllib.TOMLDecodeError as error:
        raise StudyFileError(_syntax(path, str(error), text)) from None
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of more than 4,300 digits
        raise StudyFileError(f"{path}: it cannot be read as TOML ({type(error).__name__}); simplify it") from None
    return _study(Table(content, path, lines_of(text)))


def _syntax(path: Path, message: str, text: str) -> str:
    """Return the message of `tomllib` with its line in front."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message)
    if found is None:
        return f"{path}:{text.count(chr(10)) + 1}: {message}; fix the TOML"
    return f"{path}:{found[2]}: {found[1]} in column {found[3]}; fix the TOML"


# The schema


def _study(top: Table) -> StudyFile:
    top.allow_only(TOP)
    if "parameters" not in top.content:
        top.refuse("there is no table [parameters]; `gpmi init` writes an example")
    parameters = _parameters(top.table("parameters"))
    goals = _goals(top, parameters) if "goals" in top.content else None
    command = _command(top, parameters, goals) if "command" in top.content else None
    for name in ("value", "timeout", "retries"):
        if command is None and name in top.content:
            with top.at(name):
                raise ValueError("it is about a program, but there is no table [command]; give one, or leave it out")
    budget, stop = top.get("budget", _count), _stop(top.table("stop"), goals)
    cost = top.get("cost", checks.positive)
    if cost is not None and not any(isinstance(one, Fidelity) for one in parameters.values()):
        top.refuse(f"no parameter is a fidelity, so nothing has a cost; give one {FIDELITY_FORMS}", "cost")
    if budget is None and cost is None and stop is None and command is not None:
        top.refuse("there is neither a budget nor a rule in [stop]; give one of them, as in budget = 50")
    return StudyFile(
        path=top.file,
        name=top.get("name", _text, top.file.stem),
        database=_database(top),
        goal=top.get("goal", _goal, "max"),
        aim=top.get("aim", partial(checks.one_of, words=("find", "earn")), "find"),
        budget=budget,
        seed=top.get("seed", partial(checks.whole, least=0, most=checks.LARGEST_SEED)),
        workers=top.get("workers", partial(checks.whole, least=1, most=MOST_WORKERS), 1),
        parameters=parameters,
        constraints=_constraints(top, parameters),
        command=command,
        stop=stop,
        cost=cost,
        goals=goals,
        earlier=_earlier(top.table("earlier")),
    )


def _database(top: Table) -> str:
    """Return where the study is stored: a path relative to the folder of the file, or the address of a server."""
    database: str = top.get("database", _text, DATABASE)
    with top.at("database"):
        if "://" in database:
            if not database.startswith(SERVERS):
                raise ValueError("the address is not supported; give a path, or postgresql://user@host/name")
            return database
        path = top.file.parent / database
        if database == ":memory:" or path.is_dir() or not path.parent.is_dir():
            raise ValueError(f"{database!r} cannot be the file of a study; give a path in an existing folder")
    return str(path)


def _earlier(table: Table) -> dict[str, str]:
    """Return the databases of earlier studies: paths relative to the folder of the file, or addresses of servers."""
    found: dict[str, str] = {}
    for name in table.content:
        address: str = table.get(name, _text)
        found[name] = address if address.startswith(SERVERS) else str(table.file.parent / address)
        with table.at(name):
            if "://" not in address and not Path(found[name]).is_file():
                raise ValueError(f"there is no file {address!r}; give the path of the database of an earlier study")
    return found


def _parameters(table: Table) -> dict[str, AnyParameter]:
    if not table.content:
        table.refuse("[parameters] is empty; give at least one, as in x = { real = [0.0, 1.0] }")
    made: dict[str, AnyParameter] = {}
    for name in table.content:
        with table.at(name):
            check_names([*made, name])
        made[name] = _parameter(table.table(name))
    with table.at():
        Space.of(made)  # refuses conditions on parameters and values that do not exist
    return made


def _parameter(table: Table) -> AnyParameter:
    if FIDELITY in table.content:
        return _fidelity(table)
    kinds = [kind for kind in KINDS if kind in table.content]
    if len(kinds) != 1:
        near = [] if kinds else [key for key in table.content if nearest(key, (*KINDS, FIDELITY))]
        if near:
            table.allow_only((*KINDS, FIDELITY))
        table.refuse(f"give it one of {', '.join((*KINDS, FIDELITY))}, as in {{ real = [0.0, 1.0] }}")
    (kind,) = kinds
    optional = [
        name
        for name, one in inspect.signature(KINDS[kind]).parameters.items()
        if one.default is not one.empty and name != "ordered"
    ]
    table.allow_only((kind, *optional))
    more: dict[str, Any] = {name: table.content[name] for name in optional if name in table.content}
    table.get("when", _condition)
    with table.at(kind):
        values = table.content[kind]
        if not isinstance(values, list):
            raise TypeError(f"{kind} is {checks.shown(values)}; give a list")
        if kind in ("choice", "ordered"):
            return KINDS[kind](tuple(_option(option) for option in values), **more)
        if len(values) != 2:
            raise ValueError(f"{kind} is {checks.shown(values)}; give the smallest and the largest value, [lo, hi]")
        return KINDS[kind](*values, **more)


def _fidelity(table: Table) -> Fidelity:
    """Return a fidelity: a table of levels with their costs, a list of levels, or two whole numbers for steps."""
    table.allow_only((FIDELITY, "cost", "unit"))
    given, unit = table.content[FIDELITY], table.get("unit", _text, "")
    with table.at(FIDELITY):
        if not isinstance(given, dict | list):
            raise TypeError(f"fidelity is {checks.shown(given)}; give {FIDELITY_FORMS}")
        for label in given:
            _option(label)
        if isinstance(given, list) and len(given) == 2 and all(type(step) is int for step in given):
            first, last = given
            Fidelity(first, last)
            cost = table.get("cost", _costs)
            with table.at("cost" if cost is not None else FIDELITY):
                return Fidelity(first, last, cost=cost, unit=unit)
        if "cost" in table.content:
            table.refuse("it is for steps; give the costs of levels with them, { coarse = 1, fine = 60 }", "cost")
        return Fidelity(given, unit=unit)


def _costs(name: str, value: Any) -> dict[int, Any]:
    if not isinstance(value, dict) or not all(re.fullmatch(r"[0-9]{1,12}", step) for step in value):
        raise TypeError(f"{name} is {checks.shown(value)}; give what the steps up to some cost, {{ 10 = 15, 52 = 60 }}")
    return {int(step): cost for step, cost in value.items()}


def _option(option: Any) -> Any:
    """Return an option that can be passed to a program: a string, a number, true or false."""
    if not isinstance(option, str | int | float) or (isinstance(option, float) and not math.isfinite(option)):
        raise TypeError(f"it has the option {checks.shown(option)}; give strings, finite numbers, true or false")
    if isinstance(option, str) and "\0" in option:
        raise ValueError(f"it has the option {checks.shown(option)}; no program accepts a zero byte")
    return option


def _condition(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is {checks.shown(value)}; give a table such as {{ method = 'exact' }}")


def _constraints(top: Table, parameters: Mapping[str, AnyParameter]) -> tuple[Any, ...]:
    space, found = Space.of(dict(parameters)), list[Any]()
    for key in ("constraints", "forbidden"):
        for i, one in enumerate(top.get(key, _list, [])):
            with top.at(key, i):
                if key == "forbidden":
                    if not isinstance(one, dict):
                        raise TypeError(f"it is {checks.shown(one)}; give a table of values, {{ method = 'fast' }}")
                    one = Forbidden(**one)
                elif not isinstance(one, str):
                    raise TypeError(f"it is {checks.shown(one)}; give a string such as 'x + y <= 1'")
                space.constrained([one])
                found.append(one)
    with top.at("constraints" if "constraints" in top.content else "forbidden"):
        if found:
            space.constrained(found)
    return tuple(found)


def _goals(top: Table, parameters: Mapping[str, AnyParameter]) -> Goals:
    """Return the goals of the outputs, from the table [goals]."""
    table = top.table("goals")
    if not table.content:
        table.refuse('[goals] is empty; give a goal for each output, as in yield = "max"')
    if "goal" in top.content:
        with top.at("goal"):
            raise ValueError("there is also a table [goals]; leave out goal, and say it there")
    made: dict[str, Goal] = {}
    for name, given in table.content.items():
        with table.at(name):
            if name in parameters:
                raise ValueError("a parameter has the same name; give the output another one")
            if not isinstance(given, dict):
                made[name] = _goal_in_a_word(given)
                continue
        made[name] = _goal_in_a_table(table.table(name))
    if not any(isinstance(goal, Objective) for goal in made.values()):
        table.refuse(f'there are only {", ".join(made)}, and no objective; give an output "max", "min" or match')
    with table.at():
        return Goals.of(made)


def _goal_in_a_word(given: Any) -> Goal:
    words: dict[Any, Goal] = {"max": Max(), "min": Min(), "watch": None}
    if isinstance(given, str) and given in words:
        return words[given]
    near = given.lower()[:3] if isinstance(given, str) else ""
    remedy = f'did you mean "{near}"?' if near in words else f"give {GOAL_FORMS}"
    raise ValueError(f"it is {checks.shown(given)}; {remedy}")


def _goal_in_a_table(table: Table) -> Goal:
    """Return the goal that a table describes: a limit, a target, or an objective with the worst acceptable value."""
    table.allow_only(GOALS)
    word = table.get("goal", partial(checks.one_of, words=("max", "min")))
    numbers = {key: table.get(key, checks.number) for key in GOALS if key in table.content and key != "goal"}
    if "match" in numbers or "within" in numbers:
        if word is not None or set(numbers) != {"match", "within"}:
            table.refuse(
                "a target is given as { match = 42, within = 3 }, where within is the distance that you accept"
            )
        with table.at():
            return Match(numbers["match"], within=numbers["within"])
    if word is not None:
        kind, own = (Max, "at_least") if word == "max" else (Min, "at_most")
        if not set(numbers) <= {own}:
            table.refuse(
                f'with goal = "{word}" the worst value that you would accept is {own}; leave out the other limit'
            )
        with table.at():
            return kind(numbers.get(own))
    if len(numbers) != 1:
        both = "it has two limits; give one of them, or a target, { match = 5, within = 1 }"
        table.refuse(both if numbers else f"it is empty; give {GOAL_FORMS}")
    ((key, value),) = numbers.items()
    with table.at(key):
        return AtLeast(value) if key == "at_least" else AtMost(value)


def _command(top: Table, parameters: Mapping[str, AnyParameter], goals: Goals | None) -> Command:
    table, names = top.table("command"), tuple(parameters)
    table.allow_only(COMMAND)
    if "run" not in table.content:
        table.refuse("there is no run; give the program and its arguments, as in run = ['./train', '--x={x}']")
    shell = table.get("shell", checks.flag, False)
    reading, steps = _reading(top.table("value"), goals), _steps(parameters)
    if steps is not None and reading.constraints:
        top.table("value").refuse("constraints do not go with steps; give limits in [goals]", "constraints")
    command = Command(
        run=_shell_text(table, names) if shell else _templates(table, names),
        names=names,
        reading=reading,
        timeout=top.get("timeout", checks.positive),
        retries=top.get("retries", partial(checks.whole, least=0), 0),
        cwd=top.file.parent / table.get("folder", _text, "."),
        env=table.get("environment", _environment, {}),
        steps=steps,
    )
    if not command.cwd.is_dir():
        with table.at("folder"):
            raise ValueError(f"there is no folder {str(command.cwd)!r}; create it, or name another")
    return command


def _steps(parameters: Mapping[str, AnyParameter]) -> tuple[str, int] | None:
    """Return the fidelity whose steps the program reports, and the first step; None if there is none."""
    found = ((name, one) for name, one in parameters.items() if isinstance(one, Fidelity) and one.has_steps)
    return next(((name, int(one.levels)) for name, one in found), None)


def _shell_text(table: Table, names: tuple[str, ...]) -> str:
    with table.at("run"):
        run = table.content["run"]
        if not isinstance(run, str) or "\0" in run or not run.strip():
            raise TypeError(f"run is {checks.shown(run)}; with shell = true give one string for /bin/sh")
        check_shell(run, names)
        return run


def _templates(table: Table, names: tuple[str, ...]) -> tuple[Template, ...]:
    with table.at("run"):
        run = table.content["run"]
        if isinstance(run, str):
            raise TypeError(f"run is {checks.shown(run)}; give a list of arguments, or add shell = true")
        if not isinstance(run, list) or not run or not isinstance(run[0], str) or not run[0]:
            raise TypeError(f"run is {checks.shown(run)}; give a list of strings, the program first")
    made: list[Template] = []
    for i, one in enumerate(run):
        group = one if isinstance(one, list) else [one]
        for j, text in enumerate(group):
            with table.at("run", i, *([j] if isinstance(one, list) else [])):
                if not isinstance(text, str) or "\0" in text:
                    raise TypeError(f"it is {checks.shown(text)}; give a string")
                check_template(text, names)
        made.append(tuple(group) if isinstance(one, list) else one)
    return tuple(made)


def _reading(table: Table, goals: Goals | None) -> Reading:
    table.allow_only(VALUE)
    source = table.get("from", partial(checks.one_of, words=("last line", "match", "json")), "last line")
    if (source == "match") != ("pattern" in table.content):
        table.refuse('`from = "match"` and `pattern` belong together; give both or none')
    constraints = table.get("constraints", _texts, [])
    pattern = table.get("pattern", _text if goals is None else _pattern)
    more: dict[str, Any] = {} if goals is None else _outputs(table, goals)
    if goals is None and "outputs" in table.content:
        table.refuse('outputs need a table [goals], as in yield = "max"; give one, or leave this out', "outputs")
    with table.at("pattern") if pattern is not None else table.at():
        return Reading(
            source=source,
            pattern=pattern,
            y=table.get("y", _text, "y"),
            noise_var=table.get("noise_var", _text, "noise_var"),
            constraints=tuple(constraints),
            **more,
        )


def _outputs(table: Table, goals: Goals) -> dict[str, Any]:
    """Return how the outputs of a study with goals are read: their names in the result, and which may be missing."""
    for key, remedy in (
        ("y", 'outputs = { yield = "..." } names the outputs of [goals]'),
        ("constraints", "give such an output a limit in [goals], as in memory = { at_most = 8 }"),
    ):
        if key in table.content:
            with table.at(key):
                raise ValueError(f"{key} is for a study without [goals]; leave it out: {remedy}")
    names = table.get("outputs", _named_texts, {})
    for name in names:
        with table.at("outputs", name):
            goals.checked_name(name)
    own = {name: names.get(name, name) for name in goals}
    return {"outputs": own, "watched": tuple(name for name, goal in goals.items() if goal is None)}


def _stop(table: Table, goals: Goals | None) -> stopping.Rule | None:
    """Combine the rules of the table, any of which stops the run. A rule that needs no value is switched on by true."""
    table.allow_only(STOP)
    rules: list[stopping.Rule] = []
    for name in table.content if goals is not None and goals.single is None else ():
        if name not in STOP_SEVERAL:
            table.refuse(f"it is about one value, and there are several objectives; {_REMEDY}", name)
    for name, value in table.content.items():
        with table.at(name):
            needs_value = any(one.default is one.empty for one in inspect.signature(STOP[name]).parameters.values())
            if needs_value:
                rules.append(STOP[name](value))
            elif checks.flag(name, value):
                rules.append(STOP[name]())
    return reduce(or_, rules) if rules else None


# Values


def _goal(name: str, value: Any) -> str:
    if isinstance(value, dict):
        raise TypeError("it is a table; the goals of outputs stand in a table [goals]")
    return checks.one_of(name, value, ("max", "min"))


def _count(name: str, value: Any) -> int:
    return checks.whole(name, value, 1)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise TypeError(f"{name} is {checks.shown(value)}; give a string")
    return value


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{name} is {checks.shown(value)}; give a list, in brackets")
    return value


def _texts(name: str, value: Any) -> list[str]:
    return [_text(name, one) for one in _list(name, value)]


def _named_texts(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is {checks.shown(value)}; give a table, {{ yield = 'text' }}")
    return {key: _text(key, one) for key, one in value.items()}


def _pattern(name: str, value: Any) -> str | dict[str, str]:
    return _named_texts(name, value) if isinstance(value, dict) else _text(name, value)


def _environment(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) and "\0" not in text for text in value.values()):
        raise TypeError(f"{name} is {checks.shown(value)}; give a table of strings, {{ OMP_NUM_THREADS = '1' }}")
    for variable in value:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
            raise ValueError(f"{name} has {checks.shown(variable)}, not a variable's name; use letters, digits and _")
        if variable.startswith("GPMI_"):
            raise ValueError(f"{name} has {variable}; names that begin with GPMI_ are reserved for the parameters")
    return value
