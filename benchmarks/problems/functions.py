"""Functions to be maximised: closed forms, draws of Gaussian processes, mixed spaces and real data."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpmi
from paper.tasks.functions import MIXTURE

Array = NDArray[np.float64]
Point = Any  # an array (d,) for boxes, a dict for named spaces
Bounds = list[tuple[float, float]]

FEATURES = 4096  # cosines in a GP draw
BRANIN: Bounds = [(-5.0, 10.0), (0.0, 15.0)]
LEVY: Bounds = [(-6.0, 12.0), (-10.0, 8.0), (-6.0, 12.0), (-10.0, 8.0)]
BRANIN_MAXIMUM, HARTMANN3_MAXIMUM, HARTMANN6_MAXIMUM = -0.39788735772973816, 3.862782147820755, 3.322368011415515


@dataclass(frozen=True)
class Problem:
    """A function to be maximised. `maximum` is None where it is unknown."""

    name: str
    space: Any  # what gpmi.Space.of takes: a list of (lo, hi), or a dict of parameters
    f: Callable[[Point], float]  # noise-free
    maximum: float | None
    noise_sd: float = 0.0

    def observe(self, x: Point, seed: int, number: int) -> float:
        """Return y = f(x) + noise. The noise is a function of the problem, the seed and the evaluation's number."""
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


def minus_hartmann6(x: Array) -> float:
    """Return Hartmann's function with its customary sign: its minimum is -3.32237."""
    return -hartmann6(x)


def wave(x: Array) -> float:
    """Return a sum of sines, for runs in which only the time counts."""
    return float(np.sin(5.0 * x).sum())


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
    """Return a draw from the GP with a Matern kernel of variance 1, by random Fourier features.

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
    """Return a Matern-5/2 draw on the unit cube with several maxima: lengthscale 0.18 in 2 dimensions, 0.35 in 4."""
    return matern_draw(d, 2.5, {2: 0.18, 4: 0.35}[d], [d, stream, seed])


@cache
def mixture_waves() -> Callable[[Array], float]:
    return matern_draw(2, 1.5, 0.25, [2014])


def mixture(x: Array) -> float:
    """The paper's Gaussian mixture: three bumps, the highest of them narrow, and small waves (a Matern-3/2 draw)."""
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
    """Return the standardised inputs (n, d) and the target (n,) of one of scikit-learn's data sets."""
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return (x - x.mean(axis=0)) / x.std(axis=0), y


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings. A fit that reaches max_iter is scored as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _cross_validate(model: Any, x: Array, y: Array, scoring: str, *, folds: int) -> float:
    from sklearn.model_selection import KFold, cross_val_score

    cv = KFold(folds, shuffle=True, random_state=0)
    with quiet():
        return float(np.mean(cross_val_score(model, x, y, scoring=scoring, cv=cv)))


# Maxima


def search(f: Callable[[Array], float], bounds: Bounds, *, starts: int = 40, screen: int = 20_000) -> float:
    """Return the maximum of f on a box, by climbs from the best `starts` of `screen` quasi-random points."""
    from scipy.optimize import minimize
    from scipy.stats import qmc

    lo, hi = np.array(bounds).T
    points = lo + (hi - lo) * qmc.Sobol(len(bounds), seed=0).random(2 ** int(np.log2(screen)))
    values = np.array([f(x) for x in points])
    best = points[np.argsort(-values)[:starts]]
    ends = [minimize(lambda x: -f(x), x, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15}) for x in best]
    return max(-float(end.fun) for end in ends)
