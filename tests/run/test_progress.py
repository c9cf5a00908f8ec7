"""A run while it goes on: what a terminal shows, and the lines that are printed where there is none."""

from __future__ import annotations

import io
import itertools
import sys
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from waiting import FOR_EVER, Clock, wait_until

import gpmi
from gpmi._support.text import clock
from gpmi.analysis.ledger import Ledger
from gpmi.run import progress

KNOWN: dict[str, Any] = {"kernel": gpmi.kernels.RBF(0.3), "noise_var": 1e-4, "policy": gpmi.GPMI()}


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(progress, "time", moved)
    return moved


def f(x: Any) -> float:
    return -(float(x[0]) ** 2)


def on_screen(state: progress.ProgressState, width: int = 80) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(state)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def state_of(**arguments: Any) -> tuple[gpmi.Optimizer, progress.ProgressState]:
    optimizer = gpmi.Optimizer([(-1.0, 1.0)], seed=0, **arguments)
    return optimizer, progress.ProgressState(optimizer)


# What is known


def test_best_last_values_and_the_time_left(hours: Clock) -> None:
    optimizer, state = state_of(budget=10, **KNOWN)
    for y in (1.0, 3.0, 2.0, 0.5):
        hours.now += 6.0
        state.end(optimizer.tell(optimizer.ask(), y))
    hours.now += 1.0
    best = optimizer.best
    assert best is not None and state.best == f"3 at [{best.x[0]:.6g}]"
    assert (state.count, state.times, list(state.last)) == (
        "4/10",
        "0:00:25, 0:00:35 left",
        ["0.5", "2", "3", "1"],
    )
    state.end(optimizer.fail(optimizer.ask()))
    assert state.last[0] == "failed" and state.count == "5/10"
    state.close()
    assert state.times == "0:00:25"


def test_the_best_of_a_run_for_the_minimum_is_the_least() -> None:
    optimizer, state = state_of(goal="min", **KNOWN)
    for x, y in ((0.5, 1.0), (0.1, -2.0), (0.2, 3.0)):
        state.end(optimizer.tell([x], y))
    assert state.best == "-2 at [0.1]" and state.count == "3 evaluations" and "left" not in state.times


def test_what_was_told_before_does_not_make_the_run_look_quick(hours: Clock) -> None:
    optimizer = gpmi.Optimizer([(-1.0, 1.0)], seed=0, budget=12, **KNOWN)
    for x in np.linspace(-1.0, 1.0, 8):
        optimizer.tell([x], f([x]))
    state = progress.ProgressState(optimizer)
    hours.now += 60.0
    state.end(optimizer.tell(optimizer.ask(), 0.0))
    assert state.count == "9/12" and state.times == "0:01:00, 0:03:00 left"


GOALS: dict[str, Any] = {"yield": "max", "size": gpmi.Match(5.0, within=9.0), "purity": gpmi.AtLeast(0.5)}


def test_several_objectives_show_the_front_and_the_last_outputs() -> None:
    optimizer, state = state_of(goals=GOALS, budget=9)
    assert state.best == "" and "front" not in state.line
    state.end(optimizer.tell([0.1], {"yield": 3.0, "size": 4.0, "purity": 0.75}))
    assert state.best == "1 trial: largest yield 3, closest size 4"
    state.end(optimizer.tell([0.2], {"yield": 4.0, "size": 1.0, "purity": 0.75}))
    state.end(optimizer.tell([0.3], {"yield": 9.0, "size": 5.0, "purity": 0.25}))
    late = optimizer.tell([0.4], {"yield": 1.0 / 3.0, "purity": 0.9})
    state.end(late)
    assert state.best == "2 trials: largest yield 4, closest size 4"
    assert list(state.last) == ["(0.33333, ?)", "(9, 5)", "(4, 1)", "(3, 4)"]
    state.begin(optimizer.tell(late, {"size": 5.0}))
    state.end(optimizer.fail(optimizer._next_trial(optimizer._subspaces.whole)))
    assert state.last[0] == "failed" and state.best == "3 trials: largest yield 4, closest size 5"
    screen = on_screen(state)
    assert screen[1].split(maxsplit=1) == ["front", state.best] and screen[2].startswith("last")
    assert "   front 3 trials: largest yield 4, closest size 5   last failed" in state.line
    state.close()
    assert state.warnings == ()


