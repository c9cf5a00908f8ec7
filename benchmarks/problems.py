"""The problems of the comparison: twenty functions to be maximised, smooth and rugged, exact and noisy, real and mixed.

    python benchmarks/problems.py      finds the maxima that have no closed form and the means of the functions over
                                       their spaces, and writes benchmarks/maxima.json; then run held_out.py

`make(name, seed)` gives a problem. Only the GP draws depend on the seed: each seed is a new function. The boxes of
Ackley, Levy, Goldstein-Price and Michalewicz differ from the customary ones, so that no coordinate of the maximiser is
in the middle of its interval, where some optimisers look first; the maxima are the customary ones.
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpmi
from gpmi.paper.tasks.functions import HIMMELBLAU, MIXTURE, branin, goldstein_price, log_goldstein_price

Array = NDArray[np.float64]
Point = Any  # an array (d,) for boxes, a dict for named spaces
Bounds = list[tuple[float, float]]

FEATURES = 4096  # cosines in a GP draw
SEEDS = 20  # draws whose maxima are kept in MAXIMA
MAXIMA = Path(__file__).with_name("maxima.json")


@dataclass(frozen=True)
class Problem:
    """A function to be maximised; `maximum` is None where nobody knows it."""

    name: str
    space: Any  # what gpmi.Space.of takes: a list of (lo, hi), or a dict of parameters
    f: Callable[[Point], float]  # noise-free
    maximum: float | None
    noise_sd: float = 0.0

    def observe(self, x: Point, seed: int, number: int) -> float:
        """y = f(x) + noise; the noise is a function of (problem, seed, number of the evaluation)."""
        return self.f(x) + self.noise(seed, number)

    def noise(self, seed: int, number: int) -> float:
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), seed, number])
        return self.noise_sd * float(rng.standard_normal())


# Closed forms


WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
A3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
P3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381.5, 5743, 8828]])
A6 = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
P6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann3(x: Array) -> float:
    return float(WEIGHTS @ np.exp(-np.sum(A3 * (x - P3) ** 2, axis=1)))


def hartmann6(x: Array) -> float:
    return float(WEIGHTS @ np.exp(-np.sum(A6 * (x - P6) ** 2, axis=1)))


def ackley(x: Array) -> float:
    bowl = 20 * np.exp(-0.2 * np.sqrt(np.mean(x**2)))
    return float(bowl + np.exp(np.mean(np.cos(2 * np.pi * x))) - 20 - np.e)


def levy(x: Array) -> float:
    w = 1 + (x - 1) / 4
    middle = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2))
    last = (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)
    return float(-(np.sin(np.pi * w[0]) ** 2 + middle + last))


def rosenbrock(x: Array) -> float:
    return float(-np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def michalewicz(x: Array) -> float:
    i = np.arange(1, len(x) + 1)
    return float(np.sum(np.sin(x) * np.sin(i * x**2 / np.pi) ** 20))


def styblinski_tang(x: Array) -> float:
    return float(-0.5 * np.sum(x**4 - 16 * x**2 + 5 * x))


# Draws of a Gaussian process


def matern_draw(d: int, nu: float, lengthscale: float, seed: list[int]) -> Callable[[Array], float]:
    """A draw from the GP with a Matern kernel of variance 1, by random Fourier features.

    f(x) = sqrt(2 / m) sum_j w_j cos(omega_j . x + b_j), w_j ~ N(0, 1), b_j ~ U(0, 2 pi), and omega_j from the spectral
    density of the kernel, a t distribution with 2 nu degrees of freedom. O(m d) for each value.
    """
    rng = np.random.default_rng(seed)
    chi2 = 2 * rng.standard_gamma(nu, FEATURES)
    omega = rng.standard_normal((FEATURES, d)) * np.sqrt(2 * nu / chi2)[:, None] / lengthscale
    phase = rng.uniform(0, 2 * np.pi, FEATURES)
    weights = rng.standard_normal(FEATURES) * np.sqrt(2 / FEATURES)
    return lambda x: float(weights @ np.cos(omega @ x + phase))


@lru_cache
def gp_draw(d: int, stream: int, seed: int) -> Callable[[Array], float]:
    """A Matern-5/2 draw on the unit cube with several maxima: lengthscale 0.18 in 2 dimensions, 0.35 in 4."""
    return matern_draw(d, 2.5, {2: 0.18, 4: 0.35}[d], [d, stream, seed])


@cache
def mixture_waves() -> Callable[[Array], float]:
    return matern_draw(2, 1.5, 0.25, [2014])


def mixture(x: Array) -> float:
    """The paper's Gaussian mixture: three bumps, the highest of them thin, and small waves (a Matern-3/2 draw)."""
    return MIXTURE.f(x) + 0.05 * mixture_waves()(x)


