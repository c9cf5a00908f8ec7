"""Programs that report steps while they run: what is passed on when, how they are ended, and hostile output."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import FOR_EVER, is_running, leap, lines, press_when, wait_until

from gpmi.cli.command import Command, ProgramFailed, Reading, matching, program
from gpmi.cli.command.program import LONGEST, Lines

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are those of POSIX")

LAST = 9


def shell(text: str, **more: Any) -> Any:
    """The generator of a shell text whose parameter `epoch` has the steps 1 to 9."""
    return Command(text, ("x", "epoch"), steps=("epoch", 1), **more)({"x": 0.5, "epoch": LAST})


def printed(*said: str, **more: Any) -> list[tuple[int, Any]]:
    """What is passed on of these lines."""
    text = "\n".join(said).replace("'", "'\"'\"'")
    return list(shell(f"printf '%s\\n' '{text}'", **more))


def why(*said: str, **more: Any) -> str:
    """Why there is no value."""
    with pytest.raises(ProgramFailed) as raised:
        printed(*said, **more)
    reason = str(raised.value)
    assert len(reason) < 400 and reason.isprintable()
    return reason


def end(numbers: Path) -> None:
    found = lines(numbers)
    assert found
    wait_until(lambda: not any(is_running(int(number)) for number in found))


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "GRACE", 0.3)
    monkeypatch.setattr(program, "DRAIN", 0.3)


# What is passed on


def test_lines_with_a_step_and_a_value_are_passed_on_and_others_mean_nothing() -> None:
    said = ["loading", "1 0.5", "", "epoch 2 of 9", "2 1e-3  ", "  4\t-.25", "1.5 2.5", "7 apples", "9 0.75", "bye"]
    assert printed(*said) == [(1, 0.5), (2, 0.001), (4, -0.25), (9, 0.75)]


def test_a_step_is_passed_on_while_the_program_runs(tmp_path: Path) -> None:
    steps = shell("echo 1 0.5; while [ ! -e go ]; do sleep 0.01; done; echo 2 0.6; echo 9 1", cwd=tmp_path)
    assert next(steps) == (1, 0.5)
    (tmp_path / "go").touch()
    assert list(steps) == [(2, 0.6), (9, 1.0)]


def test_the_last_step_counts_when_the_program_has_ended_well(tmp_path: Path) -> None:
    assert list(shell("echo 9 1; echo saved > file", cwd=tmp_path)) == [(9, 1.0)]
    assert (tmp_path / "file").exists()
    with pytest.raises(ProgramFailed, match="exit code 3"):
        list(shell("echo 9 1; exit 3"))


def test_a_value_alone_at_the_end_is_that_of_the_last_step() -> None:
    assert printed("1 0.5", "3 0.6", "0.7") == [(1, 0.5), (3, 0.6), (9, 0.7)]
    assert printed("0.7") == [(9, 0.7)]
    assert printed("1 0.5", '{"y": 0.7}') == [(1, 0.5), (9, 0.7)]


def test_the_last_line_needs_no_end() -> None:
    assert list(shell("printf '1 0.5\\n9 0.75'")) == [(1, 0.5), (9, 0.75)]


def test_the_program_gets_the_last_step() -> None:
    assert list(shell('echo "$GPMI_EPOCH" 0.5')) == [(9, 0.5)]


def test_a_value_may_come_in_a_file_after_the_steps() -> None:
    text = "echo 1 0.5; echo '{\"y\": 2}' > $GPMI_RESULT_FILE"
    assert list(shell(text, reading=Reading("json"))) == [(1, 0.5), (9, 2.0)]


OUTPUTS = Reading(outputs={"loss": "loss", "seconds": "s"})


def test_outputs_come_as_an_object() -> None:
    said = ('1 {"loss": 0.5, "s": 2}', '9 {"loss": 0.25, "s": 18}')
    assert printed(*said, reading=OUTPUTS) == [(1, {"loss": 0.5, "seconds": 2.0}), (9, {"loss": 0.25, "seconds": 18.0})]
    assert "step 1: its value is 0.5; a JSON object" in why("1 0.5", reading=OUTPUTS)
    assert why('1 {"loss": 0.5}', reading=OUTPUTS) == "step 1: s is missing in its result, which has ['loss']"


def test_a_pattern_with_a_group_for_the_step_finds_every_one() -> None:
    reading = Reading("match", r"epoch (?P<step>\S+): accuracy (\S+)")
    said = ("epoch 1: accuracy 0.5", "1 7", "epoch 2: nothing", "x epoch 4: accuracy 0.6", "epoch 9: accuracy 0.75")
    assert printed(*said, reading=reading) == [(1, 0.5), (4, 0.6), (9, 0.75)]
    assert why("epoch one: accuracy 0.5", reading=reading) == "its step is one, not a whole number"
    assert why("epoch 1: accuracy 0.5", reading=reading) == "it ended at step 1, and epoch goes to 9"
    assert "no line of its output matches" in why("bye", reading=reading)
    named = Reading("match", r"(?P<y>\S+) at (?P<step>\d+)")
    assert printed("0.5 at 1", "0.75 at 9", reading=named) == [(1, 0.5), (9, 0.75)]


def test_with_another_pattern_steps_are_lines_of_their_own() -> None:
    reading = Reading("match", r"accuracy: (\S+)")
    assert printed("1 0.5", "accuracy: 0.75", reading=reading) == [(1, 0.5), (9, 0.75)]


# Hostile output


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (["3 0.5", "2 0.6"], "it wrote step 2 after step 3; steps must grow"),
        (["3 0.5", "3 0.6"], "it wrote step 3 after step 3; steps must grow"),
        (["0 0.5"], "it wrote step 0, but epoch goes from 1 to 9"),
        (["10 0.5"], "it wrote step 10, but epoch goes from 1 to 9"),
        (["9 0.5", "10 0.5"], "it wrote step 10, but epoch goes from 1 to 9"),
        (["999999999999 1"], "it wrote step 999999999999, but epoch goes from 1 to 9"),
        (["1 nan"], "step 1: y is nan"),
        (["1 -inf"], "step 1: y is -inf"),
        (["1 1e300"], "step 1: y is 1e+300, too large to square; give other units"),
        (["1 {"], "step 1: its result is not JSON: {"),
        (["1 " + "[" * 900], "its last line is"),
        (["1 {" + "[" * 900], "step 1: its result is not JSON"),
        (['1 {"z": 2}'], "step 1: y is missing in its result, which has ['z']"),
        (["1 0.5", "2 0.6"], "it ended at step 2, and epoch goes to 9"),
        (["garbage"], "not a number"),
        ([""], "it wrote no output"),
        (["9999999999999999 1"], "not a number"),
    ],
)  # fmt: skip
def test_what_is_no_curve_is_a_failure_with_its_reason(said: list[str], reason: str) -> None:
    assert reason in why(*said) or (reason == "its last line is" and "not a number" in why(*said))


def test_the_same_step_with_the_same_value_is_written_twice_by_some() -> None:
    assert printed("1 0.5", "1 0.5", "9 1", "9 1") == [(1, 0.5), (9, 1.0)]


def test_garbage_and_endless_lines_are_passed_over() -> None:
    code = """import sys
