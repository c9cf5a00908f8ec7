"""Spaces: what a user may write, what a point looks like, and how points and coordinates belong together."""

import math
import pickle
import time
import tracemalloc
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpmi import GPMI, Choice, Fidelity, Int, Optimizer, Real, Space, SpaceExhausted, kernels
from gpmi.space import Candidates, Constant, NumberRange, Options, Single, Steps, row_index

MIXED = {
    "lr": Real(1e-5, 1e-1, log=True),
    "layers": Int(1, 8),
    "width": Int(16, 1024, log=True),
    "act": ["relu", "tanh"],
    "drop": Choice((None, 0.1, True)),
    "x": (0.0, 1.0),
}
TABLE = pd.DataFrame(
    {
        "depth": np.array([1, 2, 3, 1], dtype=np.int32),
        "rate": np.array([0.5, 0.25, 0.125, 0.5], dtype=np.float32),
        "bias": [True, False, True, True],
        "act": ["relu", "tanh", "relu", "relu"],
    }
)

# What is drawn: parameters, spaces, and points of them


def ordered(numbers):
    return st.tuples(numbers, numbers).filter(lambda pair: abs(pair[0] - pair[1]) > 1e-200).map(sorted).map(tuple)


def int_bounds(least, most):
    return st.tuples(st.integers(least, most), st.integers(1, 60)).map(lambda pair: (pair[0], pair[0] + pair[1]))


options = st.lists(st.one_of(st.text(max_size=3), st.integers(), st.booleans(), st.none()), min_size=1, max_size=5)
distinct_options = options.map(lambda values: list({(type(v), v): v for v in values}.values()))
intervals = ordered(st.floats(-4e99, 4e99)).filter(lambda ends: ends[1] - ends[0] > 1e-99)
log_intervals = ordered(st.floats(1e-150, 1e150)).filter(lambda ends: ends[1] / ends[0] > 1.0 + 1e-9)
log_reals = log_intervals.map(lambda ends: Real(*ends, log=True))
discrete = st.one_of(
    int_bounds(-(10**9), 10**9).map(lambda ends: Int(*ends)),
    int_bounds(1, 10**9).map(lambda ends: Int(*ends, log=True)),
    distinct_options.map(lambda values: Choice(tuple(values))),
    distinct_options,
)
parameters = st.one_of(intervals, intervals.map(lambda ends: Real(*ends)), log_reals, discrete)


def named(parameter, most=5):
    return st.dictionaries(st.text(min_size=1, max_size=4), parameter, min_size=1, max_size=most)


def values_of(parameter):
    match parameter:
        case tuple() | Real():
            lo, hi = parameter if isinstance(parameter, tuple) else (parameter.lo, parameter.hi)
            return st.floats(lo, hi)
        case Int():
            return st.integers(parameter.lo, parameter.hi)
        case _:
            return st.sampled_from(parameter if isinstance(parameter, list) else parameter.options)


def points_of(spec):
    return st.fixed_dictionaries({name: values_of(parameter) for name, parameter in spec.items()})


def is_log_real(parameter):
    return isinstance(parameter, Real) and parameter.log


def assert_a_point_of(spec, point):
    """A dict with the keys of the space, in its order, of values inside and of plain Python types."""
    assert type(point) is dict
    assert list(point) == list(spec)
    for name, parameter in spec.items():
        value = point[name]
        match parameter:
            case tuple() | Real():
                lo, hi = parameter if isinstance(parameter, tuple) else (parameter.lo, parameter.hi)
                assert type(value) is float
                assert lo <= value <= hi
            case Int():
                assert type(value) is int
                assert parameter.lo <= value <= parameter.hi
            case _:
                assert any(value is option for option in getattr(parameter, "options", parameter))


# The front door


def test_a_list_of_pairs_is_a_box_and_its_points_are_arrays():
    space = Space.of([(-5, 10), (0, 15)])
    point = space.decode(np.array([1.5, 2.5]))
    assert isinstance(point, np.ndarray)
    assert point.shape == (2,)
    assert point.dtype == float
    np.testing.assert_array_equal(space.lo, [-5.0, 0.0])
    np.testing.assert_array_equal(space.hi, [10.0, 15.0])
    np.testing.assert_array_equal(space.encode(point), [1.5, 2.5])


@pytest.mark.parametrize("pair", [(0, 1), [0, 1], np.array([0.0, 1.0]), Real(0, 1), (np.int64(0), np.float32(1))])
def test_a_side_of_a_box_is_any_pair_of_numbers(pair):
    space = Space.of([pair])
    assert (space.lo, space.hi) == (0.0, 1.0)