def test_a_single_objective_with_goals_is_shown_as_y_is() -> None:
    optimizer, state = state_of(goals={"cost": "min", "purity": gpmi.AtLeast(0.5)})
    state.end(optimizer.tell([0.5], {"cost": 1.0, "purity": 0.75}))
    state.end(optimizer.tell([0.25], {"cost": 0.5, "purity": 0.25}))
    state.end(optimizer.tell([0.75], {"purity": 0.75}))
    assert state.best == "1 at [0.5]" and list(state.last) == ["told", "0.5", "1"]


def test_what_is_missing_of_the_hypervolume_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_DRAW", 0.0)
    goals: dict[str, Any] = {"yield": gpmi.Max(at_least=-1.0), "cost": gpmi.Min(at_most=1.0)}
    optimizer, state = state_of(goals=goals, budget=20, kernel=gpmi.kernels.RBF(0.3), noise_var=1e-4)
    for x in np.linspace(-1.0, 1.0, 9):
        optimizer.tell([x], {"yield": float(x), "cost": float(x**2)})
    state._draw_missing()
    missing = optimizer.ledger.missing
    share = f"{100.0 * missing.share()[1]:.2g} %"
    assert missing.known and state.missing.startswith(f"at most {share} of what is possible, ")
    assert f"   missing {state.missing}" in state.line
    assert any(line.startswith("missing  at most ") for line in on_screen(state))


def test_an_output_with_an_over_confident_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer, state = state_of(goals={"yield": "max", "cost": "min"})
    optimizer.tell([0.5], {"yield": 1.0, "cost": 1.0})

    class Doubt:
        verdict, reason, is_over_confident = "over-confident", "3 of 9 values were far away", True

    monkeypatch.setattr(Ledger, "calibration", Doubt())
    state.close()
    reason = "the model of yield was over-confident (3 of 9 values were far away)"
    assert state.warnings[0].startswith(reason) and len(state.warnings) == 2


def test_clock() -> None:
    assert [clock(s) for s in (0.0, 59.6, 3599.4, 3661.0, 90_000.0)] == [
        "0:00:00", "0:01:00", "0:59:59", "1:01:01", "25:00:00"
    ]  # fmt: skip


