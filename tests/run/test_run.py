"""maximize and minimize: what a run returns, and that nothing evaluated is ever lost."""

import functools
import inspect
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest

import gpmi
import gpmi.run.study
from gpmi import GPMI, Int, Optimizer, Real, SpaceExhausted, kernels, maximize, minimize
from gpmi._support.name_hints import ELSEWHERE, FOREIGN_NAMES
from gpmi.run.options import OptimizerOptions, RunOptions, RunSettings

BOX = [(-5.0, 10.0), (0.0, 15.0)]
GRID = np.linspace(0.0, 1.0, 21)[:, None]
MIXED = {"lr": Real(1e-4, 1.0, log=True), "n": Int(1, 8), "act": ["relu", "tanh"], "x": (0.0, 1.0)}
TABLE = pd.DataFrame({"n": [1, 2, 3, 4], "act": ["relu", "tanh", "relu", "tanh"]})
PRIOR = {"policy": GPMI(), "kernel": kernels.RBF(0.3), "noise_var": 1e-4}


def bowl(x):
    return -float((x[0] - 3.0) ** 2 + (x[1] - 2.0) ** 2) / 50.0


def wave(x):
    return float(np.sin(7.0 * x[0]) + x[0])


def score(p):
    return float(np.log(p["lr"]) ** 2 / -20.0 + p["n"] / 8 + (p["act"] == "tanh") - (p["x"] - 0.4) ** 2)


def row_score(p):
    return p["n"] + (p["act"] == "tanh")


RUNS = [
    pytest.param(bowl, BOX, {}, id="box, learned"),
    pytest.param(bowl, BOX, {**PRIOR, "kernel": kernels.RBF(3.0)}, id="box, given"),
    pytest.param(wave, GRID, {}, id="array, learned"),
    pytest.param(wave, GRID, PRIOR, id="array, given"),
    pytest.param(score, MIXED, {}, id="dict, learned"),
    pytest.param(row_score, TABLE, PRIOR, id="frame, given"),
]


class Stops:
    """f until call number `last`, which raises."""

    def __init__(self, f, last, error):
        self.f, self.last, self.error, self.points, self.values = f, last, error, [], []

    def __call__(self, x):
        if len(self.points) + 1 == self.last:
            raise self.error
        self.points.append(x)
        self.values.append(self.f(x))
        return self.values[-1]


class MyError(Exception):
    def __init__(self, code, where):
        super().__init__(f"{code} at {where}")
        self.code = code


def points(result):
    return [trial.x for trial in result.trials]


def assert_same_points(a, b):
    assert len(a) == len(b)
    for p, q in zip(a, b, strict=True):
        assert p == q if isinstance(p, dict) else np.array_equal(p, q)


# The result


@pytest.mark.parametrize("run", [maximize, minimize])
@pytest.mark.parametrize(("f", "space", "arguments"), RUNS)
def test_the_result_is_what_f_returned(run, f, space, arguments):
    seen = []

    def recorded(x):
        seen.append((x, f(x)))
        return seen[-1][1]

    r = run(recorded, space, budget=8, seed=0, **arguments)
    assert len(r.trials) == 8
    assert_same_points(points(r), [x for x, _ in seen])
    assert [trial.y for trial in r.trials] == [y for _, y in seen]
    assert [trial.number for trial in r.trials] == list(range(8))
    assert [trial.order for trial in r.trials] == list(range(8))
    assert {trial.status for trial in r.trials} == {"told"}
    assert r.y == (max if run is maximize else min)(y for _, y in seen)
    assert f(r.x) == r.y
    assert r.reason == "budget"
    assert r.goal == ("max" if run is maximize else "min")
    assert r.seed == 0
    assert r.posterior.n == 8
    np.testing.assert_allclose(r.warp.inverse(r.posterior.y), [y for _, y in seen], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("f", "space", "arguments"), RUNS)