def test_a_box_may_be_a_tuple_of_pairs():
    assert Space.of(((0, 1), (0, 1))).dim == 2


@pytest.mark.parametrize(
    "point", [[0.25, 1], (0.25, 1), np.array([0.25, 1.0]), np.array([0.25, 1.0], dtype=np.float32)]
)
def test_a_point_of_a_box_is_any_sequence_of_numbers(point):
    np.testing.assert_array_equal(Space.of([(0, 1), (0, 1)]).encode(point), [0.25, 1.0])


def test_a_dict_is_a_space_of_named_parameters_and_its_points_are_dicts():
    space = Space.of(MIXED)
    for u in np.linspace(0.0, 1.0, 7):
        assert_a_point_of(MIXED, space.decode(space.from_unit(np.full((1, len(MIXED)), u))[0]))


def test_a_tuple_stands_for_real_and_a_list_for_choice():
    short, long = Space.of({"x": (0, 1), "c": ["a", "b"]}), Space.of({"x": Real(0, 1), "c": Choice(("a", "b"))})
    point = {"x": 0.25, "c": "b"}
    np.testing.assert_array_equal(short.encode(point), long.encode(point))
    np.testing.assert_array_equal(short.encode(point), [0.25, 0.0, 1.0])


def test_a_list_of_two_numbers_in_a_dict_is_a_choice_between_them():
    space = Space.of({"k": [1, 10]})
    assert [space.decode(row) for row in space.rows] == [{"k": 1}, {"k": 10}]


@pytest.mark.parametrize("dtype", [float, np.float32, int, np.uint8])
def test_a_point_of_an_array_of_candidates_is_one_of_its_rows(dtype):
    array = np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype)
    space = Space.of(array)
    assert space.rows.shape == array.shape
    for row, expected in zip(space.rows, array, strict=True):
        point = space.decode(row)
        assert isinstance(point, np.ndarray)
        np.testing.assert_array_equal(point, expected)


@pytest.mark.parametrize("dtype", [float, np.float32, int, np.uint8])
def test_the_rows_of_the_users_own_array_are_points(dtype):
    array = np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype)
    space = Space.of(array)
    for number, row in enumerate(array):
        assert space.row_numbers(space.encode(row))[0] == number


def test_candidates_do_not_change_with_the_array_they_were_made_from():
    array = np.array([[1.0], [2.0]])
    space = Space.of(array)
    array[:] = 7.0
    np.testing.assert_array_equal(space.rows, [[1.0], [2.0]])


def test_a_point_of_a_dataframe_is_one_of_its_rows_as_a_dict_of_python_types():
    space = Space.of(TABLE)
    for number, row in enumerate(space.rows[:3]):
        point = space.decode(row)
        assert point == {name: TABLE[name].tolist()[number] for name in TABLE}
        assert {name: type(value) for name, value in point.items()} == {
            "depth": int,
            "rate": float,
            "bias": bool,
            "act": str,
        }


def test_the_rows_of_the_users_own_dataframe_are_points():
    space = Space.of(TABLE)
    for number, record in enumerate(TABLE.to_dict("records")[:3]):
        assert space.row_numbers(space.encode(record))[0] == number
    for number, (_, series) in enumerate(TABLE.iloc[:3].iterrows()):
        assert space.row_numbers(space.encode(dict(series)))[0] == number


def test_numbers_of_a_dataframe_are_one_coordinate_and_bools_and_strings_one_per_option():
    space = Space.of(TABLE)
    assert space.dim == 1 + 1 + 2 + 2
    assert space.groups == (0, 1, 2, 2, 3, 3)
    np.testing.assert_array_equal(space.rows[0], [1.0, 0.5, 1.0, 0.0, 1.0, 0.0])


def test_categorical_and_nullable_columns_give_python_types():
    frame = pd.DataFrame(
        {
            "c": pd.Categorical(["lo", "hi"]),
            "i": pd.array([3, 4], dtype="Int64"),
            "b": pd.array([True, False], dtype="boolean"),
        }
    )
    space = Space.of(frame)
    point = space.decode(space.rows[1])
    assert point == {"c": "hi", "i": 4, "b": False}
    assert [type(v) for v in point.values()] == [str, int, bool]


def test_a_column_may_mix_kinds_that_python_thinks_equal():
    frame = pd.DataFrame({"v": pd.Series([1, True, "1"], dtype=object)})
    space = Space.of(frame)
    found = [space.decode(row)["v"] for row in space.rows]
    assert [(type(v), v) for v in found] == [(int, 1), (bool, True), (str, "1")]


