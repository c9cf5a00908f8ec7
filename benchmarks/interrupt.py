"""Real SIGINTs at random moments of `gpmi.maximize`: nothing that f returned may be lost.

A child process runs `maximize` again and again; its f writes down each value that it returns. The parent presses the
key once or twice at a random moment of each run. Afterwards every value must be in the result, or in the attribute
`result` of the KeyboardInterrupt; nothing else may be raised, and nothing may hang.

    python benchmarks/interrupt.py            # 1,000 keys, 200 of them followed by a second one; writes the report
    python benchmarks/interrupt.py --keys 50  # fewer, no report
"""

from __future__ import annotations

import argparse
import json
import os
import random
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import gpmi
from gpmi import kernels
from gpmi._support.interrupts import lazy_call
from gpmi.run.stopping import ImprovementBelow, RegretBelow, Rule, Seconds, Stop

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "docs" / "benchmarks" / "interrupt.md"
KEYS, PAIRS = 1000, 200
RUNS_OF_A_CHILD = 25
HANGS = 60.0  # seconds after the last key in which a run must have ended; they take less than one
WITHOUT = "KeyboardInterrupt without a result"
APART = 0.005  # seconds between the keys of a pair, at most


# The child


def wave(x: Any) -> float:
    values = list(x.values()) if isinstance(x, dict) else x
    return float(sum(np.sin(5.0 * float(v)) for v in values))


class EveryThird(Rule):
    """A rule of a user that asks the ledger now and then, and never stops."""

    def stop(self, optimizer: gpmi.Optimizer, seconds: float) -> Stop | None:
        ledger = optimizer.ledger
        return Stop("never") if ledger.n % 3 == 0 and ledger.improvement < 0.0 else None


GRID = np.stack([axis.ravel() for axis in np.meshgrid(*[np.linspace(0.0, 1.0, 60)] * 2)], axis=1)
GIVEN: dict[str, Any] = {"kernel": kernels.RBF(0.3), "noise_var": 1e-4}
# Each run takes a few tenths of a second.
RUNS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("box, learned", [(0.0, 1.0)] * 2, {"budget": 14}),
    ("box, given", [(0.0, 1.0)] * 2, {"budget": 25, **GIVEN}),
    ("box, progress", [(0.0, 1.0)] * 2, {"budget": 12, "progress": True}),
    ("rows, learned", GRID, {"budget": 14}),
    ("rows, given, each once", GRID[:40], {"budget": 60, "repeats": False, **GIVEN}),
    ("rows, progress", GRID, {"budget": 16, "progress": True, **GIVEN}),
    ("named", {"a": gpmi.Int(0, 9), "b": (0.0, 1.0)}, {"budget": 12}),
    ("box, rules", [(0.0, 1.0)] * 2, {"stop": RegretBelow(1e-9) | ImprovementBelow(1e-12) | Seconds(1.0), **GIVEN}),
    ("rows, a rule, progress", GRID[:900], {"budget": 20, "stop": EveryThird(), "progress": True, **GIVEN}),
    ("box, slow f", [(0.0, 1.0)] * 2, {"budget": 20, **GIVEN}),
)


class Key:
    """The handler of the child: a key raises KeyboardInterrupt while a run is on, and does nothing otherwise."""

    def __init__(self) -> None:
        self.on = False

    def press(self, number: int, frame: FrameType | None) -> None:
        if self.on:
            raise KeyboardInterrupt


def child(first: int, count: int) -> None:
    """Runs `first`, `first` + 1, ... of the list above, over and over, each after a line on stdin.

    One line of JSON on stdout says that a run starts, one how it ended.
    """
    key = Key()
    signal.signal(signal.SIGINT, key.press)
    for number in range(first, first + count):
        name, space, arguments = RUNS[number % len(RUNS)]
        sys.stdin.buffer.readline()  # a key that came too late for the last run must not meet this one
        say({"starts": number, "name": name})
        say(one_run(number, name, space, arguments, key))


def say(what: dict[str, Any]) -> None:
    """One line for the parent."""
    os.write(1, json.dumps(what).encode() + b"\n")


