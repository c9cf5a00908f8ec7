"""The commands about the trials of a study: ask, tell, fail, best, trials, verify, report, export, import."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from gpmi._support import text
from gpmi.cli.messages import NOTHING, remark
from gpmi.cli.opened import opened

if TYPE_CHECKING:
    from gpmi.run.study import Study
    from gpmi.trials import Trial

Address: TypeAlias = Annotated[
    str, typer.Argument(metavar="STUDY", help="The path of a study, its address, or its study file.")
]
Name: TypeAlias = Annotated[str | None, typer.Option(help="Which study; needed where there are several.")]
Number: TypeAlias = Annotated[int, typer.Argument(help="The number of the trial.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OptunaName: TypeAlias = Annotated[str | None, typer.Option(help="The name of the study in a storage of Optuna.")]


def add_trials(commands: typer.Typer) -> None:
    """Add the commands, each with an example in its help."""
    for act, example in _EXAMPLES.items():
        name = act.__name__.rstrip("_")
        # A negative number looks like an option, and is none.
        more = {"context_settings": {"ignore_unknown_options": True}} if act is tell else {}
        commands.command(name, epilog=f"Example: gpmi {name} {example}", **more)(act)  # type: ignore[arg-type]


# One trial


def ask(
    address: Address,
    name: Name = None,
    count: Annotated[int, typer.Option(help="How many points to evaluate at the same time.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Ask for the next point to evaluate. It is yours until you tell its value, or that it failed.

    A study file makes its study, if there is none yet. --json prints a line for each point, with its number and x. The
    exit code is 3 if no point is left.
    """
    from gpmi.space import SpaceExhausted

    with opened(address, name, make=True) as study:
        try:
            trials = study.ask(count, lease=math.inf)
        except SpaceExhausted:
            raise _nothing("every point of the space has been asked") from None
        for trial in trials:
            typer.echo(json.dumps({"number": trial.number, "x": _x(study, trial.x)}) if as_json else _lines(trial))