# Mixed and real


MIXED = {
    "x1": (0.0, 1.0),
    "x2": (0.0, 1.0),
    "x3": (0.0, 1.0),
    "x4": gpmi.Int(0, 12),
    "x5": gpmi.Int(0, 12),
    "x6": ["copper", "iron", "silver", "tin"],
}
METAL = {"copper": 0.95, "iron": 0.25, "silver": 0.65, "tin": 0.05}


def hartmann_mixed(x: Mapping[str, Any]) -> float:
    """Hartmann-6 with x4 and x5 on a grid of thirteen values and x6 one of four unordered levels."""
    return hartmann6(np.array([x["x1"], x["x2"], x["x3"], x["x4"] / 12, x["x5"] / 12, METAL[x["x6"]]]))


SVR = {
    "C": gpmi.Real(1e-2, 1e3, log=True),
    "gamma": gpmi.Real(1e-4, 10.0, log=True),
    "epsilon": gpmi.Real(1e-2, 10.0, log=True),
}


def svr_diabetes(x: Mapping[str, Any]) -> float:
    """R^2 of a support vector regression on the diabetes data, mean of five fixed folds; y in tens of units."""
    from sklearn.svm import SVR as Regressor

    x_all, y_all = data("diabetes")
    model = Regressor(C=x["C"], gamma=x["gamma"], epsilon=x["epsilon"], max_iter=10_000)
    return _cross_validate(model, x_all, y_all / 10, "r2", folds=5)


BOOSTING = {
    "rate": gpmi.Real(1e-2, 1.0, log=True),
    "trees": gpmi.Int(3, 24, log=True),
    "depth": gpmi.Int(1, 5),
    "leaf": gpmi.Int(1, 40, log=True),
    "sample": gpmi.Real(0.2, 1.0),
    "features": gpmi.Real(0.05, 0.4),
}


def boosting_cancer(x: Mapping[str, Any]) -> float:
    """Minus the log-loss of gradient boosting on the breast cancer data, mean of three fixed folds; fixed seed."""
    from sklearn.ensemble import GradientBoostingClassifier

    x_all, y_all = data("breast_cancer")
    model = GradientBoostingClassifier(
        learning_rate=x["rate"],
        n_estimators=x["trees"],
        max_depth=x["depth"],
        min_samples_leaf=x["leaf"],
        subsample=x["sample"],
        max_features=x["features"],
        random_state=0,
    )
    return _cross_validate(model, x_all, y_all, "neg_log_loss", folds=3)


@cache
def data(name: str) -> tuple[Array, Array]:
    """Standardised inputs (n, d) and the target (n,) of one of scikit-learn's own data sets."""
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return (x - x.mean(axis=0)) / x.std(axis=0), y


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings: a fit that reaches max_iter is scored as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _cross_validate(model: Any, x: Array, y: Array, scoring: str, *, folds: int) -> float:
    from sklearn.model_selection import KFold, cross_val_score

    cv = KFold(folds, shuffle=True, random_state=0)
    with quiet():
        return float(np.mean(cross_val_score(model, x, y, scoring=scoring, cv=cv)))


# The list


def _unit(d: int) -> Bounds:
    return [(0.0, 1.0)] * d


BRANIN: Bounds = [(-5.0, 10.0), (0.0, 15.0)]
BRANIN_MAXIMUM, HARTMANN3_MAXIMUM, HARTMANN6_MAXIMUM = -0.39788735772973816, 3.862782147820755, 3.322368011415515
GOLDSTEIN_PRICE: Bounds = [(-2.0, 1.6), (-2.0, 2.0)]
ACKLEY: Bounds = [(-10.0, 20.0), (-20.0, 10.0), (-10.0, 20.0), (-20.0, 10.0), (-10.0, 20.0)]
LEVY: Bounds = [(-6.0, 12.0), (-10.0, 8.0), (-6.0, 12.0), (-10.0, 8.0)]
MICHALEWICZ: Bounds = [(0.0, 3.5)] * 5  # x2 = pi / 2 at the maximum