def test_the_recommended_point_is_in_the_space_and_has_the_best_mean(f, space, arguments):
    r = maximize(f, space, budget=8, seed=0, **arguments)
    row = r.space.encode(r.recommended)
    mu = r.posterior.mu(row[None])[0]
    told = r.posterior.mu(np.array([r.space.encode(x) for x in points(r)]))
    assert mu >= np.max(told) - 1e-9
    assert type(r.recommended) is type(r.x)


def test_the_best_of_equals_is_the_first():
    r = maximize(lambda x: 1.0, GRID, budget=5, seed=0, **PRIOR)
    assert r.x is not None
    assert np.array_equal(r.x, r.trials[0].x)


def test_the_result_of_maximize_is_that_of_an_optimizer_run_by_hand():
    r = maximize(bowl, BOX, budget=9, seed=4)
    opt = Optimizer(BOX, budget=9, seed=4)
    for _ in range(9):
        x = opt.ask()
        opt.tell(x, bowl(x))
    assert_same_points(points(r), [trial.x for trial in opt.trials])
    assert np.array_equal(r.recommended, opt.recommend())


def test_numbers_of_every_kind_may_be_returned():
    values = iter([1, 2.5, Fraction(1, 4), np.float32(0.5), np.int64(3), np.array(4.0)])
    r = maximize(lambda x: next(values), GRID, budget=6, seed=0, **PRIOR)
    assert [trial.y for trial in r.trials] == [1.0, 2.5, 0.25, 0.5, 3.0, 4.0]
    assert {type(trial.y) for trial in r.trials} == {float}


# Symmetries


@pytest.mark.parametrize(("f", "space", "arguments"), RUNS)
def test_minimizing_f_is_maximizing_minus_f(f, space, arguments):
    down = minimize(f, space, budget=10, seed=2, **arguments)
    up = maximize(lambda x: -f(x), space, budget=10, seed=2, **arguments)
    assert_same_points(points(down), points(up))
    assert down.y == -up.y
    assert_same_points([down.x, down.recommended], [up.x, up.recommended])


@pytest.mark.parametrize(("f", "space", "arguments"), RUNS)
def test_the_same_seed_gives_the_same_run(f, space, arguments):
    a, b = (maximize(f, space, budget=8, seed=5, **arguments) for _ in range(2))
    assert_same_points([*points(a), a.x, a.recommended], [*points(b), b.x, b.recommended])


def test_another_seed_gives_another_design():
    a, b = (maximize(bowl, BOX, budget=3, seed=seed) for seed in (0, 1))
    assert not np.array_equal(a.trials[0].x, b.trials[0].x)


@pytest.mark.parametrize("run", [maximize, minimize])
def test_a_seed_that_was_not_given_is_recorded_and_can_be_used_again(run):
    a = run(bowl, BOX, budget=6)
    b = run(bowl, BOX, budget=6, seed=a.seed)
    assert isinstance(a.seed, int)
    assert_same_points(points(a), points(b))
    assert a.seed == b.seed


def test_runs_without_a_seed_differ():
    assert maximize(bowl, BOX, budget=1).seed != maximize(bowl, BOX, budget=1).seed


@pytest.mark.parametrize("space", [BOX, MIXED, GRID, TABLE], ids=["box", "dict", "array", "frame"])
def test_f_may_change_the_point_it_is_given(space):
    def gentle(x):
        return float(np.sum(list(x.values()) if isinstance(x, dict) else x)) if space is not TABLE else row_score(x)

    def value(x):
        return score(x) if space is MIXED else gentle(x)

    def rough(x):
        y = value(x)
        if isinstance(x, dict):
            x.clear()
        else:
            x[:] = np.nan
        return y

    a = maximize(value, space, budget=7, n_init=3, seed=0)
    b = maximize(rough, space, budget=7, n_init=3, seed=0)
    assert_same_points([*points(a), a.x, a.recommended], [*points(b), b.x, b.recommended])