def test_a_space_stands_for_itself():
    space = Space.of([(0, 1)])
    assert Space.of(space) is space


@pytest.mark.parametrize(
    "spec",
    [[(-5, 10), (0, 15)], MIXED, np.arange(12.0).reshape(6, 2), TABLE],
    ids=["box", "dict", "array", "frame"],
)
def test_what_is_asked_in_any_space_can_be_told(spec):
    opt = Optimizer(spec, n_init=3, seed=1)
    for y in (0.0, 1.0, 0.5, 0.25):
        x = opt.ask()
        assert opt.tell(x, y).status == "told"
    assert opt.pending == ()
    assert len(opt.trials) == 4


# User points and coordinates


@given(st.data())
@settings(max_examples=3 * settings.default.max_examples, deadline=None)
def test_decoding_inverts_encoding(data):
    spec = data.draw(named(parameters))
    point = data.draw(points_of(spec))
    back = Space.of(spec).decode(Space.of(spec).encode(point))
    assert_a_point_of(spec, back)
    for name, parameter in spec.items():
        if is_log_real(parameter):  # exp(log(x)) is x up to rounding
            assert math.isclose(back[name], point[name], rel_tol=1e-12)
        else:
            assert back[name] == point[name]


@given(st.lists(intervals, min_size=1, max_size=4), st.data())
@settings(max_examples=settings.default.max_examples, deadline=None)
def test_decoding_inverts_encoding_in_a_box(bounds, data):
    point = np.array([data.draw(st.floats(lo, hi)) for lo, hi in bounds])
    space = Space.of(bounds)
    np.testing.assert_array_equal(space.decode(space.encode(point)), point)


@given(named(parameters), st.data())
@settings(max_examples=3 * settings.default.max_examples, deadline=None)
def test_a_decoded_point_encodes_to_itself_and_stays_inside(spec, data):
    space = Space.of(spec)
    row = space.from_unit(np.array([[data.draw(st.floats(0.0, 1.0)) for _ in spec]]))[0]
    assert np.all((space.lo <= row) & (row <= space.hi))
    point = space.decode(row)
    assert_a_point_of(spec, point)
    back = space.encode(point)
    assert np.all((space.lo <= back) & (back <= space.hi))
    log = np.array([is_log_real(list(spec.values())[g]) for g in space.groups])
    np.testing.assert_array_equal(back[~log], row[~log])
    np.testing.assert_allclose(back[log], row[log], rtol=1e-14, atol=1e-15)  # log(exp(u)) is u up to rounding


@given(log_reals)
@settings(max_examples=3 * settings.default.max_examples, deadline=None)
def test_both_ends_of_a_log_parameter_belong_to_it_exactly(parameter):
    space = Space.of({"p": parameter})
    assert space.decode(space.lo) == {"p": parameter.lo}
    assert space.decode(space.hi) == {"p": parameter.hi}
    np.testing.assert_array_equal(space.encode({"p": parameter.lo}), space.lo)
    np.testing.assert_array_equal(space.encode({"p": parameter.hi}), space.hi)


@pytest.mark.parametrize("parameter", [Real(1.0, 4.399607687078955e16, log=True), Int(1, 10**6, log=True)])
def test_the_last_digit_of_a_logarithm_does_not_depend_on_where_it_is_taken(parameter):
    space = Space.of({"p": parameter})
    for end, coordinates in ((parameter.lo, space.lo), (parameter.hi, space.hi)):
        assert space.encode({"p": end}).tobytes() == coordinates.tobytes() == np.array([math.log(end)]).tobytes()
    if isinstance(parameter, Int):
        rng = np.random.default_rng(0)
        for n in rng.integers(parameter.lo, parameter.hi, 1000).tolist():
            assert parameter.encode("p", n)[0] == parameter.levels[n - parameter.lo, 0]


@given(intervals)
@settings(max_examples=settings.default.max_examples, deadline=None)
def test_both_ends_of_an_interval_belong_to_it_exactly(ends):
    space = Space.of([ends])
    assert (float(space.decode(space.lo)[0]), float(space.decode(space.hi)[0])) == ends
    assert (float(space.encode([ends[0]])[0]), float(space.encode([ends[1]])[0])) == ends


def test_a_log_parameter_is_the_logarithm_of_its_value():
    space = Space.of({"lr": Real(1e-4, 1.0, log=True), "n": Int(1, 100, log=True)})
    np.testing.assert_allclose(space.encode({"lr": 1e-2, "n": 10}), [math.log(1e-2), math.log(10)])
    assert space.from_unit(np.array([[0.5, 0.5]]))[0, 0] == pytest.approx(math.log(1e-2))


