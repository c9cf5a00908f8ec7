"""What people read at a prompt is short, aligned, safe to print, and says what the objects hold."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpmi
from gpmi._support import text
from gpmi.analysis.ledger import Regret, facts
from gpmi.analysis.ledger.calibration import Calibration
from gpmi.trials import Trial
from gpmi.trials.dataframe import BEST, COLUMNS, WIDE, frame

MIXED = {"rate": gpmi.Real(1e-5, 1e-1, log=True), "layers": gpmi.Int(1, 8), "kind": ["relu", "<b>", None]}


def mixed_loss(p):
    return (np.log10(p["rate"]) + 3.0) ** 2 + (p["layers"] - 4) ** 2 + (p["kind"] == "relu")


def loss_run(budget=9, failed=(2, 5)):
    """A run in which some evaluations failed."""
    optimizer = gpmi.Optimizer(MIXED, seed=3, goal="min")
    for i in range(budget):
        x = optimizer.ask()
        _ = optimizer.fail(x) if i in failed else optimizer.tell(x, mixed_loss(x))
    return gpmi.Result.of(optimizer, "budget")


@pytest.fixture(scope="module")
def box_result():
    return gpmi.maximize(lambda x: -float((x[0] - 0.3) ** 2), [(0.0, 1.0)] * 2, budget=8, seed=0)


@pytest.fixture(scope="module")
def mixed_result():
    return loss_run()


def lines_of(shown):
    """The lines of an aligned text as a dict; all texts begin in the same column."""
    lines = re.sub(r"\n +", " ", shown).splitlines()  # a point may take several lines
    assert len(lines) < 15 and all(len(line) <= 120 for line in shown.splitlines())
    column = max(len(line.split("  ")[0]) for line in lines) + 2
    assert all(line[column - 1] == " " and line[column] != " " for line in lines)
    return {line[:column].rstrip(): line[column:] for line in lines}


# Pieces


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "none"), (1.0, "1"), (-0.123456789, "-0.123457"), (1.5e-12, "1.5e-12"), (np.inf, "inf")],
)
def test_numbers_have_six_digits(value, shown):
    assert text.rounded(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "True"),
        (np.True_, "True"),
        (np.int64(3), "3"),
        (12345678, "12345678"),
        (np.float32(0.5), "0.5"),
        ("a\n'b'", "\"a\\n'b'\""),
        (None, "None"),
    ],
)
def test_a_coordinate_is_shown_as_python_reads_it(value, shown):
    assert text.coordinate(value) == shown
    assert ast.literal_eval(shown) == value


def test_points_can_be_copied_back():
    assert text.point(np.array([0.5, 0.25, 1.0])) == "[0.5, 0.25, 1]"
    assert text.point([0.1 + 0.2]) == "[0.3]"
    x = {"rate": 1e-5, "layers": 3, "kind": "relu", "bias": True}
    assert text.point(x) == "{'rate': 1e-05, 'layers': 3, 'kind': 'relu', 'bias': True}"
    assert ast.literal_eval(text.point(x)) == x
    assert text.point(None) == "none"


@pytest.mark.parametrize("width", [20, 60, 120])
def test_a_long_point_says_how_much_is_left_out(width):
    x = np.linspace(0.0, 1.0, 50)
    for point in (x, {f"parameter {i}": value for i, value in enumerate(x)}, np.ones(9999)):
        shown = text.point(point, width)
        assert len(shown) <= width
        left_out = int(shown.split("... ")[-1].split()[0])
        assert 0 < left_out <= len(point)
    assert len(text.point({"n" * 300: 1.0, "m": "o" * 300}, width)) <= width
    assert text.point(np.zeros(50), 22) == "[0, 0, 0, ... 47 more]"


@given(st.text(max_size=300))
def test_a_shortened_text_is_one_printable_line(words):
    shown = text.shortened(words, 50)
    assert len(shown) <= 50 and shown.isprintable()
    if words.isprintable() and len(words) <= 50 and "  " not in words:
        assert shown == words.strip()


def test_some_items_of_many_are_shown_with_the_number_of_the_rest():
    assert text.some_of(["3", "5", "7"], 20) == "3, 5, 7" and text.some_of([], 20) == ""
    assert text.some_of([str(i) for i in range(1000)], 20) == "0, 1, ... 998 more"
    assert text.some_of(["x" * 50, "y"], 20) == "2 in all"


def test_the_columns_of_a_table_begin_at_the_same_place():
    assert text.columns([["a", "bcd", "e"], ["1234", "5", ""]]) == "a     bcd  e\n1234  5"


def test_a_trial_shows_its_outputs_in_place_of_y():
    line = text.trial_line(1, np.array([0.5]), 1.25, "told", "user", outputs={"yield": 1.25, "a\nb": -0.0})
    assert line == "Trial(1, x=[0.5], yield=1.25, a b=0, told, user)"
    many = text.trial_line(1, np.arange(50.0), None, "told", "user", outputs={f"output {i}": 1 / 3 for i in range(99)})
    assert len(many) <= 120 and "more, told, user)" in many


def test_the_best_value_has_the_name_of_its_output():
    assert text.best_lines("min", None, 2.0, measured=True, output="cost") == [("smallest feasible cost", "2")]
    assert len(text.best_lines("max", None, 2.0, output="c" * 99)[0][0]) <= 40


def test_words_are_counted():
    assert text.tally(["jitter", "fit", "jitter"]) == "jitter (2), fit"
    assert text.tally([]) == "none"


def test_names_and_texts_are_aligned():
    assert text.aligned([("a", "1"), ("long", "two\nlines")]) == "a     1\nlong  two lines"
    assert len(text.aligned([("name", "x" * 500)])) == 120


# What the classes say


def test_a_trial_is_one_line():
    assert text.trial_line(7, np.array([0.5, 0.25]), 1.25, "told", "policy") == (
        "Trial(7, x=[0.5, 0.25], y=1.25, told, policy)"
    )
    pending = text.trial_line(0, {"kind": "a"}, None, "pending", "design")
    assert pending == "Trial(0, x={'kind': 'a'}, pending, design)"
    assert len(text.trial_line(10**6, np.linspace(0, 1, 50), -1.23456789e-100, "pending", "design")) <= 120


def test_a_ledger_and_a_regret_are_a_few_lines():
    assert facts.interval(0.0, 1.2345, 0.5) == "0 to 1.23 with probability 95 %, median 0.5"
    drawn = lines_of(repr(regret_at(np.array([0.5]))))
    assert (drawn["after"], drawn["recommended"]) == ("9 values", "[0.5]")
    assert drawn["simple regret"] == "0 to 1 with probability 95 %, median 1"
    assert facts.values(9, 5, 2).text == "9, of which the policy chose 5: 2 to explore"
    assert facts.information(1.23456).statistics == "1.235 nats"


def regret_at(x):
    draws = np.ones(3)
    return Regret(9, x, draws, draws, np.zeros((3, 1)), "joint draws", learned=True)


def test_the_result_of_a_box_says_what_was_found(box_result):
    shown = lines_of(repr(box_result))
    assert list(shown) == ["largest y", "at x", "recommended", "evaluations", "stopped", "seed", "events"]
    assert float(shown["largest y"]) == pytest.approx(box_result.y, rel=1e-5)
    assert ast.literal_eval(shown["at x"]) == pytest.approx(box_result.x, rel=1e-5)
    assert ast.literal_eval(shown["recommended"]) == pytest.approx(box_result.recommended, rel=1e-5)
    assert (shown["evaluations"], shown["stopped"], shown["seed"]) == ("8", "budget", "0")


def test_the_result_of_named_parameters_tells_of_failures(mixed_result):
    shown = lines_of(repr(mixed_result))
    best = ast.literal_eval(shown["at x"])
    assert best.keys() == MIXED.keys()
    assert best["layers"] == mixed_result.x["layers"] and best["kind"] == mixed_result.x["kind"]
    assert float(shown["smallest y"]) == pytest.approx(mixed_result.y, rel=1e-5)
    assert shown["evaluations"] == "9, of which 2 failed"


@pytest.mark.parametrize("parameters", [1, 4, 8, 200])
def test_the_best_point_is_printed_whole_and_can_be_copied(parameters):
    names = [f"learning rate of group {i}" for i in range(parameters)]
    for x in ({**dict.fromkeys(names, 0.00123456), "kind": "o" * 300, "it's": "a\nb"}, np.arange(parameters) / 3.0):
        for lines in (text.best_lines("max", x, 1.0), regret_at(x).lines[1:2]):
            shown = text.aligned(lines)
            literal = shown[min(place for place in (shown.find("{"), shown.find("[")) if place >= 0) :]
            read = ast.literal_eval(literal)
            assert read == (x if isinstance(x, dict) else pytest.approx(x, rel=1e-5))
            assert "more" not in text.html_lines(lines) and max(map(len, shown.splitlines())) < 330
    assert text.aligned([("at x", text.WholePoint.of({}))]) == "at x  {}"


def test_a_negative_zero_is_printed_as_zero():
    assert text.rounded(-0.0) == text.rough(-0.0) == text.coordinate(np.float64(-0.0)) == "0"
    assert text.point(np.array([-0.0, 1.0])) == text.WholePoint.of(np.array([-0.0, 1.0])) == "[0, 1]"
    assert "y=0," in text.trial_line(1, np.array([-0.0]), -0.0, "told", "policy")


def test_any_result_is_short(box_result):
    many = {f"a parameter with a long name {i}": (0.0, 1.0) for i in range(50)}
    wide = gpmi.minimize(lambda p: sum(p.values()), many, budget=3, seed=0)
    for name, x in (("at x", wide.x), ("recommended", wide.recommended)):
        assert ast.literal_eval(lines_of(repr(wide))[name]) == pytest.approx(x, rel=1e-5)
    events = tuple(gpmi.Event(f"kind {i}", "message") for i in range(100)) * 2
    odd = gpmi.Result(**{**vars(box_result), "reason": "error: \x1b[31m\n" + "x" * 1000, "events": events})
    assert lines_of(repr(odd))["stopped"].startswith("error: \\x1b[31m x")
    assert lines_of(repr(odd))["events"].startswith("kind 0 (2), kind 1 (2)")


def test_a_result_without_values_says_so():
    empty = gpmi.Result.of(gpmi.Optimizer([(0.0, 1.0)], seed=1), "interrupted")
    shown = lines_of(repr(empty))
    assert (shown["largest y"], shown["recommended"], shown["evaluations"]) == ("none", "none", "0")
    ElementTree.fromstring(empty._repr_html_())


def test_a_calibration_says_its_verdict_and_its_coverage():
    def never():
        raise AssertionError("the text needs no posterior")

    z = np.random.default_rng(0).normal(size=40)
    calibration = Calibration(z, never)
    shown = lines_of(repr(calibration))
    assert (shown["verdict"], shown["reason"]) == (calibration.verdict, calibration.reason)
    assert f"{calibration.coverage[0.95]:.0%} within the central 95%" in shown["coverage"]
    assert list(lines_of(repr(Calibration(np.empty(0), never)))) == ["verdict", "reason"]


# HTML


def cells(row):
    return [cell.text or "" for cell in row]


def test_the_html_has_the_lines_and_the_best_trials(mixed_result):
    summary, best = ElementTree.fromstring(mixed_result._repr_html_())
    assert [tuple(cells(row)) for row in summary.iter("tr")] == list(lines_of(repr(mixed_result)).items())
    head, *rows = [cells(row) for row in best.iter("tr")]
    assert head == ["trial", "rate", "layers", "kind", "y", "mu", "sd", "origin"]
    told = sorted((trial for trial in mixed_result.trials if trial.y is not None), key=lambda trial: trial.y)
    assert [int(row[0]) for row in rows] == [trial.number for trial in told[:BEST]]
    assert [row[4] for row in rows] == [f"{trial.y:.6g}" for trial in told[:BEST]]


def test_html_is_escaped_and_well_formed():
    space = {'<script>"&': ["<b>", "a & b", "\x00\x1b"], "y": (0.0, 1.0)}
    optimizer = gpmi.Optimizer(space, seed=0)
    for kind in space['<script>"&']:
        optimizer.tell({'<script>"&': kind, "y": 0.5}, float(len(kind)))
    shown = gpmi.Result.of(optimizer, "<i>\x00")._repr_html_()
    assert "<script>" not in shown and "<b>" not in shown and "<i>" not in shown
    _, best = ElementTree.fromstring(shown)
    head, *rows = [cells(row) for row in best.iter("tr")]
    assert head[1:3] == ['<script>"&', "y"]
    assert {row[1] for row in rows} == {"'<b>'", "'a & b'", "'\\x00\\x1b'"}


def test_the_html_of_many_parameters_is_small():
    result = gpmi.maximize(lambda x: float(x.sum()), [(0.0, 1.0)] * 50, budget=4, seed=0)
    _, best = ElementTree.fromstring(result._repr_html_())
    head, *rows = [cells(row) for row in best.iter("tr")]
    assert head == ["trial", *(f"x{j}" for j in range(WIDE)), f"{50 - WIDE} more", "y", "mu", "sd", "origin"]
    assert all(len(row) == len(head) for row in rows)


# DataFrames


@pytest.mark.parametrize("which", ["box_result", "mixed_result"])
def test_the_frame_has_the_values_of_the_trials(which, request):
    result = request.getfixturevalue(which)
    table = result.to_dataframe()
    names = ["x0", "x1"] if which == "box_result" else list(MIXED)
    assert list(table.columns) == [*names, *COLUMNS]
    assert list(table.index) == [trial.number for trial in result.trials] and table.index.name == "trial"
    for trial, (_, row) in zip(result.trials, table.iterrows(), strict=True):
        point = trial.x if isinstance(trial.x, dict) else dict(zip(names, trial.x, strict=True))
        assert {name: row[name] for name in names} == point
        for name in ("y", "mu", "sd", "phi", "gamma_hat", "explored", "surprise", "information", "status", "origin"):
            value = getattr(trial, name)
            assert pd.isna(row[name]) if value is None else row[name] == value


def test_the_frame_s_types_do_not_depend_on_what_happened(mixed_result):
    floats = ("y", "mu", "sd", "phi", "gamma_hat", "surprise", "information")
    for trials in (mixed_result.trials, mixed_result.trials[2:3], ()):
        kinds = frame(trials, mixed_result.space).dtypes
        assert all(kinds[name] == "float64" for name in floats)
        assert kinds["explored"] == "boolean"
        assert kinds["status"] == kinds["origin"] == pd.Series(["told"]).dtype
        assert kinds["asked"] == kinds["ended"] == "datetime64[ns, UTC]"
    kinds = mixed_result.to_dataframe().dtypes
    assert (kinds["rate"], kinds["layers"], kinds["kind"]) == ("float64", "int64", "object")


def test_options_are_kept_as_they_are():
    space = {"flag": [True, False], "size": [1, None], "pair": [(1, 2), (3, 4)], "word": ["a", "b"]}
    optimizer = gpmi.Optimizer(space, seed=0)
    for i in range(2):
        optimizer.tell({name: options[i] for name, options in space.items()}, 0.0)
    table = frame(optimizer.trials, optimizer.space)
    assert table["flag"].dtype == bool
    assert all(table[name].tolist() == options for name, options in space.items())
    assert table["size"].tolist()[1] is None and type(table["size"].tolist()[0]) is int


def test_a_parameter_with_the_name_of_a_column_is_told_apart():
    optimizer = gpmi.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0), "x.y": (0.0, 1.0)}, seed=0)
    optimizer.tell({"x": 0.1, "y": 0.2, "x.y": 0.3}, 0.4)
    table = frame(optimizer.trials, optimizer.space)
    assert table.columns.is_unique
    assert table[["x", "x.x.y", "x.y", "y"]].iloc[0].tolist() == [0.1, 0.2, 0.3, 0.4]


def test_candidates_are_named_as_in_their_table():
    candidates = pd.DataFrame({"size": [1, 2, 3], "kind": list("uvw")})
    optimizer = gpmi.Optimizer(candidates, seed=0)
    optimizer.tell({"size": 2, "kind": "v"}, 1.0)
    assert frame(optimizer.trials, optimizer.space)[["size", "kind"]].iloc[0].tolist() == [2, "v"]
    optimizer = gpmi.Optimizer(np.eye(3), seed=0)
    optimizer.tell([0.0, 1.0, 0.0], 1.0)
    assert frame(optimizer.trials, optimizer.space)[["x0", "x1", "x2"]].iloc[0].tolist() == [0.0, 1.0, 0.0]


def test_times_are_in_utc():
    space, x = gpmi.Space.of([(0.0, 1.0)]), np.array([0.5])
    trials = [
        Trial(4, x, None, "failed", "user", asked=1.7e9 + 0.25, ended=1.7e9 + 0.75),
        Trial(5, x, None, "pending", "user", asked=1.7e9),
    ]
    table = frame(trials, space)
    assert list(table.index) == [4, 5]
    assert table["asked"][4] == datetime.fromtimestamp(1.7e9 + 0.25, UTC)
    assert (table["ended"] - table["asked"])[4] == pd.Timedelta(seconds=0.5)
    assert pd.isna(table["ended"][5])


def test_the_frame_without_pandas_says_what_to_install(box_result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_dataframe needs pandas: pip install pandas"):
        box_result.to_dataframe()


# The package


def test_what_to_install_is_named_by_the_distribution_and_in_a_mere_source_tree_by_its_folder(monkeypatch):
    assert text.install_command("cli,plots") == 'pip install "gpmi[cli,plots]"'
    monkeypatch.setattr(importlib.metadata, "distribution", not_installed)
    command = text.install_command("plots")
    folder = re.fullmatch(r'pip install "(.+)\[plots\]"', command)[1]
    assert "[project.optional-dependencies]" in (Path(folder) / "pyproject.toml").read_text()


def not_installed(name):
    raise importlib.metadata.PackageNotFoundError(name)


def test_no_message_says_how_to_install_an_extra_by_itself():
    """The remedy must also hold in a clone: it comes from `text.install_command`."""
    sources = Path(gpmi.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if re.search(r"pip install .?gpmi\[", path.read_text())] == []


def test_the_version_is_said_in_one_place():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"] and "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "gpmi.__version__"}


def test_the_changelog_and_the_citation_know_the_version():
    root = Path(__file__).parents[2]
    citation = re.search(r"^version: (.*)\ndate-released: (.*)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation is not None and citation[1] == gpmi.__version__
    assert f"\n## [{citation[1]}] - {citation[2]}\n" in (root / "CHANGELOG.md").read_text()


def test_plots_and_theory_are_there_after_importing_gpmi_alone():
    code = """