# Why it stops


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_it_stops_after_the_budget(budget):
    calls = []
    r = maximize(lambda x: calls.append(1) or 0.0, BOX, budget=budget, seed=0)
    assert len(calls) == len(r.trials) == budget
    assert r.reason == "budget"


@pytest.mark.parametrize("arguments", [{}, PRIOR], ids=["learned", "given"])
@pytest.mark.parametrize("n_init", [None, 0, 2, 50])
def test_without_repeats_it_stops_when_the_space_is_exhausted(arguments, n_init):
    r = maximize(wave, GRID[:5], budget=20, repeats=False, n_init=n_init, seed=0, **arguments)
    assert r.reason == "space exhausted"
    assert sorted(float(x[0]) for x in points(r)) == GRID[:5, 0].tolist()
    assert r.y == max(wave(x) for x in GRID[:5])


def test_with_repeats_a_small_space_is_never_exhausted():
    r = maximize(wave, GRID[:3], budget=12, seed=0)
    assert r.reason == "budget"
    assert len(r.trials) == 12


@pytest.mark.parametrize("run", [maximize, minimize])
@pytest.mark.parametrize("arguments", [{}, {**PRIOR, "kernel": kernels.RBF(3.0)}], ids=["learned", "given"])
def test_ctrl_c_returns_the_result_so_far(run, arguments):
    f = Stops(bowl, 5, KeyboardInterrupt())
    r = run(f, BOX, budget=20, seed=0, **arguments)
    assert r.reason == "interrupted"
    assert_same_points(points(r), f.points)
    assert [trial.y for trial in r.trials] == f.values
    assert len(r.trials) == 4
    assert r.y == (max if run is maximize else min)(f.values)
    assert r.space.encode(r.recommended) is not None


def test_ctrl_c_at_the_first_evaluation_returns_an_empty_result():
    r = maximize(Stops(bowl, 1, KeyboardInterrupt()), BOX, budget=20, seed=0)
    assert (r.reason, r.trials, r.x, r.y, r.recommended, r.posterior) == ("interrupted", (), None, None, None, None)


# Exceptions


ERRORS = [ValueError("bad luck"), TypeError("no"), ZeroDivisionError(), MyError(7, "here"), StopIteration(), OSError(5)]


@pytest.mark.parametrize("run", [maximize, minimize])
@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_an_exception_in_f_carries_everything_evaluated(run, error):
    f = Stops(bowl, 6, error)
    with pytest.raises(type(error)) as caught:
        run(f, BOX, budget=20, seed=0)
    assert caught.value is error
    r = caught.value.result
    assert isinstance(r, gpmi.Result)
    assert_same_points(points(r), f.points)
    assert [trial.y for trial in r.trials] == f.values
    assert len(r.trials) == 5
    assert r.y == (max if run is maximize else min)(f.values)
    assert r.reason.startswith("error")
    assert any("result" in note for note in caught.value.__notes__)


def test_an_exception_at_the_very_first_evaluation_carries_an_empty_result():
    with pytest.raises(MyError) as caught:
        maximize(Stops(bowl, 1, MyError(3, "start")), BOX, budget=20, seed=0)
    r = caught.value.result
    assert (r.trials, r.x, r.y, r.recommended, r.posterior) == ((), None, None, None, None)
    assert caught.value.code == 3


def test_an_exhausted_space_inside_f_is_fs_own_affair():
    """Only the run's own space may end it quietly; f may well use an optimizer of its own."""
    f = Stops(bowl, 3, SpaceExhausted("an inner one"))
    with pytest.raises(SpaceExhausted, match="an inner one") as caught:
        maximize(f, BOX, budget=20, seed=0)
    assert len(caught.value.result.trials) == 2


@dataclass(frozen=True)
class Frozen(Exception):
    code: int


class Owner(Exception):
    @property
    def result(self):
        return "its own"


