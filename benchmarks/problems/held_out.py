"""Ten functions that nothing was tuned on. The list was committed before any tool had seen one of them.

They have many local maxima, some of them narrow, ten and twenty dimensions, two mixed spaces, and a hundred coordinates
of which six matter. `benchmarks/compare.py` runs them once, at the end; docs/benchmarks/compare.md reports them apart.
Boxes differ from the customary ones where a coordinate of the maximiser would be in the middle of its interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import gpmi

from .functions import HARTMANN6_MAXIMUM, Array, Bounds, Problem, data, hartmann6, quiet

SHEKEL_C = np.array(
    [
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
    ]
).T
SHEKEL_BETA = np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10


def shekel(x: Array) -> float:
    """Ten narrow peaks in four dimensions."""
    return float(np.sum(1 / (SHEKEL_BETA + np.sum((x - SHEKEL_C) ** 2, axis=1))))


LANGERMANN_A = np.array([[3, 5], [5, 2], [2, 1], [1, 4], [7, 9]])
LANGERMANN_C = np.array([1, 2, 5, 2, 3])


def langermann(x: Array) -> float:
    """Waves around five centres, which decay."""
    squares = np.sum((x - LANGERMANN_A) ** 2, axis=1)
    return float(-np.sum(LANGERMANN_C * np.exp(-squares / np.pi) * np.cos(np.pi * squares)))


def eggholder(x: Array) -> float:
    """Hundreds of local maxima, the highest on the boundary."""
    a, b = float(x[0]), float(x[1]) + 47
    return float(b * np.sin(np.sqrt(abs(b + a / 2))) + a * np.sin(np.sqrt(abs(a - b))))


def gramacy_lee(x: Array) -> float:
    """A peak and a trough in one corner, flat everywhere else."""
    return float(x[0] * np.exp(-(x[0] ** 2) - x[1] ** 2))


def griewank(x: Array) -> float:
    """A bowl with a fine egg-box on it."""
    return float(-np.sum(x**2) / 4000 + np.prod(np.cos(x / np.sqrt(np.arange(1, len(x) + 1)))) - 1)


def dixon_price(x: Array) -> float:
    """A curved valley."""
    i = np.arange(2, len(x) + 1)
    return float(-((x[0] - 1) ** 2) - np.sum(i * (2 * x[1:] ** 2 - x[:-1]) ** 2))


def powell(x: Array) -> float:
    """Five blocks of four coordinates, whose second derivative is singular at the maximum."""
    a, b, c, d = x.reshape(-1, 4).T
    blocks = (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4
    return float(-np.sum(blocks))


EMBEDDED = (7, 22, 41, 58, 76, 93)  # the six of a hundred coordinates that matter


def hartmann_in_100(x: Array) -> float:
    return hartmann6(x[list(EMBEDDED)])


SVC: dict[str, Any] = {
    "kernel": ["linear", "poly", "rbf", "sigmoid"],
    "C": gpmi.Real(1e-3, 1e3, log=True),
    "gamma": gpmi.Real(1e-5, 10.0, log=True),
    "degree": gpmi.Int(2, 5),
    "coef0": gpmi.Real(-1.0, 1.0),
}


def svc_wine(x: Mapping[str, Any]) -> float:
    """Return the mean log-likelihood of the wine data's classes under a support vector classifier, in five fixed folds.

    Probabilities come from a logistic regression on the classifier's margins, which are predicted in the folds as well.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.svm import SVC as Classifier

    inputs, labels = data("wine")
    model = Classifier(
        kernel=x["kernel"], C=x["C"], gamma=x["gamma"], degree=x["degree"], coef0=x["coef0"], max_iter=10_000
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    with quiet():
        margins = cross_val_predict(model, inputs, labels, cv=folds, method="decision_function")
        chances = cross_val_predict(LogisticRegression(), margins, labels, cv=folds, method="predict_proba")
    return float(np.mean(np.log(np.maximum(chances[np.arange(len(labels)), labels.astype(int)], 1e-12))))


ALLOYS: dict[str, Any] = {
    "alloy": ["A", "B", "C"],
    "coating": ["none", "thin", "thick", "double", "glazed"],
    "u": (-1.0, 1.2),
    "v": (-1.0, 1.2),
    "layers": gpmi.Int(0, 8),
}


def alloys(x: Mapping[str, Any]) -> float:
    """Each alloy has a landscape of its own, each coating bends and lifts it, and layers pay until there are five."""
    u, v = float(x["u"]), float(x["v"])
    landscape = {
        "A": -((1 - 1.5 * u) ** 2) - 5 * (v - 1.2 * u**2) ** 2,
        "B": np.cos(5 * u) + np.cos(6 * v + 1) - 0.5 * (u + v) ** 2,
        "C": 2.2 * np.exp(-12 * ((u - 0.6) ** 2 + (v + 0.4) ** 2)) - 0.3 * abs(u),
    }[x["alloy"]]
    lift, bend = {"none": (0, 0), "thin": (0.3, 0.2), "thick": (0.5, -0.9), "double": (0.1, 0.6), "glazed": (0.4, 0.3)}[
        x["coating"]
    ]
    return float(landscape + lift + bend * u - 0.04 * (x["layers"] - 5) ** 2)


EGGHOLDER: Bounds = [(-512.0, 512.0)] * 2
SEARCHED: dict[str, tuple[Bounds, Any]] = {
    "shekel-4": ([(0.0, 10.0)] * 4, shekel),
    "langermann-2": ([(0.0, 10.0)] * 2, langermann),
    "eggholder-2": (EGGHOLDER, eggholder),
}

HELD_OUT = {
    problem.name: problem
    for problem in (
        Problem("shekel-4", [(0.0, 10.0)] * 4, shekel, None),
        Problem("langermann-2", [(0.0, 10.0)] * 2, langermann, None),
        Problem("eggholder-2", EGGHOLDER, eggholder, None),
        Problem("gramacy-lee-2", [(-2.0, 6.0)] * 2, gramacy_lee, float(np.exp(-0.5) / np.sqrt(2))),
        Problem("griewank-3", [(-4.0, 8.0), (-7.0, 5.0), (-5.0, 9.0)], griewank, 0.0),
        Problem("dixon-price-10", [(-10.0, 10.0)] * 10, dixon_price, 0.0),
        Problem("powell-20", [(-4.0, 5.0)] * 20, powell, 0.0),
        Problem("hartmann-6-in-100", [(0.0, 1.0)] * 100, hartmann_in_100, HARTMANN6_MAXIMUM),
        Problem("svc-wine", SVC, svc_wine, None),
        Problem("alloys", ALLOYS, alloys, None),
    )
}
NAMES = tuple(HELD_OUT)
