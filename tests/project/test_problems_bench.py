"""The problems of the comparison (benchmarks/problems) have the maxima they claim."""

from __future__ import annotations

import math

import numpy as np
import problems
import pytest

import gpmi

MAXIMISERS = {
    "himmelblau": (-3.83355005, -3.33360213),
    "branin": (np.pi, 2.275),
    "branin-noisy": (-np.pi, 12.275),
    "goldstein-price": (0.0, -1.0),
    "log-goldstein-price": (0.0, -1.0),
    "hartmann-3": (0.114589, 0.555649, 0.852547),
    "hartmann-6": (0.20168952, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053),
    "hartmann-6-noisy": (0.20168952, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053),
    "ackley-5": (0.0,) * 5,
    "levy-4": (1.0,) * 4,
    "rosenbrock-4": (1.0,) * 4,
    "michalewicz-5": (2.20290552, 1.57079633, 1.28499157, 1.92305847, 1.72046977),
    "styblinski-tang-4": (-2.90353403,) * 4,
}


@pytest.mark.parametrize("name", MAXIMISERS)
def test_the_maximum_is_attained_where_it_is_known_to_be(name: str) -> None:
    problem = problems.make(name, 0)
    assert problem.maximum is not None
    assert problem.f(np.array(MAXIMISERS[name])) == pytest.approx(problem.maximum, abs=1e-6)


@pytest.mark.parametrize("name", MAXIMISERS)
def test_no_coordinate_of_the_maximiser_is_in_the_middle(name: str) -> None:
    lo, hi = np.array(problems.make(name, 0).space).T
    assert np.all(np.abs((np.array(MAXIMISERS[name]) - lo) / (hi - lo) - 0.5) > 0.005)


@pytest.mark.parametrize("name", [name for name in problems.NAMES if name not in ("svr-diabetes", "boosting-cancer")])
def test_no_point_is_above_the_maximum(name: str) -> None:
    problem = problems.make(name, 3)
    space = gpmi.Space.of(problem.space)
    rows = space.from_unit(np.random.default_rng(0).random((500, space.unit_dim)))
    assert problem.maximum is not None
    assert max(problem.f(space.decode(row)) for row in rows) <= problem.maximum + 1e-9


@pytest.mark.parametrize("name", ["svr-diabetes", "boosting-cancer", "gp-4"])
def test_a_value_is_a_function_of_the_point(name: str) -> None:
    space = gpmi.Space.of(problems.make(name, 1).space)
    x = space.decode(space.from_unit(np.full((1, space.unit_dim), 0.3))[0])
    assert problems.make(name, 1).f(x) == problems.make(name, 1).f(x)


def test_noise_depends_on_problem_seed_and_number() -> None:
    problem = problems.make("branin-noisy", 0)
    draws = np.array([problem.noise(seed, number) for seed in range(20) for number in range(20)])
    assert problem.noise(3, 4) == problem.noise(3, 4)
    assert len(set(draws)) == 400
    assert np.std(draws) == pytest.approx(problem.noise_sd, rel=0.15)


@pytest.mark.parametrize(("more", "fewer"), [(0.2, 0.1), (0.05, 0.05), (0.3, 0.02)])
def test_the_interval_of_a_paired_difference_has_its_coverage(
    more: float, fewer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly, by the probabilities of all counts in 40 pairs."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # what the script sets is taken back
    from find import paired_interval

    n, covered = 40, 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            ways = math.comb(n, b) * math.comb(n - b, c)
            lo, hi = paired_interval(b, c, n)
            if lo <= more - fewer <= hi:
                covered += ways * more**b * fewer**c * (1.0 - more - fewer) ** (n - b - c)
    assert 0.93 < covered < 0.99
