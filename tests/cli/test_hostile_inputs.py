"""Random study files, outputs of programs, tables, databases and arguments: no traceback reaches a user of `gpmi`."""

from __future__ import annotations

import os
import random
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzzing import play

pytest.importorskip("sqlalchemy")

import gpmi
from gpmi import cli
from gpmi.cli.studyfile import open_study, read_study

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore"),
]

FILE = """goal = "max"
budget = 2
seed = 0
workers = 1
on_failure = "learn"
constraints = ["x + n <= 9"]
[parameters]
x = { real = [0.1, 1.0], log = true, unit = "°C" }
n = { int = [1, 8] }
kind = { options = ["a", "b"] }
[command]
run = "cat output"
timeout = 20
[command.result]
"""
GOALS_FILE = """budget = 2
seed = 0
[parameters]
x = { real = [0.1, 1.0], log = true, unit = "°C" }
n = { int = [1, 8] }
kind = { choice = ["a", "b"] }
[goals]
y = "max"
cost = { goal = "min", at_most = 10 }
purity = { at_least = 0.5 }
size = { match = 42, within = 3 }
smell = "watch"
[command]
run = ["cat", "output"]
"""
STEPS_FILE = """goal = "min"
budget = 2
cost = 30
seed = 0
[parameters]
x = { real = [0.1, 1.0], log = true, unit = "°C" }
n = { int = [1, 8] }
kind = { choice = ["a", "b"] }
epoch = { fidelity = [1, 9], cost = { 1 = 3, 9 = 20 } }
[command]
run = ["cat", "output"]
"""
STEPS_READINGS = ("", '[value]\nfrom = "match"\npattern = "(?P<step>[0-9]+) (.*)"\n', '[value]\nfrom = "json"\n')
STEPS_OUTPUT = b'loading\n1 0.5\n2 0.25\n4 {"y": 0.2}\n9 0.125\n'
GOALS_READINGS = (
    "",
    '[value]\nfrom = "match"\npattern = { y = "(.)", cost = "c (.*)", purity = ".", size = "." }\n',
    '[value]\nfrom = "json"\noutputs = { cost = "c" }\nnoise_var = "v"\n',
    "[stop]\nstagnation = 1\n",
)
READINGS = ("", 'pattern = "value: (.*)"\n', "line = -1\n", 'file = "output"\njson = "a.b"\n', 'json = "y"\n')
TABLE = "x,n,kind,y\n0.5,3,a,1.25\n0.25,2,b,-3\n"
GOALS_TABLE = "x,n,kind,out.y,cost,cost noise_var,unmet\n0.5,3,a,1.25,3,0.5,[]\n0.25,2,b,-3,,,\n"
GOALS_OUTPUT = b'{"y": 1.5, "cost": 2, "purity": null, "size": 41, "noise_var": {"y": 0.1}}\n'
OUTPUTS = (
    GOALS_OUTPUT,
    *(b"1.5\n", b"value: 2.5\n", b'{"y": 1.5, "a": {"b": 2}}', b"nan", b"", b"1e999\n", b"-0\n"),
)
NASTY = (
    *("", "-1", "0", "1e999", "nan", "true", "null", "[]", "{}", "[[[[", "'''", '"""', "\\", "\x00", "\ud800", "é"),
    *("٣", "{x}", "{", "}", "%s", "$(id)", "../..", "/dev/null", "/", "=cmd", "a" * 5000, "9" * 400, "1_0", "0x1"),
    *(
        " ",
        "\r",
        "\n",
        "\ufeff",
        "[parameters]",
        "[command]",
        "x",
        "int",
        "real",
        "options",
        "when",
        "1979-05-27",
        "inf",
    ),
)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Change a text or a file at a few places."""
    changed = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        place = rng.randrange(len(changed) + 1)
        end = min(len(changed), place + rng.choice([0, 1, 3, 20]))
        deed = rng.randrange(4)
        if deed == 0 and place < len(changed):
            changed[place] ^= 1 << rng.randrange(8)
        elif deed == 1:
            del changed[place:end]
        elif deed == 2:
            changed[place:end] = rng.choice(NASTY).encode(errors="surrogatepass")
        else:
            changed[place:place] = changed[place:end] * rng.choice([1, 50])
    return bytes(changed)


def word(rng: random.Random, *usual: str) -> str:
    text = rng.choice(usual) if usual and rng.random() < 0.6 else rng.choice(NASTY)
    return text.replace("\0", "").encode(errors="replace").decode() or "0"


def arguments(rng: random.Random) -> list[str]:
    where = rng.choice(["study.toml", "study.db", "study.db", word(rng, "nothing.db", "earlier.csv", "output")])
    calls: list[Callable[[], list[str]]] = [
        lambda: ["run", where],
        lambda: ["run", "study.toml"],
        lambda: ["ask", where, *rng.choice([[], ["--json"], ["--n", word(rng, "2")]])],
        lambda: [
            "tell",
            where,
            word(rng, "0", "1", "7"),
            word(rng, "1.5"),
            *rng.choice([[], ["--noise-var", word(rng)]]),
        ],
        lambda: [
            "tell",
            where,
            word(rng, "0", "1"),
            *(f"{word(rng, 'y', 'cost', 'purity')}={word(rng, '1.5')}" for _ in range(rng.choice([1, 2, 3]))),
            *rng.choice([[], ["--correct"], ["--again"], ["--noise-var", f"{word(rng, 'cost')}={word(rng, '0.5')}"]]),
        ],
        lambda: [
            "choose",
            where,
            f"{word(rng, 'cost', 'y', 'smell')}={word(rng, 'min', 'max')}",
            *rng.choice([[], ["--json"], ["--where", f"{word(rng, 'cost')} <= {word(rng, '3')}"]]),
        ],
        lambda: ["step", where, word(rng, "0", "1"), word(rng, "1", "4", "9"), word(rng, "1.5", "y=2")],
        lambda: ["fail", where, word(rng, "1"), "--why", word(rng, "the pump stopped")],
        lambda: ["best", where, *rng.choice([[], ["--json"]])],
        lambda: ["trials", where, *rng.choice([[], ["--json"], ["--csv"]])],
        lambda: ["verify", where],
        lambda: ["report", where, "--out", word(rng, "run.html")],
        lambda: ["export", where, word(rng, "trials.csv", "trials.jsonl", "trials.parquet")],
        lambda: ["import", where, word(rng, "earlier.csv", "output", "study.db")],
        lambda: [word(rng, "ask", "work", "best"), word(rng, where), word(rng)],
    ]
    return rng.choice(calls)()


def run(folder: Path, given: list[str]) -> tuple[int, str]:
    """Call the command in a forked process; return its exit code and everything that it wrote."""
    output = folder / "terminal"
    child = os.fork()
    if child == 0:
        code: Any = 70
        try:
            file = os.open(output, os.O_RDWR | os.O_CREAT)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(file, 1)
            os.dup2(file, 2)
            sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "r" if n == 0 else "w", closefd=False) for n in range(3))
            os.chdir(folder)
            sys.argv = ["gpmi", *given]
            cli.main()
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status), output.read_text(errors="replace")


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, bytes]:
    """A study with one value, one with goals, and one with steps."""
    folder = tmp_path_factory.mktemp("hostile")
    space = {"x": gpmi.Real(0.1, 1.0, log=True), "n": gpmi.Int(1, 8), "kind": ["a", "b"]}
    with gpmi.study(folder / "plain.db", space=space, seed=0, constraints=["x + n <= 9"]) as study:
        study.tell(study.ask(), 1.0)
        study.ask()
    (folder / "goals.toml").write_text(GOALS_FILE)
    with open_study(read_study(folder / "goals.toml")) as study:
        study.tell(study.ask(), {"y": 1.0, "cost": 2.0, "purity": 0.75, "size": 41.0})
        study.tell(study.ask(), {"y": 2.0})
    goals = (folder / "study.db").read_bytes()
    (folder / "study.db").unlink()
    (folder / "steps.toml").write_text(STEPS_FILE)
    with open_study(read_study(folder / "steps.toml")) as study:
        trial = study.ask()
        study.report(trial.number, 1, 0.5)
        study.report(trial.number, 9, 0.25)
        study.report(study.ask().number, 2, 0.5)
    return (folder / "plain.db").read_bytes(), goals, (folder / "study.db").read_bytes()


@pytest.mark.fuzz
@pytest.mark.slow
def test_no_traceback_reaches_a_user_of_the_command_line(databases: tuple[bytes, bytes, bytes], tmp_path: Path) -> None:
    def case(rng: random.Random) -> str:
        folder = tmp_path / f"{rng.getrandbits(64):x}"
        folder.mkdir()
        kind = rng.randrange(3)
        files = ((FILE, READINGS), (GOALS_FILE, GOALS_READINGS), (STEPS_FILE, STEPS_READINGS))
        text = files[kind][0] + rng.choice(files[kind][1])
        output = rng.choice(OUTPUTS) if kind == 0 or rng.random() < 0.5 else (GOALS_OUTPUT, STEPS_OUTPUT)[kind - 1]
        for name, data in (
            ("study.toml", text.encode()),
            ("study.db", databases[kind]),
            ("earlier.csv", (GOALS_TABLE if kind == 1 else TABLE).encode()),
            ("output", output),
        ):
            (folder / name).write_bytes(mutated(data, rng) if rng.random() < 0.6 else data)
        given = arguments(rng)
        code, said = run(folder, given)
        assert code in (0, 1, 2, 3), (given, code, said)
        assert "Traceback" not in said, (given, said)
        return {0: "accepted", 1: "refused", 2: "wrong option", 3: "no value"}[code]

    play("hostile inputs of the command line", "GPMI_INPUTS", 25, case)