@pytest.mark.parametrize("error", [Frozen(3), Owner("mine")], ids=["frozen", "with its own result"])
def test_the_users_exception_is_never_replaced_by_another(error):
    with pytest.raises(type(error)) as caught:
        maximize(Stops(bowl, 3, error), BOX, budget=20, seed=0)
    assert caught.value is error


def test_an_exit_inside_f_carries_the_result_too():
    with pytest.raises(SystemExit) as caught:
        maximize(Stops(bowl, 3, SystemExit(2)), BOX, budget=20, seed=0)
    assert len(caught.value.result.trials) == 2


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        (-float("inf"), ValueError),
        (np.float32("nan"), ValueError),
        (None, TypeError),
        ("3", TypeError),
        ([1.0], TypeError),
        (np.array([1.0]), TypeError),
        (1j, TypeError),
    ],
    ids=repr,
)
@pytest.mark.parametrize("run", [maximize, minimize])
def test_a_value_that_is_no_finite_number_ends_the_run_and_the_error_carries_the_result(run, value, error):
    values = iter([0.5, 1.5, 1.0])
    with pytest.raises(error) as caught:
        run(lambda x: next(values, value), BOX, budget=20, seed=0)
    message = str(caught.value)
    assert "f returned" in message
    assert repr(value) in message
    assert "must" in message
    assert [trial.y for trial in caught.value.result.trials] == [0.5, 1.5, 1.0]


def test_the_run_of_an_error_can_be_taken_up_again():
    """The trials that an exception carries replay: the next point is the one that failed."""
    f = Stops(bowl, 8, MyError(1, "disk full"))
    with pytest.raises(MyError) as caught:
        maximize(f, BOX, budget=12, seed=3)
    opt = Optimizer(BOX, budget=12, seed=3).replay(caught.value.result.trials)
    whole = maximize(bowl, BOX, budget=12, seed=3)
    for expected in points(whole)[7:]:
        x = opt.ask()
        assert np.array_equal(x, expected)
        opt.tell(x, bowl(x))


def test_an_unfinished_evaluation_is_not_among_the_trials():
    with pytest.raises(MyError) as caught:
        maximize(Stops(wave, 4, MyError(1, "")), GRID, budget=12, seed=3, **PRIOR)
    assert {trial.status for trial in caught.value.result.trials} == {"told"}
    assert caught.value.result.posterior.n == 3


# What newcomers write


NAME = attrgetter("__name__")


def of_two(speed, depth):
    return speed - depth


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"speed": (0.0, 1.0), "depth": (0.0, 1.0)}, ["one point, a dict of speed, depth", "give lambda p: f(**p)"]),
        ([(0.0, 1.0), (0.0, 1.0)], ["one point, an array of shape (2,)", "give lambda p: f(*p)"]),
        (np.zeros((3, 2)), ["one point, an array of shape (2,)", "give lambda p: f(*p)"]),
        ([(0.0, 1.0)], ["one point, an array of shape (1,)", "give a function of one argument"]),
        ({"speed": (0.0, 1.0)}, ["one point, a dict of speed", "give a function of one argument"]),
    ],
    ids=["dict", "box", "table", "too few", "other names"],
)
@pytest.mark.parametrize("run", [maximize, minimize])
def test_an_f_of_separate_arguments_is_refused_with_the_remedy(run, space, words):
    with pytest.raises(TypeError) as caught:
        run(of_two, space, budget=3)
    message = str(caught.value)
    assert "f takes (speed, depth)" in message
    assert all(word in message for word in words), message


