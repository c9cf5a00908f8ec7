"""Commands that write a study file and run its program: init, run and work."""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpmi._support.text import without_password
from gpmi.cli.common import INTERRUPTED, MISTAKE, NOTHING, existing_name, note, one_line_errors, study_errors

if TYPE_CHECKING:
    from gpmi.cli.studyfile import StudyFile
    from gpmi.run import Result
    from gpmi.trials import Goals

REASONS = 5  # reasons of failures that are printed, the most frequent first; our choice


def init(path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.toml")) -> None:
    """Write a commented study file that runs as it is."""
    from gpmi.cli.studyfile import EXAMPLE

    with one_line_errors(ValueError, OSError, remedy="give another path"):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(EXAMPLE)
        except FileExistsError:
            raise ValueError(f"{str(path)!r} exists already; give another name, as in gpmi init other.toml") from None
    typer.echo(f"wrote {path}; run it with: gpmi run {path}")


def run(
    path: Annotated[Path, typer.Argument(help="The study file; `gpmi init` writes one.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write all trials to a file: .csv, .jsonl or .parquet.")] = None,
    budget: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Optimise the value that a program computes, as described in a study file.

    Everything is stored in the database that the file names, by default study.db in the same folder. The same command
    continues the study, also after a crash or Ctrl-C. Run it several times in parallel to share the work.

    The exit code is 0 if there is a value, 1 if the file is wrong, 3 if every evaluation failed, 130 after Ctrl-C and
    143 after SIGTERM. Both of these also end the running programs. It is also 1 if the value of the first program that
    ends well cannot be read: the message says why, and its point is given back.

    A terminal shows the progress while it runs. Elsewhere stderr gets a line now and then, and one at the end.
    """
    from gpmi.cli.studyfile import read_study

    with study_errors():
        if budget is not None:
            raise ValueError(f"--budget is no option; the budget is set in the file, as budget = {budget} in {path}")
        _run(read_study(path), as_json, out, report=shlex.quote(str(path)))


def work(
    address: Annotated[str, typer.Argument(help="The path of the database, or its address.", metavar="URL")],
    name: Annotated[str | None, typer.Argument(help="The study; needed if the database has several.")] = None,
    path: Annotated[Path, typer.Option("--file", help="The study file with the program.")] = Path("study.toml"),
    workers: Annotated[
        int | None, typer.Option(help="Programs that run at the same time; by default as in the file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
) -> None:
    """Evaluate points of an existing study with the program of a study file, until its budget is spent.

    Start it as often as you like, on every machine that reaches the database. The parameters in the file must be those
    of the study. The exit codes are those of `gpmi run`.
    """
    from gpmi.cli.studyfile import read_study, worker_of

    with study_errors():
        file = worker_of(read_study(path), address, existing_name(address, name), workers)
        # A password is not printed, and without it the command would not work.
        has_password = without_password(address) != address
        _run(file, as_json, None, report=None if has_password else shlex.join([address, "--name", file.name]))


def _run(file: "StudyFile", as_json: bool, out: Path | None, report: str | None) -> None:
    """Run a study and print what was found. `report` are the arguments of `gpmi report` for it."""
    from gpmi.analysis.ledger import QUESTION
    from gpmi.cli.studyfile import check_program, open_study, run_study
    from gpmi.run import RepairNeeded
    from gpmi.trials import files

    check_program(file)
    if out is not None:
        files.check_target(out)
    database = without_password(file.database)
    with open_study(file) as study:
        before = sum(trial.status != "pending" for trial in study.trials)
        if before:
            continues = ", and continues" if study.budget is None or study.optimizer.evaluated < study.budget else ""
            note(f"the study {file.name!r} in {database} has {before} outcomes already{continues}")
        try:
            result = run_study(file, study, progress=True)
        except RepairNeeded as error:
            typer.echo(f"gpmi: the program ran, but its value cannot be read: {error}", err=True)
            raise typer.Exit(MISTAKE) from None
    lines = f"{summary_text(result)}\nstored in {database}" + (f"\n{QUESTION} gpmi report {report}" if report else "")
    typer.echo(json.dumps({**summary_json(result), "before": before}) if as_json else lines)
    if out is not None:
        files.write_trials(result, out)
    raise typer.Exit(INTERRUPTED if result.reason == "interrupted" else 0 if has_value(result) else NOTHING)


def has_value(result: "Result") -> bool:
    """Whether there is a feasible value, or a front where there are several objectives."""
    return result.y is not None or bool(result.shown_front())


def summary_json(result: "Result") -> dict[str, Any]:
    """Summarise a run for a script; with goals, also the outputs of the best trial, or the front."""
    count = Counter(trial.status for trial in result.trials)
    return {
        **{"goal": result.goal, "y": result.y, "x": _plain(result.x)},
        **(_goals_json(result, result.goals) if result.goals.named else {}),
        "recommended": _plain(result.recommended),
        "evaluations": count["told"] + count["stopped"] + count["failed"],
        "failed": count["failed"],
        **({"stopped_early": count["stopped"]} if result.space.fidelity is not None else {}),
        "stopped": result.reason,
        "seed": result.seed,
        "events": [{"kind": event.kind, "message": event.message} for event in result.events],
    }


def _goals_json(result: "Result", goals: "Goals") -> dict[str, Any]:
    from gpmi.trials.goal_summary import along_front, broken_limits, missing_outputs

    waiting = missing_outputs(result.trials, goals).items()
    about = {
        "goals": goals.to_json(),
        "infeasible": [trial.number for trial in result.trials if broken_limits(trial)],
        "waiting": [{"number": number, "outputs": list(names)} for number, names in waiting],
    }
    if goals.single is not None:
        best = next((trial for trial in result.trials if trial.feasible and trial.y == result.y), None)
        return {"outputs": None if best is None else dict(best.outputs), **about}
    front = [
        {"number": trial.number, "x": _plain(trial.x), "outputs": dict(trial.outputs)}
        for trial in along_front(result.shown_front(), goals)
    ]
    return {"goal": None, "front": front, **about}


def _plain(x: Any) -> Any:
    return x if x is None else dict(x) if isinstance(x, Mapping) else x.tolist()


def summary_text(result: "Result") -> str:
    """Summarise a run for a person: the result in a few lines, and why evaluations failed."""
    reasons = Counter(trial.why or "no reason given" for trial in result.trials if trial.status == "failed")
    lines = [
        f"failed {'once' if count == 1 else f'{count} times'}: {why}" for why, count in reasons.most_common(REASONS)
    ]
    others = len(reasons) - REASONS
    return "\n".join(
        [repr(result), *_front_lines(result), *lines, *([f"and {others} other reasons"] if others > 0 else [])]
    )


def _front_lines(result: "Result") -> list[str]:
    """Return the front as a table, below a blank line; nothing if there are no several objectives."""
    from gpmi.trials import front_listing

    front = result.shown_front()
    return ["", front_listing(front, result.space, result.goals), ""] if front else []


COMMANDS: dict[Callable[..., None], str] = {
    init: "&& gpmi run study.toml",
    run: "study.toml --out trials.csv --json",
    work: "postgresql://me@host/studies study --file study.toml",
}