import sys, gpmi
late = {"gpmi.plots", "gpmi.views.figures.plots", "gpmi.theory", "matplotlib", "pandas", "rich"}
assert not late & set(sys.modules), late & set(sys.modules)
assert {"plots", "theory", "maximize", "__version__"} <= set(dir(gpmi))
assert not late & set(sys.modules)
assert callable(gpmi.plots.run) and callable(gpmi.theory.theorem_2)
assert "matplotlib" not in sys.modules
import gpmi.plots
from gpmi import plots
assert plots is gpmi.plots is sys.modules["gpmi.plots"]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_gpmi_does_not_have_is_refused():
    with pytest.raises(AttributeError, match="module 'gpmi' has no attribute 'maximise'"):
        _ = gpmi.maximise
    with pytest.raises(ImportError, match="cannot import name 'maximise'"):
        exec("from gpmi import maximise")


def test_dir_shows_every_public_name_and_no_other():
    assert all(hasattr(gpmi, name) for name in gpmi.__all__)
    assert set(dir(gpmi)) == {*gpmi.__all__, "__version__"}
    assert sorted(gpmi.__all__) == sorted(set(gpmi.__all__))


# Optimizer, Trial, Ledger, Regret


def test_an_optimizer_a_trial_a_ledger_and_a_regret_are_a_few_short_lines():
    names = {f"parameter-{i}": (0.0, 1.0) for i in range(50)}
    opt = gpmi.Optimizer(names, seed=0, budget=60)
    assert "none" in repr(opt) and repr(opt.ledger)
    for i in range(6):
        x = opt.ask()
        opt.fail(x) if i == 2 else opt.tell(x, float(i))
    ledger = opt.ledger
    for shown in (opt, opt.trials[3], ledger, ledger.regret(), ledger.calibration):
        lines = repr(shown).splitlines()
        assert 1 <= sum(line[0] != " " for line in lines) <= 8 and max(map(len, lines)) <= 120, shown
    assert "5 told, 0 pending, 1 failed; budget 60" in repr(opt) and "largest y  5" in repr(opt)
    assert "simple regret" in repr(ledger.regret()) and "values" in repr(ledger)
    assert repr(opt.trials[2]).endswith("failed, design)")


