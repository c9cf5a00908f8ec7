"""A report has the numbers of the run, in one file that loads nothing, whatever the names in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import gpmi
from gpmi import kernels, report
from gpmi.analysis.ledger.history import regret_history
from gpmi.views.html.regions import contour_paths
from gpmi.views.html.report import IDENTITY, study_in
from gpmi.views.html.svg import Scale
from gpmi.views.reading import view_of

pytestmark = pytest.mark.usefixtures("few_draws")

HOSTILE = "<script>alert(1)</script>\"'&\x00</td>"


def hill(x):
    return -float(np.sum((np.asarray(x) - 0.3) ** 2))


@pytest.fixture(scope="module")
def run():
    return gpmi.maximize(hill, [(0.0, 1.0)] * 2, budget=12, seed=0)


class Strict(HTMLParser):
    """A parser that checks that every element is closed, and collects elements and text."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.found, self.text = [], [], ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "input", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, *names):
        return [attributes for tag, attributes in self.found if tag in names]


def test_every_section_is_built_from_a_result_an_optimizer_and_a_study(run, tmp_path):
    optimizer = gpmi.Optimizer([(0.0, 1.0)] * 2, seed=0).replay(run)
    with gpmi.study(tmp_path / "s.db", space=[(0.0, 1.0)] * 2, seed=0) as study:
        study.tell([0.5, 0.5], 1.0)
        for source in (run, optimizer, study):
            built = report.sections(source)
            assert [one.id for one in built] == [name for name in report.IDS if name in {one.id for one in built}]
            assert not any("could not be built" in one.html for one in built)
        assert study.report(tmp_path / "study.html").stat().st_size > 0


def test_a_page_is_well_formed_and_loads_nothing(run):
    page = Strict(report.page(run, title=HOSTILE))
    assert [tag for tag, _ in page.found if tag in ("script", "link", "img", "iframe")] == ["script"]
    for _, attributes in page.found:
        assert not any(name.startswith("on") or name in ("style", "src") for name in attributes)
        assert attributes.get("href", "#").startswith("#")


def test_a_source_that_is_not_a_run_is_refused():
    with pytest.raises(TypeError, match="source is 3; give a Result"):
        report.sections(3)
    with pytest.raises(ValueError, match="the sections are found"):
        report.sections(gpmi.Optimizer([(0.0, 1.0)]), only=["nothing"])


