"""The best point of a space that cannot be enumerated, against grids, all levels and other optimisers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sample_objectives import PlainScore, box, chance_in, found_by, grid_in, hill, objective, score_of
from scipy.optimize import minimize

from gpmi import GPMI, Int, LogEI, Optimizer, Posterior, Real, Reinvest, Space, Thompson, kernels
from gpmi.policies import Policy
from gpmi.search import multistart
from gpmi.search.barriers import Barriers, are_among
from gpmi.search.coordinate_ascent import _some_levels, best_levels
from gpmi.search.drawn_point import drawn_point
from gpmi.search.multistart import best_point
from gpmi.search.objective import Objective, SearchResult
from gpmi.space import Parameters

SEEDS = st.integers(0, 1000)
SQUARE = box((0.0, 1.0), (0.0, 1.0))
NOTHING = np.empty((0, 2))


def scores(low: float, high: float) -> Any:
    return st.lists(st.floats(low, high), min_size=1, max_size=12).map(np.array)


# Starts and tolerance


@given(
    st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]) | st.floats(-3.0, 3.0), max_size=60), st.integers(1, 70)
)
def test_the_best_first_are_the_first_of_a_stable_sort(worth: list[float], count: int) -> None:
    values = np.array(worth, dtype=float)
    assert multistart._best_first(values, count).tolist() == np.argsort(-values, kind="stable")[:count].tolist()


@given(scores(-1e3, 1e3), scores(-1e3, 1e3))
def test_the_tolerance_is_a_millionth_of_the_range_of_the_screen(screened: np.ndarray, starts: np.ndarray) -> None:
    assume(np.ptp(screened) <= 50.0 * np.ptp(starts))
    assert multistart._tolerance(screened, starts) == pytest.approx(1e-6 * np.ptp(screened))


@given(scores(-1e3, 1e3), scores(-1e3, 1e3), st.floats(1e6, 1e299), st.integers(0, 3))
def test_scores_that_do_not_matter_do_not_raise_the_tolerance(
    screened: np.ndarray, starts: np.ndarray, depth: float, infinite: int
) -> None:
    """log EI is -1e299 where f is certain, and a score is -inf where nothing may be asked."""
    below = np.concatenate([screened, [-depth], np.full(infinite, -np.inf)])
    limit = 1e-3 * np.ptp(starts)  # of the starts' own range
    assert multistart._tolerance(below, starts) <= limit
    assert multistart._tolerance(below, np.append(starts, -np.inf)) <= limit
    nothing = np.full(3, -np.inf)
    assert multistart._tolerance(nothing, starts) == multistart._tolerance(screened, nothing) == 0.0


def test_a_climb_goes_on_to_the_top_although_the_score_is_minus_1e299_somewhere() -> None:
    top = np.array([0.31, 0.62])
    screen = SQUARE.from_unit(np.random.default_rng(0).random((30, 2)))
    score = np.append(hill(top)(screen), -1e299)
    screen = np.concatenate([screen, [[1.0, 1.0]]])
    result = best_point_of(hill(top), screen, score)
    np.testing.assert_allclose(result.row, top, atol=1e-4)


def best_point_of(
    score: Any, screen: np.ndarray, screened: np.ndarray | None = None, space: Any = SQUARE, **options: Any
) -> SearchResult:
    screened = score(screen) if screened is None else screened
    return best_point(score, space, screen, screened, screen[:0], np.random.default_rng(0), **options)


# Boxes


@pytest.mark.parametrize("policy", [GPMI(), LogEI(), Reinvest()], ids=repr)
@pytest.mark.parametrize("seed", range(8))
def test_on_a_box_no_grid_point_beats_it(policy: Policy, seed: int) -> None:
    space = Space.of([(-2.0, 3.0), (10.0, 400.0)])
    assert isinstance(space, Parameters)
    o = objective(space, policy, seed)
    row, score = found_by(o, space)
    grid = space.from_unit(np.stack(np.meshgrid(*[np.linspace(0, 1, 201)] * 2), axis=-1).reshape(-1, 2))
    values = o(grid)
    assert np.all(row >= space.lo) and np.all(row <= space.hi)
    assert score >= values.max() - 1e-3 * (values.max() - np.median(values))


def negative(score: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
    """What scipy minimises, at a single point."""
    return -float(score[0]), -gradient[0]


@pytest.mark.slow
def test_in_six_dimensions_it_is_as_good_as_a_hundred_restarts_of_scipy() -> None:
    space = Space.of([(0.0, 1.0)] * 6)
    assert isinstance(space, Parameters)
    wins = 0
    for seed in range(5):
        o = objective(space, GPMI(), seed, n=60)
        _, score = found_by(o, space)
        best = -np.inf
        for start in np.random.default_rng(seed).random((100, 6)):
            run = minimize(
                lambda u: negative(*o.with_gradient(u[None])),  # noqa: B023
                start,
                jac=True,
                bounds=[(0, 1)] * 6,
            )
            best = max(best, -run.fun)
        assert score >= best - 0.1 * abs(best)
        wins += score >= best - 1e-4 * abs(best)
    assert wins >= 3


def test_with_many_observations_the_climb_ends_as_high() -> None:
    """Gradients beside a point are then made from its own; 300 observations, against the other way."""
    space = Space.of([(0.0, 1.0)] * 4)
    assert isinstance(space, Parameters)
    for seed in range(3):
        o = objective(space, Reinvest(), seed, n=300)
        _, score = found_by(o, space)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(multistart, "GROUPED", 1000)
            _, other = found_by(o, space)
        assert score == pytest.approx(other, abs=1e-5 * abs(other))


def test_no_point_that_was_looked_at_is_better() -> None:
    """Good points and their neighbours count as well as the screen."""
    screen = np.random.default_rng(0).random((20, 2))
    spike = np.array([0.77, 0.12])
    score: Any = PlainScore(
        lambda z: np.where(np.all(z == spike, axis=1), 5.0, -z.sum(axis=1)), lambda z: -np.ones_like(z)
    )
    rng = np.random.default_rng(0)
    assert best_point(score, SQUARE, screen, score(screen), spike[None], rng).score == 5.0
    assert best_point(score, SQUARE, screen, score(screen), NOTHING, rng).score == 0.0
    screen[7] = spike
    assert best_point(score, SQUARE, screen, score(screen), NOTHING, rng).score == 5.0


# Points that may not be chosen


def test_a_point_that_was_visited_is_not_chosen_again_and_one_beside_it_is() -> None:
    top, screen = np.array([0.3, 0.6]), np.random.default_rng(0).random((40, 2))
    first = best_point_of(hill(top), screen)
    second = best_point_of(hill(top), screen, visited=first.row[None])
    assert not np.array_equal(first.row, second.row) and second.score < first.score
    assert second.score >= hill(top)(screen).max() - 1e-12 and second.events == ()


@given(SEEDS, st.integers(0, 12))
def test_on_whole_numbers_the_best_that_was_not_visited_is_chosen(seed: int, count: int) -> None:
    """The screen has all of them, so the search is exact."""
    space: Any = Space.of({"n": Int(0, 3), "m": Int(0, 2)})
    table, rng = (
        np.random.default_rng(seed).permutation(12.0 * np.ones(12) + np.arange(12)),
        np.random.default_rng(seed),
    )
    score = PlainScore(lambda z: table[(3 * z[:, 0] + z[:, 1]).astype(int)], np.zeros_like)
    gone = rng.choice(12, count, replace=False)
    visited = space.rows[gone] if count else None
    result = best_point_of(score, space.rows, space=space, visited=visited)
    left = [i for i in range(12) if i not in gone]
    assert result.score == table[left or list(range(12))].max()
    assert [event.kind for event in result.events] == ([] if left else ["repeat"])
    if not left:
        assert result.events[0].message.endswith("had been asked before")


def test_nothing_is_chosen_in_a_box_around_a_rejected_point() -> None:
    top, screen = np.array([0.3, 0.6]), np.random.default_rng(0).random((200, 2))
    width = np.array([[0.1, 0.2]])
    barriers = Barriers(top[None], width, width / 10.0)
    result = best_point_of(hill(top), screen, barred=barriers)
    assert not barriers.holds(result.row[None])[0] and result.events == ()
    allowed = screen[~barriers.holds(screen)]
    assert result.score >= hill(top)(allowed).max()


def test_where_all_is_barred_only_the_cores_are_avoided() -> None:
    top, screen = np.array([0.3, 0.6]), np.random.default_rng(0).random((50, 2))
    wide, narrow = np.full((1, 2), 2.0), np.full((1, 2), 0.2)
    result = best_point_of(hill(top), screen, barred=Barriers(top[None], wide, narrow))
    assert np.abs(result.row - top).max() > 0.2 and result.events == ()
    result = best_point_of(hill(top), screen, barred=Barriers(top[None], wide, wide))
    assert [event.message for event in result.events] == [
        "all 56 points that were looked at had been asked before or rejected"
    ]
    np.testing.assert_allclose(result.row, top, atol=1e-4)


def test_unsafe_points_are_avoided_unless_all_are_unsafe() -> None:
    top, screen = np.array([0.3, 0.6]), np.random.default_rng(0).random((50, 2))
    barriers = Barriers(NOTHING, NOTHING, NOTHING, lambda z: z[:, 0] < 0.5)
    assert best_point_of(hill(top), screen, barred=barriers).row[0] >= 0.5


def test_where_all_is_unsafe_the_search_still_begins_at_the_best_points() -> None:
    """A narrow peak at the end of a long screen."""
    narrow, broad = np.array([0.9, 0.9]), np.array([0.2, 0.2])

    def is_near(z: np.ndarray) -> np.ndarray:
        return np.abs(z - narrow).max(axis=1) < 0.05

    score = PlainScore(
        lambda z: np.where(is_near(z), 9.0 + hill(narrow)(z), hill(broad)(z)),
        lambda z: np.where(is_near(z)[:, None], hill(narrow).gradient(z), hill(broad).gradient(z)),
    )
    screen = np.concatenate([np.random.default_rng(0).uniform(0.0, 0.8, (300, 2)), narrow[None] + 0.03])
    unsafe = Barriers(NOTHING, NOTHING, NOTHING, lambda z: np.ones(len(z), dtype=bool))
    np.testing.assert_allclose(best_point_of(score, screen, barred=unsafe).row, narrow, atol=1e-4)


# Discrete parameters


@pytest.mark.parametrize("seed", range(4))
def test_mixed_spaces_are_searched_exactly_in_the_discrete_parameters(seed: int) -> None:
    """Against every setting of integer and choice with a fine grid of the real one."""
    space = Space.of({"r": Real(1e-3, 1.0, log=True), "i": Int(1, 9), "c": ["a", "b", "c"]})
    assert isinstance(space, Parameters)
    o = objective(space, GPMI(), seed, n=20)
    row, score = found_by(o, space)
    u = np.linspace(0, 1, 301)
    settings = np.array([(a, (i + 0.5) / 9, (c + 0.5) / 3) for a in u for i in range(9) for c in range(3)])
    values = o(space.from_unit(settings))
    assert row[1] == round(row[1]) and sorted(row[2:]) == [0.0, 0.0, 1.0]
    assert score >= values.max() - 2e-3 * (values.max() - np.median(values))


def test_integers_are_not_rounded_from_a_continuous_optimum() -> None:
    """A continuous search would climb the narrow peak between 10 and 11 and round; the best integer is far from it."""

    def f(p: dict[str, float]) -> float:
        return float(2 * np.exp(-((p["i"] - 10.5) ** 2) / 0.02) + np.exp(-((p["i"] - 30) ** 2) / 20) - p["r"] ** 2)

    opt = Optimizer({"i": Int(0, 40), "r": (-1.0, 1.0)}, seed=0, budget=40)
    for _ in range(40):
        x = opt.ask()
        opt.tell(x, f(x))
    assert opt.best is not None and opt.best.x["i"] == 30
    assert opt.recommend()["i"] == 30


def test_many_levels_are_searched_too() -> None:
    opt = Optimizer({"i": Int(0, 100_000), "j": Int(1, 1000, log=True)}, seed=0, repeats=False)
    for _ in range(40):
        x = opt.ask()
        opt.tell(x, -((x["i"] - 77_777) ** 2) / 1e8 - np.log(x["j"] / 50) ** 2)
    assert opt.best is not None and abs(opt.best.x["i"] - 77_777) < 2_000 and 30 < opt.best.x["j"] < 80
    assert len({(t.x["i"], t.x["j"]) for t in opt.trials}) == 40


@given(SEEDS)
def test_each_discrete_parameter_is_set_to_its_best_level_in_turn(seed: int) -> None:
    space: Any = Parameters.named({"n": Int(0, 4), "x": (0.0, 1.0), "c": ["a", "b", "c"]})
    rng = np.random.default_rng(seed)
    table = rng.random((2, 5, 3))  # a score of its own for each of the two points

    def f(z: np.ndarray, which: np.ndarray) -> np.ndarray:
        return table[which, z[:, 0].astype(int), z[:, 2:].argmax(axis=1)]

    starts = space.from_unit(rng.random((2, 3)))
    before = starts.copy()
    points, values = best_levels(f, space, starts, f(starts, np.arange(2)), lambda levels, _: levels)
    np.testing.assert_array_equal(starts, before)
    np.testing.assert_array_equal(points[:, 1], starts[:, 1])
    for i, start in enumerate(starts):
        n = table[i, :, start[2:].argmax()].argmax()
        c = table[i, n].argmax()
        assert (points[i, 0], points[i, 2:].argmax(), values[i]) == (n, c, table[i, n, c])


@given(st.integers(2, 5000), st.data())
def test_of_many_levels_the_present_one_its_neighbours_and_some_far_ones_are_tried(k: int, data: st.DataObject) -> None:
    levels, at = np.linspace(-1.0, 1.0, k)[:, None], data.draw(st.integers(0, k - 1))
    tried = _some_levels(levels, levels[at])
    numbers = np.searchsorted(levels[:, 0], tried[:, 0])
    np.testing.assert_array_equal(levels[numbers], tried)
    assert np.all(np.diff(numbers) > 0)
    if k <= 512:
        assert len(tried) == k
    else:
        assert len(tried) < 300 and np.diff(numbers).max() <= k // 255 + 1 and {0, k - 1, at} <= set(numbers)
        for jump in (1, 2, 4, 8, 16):
            assert {max(at - jump, 0), min(at + jump, k - 1)} <= set(numbers)


def test_all_options_of_a_choice_are_tried_however_many_there_are() -> None:
    levels = np.eye(600)
    assert _some_levels(levels, levels[3]) is levels


def test_a_climb_leaves_discrete_coordinates_as_they_are_and_the_reals_in_their_bounds() -> None:
    space: Any = Parameters.named({"n": Int(0, 9), "x": (-3.0, 5.0), "c": ["a", "b"], "y": Real(1e-3, 10.0, log=True)})
    starts = space.from_unit(np.random.default_rng(0).random((6, 4)))
    score = hill(space.hi + 1.0)
    points, values = multistart._climb_all(score, space, starts, 0.0)
    np.testing.assert_array_equal(points[:, ~space.continuous], starts[:, ~space.continuous])
    assert np.all((points >= space.lo) & (points <= space.hi))
    np.testing.assert_allclose(values, score(points), rtol=1e-12)
    np.testing.assert_array_equal(points[values.argmax(), space.continuous], space.hi[space.continuous])


# Draws


def test_thompson_sampling_on_a_box_stays_inside_and_finds_the_peak() -> None:
    opt = Optimizer([(0.0, 1.0), (0.0, 1.0)], Thompson(), kernel=kernels.RBF(0.3), noise_var=1e-4, seed=0)
    for _ in range(25):
        x = opt.ask()
        assert np.all((x >= 0) & (x <= 1))
        opt.tell(x, -((x - 0.3) ** 2).sum())
    assert np.abs(opt.recommend() - 0.3).max() < 0.05


def certain(top: np.ndarray, **options: Any) -> Objective:
    """A score for draws of an f that is known well."""
    x = grid_in(SQUARE, 9)
    posterior = Posterior.prior(kernels.RBF(0.4), 1e-7).condition(x, 1.0 - ((x - top) ** 2).sum(axis=1))
    return score_of(Thompson(), posterior, SQUARE, **options)


def drawn(o: Objective, **options: Any) -> np.ndarray:
    screen, rngs = np.random.default_rng(0).random((100, 2)), (np.random.default_rng(1), np.random.default_rng(2))
    return drawn_point(o, SQUARE, screen, NOTHING, *rngs, **options).row


def test_where_f_is_known_a_draw_is_largest_at_its_maximum_that_may_be_asked() -> None:
    top = np.array([0.4, 0.7])
    best = drawn(certain(top))
    np.testing.assert_allclose(best, top, atol=0.01)
    assert not np.array_equal(drawn(certain(top), visited=best[None]), best)
    width = np.full((1, 2), 0.2)
    beside = drawn(certain(top), barred=Barriers(top[None], width, width / 2.0))
    assert 0.2 < np.abs(beside - top).max() < 0.3


def test_a_draw_is_weighed_by_the_chance_of_success_before_its_maximum_is_taken() -> None:
    top, chance = np.array([0.4, 0.7]), chance_in(SQUARE, 5, spread=0.1)
    o = certain(top, chance=chance)
    o = replace(o, state=replace(o.state, best_mean=-2.0))  # what is drawn is the gain over it, times the chance
    best, grid = drawn(o), grid_in(SQUARE, 41)
    values = o.weighed(o.posterior.mu(grid), grid)
    assert np.abs(grid[values.argmax()] - top).max() > 0.1
    assert o.weighed(o.posterior.mu(best[None]), best[None])[0] >= values.max() - 1e-3


def test_a_draw_under_several_priors_is_one_under_one_of_them() -> None:
    tops = np.array([[0.2, 0.2], [0.8, 0.7]])
    members = tuple(certain(top) for top in tops)
    o = certain(tops[0], members=members)
    screen, rng = np.random.default_rng(0).random((100, 2)), np.random.default_rng(1)
    rows = [drawn_point(o, SQUARE, screen, NOTHING, rng, np.random.default_rng(2)).row for _ in range(20)]
    near = np.abs(np.array(rows)[:, None] - tops).max(axis=2) < 0.02
    assert np.all(near.sum(axis=1) == 1) and near.sum(axis=0).min() >= 4


# Repeats


LATTICE = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-2, 2))


@given(st.lists(LATTICE, max_size=12), st.lists(LATTICE, max_size=12), st.sampled_from([0.0, 1e-15, 0.1]))
def test_points_among_others_are_those_of_all_pairs(
    points: list[tuple[int, int, int]], visited: list[tuple[int, int, int]], digit: float
) -> None:
    """Equal points, points at the very edge of the rounding and beyond it, and many that share a first coordinate."""
    rounding = np.array([digit, 0.0])
    z, seen = (
        np.array([(a + shift * 0.5 * digit, b) for a, b, shift in some], dtype=float).reshape(-1, 2)
        for some in (points, visited)
    )
    close = np.abs(z[:, None] - seen) <= rounding
    np.testing.assert_array_equal(are_among(z, seen, rounding), close.all(axis=2).any(axis=1))
