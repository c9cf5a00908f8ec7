"""An Angle: 0 and its period are one point, only differences matter, and a search goes on past the end."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpmi
from gpmi import Angle, Optimizer, Space
from gpmi._support.plain_table import Table, TableError
from gpmi.exchange import read_trials, write_trials
from gpmi.run.study_table import read_table
from gpmi.serve.study_form import FormProblem, typed_study
from gpmi.space import NumberRange, axes_of

pytestmark = pytest.mark.usefixtures("few_draws")

DEGREES = st.floats(-720.0, 720.0)
COURSE: dict[str, Any] = {"course": Angle(360, unit="°"), "x": (0.0, 1.0)}
SWITCHED: dict[str, Any] = {
    "course": Angle(360, step=15),
    "kind": ["fixed", "swept"],
    "hour": Angle(24, when={"kind": "swept"}),
}


def apart(a: float, b: float, period: float = 360.0) -> float:
    """Return the distance of two values by the shorter way round."""
    return abs((a - b + period / 2.0) % period - period / 2.0)


def peak_at(best: float) -> Any:
    return lambda p: math.cos(math.radians(p["course"] - best)) - (p.get("x", 0.3) - 0.3) ** 2


# Values


@given(DEGREES, st.integers(-2, 2))
def test_a_value_is_taken_modulo_the_period(value: float, turns: int) -> None:
    space = Space.of({"course": Angle(360)})
    point, turned = space.canonical({"course": value}), space.canonical({"course": value + 360.0 * turns})
    assert type(point["course"]) is float and 0.0 <= point["course"] < 360.0
    assert apart(point["course"], turned["course"]) < 1e-9
    assert apart(space.decode(space.encode(point))["course"], value) < 1e-9


def test_zero_and_the_period_are_one_point() -> None:
    space = Space.of({"course": Angle(360)})
    rows = [space.encode({"course": value}) for value in (0, 360, -360.0, 720, -1e-20)]
    assert all(np.array_equal(row, rows[0]) for row in rows)
    assert [space.canonical({"course": value}) for value in (0, 360, -90)] == [
        {"course": 0.0},
        {"course": 0.0},
        {"course": 270.0},
    ]
    opt = Optimizer({"course": Angle(360)}, seed=0)
    opt.tell({"course": 360}, 1.0)
    assert opt.trials[0].x == {"course": 0.0}


@given(DEGREES, DEGREES, DEGREES)
def test_the_kernel_depends_on_the_difference_of_two_angles_alone(a: float, b: float, turn: float) -> None:
    space, kernel = Space.of({"course": Angle(360)}), gpmi.kernels.Matern(nu=2.5, lengthscale=0.7)
    rows = [space.encode({"course": value})[None] for value in (a, b, a + turn, b + turn, b, a)]
    there, turned, back = (kernel(rows[i], rows[i + 1])[0, 0] for i in (0, 2, 4))
    assert turned == pytest.approx(there, abs=1e-12) and back == pytest.approx(there, abs=1e-12)


def test_a_learned_kernel_depends_on_the_difference_alone() -> None:
    opt = Optimizer(COURSE, seed=0)
    for _ in range(12):
        opt.tell(x := opt.ask(), peak_at(358)(x))
    assert opt.posterior is not None
    rows = [opt.space.encode({"course": value, "x": 0.5})[None] for value in (350, 10, 80, 100)]
    ends, inside = (opt.posterior.kernel(rows[i], rows[i + 1])[0, 0] for i in (0, 2))
    assert ends == pytest.approx(inside, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"period": 0}, "period of Angle is 0"),
        ({"period": math.inf}, "period of Angle is inf"),
        ({"period": 360, "step": 7}, "360 is no multiple of it; give a part of the period, such as 30"),
        ({"period": 360, "step": 360}, "which does not go round"),
    ],
)
def test_what_does_not_go_round_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Angle(**arguments)


@pytest.mark.parametrize(
    "constraint", ["course <= 90", "course + x <= 1", "count(course, x > 0) <= 1", gpmi.Forbidden(course=90)]
)
def test_constraints_that_need_an_order_refuse_an_angle(constraint: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="an angle"):
        Optimizer(COURSE, constraints=constraint)


def test_a_function_may_constrain_an_angle() -> None:
    opt = Optimizer(COURSE, constraints=[lambda p: apart(p["course"], 0.0) <= 20.0], seed=0)
    for _ in range(14):
        opt.tell(x := opt.ask(), peak_at(300)(x))
        assert apart(x["course"], 0.0) <= 20.0
    assert apart(opt.recommend()["course"], 340.0) < 2.0


# Steps, conditions, fixed values


def test_steps_go_on_past_the_end() -> None:
    dial = Angle(360, step=15)
    assert dial.settings_near(357.0, 1) == [345.0, 360.0]
    assert [dial.nearest(value) for value in (357.0, 7.0, 8.0)] == [0.0, 0.0, 15.0]
    opt = Optimizer(SWITCHED, seed=1)
    for _ in range(20):
        x = opt.ask()
        assert x["course"] in range(0, 360, 15) and ("hour" in x) == (x["kind"] == "swept")
        opt.tell(x, peak_at(358)(x) + (math.cos(math.pi * (x["hour"] - 23) / 12) if "hour" in x else 0.0))
    best = opt.recommend()
    assert best["course"] == 0.0 and best["kind"] == "swept" and apart(best["hour"], 23.0, 24.0) < 0.5


@given(st.integers(2, 400), st.floats(1e-3, 1e3), st.integers(0, 400))
def test_a_setting_is_read_as_it_was_encoded(parts: int, period: float, number: int) -> None:
    dial = Angle(period, step=period / parts)
    value = dial.canonical(dial.setting(number))
    assert apart(dial.decode(np.array(dial.encode("dial", value))), value, period) <= 1e-9 * period


def test_a_fixed_angle_is_taken_modulo_the_period() -> None:
    opt = Optimizer(COURSE, seed=0)
    for _ in range(10):
        opt.tell(x := opt.ask(), peak_at(200)(x))
    assert opt.ask(fixed={"course": -90})["course"] == 270.0
    assert opt.trials[-1].fixed == {"course": 270.0}
    assert len({x["course"] for x in opt.ask(3, same=["course"])}) == 1
    with pytest.raises(ValueError, match="an angle, which goes round"):
        opt.ask(3, apart={"course": 10})


# The search


@given(st.floats(0.0, 360.0))
def test_the_recommended_point_turns_with_the_values(turn: float) -> None:
    def recommended(by: float) -> float:
        opt = Optimizer({"course": Angle(360)}, kernel=gpmi.kernels.RBF(0.7), noise_var=1e-4, n_init=0, seed=0)
        for course, y in ((100.0, 0.1), (130.0, 0.9), (170.0, 0.8), (250.0, 0.0)):
            opt.tell({"course": course + by}, y)
        return float(opt.recommend()["course"])

    assert apart(recommended(turn) - turn, recommended(0.0)) < 0.05


@pytest.mark.parametrize("told", [(300.0, 315.0, 330.0, 345.0), (15.0, 30.0, 45.0, 60.0)])
def test_an_optimum_near_the_end_is_found_from_both_sides(told: tuple[float, ...]) -> None:
    opt = Optimizer({"course": Angle(360)}, seed=0, n_init=0)
    for course in told:
        opt.tell({"course": course}, peak_at(358)({"course": course}))
    for _ in range(6):
        opt.tell(x := opt.ask(), peak_at(358)(x))
    assert apart(opt.recommend()["course"], 358.0) < 2.0


def test_an_optimum_near_the_end_is_found_as_well_as_one_in_the_middle() -> None:
    def errors(best: float) -> list[float]:
        runs = [gpmi.maximize(peak_at(best), COURSE, budget=16, seed=seed) for seed in range(5)]
        return [apart(run.recommended["course"], best) for run in runs]

    assert np.median(errors(358.0)) <= 1.5 * np.median(errors(178.0)) + 0.2
    assert max(errors(358.0)) < 3.0


# What reads a space


def test_figures_and_importances_have_the_whole_circle() -> None:
    opt = Optimizer(COURSE, seed=0)
    for _ in range(12):
        opt.tell(x := opt.ask(), peak_at(358)(x))
    axis = axes_of(opt.space)[0]
    assert axis.limits == (0.0, 360.0) and axis.title == "course (°)"
    assert axis.positions(opt.space.encode({"course": 270, "x": 0.5})[None])[0] == pytest.approx(270.0)
    assert next(iter(gpmi.importances(opt))).total > 0.5


def test_a_study_is_stored_opened_and_replayed(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    space = {**COURSE, **SWITCHED}
    with gpmi.study(tmp_path / "a.db", "a", space=space, seed=3) as study:
        for _ in range(10):
            trial = study.ask()
            study.tell(trial, peak_at(358)(trial.x))
        study.tell({"course": -90, "kind": "fixed", "x": 0.5}, 0.3)
        asked, trials = study.ask(fixed={"course": -90}), study.trials
    twin = Optimizer(space, seed=3).replay(trials[:-1])
    assert twin.ask(fixed={"course": 270}) == asked.x
    with gpmi.study(tmp_path / "a.db", "a", space=space) as study:
        assert [trial.x for trial in study.trials] == [trial.x for trial in trials]
        assert "equal" in repr(study.verify())
        write_trials(study, tmp_path / "a.csv")
    again = read_trials(tmp_path / "a.csv", space)
    assert [trial.x for trial in again] == [trial.x for trial in trials]
    with pytest.raises(ValueError, match=r"course is \[0, 180\], but that of the study is \[0, 360\]"):
        gpmi.study(tmp_path / "a.db", "a", space={**space, "course": Angle(180)})


def test_a_study_file_names_the_period() -> None:
    table = {"parameters": {"course": {"angle": 360, "step": 15, "unit": "°"}, "hour": {"angle": [0, 24]}}}
    assert read_table(Table(table)).parameters == {"course": Angle(360, step=15, unit="°"), "hour": Angle(24)}
    with pytest.raises(TableError, match="a circle begins at 0, and not at 1; give 0 and the period"):
        read_table(Table({"parameters": {"month": {"angle": [1, 13]}}}))


FORM = {"goal": "max", "aim": "find", "name-0": "course", "kind-0": "angle", "lo-0": "0", "hi-0": "360"}


def test_the_form_of_a_new_study_has_angles() -> None:
    assert typed_study({**FORM, "unit-0": "°", "step-0": "15"}).parameters == {"course": Angle(360, step=15, unit="°")}


def test_a_study_with_an_angle_is_created_on_the_page_and_takes_any_turn(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    from laboratory import client_for, follow, send, text_of

    with client_for(str(tmp_path / "new.db")) as client:
        form = client.get("/new")
        assert "angle, begins again at “To”" in text_of(form)
        page = follow(client, send(client, form, "/new/parameters", **FORM, study="vane", budget="20"))
        assert "The study was created." in text_of(page)
        send(client, page, "/ask", n="2")
    with gpmi.study(tmp_path / "new.db", "vane") as study:
        assert study.space.canonical({"course": -90}) == {"course": 270.0} and len(study.pending) == 2


@pytest.mark.parametrize(
    ("typed", "field", "words"),
    [
        ({"lo-0": "10"}, "lo-0", "Parameter 'course': a circle begins at 0, and not at 10"),
        ({"hi-0": "-360"}, "lo-0", "“From” must be smaller than “To”"),
        ({"step-0": "-1"}, "step-0", "the step is -1; give a number above 0"),
        ({"step-0": "7"}, "step-0", "360 is no multiple of it"),
        ({"log-0": "on"}, "log-0", "it has no logarithmic scale; clear the box, or choose another kind"),
        ({"part-0": "on"}, "kind-0", "it is part of a mixture, so it must be a number"),
        ({"rules": "course <= 90"}, "rules", "an angle"),
    ],
)
def test_a_form_that_cannot_be_an_angle_is_refused(typed: dict[str, str], field: str, words: str) -> None:
    with pytest.raises(FormProblem, match=words) as refused:
        typed_study({**FORM, **typed})
    assert refused.value.field == field


def test_optuna_has_numbers_from_zero_to_the_period() -> None:
    pytest.importorskip("optuna")
    from gpmi.integrations.optuna.search_space import distribution_of

    assert Angle(24).domain == NumberRange(0.0, 24.0)
    distribution: Any = distribution_of(Angle(24).domain)
    assert (distribution.low, distribution.high, distribution.log) == (0.0, 24.0, False)