def one_run(number: int, name: str, space: Any, arguments: dict[str, Any], key: Key) -> dict[str, Any]:
    """One run, and how it ended."""
    with tempfile.TemporaryFile() as file:

        def f(x: Any) -> float:
            y = wave(x)
            if name.endswith("slow f"):
                time.sleep(0.005)
            # No signal is handled between the writing and the return: what is written is returned.
            lazy_call(partial(os.write, file.fileno()), np.float64(y).tobytes())[0]
            return y

        results = lazy_call(partial(gpmi.maximize, f, seed=number, **arguments), space)
        ended, kept, begin = "returned", None, time.monotonic()
        try:
            try:
                key.on = True
                results[0]
            finally:
                key.on = False
        except KeyboardInterrupt as error:
            kept = getattr(error, "result", None)
            ended = "KeyboardInterrupt" if kept is not None else WITHOUT
        except BaseException as error:
            kept, ended = getattr(error, "result", None), f"{type(error).__name__}: {error}"
        end = time.monotonic()
        kept = results[0] if results else kept
        file.seek(0)
        returned = np.frombuffer(file.read()).tolist()
    told = [] if kept is None else [trial.y for trial in kept.trials]
    reason = None if kept is None else kept.reason
    outcome = {"ended": ended, "lost": returned != told, "reason": reason, "n": len(returned)}
    return {**outcome, "begin": begin, "end": end}


# The parent


@dataclass(frozen=True)
class Outcome:
    """How one run ended."""

    name: str
    keys: int  # how many were pressed
    ended: str  # "returned", or what was raised
    reason: str | None  # of the result
    lost: bool  # whether a value that f returned is not in the result
    evaluations: int
    landed: bool  # whether the first key came while the run was on, and not after its end

    @property
    def holds(self) -> bool:
        """No value is lost, and nothing was raised but a KeyboardInterrupt that carries the result.

        One that comes in the instructions before keys are deferred has no result to carry.
        """
        carried = self.ended in ("returned", "KeyboardInterrupt")
        return not self.lost and (carried or (self.ended == WITHOUT and self.evaluations == 0))


