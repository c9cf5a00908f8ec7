"""A program as an evaluation: whatever it writes or leaves behind, there is a value or a failure with its reason."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import FOR_EVER, is_running, leap, lines, press_when, wait_until

from gpmi.cli.command import Command, Reading, matching, program
from gpmi.cli.command.templates import arguments, filled, placeholders, variable
from gpmi.run.evaluation import Failure, Measured

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are those of POSIX")

PYTHON = sys.executable


def shell(text: str, **more: Any) -> Measured | Failure:
    """The answer of a shell text."""
    return Command(text, ("x",), **more)({"x": 0.5})


def python(code: str, **more: Any) -> Measured | Failure:
    code = code.replace("{", "{{").replace("}", "}}")
    return Command(("{python}", "-c", code), ("x",), **more)({"x": 0.5})


def why(answer: Measured | Failure) -> str:
    assert isinstance(answer, Failure), answer
    assert len(answer.why) < 400 and answer.why.isprintable()
    return answer.why


def end(numbers: Path) -> None:
    """Wait until the processes whose numbers are in a file have ended: SIGKILL needs a moment."""
    found = lines(numbers)
    assert found
    wait_until(lambda: not any(is_running(int(number)) for number in found))


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "GRACE", 0.3)
    monkeypatch.setattr(program, "DRAIN", 0.3)


# What goes in

HOSTILE = [
    "; touch canary",
    "$(touch canary)",
    "`touch canary`",
    "| touch canary",
    "&& touch canary",
    "\n touch canary\n",
    "' ; touch canary ; '",
    '" ; touch canary ; "',
    "> canary",
    "${IFS}touch${IFS}canary",
    "{x}",
    "{{x}}",
    "%s %n",
    "\\",
    "*",
    "~",
    "-rf",
    "--",
    "",
    " ",
    "\t\r\n",
    "a=b",
    "=",
    "é ü 漢 🙂",
    "\u202e\x1b[31m\x07",
    "x" * 50_000,
]
ECHO = """import sys, os, json
given = json.load(open(os.environ['GPMI_PARAMS_FILE']))['v']
json.dump({'arg': sys.argv[1], 'env': os.environ['GPMI_V'], 'file': given}, open('said', 'w'))
print(1)"""


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_value_reaches_the_program_as_it_is_and_no_shell_reads_it(value: str, tmp_path: Path) -> None:
    command = Command((PYTHON, "-c", ECHO.replace("{", "{{").replace("}", "}}"), "--v={v}"), ("v",), cwd=tmp_path)
    assert command({"v": value}) == Measured(1.0)
    said = json.loads((tmp_path / "said").read_text())
    assert said == {"arg": f"--v={value}", "env": value, "file": value}
    assert [path.name for path in tmp_path.iterdir()] == ["said"]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_shell_gets_values_in_its_environment_and_runs_nothing_of_them(value: str, tmp_path: Path) -> None:
    command = Command('printf %s "$GPMI_V" > said; echo 1', ("v",), cwd=tmp_path)
    assert command({"v": value}) == Measured(1.0)
    assert (tmp_path / "said").read_bytes().decode() == value
    assert [path.name for path in tmp_path.iterdir()] == ["said"]


@given(st.dictionaries(st.sampled_from(["a", "b", "c d"]), st.text(), min_size=3))
def test_a_template_is_one_argument_whatever_the_values_are(values: dict[str, str]) -> None:
    made = arguments(["p", "--a={a}", "{b}{c d}", "{{a}}"], values)
    assert made == ["p", f"--a={values['a']}", values["b"] + values["c d"], "{a}"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_keeps_all_its_digits(x: float) -> None:
    from gpmi.cli.command.templates import text_of

    assert float(text_of(x)) == x and text_of(True) == "true" and text_of(3) == "3" and text_of("3") == "3"


def test_arguments_of_an_inactive_parameter_are_left_out_with_their_group() -> None:
    templates = ("p", ("--depth", "{depth}"), "--x={x}", "--d={depth}")
    assert arguments(templates, {"x": "1"}) == ["p", "--x=1"]
    assert arguments(templates, {"x": "1", "depth": "2"}) == ["p", "--depth", "2", "--x=1", "--d=2"]


def test_names_become_variables_and_those_of_an_outer_evaluation_do_not_shine_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert variable("learning rate") == "GPMI_LEARNING_RATE"
    monkeypatch.setenv("GPMI_DEPTH", "7")
    command = Command('echo "${GPMI_DEPTH-1}"', ("x", "depth"))
    assert command({"x": 0.5}) == Measured(1.0)
    assert command({"x": 0.5, "depth": 3}) == Measured(3.0)


@pytest.mark.parametrize(
    ("run", "names", "words"),
    [
        (("p", "{y}"), ("x",), "{y}, which is not a parameter; give one of x, python, params_file, result_file"),
        (("p", "{lerning}"), ("learning",), "did you mean {learning}?"),
        (("p", "{x.__class__}"), ("x",), "which is not a parameter"),
        (("p", "{x"), ("x",), "has a single '{'; write {{ for one"),
        (("p", "}"), ("x",), "has a single '}'"),
        ((), ("x",), "give the program and its arguments"),
        (
            ("p",),
            ("a b", "a_b"),
            "parameters 'a b' and 'a_b' would share the environment variable GPMI_A_B; rename one",
        ),
        (("p",), ("result file",), "GPMI_RESULT_FILE; rename it"),
        (("p",), ("evaluation",), "GPMI_EVALUATION; rename it"),
        ("train --x={x}", ("x",), 'values are never pasted into it: write "$GPMI_X"'),
        ("echo '{params_file}'", ("x",), 'write "$GPMI_PARAMS_FILE"'),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused(run: Any, names: tuple[str, ...], words: str) -> None:
    with pytest.raises(ValueError) as refused:
        Command(run, names)
    assert words in str(refused.value)


def test_braces_of_a_shell_are_its_own() -> None:
    assert shell("x=3; echo 1 2 | awk '{print $2}' | sed s/2/${x}/") == Measured(3.0)
    assert placeholders("{{x}} {y}") == ["y"] and filled("{{x}} {y}", {"y": "{{"}) == "{x} {{"


# What comes out: hostile outputs that a shell can write

OUTPUTS = [
    ("", "it wrote no output"),
    ("echo", "it wrote no output"),
    ("printf '\\n \\t\\n'", "it wrote no output"),
    ("echo nan", "y is nan"),
    ("echo -NaN", "y is nan"),
    ("echo inf", "y is inf"),
    ("echo -Infinity", "y is -inf"),
    ("echo 1e999", "y is inf"),
    ("echo 1e200", "too large to square"),
    ("echo 1_000", "y is '1_000', not a number"),
    ("echo 0x10", "not a number"),
    ("echo 1,5", "not a number"),
    ("echo '1 2'", "y is '1 2', not a number"),
    ("echo 1; echo done", "y is 'done', not a number"),
    ("echo ٣", "not a number"),
    ("echo true", "not a number"),
    ("echo '[1]'", "not a number"),
    ("echo '{}'", "y is missing in its result"),
    ("echo '{\"y\": null}'", "y is None, not a number"),
    ("echo '{\"y\": true}'", "y is True, not a number"),
    ('echo \'{"y": "abc"}\'', "y is 'abc', not a number"),
    ("echo '{\"y\": NaN}'", "y is nan"),
    ("echo '{\"y\": 1e400}'", "y is inf"),
    ("echo '{\"y\": [1]}'", "y is [1], not a number"),
    ("echo '{\"y\": 1'", "its result is not JSON"),
    ('echo \'{"y": 1, "noise_var": -1}\'', "a variance cannot be negative"),
    ('echo \'{"y": 1, "noise_var": "nan"}\'', "noise_var is nan"),
    ('echo \'{"y": 1, "noise_var": {}}\'', "noise_var is {}, not a number"),
    ("head -c 200000 /dev/urandom | tr -d '[:space:]'", "not a number"),
    ("head -c 200000 /dev/zero", "not a number"),
    ("printf '\\377\\376\\0'", "not a number"),
    ("printf '\\033[31m1\\033[0m'", "not a number"),
    ("echo 1; exit 3", "exit code 3: 1"),
    ("echo bad luck >&2; echo 1; exit 3", "exit code 3: bad luck"),
    ("echo 1; kill -9 $$", "ended by SIGKILL: 1"),
    ("kill -SEGV $$", "ended by SIGSEGV"),
    ("kill -35 $$", "ended by signal 35"),
    ("exit 255", "exit code 255"),
    ("head -c 200000 /dev/urandom >&2; exit 1", "exit code 1: "),
    ("head -c 200000 /dev/zero >&2; exit 1", "exit code 1: "),
    ("no-such-program-of-anybody", "exit code 127"),
    ("exec /", "exit code 126"),
    ("if then", "exit code 2"),
    ("cat", "it wrote no output"),  # its input is empty, not the terminal
    ("exec >&- 2>&-; exit 4", "exit code 4"),
    ("exec >&- 2>&-; sleep 0.2", "it wrote no output"),
    ("yes '{' | head -c 100000 | tr -d '\\n'", "its result is not JSON"),
    ("printf '{\"y\": '; head -c 60000 /dev/zero | tr '\\0' 1; echo '}'", "its result is not JSON"),
    ("printf '{\"y\": '; head -c 60000 /dev/zero | tr '\\0' '['", "its result is not JSON"),
    ("printf '%060000d' 0 | tr 0 9", "y is inf"),
]


@pytest.mark.parametrize(("text", "words"), OUTPUTS, ids=range(len(OUTPUTS)))
def test_what_is_no_value_is_a_failure_with_its_reason(text: str, words: str) -> None:
    assert words in why(shell(text))


def test_there_are_fifty_hostile_outputs() -> None:
    assert len(OUTPUTS) >= 50


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("echo 2.5", Measured(2.5)),
        ("echo noise; printf ' -.5e-3 '", Measured(-0.5e-3)),
        ("printf '1\\r\\n\\r\\n'", Measured(1.0)),
        ("echo 0.1", Measured(0.1)),
        ('echo \'{"y": 1, "noise_var": 0.25}\'', Measured(1.0, 0.25)),
        ('echo \'{"y": "1e3", "noise_var": null}\'', Measured(1000.0)),
        ("echo warning >&2; echo 4", Measured(4.0)),
    ],
)
def test_the_last_line_is_the_value(text: str, answer: Measured) -> None:
    assert shell(text) == answer


def test_the_last_line_that_matches_is_the_value() -> None:
    text = "echo 'loss: 3 ok'; echo 'loss: 2.5e-1 ok'; echo bye"
    assert shell(text, reading=Reading("match", r"loss: (\S+)")) == Measured(0.25)
    assert shell("echo a 7 b", reading=Reading("match", r"\d")) == Measured(7.0)
    named = Reading("match", r"(?P<noise_var>\S+) (?P<y>\S+)( (?P<mem>\S+))?", constraints=("mem",))
    assert shell("echo 0.1 2 -3", reading=named) == Measured(2.0, 0.1, (-3.0,))
    assert why(shell("echo 0.1 2", reading=named)).startswith("mem is missing")
    assert "no line of its output matches 'x+'" in why(shell("echo 1", reading=Reading("match", "x+")))
    assert "y is 'ok', not a number" in why(shell("echo loss ok", reading=Reading("match", r"loss (\S+)")))
    behind = shell("echo loss 1; head -c 300000 /dev/zero", reading=Reading("match", r"loss (\S+)"))
    assert "no line of the last part of its output" in why(behind)


HANGING = Reading("match", r"(a+)+b(?P<y>\d)")  # exponential in the length of a line of a's


def test_a_pattern_that_never_ends_is_a_failure_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "TIMEOUT", 1.0)
    answer = why(shell(f"echo {'a' * 60}", reading=HANGING, retries=1000))
    assert "took more than 1 s" in answer and "nested repetition" in answer and "attempt" not in answer


def test_a_search_is_ended_when_the_run_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "TIMEOUT", FOR_EVER)
    monkeypatch.setattr(program, "TICK", 0.002)
    ran, polls = tmp_path / "ran", list[int]()

    def cancelled() -> bool:
        polls.extend([1] * ran.exists())  # counts only once the program is about to end
        return len(polls) > 100

    with pytest.raises(program.Cancelled):
        Command(f"echo {'a' * 60}; touch '{ran}'", ("x",), reading=HANGING)({"x": 0.5}, cancelled)
    assert len(polls) == 101


def test_a_match_of_any_length_is_a_number_or_a_failure() -> None:
    long = Reading("match", r"loss (\S+)")
    assert "not a number" in why(python("print('loss 1' + '0' * 60000)", reading=long))
    assert "not a number" in why(python("print('loss ' + chr(233) * 30000)", reading=long))
    assert shell("echo é loss 2", reading=Reading("match", r"é loss (\S+)")) == Measured(2.0)


JSON = Reading("json", y="loss", noise_var="var", constraints=("memory", "time"))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('echo \'{"loss": 1, "memory": -1, "time": 2.5, "other": {}}\' > "$GPMI_RESULT_FILE"', (1.0, 0.0, (-1, 2.5))),
        ('echo \'{"loss": 1, "var": 2, "memory": 0, "time": 0}\' > "$GPMI_RESULT_FILE"', (1.0, 2.0, (0.0, 0.0))),
        ("echo 1", "it wrote no result file"),
        (': > "$GPMI_RESULT_FILE"', "not JSON"),
        ('echo \'{"loss": 1, "memory": 1}\' > "$GPMI_RESULT_FILE"', "time is missing"),
        ('echo \'{"loss": 1, "memory": "nan", "time": 1}\' > "$GPMI_RESULT_FILE"', "memory is nan"),
        ('echo 3 > "$GPMI_RESULT_FILE"', "a JSON object such as"),
        ('mkdir "$GPMI_RESULT_FILE"', "it wrote no result file"),
        ('mkfifo "$GPMI_RESULT_FILE"', "it wrote no result file"),
        ('ln -s /dev/zero "$GPMI_RESULT_FILE"', "it wrote no result file"),
        ('ln -s "$GPMI_RESULT_FILE" "$GPMI_RESULT_FILE"', "result file"),
        ('head -c 2000000 /dev/zero > "$GPMI_RESULT_FILE"', "more than 1024 kB"),
        ('head -c 9000 /dev/urandom > "$GPMI_RESULT_FILE"', "not JSON"),
        ('rm -r "$(dirname "$GPMI_RESULT_FILE")"', "it wrote no result file"),
    ],
)
def test_a_result_file_may_hold_anything(text: str, answer: Any) -> None:
    found = shell(text, reading=JSON)
    assert answer in why(found) if isinstance(answer, str) else found == Measured(*answer)


def test_each_evaluation_has_files_of_its_own_and_leaves_none() -> None:
    said = python(
        "import os; print(os.environ['GPMI_RESULT_FILE'], file=__import__('sys').stderr); raise SystemExit(1)"
    )
    other = python(
        "import os; print(os.environ['GPMI_RESULT_FILE'], file=__import__('sys').stderr); raise SystemExit(1)"
    )
    assert why(said) != why(other)
    assert not Path(why(said).partition(": ")[2]).parent.exists()


@pytest.mark.parametrize(
    "wrong",
    [{"source": "match"}, {"pattern": "x"}, {"source": "match", "pattern": "("}, {"source": "last"},
     {"source": "match", "pattern": "(x)", "constraints": ("memory",)}],
)  # fmt: skip
def test_a_reading_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Reading(**wrong)


# Programs that cannot be started


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (("no-such-program-of-anybody",), "cannot be started"),
        (("/",), "cannot be started"),
        (("{v}",), "cannot be started"),
        (("echo", "\0"), "null byte"),
    ],
)
def test_a_program_that_cannot_be_started_is_a_failure(run: tuple[str, ...], words: str) -> None:
    assert words in why(Command(run, ("v",))({"v": ""}))


def test_a_folder_that_is_not_there_and_too_long_arguments_are_failures(tmp_path: Path) -> None:
    assert "No such file" in why(shell("echo 1", cwd=tmp_path / "none"))
    assert "too long" in why(Command(("echo", "{v}"), ("v",))({"v": "x" * 10_000_000}))


# Retries


def test_a_program_is_run_again_until_it_has_a_value(tmp_path: Path) -> None:
    text = "echo x >> tries; [ $(wc -l < tries) -ge 3 ] && echo 5"
    assert "(attempt 2)" in why(shell(text, cwd=tmp_path, retries=1))
    assert shell(text, cwd=tmp_path, retries=1) == Measured(5.0)


def test_a_time_out_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leap(monkeypatch, program, lambda: min(2, len(lines(tmp_path / "tries"))))  # the first two hang
    text = "echo x >> tries; [ $(wc -l < tries) -ge 3 ] && echo 5 || sleep 600"
    assert "timeout" in why(shell(text, cwd=tmp_path, retries=1, timeout=FOR_EVER))
    assert (tmp_path / "tries").read_text() == "x\nx\n"
    assert shell(text, cwd=tmp_path, retries=1, timeout=FOR_EVER) == Measured(5.0)


# Limits


def test_gigabytes_of_output_are_read_and_not_kept() -> None:
    code = "import sys\nline = b'y' * 999 + b'\\n'\nfor _ in range(300): sys.stdout.buffer.write(1000 * line)\nprint(7)"
    tracemalloc.start()
    try:
        assert python(code) == Measured(7.0)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_program_that_writes_for_ever_is_ended_in_time() -> None:
    assert "timeout: it took longer than 0.5 s" in why(shell("yes & yes >&2", timeout=0.5))


@pytest.mark.usefixtures("short_patience")
@pytest.mark.parametrize(
    ("code", "processes"),
    [
        ("pass", 1),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", 1),
        ("os.fork()", 2),
        ("os.fork(); os.fork(); signal.signal(signal.SIGTERM, signal.SIG_IGN)", 4),
        ("os.fork() or os.setsid()", 2),
        ("os.close(1); os.close(2)", 1),
    ],
)
def test_a_time_out_ends_the_program_and_all_that_it_started(
    code: str, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leap(monkeypatch, program, lambda: len(lines(tmp_path / "pids")) == processes)
    note = "with open('pids', 'a') as file: file.write(f'{os.getpid()}\\n')"
    found = python(f"import os, signal, time\n{code}\n{note}\ntime.sleep(600)", timeout=FOR_EVER, cwd=tmp_path)
    assert why(found) == "timeout: it took longer than 600 s"
    end(tmp_path / "pids")


@pytest.mark.usefixtures("short_patience")
@pytest.mark.parametrize("leave", ["", "os.setsid()", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_a_fork_that_holds_the_output_does_not_hold_the_value(leave: str, tmp_path: Path) -> None:
    code = f"""import os, signal, time