def test_an_optimizer_in_a_notebook_shows_its_best_trials_and_gives_a_frame():
    opt = gpmi.Optimizer({"a": (0.0, 1.0), "c": ["<b>", "&"]}, seed=0)
    for _ in range(4):
        x = opt.ask()
        opt.tell(x, x["a"])
    opt.ask()
    html = opt._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html
    table = opt.to_dataframe()
    assert list(table["status"]) == ["told"] * 4 + ["pending"]
    assert list(table["a"][:4]) == list(table["y"][:4])


def test_a_model_and_a_posterior_are_short_too():
    opt = gpmi.Optimizer([(0.0, 1.0)] * 30, seed=0, fit="mcmc")
    for i in range(4):
        opt.tell(opt.ask(), float(i))
    assert "draws" in repr(opt.model)
    for shown in (opt.model, opt.posterior):
        lines = repr(shown).splitlines()
        assert 1 <= sum(line[0] != " " for line in lines) <= 8 and max(map(len, lines)) <= 120, shown


def test_a_space_is_one_line():
    for space in ([(0.0, 1.0)] * 80, {"a": (0.0, 1.0), "c": ["x", "y"]}, np.random.default_rng(0).random((500, 3))):
        shown = repr(gpmi.Space.of(space))
        assert shown.startswith("<Space of ") and len(shown) <= 120


