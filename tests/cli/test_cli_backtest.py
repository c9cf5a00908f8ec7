"""`gpmi backtest`: what it prints, writes and returns to a shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gpmi
from gpmi import cli

OPTIONS = ("--value", "yield", "--seeds", 2, "--budget", 12, "--workers", 1)


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app(), ["backtest", *(str(a) for a in arguments)])


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{x},{kind},s{x}{kind},{50 - (x - 4) ** 2 + 3 * (kind == 'b')}" for x in range(6) for kind in "abc"]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["temperature,base,sample,yield", *lines, "7,,s7,3"]) + "\n")
    return path


def test_it_prints_the_result_that_python_has_and_draws_it(table: Path) -> None:
    result = invoke(table, *OPTIONS, "--ignore", "sample", "--batch", 3, "--batch", 4, "--as-done")
    assert result.exit_code == 0, result.output
    found = gpmi.backtest(table, "yield", ignore=["sample"], batch=[3, 4], as_done=True, seeds=2, budget=12)
    assert result.stdout == f"{found!r}\npicture: backtest.png\n"
    assert result.stderr == f"gpmi: {found.events[0].message}\n" and "1 of 19 rows" in result.stderr
    assert Path("backtest.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_one_line_and_draws_only_what_is_asked_for(table: Path) -> None:
    result = invoke(table, *OPTIONS, "--ignore", "sample", "--goal", "min", "--json")
    found = gpmi.backtest(table, "yield", ignore=["sample"], goal="min", seeds=2, budget=12)
    assert json.loads(result.stdout) == json.loads(json.dumps(found.to_json())) and result.stdout.count("\n") == 1
    assert result.stderr == "" and not Path("backtest.png").exists()
    assert invoke(table, *OPTIONS, "--ignore", "sample", "--json", "--out", "new/b.svg").exit_code == 0
    assert "<svg" in Path("new/b.svg").read_text()


def test_without_matplotlib_there_is_no_picture(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = invoke(table, *OPTIONS, "--ignore", "sample")
    assert result.exit_code == 0 and "picture" not in result.stdout and not Path("backtest.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--value", "Yield"), "gpmi: value is 'Yield', but the table has no such column; did you mean 'yield'?"),
        (("--value", "base"), "gpmi: value is 'base', a column that has 'a' in row 1; give numbers"),
        (("--value", "yield"), "--ignore sample leaves it out (in Python ignore=['sample'])"),
        (("--value", "yield", "--ignore", "bas"), "gpmi: ignore is 'bas', but the table has no such column"),
        (("--value", "yield", "--goal", "big"), "gpmi: goal is 'big'; give one of 'max', 'min'"),
        (("--value", "yield", "--out", "picture.txt"), "gpmi: out is 'picture.txt'; give a file that ends in .png"),
        (("--value", "yield", "--ignore", "sample", "--budget", "99"), "budget is 99, but the table has 18 different"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], message: str, table: Path) -> None:
    result = invoke(table, *arguments)
    assert result.exit_code == 1 and result.stdout == ""
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_a_file_that_does_not_exist_is_one_line(table: Path) -> None:
    result = invoke("none.csv", "--value", "yield")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1) and "'none.csv' cannot be used" in result.stderr


def test_ctrl_c_ends_it_as_in_shells(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gpmi.run.backtest.play", interrupted)
    assert invoke(table, *OPTIONS, "--ignore", "sample").exit_code == 130
