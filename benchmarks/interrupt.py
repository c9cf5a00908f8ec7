"""Does Ctrl-C ever lose a value? Real SIGINTs at random moments of `gpmi.maximize`.

A child process runs `maximize` again and again. Its f writes down each value that it returns. The parent presses the
key once or twice at a random moment of each run. Afterwards every value must be in the result, or in the attribute
`result` of the KeyboardInterrupt. Nothing else may be raised, and nothing may hang.

    python benchmarks/interrupt.py            1,000 keys, 200 of them followed by a second one; writes the page; minutes
    python benchmarks/interrupt.py --keys 50  fewer, no page
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
from functools import partial
from types import FrameType
from typing import Any

import harness
import numpy as np

import gpmi
from gpmi import kernels
from gpmi._support.long_work import lazy_call
from gpmi.run.stopping import ImprovementBelow, RegretBelow, Rule, Seconds, Stop

KEYS, PAIRS = 1000, 200
RUNS_OF_A_CHILD = 25
HANGS = 300.0  # seconds after the last key by which a run must have ended; on a quiet machine runs take less than one
WITHOUT = "KeyboardInterrupt without a result"
APART = 0.005  # seconds between the keys of a pair, at most


# The child


def wave(x: Any) -> float:
    """Return a sum of sines of a point's values."""
    values = list(x.values()) if isinstance(x, dict) else x
    return float(sum(np.sin(5.0 * float(v)) for v in values))


class EveryThird(Rule):
    """A user's rule that reads the ledger now and then, and never stops."""

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
    """The handler of the child: during a run a key raises KeyboardInterrupt; otherwise it does nothing."""

    def __init__(self) -> None:
        self.on = False

    def press(self, number: int, frame: FrameType | None) -> None:
        if self.on:
            raise KeyboardInterrupt


def child(first: int, count: int) -> None:
    """Make the runs `first`, `first` + 1, ... of the list above, over and over, each after a line on stdin.

    One line of JSON on stdout says that a run starts, and another how it ended.
    """
    key = Key()
    signal.signal(signal.SIGINT, key.press)
    for number in range(first, first + count):
        name, space, arguments = RUNS[number % len(RUNS)]
        sys.stdin.buffer.readline()  # a key that came too late for the last run must not hit this one
        say({"starts": number, "name": name})
        say(one_run(number, name, space, arguments, key))


def say(what: dict[str, Any]) -> None:
    """Send one line to the parent."""
    os.write(1, json.dumps(what).encode() + b"\n")


def one_run(number: int, name: str, space: Any, arguments: dict[str, Any], key: Key) -> dict[str, Any]:
    """Make one run and return how it ended."""
    with tempfile.TemporaryFile() as file:

        def f(x: Any) -> float:
            y = wave(x)
            if name.endswith("slow f"):
                time.sleep(0.005)
            # No signal is handled between writing and returning, so a value that is written is returned.
            lazy_call(partial(os.write, file.fileno()), np.float64(y).tobytes())[0]
            return y

        results = lazy_call(partial(gpmi.maximize, f, seed=number, **arguments), space)
        ended, result, begin = "returned", None, time.monotonic()
        try:
            try:
                key.on = True
                results[0]
            finally:
                key.on = False
        except KeyboardInterrupt as error:
            result = getattr(error, "result", None)
            ended = "KeyboardInterrupt" if result is not None else WITHOUT
        except BaseException as error:
            result, ended = getattr(error, "result", None), f"{type(error).__name__}: {error}"
        end = time.monotonic()
        result = results[0] if results else result
        file.seek(0)
        returned = np.frombuffer(file.read()).tolist()
    told = [] if result is None else [trial.y for trial in result.trials]
    reason = None if result is None else result.reason
    outcome = {"ended": ended, "lost": returned != told, "reason": reason, "n": len(returned)}
    return {**outcome, "begin": begin, "end": end}


# The parent


