"""Bad input is refused with the argument, the value and the remedy, and the optimizer is left as it was."""

import math
import re
from fractions import Fraction
from numbers import Real as RealNumber

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gpmi
from gpmi import (
    EI,
    GPMI,
    GPUCB,
    Choice,
    Int,
    LogEI,
    Optimizer,
    Posterior,
    Real,
    Reinvest,
    Space,
    Trial,
    VarianceBonus,
    kernels,
    maximize,
    minimize,
)
from gpmi._support.checks import shown
from gpmi._support.refusals import RefusedType, RefusedValue

NAN, INF, HUGE = float("nan"), float("inf"), 10**400
REFUSED = (ValueError, TypeError, RefusedValue, RefusedType)
RAGGED = [[1.0], [1.0, 2.0]]
REMEDY = re.compile(
    r"\b(give|must|needs?|leave|tell|use|narrow|name|say|only|exactly|at least|is an array|is a dict)\b"
)
PRIOR = {"kernel": kernels.RBF(0.5), "noise_var": 1e-2}


def refusal(call):
    """The message of the ValueError or TypeError that the call must raise."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert type(caught.value) in REFUSED  # not one of their subclasses from the depths
    return str(caught.value)


def assert_names(message, *words):
    for word in words:
        assert word in message
    assert REMEDY.search(message), f"no remedy in: {message}"


def label(value, text=shown):
    """The name of a case, which must be the same in every process: without the address of a function."""
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(text(value).split()))[:30]


# Optimizers with a history and something pending


def in_box():
    opt = Optimizer([(0, 1), (-1, 1)], GPMI(), **PRIOR, seed=0)
    opt.tell([0.5, 0.0], 1.0)
    opt.tell([0.25, 0.5], -1.0)
    opt.ask()
    return opt


def in_dict():
    spec = {"r": (0.0, 1.0), "l": Real(1e-3, 1.0, log=True), "i": Int(1, 8), "c": ["relu", "tanh"], "b": [True, False]}
    opt = Optimizer(spec, GPMI(), **PRIOR, seed=0)
    opt.tell(POINT, 1.0)
    opt.ask()
    return opt


POINT = {"r": 0.5, "l": 0.125, "i": 3, "c": "relu", "b": True}


CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def in_array():
    opt = Optimizer(CORNERS, GPMI(), **PRIOR, seed=0)
    opt.tell([0.0, 1.0], 1.0)
    opt.ask()
    return opt


def in_frame():
    opt = Optimizer(pd.DataFrame({"n": [1, 2, 3], "c": ["x", "y", "x"]}), GPMI(), **PRIOR, seed=0)
    opt.tell({"n": 1, "c": "x"}, 1.0)
    opt.ask()
    return opt


def picture(opt):
    """All that a user can see of an optimizer, but for the next point."""
    trials = [(t.number, repr(t.x), t.y, t.status, t.origin, t.order, t.mu, t.sd, t.phi) for t in opt.trials]
    return trials, [t.number for t in opt.pending], opt.best, opt.events, opt.seed, opt.goal, opt.budget, opt.n_init


def same(a, b):
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else a == b


def assert_refused_by(make, call, *words):
    """The call is refused with a message of these words, and the optimizer goes on as if it had never been made."""
    opt = make()
    before = picture(opt)
    assert_names(refusal(lambda: call(opt)), *words)
    assert picture(opt) == before
    assert same(opt.ask(), make().ask())


# y


@pytest.mark.parametrize(
    "y",
    [
        NAN,
        INF,
        -INF,
        np.float32("nan"),
        HUGE,
        -HUGE,
        True,
        np.True_,
        "3",
        "",
        b"1",
        None,
        [1.0],
        (1.0,),
        [],
        np.array([1.0]),
        np.array([1.0, 2.0]),
        RAGGED,
        {"y": 1.0},
        1j,
        object,
        np.datetime64("2020-01-01"),
        np.timedelta64(3, "s"),
        np.ma.masked,
        pd.NA,
        pd.NaT,
        pd.Series([1.0]),
        lambda: 1.0,
    ],
    ids=lambda y: label(y, repr),
)
def test_a_value_that_is_not_one_finite_number_is_refused(y):
    assert_refused_by(in_box, lambda opt: opt.tell([0.5, 0.5], y), "y is", repr(y))


@pytest.mark.parametrize("y", [1, 1.0, Fraction(1), np.float32(1.0), np.int8(1), np.array(1.0)], ids=repr)
def test_a_number_of_any_kind_is_a_value(y):
    trial = in_box().tell([0.5, 0.5], y)
    assert type(trial.y) is float
    assert trial.y == 1.0


@pytest.mark.parametrize("learned", [{}, {"noise_var": 1e-2}, {"kernel": kernels.RBF(0.5)}, PRIOR], ids=str)
@pytest.mark.parametrize(
    "values",
    [(1e308, -1e308), (1e200, -1e200, 0.0), (1e308, 1e308, 1e308), (1e160, 1.0, 2.0), (1e-160, 0.0), (1e-320, 2e-320)],
)
def test_a_value_whose_square_overflows_or_vanishes_is_refused_or_survived(values, learned):
    opt = Optimizer([(0, 1)], seed=0, n_init=0, **learned)
    for i, y in enumerate(values):
        try:
            opt.tell([i / 8], y)
        except ValueError as error:
            assert_names(str(error), "y is", repr(y))
    for _ in range(3):
        x = opt.ask()
        opt.space.encode(x)
        opt.tell(x, 0.0)
    opt.space.encode(opt.recommend())


@pytest.mark.parametrize(
    "spec",
    [
        [(0.0, 1e-320)],
        [(-8e307, 8e307)],
        [(1e300, 1.000001e300)],
        [(1.0, 1.0 + 1e-15)],
        {"p": (1e-320, 1e-319)},
        {"p": (0.0, 1e300)},
        np.array([[1e300], [-1e300], [0.0]]),
        np.array([[1e-300], [2e-300]]),
    ],
    ids=str,
)
def test_a_space_too_wide_or_narrow_to_square_is_refused_or_survived(spec):
    try:
        opt = Optimizer(spec, seed=0)
    except ValueError as error:
        assert REMEDY.search(str(error))
        return
    for y in (0.0, 1.0, 0.5, 0.25, 2.0, 0.0, 1.0):
        x = opt.ask()
        opt.space.encode(x)
        opt.tell(x, y)
    opt.space.encode(opt.recommend())


# x


@pytest.mark.parametrize(
    ("x", "word"),
    [
        ([0.5, 2.0], "x[1] is 2.0"),
        ([-1e-9, 0.0], "x[0] is -1e-09"),
        (np.array([0.5, np.nextafter(1.0, 2.0)]), "x[1]"),
        ([NAN, 0.0], "x[0] is nan"),
        ([0.0, INF], "x[1] is inf"),
        ([HUGE, 0.0], "x[0] is 1000"),
        ([0.5], "x is [0.5]"),
        ([0.5, 0.5, 0.5], "x is [0.5, 0.5, 0.5]"),
        ([], "x is []"),
        (0.5, "x is 0.5"),
        ([[0.5, 0.5]], "x is [[0.5, 0.5]]"),
        (RAGGED, f"x is {RAGGED!r}"),
        ("ab", "x is 'ab'"),
        (b"ab", "x is b'ab'"),
        (None, "x is None"),
        ({"a": 0.5, "b": 0.5}, "x is {"),
        ({0.25, 0.5}, "x is {"),
        (["0.5", 0.5], "x[0] is '0.5'"),
        ([0.5, None], "x[1] is None"),
        ([0.5, 1j], "x[1] is 1j"),
        (np.array([1, 0], dtype="m8[s]"), "x[0] is"),
        (np.array(0.5), "x is array(0.5)"),
    ],
    ids=lambda v: str(v)[:30],
)
def test_what_is_not_a_point_of_a_box_is_refused(x, word):
    assert_refused_by(in_box, lambda opt: opt.tell(x, 1.0), word)
    assert_refused_by(in_box, lambda opt: opt.forget(x), word)
    assert_refused_by(in_box, lambda opt: opt.fail(x), word)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"r": 2}, "r is 2"),
        ({"r": NAN}, "r is nan"),
        ({"r": "a"}, "r is 'a'"),
        ({"r": [0.5]}, "r is [0.5]"),
        ({"r": HUGE}, "r is 1000"),
        ({"l": 0}, "l is 0"),
        ({"l": -1.0}, "l is -1.0"),
        ({"i": 2.5}, "i is 2.5"),
        ({"i": 9}, "i is 9"),
        ({"i": HUGE}, "i is 1000"),
        ({"i": None}, "i is None"),
        ({"c": "sigmoid"}, "c is 'sigmoid'"),
        ({"c": None}, "c is None"),
        ({"c": ["relu"]}, "c is ['relu']"),
        ({"c": np.array([])}, "c is array("),
        ({"c": np.array(["relu", "relu"])}, "c is array("),
        ({"c": pd.NA}, "c is <NA>"),
        ({"b": 1}, "b is 1"),
        ({"b": NAN}, "b is nan"),
        ({"zz": 1}, "zz"),
        ({1: 1}, "1"),
    ],
    ids=str,
)
def test_what_is_not_a_point_of_a_named_space_is_refused(change, word):
    x = {**POINT, **change}
    assert_refused_by(in_dict, lambda opt: opt.tell(x, 1.0), word)
    assert_refused_by(in_dict, lambda opt: opt.fail(x), word)


def test_missing_keys_are_named():
    for name in POINT:
        x = {key: value for key, value in POINT.items() if key != name}
        assert_refused_by(in_dict, lambda opt, x=x: opt.tell(x, 1.0), "x", repr(name))
    assert_refused_by(in_dict, lambda opt: opt.tell({}, 1.0), "x", *map(repr, POINT))


@pytest.mark.parametrize("x", [None, [0.5], "r", np.zeros(5), list(POINT.values()), 3.0, True], ids=repr)
def test_a_point_of_a_named_space_must_be_a_dict(x):
    assert_refused_by(in_dict, lambda opt: opt.tell(x, 1.0), "x is", repr(x), "dict")


@pytest.mark.parametrize(
    "x", [[0.5, 0.5], [0.0, 2.0], [0.0], [0.0, NAN], "ab", None, [0.0, "1"], [HUGE, 0.0]], ids=repr
)
def test_what_is_not_among_the_candidates_is_refused(x):
    assert_refused_by(in_array, lambda opt: opt.tell(x, 1.0), "x")


@pytest.mark.parametrize(
    "x",
    [
        {"n": 1, "c": "y"},
        {"n": 4, "c": "x"},
        {"n": "1", "c": "x"},
        {"n": 1},
        {"n": 1, "c": "x", "d": 0},
        [1, "x"],
        None,
    ],
    ids=repr,
)
def test_what_is_not_a_row_of_the_dataframe_is_refused(x):
    assert_refused_by(in_frame, lambda opt: opt.tell(x, 1.0))


@pytest.mark.parametrize(
    ("make", "x"),
    [(in_box, [0.125, 0.125]), (in_box, [0.5, 0.0]), (in_dict, POINT), (in_array, [0.0, 1.0])],
    ids=["never asked", "told", "told dict", "told row"],
)
def test_only_a_pending_point_can_be_forgotten_or_failed(make, x):
    assert_refused_by(make, lambda opt: opt.forget(x), "x is", repr(x), "pending")
    assert_refused_by(make, lambda opt: opt.fail(x), "x is", repr(x), "pending")


def test_a_point_can_be_forgotten_and_failed_only_once():
    opt = in_box()
    x = opt.pending[0].x
    opt.forget(x)
    assert_names(refusal(lambda: opt.forget(x)), "x is", repr(x))
    y = opt.ask()
    opt.fail(y)
    assert_names(refusal(lambda: opt.fail(y)), "x is", repr(y))


def test_there_is_nothing_to_recommend_before_the_first_value():
    def make():
        opt = Optimizer([(0, 1)], seed=0)
        opt.ask()
        return opt

    assert_refused_by(make, lambda opt: opt.recommend())


@pytest.mark.parametrize("n", [0, -1, 1.5, 2.0, "2", NAN, True, [2], np.array([2])], ids=repr)
def test_ask_takes_a_positive_whole_number(n):
    assert_refused_by(in_box, lambda opt: opt.ask(n), "n is", repr(n))


def test_asking_for_more_than_is_left_gives_what_is_left():
    opt = Optimizer(np.arange(3.0)[:, None], GPMI(), **PRIOR, repeats=False, seed=0)
    opt.tell([1.0], 1.0)
    assert sorted(float(x[0]) for x in opt.ask(5)) == [0.0, 2.0]
    before = picture(opt)
    for n in (None, 1, 5):
        with pytest.raises(gpmi.SpaceExhausted):
            opt.ask(n)
    assert picture(opt) == before


@pytest.mark.parametrize("repeats", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_a_finite_space_asked_up_before_any_value_is_exhausted_or_repeats(repeats, fails):
    opt = Optimizer(np.arange(3.0)[:, None], repeats=repeats, seed=0)
    for _ in range(3):
        x = opt.ask()
        if fails:
            opt.fail(x)
    if repeats and not fails:
        opt.space.encode(opt.ask())
    else:
        with pytest.raises(gpmi.SpaceExhausted):
            opt.ask()


def trial(**changes):
    return Trial(**{"number": 0, "x": [0.5, 0.5], "y": 1.0, "status": "told", "origin": "user", "order": 0, **changes})


@pytest.mark.parametrize(
    "bad",
    [
        1,
        None,
        trial(x=[2.0, 0.5]),
        trial(x=None),
        trial(y=NAN),
        trial(y=None),
        trial(y="1"),
        trial(status="done"),
        trial(origin="nowhere"),
        trial(order="first"),
    ],
    ids=repr,
)
def test_a_history_with_a_bad_trial_is_refused_as_a_whole(bad):
    assert_refused_by(in_box, lambda opt: opt.replay([trial(), bad]))


# Spaces


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ([], ["space"]),
        ((), ["space"]),
        ({}, ["space"]),
        ([(1, 1)], ["bounds[0]", "lo = 1", "hi = 1"]),
        ([(0, 1), (2, 1)], ["bounds[1]", "lo = 2", "hi = 1"]),
        ([(NAN, 1)], ["bounds[0]", "lo", "nan"]),
        ([(0, INF)], ["bounds[0]", "hi", "inf"]),
        ([(-INF, 0)], ["bounds[0]", "lo", "-inf"]),
        ([(0, HUGE)], ["bounds[0]", "hi", "1000"]),
        ([(-1e308, 1e308)], ["bounds[0]", "1e+308"]),
        ([("0", 1)], ["bounds[0]", "lo", "'0'"]),
        ([(False, True)], ["bounds[0]", "lo", "False"]),
        ([(None, 1)], ["bounds[0]", "lo", "None"]),
        ([(0, 1j)], ["bounds[0]", "hi", "1j"]),
        ([(0, 1, 2)], ["bounds[0]", "(0, 1, 2)"]),
        ([(0,)], ["bounds[0]", "(0,)"]),
        ([0, 1], ["bounds[0]", "0"]),
        (["ab"], ["bounds[0]", "'ab'"]),
        ([b"ab"], ["bounds[0]", "b'ab'"]),
        ([np.array(3.0)], ["bounds[0]", "array(3.)"]),
        ([Int(1, 3)], ["bounds[0]", "Int"]),
        (None, ["space is None"]),
        ("ab", ["space is 'ab'"]),
        (b"ab", ["bounds[0]"]),
        (3, ["space is 3"]),
        (range(3), ["bounds[0]"]),
        ({(0, 1)}, ["space is {"]),
        (pd.Series([1.0, 2.0]), ["space is"]),
        (Real, ["space is", "Real"]),
        ({1: (0, 1)}, ["name 1"]),
        ({"a": (1, 0)}, ["'a'", "lo = 1", "hi = 0"]),
        ({"a": (0, 1, 2)}, ["'a'", "(0, 1, 2)"]),
        ({"a": ("relu", "tanh")}, ["'a'", "'relu'", "list"]),
        ({"a": []}, ["'a'", "empty"]),
        ({"a": ["x", "y", "x"]}, ["'a'", "'x'"]),
        ({"a": [1, 1.0]}, ["'a'", "1.0"]),
        ({"a": [NAN, 1, float("nan")]}, ["'a'", "nan", "twice"]),
        ({"a": "relu"}, ["'a'", "'relu'"]),
        ({"a": 3}, ["'a'", "3"]),
        ({"a": Real}, ["'a'", "Real"]),
        ({"a": None}, ["'a'", "None"]),
    ],
    ids=lambda v: str(v)[:40],
)
def test_what_is_no_space_is_refused(spec, words):
    assert_names(refusal(lambda: Space.of(spec)), *words)
    assert_names(refusal(lambda: Optimizer(spec)), *words)
    assert_names(refusal(lambda: maximize(lambda x: 0.0, spec, budget=3)), *words)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(3), ["candidates", "(3,)"]),
        (np.array(3.0), ["candidates", "()"]),
        (np.zeros((2, 2, 2)), ["candidates", "(2, 2, 2)"]),
        (np.empty((0, 2)), ["candidates", "(0, 2)"]),
        (np.empty((2, 0)), ["candidates", "(2, 0)"]),
        (np.array([[0.0, 1.0], [NAN, 1.0]]), ["candidates", "nan", "row 1"]),
        (np.array([[0.0, INF]]), ["candidates", "inf", "row 0"]),
        (np.array([["a", "b"]]), ["candidates", "dtype"]),
        (np.array([[True, False]]), ["candidates", "dtype bool"]),
        (np.array([[1.0, None]]), ["candidates", "dtype object"]),
        (np.array([[1j]]), ["candidates", "complex"]),
        (np.array([[1, 2]], dtype="m8[s]"), ["candidates", "timedelta"]),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]]), ["candidates", "mask"]),
        (pd.DataFrame(), ["candidates", "(0, 0)"]),
        (pd.DataFrame({"a": []}), ["candidates", "(0, 1)"]),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ["'a'", "twice"]),
        (pd.DataFrame([[1, 2]]), ["name 0"]),
        (pd.DataFrame({"a": [1.0, NAN]}), ["column 'a'", "nan", "row 1"]),
        (pd.DataFrame({"a": [1.0, -INF]}), ["column 'a'", "inf", "row 1"]),
        (pd.DataFrame({"a": ["x", NAN]}), ["column 'a'", "nan"]),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), ["column 'a'", "NA"]),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01", None])}), ["column 'a'", "NaT"]),
        (pd.DataFrame({"a": [HUGE, 1]}), ["column 'a'"]),
        (pd.DataFrame({"a": [[1], {2: 3}]}), ["column 'a'", "[1]"]),
    ],
    ids=lambda v: " ".join(str(v).split())[:40],
)
def test_what_is_no_set_of_candidates_is_refused(array, words):
    assert_names(refusal(lambda: Space.of(array)), *words)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Real(0.0, 1.0, log=True), ["log", "lo = 0.0"]),
        (lambda: Real(-1, 1, log=True), ["log", "lo = -1"]),
        (lambda: Int(0, 3, log=True), ["log", "lo = 0"]),
        (lambda: Real(1, 2, log="no"), ["log of Real is 'no'"]),
        (lambda: Int(1, 2, log=np.array([True, False])), ["log of Int is array("]),
        (lambda: Real(2, 1), ["lo = 2", "hi = 1"]),
        (lambda: Real("1", 2), ["lo", "'1'"]),
        (lambda: Real(0, HUGE), ["hi", "1000"]),
        (lambda: Int(1, 1), ["lo = 1", "hi = 1"]),
        (lambda: Int(0.5, 2), ["lo", "0.5"]),
        (lambda: Int(0, 2.0), ["hi", "2.0"]),
        (lambda: Int(0, INF), ["hi", "inf"]),
        (lambda: Int(0, HUGE), ["1000"]),
        (lambda: Int(HUGE, HUGE + 3), ["1000"]),
        (lambda: Int(0, 10**16), ["10000000000000000"]),
        (lambda: Int(1, 9, step=0), ["step of Int is 0"]),
        (lambda: Int(1, 9, step=9), ["step of Int is 9"]),
        (lambda: Choice((1, 2), ordered=1), ["ordered of Choice is 1"]),
        (lambda: Real(0, 1, when="k"), ["when of Real is 'k'"]),
        (lambda: Space.of({"k": ("rbf", "poly")}), ["'k' is ('rbf', 'poly')", "give a list for options"]),
        (lambda: Space.of({"k": (True, False)}), ["'k' is (True, False)", "give a list for options"]),
        (lambda: Space.of({"k": (None, 3)}), ["'k' is (None, 3)", "give a list for options"]),
        (lambda: Choice("relu"), ["options", "'relu'"]),
        (lambda: Choice(b"relu"), ["options", "b'relu'"]),
        (lambda: Choice(3), ["options", "3"]),
        (lambda: Choice(()), ["options", "empty"]),
        (lambda: Choice((1, 2, 1)), ["options", "1"]),
        (lambda: Choice((NAN, float("nan"))), ["options", "nan"]),
    ],
    ids=lambda v: str(v) if isinstance(v, list) else "",
)
def test_what_is_no_parameter_is_refused(make, words):
    assert_names(refusal(make), *words)


# The arguments of an optimizer and of a run


BAD_ARGUMENTS = [
    *[("kernel", kernels.RBF([1.0, 2.0, 3.0]), ["kernel", "3", "2"])],
    *[("kernel", kernels.Linear() + kernels.Matern([1.0]), ["kernel", "1", "2"])],
    *[("kernel", kernels.RBF, ["kernel", "RBF", "instance"])],
    *[("kernel", v, ["kernel is", repr(v)]) for v in ("rbf", 1.0, [])],
    *[("policy", GPMI, ["policy", "GPMI()"])],
    *[("policy", v, ["policy is", repr(v)]) for v in ("gpmi", 1.0, len)],
    *[
        ("noise_var", v, ["noise_var is", repr(v)])
        for v in (-1.0, -1e-300, NAN, INF, "1", True, 1j, [1.0], RAGGED, HUGE)
    ],
    *[("noise_var", np.array([1.0]), ["noise_var is", "array([1.])"])],
    *[("budget", v, ["budget is", repr(v)]) for v in (0, -1, 1.5, 3.0, "3", NAN, True, [3], np.timedelta64(3, "s"))],
    *[("n_init", v, ["n_init is", repr(v)]) for v in (-1, 1.5, "3", True, [], np.timedelta64("NaT", "s"))],
    *[("seed", v, ["seed is", repr(v)]) for v in (-1, 0.5, "0", True, [1, 2])],
    *[
        (name, 10**digits, [f"{name} is", "1000" if digits < 4000 else "int", "at most"])
        for name in ("budget", "n_init", "seed")
        for digits in (101, 400, 5000)
    ],
    *[("fit", v, ["fit is", repr(v), "mcmc"]) for v in (None, "MAP", 1, ["map"], True)],
    *[("repeats", v, ["repeats is", repr(v)]) for v in (1, 0, None, "no", [])],
]


@pytest.mark.parametrize(("name", "value", "words"), BAD_ARGUMENTS, ids=label)
def test_a_bad_argument_is_refused_before_anything_is_evaluated(name, value, words):
    calls = []
    box = [(0, 1), (0, 1)]
    assert_names(refusal(lambda: Optimizer(box, **{name: value})), *words)
    for run in (maximize, minimize):
        arguments = {"budget": 3, name: value}
        assert_names(refusal(lambda run=run, a=arguments: run(lambda x: calls.append(x) or 0.0, box, **a)), *words)
    assert calls == []


@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_a_whole_number_that_is_no_count_is_refused(digits):
    large = 10**digits
    opt = Optimizer(np.arange(4.0)[:, None], repeats=False, seed=0)
    opt.tell(opt.ask(), 1.0)
    for name, call in {
        "n": lambda: opt.ask(large),
        "evaluations": lambda: gpmi.stopping.Budget(large),
        "evaluations ": lambda: gpmi.stopping.Stagnation(large),
        "budget": lambda: maximize(len, [(0, 1)], budget=large, stop=gpmi.stopping.Target(1.0)),
        "t": lambda: opt.ledger.regret(large),
    }.items():
        assert_names(refusal(call), f"{name.strip()} is", "at most 9223372036854775807")
    assert len(opt.trials) == 1


def test_the_largest_counts_and_seeds_work():
    opt = Optimizer([(0, 1)], budget=2**63 - 1, n_init=2**63 - 1, seed=10**100)
    for policy in (None, GPMI()):
        opt = Optimizer([(0, 1)], policy, budget=2**63 - 1, seed=10**100)
        for t in range(6):
            opt.tell(opt.ask(), float(t))
        assert str(10**100) in repr(opt)


@pytest.mark.parametrize(
    "goal", ["maximum", "MAX", "", None, 1, ["max"], np.array(["max"]), np.array(["max", "min"])], ids=repr
)
def test_the_goal_is_max_or_min(goal):
    assert_names(refusal(lambda: Optimizer([(0, 1)], goal=goal)), "goal is", repr(goal))


@pytest.mark.parametrize("run", [maximize, minimize])
@pytest.mark.parametrize("f", [None, 3, "f", [len]], ids=repr)
def test_f_must_be_callable(run, f):
    assert_names(refusal(lambda: run(f, [(0, 1)], budget=3)), "f is", repr(f))


@pytest.mark.parametrize("run", [maximize, minimize])
def test_a_run_needs_a_budget(run):
    assert_names(refusal(lambda: run(lambda x: 0.0, [(0, 1)], budget=None)), "budget is None")
    assert "budget" in refusal(lambda: run(lambda x: 0.0, [(0, 1)]))


@pytest.mark.parametrize("run", [maximize, minimize])
def test_an_unknown_argument_is_refused(run):
    assert "n_iter" in refusal(lambda: run(lambda x: 0.0, [(0, 1)], budget=3, n_iter=4))


@pytest.mark.parametrize(
    "value", [0, -1.0, NAN, INF, "1", None, RAGGED, 1j, [1.0, "a"], np.ones((2, 2)), []], ids=label
)
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("lengthscale", kernels.RBF),
        ("lengthscale", kernels.Matern),
        ("variance", lambda v: kernels.RBF(variance=v)),
        ("variance", kernels.Linear),
        ("nu", lambda v: kernels.Matern(nu=v)),
        ("delta", GPMI),
        ("delta", GPUCB),
        ("delta", VarianceBonus),
        ("scale", lambda v: GPUCB(scale=v)),
        ("c", Reinvest),
        ("incumbent", EI),
        ("incumbent", LogEI),
    ],
    ids=label,
)
def test_a_bad_parameter_of_a_kernel_or_policy_is_refused(name, make, value):
    if value is None and name in ("lengthscale", "variance"):  # not bad: it is learned, or refused when evaluated
        assert_names(refusal(lambda: make(value)(np.zeros((1, 2)), np.zeros((1, 2)))), name, "None")
        return
    assert_names(refusal(lambda: make(value)), name)


@pytest.mark.parametrize("value", [-1.0, NAN, INF, "1", None, RAGGED, 1j, [1.0]], ids=label)
def test_a_bad_noise_of_a_posterior_is_refused(value):
    assert_names(refusal(lambda: Posterior.prior(kernels.RBF(), value)), "noise_var is", repr(value))


@pytest.mark.parametrize("other", [1, None, "rbf", kernels.RBF, kernels.RBF([1.0, 2.0, 3.0])], ids=label)
def test_a_kernel_combines_only_with_a_kernel_of_its_dimension(other):
    for combine in (lambda: kernels.RBF([1.0, 1.0]) + other, lambda: kernels.RBF([1.0, 1.0]) * other):
        assert refusal(combine)


# Anything at all: either it is accepted and makes sense, or it is refused and nothing changes

atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(HUGE),
    st.floats(),
    st.floats(0, 1),
    st.complex_numbers(),
    st.fractions(),
    st.decimals(allow_nan=False),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.datetimes(),
    st.timedeltas(),
    st.sampled_from([object(), int, len, ..., pd.NA, pd.NaT, np.nan, Real(0, 1), Int(1, 3), Choice(("a", "b"))]),
    hnp.scalar_dtypes().flatmap(hnp.from_dtype),
    hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)),
    hnp.arrays(float, (2,), elements=st.floats(-2, 2)),
)
keys = st.one_of(st.text(max_size=2), st.integers(), st.none(), st.sampled_from(list(POINT)))
junk = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(keys, inner, max_size=3),
        st.frozensets(st.integers(), max_size=2),
    ),
    max_leaves=6,
)
thousands = settings(
    max_examples=10 * settings.default.max_examples, deadline=None, suppress_health_check=list(HealthCheck)
)
hundreds = settings(thousands, max_examples=5 * settings.default.max_examples)


def attempt(call):
    """What the call returns and None, or None and the message of its refusal. No other exception is excused."""
    try:
        return call(), None
    except (ValueError, TypeError) as error:
        assert type(error) in REFUSED
        assert str(error)
        return None, str(error)


class Subject:
    """An optimizer that is kept for as long as it refuses, and made anew when it has accepted something."""

    def __init__(self, make, looks_ahead=False):
        self.make, self.looks_ahead = make, looks_ahead
        self.opt = self.before = self.next = None

    def __call__(self, call):
        if self.opt is None:
            self.opt = self.make()
            self.next = self.look_ahead()
            self.before = picture(self.opt)
        opt = self.opt
        found, message = attempt(lambda: call(opt))
        if message is None:
            self.opt = None
        else:
            assert picture(opt) == self.before
            assert same(self.look_ahead(), self.next)
        return found, message

    def look_ahead(self):
        if not self.looks_ahead:
            return None
        x = self.opt.ask()
        self.opt.forget(x)
        return x


ARRAY, BOX, DICT = Subject(in_array, looks_ahead=True), Subject(in_box), Subject(in_dict)


@thousands
@given(y=junk)
def test_any_value_is_one_finite_number_or_refused(y):
    told, message = ARRAY(lambda opt: opt.tell([1.0, 1.0], y))
    if message is None:
        assert type(told.y) is float
        assert math.isfinite(told.y)
        assert told.y == float(y)
    else:
        assert_names(message, "y is", repr(y)[:400])  # a longer one is cut short


@thousands
@given(x=junk)
def test_any_point_is_a_point_of_the_candidates_or_refused(x):
    told, message = ARRAY(lambda opt: opt.tell(x, 1.0))
    if message is None:
        assert any(np.array_equal(told.x, row) for row in CORNERS)
        assert np.array_equal(told.x, np.asarray(x, dtype=float)) or told.number == x  # by the number of its trial
    else:
        assert_names(message, "x")


@thousands
@given(x=junk)
def test_any_point_is_a_point_of_the_box_or_refused(x):
    told, message = BOX(lambda opt: opt.tell(x, 1.0))
    if message is None:
        assert told.x.shape == (2,)
        assert np.all((told.x >= [0, -1]) & (told.x <= [1, 1]))
    else:
        assert_names(message, "x")


@thousands
@given(changes=st.dictionaries(keys, junk, max_size=2), dropped=st.sets(st.sampled_from(list(POINT)), max_size=1))
def test_any_dict_is_a_point_of_the_named_space_or_refused(changes, dropped):
    x = {**{k: v for k, v in POINT.items() if k not in dropped}, **changes}
    told, message = DICT(lambda opt: opt.tell(x, 1.0))
    if message is None:
        assert list(told.x) == list(POINT)
        assert [type(v) for v in told.x.values()] == [type(v) for v in POINT.values()]
        assert told.x["c"] in ("relu", "tanh")
        for name in ("c", "b"):
            assert not isinstance(x[name], list | dict) and np.ndim(x[name]) == 0
    else:
        assert REMEDY.search(message)


@hundreds
@given(x=junk, method=st.sampled_from(["fail", "forget", "ask", "replay"]))
def test_any_other_call_is_refused_or_makes_sense(x, method):
    if method == "ask" and isinstance(x, int | np.integer) and x > 5:
        return
    found, message = ARRAY(lambda opt: getattr(opt, method)(x))
    if message is None and method == "ask":
        assert x is None or len(found) == x


@thousands
@given(spec=st.one_of(junk, st.lists(st.tuples(atoms, atoms), max_size=2), st.dictionaries(keys, junk, max_size=2)))
def test_anything_is_a_space_or_refused(spec):
    space, message = attempt(lambda: Space.of(spec))
    if message is None:
        assert space.dim >= 1
        assert np.all(np.isfinite(space.lo)) and np.all(np.isfinite(space.hi))
        assert np.all(space.lo <= space.hi)
        for u in (0.0, 0.5, 1.0):
            row = space.rows[0] if space.rows is not None else space.from_unit(np.full((1, space.unit_dim), u))[0]
            space.encode(space.decode(row))
    else:
        assert any(word in message for word in ("space", "bounds[", "parameter", "candidates", "column")), message
        assert REMEDY.search(message), message


@thousands
@given(lo=atoms, hi=atoms, log=st.one_of(st.booleans(), atoms), kind=st.sampled_from([Real, Int]))
def test_any_two_ends_are_an_interval_or_refused(lo, hi, log, kind):
    parameter, message = attempt(lambda: kind(lo, hi, log))
    if message is None:
        assert parameter.lo < parameter.hi
        assert isinstance(log, bool | np.bool_)
        assert parameter.encode("p", parameter.hi) == pytest.approx(parameter.ends[1])
    else:
        assert any(word in message for word in ("lo", "hi", "log", kind.__name__))
        assert REMEDY.search(message), message


@thousands
@given(values=st.lists(junk, max_size=4))
def test_any_list_is_a_choice_or_refused(values):
    choice, message = attempt(lambda: Choice(values))
    if message is None:
        assert len(choice.options) == len(values)
        for i, value in enumerate(values):
            assert choice.encode("c", value) == tuple(float(i == j) for j in range(len(values)))
    else:
        assert "option" in message
        assert REMEDY.search(message), message


@thousands
@given(
    name=st.sampled_from(["policy", "kernel", "noise_var", "n_init", "budget", "repeats", "seed", "goal"]), value=junk
)
def test_any_argument_of_an_optimizer_makes_sense_or_is_refused(name, value):
    opt, message = attempt(lambda: Optimizer(CORNERS, **{"seed": 0, name: value}))
    if message is None:
        assert value is None or isinstance(value, bool | np.bool_ | str | RealNumber | np.ndarray)
        assert opt.trials == ()
        assert opt.goal in ("max", "min")
        opt.tell(opt.ask(), 1.0)
    else:
        assert_names(message, name)
