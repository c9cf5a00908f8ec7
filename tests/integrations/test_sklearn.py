"""The search of scikit-learn: its own checks of estimators, and what is ours."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import gpmi

pytest.importorskip("sklearn")

from joblib import parallel_backend
from scipy.stats import loguniform, norm, randint, uniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import RandomizedSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpmi.integrations.sklearn import BRANCH, Branches, GPMISearchCV

X, Y = load_iris(return_X_y=True)
C = {"C": gpmi.Real(1e-2, 1e2, log=True)}


@parametrize_with_checks(
    [
        GPMISearchCV(LogisticRegression(), C, n_iter=2, cv=2, random_state=0),
        GPMISearchCV(Ridge(), {"alpha": gpmi.Real(1e-2, 1e2, log=True)}, n_iter=2, cv=2, random_state=0),
    ]
)
@pytest.mark.filterwarnings("ignore")
def test_it_is_an_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


class Made(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Its score is a function of its parameters; above `limit` it fails."""

    def __init__(self, a: float = 0.0, b: float = 0.0, limit: float = np.inf) -> None:
        self.a, self.b, self.limit = a, b, limit

    def fit(self, x: Any, y: Any) -> Made:
        if self.a > self.limit:
            raise RuntimeError("too large")
        self.classes_ = np.unique(y)
        return self

    def predict(self, x: Any) -> Any:
        return np.full(len(x), self.classes_[0])

    def score(self, x: Any, y: Any) -> float:
        return float(-((self.a - 0.3) ** 2) - (self.b - 0.6) ** 2)


BOX = {"a": (0.0, 1.0), "b": (0.0, 1.0)}


def test_it_finds_what_an_optimizer_finds() -> None:
    search = GPMISearchCV(Made(), BOX, n_iter=15, cv=2, random_state=0).fit(X, Y)
    assert search.best_score_ > -1e-3
    opt = gpmi.Optimizer(BOX, seed=search.optimizer_.seed, budget=15, repeats=False)
    for params in search.cv_results_["params"]:
        point = opt.ask()
        assert params == point
        opt.tell(point, Made(**point).score(X, Y))
    assert search.reason_ == "budget" and len(search.cv_results_["params"]) == 15
    assert search.ledger_.calibration is not None and search.best_params_ == search.optimizer_.best.x
    assert isinstance(search.best_estimator_, Made) and search.best_estimator_.a == search.best_params_["a"]


def test_it_is_cloned_pickled_and_repeats_itself() -> None:
    search = GPMISearchCV(Made(), BOX, n_iter=8, cv=2, random_state=3)
    first, second = clone(search).fit(X, Y), pickle.loads(pickle.dumps(search.fit(X, Y)))
    assert first.best_params_ == second.best_params_ and len(second.optimizer_.trials) == 8
    assert second.predict(X).shape == Y.shape


def test_several_points_at_a_time_and_jobs() -> None:
    with parallel_backend("threading"):
        search = GPMISearchCV(Made(), BOX, n_iter=11, n_points=4, n_jobs=2, cv=2, random_state=0).fit(X, Y)
    assert len(search.cv_results_["params"]) == 11
    a = np.array([list(params.values()) for params in search.cv_results_["params"]])
    assert len(np.unique(a, axis=0)) == 11


def test_failing_fits_teach_and_do_not_end_the_search() -> None:
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "limit": [0.2]}
    search = GPMISearchCV(Made(), space, n_iter=24, n_points=1, cv=2, random_state=0)
    with np.errstate(all="ignore"):
        search.fit(X, Y)
    statuses = [trial.status for trial in search.optimizer_.trials]
    assert statuses.count("failed") > 0 and statuses[8:].count("failed") <= 4  # four fifths of the space fail
    assert len(search.cv_results_["params"]) == statuses.count("told")
    assert 0.19 < search.best_params_["a"] <= 0.2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_a_setting_that_fails_beside_others_is_in_the_results_as_nan() -> None:
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "limit": [0.5]}
    search = GPMISearchCV(Made(), space, n_iter=6, n_points=6, cv=2, random_state=0).fit(X, Y)
    bad = np.isnan(search.cv_results_["mean_test_score"])
    assert 0 < bad.sum() < 6
    assert [trial.status for trial in search.optimizer_.trials] == ["failed" if one else "told" for one in bad]