def test_the_best_value_is_called_feasible_where_constraints_were_measured():
    opt = gpmi.Optimizer([(0.0, 1.0)], seed=0)
    opt.tell([0.2], 1.0, constraints=[-1.0])
    opt.tell([0.4], 2.0, constraints=[1.0])
    assert repr(opt).splitlines()[0].split() == ["largest", "feasible", "y", "1"]
    opt = gpmi.Optimizer([(0.0, 1.0)], seed=0, goal="min")
    opt.tell([0.2], 1.0, constraints=[1.0])
    assert repr(opt).startswith("smallest feasible y") and "none" in repr(opt).splitlines()[0]
    r = gpmi.minimize(lambda x: gpmi.Measured(x[0], constraints=(0.5 - x[0],)), [(0.0, 1.0)], budget=3, seed=0)
    assert repr(r).startswith("smallest feasible y")


def test_the_frame_has_labels_and_what_was_given_where_there_are_any():
    rows = pd.DataFrame({"a": [1, 2, 3], "fixed": [0.1, 0.2, 0.3]}, index=["u", "v", "w"])
    opt = gpmi.Optimizer(rows, seed=0)
    opt.tell(opt.ask(), 1.0)
    table = opt.to_dataframe()
    assert list(table.columns) == ["a", "fixed", *COLUMNS, "label"]
    assert table["label"][0] == opt.trials[0].label
    opt.ask(fixed={"a": 2})
    table = opt.to_dataframe()
    assert list(table.columns) == ["a", "x.fixed", *COLUMNS, "label", "fixed"]
    assert [dict(one) if one else one for one in table["fixed"]] == [None, {"a": 2}]