@given(int_bounds(-(2**53) - 100, 2**53 + 100), st.booleans())
@settings(max_examples=2 * settings.default.max_examples, deadline=None)
def test_every_integer_of_an_accepted_range_survives(ends, log):
    try:
        space = Space.of({"n": Int(*ends, log=log)})
    except ValueError:
        return  # a range that floating point, or a logarithm, cannot tell apart may be refused
    numbers = [space.decode(space.encode({"n": n}))["n"] for n in range(ends[0], ends[1] + 1)]
    assert numbers == list(range(ends[0], ends[1] + 1))
    assert len(np.unique(space.rows)) == len(numbers)


def test_a_whole_number_just_outside_is_refused_although_floating_point_cannot_tell():
    opt = Optimizer({"n": Int(2**53 - 5, 2**53)}, seed=0)
    assert opt.tell({"n": 2**53}, 1.0).x == {"n": 2**53}
    for n in (2**53 + 1, np.int64(2**53 + 1), 2**60):
        with pytest.raises(ValueError, match=r"n is .*outside"):
            opt.space.encode({"n": n})
        with pytest.raises(ValueError, match=r"n is .*outside"):
            opt.tell({"n": n}, 2.0)
    assert len(opt.trials) == 1


@pytest.mark.parametrize("large", [[2**60, 2**60 + 1], [2**53 + 1, 2**53], [-(2**60), 0], [2**70, 1], [1.5, 2**54]])
def test_whole_numbers_that_floating_point_would_merge_are_refused_in_tables(large):
    tables = [pd.DataFrame({"n": large}), pd.DataFrame({"n": pd.Series(large, dtype=object)})]
    if max(map(abs, large)) < 2**63 and all(isinstance(n, int) for n in large):
        tables.append(np.array(large)[:, None])
    for table in tables[1 if 1.5 in large else 0 :]:  # pandas made floats of the others itself
        with pytest.raises(ValueError, match=r"above 2\*\*53"):
            Space.of(table)
    assert Space.of(pd.DataFrame({"n": [2**53, 2**53 - 1]})).decode(np.array([2.0**53])) == {"n": 2**53}


@pytest.mark.parametrize("value", [3, 3.0, np.int64(3), np.float32(3.0)])
def test_a_whole_number_of_any_kind_is_an_int(value):
    space = Space.of({"n": Int(1, 8)})
    point = space.decode(space.encode({"n": value}))
    assert point == {"n": 3}
    assert type(point["n"]) is int


@pytest.mark.parametrize("value", [True, np.True_])
def test_a_bool_of_any_kind_is_an_option(value):
    space = Space.of({"b": [False, True]})
    assert space.decode(space.encode({"b": value})) == {"b": True}


def test_true_and_one_are_different_options():
    space = Space.of({"v": [1, True, 0, False]})
    found = [space.decode(space.encode({"v": v}))["v"] for v in (1, True, 0, False)]
    assert [(type(v), v) for v in found] == [(int, 1), (bool, True), (int, 0), (bool, False)]


def test_an_option_is_handed_out_itself():
    chosen = [object(), len, (1, 2), "relu"]
    space = Space.of({"c": chosen})
    for option in chosen:
        assert space.decode(space.encode({"c": option}))["c"] is option


def test_options_may_be_arrays_of_different_shapes():
    space = Space.of({"c": [np.array([1, 2]), np.array([1, 2, 3])]})
    assert space.decode(space.encode({"c": np.array([1, 2, 3])}))["c"].shape == (3,)


def test_options_may_be_numbers_of_different_precision():
    space = Space.of({"c": [65520.0, np.float16(0.5), "none"]})  # the first is too large for the type of the second
    assert [space.decode(row)["c"] for row in space.rows] == [65520.0, 0.5, "none"]


def test_the_keys_of_a_point_may_come_in_any_order():
    space = Space.of({"a": (0, 1), "b": (0, 1)})
    np.testing.assert_array_equal(space.encode({"b": 0.25, "a": 0.75}), [0.75, 0.25])


# Finite spaces