def test_if_all_fits_fail_or_errors_are_to_be_raised_they_are() -> None:
    space = {"a": (0.5, 1.0), "b": (0.0, 1.0), "limit": [0.2]}
    with pytest.raises(ValueError, match="fits failed"):
        GPMISearchCV(Made(), space, n_iter=3, cv=2, random_state=0).fit(X, Y)
    with pytest.raises(RuntimeError, match="too large"):
        GPMISearchCV(Made(), space, n_iter=3, cv=2, error_score="raise", random_state=0).fit(X, Y)


def test_several_metrics() -> None:
    metrics = ["accuracy", "neg_log_loss"]
    model = LogisticRegression(max_iter=2000)
    search = GPMISearchCV(model, C, n_iter=6, cv=2, scoring=metrics, refit="neg_log_loss", random_state=0).fit(X, Y)
    assert search.best_score_ == search.cv_results_["mean_test_neg_log_loss"].max()
    assert [trial.y for trial in search.optimizer_.trials] == search.cv_results_["mean_test_neg_log_loss"].tolist()
    with pytest.raises(ValueError, match="give the one to maximise, one of"):
        GPMISearchCV(model, C, n_iter=2, cv=2, scoring=metrics, refit=False).fit(X, Y)


def test_a_rule_may_end_it() -> None:
    stop = gpmi.stopping.Stagnation(3)
    search = GPMISearchCV(Made(), BOX, n_iter=60, cv=2, random_state=0, stop=stop).fit(X, Y)
    assert len(search.optimizer_.trials) < 60 and search.reason_ != "budget"


def test_no_setting_of_a_finite_space_is_fitted_twice() -> None:
    search = GPMISearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3, 5]}, n_iter=9, cv=2, random_state=0).fit(X, Y)
    assert sorted(params["n_neighbors"] for params in search.cv_results_["params"]) == [1, 3, 5]
    assert search.reason_ == "space exhausted"


# Spaces


def test_the_branches_of_a_pipeline() -> None:
    pipe = Pipeline([("scale", StandardScaler()), ("clf", SVC())])
    spaces = [
        {"clf": [SVC()], "clf__C": gpmi.Real(1e-2, 1e2, log=True), "scale": ["passthrough", StandardScaler()]},
        {"clf": [DecisionTreeClassifier(random_state=0)], "clf__max_depth": gpmi.Int(1, 5)},
    ]
    search = GPMISearchCV(pipe, spaces, n_iter=12, cv=3, random_state=0).fit(X, Y)
    kinds = {type(params["clf"]) for params in search.cv_results_["params"]}
    assert kinds == {SVC, DecisionTreeClassifier}
    for params in search.cv_results_["params"]:
        assert ("clf__C" in params and "scale" in params) == isinstance(params["clf"], SVC)
    assert search.best_score_ == pytest.approx(cross_val_score(search.best_estimator_, X, Y, cv=3).mean())


def test_a_condition_in_one_dict() -> None:
    space = {
        "kernel": ["rbf", "poly"],
        "C": gpmi.Real(1e-2, 1e2, log=True),
        "degree": gpmi.Int(2, 4, when={"kernel": "poly"}),
    }
    search = GPMISearchCV(SVC(), space, n_iter=8, cv=2, random_state=0).fit(X, Y)
    assert all(("degree" in params) == (params["kernel"] == "poly") for params in search.cv_results_["params"])


def test_what_branches_share_is_one_parameter_and_what_differs_is_two() -> None:
    branches = Branches.of(
        [
            {"k": "a", "c": (0.0, 1.0), "d": (0.0, 1.0)},
            {"k": "b", "c": (0.0, 1.0), "d": (0.0, 2.0), "e": gpmi.Real(0.0, 1.0, when={"f": "y"}), "f": ["x", "y"]},
            {"k": "c", "c": (0.0, 1.0)},
        ]
    )
    assert set(branches.spec) == {BRANCH, "c", "d [0]", "d [1]", "e", "f"}
    when = {name: one.when for name, one in branches.spec.items()}
    assert when["c"] is None and when["d [1]"] == {BRANCH: [1]} and when["e"] == {"f": "y", BRANCH: [1]}
    point = {BRANCH: 1, "c": 0.1, "d [1]": 1.5, "f": "x"}
    assert branches.params(point) == {"k": "b", "c": 0.1, "d": 1.5, "f": "x"}
    assert branches.params({BRANCH: 2, "c": 0.3}) == {"k": "c", "c": 0.3}


