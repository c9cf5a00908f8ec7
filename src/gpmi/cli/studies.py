"""`gpmi init`, `gpmi run` and `gpmi work`: a study file is written, and run."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gpmi.cli.messages import INTERRUPTED, NOTHING, one_line, remark

if TYPE_CHECKING:
    import typer

    from gpmi.cli.studyfile import StudyFile
    from gpmi.run.result import Result

REASONS = 5  # reasons of failures that are printed, the most frequent first; our choice


def add_init(commands: "typer.Typer") -> None:
    import typer

    @commands.command("init", epilog="Example: gpmi init && gpmi run study.toml")
    def init(
        path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.toml"),
    ) -> None:
        """Write a study file with comments, which runs as it is."""
        from gpmi.cli.studyfile import EXAMPLE

        with (
            one_line(OSError, remedy="give another path, or remove what is there"),
            path.open("x", encoding="utf-8") as file,
        ):
            file.write(EXAMPLE)
        typer.echo(f"{path}: written; gpmi run {path}")


def add_run(commands: "typer.Typer") -> None:
    import typer

    @commands.command("run", epilog="Example: gpmi run study.toml --out trials.csv --json")
    def run(
        path: Annotated[Path, typer.Argument(help="The study file; `gpmi init` writes one.")],
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
        out: Annotated[Path | None, typer.Option(help="Write all trials there: .csv, .jsonl or .parquet.")] = None,
    ) -> None:
        """Optimise what a program computes, as a study file says.

        Everything is kept in the database that the file names, study.db beside it by default. The same command goes on
        where it was, after a crash or Ctrl-C; several at the same time share the work.

        The exit code is 0 if there is a value, 1 if the file is wrong, 3 if every evaluation failed, 130 after Ctrl-C
        and 143 after SIGTERM, which both end the programs that run.
        While it runs, a terminal shows how far it is; elsewhere stderr gets a line now and then, and one at the end.
        """
        from gpmi.cli.opened import mistakes
        from gpmi.cli.studyfile import read_study

        with mistakes():
            _run(read_study(path), as_json, out)


def add_work(commands: "typer.Typer") -> None:
    import typer

    @commands.command("work", epilog="Example: gpmi work postgresql://me@host/studies study --file study.toml")
    def work(
        address: Annotated[str, typer.Argument(help="The path of the database, or its address.", metavar="URL")],
        name: Annotated[str | None, typer.Argument(help="The study; needed where there are several.")] = None,
        path: Annotated[Path, typer.Option("--file", help="The study file with the program.")] = Path("study.toml"),
        workers: Annotated[int | None, typer.Option(help="Programs at the same time; else as the file says.")] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
    ) -> None:
        """Evaluate points of a study that exists, with the program of a study file, until its budget is spent.

        Start it as often as you like, on as many machines as reach the database. The parameters of the file must be
        those of the study. Exit codes as of `gpmi run`.
        """
        from gpmi.cli.opened import chosen, mistakes
        from gpmi.cli.studyfile import read_study, worker_of

        with mistakes():
            _run(worker_of(read_study(path), address, chosen(address, name), workers), as_json, None)


def _run(file: "StudyFile", as_json: bool, out: Path | None) -> None:
    import typer

    from gpmi._support.text import without_password
    from gpmi.cli.studyfile import check_program, open_study, run_study
    from gpmi.trials import files

    check_program(file)
    if out is not None:
        files.check_target(out)
    kept = without_password(file.database)
    with open_study(file) as study:
        before = sum(trial.status != "pending" for trial in study.trials)
        if before:
            goes_on = " and goes on" if study.budget is None or study.optimizer.evaluated < study.budget else ""
            remark(f"the study {file.name!r} in {kept} has {before} outcomes already{goes_on}")
        result = run_study(file, study, progress=True)
    lines = f"{words(result)}\nkept in {kept}: gpmi report {kept} shows all of it"
    typer.echo(json.dumps({**summary(result), "before": before}) if as_json else lines)
    if out is not None:
        files.write_trials(result, out)
    raise typer.Exit(INTERRUPTED if result.reason == "interrupted" else NOTHING if result.y is None else 0)


def summary(result: "Result") -> dict[str, Any]:
    """What a script wants to know of a run."""
    count = Counter(trial.status for trial in result.trials)
    return {
        "goal": result.goal,
        "y": result.y,
        "x": _plain(result.x),
        "recommended": _plain(result.recommended),
        "evaluations": count["told"] + count["failed"],
        "failed": count["failed"],
        "stopped": result.reason,
        "seed": result.seed,
        "events": [{"kind": event.kind, "message": event.message} for event in result.events],
    }


def _plain(x: Any) -> Any:
    return x if x is None else dict(x) if isinstance(x, Mapping) else x.tolist()


def words(result: "Result") -> str:
    """What a person wants to know: the result in a few lines, and why evaluations failed."""
    reasons = Counter(trial.why or "no reason given" for trial in result.trials if trial.status == "failed")
    lines = [
        f"failed {'once' if count == 1 else f'{count} times'}: {why}" for why, count in reasons.most_common(REASONS)
    ]
    more = len(reasons) - REASONS
    return "\n".join([repr(result), *lines, *([f"and {more} other reasons"] if more > 0 else [])])