@pytest.mark.parametrize(
    ("value", "sd", "shown"),
    [
        (73.8997, 0.038, "73.900"),
        (0.038339, 0.038339, "0.038"),
        (60.9622, 16.0, "61"),
        (-0.003, 61.0, "0"),
        (1234567.0, 1e4, "1235000"),
        (3.21e-12, 1e-12, "3.2e-12"),
        (12.3456789, 1e-9, "12.3456789"),
        (1000.0000312, 1.6e-5, "1000.00003"),
        (12.3456789, 0.0, "12.3457"),
        (0.5, float("inf"), "0.5"),
    ],
)
def test_a_number_has_the_digits_that_its_deviation_leaves(value, sd, shown):
    assert text.round_to_sd(value, sd) == shown


@given(st.floats(-1e12, 1e12), st.floats(1e-12, 1e12))
def test_what_is_not_shown_of_a_number_is_small(value, sd):
    assert abs(float(text.round_to_sd(value, sd)) - value) <= 0.05 * sd + 1e-8 * abs(value)


@pytest.mark.parametrize(("value", "shown"), [(0.0383412, "0.0383"), (129123.0, "129000"), (3.2e9, "3.2e+09")])
def test_what_is_hardly_known_has_three_digits(value, shown):
    assert text.rough(value) == shown