def test_distributions_of_scipy_and_arrays_are_understood() -> None:
    spec = Branches.of(
        {"a": loguniform(1e-3, 1e3), "b": uniform(2.0, 3.0), "c": randint(1, 9), "d": np.array([1, 2, 4])}
    ).spec
    assert spec["a"] == gpmi.Real(1e-3, 1e3, log=True) and spec["b"] == gpmi.Real(2.0, 5.0)
    assert spec["c"] == gpmi.Int(1, 8) and spec["d"] == gpmi.Choice((1, 2, 4))


@pytest.mark.parametrize(
    ("spaces", "words"),
    [
        ({}, "leaves nothing to choose"),
        ([], "search_spaces is empty"),
        ("C", "give a dict of names"),
        ({"C": [1.0]}, "leaves nothing to choose"),
        ({"depth": (1, 8)}, r"give gpmi.Int\(1, 8\) or \(1.0, 8.0\)"),
        ({"shrinking": (True, False)}, r"'shrinking' is \(True, False\); give a list for options"),
        ({"C": norm()}, "the distribution norm"),
        ([{"a": gpmi.Real(0.0, 1.0, when={"b": 1})}, {"b": [1, 2]}], "not a parameter of the same dict"),
        ([{"a": gpmi.Real(0.0, 1.0, when={"b": 1}), "b": [1]}, {"b": [1, 2]}], "has only one value"),
    ],
)
def test_wrong_spaces_are_refused(spaces: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Branches.of(spaces)


@pytest.mark.parametrize(("name", "value"), [("n_iter", 0), ("n_points", 0), ("stop", "soon"), ("aim", "win")])
def test_wrong_arguments_are_refused(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        GPMISearchCV(Made(), BOX, cv=2, **{"n_iter": 3, name: value}).fit(X, Y)


@pytest.mark.slow
def test_it_is_at_least_as_good_as_random_search() -> None:
    x, y = make_classification(300, 12, random_state=0)
    space = {"C": gpmi.Real(1e-3, 1e3, log=True), "gamma": gpmi.Real(1e-5, 10.0, log=True)}
    other = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 10.0)}
    ours = [GPMISearchCV(SVC(), space, n_iter=20, cv=3, random_state=s).fit(x, y).best_score_ for s in range(5)]
    theirs = [RandomizedSearchCV(SVC(), other, n_iter=20, cv=3, random_state=s).fit(x, y).best_score_ for s in range(5)]
    assert np.mean(ours) >= np.mean(theirs)


DEPTH = {"max_depth": gpmi.Int(1, 9)}


@pytest.mark.parametrize("n_points", [1, 2])
def test_verbose_prints_one_line_for_each_setting(capsys: Any, n_points: int) -> None:
    search = GPMISearchCV(
        DecisionTreeClassifier(random_state=0), DEPTH, n_iter=4, n_points=n_points, cv=2, random_state=0, verbose=1
    ).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and search.verbose == 1
    scores = search.cv_results_["mean_test_score"]
    for i, line in enumerate(lines):
        found = re.fullmatch(rf"\[{i + 1}/4\] score (\S+), best (\S+), time left \d+:\d\d:\d\d", line)
        assert found, line
        assert float(found[1]) == pytest.approx(scores[i], rel=1e-5)
        assert float(found[2]) == pytest.approx(max(scores[: i + 1]), rel=1e-5)
    assert lines[-1].endswith("time left 0:00:00")
    GPMISearchCV(DecisionTreeClassifier(random_state=0), DEPTH, n_iter=2, cv=2, random_state=0).fit(X, Y)
    assert capsys.readouterr().out == ""
