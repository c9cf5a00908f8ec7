"""The argmax against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der

from gpmi import GPMI, Int, LogEI, Optimizer, Posterior, Real, Reinvest, Space, Thompson, kernels
from gpmi._support.sobol import sobol
from gpmi.gp.trend import Trend
from gpmi.policies import Policy, State
from gpmi.search import multistart
from gpmi.search.climb import climb
from gpmi.search.constrained_climb import _Climber, _step
from gpmi.search.multistart import are_among, best_point
from gpmi.search.objective import Objective
from gpmi.search.screen import SCREEN, best_observed
from gpmi.space import Parameters, Polytope


def objective(space: Parameters, policy: Policy, seed: int, n: int = 25) -> Objective:
    rng = np.random.default_rng(seed)
    x = space.from_unit(rng.random((n, space.unit_dim)))
    kernel = kernels.Matern(nu=2.5, lengthscale=0.25 * space.span)
    y = Posterior.prior(kernel, 1e-6).sample(x, rng)[0]
    p = Posterior.prior(kernel, 1e-4).condition(x, y)
    best = float(y.max())
    state = State(5, 0.5, 1e-4, best, best, *space.extent)
    return Objective(p, policy, state)


def found_by(o: Objective, space: Parameters, seed: int = 0) -> tuple[np.ndarray, float]:
    screen = space.from_unit(sobol(space.unit_dim, SCREEN.bit_length() - 1, (seed,)))
    found = best_point(o, space, screen, o(screen), best_observed(o.posterior), np.random.default_rng(seed))
    return found.row, found.score


@given(
    st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]) | st.floats(-3.0, 3.0), max_size=60), st.integers(1, 70)
)
def test_the_best_first_are_the_first_of_a_stable_sort(worth: list[float], count: int) -> None:
    values = np.array(worth, dtype=float)
    assert multistart._best_first(values, count).tolist() == np.argsort(-values, kind="stable")[:count].tolist()


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


def test_the_objectives_gradient_is_the_difference_quotient() -> None:
    space = Space.of([(0.0, 1.0)] * 3)
    assert isinstance(space, Parameters)
    z, h = np.random.default_rng(5).random((6, 3)), 1e-6
    for policy in (GPMI(), LogEI(), Reinvest()):
        o = objective(space, policy, 0)
        value, gradient = o.with_gradient(z)
        np.testing.assert_allclose(value, o(z), rtol=1e-10)
        for j, e in enumerate(h * np.eye(3)):
            np.testing.assert_allclose(gradient[:, j], (o(z + e) - o(z - e)) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("policy", [GPMI(), LogEI(), Reinvest()], ids=repr)
def test_gradients_beside_a_point_made_from_its_own_give_the_same_second_derivatives(policy: Policy) -> None:
    """In six dimensions, and with a known mean: one backward solve for each group of seven points."""
    space = Space.of([(0.0, 1.0)] * 6)
    assert isinstance(space, Parameters)
    o = objective(space, policy, 1, n=60)
    trend = Trend(lambda row: float(np.sin(row).sum()), space.lo, space.hi)
    start = Posterior.prior(o.posterior.kernel, 1e-4, 0.2, trend)
    o = replace(o, posterior=start.condition(o.posterior.x, o.posterior.y))
    h = np.where(np.arange(6) % 2, 1e-5, -1e-5)
    z = (np.random.default_rng(2).random((4, 1, 6)) + h * np.eye(7, 6, -1)).reshape(-1, 6)

    def expansion(value: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, ...]:
        groups = gradient.reshape(4, 7, 6)
        return value, groups[:, 0], (groups[:, 1:] - groups[:, :1]) / h[:, None]

    (value, slope, bend), (value_2, slope_2, bend_2) = expansion(*o.with_gradient(z)), expansion(*o.with_gradient(z, 7))
    np.testing.assert_allclose(value_2, value, rtol=1e-12)
    np.testing.assert_allclose(slope_2, slope, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(bend_2, bend, rtol=1e-3, atol=1e-3 * np.abs(bend).max())


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


def test_climbing_reaches_rosenbrocks_maximum_from_everywhere_inside_the_bounds() -> None:
    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = 4 * u - 2
        return -np.array([rosen(p) for p in z]), -4 * np.array([rosen_der(p) for p in z])

    u, value = climb(f, np.random.default_rng(0).random((20, 2)), np.ones(2))
    assert np.all((u >= 0) & (u <= 1))
    assert value.max() > -1e-9
    np.testing.assert_allclose(value, f(u, np.arange(20))[0])


def test_climbing_stops_at_the_bound_when_the_maximum_lies_outside() -> None:
    centre = np.array([1.7, 0.3, -0.4])

    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -((u - centre) ** 2).sum(axis=1), -2 * (u - centre)

    u, value = climb(f, np.random.default_rng(0).random((5, 3)), np.ones(3))
    np.testing.assert_allclose(u[np.argmax(value)], [1.0, 0.3, 0.0], atol=1e-6)


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**600, 2.0**1000])
def test_a_step_along_a_face_does_not_depend_on_the_unit_of_the_score(scale: float) -> None:
    """Newton's step would leave the cube, so it follows the gradient; the square of a large one would overflow."""
    cube = Polytope.of(np.empty((0, 2)), np.empty(0), np.empty(0))
    assert cube is not None
    slope, bend = np.array([-0.001, -0.01]), np.array([[-1.0, -0.9], [-0.9, -1.0]])

    def step(by: float) -> np.ndarray:
        return _step(_Climber(cube, np.zeros(2), np.array([1.0, 0.5]), 0.0, by * slope, by * bend, np.ones(2)))

    np.testing.assert_allclose(step(scale), step(1.0), rtol=1e-14)
    assert step(1.0)[0] < 0.0 and step(1.0)[1] < 0.0