def test_the_regret_is_drawn_when_that_takes_a_twentieth_of_the_time_at_most(
    hours: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def slow_look(ledger: Any) -> Any:
        looks.append(hours.now)
        hours.now += 3.0
        return real(ledger)

    real = Ledger.regret
    monkeypatch.setattr(Ledger, "regret", slow_look)
    optimizer, state = state_of(budget=99, **KNOWN)
    begin = hours.now
    for i in range(40):
        hours.now += 4.0
        state.end(optimizer.tell([i / 40.0], f([i / 40.0])))
    assert looks[0] - begin > progress.FIRST_DRAW and looks[0] - begin <= progress.FIRST_DRAW + 4.0
    spent = np.diff(looks)
    assert len(looks) >= 2 and spent.min() > 60.0 and spent.max() <= 3.0 + 60.0 + 4.0
    assert 3.0 * len(looks) <= (hours.now - begin) / 18.0
    low, high = real(optimizer.ledger).interval()
    assert state.missing.endswith(" values") and state.missing.startswith("at most ") and low == 0.0 < high


def test_a_regret_that_is_not_known_yet_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_DRAW", 0.0)
    optimizer, state = state_of(budget=9)
    state.end(optimizer.tell([0.5], 1.0))
    assert state.missing == "" and not optimizer.ledger.regret().known


def test_a_model_that_fails_does_not_end_the_display(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(ledger: Any) -> Any:
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr(Ledger, "regret", fails)
    monkeypatch.setattr(progress, "FIRST_DRAW", 0.0)
    optimizer, state = state_of(budget=9, **KNOWN)
    state.end(optimizer.tell([0.5], 1.0))
    state.close()
    assert state.missing == "" and state.best == "1 at [0.5]"


def test_the_ledger_warns_of_a_model_that_is_over_confident(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer, state = state_of(budget=40, **KNOWN)
    for x in np.random.default_rng(0).random(12):
        state.end(optimizer.tell([x], 40.0 * np.sin(40.0 * x)))  # of a function that the prior calls impossible
    state.close()
    assert optimizer.ledger.calibration.verdict == "over-confident"
    assert state.warnings[0].startswith(f"the model was over-confident ({optimizer.ledger.calibration.reason})")
    assert on_screen(state, 160)[-1] == state.warnings[-1]


# On a terminal


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_of_any_width_shows_all_lines(width: int, hours: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MOST_LISTED", 2)
    optimizer, state = state_of(budget=9, **KNOWN)
    for _ in range(4):
        optimizer.ask()
        state.begin(optimizer.pending[-1])
    hours.now += 5.0
    state.end(optimizer.tell(0, 3.0))
    state.missing = "at most 0.5, after 1 values"
    state.last.extend(["-1234.5"] * 5)
    head, *lines = on_screen(state, width)
    assert (
        head.startswith("1/9 ")
        and head.endswith(" 0:00:05, 0:00:40 left")
        and "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in head
    )
    assert [line.split()[0] for line in lines[:4]] == ["best", "last", "missing", "now"]
    assert lines[1].endswith("\N{HORIZONTAL ELLIPSIS}") == (width == 40)  # what is cut off is seen to be cut off
    assert lines[3].startswith("now      trial 1, 5 s, [") and lines[4].startswith("         trial 2, 5 s, [")
    assert lines[5] == "         and 1 more" and len(lines) == 6
    assert all(len(line) <= width for line in (head, *lines))
    state.close()
    assert not any("trial" in line for line in on_screen(state, width))


def test_what_others_evaluate_of_a_study_is_shown_as_theirs(hours: Clock) -> None:
    optimizer, state = state_of(budget=9, **KNOWN)
    optimizer.ask()
    optimizer.ask()
    state.begin(optimizer.pending[0])
    hours.now += 3.0
    mine, theirs = state.evaluated
    assert mine.startswith("trial 0, 3 s, [") and theirs.startswith("trial 1, 3 s, another process, [")
    state.end(optimizer.tell(1, 1.0))
    assert state.evaluated == [mine] and state.count == "1/9"


def test_a_terminal_is_updated_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(width=80, height=24, file=io.StringIO(), force_terminal=True, color_system=None, _environ={})
    monkeypatch.setattr(progress, "lasting_console", lambda stderr: terminal)
    result = gpmi.maximize(f, [(-1.0, 1.0)], budget=5, seed=0, progress=True, **KNOWN)
    assert isinstance(terminal.file, io.StringIO)
    written = terminal.file.getvalue()
    assert "5/5" in written and f"best     {result.y:.6g} at [" in written
    assert "\x1b[?25l" in written and "\x1b[?25h" in written  # the cursor is hidden, and comes back


# Elsewhere


def test_without_a_terminal_the_last_line_says_all(hours: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    result = gpmi.maximize(f, [(-1.0, 1.0)], budget=6, seed=0, progress=True, **KNOWN)
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith("6/6   0:00:00   ") and line.endswith(
        f"best {result.y:.6g} at [{result.x[0]:.6g}]   last {result.trials[-1].y:.5g}"
    )


def test_lines_are_printed_now_and_then_and_a_long_log_stays_short(
    hours: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    optimizer = gpmi.Optimizer([(-1.0, 1.0)], seed=0, **KNOWN)
    trial = optimizer.tell([0.5], 1.0)
    with progress.live(optimizer) as display:
        for _ in range(60):  # a minute
            hours.now += 1.0
            display(trial)
        first = capsys.readouterr().err.splitlines()
        for _ in range(24 * 60):  # and a day
            hours.now += 60.0
            display(trial)
    later = capsys.readouterr().err.splitlines()
    assert len(first) == 6 and [line.split()[2] for line in first] == [f"0:00:{t}" for t in (10, 20, 30, 40, 50)] + [
        "0:01:00"
    ]
    assert 20 < len(later) < 150 and later[-1].startswith("1 evaluations   24:01:00   best 1 at [0.5]   last 1")


def test_a_warning_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    optimizer, state = state_of(**KNOWN)
    state.end(optimizer.tell([0.5], 1.0))
    lines = progress.ProgressLines(state, progress.lasting_console(stderr=True))
    for warnings in ((), ("lock-in: a [b]",), ("lock-in: a [b]",), ("over-confident: c", "lock-in: a [b]")):
        state.warnings = warnings
        lines.print()
    shown = capsys.readouterr().err.splitlines()
    assert [line for line in shown if "best" not in line] == ["lock-in: a [b]", "over-confident: c"] and len(shown) == 6


def test_no_evaluation_at_all_is_shown_too(hours: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.live(gpmi.Optimizer([(-1.0, 1.0)], seed=0, budget=4)):
        pass
    assert capsys.readouterr().err.splitlines() == ["0/4   0:00:00"]


def test_a_terminal_that_can_do_nothing_gets_lines(hours: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    monkeypatch.setattr(progress, "lasting_console", lambda stderr: dumb)
    gpmi.maximize(f, [(-1.0, 1.0)], budget=3, seed=0, progress=True, **KNOWN)
    assert isinstance(dumb.file, io.StringIO) and dumb.file.getvalue().startswith("3/3   0:00:00   ")


def test_progress_without_rich_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(ImportError, match=r'pip install "gpmi\[cli\]"'):
        gpmi.maximize(lambda x: 0.0, [(-1.0, 1.0)], budget=2, seed=0, progress=True)


def test_a_display_changes_no_query(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The regret is drawn after every value, and not at all."""
    ticks = itertools.count()
    monkeypatch.setattr(progress, "FIRST_DRAW", 0.0)
    moving = Clock()
    monkeypatch.setattr(moving, "monotonic", lambda: 1e-3 * next(ticks) ** 2)
    monkeypatch.setattr(progress, "time", moving)
    shown = gpmi.maximize(f, [(-1.0, 1.0)], budget=8, seed=0, progress=True)
    hidden = gpmi.maximize(f, [(-1.0, 1.0)], budget=8, seed=0)
    assert [trial.x.tolist() for trial in shown.trials] == [trial.x.tolist() for trial in hidden.trials]
    assert "missing" in capsys.readouterr().err


# Several runs


def test_a_count_is_shown_on_a_terminal_after_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(width=80, height=24, file=io.StringIO(), force_terminal=True, color_system=None, _environ={})
    monkeypatch.setattr(progress, "lasting_console", lambda stderr: terminal)
    assert isinstance(terminal.file, io.StringIO) and progress.PATIENCE == 2.0
    monkeypatch.setattr(progress, "PATIENCE", FOR_EVER)
    with progress.counted(2, "runs") as advance:
        advance()
    assert "runs" not in terminal.file.getvalue()
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.counted(2, "runs") as advance:
        advance()
        wait_until(lambda: "runs" in terminal.file.getvalue())  # type: ignore[attr-defined]
    assert "1/2" in terminal.file.getvalue()


def test_a_count_elsewhere_is_a_line_now_and_then(hours: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.counted(4, "runs") as advance:
        for _ in range(4):
            hours.now += 3600.0
            advance()
    assert capsys.readouterr().err.splitlines() == [f"{k}/4 runs, {k}:00:00, {4 - k}:00:00 left" for k in (1, 2, 3)]


def test_a_count_without_rich_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    wanted = r"the progress display needs rich: pip install \"gpmi\[cli\]\""
    with pytest.raises(ImportError, match=wanted), progress.counted(1, "runs"):
        pass