class Lines:
    """The lines of a child, with a time limit."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None and process.stdin is not None
        self._go, self._file, self._rest = process.stdin.fileno(), process.stdout.fileno(), b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._file, selectors.EVENT_READ)

    def start(self) -> str:
        """Let the child begin its next run; the name of it."""
        os.write(self._go, b"\n")
        line = self.next()
        assert line is not None and "starts" in line, f"the child does not start its next run: {line}"
        name: str = line["name"]
        return name

    def next(self) -> dict[str, Any] | None:
        """The next line; None if there is none within HANGS seconds, or any more."""
        end = time.monotonic() + HANGS
        while b"\n" not in self._rest:
            if not self._selector.select(max(0.0, end - time.monotonic())):
                return None
            part = os.read(self._file, 65536)
            if not part:
                return None
            self._rest += part
        line, self._rest = self._rest.split(b"\n", 1)
        result: dict[str, Any] = json.loads(line)
        return result


def press(keys: int, pairs: int, seed: int = 0, report: Callable[[str], None] = lambda line: None) -> list[Outcome]:
    """Interrupted runs until `keys` of them were on when the key was pressed, `pairs` of these twice; how each ended.

    The moments are spread evenly over the length that such a run had without a key.
    """
    rng, lengths = random.Random(seed), measured()
    outcomes: list[Outcome] = []

    def missing(times: int) -> int:
        wanted = pairs if times == 2 else keys - pairs
        return max(0, wanted - sum(outcome.landed and outcome.keys == times for outcome in outcomes))

    while missing(1) + missing(2):
        twice = [False] * missing(1) + [True] * missing(2)
        rng.shuffle(twice)
        outcomes += pressed_child(len(outcomes), twice[:RUNS_OF_A_CHILD], lengths, rng)
        bad = sum(not outcome.holds for outcome in outcomes)
        report(f"{keys - missing(1) - missing(2)} of {keys} keys in time, {len(outcomes)} runs, {bad} failures")
    return outcomes


def started(first: int, count: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--child", str(first), str(count)]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing)


def measured() -> dict[str, float]:
    """How many seconds each kind of run takes without a key: the second time, when everything is imported."""
    seconds: dict[str, float] = {}
    with started(0, 2 * len(RUNS)) as process:
        lines = Lines(process)
        for _ in range(2 * len(RUNS)):
            name, line = lines.start(), lines.next()
            assert line is not None and line["ended"] == "returned", f"{name} does not end by itself: {line}"
            seconds[name] = line["end"] - line["begin"]
    return seconds


def pressed_child(first: int, twice: list[bool], lengths: dict[str, float], rng: random.Random) -> list[Outcome]:
    """The runs of one child, each with a key or two; `lengths` are renewed by runs that ended before their key."""
    outcomes: list[Outcome] = []
    with started(first, len(twice)) as process:
        lines = Lines(process)
        try:
            for pair in twice:
                name = lines.start()
                time.sleep(rng.uniform(0.0, lengths[name]))
                at = time.monotonic()
                process.send_signal(signal.SIGINT)
                if pair:
                    time.sleep(rng.uniform(0.0, APART))
                    process.send_signal(signal.SIGINT)
                line = lines.next()
                if line is None or "ended" not in line:
                    how = "hangs" if process.poll() is None else f"the process died: {process.returncode}"
                    return [*outcomes, Outcome(name, 1 + pair, how, None, True, 0, True)]
                landed = line["begin"] <= at <= line["end"]
                if at > line["end"]:  # it was not interrupted: that is how long it takes now
                    lengths[name] = line["end"] - line["begin"]
                how = line["ended"], line["reason"], line["lost"], line["n"], landed
                outcomes.append(Outcome(name, 1 + pair, *how))
        finally:
            process.kill()
    return outcomes


# The report


def written(outcomes: list[Outcome], seconds: float) -> str:
    from engine import machine

    landed = [outcome for outcome in outcomes if outcome.landed]
    pairs = sum(outcome.keys == 2 for outcome in landed)
    bad = [outcome for outcome in outcomes if not outcome.holds]
    early = sum(outcome.ended == WITHOUT for outcome in outcomes if outcome.holds)
    how = Counter(f"{o.ended}, {o.reason or 'before the first evaluation'}" for o in landed)
    kinds = Counter(outcome.name for outcome in landed)
    lines = [
        "# Ctrl-C, measured",
        "",
        f"Written by `make bench-interrupt` on {date.today().isoformat()}: real SIGINTs at random moments of "
        f"`gpmi.maximize`, evenly spread over the length of a run, in {seconds:.0f} s.",
        "",
        "| promise | measured | holds |",
        "|---|---|---|",
        f"| every value that f returned is in the result | {sum(o.lost for o in outcomes)} of "
        f"{len(outcomes):,} runs lost one ({sum(o.evaluations for o in outcomes):,} values) | {yes(not bad)} |",
        f"| no hang, nothing raised but KeyboardInterrupt with `.result` | {len(bad)} exceptions or hangs; besides, "
        f"{early} keys came before the run had begun, with nothing to carry | {yes(not bad)} |",
        "",
        f"{len(landed) - pairs:,} single keys and {pairs:,} pairs, the second at most {1e3 * APART:.0f} ms after the "
        f"first, were pressed while a run was on; {len(outcomes) - len(landed):,} more came just after its end.",
        "",
        *[f"- {line}" for line in machine()],
        "",
        "| how a run ended that was on | runs |",
        "|---|---|",
        *[f"| {words} | {number} |" for words, number in how.most_common()],
        "",
        "| kind of run | runs |",
        "|---|---|",
        *[f"| {name} | {number} |" for name, number in sorted(kinds.items())],
    ]
    return "\n".join(lines) + "\n"


def yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


def main() -> int:
    parser = argparse.ArgumentParser(description="Press Ctrl-C at random moments.")
    parser.add_argument("--keys", type=int, help="how many runs to interrupt; no report is written then")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return 0
    keys = KEYS if arguments.keys is None else arguments.keys
    begin = time.monotonic()
    outcomes = press(keys, keys * PAIRS // KEYS, arguments.seed, lambda line: print(line, file=sys.stderr))
    bad = [outcome for outcome in outcomes if not outcome.holds]
    for outcome in bad:
        print(outcome, file=sys.stderr)
    if arguments.keys is None:
        REPORT.write_text(written(outcomes, time.monotonic() - begin), encoding="utf-8")
        print("wrote docs/benchmarks/interrupt.md", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