@dataclass(frozen=True)
class Outcome:
    """How one run ended."""

    name: str
    keys: int  # pressed
    ended: str  # "returned", or what was raised
    reason: str | None  # of the result
    lost: bool  # whether a value that f returned is not in the result
    evaluations: int
    landed: bool  # whether the first key came during the run, and not after its end

    @property
    def holds(self) -> bool:
        """Return whether no value is lost and nothing was raised but a KeyboardInterrupt with the result.

        A key that comes before keys are deferred, in the first instructions, has no result to carry.
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
        """Let the child begin its next run, and return its name."""
        os.write(self._go, b"\n")
        line = self.next()
        assert line is not None and "starts" in line, f"the child does not start its next run: {line}"
        name: str = line["name"]
        return name

    def next(self) -> dict[str, Any] | None:
        """Return the next line, or None if none comes within HANGS seconds or the child has ended."""
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
    """Interrupt runs until `keys` of them were hit, `pairs` of these twice, and return how each run ended.

    The moments are spread evenly over the length that such a run has without a key.
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
    """Return the seconds of each kind of run without a key, the second time, when everything is imported."""
    seconds: dict[str, float] = {}
    with started(0, 2 * len(RUNS)) as process:
        lines = Lines(process)
        for _ in range(2 * len(RUNS)):
            name, line = lines.start(), lines.next()
            assert line is not None and line["ended"] == "returned", f"{name} does not end by itself: {line}"
            seconds[name] = line["end"] - line["begin"]
    return seconds


def pressed_child(first: int, twice: list[bool], lengths: dict[str, float], rng: random.Random) -> list[Outcome]:
    """Interrupt the runs of one child, each with one key or two. Runs that end before their key renew `lengths`."""
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
                if at > line["end"]:  # it was not interrupted, so this is its length now
                    lengths[name] = line["end"] - line["begin"]
                how = line["ended"], line["reason"], line["lost"], line["n"], landed
                outcomes.append(Outcome(name, 1 + pair, *how))
        finally:
            process.kill()
    return outcomes


# The page


def report(outcomes: list[Outcome], seconds: float) -> None:
    """Write the page."""
    landed = [outcome for outcome in outcomes if outcome.landed]
    pairs = sum(outcome.keys == 2 for outcome in landed)
    bad = [outcome for outcome in outcomes if not outcome.holds]
    early = sum(outcome.ended == WITHOUT for outcome in outcomes if outcome.holds)
    how = Counter(f"{o.ended}, {o.reason or 'before the first evaluation'}" for o in landed)
    kinds = Counter(outcome.name for outcome in landed)
    lost = f"{sum(o.lost for o in outcomes)} of {len(outcomes):,} runs lost one"
    raised = (
        f"{len(bad)} exceptions or hangs; besides, {early} keys came before the run had begun, with nothing to carry"
    )
    promises = [
        (
            "every value that f returned is in the result",
            f"{lost} ({sum(o.evaluations for o in outcomes):,} values)",
            harness.yes(not bad),
        ),
        ("no hang, nothing raised but KeyboardInterrupt with `.result`", raised, harness.yes(not bad)),
    ]
    lines = [
        *harness.table(("promise", "measured", "holds"), promises),
        "",
        f"{len(landed) - pairs:,} single keys and {pairs:,} pairs, the second at most {1e3 * APART:.0f} ms after the "
        f"first, were pressed while a run was on; {len(outcomes) - len(landed):,} more came just after its end.",
        "",
        *harness.table(("how a run ended that was on", "runs"), how.most_common()),
        "",
        *harness.table(("kind of run", "runs"), sorted(kinds.items())),
    ]
    text = (
        "Real SIGINTs at random moments of `gpmi.maximize`, evenly spread over the length of a run, "
        f"in {seconds:.0f} s."
    )
    harness.page(__file__, "Ctrl-C, measured", text, lines, runs=len(outcomes))


def main() -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("--keys", type=int, help="how many runs to interrupt; no page is written then")
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
        report(outcomes, time.monotonic() - begin)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
