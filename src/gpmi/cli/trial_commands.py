"""Commands about the trials of a study, from ask, tell, step and fail to export and import."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from gpmi._support import text
from gpmi.cli.common import NOTHING, note, open_for_command

if TYPE_CHECKING:
    from gpmi.analysis import Chosen
    from gpmi.run.study import Study
    from gpmi.trials import Trial
    from gpmi.views.run_view import RunView

Address: TypeAlias = Annotated[
    str, typer.Argument(metavar="STUDY", help="The path or address of a study's database, or its study file.")
]
Name: TypeAlias = Annotated[str | None, typer.Option(help="The name of the study; needed if the database has several.")]
Number: TypeAlias = Annotated[int, typer.Argument(help="The number of the trial.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FileOrStorage: TypeAlias = Annotated[
    str, typer.Argument(help="A .csv, .jsonl or .parquet file, or the address of an Optuna storage.")
]
# The number is one that Python's float reads: only finite numbers have digits.
_CONDITION = re.compile(
    r"\s*(?P<output>.*?\S)\s*(?P<sign>>=|<=|>|<)\s*(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*", re.ASCII
)
OptunaName: TypeAlias = Annotated[str | None, typer.Option(help="The name of the study in Optuna's storage.")]


PLATE = 96  # wells of the plate that --plate writes

# One trial


def ask(
    address: Address,
    name: Name = None,
    count: Annotated[int, typer.Option("--count", "-n", help="Number of points to ask for.")] = 1,
    same: Annotated[
        list[str] | None, typer.Option(help="A parameter that all points share; repeat it for several.")
    ] = None,
    plate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the points as the wells of a plate to a .csv or .html file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask for the next point to evaluate.

    It stays reserved for you until you tell its value, or that it failed. Given a study file, a study that does not
    exist yet is created. --json prints a line for each point, with its number and x. The exit code is 3 if no point is
    left.

    --plate names the wells A1 to H12, row by row, for up to 96 points.
    """
    from gpmi.space import SpaceExhausted

    if plate is not None and (plate.suffix not in (".csv", ".html") or count > PLATE):
        wrong = (
            f"{plate.name!r} is no .csv or .html file"
            if count <= PLATE
            else f"-n is {count}: a plate has {PLATE} wells"
        )
        raise typer.BadParameter(f"{wrong}.", param_hint="'--plate'")

    with open_for_command(address, name, make=True) as study:
        try:
            trials = study.ask(count, lease=math.inf, same=same or None)
        except SpaceExhausted:
            raise _nothing("every point of the space has been asked") from None
        if plate is not None:
            from gpmi.trials.plate import plate as plate_of

            sheet = plate_of(trials)
            text_of = sheet.csv_text if plate.suffix == ".csv" else sheet.page
            plate.write_text(text_of(), encoding="utf-8", newline="")
        for trial in trials:
            typer.echo(json.dumps({"number": trial.number, "x": _x(study, trial.x)}) if as_json else _lines(trial))


def tell(
    address: Address,
    number: Number,
    value: Annotated[
        list[str], typer.Argument(help="The value measured at its point; with goals, outputs such as yield=71.2.")
    ],
    name: Name = None,
    noise_var: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FLOAT", help="The variance of this value's error, if it is known; yield=0.04 for one output."
        ),
    ] = None,
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

    In a study with goals give outputs by name: yield=71.2 cost=3.4. Some may follow later, by the same command.
    --correct replaces the outputs that are given, and leaves the others.
    """
    plain, outputs = numbers_in("VALUE", value)
    if len(plain) > 1:
        raise typer.BadParameter("there are several numbers; give one, or outputs by name.", param_hint="'VALUE'")
    common, bars = numbers_in("--noise-var", noise_var or [])
    with open_for_command(address, name) as study:
        goals = study.optimizer.goals
        y = goals.entered(plain, outputs)
        measured: dict[str, Any] = {"noise_var": goals.entered_noise(common, bars), "constraints": constraint}
        before = _trial(study, number)
        if correct and again:
            raise ValueError("--correct and --again were given; give one of them")
        if correct:
            trial = study.correct(number, y, **{name: given for name, given in measured.items() if given})
        elif before is None:
            trial = study.tell(number, y, **measured)
        elif again:
            trial = study.tell(before.x, y, **measured)
        else:
            trial = _tell_once(study, before, y, measured)
        _print_trial(trial, as_json)


def step(
    address: Address,
    number: Number,
    at: Annotated[int, typer.Argument(metavar="STEP", help="The step of its fidelity, such as an epoch.")],
    value: Annotated[list[str], typer.Argument(help="The value there; with goals, outputs such as yield=71.2.")],
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Report the value of a trial at a step, and print whether to go on: continue or stop.

    "stop" means that its value at the last step will hardly be the best. The value at the last step is that of the
    trial, as by `gpmi tell`, and the answer is "stop". What was reported is on disk when the command ends.
    """
    plain, outputs = numbers_in("VALUE", value)
    if len(plain) > 1:
        raise typer.BadParameter("there are several numbers; give one, or outputs by name.", param_hint="'VALUE'")
    with open_for_command(address, name) as study:
        answer = study.report(number, at, study.optimizer.goals.entered(plain, outputs))
        typer.echo(json.dumps({"number": number, "step": at, "answer": answer}) if as_json else answer)


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
        if before is not None and before.status not in ("pending", "stopped", "failed"):
            raise ValueError(f"trial {number} {_has(before)} already; it cannot fail as well")
        _print_trial(study.fail(number, why), as_json)