def test_an_f_that_can_be_called_with_one_point_is_not_refused():
    """Whatever else it takes, and whatever it wraps."""

    @functools.wraps(of_two)
    def spread(p):
        return of_two(**p)

    class Callable:
        def __call__(self, p, *more, scale=1.0):
            return scale * p["speed"]

    space = {"speed": (0.0, 1.0), "depth": (0.0, 1.0)}
    for f in (
        spread,
        Callable(),
        functools.partial(lambda depth, p: p["speed"] - depth, 0.5),
        lambda *p: p[0]["speed"],
    ):
        assert len(maximize(f, space, budget=2, seed=0).trials) == 2
    assert len(maximize(max, [(0.0, 1.0)], budget=2, seed=0).trials) == 2  # says nothing of its arguments


@pytest.mark.parametrize("run", [maximize, minimize, gpmi.Optimizer, gpmi.run.study.Study.optimize], ids=NAME)
@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("n_trials", "budget="),
        ("n_calls", "budget="),
        ("n_iter", "budget="),
        ("pbounds", "space="),
        ("direction", "goal="),
        ("directions", "goals={.*} of gpmi.optimize, gpmi.Optimizer and gpmi.study"),
        ("objectives", "goals={.*} of gpmi.optimize"),
        ("reference_point", r"gpmi.Max\(at_least=...\) and gpmi.Min\(at_most=...\) in goals="),
    ],
)
def test_the_names_of_other_libraries_are_refused_with_ours(run, name, ours):
    with pytest.raises(TypeError, match=f"{name} is not an argument of .*; did you mean .*{ours}"):
        run(**{name: 3})


@pytest.mark.parametrize(
    "call",
    [maximize, minimize, gpmi.Optimizer, gpmi.study, gpmi.run.study.Study.optimize, gpmi.Optimizer.tell],
    ids=NAME,
)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pruner", r'give the space steps, such as "epoch": gpmi.Fidelity\(1, 52\), and let f yield'),
        ("fidelity", r'it is a parameter of the space: "mesh": gpmi.Fidelity'),
    ],
)
def test_what_is_part_of_the_space_is_said_plainly(call, name, words):
    with pytest.raises(TypeError, match=f"{name} is not an argument of .*; {words}"):
        call(**{name: 3})


@pytest.mark.parametrize("answer", [(1.0, 2.0), [1.0, 2.0], {"a": 1.0, "b": 2.0}, np.array([1.0, 2.0])], ids=repr)
def test_several_values_of_an_evaluation_are_refused_with_what_to_do(answer, tmp_path):
    several = r"for several outputs use goals=\{.*\} of gpmi.optimize, gpmi.Optimizer and gpmi.study"
    words = rf"one finite number, gpmi.Measured\(y, constraints=\[...\]\) for one with constraints; {several}"
    for options in ({}, {"timeout": 60.0}, {"on_failure": "learn"}):
        with pytest.raises(TypeError, match=f"f returned .*{words}"):
            maximize(lambda x: answer, BOX, budget=3, seed=0, **options)
    with pytest.raises(TypeError, match=f"y is .*{words}"):
        gpmi.Optimizer(BOX, seed=0).tell([0.5] * len(BOX), answer)
    with pytest.raises(TypeError, match=f"goal is .*; give 'max' or 'min', and {several}"):
        gpmi.Optimizer(BOX, goal=["max", "min"])


@pytest.mark.parametrize("run", [maximize, minimize, gpmi.run.study.Study.optimize], ids=NAME)
def test_a_call_for_one_value_says_where_goals_are_given(run):
    with pytest.raises(
        TypeError, match=r"goals is not an argument of .*; for several outputs use goals=\{.*\} of gpmi.opt"
    ):
        run(goals={"yield": "max"})


def test_the_run_of_a_study_does_not_promise_what_it_has_not():
    for name, ours in (("pbounds", "space="), ("random_state", "seed="), ("n_initial_points", "n_init=")):
        with pytest.raises(TypeError, match=f"did you mean {ours} of gpmi.study"):
            gpmi.run.study.Study.optimize(**{name: 3})


def test_a_parameter_may_have_any_name():
    with pytest.raises(TypeError, match="give lambda p: f"):
        maximize(lambda signature, b: b, {"signature": (0.0, 1.0), "b": (0.0, 1.0)}, budget=3, seed=0)