@given(named(discrete, most=3))
@settings(max_examples=settings.default.max_examples, deadline=None)
def test_the_enumeration_of_a_discrete_space_is_complete_and_without_repetition(spec):
    space = Space.of(spec)
    levels = [
        list(range(p.lo, p.hi + 1)) if isinstance(p, Int) else list(getattr(p, "options", p)) for p in spec.values()
    ]
    size = math.prod(map(len, levels))
    assert space.extent == (size, 0)
    if space.rows is None:
        assert size > 20_000
        return
    assert space.rows.shape == (size, space.dim)
    assert len(np.unique(space.rows, axis=0)) == size
    if size <= 2_000:
        points = [tuple((type(v), v) for v in space.decode(row).values()) for row in space.rows]
        assert set(points) == {tuple((type(v), v) for v in combination) for combination in product(*levels)}


@given(named(discrete, most=2))
@settings(max_examples=50, deadline=None)
def test_every_row_of_a_discrete_space_has_its_own_number(spec):
    space = Space.of(spec)
    for number in range(0, len(space.rows), max(1, len(space.rows) // 20)):
        row = space.rows[number]
        assert list(space.row_numbers(row)) == [number]
        assert space.row_numbers(space.encode(space.decode(row)))[0] == number


def test_a_space_with_a_continuous_parameter_is_not_enumerated():
    space = Space.of({"x": (0, 1), "c": ["a", "b", "c"]})
    assert space.rows is None
    assert space.extent == (3, 1)


@given(st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=1, max_size=12))
@settings(max_examples=settings.default.max_examples, deadline=None)
def test_duplicate_rows_are_one_point_the_first_of_them(rows):
    for space in (Space.of(np.array(rows)), Space.of(pd.DataFrame(rows, columns=["a", "b"]))):
        for row, coordinates in zip(rows, space.rows, strict=True):
            assert space.row_numbers(coordinates)[0] == rows.index(row)
            point = space.decode(coordinates)
            assert (list(point.values()) if isinstance(point, dict) else point.tolist()) == row


@pytest.mark.parametrize(
    "spec",
    [np.array([[0.0], [1.0], [0.0], [2.0]]), TABLE, {"n": Int(1, 5, log=True), "c": ["a", "b"]}],
    ids=["array", "frame", "dict"],
)
def test_without_repeats_each_point_is_offered_once_whatever_the_duplicates(spec):
    opt = Optimizer(spec, GPMI(), kernel=kernels.RBF(1.0), noise_var=1e-2, repeats=False, seed=0)
    distinct = len(np.unique(opt.space.rows, axis=0))
    for _ in range(distinct):
        opt.tell(opt.ask(), 0.0)
    assert len(np.unique([opt.space.encode(t.x) for t in opt.trials], axis=0)) == distinct
    with pytest.raises(SpaceExhausted):
        opt.ask()


@pytest.mark.parametrize("n_init", [0, 3])
def test_minus_zero_is_zero(n_init):
    spec = np.array([[-0.0], [0.0], [1.0]])
    opt = Optimizer(spec, GPMI(), kernel=kernels.RBF(1.0), noise_var=1e-2, n_init=n_init, repeats=False, seed=0)
    for _ in range(2):
        opt.tell(opt.ask(), 0.0)
    assert sorted(abs(float(t.x[0])) for t in opt.trials) == [0.0, 1.0]
    with pytest.raises(SpaceExhausted):
        opt.ask()


def test_minus_zero_in_a_dataframe_is_zero():
    opt = Optimizer(pd.DataFrame({"a": [-0.0, 0.0, 1.0], "b": ["x", "x", "y"]}), repeats=False, seed=0)
    for _ in range(2):
        x = opt.ask()
        assert opt.tell({**x, "a": abs(x["a"])}, 0.0).origin == "design"
    with pytest.raises(SpaceExhausted):
        opt.ask()


# Large tables


def test_a_column_of_words_costs_what_its_coordinates_cost():
    words, values = [f"w{(7 * i) % 900}" for i in range(8000)], np.random.default_rng(0).uniform(size=8000)
    frame = pd.DataFrame({"word": words, "x": values, "flag": values > 0.5})
    tracemalloc.start()
    begin = time.process_time()
    space = Space.of(frame)
    seconds, (_, peak) = time.process_time() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 5.0 and peak < 100e6  # 0.15 s on a quiet machine, and 58 MB are the coordinates themselves
    assert space.rows.shape == (8000, 903) and not space.rows.flags.writeable
    assert np.all(space.rows[:, :900].sum(axis=1) == 1.0) and np.array_equal(space.rows[:, 900], values)
    for row in (0, 899, 900, 7999):
        assert space.row_numbers(space.encode(space.decode(space.rows[row]))).tolist() == [row]
        assert space.decode(space.rows[row]) == {"word": words[row], "x": values[row], "flag": bool(values[row] > 0.5)}


def test_a_column_of_too_many_words_is_refused_at_once():
    begin = time.process_time()
    with pytest.raises(ValueError, match=r"column 'name' .* has 50000 different words.* leave out the column"):
        Space.of(pd.DataFrame({"name": [f"n{i}" for i in range(50_000)], "x": np.arange(50_000.0)}))
    assert time.process_time() - begin < 5.0
    assert Space.of(pd.DataFrame({"name": [f"n{i}" for i in range(1000)]})).dim == 1000
    with pytest.raises(ValueError, match="has 1001 different words"):
        Space.of(pd.DataFrame({"name": [f"n{i}" for i in range(1001)]}))
    with pytest.raises(ValueError, match="options has 200000 options"):
        Space.of({"name": [str(i) for i in range(200_000)]})


@given(st.lists(st.tuples(*[st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 2.0])] * 3), min_size=1, max_size=30))
def test_the_index_finds_the_rows_that_comparing_them_all_finds(rows):
    table = np.array(rows)
    space = Space.of(table)
    for row in [*table, np.array([9.0, 9.0, 9.0])]:
        assert space.row_numbers(row).tolist() == np.flatnonzero(np.all(table == row, axis=1)).tolist()