def confirm(address: Address, number: Number, name: Name = None, as_json: AsJson = False) -> None:
    """Say that the value of a trial is right, although it does not fit the others.

    Until then gpmi leaves a doubtful value out. Correct a wrong one with `gpmi tell --correct`.
    """
    with open_for_command(address, name) as study:
        _print_trial(study.confirm(number), as_json)


# All of them


def best(
    address: Address,
    name: Name = None,
    recommended: Annotated[
        bool, typer.Option("--recommended", help="Compute the point to use when values are noisy.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the best value so far and its point; with several objectives, the front as a table.

    --recommended adds the point with the best posterior mean, or compares the posterior means of several objectives
    where values are noisy. It needs the model, so it takes as long as `gpmi ask`. The exit code is 3 if there is no
    value, or no feasible one.
    """
    from gpmi.cli.run_commands import has_value, summary_json, summary_text

    with open_for_command(address, name) as study:
        best_trial = study.best
        result = study.result(no_model=None if recommended else "add --recommended")
        if not has_value(result):
            told = [trial for trial in result.trials if trial.status == "told"]
            what = "no feasible value" if told and not any(trial.feasible for trial in told) else "no value"
            raise _nothing(f"the study {study.name!r} has {what} yet in {len(study.trials)} trials")
        if as_json:
            number = {} if best_trial is None else {"number": best_trial.number}
            typer.echo(json.dumps({**number, **summary_json(result)}))
        else:
            typer.echo(summary_text(result))


def choose(
    address: Address,
    objective: Annotated[
        str, typer.Argument(metavar="OUTPUT=max|min|match", help="The output to optimise, such as cost=min.")
    ],
    name: Name = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help='A condition such as "yield >= 70"; repeat it for several.'),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="The probability with which the point meets all conditions; 0.9 by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Choose a point of a study with goals: the best one that meets conditions.

    It is the point with the best predicted output among those that meet all conditions, and the limits of the goals,
    with the given probability. It need not have been evaluated. It takes as long as `gpmi ask`. The exit code is 3 if
    no point is that likely to meet them: what is printed is then the measured point that falls short least, and beside
    it the point most likely to meet them.
    """
    from gpmi.analysis import CONFIDENCE

    output, _, direction = objective.rpartition("=")
    wanted = CONFIDENCE if confidence is None else confidence
    with open_for_command(address, name) as study:
        if not output:
            raise ValueError(f"objective is {objective!r}; name an output and max, min or match, as in cost=min")
        study.optimizer.goals.check_named("it has no front")
        if not any(trial.status == "told" for trial in study.trials):
            raise _nothing(f"the study {study.name!r} has no value yet in {len(study.trials)} trials")
        argument = f"{output}_" if output in ("self", "where", "confidence", "fixed") else output  # names of arguments
        chosen = study.choose(conditions(where or []), wanted, **{argument: direction})
        said = _predicted(study, chosen)
        said["trial"] = None if chosen.trial is None else chosen.trial.number
        if chosen.untried is not None:
            said["untried"] = _predicted(study, chosen.untried)
        typer.echo(json.dumps(said) if as_json else repr(chosen))
        if chosen.probability < wanted:
            raise _nothing(f"no point meets everything with a probability of {wanted:g}")


def _predicted(study: "Study", chosen: "Chosen") -> dict[str, Any]:
    """Return a chosen point with what is predicted there."""
    outputs = {name: {"mean": prediction.mean, "sd": prediction.sd} for name, prediction in chosen.outputs.items()}
    return {"x": _x(study, chosen.x), "outputs": outputs, "probability": chosen.probability}


def trials(
    address: Address,
    name: Name = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """List all trials as a table: pending, told and failed.

    --json prints a line of JSON for each trial.
    """
    from gpmi.trials import files, listing

    with open_for_command(address, name) as study:
        if as_json and as_csv:
            raise ValueError("--json and --csv were given; give one of them")
        if as_json or as_csv:
            typer.echo(files.text_of(study, ".csv" if as_csv else ".jsonl"), nl=False)
        elif study.trials:
            typer.echo(listing(study.trials, study.space, study.optimizer.goals))


def verify(address: Address, name: Name = None, as_json: AsJson = False) -> None:
    """Check the log of a study and recompute every suggestion.

    The verdict is "equal", "equal up to rounding on another platform" or "different"; the exit code is 3 if it is the
    last of them.
    """
    with open_for_command(address, name) as study:
        verification = study.verify()
        counts = {
            "entries": verification.entries,
            "suggestions": verification.suggestions,
            "verdict": verification.verdict,
        }
        lines = [
            f"{verification.entries} entries, {verification.suggestions} suggestions recomputed: {verification.verdict}"
        ]
        lines += verification.problems
        if verification.rounded:
            lines += [
                f"{len(verification.rounded)} suggestions are equal up to rounding, the first of them:",
                verification.rounded[0],
            ]
        details = {"problems": verification.problems, "rounded": verification.rounded}
        typer.echo(json.dumps({**counts, **details}) if as_json else "\n".join(lines))
        raise typer.Exit(0 if verification else NOTHING)


def report(
    address: Address,
    out: Annotated[Path | None, typer.Option(help="The file to write; by default the study's name with .html.")] = None,
    name: Name = None,
) -> None:
    """Write a report about a study: one HTML file to look at, print or send.

    An earlier report of the same study is replaced, a report of another study never. It may take some seconds for a
    study of a thousand trials.

    Its path is printed, and on stderr the answer to "can I stop?".
    """
    from gpmi.run.progress import lasting_console
    from gpmi.views.html import IDS, write
    from gpmi.views.reading import view_of

    begun: list[str] = []
    with (
        open_for_command(address, name) as study,
        lasting_console(stderr=True).status("reading the study") as status,
    ):

        def show(title: str) -> None:
            begun.append(title)
            status.update(f"writing the report, {len(begun)} of {len(IDS)}: {title}")

        path = _report_path(study, address, out)
        run = view_of(study)
        written, said = write(run, path, on_section=show), _advice(run)
    typer.echo(said, err=True)
    typer.echo(written)


def _advice(run: "RunView") -> str:
    """Return whether to stop, or why that is not known. The report is written even if the model fails."""
    from gpmi.analysis.ledger import QUESTION
    from gpmi.views.html.overview import advised

    try:
        return str(advised(run))
    except Exception as error:
        return f"{QUESTION} is not known, because the model failed: {text.error_message(error)}"


def _report_path(study: "Study", address: str, out: Path | None) -> Path:
    """Return the file to write. Refuse one that is the report of another study or, without --out, any other file."""
    from gpmi.storage.opening import DEFAULT_NAME
    from gpmi.views.html.report import study_in

    title = study.name if study.name != DEFAULT_NAME or "://" in address else Path(address).stem
    stem = re.sub(r"[^\w.-]+", "-", title).strip("-.")[:80] or "report"
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

    If one value is wrong, none is imported. A file needs a column for each parameter and one for y, or one for each
    output that was measured. Only values are imported, not failures or pending points. A row that was imported before
    counts once. Imported values do not count in the budget. Given a study file, a study that does not exist yet is
    created.
    """
    from gpmi.trials import files

    with open_for_command(address, name, make=True) as study:
        goals, left_out = study.optimizer.goals, tuple[str, ...]()
        if "://" in source:
            from gpmi.integrations.optuna import from_storage

            _, read, left_out = from_storage(source, optuna_name, study.space, goals)
        else:
            read = files.read_trials(source, study.space, goals)
        told = [trial for trial in read if trial.status == "told"]
        for reason in left_out:
            typer.echo(f"gpmi: left out {reason}", err=True)
        if len(told) < len(read):
            typer.echo(f"gpmi: left out {len(read) - len(told)} trials without a value", err=True)
        before = {trial.number: len(trial.outputs) for trial in study.trials}
        study.optimizer.tell_all(told)
        # A row is new if it is a new trial, or has outputs for a trial that waits for them.
        new = sum(before.get(trial.number, -1) < len(trial.outputs) for trial in study.trials)
        where = text.without_password(source)
        _print_count(
            {"new": new, "values": len(told), "left_out": len(left_out) + len(read) - len(told), "source": where},
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
        about = {"outputs": dict(trial.outputs), "unmet": list(trial.unmet)} if trial.outputs else {}
        about |= {} if trial.doubt is None else {"doubt": trial.doubt}
        said = {"number": trial.number, "status": trial.status, "y": trial.y, "why": trial.why}
        typer.echo(json.dumps(said | about))
    else:
        note(repr(trial))
        if trial.doubt is not None:
            answers = "gpmi confirm says that it is right; gpmi tell --correct replaces it"
            note(f"doubtful: {trial.doubt} {answers}")


def _print_count(counts: dict[str, Any], message: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(counts))
    else:
        note(message)


def _has(trial: "Trial") -> str:
    if trial.outputs:
        return f"was told {text.some_of([f'{name} = {value!r}' for name, value in trial.outputs.items()], text.POINT)}"
    return f"was told the value {trial.y!r}" if trial.status == "told" else f"is {trial.status}"


# Values in words


def numbers_in(argument: str, words: Sequence[str]) -> tuple[list[float], dict[str, float]]:
    """Return the plain numbers among the words, and those with a name: "yield=71.2"."""
    plain, named = list[float](), dict[str, float]()
    for word in words:
        name, sign, number = word.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            if not sign:
                raise typer.BadParameter(f"{word!r} is not a valid float.", param_hint=f"'{argument}'") from None
            raise typer.BadParameter(
                f"{word!r}: {number!r} is not a number; write {name}=1.5.", param_hint=f"'{argument}'"
            ) from None
        if name in named:
            raise typer.BadParameter(f"{name} was given twice; give it once.", param_hint=f"'{argument}'")
        if sign:
            named[name] = value
        else:
            plain.append(value)
    return plain, named


def _tell_once(study: "Study", before: "Trial", y: Any, measured: dict[str, Any]) -> "Trial":
    """Tell a value, or the outputs that the trial has not got yet; refuse another value of what it has."""
    noise, present = measured["noise_var"], list[str]()
    if isinstance(y, dict) and before.status == "told":
        present = [name for name in y if name in before.outputs]
        bars = noise if isinstance(noise, dict) else dict.fromkeys(present, noise) if noise else {}
        same_bars = all(
            before.output_noise_var.get(name, 0.0) == bars.get(name, 0.0) for name in present if name in bars
        )
        fits = same_bars and all(before.outputs[name] == y[name] for name in present)
    else:
        fits = (before.status, before.y) in (("pending", None), ("stopped", None), ("told", y))
    if not fits:
        raise ValueError(
            f"trial {before.number} {_has(before)} already; --correct replaces it, --again adds another measurement"
        )
    if present:
        y = {name: value for name, value in y.items() if name not in present}
        if isinstance(noise, dict):
            measured = {**measured, "noise_var": {name: bar for name, bar in noise.items() if name not in present}}
    return before if y == {} else study.tell(before.number, y, **measured)


def conditions(words: Sequence[str]) -> dict[str, Any]:
    """Return conditions on outputs for `Study.choose`: "yield >= 70" by output, or a pair (lo, hi) of two of them."""
    ranges: dict[str, Any] = {}
    for word in words:
        parts = _CONDITION.fullmatch(word)
        if parts is None:
            raise ValueError(f'where is {word!r}; give an output, >= or <=, and a number, as in "yield >= 70"')
        name, sign, number = parts["output"], parts["sign"][0], parts["number"]
        if name not in ranges:
            ranges[name] = f"{sign}= {number}"
            continue
        other = ranges[name]
        if not isinstance(other, str) or other[0] == sign:
            raise ValueError(f"where has {name} twice; give one condition with >= and one with <=, at most")
        limits = {other[0]: float(other[3:]), sign: float(number)}
        ranges[name] = (limits[">"], limits["<"])
    return ranges


def _x(study: "Study", x: Any) -> Any:
    from gpmi.storage import point_to_json

    return point_to_json(study.space, x)


def _lines(trial: "Trial") -> str:
    """Format a trial for a person: its number, and its coordinates with all digits."""
    named = trial.x if isinstance(trial.x, Mapping) else {f"x{j}": value for j, value in enumerate(trial.x.tolist())}
    return "\n".join([f"trial {trial.number}", *(f"  {name} = {value}" for name, value in named.items())])


def _nothing(message: str) -> typer.Exit:
    typer.echo(f"gpmi: {message}", err=True)
    return typer.Exit(NOTHING)


COMMANDS: dict[Callable[..., None], str] = {
    ask: "study.db -n 96 --same temperature --plate plate.csv",
    tell: "study.db 3 -0.25 --noise-var 0.01 --constraint 0.5",
    step: "study.db 3 12 0.93",
    fail: 'study.db 3 --why "the pump stopped"',
    confirm: "study.db 3",
    best: "study.db --json",
    choose: 'study.db cost=min --where "yield >= 70" --where "purity >= 0.95"',
    trials: "study.db --csv > trials.csv",
    verify: "study.db",
    report: "study.db --out run.html",
    export: "study.db trials.parquet",
    import_: "study.toml earlier.csv",
}