out = sys.stdout.buffer
out.write(b"1 0.5\\n" + bytes(range(256)) * 100 + b"\\n" + b"7" * 10_000_000 + b"\\n2 0.6\\n")
out.write(b"3 " + b"0" * 5000 + b"\\n9 1\\n")"""
    command = Command(("{python}", "-c", code.replace("{", "{{")), ("epoch",), steps=("epoch", 1))
    assert list(command({"epoch": LAST})) == [(1, 0.5), (2, 0.6), (9, 1.0)]


def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    found = Lines()
    for _ in range(100):
        found.add(b"1" * program.CHUNK)
        assert len(found._line) <= LONGEST + 1
    found.add(b"\n1 2\n3")
    assert found.take() == [b"1 2"] and found.take() == []
    found.end_line()
    assert found.take() == [b"3"]


@given(st.lists(st.binary(max_size=20), max_size=20), st.lists(st.integers(1, 9), max_size=20))
def test_lines_are_the_same_however_they_arrive(parts: list[bytes], sizes: list[int]) -> None:
    data, whole, pieces = b"\n".join(parts), Lines(), Lines()
    whole.add(data)
    at = 0
    for size in [*sizes, len(data)]:
        pieces.add(data[at : at + size])
        at += size
    for one in (whole, pieces):
        one.end_line()
    taken = whole.take()
    assert pieces.take() == taken == [part for part in data.split(b"\n") if part]


def test_a_pattern_that_never_ends_is_a_failure_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "TIMEOUT", 0.5)
    said = ("a" * 100 + "!",)
    assert "took more than 0.5 s on its output" in why(*said, reading=Reading("match", "(?P<step>a+)+b"))


# Ends


@pytest.mark.usefixtures("short_patience")
@pytest.mark.parametrize("trap", ["", "trap '' TERM;"])
def test_a_generator_that_is_closed_ends_the_program_and_all_that_it_started(trap: str, tmp_path: Path) -> None:
    text = f"{trap} echo $$ >> pids; (echo $$ >> pids; exec sleep 600) & echo 1 0.5; sleep 600; echo 9 1"
    steps = shell(text, cwd=tmp_path)
    assert next(steps) == (1, 0.5)
    steps.close()
    end(tmp_path / "pids")


def test_a_program_may_clean_up_when_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "GRACE", FOR_EVER)
    steps = shell("trap 'echo bye > said; exit' TERM; echo 1 0.5; sleep 600 & wait", cwd=tmp_path)
    next(steps)
    steps.close()
    assert (tmp_path / "said").read_text() == "bye\n"


def test_a_generator_that_was_not_begun_starts_nothing(tmp_path: Path) -> None:
    shell("touch begun", cwd=tmp_path).close()
    assert not (tmp_path / "begun").exists()


@pytest.mark.usefixtures("short_patience")
def test_a_wrong_step_ends_the_program_at_once(tmp_path: Path) -> None:
    steps = shell("echo $$ > pid; echo 12 0.5; sleep 600", cwd=tmp_path)
    with pytest.raises(ProgramFailed, match="it wrote step 12"):
        next(steps)
    end(tmp_path / "pid")


@pytest.mark.usefixtures("short_patience")
def test_a_time_out_ends_a_program_that_has_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leap(monkeypatch, program, (tmp_path / "ready").exists)
    steps = shell("echo $$ > pid; echo 1 0.5; touch ready; sleep 600", timeout=FOR_EVER, cwd=tmp_path)
    with pytest.raises(ProgramFailed, match="timeout: it took longer than 600 s"):
        list(steps)
    end(tmp_path / "pid")


def test_an_evaluation_that_is_not_wanted_any_more_is_ended(tmp_path: Path) -> None:
    command = Command("echo $$ > pid; echo 1 0.5; sleep 600", ("epoch",), cwd=tmp_path, steps=("epoch", 1))
    over: list[bool] = []
    steps = command({"epoch": LAST}, lambda: bool(over))
    assert isinstance(steps, Iterator) and next(steps) == (1, 0.5)
    over.append(True)
    with pytest.raises(program.Cancelled):
        next(steps)
    end(tmp_path / "pid")


def test_ctrl_c_ends_the_program_and_comes_through(tmp_path: Path) -> None:
    steps = shell("echo $$ > pid; echo 1 0.5; sleep 600", cwd=tmp_path)
    next(steps)
    waits: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        press_when(lambda: waits)
        waits.append(True)
        next(steps)
    steps.close()
    end(tmp_path / "pid")


def test_a_program_that_is_run_again_reports_only_later_steps(tmp_path: Path) -> None:
    text = "echo 1 0.5; echo 2 0.6; [ -e once ] || { touch once; exit 3; }; echo 3 0.7; echo 9 1"
    assert list(shell(text, retries=1, cwd=tmp_path)) == [(1, 0.5), (2, 0.6), (3, 0.7), (9, 1.0)]
    with pytest.raises(ProgramFailed, match=r"exit code 3: 1 0.5 \(attempt 3\)"):
        list(shell("echo 1 0.5; exit 3", retries=2))


def test_a_program_that_cannot_be_started_is_a_failure() -> None:
    command = Command(("./there-is-none",), ("epoch",), steps=("epoch", 1))
    with pytest.raises(ProgramFailed, match="cannot be started"):
        next(command({"epoch": LAST}))  # type: ignore[call-overload]


def test_gigabytes_of_output_are_read_and_not_kept() -> None:
    begin = time.monotonic()
    code = "import sys\nfor i in range(300): sys.stdout.write('x' * 1_000_000)\nprint()\nprint('9 1')"
    command = Command((sys.executable, "-c", code), ("epoch",), steps=("epoch", 1))
    assert list(command({"epoch": LAST})) == [(9, 1.0)] and time.monotonic() - begin < FOR_EVER