def test_rows_with_equal_hashes_are_told_apart(monkeypatch):
    monkeypatch.setattr(row_index, "_factors", lambda d: np.zeros(d, dtype=np.uint64))
    rows = np.arange(12.0).reshape(6, 2)
    assert [row_index.RowIndex.of(rows).find(row).tolist() for row in rows] == [[i] for i in range(6)]


def test_telling_many_rows_does_not_read_the_table_each_time():
    def seconds(rows):
        table = np.hstack([np.zeros((rows, 1)), np.random.default_rng(0).uniform(size=(rows, 2))])
        space = Space.of(table)
        space.row_numbers(table[0])  # sorts the rows, once
        begin = time.process_time()
        for row in table[:1000]:
            space.encode(row)
        return time.process_time() - begin

    assert seconds(200_000) < 20.0 * seconds(1000)  # if rows are compared one by one, some 100 times as long


# The initial design


@given(named(parameters, most=4), st.floats(0, 1), st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_the_initial_design_lies_inside_the_space(spec, hi, seed):
    spec = {**spec, "one that is continuous": (-1.0, hi)}
    for point in Optimizer(spec, n_init=5, seed=seed).ask(5):
        assert_a_point_of(spec, point)


@pytest.mark.parametrize(
    "spec",
    [
        [(0, 1)],
        {"p": (1e-5, 1e-1)},
        {"p": Real(1e-5, 1e-1, log=True)},
        {"p": Real(1e-5, 1.0, log=True)},
        {"p": Real(0.5, 2.0, log=True)},
        {"p": Real(0.99, 1.01, log=True), "q": Real(1e-150, 1e150, log=True)},
        {"p": Int(1, 64, log=True)},
        np.arange(64.0)[:, None],
    ],
    ids=str,
)
def test_the_points_of_the_initial_design_differ(spec):
    opt = Optimizer(spec, n_init=24, seed=0)
    points = opt.ask(24)
    assert len(np.unique([opt.space.encode(p) for p in points], axis=0)) == 24
    assert {trial.origin for trial in opt.trials} == {"design"}


def test_the_initial_design_differs_from_what_was_told_before():
    opt = Optimizer({"p": Real(0.5, 2.0, log=True)}, n_init=8, seed=0)
    first = Optimizer({"p": Real(0.5, 2.0, log=True)}, n_init=8, seed=0).ask()
    opt.tell(first, 1.0)
    assert opt.ask() != first


# Points as the optimizer keeps them


@given(log_reals, st.data())
@settings(max_examples=settings.default.max_examples, deadline=None)
def test_a_told_point_is_kept_as_it_was_told(parameter, data):
    x = {"p": data.draw(values_of(parameter))}
    opt = Optimizer({"p": parameter}, seed=0)
    trial = opt.tell(x, 1.0)
    assert trial.x == x
    assert trial.x is not x
    assert opt.best.x == x


# exp(log(x)) is not x for this one, although x is exp of something.
STUBBORN = next(
    float(x) for x in np.exp(np.random.default_rng(1).uniform(0.6, 0.7, 500_000)) if np.exp(np.log(x)) not in (x,)
)


def test_a_pending_point_is_recognised_after_a_replay():
    spec = {"p": Real(1.5, 2.5, log=True)}
    first = Optimizer(spec, seed=0)
    first.tell({"p": STUBBORN}, 1.0)
    second = Optimizer(spec, seed=0).replay(first.trials)
    assert second.trials[0].x == {"p": STUBBORN}
    assert second.ask() == first.ask()


def test_points_may_be_told_in_the_plain_types_of_the_space():
    trial = Optimizer(MIXED, seed=0).tell(
        {"lr": np.float64(1e-3), "layers": np.int64(2), "width": 64.0, "act": "tanh", "drop": None, "x": 1}, 0.0
    )
    assert [type(v) for v in trial.x.values()] == [float, int, int, str, type(None), float]


@pytest.mark.parametrize("spec", [[(0, 1), (0, 1)], {"a": (0, 1)}, np.eye(3)], ids=["box", "dict", "array"])
def test_a_point_belongs_to_whom_it_was_given(spec):
    """Whatever is done to an asked or told point, the optimizer keeps its own."""
    opt = Optimizer(spec, seed=0)
    asked = opt.ask()
    kept = asked.copy()
    spoil(asked)
    assert same(opt.trials[0].x, kept)
    told = kept.copy()
    opt.tell(told, 1.0)
    spoil(told)
    recommended = opt.recommend()
    spoil(recommended)
    assert same(opt.trials[0].x, kept)
    assert opt.pending == ()


def spoil(point):
    if isinstance(point, dict):
        point.clear()
    else:
        point[:] = -7.0


def same(a, b):
    return a == b if isinstance(a, dict) else bool(np.array_equal(a, b))


# Grids


def geometric() -> pd.DataFrame:
    rates, widths = np.meshgrid([1e-4, 1e-3, 1e-2, 1.0], [16, 32, 64])
    frame = pd.DataFrame({"rate": rates.ravel(), "width": widths.ravel(), "kind": ["a", "b"] * 6})
    return frame.assign(weight=np.random.default_rng(0).random(12))


def test_an_evened_grid_has_ranks_and_the_same_points():
    plain = Space.of(geometric().drop(columns="weight"))
    even = plain.with_ranks()
    assert even.choices == plain.choices
    np.testing.assert_array_equal(even.rows[:, 0], np.tile([0.0, 1.0, 2.0, 3.0], 3))
    np.testing.assert_array_equal(even.rows[:, 1], np.repeat([0.0, 1.0, 2.0], 4))
    np.testing.assert_array_equal(even.rows[:, 2:], plain.rows[:, 2:])
    for plain_row, row in zip(plain.rows, even.rows, strict=True):
        assert even.decode(row) == plain.decode(plain_row)
        np.testing.assert_array_equal(even.encode(plain.decode(plain_row)), row)
    np.testing.assert_array_equal(even.with_ranks().rows, even.rows)


def test_a_number_between_those_of_a_grid_is_not_among_the_candidates():
    even = Space.of(geometric().drop(columns="weight")).with_ranks()
    for rate in (0.5, 2.0, 1e-5):
        with pytest.raises(ValueError, match="not among the candidates"):
            even.encode({"rate": rate, "width": 16, "kind": "a"})


def test_many_different_numbers_and_arrays_keep_their_coordinates():
    frame = pd.concat([geometric().assign(weight=np.random.default_rng(i).random(12)) for i in range(2)])
    even = Space.of(frame).with_ranks()
    np.testing.assert_array_equal(even.rows[:, -1], frame["weight"])  # 24 numbers are no grid
    array = geometric()[["rate", "width"]].to_numpy()
    np.testing.assert_array_equal(Space.of(array).with_ranks().rows, array)
    box = Space.of([(0.0, 1.0)])
    assert box.with_ranks() is box


def test_a_grid_is_evened_to_find_with_the_default_kernel_only():
    frame = geometric()
    assert Optimizer(frame).space.rows[3, 0] == 3.0
    for options in ({"aim": "earn"}, {"kernel": kernels.RBF(0.3)}):
        assert Optimizer(frame, **options).space.rows[3, 0] == 1.0


@pytest.mark.parametrize("pair", [[0, 2], [0.5, 1.5], [np.float64(3.0), 1]], ids=str)
def test_a_list_of_two_numbers_is_a_choice_and_says_so(pair: list[float]) -> None:
    """An interval may have been meant."""
    opt = Optimizer({"a": pair, "b": (0.0, 1.0)}, seed=0, constraints=["b <= 0.5"])
    (event,) = opt.events
    assert event.kind == "two options"
    lo, hi = sorted(pair)
    assert event.message == (
        f"'a' = [{lo}, {hi}] means the two options {lo} and {hi}; write ({lo}, {hi}) for an interval, "
        f"or Choice([{lo}, {hi}]) to make this explicit"
    )
    assert f"two options: {event.message[:40]}" in str(opt)


@pytest.mark.parametrize(
    "other", [(0, 2), Real(0, 2), Choice([0, 2]), [0, 1, 2], ["a", "b"], [True, False], [0, None], [1], range(2), 3]
)
def test_what_is_no_list_of_two_numbers_leaves_no_word(other: object) -> None:
    assert Optimizer({"a": other, "b": (0.0, 1.0)}, seed=0).events == ()


def test_equal_rows_leave_an_event_and_stay_one_point() -> None:
    frame = pd.DataFrame({"s": list("aabba"), "x": [1, 1, 3, 4, 1]}, index=list("VWXYZ"))
    opt = Optimizer(frame, seed=0)
    (event,) = opt.events
    assert event.kind == "duplicate candidates" and event.message.startswith("2 of 5 rows equal an earlier row")
    assert opt.tell(frame.loc["Z"], 1.0).label == "V"
    array = Optimizer(frame[["x"]].to_numpy(dtype=float), seed=0)
    assert [event.kind for event in array.events] == ["duplicate candidates"]
    assert Optimizer(frame.drop_duplicates(), seed=0).events == ()


@given(st.lists(st.tuples(st.sampled_from([0.0, -0.0, 1.0]), st.sampled_from([0.0, 2.0])), min_size=1, max_size=12))
def test_the_rows_that_repeat_another_are_counted(rows: list[tuple[float, float]]) -> None:
    assert row_index.RowIndex.of(np.array(rows)).count_repeated() == len(rows) - len(set(rows))


def test_a_unit_is_for_people_and_changes_nothing() -> None:
    warm = Real(20.0, 90.0, unit="°C")
    assert warm == Real(20.0, 90.0) and hash(warm) == hash(Real(20.0, 90.0))
    assert repr(warm) == "Real(lo=20.0, hi=90.0, log=False, unit='°C')"
    assert pickle.loads(pickle.dumps(warm)).unit == "°C" and Int(1, 3, unit="ml").unit == "ml"
    with pytest.raises(TypeError, match="unit of Real is 3"):
        Real(0.0, 1.0, unit=3)  # type: ignore[arg-type]


def test_candidates_by_columns_are_those_of_the_data_frame() -> None:
    columns = {
        "a": [1, 2, 3, 3],
        "b": [0.5, -0.0, 1e-3, 7.0],
        "c": ["x", "y", "x", "z"],
        "d": [True, False, True, True],
    }
    frame = Candidates.from_frame(pd.DataFrame(columns, index=list("pqrs")))
    plain = Candidates.from_columns(columns, list("pqrs"))
    assert plain.table == frame.table and [one.label for one in plain.table] == [one.label for one in frame.table]
    assert plain.encoded.tobytes() == frame.encoded.tobytes() and plain.choices == frame.choices
    with pytest.raises(ValueError, match="the same number in each"):
        Candidates.from_columns({"a": [1, 2], "b": [1]})
    with pytest.raises(ValueError, match="at least one"):
        Candidates.from_columns({"a": []})


# What every kind of parameter answers


@pytest.mark.parametrize(
    ("parameter", "domain"),
    [
        (Real(0, 2, step=0.5), NumberRange(0.0, 2.0, step=0.5)),
        (Real(1, 100, log=True), NumberRange(1.0, 100.0, log=True)),
        (Int(1, 9, step=2), NumberRange(1, 9, step=2, whole=True)),
        (Choice(["a", "b"]), Options(("a", "b"))),
        (Fidelity(["coarse", "fine"]), Options(("coarse", "fine"))),
        (Fidelity(2, 52), Steps(2, 52)),
        (Constant("a"), Single("a")),
    ],
)
def test_a_parameter_gives_its_values_as_plain_data_and_comes_back_from_json(parameter, domain):
    assert parameter.domain == domain
    assert type(parameter).from_json(parameter.to_json()) == parameter


@pytest.mark.parametrize("log", [False, True])
def test_a_grid_of_a_number_has_both_ends(log):
    for parameter in (Real(1, 7, log), Int(1, 7, log), Int(1, 7000, log)):
        grid = parameter.grid(5)
        assert len(grid) == 5
        assert np.array_equal(grid[[0, -1]], parameter.ends)


def test_the_nearest_value_to_a_number_is_one_of_the_parameter():
    assert Real(0, 2).nearest(0.3) == 0.3
    assert Real(0, 2, step=0.5).nearest(0.3) == 0.5
    assert Int(1, 9).nearest(2.6) == 3
    assert Choice([16, 32, 64]).nearest(30.0) == 32