FIXED = {
    problem.name: problem
    for problem in (
        Problem("himmelblau", list(HIMMELBLAU.bounds), HIMMELBLAU.f, HIMMELBLAU.maximum),
        Problem("mixture", _unit(2), mixture, None),
        Problem("branin", BRANIN, branin, BRANIN_MAXIMUM),
        Problem("goldstein-price", GOLDSTEIN_PRICE, goldstein_price, -3.0),
        Problem("log-goldstein-price", GOLDSTEIN_PRICE, log_goldstein_price, -float(np.log(3.0))),
        Problem("hartmann-3", _unit(3), hartmann3, HARTMANN3_MAXIMUM),
        Problem("hartmann-6", _unit(6), hartmann6, HARTMANN6_MAXIMUM),
        Problem("ackley-5", ACKLEY, ackley, 0.0),
        Problem("levy-4", LEVY, levy, 0.0),
        Problem("rosenbrock-4", [(-5.0, 10.0)] * 4, rosenbrock, 0.0),
        Problem("michalewicz-5", MICHALEWICZ, michalewicz, 4.687658179088148),
        Problem("styblinski-tang-4", [(-5.0, 5.0)] * 4, styblinski_tang, 156.66466281508565),
        # The noise is 5 % of the function's standard deviation on Branin, 8 % on Hartmann-6 and on the draw.
        Problem("branin-noisy", BRANIN, branin, BRANIN_MAXIMUM, noise_sd=2.5),
        Problem("hartmann-6-noisy", _unit(6), hartmann6, HARTMANN6_MAXIMUM, noise_sd=0.03),
        Problem("hartmann-mixed", MIXED, hartmann_mixed, None),
        Problem("svr-diabetes", SVR, svr_diabetes, None),
        Problem("boosting-cancer", BOOSTING, boosting_cancer, None),
    )
}
DRAWS = {"gp-2": (2, 0, 0.0), "gp-4": (4, 0, 0.0), "gp-2-noisy": (2, 1, 0.08)}  # dimension, stream, noise sd
NAMES = (*FIXED, *DRAWS)


def make(name: str, seed: int) -> Problem:
    """The problem of that name; for a GP draw, the function of that seed."""
    if name in DRAWS:
        d, stream, noise_sd = DRAWS[name]
        return Problem(name, _unit(d), gp_draw(d, stream, seed), _kept_maxima().get(f"{name}/{seed}"), noise_sd)
    from held_out import HELD_OUT  # which is made of the functions here

    problem = FIXED[name] if name in FIXED else HELD_OUT[name]
    if problem.maximum is None:
        return replace(problem, maximum=_kept_maxima().get(name))
    return problem


def spread(name: str, maximum: float) -> float:
    """The maximum minus the mean of f over its space, which is 0 for a GP draw: what a gap is measured by."""
    return maximum - _kept_maxima().get(f"mean/{name}", 0.0)


def mean(problem: Problem) -> float:
    """The mean of f over 20,000 uniform points of its space, over 200 where f is slow."""
    space = gpmi.Space.of(problem.space)
    points = 200 if problem.name in ("svr-diabetes", "boosting-cancer", "svc-wine") else 20_000
    rows = space.from_unit(np.random.default_rng(0).random((points, space.unit_dim)))
    return float(np.mean([problem.f(space.decode(row)) for row in rows]))


@cache
def _kept_maxima() -> dict[str, float]:
    return json.loads(MAXIMA.read_text()) if MAXIMA.exists() else {}


def search(f: Callable[[Array], float], bounds: Bounds, *, starts: int = 40, screen: int = 20_000) -> float:
    """The maximum of f on a box: the best of many quasi-random points, climbed from the best `starts` of them."""
    from scipy.optimize import minimize
    from scipy.stats import qmc

    lo, hi = np.array(bounds).T
    points = lo + (hi - lo) * qmc.Sobol(len(bounds), seed=0).random(2 ** int(np.log2(screen)))
    values = np.array([f(x) for x in points])
    best = points[np.argsort(-values)[:starts]]
    ends = [minimize(lambda x: -f(x), x, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15}) for x in best]
    return max(-float(end.fun) for end in ends)


def search_mixed() -> float:
    """The maximum of hartmann_mixed: a search over the three reals for each setting of the others."""
    settings = [(a, b, c) for a in range(13) for b in range(13) for c in METAL]

    def at(a: int, b: int, c: str) -> Callable[[Array], float]:
        return lambda u: hartmann_mixed({"x1": u[0], "x2": u[1], "x3": u[2], "x4": a, "x5": b, "x6": c})

    rough = {setting: search(at(*setting), _unit(3), starts=1, screen=128) for setting in settings}
    best = sorted(settings, key=lambda setting: -rough[setting])[:20]
    return max(search(at(*setting), _unit(3), starts=5, screen=2000) for setting in best)


def main() -> None:
    maxima = {"mixture": search(mixture, _unit(2)), "hartmann-mixed": search_mixed()}
    for name, (d, stream, _) in DRAWS.items():
        for seed in range(SEEDS):
            maxima[f"{name}/{seed}"] = search(gp_draw(d, stream, seed), _unit(d))
    maxima |= {f"mean/{name}": mean(problem) for name, problem in FIXED.items()}
    MAXIMA.write_text(json.dumps(maxima, indent=1) + "\n")


if __name__ == "__main__":
    main()