if os.fork() == 0:
    {leave or "pass"}
    with open('pid', 'w') as file: file.write(f'{{os.getpid()}}\\n')
    os.rename('pid', 'child')
    time.sleep(600)
while not os.path.exists('child'): time.sleep(0.01)
print(8)"""
    begin = time.monotonic()
    assert python(code, cwd=tmp_path) == Measured(8.0)
    assert time.monotonic() - begin < FOR_EVER / 2.0
    end(tmp_path / "child")


def test_a_program_may_clean_up_when_it_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "GRACE", FOR_EVER)
    leap(monkeypatch, program, (tmp_path / "ready").exists)
    text = "trap 'echo bye > said; exit' TERM; touch ready; sleep 600 & wait"
    assert "timeout" in why(shell(text, timeout=FOR_EVER, cwd=tmp_path))
    assert (tmp_path / "said").read_text() == "bye\n"


def test_an_evaluation_that_is_not_wanted_any_more_is_ended(tmp_path: Path) -> None:
    command = Command("echo $$ > pid; sleep 600; echo 1", ("x",), cwd=tmp_path)
    with pytest.raises(program.Cancelled):
        command({"x": 1.0}, lambda: bool(lines(tmp_path / "pid")))
    end(tmp_path / "pid")


def test_ctrl_c_ends_the_program_and_comes_through(tmp_path: Path) -> None:
    press_when(lambda: lines(tmp_path / "pid"))
    with pytest.raises(KeyboardInterrupt):
        shell("echo $$ > pid; sleep 600; echo 1", cwd=tmp_path)
    end(tmp_path / "pid")


def test_ctrl_c_while_the_program_is_started_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen._execute_child  # type: ignore[attr-defined]

    def pressed(*arguments: Any) -> None:
        start(*arguments)
        wait_until(lambda: lines(tmp_path / "pid"))
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess.Popen, "_execute_child", pressed)
    with pytest.raises(KeyboardInterrupt):
        shell("echo $$ > pid; sleep 600; echo 1", cwd=tmp_path)
    end(tmp_path / "pid")


def test_a_long_line_of_digits_is_read_in_no_time() -> None:
    from gpmi.cli.command.reading import NUMBER

    assert NUMBER.fullmatch("1" * 60_000 + "x") is None  # took minutes when digits could be shared out in two ways