def test_an_unwritable_path_is_refused_before_any_work(run, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot be written to"):
        run.report(tmp_path / "file" / "run.html")
    with pytest.raises(ValueError, match="is a folder"):
        run.report(tmp_path)


def test_the_command_writes_the_report_of_a_study(tmp_path):
    from typer.testing import CliRunner

    from gpmi.cli import app

    with gpmi.study(tmp_path / "s.db", "first", space=[(0.0, 1.0)], seed=0) as study:
        study.tell([0.5], 1.0)
    out = tmp_path / "report.html"
    done = CliRunner().invoke(app(), ["report", str(tmp_path / "s.db"), "--out", str(out)])
    assert done.exit_code == 0 and done.stdout.strip() == str(out)
    assert "Report of first" in Strict(out.read_text(encoding="utf-8")).text
    assert CliRunner().invoke(app(), ["report", str(tmp_path / "s.db"), "--name", "other"]).exit_code == 1
    assert "Example: gpmi report study.db" in CliRunner().invoke(app(), ["report", "--help"]).stdout


def test_a_report_has_the_name_of_its_study_and_replaces_no_other_file(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from gpmi.cli import app

    monkeypatch.chdir(tmp_path)
    for file, name in (("s.db", "a study/of <mine>"), ("lab.db", "default"), ("two.db", "default")):
        with gpmi.study(tmp_path / file, name, space=[(0.0, 1.0)], seed=0) as study:
            study.tell([0.5], 1.0)

    def report(*arguments):
        return CliRunner().invoke(app(), ["report", *arguments])

    assert report("s.db").stdout.strip() == "a-study-of-mine.html"
    assert report("lab.db").stdout.strip() == "lab.html"
    before = Path("lab.html").read_text(encoding="utf-8")
    for again in (report("lab.db"), report("lab.db", "--out", "lab.html")):  # its own
        assert again.exit_code == 0
    refused = report("two.db", "--out", "lab.html")
    assert refused.exit_code == 1 and "is the report of another study" in refused.stderr
    assert study_in(Path("lab.html")) and before.count(IDENTITY) == 1
    Path("two.html").write_text("my own page")
    refused = report("two.db")
    assert refused.exit_code == 1 and "exists and is no report" in refused.stderr
    assert Path("two.html").read_text() == "my own page"


# Any kind of run


def hostile():
    """A run in which all user text is markup."""
    space = {HOSTILE: [HOSTILE, "b"], "x": gpmi.Real(0.0, 1.0, unit="<u>")}
    opt = gpmi.Optimizer(space, seed=0)
    for i in range(4):
        trial = opt.ask()
        if i == 2:
            opt.fail(trial, why=HOSTILE)
        else:
            opt.tell(trial, float(i))
    return opt


def conditional():
    space = {"kind": ["plain", "tuned"], "knob": gpmi.Real(0.01, 1.0, log=True, when={"kind": "tuned"})}
    return gpmi.maximize(lambda p: p.get("knob", 0.5), space, budget=8, seed=0)


def constrained():
    return gpmi.minimize(lambda x: -hill(x), [(0.0, 1.0)] * 2, budget=8, seed=0, constraints="x0 + x1 <= 1")


def thin():
    """Constraints that no point of a grid satisfies."""
    space, constraints = {name: (0.0, 1.0) for name in "abc"}, ["a >= 0.5003", "a <= 0.5004"]
    return gpmi.maximize(lambda p: -((p["b"] - 0.2) ** 2), space, budget=6, seed=0, constraints=constraints)


def mixture():
    """Shares that add up to one, so that none of them can change alone."""
    space = {name: (0.0, 1.0) for name in "abc"}
    return gpmi.maximize(lambda p: -((p["b"] - 0.2) ** 2), space, budget=6, seed=0, constraints="a + b + c == 1")


def steep():
    """Few whole numbers, far apart, on a logarithmic axis."""
    space = {"n": gpmi.Int(1, 1000, step=111, log=True), "x": (0.0, 1.0)}
    return gpmi.maximize(lambda p: -((p["n"] - 112) ** 2) - p["x"], space, budget=6, seed=0)


def measured():
    f = lambda x: gpmi.Measured(hill(x), noise_var=0.01, constraints=[x[0] - 0.5])  # noqa: E731
    return gpmi.maximize(f, [(0.0, 1.0)] * 2, budget=8, seed=0)


def table():
    frame = pd.DataFrame({"size": [1, 2, 3, 1, 2, 3], "kind": list("uuuvvv")}, index=[f"<row {i}>" for i in range(6)])
    return gpmi.maximize(lambda p: p["size"] * (1.0 + (p["kind"] == "v")), frame, budget=5, seed=0)


def words():
    """Pending, corrected, retracted and rejected trials."""
    opt = gpmi.Optimizer([(0.0, 1.0)] * 2, seed=0)
    trials = [opt.ask() for _ in range(6)]
    for number in range(4):
        opt.tell(trials[number], float(number))
    opt.correct(opt.trials[1], 7.0)
    opt.retract(opt.trials[2])
    opt.reject(trials[4])
    return opt


def failed():
    return gpmi.maximize(lambda x: 1 / 0, [(0.0, 1.0)], budget=3, seed=0, on_failure="learn")


def told(*values):
    opt = gpmi.Optimizer([(0.0, 1.0)] * 3, seed=0)
    for i, y in enumerate(values):
        opt.tell([0.08 * i, 0.5, 1.0 - 0.08 * i], y)
    return opt


KINDS = {
    "nothing": lambda: gpmi.Optimizer([(0.0, 1.0)], seed=0),
    "one value": lambda: told(1.0),
    "equal values": lambda: told(2.0, 2.0, 2.0),
    "huge values": lambda: told(1e90, 3e90, -2e90, 1e90),
    "one parameter": lambda: gpmi.maximize(hill, [(0.0, 1.0)], budget=7, seed=0),
    "twenty parameters": lambda: gpmi.Optimizer([(0.0, 1.0)] * 20, seed=0).replay(
        [gpmi.Trial(i, np.full(20, 0.1 * i), float(i), "told", "user", order=i) for i in range(5)]
    ),
    **{
        f.__name__: f for f in (hostile, conditional, constrained, thin, mixture, steep, measured, table, words, failed)
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_section_of_any_run_is_built_escaped_and_labelled(kind):
    html = report.page(KINDS[kind]())
    assert "could not be built" not in html
    page = Strict(html)
    levels = [int(tag[1]) for tag, _ in page.found if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1 and all(below <= above + 1 for above, below in pairwise(levels))
    assert len([tag for tag, _ in page.found if tag == "script"]) == 1
    for table_ in re.findall(r"<table.*?</table>", html, flags=re.DOTALL):
        assert "<caption" in table_ and not re.search(r"<th(?![^>]* scope=)[ >]", table_)
    for svg in re.findall(r"<svg[^>]*class=\"chart\".*?</svg>", html, flags=re.DOTALL):
        assert 'role="img"' in svg and "<title>" in svg and "<desc>" in svg
        assert not re.search(r"=\"[^\"]*\b(nan|inf)\b", svg)
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_constant_columns_of_a_table_are_not_axes():
    frame = pd.DataFrame({"same": [1.0] * 8, "b": np.arange(8.0), "c": [1.0, 3.0] * 4, "word": ["u"] * 8})
    for table, varied in ((frame, ["b", "c"]), (frame.iloc[:1, :2], ["same", "b"])):
        opt = gpmi.Optimizer(table, seed=0)
        for i in range(len(table)):
            opt.ask()
            opt.tell(opt.pending[-1], float(i))
        assert [axis.name for axis in view_of(opt).axes(2)] == varied
        assert opt.ledger.unknown or [one.name for one in gpmi.importances(opt)] == varied
        assert "could not be built" not in report.page(opt)


def test_user_text_is_shown_literally_and_never_executed():
    html = report.page(hostile())
    page = Strict(html)
    assert HOSTILE.replace("\x00", "") in page.text and "<u>" in page.text
    assert "<script>alert" not in html and "\x00" not in html
    assert not page.all("u")


def test_the_same_run_gives_the_same_report_with_its_numbers(run):
    html = report.page(run)
    assert html == report.page(run)
    page = Strict(html).text
    assert f"The largest value observed is {run.y:.6g}" in page
    assert "The constraints allow no parameter" not in page
    low, high = run.ledger.regret().interval()
    assert f"{low:.3g} to {high:.3g} with probability 95 %" in page
    cells = [attributes["data-v"] for attributes in Strict(html).all("td") if "data-v" in attributes]
    assert {repr(trial.y) for trial in run.trials} <= set(cells)  # all digits can be copied


def test_what_the_ledger_advises():
    assert gpmi.Optimizer([(0.0, 1.0)], seed=0).ledger.advice.what == "go on"
    assert told(1.0).ledger.advice.what == "go on"
    prior = {"kernel": kernels.RBF(0.5), "noise_var": 1e-4}
    sure = gpmi.Optimizer([(0.0, 1.0)], seed=0, **prior)
    rng = np.random.default_rng(0)
    path = gpmi.Posterior.prior(prior["kernel"], prior["noise_var"])
    x = np.linspace(0.0, 1.0, 30)
    for at, y in zip(
        x,
        np.linalg.cholesky(path.kernel(x[:, None], x[:, None]) + 1e-4 * np.eye(30)) @ rng.standard_normal(30),
        strict=True,
    ):
        sure.tell([at], y)
    assert sure.ledger.advice == sure.ledger.advice and sure.ledger.advice.what == "stop"
    wrong = gpmi.Optimizer([(0.0, 1.0)], seed=0, **prior)
    for at in x:
        wrong.tell([at], 5.0 * rng.standard_normal())
    assert wrong.ledger.advice.what == "distrust"


def test_the_course_of_the_regret_ends_with_the_current_regret(run):
    looks = regret_history(run.ledger)
    assert looks[-1] is run.ledger.regret() and [one.t for one in looks] == sorted({one.t for one in looks})
    assert regret_history(gpmi.Optimizer([(0.0, 1.0)], seed=0).ledger) == ()


# Appearance


def luminance(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4) @ [
        0.2126,
        0.7152,
        0.0722,
    ]


def test_every_text_has_enough_contrast_in_both_schemes():
    schemes = re.findall(r":root \{(.*?)\}", report.STYLE, flags=re.DOTALL)
    light, dark, paper = (dict(re.findall(r"--([\w-]+): (#\w{6});", scheme)) for scheme in schemes)
    for tokens in (light, dark, paper):
        pairs = [(ink, ground) for ink in ("ink", "muted", "blue", "green", "red") for ground in ("paper", "panel")]
        for ink, ground in [*pairs, ("mark-ink", "mark")]:
            bright, dim = sorted((luminance(tokens[ink]), luminance(tokens[ground])), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= 4.5, (ink, ground)


@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 10**6), st.floats(-2.0, 2.0))
def test_a_filled_contour_covers_what_is_above_its_level(a, b, seed, level):
    """A point of the grid is inside the path of a level if and only if its value is not below the level."""
    values = np.random.default_rng(seed).standard_normal((a, b))
    assume(np.min(np.abs(values - level)) > 0.05)  # a line close to a corner is rounded onto it
    x, y = np.arange(float(a)) * 10.0, np.arange(float(b)) * 10.0
    paths = contour_paths(x, y, values, np.array([-np.inf, level]))
    corners = set(re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", paths.get(1, "")))
    boxes = re.findall(r"M([\d.]+),([\d.]+)H([\d.]+)V([\d.]+)H", paths.get(1, ""))
    for i in range(a):
        for j in range(b):
            near = (
                any(float(x0) <= x[i] <= float(x1) and float(y0) <= y[j] <= float(y1) for x0, y0, x1, y1 in boxes)
                or (f"{x[i]:g}", f"{y[j]:g}") in corners
            )
            assert near == (values[i, j] >= level)


@example(lo=0.0, width=1.0, most=1, log=True)  # nine powers of ten, space for one
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 9), st.booleans())
def test_ticks_lie_inside_and_are_few(lo, width, most, log):
    lo = abs(lo) + 1e-9 if log else lo
    scale = Scale(lo, lo + width, 0.0, 100.0, log=log)
    ticks = scale.ticks(most)
    assert len(ticks) <= 3 * most + 4
    slack = 1e-9 * (abs(lo) + width)
    assert all(lo - slack <= value <= lo + width + slack for value, _ in ticks)


@example(lo=100.25, width=0.5, most=2)  # a single tick
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 9))
def test_ticks_are_distinguishable(lo, width, most):
    """The label of each tick equals its value, up to a small part of the step."""
    ticks = Scale(lo, lo + width, 0.0, 100.0).ticks(most)
    assert len({text for _, text in ticks}) == len(ticks)
    alone = 1e-6 if len(ticks) == 1 else 0.0
    assert all(abs(float(text) - value) <= 0.05 * width + alone * abs(value) for value, text in ticks)


def test_a_power_of_ten_at_the_end_of_an_axis_is_a_tick():
    assert [text for _, text in Scale(1.0, float(np.exp(np.log(1000.0))), 0.0, 1.0, log=True).ticks(6)][-1] == "1000"


def test_an_estimate_has_only_meaningful_digits(run):
    page = Strict(report.page(told(*np.sin(np.arange(12.0))))).text
    found = re.search(r"There f is believed to be (\S+), (\S+) to (\S+) at one", page)
    assert found is not None and all(
        len(number.strip("-").replace(".", "").lstrip("0")) <= 4 for number in found.groups()
    )


@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("bent", [True, False])
def test_what_is_believed_at_the_recommended_point_comes_from_the_belief(goal, bent):
    """Brute force: many draws from every posterior of the mixture, in units of y."""
    opt = gpmi.Optimizer([(0.0, 1.0)], seed=0, goal=goal)
    for x in np.linspace(0.0, 1.0, 12):
        y = np.sin(9.0 * x) - (np.exp(9.0 * x) if bent else 0.0)
        opt.tell([x], y if goal == "max" else -y)
    ledger, view, rng = opt.ledger, view_of(opt), np.random.default_rng(0)
    assert ledger.model.warp.bends == bent and len(ledger.belief.posteriors) == 16
    moments = [one(ledger.model.recommendation.row[None]) for one in ledger.belief.posteriors]
    drawn = np.concatenate([mu + np.sqrt(var) * rng.standard_normal(20_000) for mu, var in moments])
    low, middle, high = np.quantile(ledger.orientation.values(ledger.model.to_units_of_y(drawn)), [0.1587, 0.5, 0.8413])
    assert view.believed == pytest.approx((low, middle, high), abs=0.05 * (high - low))


def test_with_too_few_values_the_report_says_how_many_it_takes():
    html = report.page(told(1.0, 3.0, 2.0))
    assert view_of(told(1.0, 3.0, 2.0)).believed is None
    assert "What f is there is not known yet: it takes 12 values to say, and there are 3." in html
    assert "Which parameters matter is not known yet: it takes 12 values to say, and there are 3." in html
    assert "is believed to be" not in html and "could not be built" not in html


def test_a_slice_has_gaps_where_constraints_forbid_points():
    gap = lambda p: not 0.4 < p["a"] < 0.6  # noqa: E731
    run = gpmi.maximize(lambda p: p["a"], {"a": (0.0, 1.0)}, budget=5, seed=0, constraints=[gap])
    (section,) = report.sections(run, only=["slices"])
    lines = re.findall(r'<polyline points="([^"]*)" class="mean"', section.html)
    ends = [[float(place.split(",")[0]) for place in line.split()] for line in lines]
    assert len(ends) == 2 and ends[1][0] - ends[0][-1] > 0.19 * (ends[1][-1] - ends[0][0])


def test_shares_that_add_up_to_one_change_in_proportion():
    (section,) = report.sections(mixture(), only=["slices"])
    assert "the others of the mixture fall in proportion" in section.html and "<polyline" in section.html


def test_parameters_that_cannot_change_alone_have_no_slices():
    rules = ["a + 2*b == 1"]  # no mixture: the weights differ
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    run = gpmi.maximize(lambda p: -((p["a"] - 0.31234) ** 2), space, budget=8, seed=0, constraints=rules)
    (section,) = report.sections(run, only=["slices"])
    assert "no parameter of the recommended point to change alone" in section.html


def test_numbers_at_an_axis_are_not_cut_off():
    run = gpmi.minimize(lambda p: 1000.0 + 0.3 * (p["x"] - 100.4) ** 2, {"x": (100.0, 101.0)}, budget=6, seed=0)
    for section in report.sections(run, only=["slices", "convergence"]):
        ticks = re.findall(r'class="tick"[^>]*>([^<]*)</text>', section.html)
        assert ticks and not any("..." in words for words in ticks)
        assert all(float(x) > 0.0 for x in re.findall(r'<text x="([-\d.]+)"[^>]*text-anchor="end"', section.html))


@pytest.mark.parametrize(
    ("told", "failed", "pending", "rejected", "words"),
    [
        (0, 0, 0, 0, "0 evaluations."),
        (1, 0, 0, 0, "1 evaluation, with a value."),
        (3, 0, 0, 0, "3 evaluations, all with a value."),
        (3, 2, 1, 0, "6 evaluations: 3 with a value, 2 failed, 1 without a result yet."),
        (0, 2, 0, 0, "2 evaluations, all failed."),
        (3, 0, 0, 1, "3 evaluations, all with a value; 1 more rejected."),
    ],
)
def test_the_first_sentence_counts_evaluations_in_words(told, failed, pending, rejected, words):
    opt = gpmi.Optimizer([(0.0, 1.0)], seed=0)
    for i in range(told):
        opt.tell(opt.ask(), float(i))
    for _ in range(failed):
        opt.fail(opt.ask(), "diverged")
    for _ in range(rejected):
        opt.reject(opt.ask())
    opt.ask(pending) if pending else None
    (found,) = report.sections(opt, only=["found"])
    assert found.html.startswith(f"<p>{words}")


def test_every_parameter_has_its_name_beside_the_bars_of_its_importance():
    run = gpmi.Optimizer([(0.0, 1.0)] * 8, seed=0)
    for x in np.random.default_rng(0).random((30, 8)):
        run.tell(x, float(x.sum()))
    (section,) = report.sections(run, only=["importance"])
    names = re.findall(r'<text [^>]*text-anchor="end">([^<]*)</text>', section.html)
    assert sorted(names) == [f"x{i}" for i in range(8)]


def test_a_newcomer_reads_of_the_mean_and_of_settings(run):
    built = {one.id: one.html for one in report.sections(run)}
    assert "posterior" not in built["found"] + built["advice"]
    assert '<th scope="row">gain</th><td class="words">10 more evaluations gain more than ' in built["advice"]
    assert "The curves hold at these other settings" in built["slices"]


def test_mixed_failures_are_told_by_the_most_frequent_reason():
    opt = gpmi.Optimizer([(0.0, 1.0)], seed=0)
    for why in ("diverged", "no disk", "diverged"):
        opt.fail(opt.ask(), why)
    found, advice = report.sections(opt, only=["found", "advice"])
    assert "All 3 evaluations failed: 2 times diverged." in found.html
    assert "Find out why evaluations fail." in advice.html and "All 3 evaluations failed" in advice.html
