"""`gpmi init` and `gpmi run`: a study file is written, and run."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gpmi.cli.messages import INTERRUPTED, NO_VALUE, one_line

if TYPE_CHECKING:
    import typer

    from gpmi.result import Result

REASONS = 5  # reasons of failures that are printed, the most frequent first; our choice


def add_init(commands: "typer.Typer") -> None:
    import typer

    @commands.command("init", epilog="Example: gpmi init && gpmi run study.toml")
    def init(
        path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.toml"),
    ) -> None:
        """Write a study file with comments, which runs as it is."""
        from gpmi.studyfile import EXAMPLE

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

        The exit code is 0 if there is a value, 1 if the file is wrong, 3 if every evaluation failed, 130 after Ctrl-C.
        While it runs, a terminal shows how far it is; nothing is shown elsewhere.
        """
        from gpmi import exchange
        from gpmi.studyfile import check_program, read_study, run_study

        with one_line(ValueError, OSError):
            study = read_study(path)
            check_program(study)
            if out is not None:
                exchange.check_target(out)
        with one_line(ValueError, TypeError, ImportError, OSError):
            result = run_study(study, progress=sys.stderr.isatty())
            typer.echo(json.dumps(summary(result)) if as_json else words(result))
            if out is not None:
                exchange.write_trials(result, out)
        raise typer.Exit(INTERRUPTED if result.reason == "interrupted" else NO_VALUE if result.y is None else 0)


def summary(result: "Result") -> dict[str, Any]:
    """What a script wants to know of a run."""
    count = Counter(trial.status for trial in result.trials)
    return {
        "goal": result.goal,
        "y": result.y,
        "x": _plain(result.x),
        "recommended": _plain(result.recommended),
        "evaluations": len(result.trials) - count["rejected"],
        "failed": count["failed"],
        "stopped": result.reason,
        "seed": result.seed,
        "events": [{"kind": event.kind, "message": event.message} for event in result.events],
    }


def _plain(x: Any) -> Any:
    return None if x is None else dict(x)


def words(result: "Result") -> str:
    """What a person wants to know: the result in a few lines, and why evaluations failed."""
    reasons = Counter(trial.why or "no reason given" for trial in result.trials if trial.status == "failed")
    lines = [f"failed {count} times: {why}" for why, count in reasons.most_common(REASONS)]
    more = len(reasons) - REASONS
    return "\n".join([repr(result), *lines, *([f"and {more} other reasons"] if more > 0 else [])])