def tell(
    address: Address,
    number: Number,
    value: Annotated[float, typer.Argument(help="The value of its point.")],
    name: Name = None,
    noise_var: Annotated[float, typer.Option(help="The variance of the error of this value, if it is known.")] = 0.0,
    constraint: Annotated[
        list[float] | None, typer.Option(help="A measured constraint, <= 0 if it is kept; give it again for more.")
    ] = None,
    correct: Annotated[bool, typer.Option("--correct", help="Replace the value that the trial has.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="One more measurement of its point, which also counts.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell the value of a trial. It is on the disk when the command ends.

    The same value twice counts once. Another value for the same trial is refused, unless you say what it is: --correct
    or --again.
    """
    with opened(address, name) as study:
        more: dict[str, Any] = {"noise_var": noise_var, "constraints": constraint}
        before = _known(study, number)
        if correct and again:
            raise ValueError("--correct and --again were given; give one of them")
        if correct:
            trial = study.correct(number, value, **{name: given for name, given in more.items() if given})
        elif again and before is not None:
            trial = study.tell(before.x, value, **more)
        else:
            if before is not None and (before.status, before.y) not in (("pending", None), ("told", value)):
                raise ValueError(
                    f"trial {number} {_has(before)} already; --correct replaces it, --again counts as well"
                )
            trial = study.tell(number, value, **more)
        _said(trial, as_json)


def fail(
    address: Address,
    number: Number,
    name: Name = None,
    why: Annotated[str | None, typer.Option(help="The reason, in words.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell that the evaluation of a trial failed. The region is avoided from then on."""
    with opened(address, name) as study:
        before = _known(study, number)
        if before is not None and before.status not in ("pending", "failed"):
            raise ValueError(f"trial {number} {_has(before)} already; a failure that comes later changes nothing")
        _said(study.fail(number, why), as_json)


# All of them


def best(address: Address, name: Name = None, as_json: AsJson = False) -> None:
    """Show the best value so far, and the point to use. The exit code is 3 if there is no value."""
    from gpmi.cli.studies import summary, words

    with opened(address, name) as study:
        found, result = study.best, study.result()
        if as_json and found is not None:
            typer.echo(json.dumps({"number": found.number, **summary(result)}))
        elif found is not None:
            typer.echo(words(result))
        else:
            raise _nothing(f"the study {study.name!r} has no value yet, in {len(study.trials)} trials")


def trials(
    address: Address,
    name: Name = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """List the trials as a table: what was asked, told, failed. --json prints a line of JSON for each."""
    from gpmi.trials.dataframe import listing
    from gpmi.trials.files import text_of

    with opened(address, name) as study:
        if as_json and as_csv:
            raise ValueError("--json and --csv were given; give one of them")
        if as_json or as_csv:
            typer.echo(text_of(study, ".csv" if as_csv else ".jsonl"), nl=False)
        elif study.trials:
            typer.echo(listing(study.trials, study.space))


def verify(address: Address, name: Name = None, as_json: AsJson = False) -> None:
    """Check the log of a study, and compute each suggestion again. The exit code is 3 if something does not agree."""
    with opened(address, name) as study:
        found = study.verify()
        said = {"entries": found.entries, "suggestions": found.suggestions, "problems": found.problems}
        words = [f"{found.entries} entries, {found.suggestions} suggestions computed again"]
        typer.echo(json.dumps(said) if as_json else "\n".join(words + list(found.problems or ["all agrees"])))
        raise typer.Exit(0 if found.agrees else NOTHING)


def report(
    address: Address,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("report.html"),
    name: Name = None,
) -> None:
    """Write a report: one HTML file with all that is known of a study, to look at, to print, to send.

    It may take some seconds for a study of a thousand trials.
    """
    from gpmi.run.progress import lasting_console

    with opened(address, name) as study, lasting_console(stderr=True).status("making the report"):
        typer.echo(study.report(out))


# In and out


def export(
    address: Address,
    target: Annotated[str, typer.Argument(help="A file .csv, .jsonl or .parquet, or a storage of Optuna.")],
    name: Name = None,
    optuna_name: OptunaName = None,
    as_json: AsJson = False,
) -> None:
    """Write all trials to a file, or as a new study to a storage of Optuna, such as sqlite:///optuna.db."""
    from gpmi.trials import files

    with opened(address, name) as study:
        if "://" in target:
            from gpmi.integrations.optuna import to_storage

            to_storage(study, target, optuna_name or study.name)
        else:
            files.check_target(target)
            files.write_trials(study, target)
        count, where = len(study.trials), text.without_password(target)
        _count({"trials": count, "target": where}, f"{count} trials written to {where}", as_json)


def import_(
    address: Address,
    source: Annotated[str, typer.Argument(help="A file .csv, .jsonl or .parquet, or a storage of Optuna.")],
    name: Name = None,
    optuna_name: OptunaName = None,
    as_json: AsJson = False,
) -> None:
    """Tell a study the values of a file, or of a study of Optuna: all of them or, if one is wrong, none.

    A file needs columns for the parameters and y. Only values are taken over, not failures or pending points, and a row
    that was imported before counts once. They do not count in the budget. A study file makes its study, if there is
    none yet.
    """
    from gpmi.trials import files

    with opened(address, name, make=True) as study:
        left_out: tuple[str, ...] = ()
        if "://" in source:
            from gpmi.integrations.optuna import from_storage

            _, found, left_out = from_storage(source, optuna_name, study.space)
        else:
            found = files.read_trials(source, study.space)
        told = [trial for trial in found if trial.status == "told"]
        for words in left_out:
            typer.echo(f"gpmi: left out {words}", err=True)
        if len(told) < len(found):
            typer.echo(f"gpmi: left out {len(found) - len(told)} trials without a value", err=True)
        before = len(study.trials)
        study.optimizer.tell_all(told)
        new, where = len(study.trials) - before, text.without_password(source)
        _count(
            {"new": new, "values": len(told), "left_out": len(left_out) + len(found) - len(told), "source": where},
            f"{new} new values of {len(told)} in {where}",
            as_json,
        )


# Words


def _known(study: "Study", number: int) -> "Trial | None":
    """The trial with this number; None if there is none now."""
    return next((trial for trial in study.trials if trial.number == number), None)


def _said(trial: "Trial", as_json: bool) -> None:
    """What became of a trial: for a script if it wants to know, and for a person."""
    if as_json:
        typer.echo(json.dumps({"number": trial.number, "status": trial.status, "y": trial.y, "why": trial.why}))
    else:
        remark(repr(trial))


def _count(said: dict[str, Any], words: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(said))
    else:
        remark(words)


def _has(trial: "Trial") -> str:
    return f"was told the value {trial.y!r}" if trial.status == "told" else f"is {trial.status}"


def _x(study: "Study", x: Any) -> Any:
    from gpmi.storage.serialization import point_to_json

    return point_to_json(study.space, x)


def _lines(trial: "Trial") -> str:
    """A trial for a person: its number, and its coordinates with all their digits."""
    named = trial.x if isinstance(trial.x, Mapping) else {f"x{j}": value for j, value in enumerate(trial.x.tolist())}
    return "\n".join([f"trial {trial.number}", *(f"  {name} = {value}" for name, value in named.items())])


def _nothing(words: str) -> typer.Exit:
    typer.echo(f"gpmi: {words}", err=True)
    return typer.Exit(NOTHING)


_EXAMPLES: dict[Callable[..., None], str] = {
    ask: "study.db --json",
    tell: "study.db 3 -0.25 --noise-var 0.01 --constraint 0.5",
    fail: 'study.db 3 --why "the pump stopped"',
    best: "study.db --json",
    trials: "study.db --csv > trials.csv",
    verify: "study.db",
    report: "study.db --out report.html",
    export: "study.db trials.parquet",
    import_: "study.toml earlier.csv",
}
