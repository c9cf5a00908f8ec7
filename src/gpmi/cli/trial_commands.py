"""Commands about the trials of a study: ask, tell, fail, best, trials, verify, report, export and import."""

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from gpmi._support import text
from gpmi.cli.common import NOTHING, note, open_for_command

if TYPE_CHECKING:
    from gpmi.run.study import Study
    from gpmi.trials import Trial

Address: TypeAlias = Annotated[
    str, typer.Argument(metavar="STUDY", help="The path or address of a study's database, or its study file.")
]
Name: TypeAlias = Annotated[str | None, typer.Option(help="The name of the study; needed if the database has several.")]
Number: TypeAlias = Annotated[int, typer.Argument(help="The number of the trial.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FileOrStorage: TypeAlias = Annotated[
    str, typer.Argument(help="A .csv, .jsonl or .parquet file, or the address of an Optuna storage.")
]
OptunaName: TypeAlias = Annotated[str | None, typer.Option(help="The name of the study in Optuna's storage.")]


# One trial


def ask(
    address: Address,
    name: Name = None,
    count: Annotated[int, typer.Option(help="Number of points to ask for.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Ask for the next point to evaluate.

    It stays reserved for you until you tell its value, or that it failed. Given a study file, a study that does not
    exist yet is created. --json prints a line for each point, with its number and x. The exit code is 3 if no point is
    left.
    """
    from gpmi.space import SpaceExhausted

    with open_for_command(address, name, make=True) as study:
        try:
            trials = study.ask(count, lease=math.inf)
        except SpaceExhausted:
            raise _nothing("every point of the space has been asked") from None
        for trial in trials:
            typer.echo(json.dumps({"number": trial.number, "x": _x(study, trial.x)}) if as_json else _lines(trial))


def tell(
    address: Address,
    number: Number,
    value: Annotated[float, typer.Argument(help="The value measured at its point.")],
    name: Name = None,
    noise_var: Annotated[float, typer.Option(help="The variance of this value's error, if it is known.")] = 0.0,
    constraint: Annotated[
        list[float] | None,
        typer.Option(help="A measured constraint, satisfied if <= 0; repeat it for several."),
    ] = None,
    correct: Annotated[bool, typer.Option("--correct", help="Replace the value of the trial.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Add another measurement at its point.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell the value of a trial.

    It is on disk when the command ends. The same value told twice counts once. A different value for the same trial is
    refused, unless --correct or --again says what it is.
    """
    with open_for_command(address, name) as study:
        measured: dict[str, Any] = {"noise_var": noise_var, "constraints": constraint}
        before = _trial(study, number)
        if correct and again:
            raise ValueError("--correct and --again were given; give one of them")
        if correct:
            trial = study.correct(number, value, **{name: given for name, given in measured.items() if given})
        elif again and before is not None:
            trial = study.tell(before.x, value, **measured)
        else:
            if before is not None and (before.status, before.y) not in (("pending", None), ("told", value)):
                raise ValueError(
                    f"trial {number} {_has(before)} already; --correct replaces it, --again adds another measurement"
                )
            trial = study.tell(number, value, **measured)
        _print_trial(trial, as_json)


def fail(
    address: Address,
    number: Number,
    name: Name = None,
    why: Annotated[str | None, typer.Option(help="The reason.")] = None,
    as_json: AsJson = False,
) -> None:
    """Record that the evaluation of a trial failed. Later points avoid the region."""
    with open_for_command(address, name) as study:
        before = _trial(study, number)
        if before is not None and before.status not in ("pending", "failed"):
            raise ValueError(f"trial {number} {_has(before)} already; it cannot fail as well")
        _print_trial(study.fail(number, why), as_json)


# All of them


def best(
    address: Address,
    name: Name = None,
    recommended: Annotated[
        bool, typer.Option("--recommended", help="Compute the point to use when values are noisy.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the best value so far and its point.

    --recommended adds the point with the best posterior mean. It needs the model, so it takes as long as `gpmi ask`.
    The exit code is 3 if there is no value.
    """
    from gpmi.cli.run_commands import summary_json, summary_text

    with open_for_command(address, name) as study:
        found = study.best
        result = study.result(no_model=None if recommended else "--recommended computes it")
        if as_json and found is not None:
            typer.echo(json.dumps({"number": found.number, **summary_json(result)}))
        elif found is not None:
            typer.echo(summary_text(result))
        else:
            raise _nothing(f"the study {study.name!r} has no value yet in {len(study.trials)} trials")


def trials(
    address: Address,
    name: Name = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """List all trials as a table: pending, told and failed.

    --json prints a line of JSON for each trial.
    """
    from gpmi.trials.dataframe import listing
    from gpmi.trials.files import text_of

    with open_for_command(address, name) as study:
        if as_json and as_csv:
            raise ValueError("--json and --csv were given; give one of them")
        if as_json or as_csv:
            typer.echo(text_of(study, ".csv" if as_csv else ".jsonl"), nl=False)
        elif study.trials:
            typer.echo(listing(study.trials, study.space))


def verify(address: Address, name: Name = None, as_json: AsJson = False) -> None:
    """Check the log of a study and recompute every suggestion.

    The verdict is "equal", "equal up to rounding on another platform" or "different"; the exit code is 3 if it is the
    last of them.
    """
    with open_for_command(address, name) as study:
        found = study.verify()
        counts = {"entries": found.entries, "suggestions": found.suggestions, "verdict": found.verdict}
        lines = [f"{found.entries} entries, {found.suggestions} suggestions recomputed: {found.verdict}"]
        lines += found.problems
        if found.rounded:
            lines += [
                f"{len(found.rounded)} suggestions are equal up to rounding, the first of them:",
                found.rounded[0],
            ]
        details = {"problems": found.problems, "rounded": found.rounded}
        typer.echo(json.dumps({**counts, **details}) if as_json else "\n".join(lines))
        raise typer.Exit(0 if found else NOTHING)


def report(
    address: Address,
    out: Annotated[Path | None, typer.Option(help="The file to write; by default the study's name with .html.")] = None,
    name: Name = None,
) -> None:
    """Write a report about a study: one HTML file to look at, print or send.

    An earlier report of the same study is replaced, a report of another study never. It may take some seconds for a
    study of a thousand trials.
    """
    from gpmi.run.progress import lasting_console
    from gpmi.views.html import IDS, write

    begun: list[str] = []
    with (
        open_for_command(address, name) as study,
        lasting_console(stderr=True).status("reading the study") as status,
    ):

        def show(title: str) -> None:
            begun.append(title)
            status.update(f"writing the report, {len(begun)} of {len(IDS)}: {title}")

        typer.echo(write(study, _report_path(study, address, out), on_section=show))


def _report_path(study: "Study", address: str, out: Path | None) -> Path:
    """Return the file to write. Refuse one that is the report of another study or, without --out, any other file."""
    from gpmi.storage.opening import DEFAULT_NAME
    from gpmi.views.html.report import study_in

    own = study.name if study.name != DEFAULT_NAME or "://" in address else Path(address).stem
    stem = re.sub(r"[^\w.-]+", "-", own).strip("-.")[:80] or "report"
    path = Path(f"{stem}.html") if out is None else out
    if path.is_file():
        identity = study_in(path)
        if identity != study.identity and (identity is not None or out is None):
            what = "is no report" if identity is None else "is the report of another study"
            raise ValueError(f"the file {str(path)!r} exists and {what}; give another one by --out, or remove it")
    return path


# In and out


def export(
    address: Address,
    target: FileOrStorage,
    name: Name = None,
    optuna_name: OptunaName = None,
    as_json: AsJson = False,
) -> None:
    """Write all trials to a file, or as a new study to an Optuna storage.

    The address of an Optuna storage looks like sqlite:///optuna.db.
    """
    from gpmi.trials import files

    with open_for_command(address, name) as study:
        if "://" in target:
            from gpmi.integrations.optuna import to_storage

            to_storage(study, target, optuna_name or study.name)
        else:
            files.check_target(target)
            files.write_trials(study, target)
        count, where = len(study.trials), text.without_password(target)
        _print_count({"trials": count, "target": where}, f"wrote {count} trials to {where}", as_json)


def import_(
    address: Address,
    source: FileOrStorage,
    name: Name = None,
    optuna_name: OptunaName = None,
    as_json: AsJson = False,
) -> None:
    """Tell a study the values in a file or in an Optuna study.

    If one value is wrong, none is imported. A file needs a column for each parameter and one for y. Only values are
    imported, not failures or pending points. A row that was imported before counts once. Imported values do not count
    in the budget. Given a study file, a study that does not exist yet is created.
    """
    from gpmi.trials import files

    with open_for_command(address, name, make=True) as study:
        left_out: tuple[str, ...] = ()
        if "://" in source:
            from gpmi.integrations.optuna import from_storage

            _, found, left_out = from_storage(source, optuna_name, study.space)
        else:
            found = files.read_trials(source, study.space)
        told = [trial for trial in found if trial.status == "told"]
        for reason in left_out:
            typer.echo(f"gpmi: left out {reason}", err=True)
        if len(told) < len(found):
            typer.echo(f"gpmi: left out {len(found) - len(told)} trials without a value", err=True)
        before = len(study.trials)
        study.optimizer.tell_all(told)
        new, where = len(study.trials) - before, text.without_password(source)
        _print_count(
            {"new": new, "values": len(told), "left_out": len(left_out) + len(found) - len(told), "source": where},
            f"{where} has {len(told)} values, {new} of them new",
            as_json,
        )


# Helpers


def _trial(study: "Study", number: int) -> "Trial | None":
    """Return the trial with this number; None if there is none."""
    return next((trial for trial in study.trials if trial.number == number), None)


def _print_trial(trial: "Trial", as_json: bool) -> None:
    """Print the new state of a trial, as JSON or for a person."""
    if as_json:
        typer.echo(json.dumps({"number": trial.number, "status": trial.status, "y": trial.y, "why": trial.why}))
    else:
        note(repr(trial))


def _print_count(counts: dict[str, Any], message: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(counts))
    else:
        note(message)


def _has(trial: "Trial") -> str:
    return f"was told the value {trial.y!r}" if trial.status == "told" else f"is {trial.status}"


def _x(study: "Study", x: Any) -> Any:
    from gpmi.storage.serialization import point_to_json

    return point_to_json(study.space, x)


def _lines(trial: "Trial") -> str:
    """Format a trial for a person: its number, and its coordinates with all digits."""
    named = trial.x if isinstance(trial.x, Mapping) else {f"x{j}": value for j, value in enumerate(trial.x.tolist())}
    return "\n".join([f"trial {trial.number}", *(f"  {name} = {value}" for name, value in named.items())])


def _nothing(message: str) -> typer.Exit:
    typer.echo(f"gpmi: {message}", err=True)
    return typer.Exit(NOTHING)


COMMANDS: dict[Callable[..., None], str] = {
    ask: "study.db --json",
    tell: "study.db 3 -0.25 --noise-var 0.01 --constraint 0.5",
    fail: 'study.db 3 --why "the pump stopped"',
    best: "study.db --json",
    trials: "study.db --csv > trials.csv",
    verify: "study.db",
    report: "study.db --out run.html",
    export: "study.db trials.parquet",
    import_: "study.toml earlier.csv",
}
