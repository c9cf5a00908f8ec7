"""The paper's tasks: their functions, their tables, their priors."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from scipy.optimize import minimize

import gpmi
from gpmi import kernels
from paper.tasks import (
    BRANIN,
    GOLDSTEIN_PRICE,
    HIMMELBLAU,
    LOG_GOLDSTEIN_PRICE,
    MIXTURE,
    TASKS,
    Function,
    mackey_glass,
    priors,
    tsunami,
)
from paper.tasks.fixed import BY_COORDINATE, FIXED, Fixed, grid, rough_mixture
from paper.tasks.generated import draw

FUNCTIONS = {
    "himmelblau": HIMMELBLAU,
    "branin": BRANIN,
    "goldstein-price": GOLDSTEIN_PRICE,
    "log-goldstein-price": LOG_GOLDSTEIN_PRICE,
    "mixture": MIXTURE,
}
GENERATED = ("generated-2", "generated-4")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# The functions


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_maximum_is_the_best_of_a_fine_grid_polished(f: Function) -> None:
    sides = [np.linspace(lo, hi, 151) for lo, hi in f.bounds]
    points = [(a, b) for a in sides[0] for b in sides[1]]
    values = [f.f(point) for point in points]
    start = points[int(np.argmax(values))]
    options = {"xatol": 1e-10, "fatol": 1e-14}
    found = minimize(lambda x: -f.f(x), start, method="Nelder-Mead", options=options)
    assert max(values) <= f.maximum + 1e-12
    assert -found.fun == pytest.approx(f.maximum, rel=1e-11)
    assert f.f(f.argmax) == pytest.approx(f.maximum, rel=1e-13)
    if f is not BRANIN:  # which has three
        assert found.x == pytest.approx(f.argmax, abs=1e-6)


def test_the_maxima_are_those_of_the_literature() -> None:
    assert BRANIN.maximum == pytest.approx(-0.397887, abs=1e-6)
    for x in ((-np.pi, 12.275), (np.pi, 2.275), (3 * np.pi, 2.475)):
        assert BRANIN.f(x) == pytest.approx(BRANIN.maximum, rel=1e-13)
    assert GOLDSTEIN_PRICE.f((0.0, -1.0)) == -3.0
    # the local minima of Goldstein-Price
    assert [GOLDSTEIN_PRICE.f(x) for x in ((-0.6, -0.4), (1.8, 0.2), (1.2, 0.8))] == pytest.approx([-30, -84, -840])
    assert LOG_GOLDSTEIN_PRICE.f((1.2, 0.8)) == pytest.approx(-np.log(840.0))


def test_the_highest_bump_of_the_mixture_is_the_thin_one_and_the_roughness_leaves_it_so() -> None:
    assert MIXTURE.f((0.6, 0.1)) > 1.2 > MIXTURE.f((0.9, 0.9)) > 0.8 > MIXTURE.f((0.2, 0.5)) > 0.7
    x, values = rough_mixture()
    assert np.abs(x[np.argmax(values)] - (0.6, 0.1)).max() < 1 / 31
    roughness = (values - grid(MIXTURE)[1]) / 0.05
    assert 0.3 < roughness.std() < 1.5


# The tasks


def test_the_registry_has_all_tasks() -> None:
    grids = ["mixture", "himmelblau", "branin", "goldstein-price", "log-goldstein-price"]
    assert list(TASKS) == [*GENERATED, *grids, "mackey-glass", "tsunami"]
    assert all(source.name == name == source.sample(rng()).name for name, source in TASKS.items())


@pytest.mark.parametrize("name", [source.name for source in FIXED])
def test_a_fixed_task_is_standardised_in_the_unit_cube_and_the_same_in_every_repetition(name: str) -> None:
    generator = rng()
    task = TASKS[name].sample(generator)
    assert task is TASKS[name].sample(rng(1))
    assert generator.random() == rng().random()  # nothing was drawn
    tables = {"mackey-glass": (1385, 6), "tsunami": (len(tsunami.table()[1]), 5)}
    assert task.candidates.shape == tables.get(name, (1024, 2))
    assert task.candidates.min(axis=0) == pytest.approx(0.0) and task.candidates.max(axis=0) == pytest.approx(1.0)
    assert task.values.mean() == pytest.approx(0.0, abs=1e-12) and task.values.std() == pytest.approx(1.0)
    assert len(np.unique(task.candidates, axis=0)) == len(task.values)
    assert task.noise_sd == (0.01 if name == "mixture" else 0.0)
    assert isinstance(task.kernel, kernels.RBF) and task.noise_var is not None and task.noise_var >= 1e-6


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "mixture"])
def test_the_rows_of_a_grid_are_the_function_there(name: str) -> None:
    task, f = TASKS[name].sample(rng()), FUNCTIONS[name]
    low, high = np.array(f.bounds).T
    rows = [0, 1, 32, 500, 1023]
    want = np.array([f.f(low + (high - low) * task.candidates[row]) for row in rows])
    slope, _ = np.polyfit(want, task.values[rows], 1)
    assert slope > 0.0
    assert np.diff(task.values[rows]) == pytest.approx(slope * np.diff(want), abs=1e-8)
    assert task.candidates[1] == pytest.approx([0.0, 1 / 31])


@pytest.mark.parametrize("name", TASKS)
def test_regret_is_what_is_lost_without_noise_and_vanishes_at_the_optimum(name: str) -> None:
    task = TASKS[name].sample(rng())
    assert task.maximum == task.values.max() == task.values[task.optimum]
    regret = task.regret(np.array([task.optimum, 3, 3]))
    assert regret[0] == 0.0 and regret[1] == regret[2] == task.maximum - task.values[3]


@pytest.mark.parametrize("name", TASKS)
def test_the_initial_rows_are_ten_different_ones_given_by_the_seed(name: str) -> None:
    task = TASKS[name].sample(rng())
    rows = task.initial(rng(5))
    assert len(set(rows.tolist())) == 10 and rows.min() >= 0 and rows.max() < len(task.values)
    assert np.array_equal(rows, task.initial(rng(5))) and not np.array_equal(rows, task.initial(rng(6)))


def test_observations_have_the_noise_of_the_task() -> None:
    task, generator = TASKS["mixture"].sample(rng()), rng()
    noise = np.array([task.observe(7, generator) for _ in range(4000)]) - task.values[7]
    assert noise.std() == pytest.approx(0.01, rel=0.05) and abs(noise.mean()) < 6e-4
    assert task.observe(7, rng(1)) == task.observe(7, rng(1))
    quiet = TASKS["branin"].sample(rng())
    assert quiet.observe(7, generator) == quiet.values[7]


def test_a_task_cannot_be_changed_by_those_who_share_it() -> None:
    task = TASKS["branin"].sample(rng())
    with pytest.raises(ValueError, match="read-only"):
        task.values[0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        task.candidates[0] = 0.0


@pytest.mark.parametrize("name", TASKS)
def test_an_optimizer_runs_on_a_task_with_its_prior(name: str) -> None:
    task, generator = TASKS[name].sample(rng()), rng()
    row_of = {point.tobytes(): row for row, point in enumerate(task.candidates)}
    opt = gpmi.Optimizer(task.candidates, gpmi.GPMI(), kernel=task.kernel, noise_var=task.noise_var, seed=0)
    for row in task.initial(generator):
        opt.tell(task.candidates[row], task.observe(row, generator))
    for _ in range(3):
        x = opt.ask()
        opt.tell(x, task.observe(row_of[np.asarray(x).tobytes()], generator))
    assert not opt.events


# Generated processes


@pytest.mark.parametrize(("name", "d", "width", "bandwidth"), [("generated-2", 2, 10, 1), ("generated-4", 4, 40, 16)])
def test_a_generated_task_is_new_for_every_repetition_and_given_by_the_seed(name, d, width, bandwidth) -> None:
    first, again, other = (TASKS[name].sample(rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(first.candidates, again.candidates) and np.array_equal(first.values, again.values)
    assert not np.array_equal(first.candidates, other.candidates)
    assert first.candidates.shape == (1000, d)
    assert first.candidates.min() >= 0.0 and 0.99 * width < first.candidates.max() <= width
    assert first.kernel == kernels.Matern(nu=1.5, lengthscale=bandwidth)
    assert (first.noise_sd, first.noise_var) == (0.01, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize("nu", [1.5, 3.0])
def test_a_generated_task_has_the_law_of_its_kernel(name: str, nu: float) -> None:
    task = replace(TASKS[name], nu=nu).sample(rng(3))
    assert task.kernel.nu == nu
    few = task.candidates[:150], task.values[:150]  # L^-1 f ~ N(0, I): its squares add up to chi^2
    p = gpmi.Posterior.prior(task.kernel, 0.0).condition(*few)
    assert float(np.sum(p.factor.solve(few[1]) ** 2)) == pytest.approx(150, abs=5 * np.sqrt(300))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [kernels.Matern(nu=1.5, lengthscale=0.5), kernels.Matern(nu=3, lengthscale=0.5)])
def test_draws_have_mean_zero_and_the_covariance_of_the_kernel(kernel: kernels.Kernel) -> None:
    x, generator, n = rng(1).random((6, 2)), rng(2), 4_000
    f = np.array([draw(kernel, x, generator) for _ in range(n)])
    k = kernel(x, x)
    spread = np.sqrt((1.0 + k**2) / n)  # of an entry of f f^T, averaged
    assert np.all(np.abs(f.T @ f / n - k) < 5 * spread)
    assert np.all(np.abs(f.mean(axis=0)) < 5 / np.sqrt(n))


# Mackey-Glass


def test_halving_the_step_divides_the_error_of_mackey_glass_by_sixteen() -> None:
    coarse, middle, fine = (mackey_glass.solve(400, per_unit) for per_unit in (10, 20, 40))
    error, half_error = np.abs(coarse - middle[::2]).max(), np.abs(middle - fine[::2]).max()
    assert error < 1e-7
    assert error / half_error == pytest.approx(16, rel=0.1)


def test_mackey_glass_relaxes_exactly_while_its_delayed_value_is_the_history() -> None:
    x = mackey_glass.solve(17)
    t = 0.1 * np.arange(171)
    rest = 2.0 * 0.9 / (1.0 + 0.9**10)  # where births and deaths cancel
    assert x == pytest.approx(rest + (0.9 - rest) * np.exp(-0.1 * t), abs=1e-8)


def test_mackey_glass_satisfies_its_equation() -> None:
    h, lag = 0.1, 170
    x = mackey_glass.solve(300)
    i = np.arange(1000, 2990)
    slope = (x[i - 2] - 8 * x[i - 1] + 8 * x[i + 1] - x[i + 2]) / (12 * h)
    past = x[i - lag]
    assert slope == pytest.approx(0.2 * past / (1 + past**10) - 0.1 * x[i], abs=1e-6)


def test_the_rows_of_mackey_glass_are_its_past_newest_first_and_the_target_its_future() -> None:
    x, y = mackey_glass.table()
    series = mackey_glass.solve(163 + 6 * 1384 + 7)
    assert x.shape == (1385, 6) and y.shape == (1385,)
    for row in (0, 1, 2, 3, 700, 1384):
        t = 163 + 6 * row
        assert x[row].tolist() == [series[max(0, 10 * (t - 36 * j))] for j in range(6)]
        assert y[row] == series[10 * (t + 7)]
    assert np.array_equal(x[6:, 1], x[:-6, 0])  # 36 = 6 rows of 6
    assert x.min() > 0.2 and x.max() < 1.4 and y.min() > 0.2 and y.max() < 1.4


def test_the_first_rows_of_mackey_glass_are_close_to_the_public_ones() -> None:
    x, y = mackey_glass.table()
    public = [
        [1.0653587, 0.84250325, 0.70782984, 1.0178784, 1.2476827, 0.9],
        [1.1355961, 0.55885374, 0.79370192, 1.0346794, 1.0067861, 0.9],
        [1.1533842, 0.42572016, 1.0558440, 1.1640420, 0.71297054, 0.9],
        [1.0678134, 0.75043060, 1.2000510, 1.0670009, 0.50349420, 0.94136145],
    ]
    target = [1.1335086, 1.1645714, 1.0315895, 0.79058261]
    assert x[:4] == pytest.approx(np.array(public), abs=0.02)
    assert y[:4] == pytest.approx(target, abs=0.03)
    further, ahead = mackey_glass.table(ahead=510)  # where the public target is taken
    assert np.array_equal(further, x) and np.array_equal(ahead[:-85], x[85:, 0])
    assert ahead[:4] == pytest.approx(target, abs=0.07)


def test_mackey_glass_is_the_same_on_every_machine() -> None:
    x, y = mackey_glass.table()
    assert (x[-1, 0], y[-1]) == (0.9728019478638013, 0.9654055820230125)  # after 8467 units of chaos


# The priors


@pytest.mark.parametrize("scales", [0.4, (0.3, 0.8)], ids=["isotropic", "by coordinate"])
def test_leave_one_out_is_the_likelihood_of_each_value_given_the_others_and_has_the_right_gradient(
    scales: float | tuple[float, float],
) -> None:
    x, theta = rng(0).random((12, 2)), np.log([1.7, *np.atleast_1d(scales), 0.02])
    y = np.sin(5 * x[:, 0]) + x[:, 1]
    value, gradient = priors._leave_one_out(theta, x, y)
    kernel, noise_var, want = kernels.RBF(lengthscale=scales, variance=1.7), 0.02, 0.0
    for i in range(12):
        others = np.arange(12) != i
        mu, var = gpmi.Posterior.prior(kernel, noise_var).condition(x[others], y[others])(x[i : i + 1])
        s = float(var[0]) + noise_var
        want -= 0.5 * (np.log(2 * np.pi * s) + float(y[i] - mu[0]) ** 2 / s)
    assert value == pytest.approx(want, rel=1e-10)
    for j, step in enumerate(1e-6 * np.eye(len(theta))):
        up, down = priors._leave_one_out(theta + step, x, y)[0], priors._leave_one_out(theta - step, x, y)[0]
        assert gradient[j] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.slow
def test_the_table_of_priors_is_what_is_learned() -> None:
    table = json.loads((files("paper.tasks") / "priors.json").read_text())
    assert set(table) == {source.name for source in (*FIXED, *BY_COORDINATE)}
    for one, each in zip(FIXED, BY_COORDINATE, strict=True):
        assert table[each.name]["log_likelihood_per_row"] >= table[one.name]["log_likelihood_per_row"] - 1e-3
    learned = priors.learn(*priors.half(TASKS["log-goldstein-price"].sample(rng())))
    assert learned == pytest.approx(table["log-goldstein-price"], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("source", [*FIXED, *BY_COORDINATE], ids=lambda source: source.name)
def test_no_neighbour_of_a_learned_prior_is_better_on_its_half(source: Fixed) -> None:
    task = source.sample(rng())
    x, y = priors.half(task)
    assert len(y) == len(task.values) // 2
    scales = np.atleast_1d(task.kernel.lengthscale)
    best = np.log([task.kernel.variance, *scales, task.noise_var])
    value, _ = priors._leave_one_out(best, x, y)
    low, high = np.array(priors.bounds(len(scales))).T
    for step in (*0.2 * np.eye(len(best)), *-0.2 * np.eye(len(best))):
        assert priors._leave_one_out(np.clip(best + step, low - 1e-9, high + 1e-9), x, y)[0] <= value + 1e-3 * len(y)
