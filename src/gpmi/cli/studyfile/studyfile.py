"""Read and check a study file. A mistake is refused with the file, the line and the remedy."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Any

from gpmi._support import checks
from gpmi._support.plain_table import Table
from gpmi.cli.command import Command, Reading
from gpmi.cli.command.reading import LARGEST_FILE
from gpmi.cli.command.templates import Template, check_names, check_shell, check_template
from gpmi.cli.studyfile.toml_table import FileTable, StudyFileError, lines_of
from gpmi.run import MOST_WORKERS, stopping
from gpmi.run.study_table import FIDELITY_FORMS, KEYS, AnyParameter, StudyTable, list_value, read_table, text_value
from gpmi.space import Space
from gpmi.trials import Goals

DATABASE = "study.db"  # in the folder of the file, unless it names another
SERVERS = ("postgresql://", "postgres://", "postgresql+")

TOP = (*KEYS, "name", "database", "cost", "workers", "timeout", "retries", "command", "value", "stop", "earlier")
COMMAND = ("run", "shell", "folder", "environment")
VALUE = ("from", "pattern", "y", "noise_var", "constraints", "outputs")
# Rules without a key in [stop]: `Budget` has one at the top, `PhiBelow` is only useful combined with `&`.
NOT_IN_FILES = (stopping.Rule, stopping.Either, stopping.Both, stopping.Budget, stopping.PhiBelow)
STOP: dict[str, Callable[..., stopping.Rule]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): rule  # RegretBelow is regret_below
    for name, rule in vars(stopping).items()
    if isinstance(rule, type) and issubclass(rule, stopping.Rule) and rule not in NOT_IN_FILES
}
STOP_SEVERAL = ("seconds", "stagnation", "gain_below")  # the rules that several objectives have, too
_REMEDY = f"give one of {', '.join(STOP_SEVERAL)}, or a budget"


@dataclass(frozen=True, kw_only=True)
class StudyFile(StudyTable):
    """The contents of a study file."""

    path: Path
    name: str  # of the study in the database
    database: str  # a path, or the address of a server
    workers: int
    command: Command | None  # None if people evaluate: for `gpmi ask` and `gpmi serve`
    stop: stopping.Rule | None
    cost: float | None = None  # what to spend, in units of the costs of the fidelity
    earlier: Mapping[str, str] = field(default_factory=dict)  # databases of earlier studies, by name

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "earlier": dict(self.earlier) or None}


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
    return _study(FileTable(content, path, lines_of(text)))


def _syntax(path: Path, message: str, text: str) -> str:
    """Return the message of `tomllib` with its line in front."""
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message)
    if match is None:
        return f"{path}:{text.count(chr(10)) + 1}: {message}; fix the TOML"
    line = text.splitlines()[int(match[2]) - 1 : int(match[2])]
    quotes = "\\" in "".join(line) and "\\" in match[1]
    remedy = r"write patterns in single quotes, as in 'loss: (\S+)'" if quotes else "fix the TOML"
    return f"{path}:{match[2]}: {match[1]} in column {match[3]}; {remedy}"


# The schema


def _study(top: FileTable) -> StudyFile:
    top.allow_only(TOP)
    table = read_table(top, check_names)
    parameters, goals = table.parameters, table.goals
    command = _command(top, parameters, goals) if "command" in top.content else None
    for name in ("value", "timeout", "retries"):
        if command is None and name in top.content:
            with top.at(name):
                raise ValueError("it is about a program, but there is no table [command]; give one, or leave it out")
    budget, stop = table.budget, _stop(top.table("stop"), goals)
    cost = top.get("cost", checks.positive)
    if cost is not None and Space.of(dict(parameters)).fidelity is None:
        top.refuse(f"no parameter is a fidelity, so nothing has a cost; give one {FIDELITY_FORMS}", "cost")
    if budget is None and cost is None and stop is None and command is not None:
        top.refuse("there is neither a budget nor a rule in [stop]; give one of them, as in budget = 50")
    return StudyFile(
        path=top.file,
        name=top.get("name", text_value, top.file.stem),
        database=_database(top),
        workers=top.get("workers", partial(checks.whole, least=1, most=MOST_WORKERS), 1),
        command=command,
        stop=stop,
        cost=cost,
        earlier=_earlier(top),
        **vars(table),
    )


def _database(top: FileTable) -> str:
    """Return where the study is stored: a path relative to the folder of the file, or the address of a server."""
    database: str = top.get("database", text_value, DATABASE)
    with top.at("database"):
        if "://" in database:
            if not database.startswith(SERVERS):
                raise ValueError("the address is not supported; give a path, or postgresql://user@host/name")
            return database
        path = top.file.parent / database
        if database == ":memory:" or path.is_dir() or not path.parent.is_dir():
            raise ValueError(f"{database!r} cannot be the file of a study; give a path in an existing folder")
    return str(path)


def _earlier(top: FileTable) -> dict[str, str]:
    """Return the databases of earlier studies: paths relative to the folder of the file, or addresses of servers."""
    table, databases = top.table("earlier"), dict[str, str]()
    for name in table.content:
        address: str = table.get(name, text_value)
        databases[name] = address if address.startswith(SERVERS) else str(top.file.parent / address)
        with table.at(name):
            if databases[name] != address and not Path(databases[name]).is_file():
                raise ValueError(f"there is no file {address!r}; give the path of the database of an earlier study")
    return databases


def _command(top: FileTable, parameters: Mapping[str, AnyParameter], goals: Goals) -> Command:
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
        cwd=top.file.parent / table.get("folder", text_value, "."),
        env=table.get("environment", _environment, {}),
        steps=steps,
        repairable=True,
    )
    if not command.cwd.is_dir():
        with table.at("folder"):
            raise ValueError(f"there is no folder {str(command.cwd)!r}; create it, or name another")
    return command


def _steps(parameters: Mapping[str, AnyParameter]) -> tuple[str, int] | None:
    """Return the fidelity whose steps the program reports, and the first step; None if there is none."""
    column = Space.of(dict(parameters)).curve_fidelity
    return None if column is None else (column.name, column.fidelity.levels)


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
    templates: list[Template] = []
    for i, argument in enumerate(run):
        group = argument if isinstance(argument, list) else [argument]
        for j, text in enumerate(group):
            with table.at("run", i, *([j] if isinstance(argument, list) else [])):
                if not isinstance(text, str) or "\0" in text:
                    raise TypeError(f"it is {checks.shown(text)}; give a string")
                check_template(text, names)
        templates.append(tuple(group) if isinstance(argument, list) else argument)
    return tuple(templates)


def _reading(table: Table, goals: Goals) -> Reading:
    table.allow_only(VALUE)
    source = table.get("from", partial(checks.one_of, words=("last line", "match", "json")), "last line")
    if (source == "match") != ("pattern" in table.content):
        table.refuse('`from = "match"` and `pattern` belong together; give both or none')
    constraints = table.get("constraints", _texts, [])
    what = _outputs(table, goals) if goals.named else _value(table)
    with table.at("pattern") if what["pattern"] is not None else table.at():
        return Reading(
            source=source,
            noise_var=table.get("noise_var", text_value, "noise_var"),
            constraints=tuple(constraints),
            **what,
        )


def _value(table: Table) -> dict[str, Any]:
    """Return how the value of a study without goals is read."""
    if "outputs" in table.content:
        table.refuse('outputs need a table [goals], as in yield = "max"; give one, or leave this out', "outputs")
    return {"pattern": table.get("pattern", text_value), "y": table.get("y", text_value, "y")}


def _outputs(table: Table, goals: Goals) -> dict[str, Any]:
    """Return how the outputs of a study with goals are read: their names in the result, and which may be missing."""
    pattern = table.get("pattern", _pattern)
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
    outputs, watched = {name: names.get(name, name) for name in goals}, [n for n, goal in goals.items() if goal is None]
    return {"pattern": pattern, "outputs": outputs, "watched": tuple(watched)}


def _stop(table: Table, goals: Goals) -> stopping.Rule | None:
    """Combine the rules of the table, any of which stops the run. A rule that needs no value is switched on by true."""
    table.allow_only(STOP)
    rules: list[stopping.Rule] = []
    for name in table.content if goals.single is None else ():
        if name not in STOP_SEVERAL:
            table.refuse(f"it is about one value, and there are several objectives; {_REMEDY}", name)
    for name, value in table.content.items():
        with table.at(name):
            needs_value = any(
                argument.default is argument.empty for argument in inspect.signature(STOP[name]).parameters.values()
            )
            if needs_value:
                rules.append(STOP[name](value))
            elif checks.flag(name, value):
                rules.append(STOP[name]())
    return reduce(or_, rules) if rules else None


# Values


def _count(name: str, value: Any) -> int:
    return checks.whole(name, value, 1)


def _texts(name: str, value: Any) -> list[str]:
    return [text_value(name, text) for text in list_value(name, value)]


def _named_texts(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is {checks.shown(value)}; give a table, {{ yield = 'text' }}")
    return {key: text_value(key, text) for key, text in value.items()}


def _pattern(name: str, value: Any) -> str | dict[str, str]:
    return _named_texts(name, value) if isinstance(value, dict) else text_value(name, value)


def _environment(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) and "\0" not in text for text in value.values()):
        raise TypeError(f"{name} is {checks.shown(value)}; give a table of strings, {{ OMP_NUM_THREADS = '1' }}")
    for variable in value:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
            raise ValueError(f"{name} has {checks.shown(variable)}, not a variable's name; use letters, digits and _")
        if variable.startswith("GPMI_"):
            raise ValueError(f"{name} has {variable}; names that begin with GPMI_ are reserved for the parameters")
    return value