@pytest.mark.parametrize(
    "run", [maximize, minimize, gpmi.optimize, gpmi.Optimizer, gpmi.run.study.Study.optimize, gpmi.study], ids=NAME
)
def test_a_name_of_other_libraries_is_none_of_ours(run):
    """And the signature says what may be given, no more."""
    parameters = inspect.signature(run).parameters
    assert not FOREIGN_NAMES.keys() & parameters.keys()
    assert not ELSEWHERE.keys() & parameters.keys()
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in parameters.values())


def test_an_unknown_argument_is_refused_with_the_nearest_name_or_all_names():
    with pytest.raises(TypeError, match=r"^budgt is not an argument of maximize; did you mean budget=\?$"):
        maximize(bowl, BOX, budgt=3)
    with pytest.raises(TypeError, match=r"^zzz is not an argument of Study.optimize; it takes f, budget, cost, stop, "):
        gpmi.run.study.Study.optimize(zzz=3)


@pytest.mark.parametrize("user", [RunSettings, Optimizer], ids=NAME)
def test_the_arguments_for_type_checkers_are_those_of_the_code(user):
    """A TypedDict cannot have defaults, so names and types stand there and where they are used."""
    options = RunOptions if user is RunSettings else OptimizerOptions
    given = {"self", "f", "space", "goal"} | ({"budget", "goals", "earlier"} if user is Optimizer else set())
    used = {name: one.annotation for name, one in inspect.signature(user).parameters.items() if name not in given}
    assert {name: kind.__forward_arg__ for name, kind in options.__annotations__.items()} == used


@pytest.mark.slow
def test_a_type_checker_refuses_wrong_names_and_types_of_options():
    mypy = pytest.importorskip("mypy.api")
    call = "gpmi.maximize(lambda x: 1.0, [(0.0, 1.0)], "
    lines = ["import gpmi", f"{call}budget=3, seed=None)", f"{call}budgt=3)", f"{call}retries=1.5)"]
    out, _, code = mypy.run(["--strict", "-c", "\n".join(lines)])
    assert code == 1
    assert [line.split(":")[1] for line in out.splitlines() if "error:" in line] == ["3", "4"], out
    assert 'Unexpected keyword argument "budgt"' in out and 'Argument "retries"' in out


@pytest.mark.parametrize("learn", [{}, {"on_failure": "learn"}], ids=["raise", "learn"])
@pytest.mark.parametrize(
    ("value", "word"),
    [
        (None, "a function without a return statement returns None"),
        ("3.5", "one finite number"),
        (np.array([1.0]), "return y.item()"),
        ([1.0], "return y[0]"),
        ((1.0, [0.2]), "gpmi.Measured(y, constraints=[...])"),
        (np.array([1.0, 2.0]), "one finite number"),
        (gpmi.Measured("3"), "one finite number"),
    ],
    ids=repr,
)
def test_what_is_wrong_with_a_value_is_said_once(value, word, learn):
    with pytest.raises(TypeError) as caught:
        maximize(lambda x: value, BOX, budget=3, seed=0, **learn)
    message = str(caught.value) + " ".join(caught.value.__notes__)
    assert word in message
    assert message.count("finite number") == 1
    assert message.count("on_failure") == 1


def test_a_number_that_is_too_large_is_no_failure_to_learn_from():
    with pytest.raises(ValueError, match="too large to square") as caught:
        maximize(lambda x: 1e200, BOX, budget=3, seed=0)
    assert "on_failure" not in str(caught.value)


def test_the_first_evaluation_that_raises_says_what_f_is_called_with():
    with pytest.raises(TypeError) as caught:
        maximize(lambda speed: 2.0 * speed, {"speed": (0.0, 1.0)}, budget=3)
    assert any("f is called with one point, a dict of speed" in note for note in caught.value.__notes__)
