"""Text that C libraries print does not reach standard output, and everything else does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from types import FrameType
from typing import Any

import pytest

from gpmi._support import library_output
from gpmi._support.library_output import _streams, c_output_discarded

PRINTS = """
import ctypes, os, sys, threading
from gpmi._support.library_output import c_output_discarded

libc = ctypes.CDLL(None)
put = lambda text: (libc.puts(text), libc.fflush(None))
put(b"before")
with c_output_discarded():
    put(b"lost")
    with c_output_discarded():
        put(b"lost" * 5000)
    put(b"lost")
    thread = threading.Thread(target=print, args=("of a thread",), kwargs={"flush": True})
    thread.start()
    thread.join()
    os.write(1, b"by the descriptor\\n")
    if not os.fork():
        put(b"of a child")
        os._exit(0)
    os.wait()
try:
    with c_output_discarded():
        raise ValueError
except ValueError:
    put(b"after")
"""

# HiGHS 1.12 prints a line for many of these programs.
SPACE = """
import json
import gpmi
from gpmi import Int, Real

space = {"n": Int(1, 5000), "m": Int(0, 8), "lr": Real(1e-5, 1e3, log=True), "b": (0.0, 1.0)}
space["wd"] = Real(1e-6, 1.0, log=True)
constraints = ["n*3 - 7*m == 18", "lr + wd + b == 0.907"]
"""


def output(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.skipif(_streams() is None, reason="the C library has no stream that can be replaced")
def test_only_what_c_prints_in_the_block_is_lost() -> None:
    assert output(PRINTS).split("\n") == ["before", "of a thread", "by the descriptor", "of a child", "after", ""]


@pytest.mark.skipif(_streams() is None, reason="the C library has no stream that can be replaced")
def test_ctrl_c_at_any_line_restores_the_stream() -> None:
    streams = _streams()
    assert streams is not None
    stdout, at, lines = streams.stdout.value, 0, 1

    def press(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename != library_output.__file__:
            return None
        if event in ("line", "return"):
            lines += 1
            if lines == at:
                signal.raise_signal(signal.SIGINT)
        return press

    before, pressed = sys.gettrace(), 0
    while at <= lines:
        at, lines = at + 1, 0
        sys.settrace(press)
        try:
            with c_output_discarded():
                assert streams.stdout.value == streams.memory
        except KeyboardInterrupt:
            pressed += 1
        finally:
            sys.settrace(before)
            now, streams.stdout.value = streams.stdout.value, stdout
        assert (now, library_output._callers) == (stdout, 0), f"line {at}"
    assert pressed > 10


@pytest.mark.skipif(_streams() is None, reason="the C library has no stream that can be replaced")
def test_the_solver_of_the_constraints_prints_nothing() -> None:
    said = output(SPACE + "print(json.dumps(gpmi.Optimizer(space, constraints=constraints, seed=1).ask()))")
    assert set(json.loads(said)) == {"n", "m", "lr", "b", "wd"}


@pytest.mark.skipif(_streams() is None, reason="the C library has no stream that can be replaced")
def test_the_json_of_a_command_has_nothing_before_it(tmp_path: object) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    output(SPACE + f"gpmi.study({url!r}, space=space, constraints=constraints, seed=1)")
    said = output("from gpmi.cli import main; main()", "ask", url, "--json")
    assert json.loads(said)
