"""The command line, its demonstration, and the function the demonstration maximises."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.optimize import minimize
from typer.testing import CliRunner

import gpmi
from gpmi import cli
from gpmi.cli import demo, demo_figure, extra_commands
from gpmi.cli.demo_function import HIMMELBLAU, himmelblau


def invoke(*arguments):
    return CliRunner().invoke(cli.app(), [str(a) for a in arguments])


# The function


def test_himmelblau_is_the_negative_of_the_tilted_sum_of_squares():
    assert himmelblau([3.0, 2.0]) == -(0.0 + 15.0 + 6.0)  # a minimum of H, where both squares vanish
    assert himmelblau([0.0, 0.0]) == -(121.0 + 49.0)


def test_the_maximum_of_himmelblau_is_the_best_of_a_fine_grid_polished():
    (lo, hi), _ = HIMMELBLAU.bounds
    side = np.linspace(lo, hi, 401)
    x1, x2 = np.meshgrid(side, side)
    values = -((x1**2 + x2 - 11.0) ** 2 + (x1 + x2**2 - 7.0) ** 2 + 5.0 * x1 + 3.0 * x2)
    start = np.unravel_index(np.argmax(values), values.shape)
    found = minimize(lambda x: -himmelblau(x), [x1[start], x2[start]], method="Nelder-Mead", options={"xatol": 1e-9})
    assert values.max() <= HIMMELBLAU.maximum
    assert -found.fun == pytest.approx(HIMMELBLAU.maximum, rel=1e-12)
    assert found.x == pytest.approx(HIMMELBLAU.argmax, abs=1e-6)
    assert himmelblau(HIMMELBLAU.argmax) == pytest.approx(HIMMELBLAU.maximum, rel=1e-14)


# The demonstration


@pytest.fixture
def blank_picture(monkeypatch):
    """Draw an empty picture, where only the text matters: drawing costs more than the run."""
    monkeypatch.setattr(demo, "story", lambda *_: Figure())


def test_version():
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.output == f"gpmi {gpmi.__version__}\n"


@pytest.mark.parametrize(
    ("suffix", "magic"),
    [
        (".png", b"\x89PNG"),
        pytest.param(".svg", b"<?xml", marks=pytest.mark.slow),
        pytest.param(".pdf", b"%PDF", marks=pytest.mark.slow),
    ],
)
def test_the_demo_says_what_it_found_and_writes_the_picture(tmp_path, suffix, magic):
    out = tmp_path / f"picture{suffix}"
    result = invoke("demo", "--budget", 8, "--seed", 1, "--out", out)
    assert result.exit_code == 0, result.output
    for words in (
        "best point",
        "recommended",
        "below the maximum",
        "stopped: budget, after 8",
        "CPU",
        "Not found: the best value is",
        "points spread out, then each where a model",
    ):
        assert words in result.output
    *_, picture, following = result.output.splitlines()
    assert picture == f"Picture: {out}" and following.startswith("Next: gpmi demo --seed 2 (or --noise, ")
    assert out.read_bytes().startswith(magic)
    assert out.stat().st_size > 10_000


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("reader", ["| head -1", "| true", "2>&1 | true", "2> >(true)", ">/dev/full"])
@pytest.mark.slow
def test_whoever_reads_the_demo_the_picture_is_written_and_there_is_no_traceback(tmp_path, reader):
    if "/dev/full" in reader and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    blank = "from matplotlib.figure import Figure; demo.story = lambda *_: Figure()"  # drawing costs more than the run
    code = f"from gpmi.cli import demo, main; {blank}; main()"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} demo --budget 4 {reader}"
    ended = "; echo code ${PIPESTATUS[0]}"
    done = subprocess.run(["bash", "-c", command + ended], capture_output=True, text=True, cwd=tmp_path)
    assert (tmp_path / "gpmi-demo.png").read_bytes().startswith(b"\x89PNG")
    assert "Traceback" not in done.stderr and "Aborted" not in done.stderr and "Exception" not in done.stderr
    assert done.stdout.endswith("code 1\n" if "full" in reader else "code 0\n")


def test_the_report_of_the_demo_is_printed_if_the_picture_fails(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device", "a.png")

    monkeypatch.setattr(demo, "story", fail)
    result = invoke("demo", "--budget", 4, "--out", tmp_path / "a.png")
    assert result.exit_code == 1 and "best point" in result.stdout and "Traceback" not in result.output
    assert "gpmi: 'a.png' cannot be used (No space left on device); fix that, or give another --out" in result.stderr


@pytest.mark.usefixtures("blank_picture")
def test_the_demo_reports_the_same_run_as_maximize(tmp_path):
    result = invoke("demo", "--budget", 8, "--seed", 1, "--out", tmp_path / "a.png")
    best = gpmi.maximize(HIMMELBLAU.f, HIMMELBLAU.bounds, budget=8, seed=1)
    row = next(line.split() for line in result.output.splitlines() if line.startswith("best point"))
    assert row[2:5] == [f"{best.x[0]:.4f}", f"{best.x[1]:.4f}", f"{best.y:.4f}"]
    assert float(row[5]) == pytest.approx(HIMMELBLAU.maximum - best.y, rel=0.006)


@pytest.mark.slow
@pytest.mark.usefixtures("blank_picture")
@pytest.mark.parametrize("seed", [0, 1])
def test_the_demo_finds_the_maximum_and_ends_with_it(tmp_path, seed):
    result = invoke("demo", "--seed", seed, "--out", tmp_path / "a.png")
    found = next(line for line in result.output.splitlines() if line.startswith("Found the maximum: "))
    y, count = re.search(
        r": (\S+) at \(-3\.8\d+, -3\.3\d+\)\. Evaluation (\d+) of 60 was .* within 0\.1 of it", found
    ).groups()
    assert HIMMELBLAU.maximum - 0.1 < float(y) <= HIMMELBLAU.maximum + 5e-4  # which is printed with five digits
    again = gpmi.maximize(HIMMELBLAU.f, HIMMELBLAU.bounds, budget=60, seed=seed)
    assert int(count) == 1 + next(i for i, trial in enumerate(again.trials) if HIMMELBLAU.maximum - trial.y < 0.1)


@pytest.mark.parametrize("budget", [1, 2, 9])
def test_the_picture_of_the_demo_speaks_of_what_happened(budget):
    run = gpmi.maximize(HIMMELBLAU.f, HIMMELBLAU.bounds, budget=budget, seed=0)
    figure = demo_figure.story(run, HIMMELBLAU)
    titles = [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]
    assert sorted(title[:2] for title in titles) == ["1.", "2.", "3.", "4.", "5.", "6."]
    gap = HIMMELBLAU.maximum - run.y
    assert f"2. Where it looked: {budget} evaluation{'s' if budget > 1 else ''}" in titles
    assert f"5. The best so far: {gap:.3g} below the maximum" in titles
    words = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert "the maximum" in words and "its best guess" in words and not any("phi" in word for word in (*titles, *words))


@pytest.mark.parametrize(
    ("kind", "budget", "words"),
    [
        ("noise", 8, ["Each value is wrong by about 5", "Recommended: (", "where the value without noise is"]),
        ("objectives", 8, ["largest yield", "can I stop?", "recipes that no other beats in both"]),
        ("curves", 6, ["the epochs of 6 trainings", "below the best possible value", "trainings were stopped"]),
    ],
)
def test_the_demo_shows_noise_objectives_and_curves(tmp_path, kind, budget, words):
    out = tmp_path / "a.png"
    result = invoke("demo", f"--{kind}", "--budget", budget, "--out", out)
    assert result.exit_code == 0, result.output
    assert not [each for each in words if each not in result.output]
    assert out.read_bytes().startswith(b"\x89PNG")


def test_one_kind_of_demo_at_a_time(tmp_path):
    result = invoke("demo", "--noise", "--curves", "--out", tmp_path / "a.png")
    assert result.exit_code == 1 and "there is --noise and --curves; give one of them" in result.stderr


def test_what_one_more_value_gains_is_the_mean_of_draws():
    rng, mu, sd = np.random.default_rng(0), np.array([-1.0, 0.0, 2.0, 1.0, -1.0]), np.array([1.0, 0.5, 0.1, 0.0, 0.0])
    drawn = np.maximum(mu + sd * rng.standard_normal((200_000, 5)), 0.3) - 0.3
    assert demo_figure._gain_of_one_more(mu, sd, 0.3) == pytest.approx(drawn.mean(axis=0), abs=0.005)


def test_found_is_the_first_value_near_the_maximum():
    run = gpmi.maximize(HIMMELBLAU.f, HIMMELBLAU.bounds, budget=3, seed=0)
    assert demo_figure.found_after(run, HIMMELBLAU) is None
    optimizer = gpmi.Optimizer(HIMMELBLAU.bounds, seed=0)
    for x in ([0.0, 0.0], HIMMELBLAU.argmax, [1.0, 1.0]):
        optimizer.tell(x, HIMMELBLAU.f(x))
    result = gpmi.Result.of(optimizer, "budget")
    assert demo_figure.found_after(result, HIMMELBLAU) == 2
    assert "the maximum, after 2 evaluations" in " ".join(
        ax.get_title(loc="left") for ax in demo_figure.story(result, HIMMELBLAU).axes
    )


def test_the_demo_names_the_program_as_it_was_called(tmp_path, monkeypatch):
    program = tmp_path / "gpmi"
    program.write_text("")
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setattr(extra_commands.shutil, "which", lambda name: None)
    assert extra_commands.program_name() == str(program)
    monkeypatch.setattr(extra_commands.shutil, "which", lambda name: str(program))
    assert extra_commands.program_name() == "gpmi"


def test_the_demo_tells_of_events(capsys):
    from rich.console import Console

    run = gpmi.maximize(HIMMELBLAU.f, HIMMELBLAU.bounds, budget=3, seed=0)
    event = gpmi.Event("jitter", "observation 3: 1e-9 was added [to its noise]")
    demo.report("hills", gpmi.Result(**{**vars(run), "events": (event,)}), 1.0, 1.0, Console())
    assert "jitter: observation 3: 1e-9 was added [to its noise]" in capsys.readouterr().out


def test_a_demo_that_is_interrupted_at_once_says_so(tmp_path, monkeypatch):
    def interrupted(f, space, *, seed, **_):
        return gpmi.Result.of(gpmi.Optimizer(space, seed=seed), "interrupted")

    monkeypatch.setattr(demo, "maximize", interrupted)
    result = invoke("demo", "--out", tmp_path / "a.png")
    assert result.exit_code == 0
    assert result.output.endswith("\nInterrupted before the first evaluation: there is nothing to show.\n")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def no_time_is_spent(monkeypatch):
    def maximize(*_, **__):
        raise AssertionError("evaluated before the arguments were checked")

    monkeypatch.setattr(demo, "maximize", maximize)


@pytest.mark.usefixtures("no_time_is_spent")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--budget", "0"], "budget is 0; give a whole number of at least 1"),
        (["--budget", "-3"], "budget is -3"),
        (["--seed", "-1"], "seed is -1"),
        (["--budget", "1" + 30 * "0"], "at most 9223372036854775807"),
        (["--seed", "1" + 120 * "0"], "seed is 1000"),
        (["--out", 300 * "a" + ".png"], "cannot be written to (File name too long); give another file"),
        (["--out", 3000 * "a/" + "a.png"], "give another file"),
        (["--out", "picture.xyz"], "ends in .pdf, .png, .svg"),
        (["--out", "picture"], "ends in .pdf, .png, .svg"),
        (["--out", "nowhere/picture.png"], "there is no folder 'nowhere'"),
        (["--out", "folder.png"], "cannot be overwritten"),
        (["--out", "/proc/picture.png"], "cannot be written to"),
    ],
)
def test_a_mistake_gets_one_line_before_any_time_is_spent(tmp_path, monkeypatch, arguments, words):
    if "/proc/picture.png" in arguments and not sys.platform.startswith("linux"):
        pytest.skip("there is no /proc")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    result = invoke("demo", *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("gpmi: ") and words in result.stderr
    assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


@pytest.mark.usefixtures("no_time_is_spent")
def test_the_demo_without_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke("demo", "--out", tmp_path / "a.png")
    assert result.exit_code == 1
    assert 'pip install "gpmi[cli,plots]"' in result.stderr and result.stderr.count("\n") == 1


def test_the_program_without_typer_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 'gpmi: the command line needs typer: pip install "gpmi[cli,plots]"'


def test_the_console_entry_runs():
    command = [sys.executable, "-m", "gpmi", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"gpmi {gpmi.__version__}\n"


def test_nothing_imports_the_command_line():
    unwanted = "{'gpmi.cli', 'typer', 'rich', 'matplotlib'}"
    code = f"import sys, gpmi, gpmi.plots, gpmi.run.progress; assert not {unwanted} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