def test_climbing_goes_on_where_a_start_has_no_finite_gradient() -> None:
    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient = np.where(np.abs(u - 0.2) < 1e-4, np.inf, -2 * (u - 0.7))
        return -((u - 0.7) ** 2).sum(axis=1), gradient

    u, value = climb(f, np.array([[0.2, 0.9], [0.4, 0.5]]), np.ones(2))
    np.testing.assert_allclose(u[1], 0.7, atol=1e-6)
    assert u[0, 0] == 0.2 and value[0] == pytest.approx(f(u, np.arange(2))[0][0])


def test_climbing_leaves_a_saddle_and_a_region_without_curvature() -> None:
    """f = a^2 / 2 - b^2 with a, b counted from the middle: Newton's step would end on the saddle at the middle."""

    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a, b = u.T - 0.5
        return 0.5 * a**2 - b**2, np.stack([a, -2 * b], axis=1)

    u, _ = climb(f, np.array([[0.51, 0.9]]), np.ones(2))
    np.testing.assert_allclose(u[0], [1.0, 0.5], atol=1e-6)
    u, _ = climb(lambda u, which: (u.sum(axis=1), np.ones_like(u)), np.array([[0.1, 0.2]]), np.ones(2))
    np.testing.assert_array_equal(u[0], 1.0)


def test_climbing_finds_every_peak_it_starts_near() -> None:
    """sin has maxima 1 at 1/10, 5/10 and 9/10; starts on the same peak are dropped, but no peak is lost."""

    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.sin(5 * np.pi * u[:, 0]), 5 * np.pi * np.cos(5 * np.pi * u)

    u, value = climb(f, np.linspace(0.0, 1.0, 11)[:, None], np.ones(1))
    for peak in (0.1, 0.5, 0.9):
        assert np.abs(u[:, 0] - peak).min() < 1e-4
    assert value.max() == pytest.approx(1.0)


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


def test_a_small_discrete_space_is_enumerated() -> None:
    space = Space.of({"a": Int(1, 5), "b": ["x", "y"], "c": Int(0, 3)})
    assert space.rows is not None and len(space.rows) == 40 == len(np.unique(space.rows, axis=0))


def test_thompson_sampling_on_a_box_stays_inside_and_finds_the_peak() -> None:
    opt = Optimizer([(0.0, 1.0), (0.0, 1.0)], Thompson(), kernel=kernels.RBF(0.3), noise_var=1e-4, seed=0)
    for _ in range(25):
        x = opt.ask()
        assert np.all((x >= 0) & (x <= 1))
        opt.tell(x, -((x - 0.3) ** 2).sum())
    assert np.abs(opt.recommend() - 0.3).max() < 0.05


def test_a_joint_draw_over_many_rows_says_that_it_was_reduced() -> None:
    opt = Optimizer(
        np.random.default_rng(0).random((3000, 2)), Thompson(), kernel=kernels.RBF(0.3), noise_var=0.1, seed=0
    )
    opt.tell(opt.ask(), 0.0)
    assert [e.kind for e in opt.events] == ["reduced search"]


def test_the_first_points_of_a_longer_sequence_are_the_shorter_sequence() -> None:
    np.testing.assert_array_equal(sobol(5, 4, (7, 0)), sobol(5, 8, (7, 0))[:16])
    assert not np.array_equal(sobol(5, 4, (7, 0)), sobol(5, 4, (7, 1)))


def test_the_score_of_several_models_is_the_mean_of_theirs_and_so_is_its_gradient() -> None:
    space = Space.of([(-2.0, 3.0), (10.0, 400.0)])
    assert isinstance(space, Parameters)
    members = tuple(objective(space, Reinvest(), seed) for seed in range(3))
    o = replace(members[0], members=members)
    z = space.from_unit(np.random.default_rng(9).random((5, 2)))
    score, gradient = o.with_gradient(z)
    np.testing.assert_allclose(score, np.mean([m(z) for m in members], axis=0), rtol=1e-12)
    np.testing.assert_allclose(o(z), score, rtol=1e-12)
    for j, step in enumerate(1e-5 * np.diag(space.span)):
        quotient = (o(z + step) - o(z - step)) / (2.0 * step[j])
        np.testing.assert_allclose(gradient[:, j], quotient, rtol=1e-4, atol=1e-6 * np.abs(gradient[:, j]).max())
    found = o.result_at(z[0])
    mu, var = np.array([m.posterior(z[:1]) for m in members])[:, :, 0].T
    assert found.mu == pytest.approx(mu.mean()) and found.var == pytest.approx(var.mean() + mu.var())
    _, best = found_by(o, space)
    grid = space.from_unit(np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2), axis=-1).reshape(-1, 2))
    values = o(grid)
    assert best >= values.max() - 1e-3 * (values.max() - np.median(values))


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
