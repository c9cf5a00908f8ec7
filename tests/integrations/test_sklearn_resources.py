"""Searches of scikit-learn with a resource: which rows win, what is spent, and on what estimators are trained."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gpmi

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.datasets import load_iris, make_regression
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpmi.integrations.resources import Subsample, _levels
from gpmi.integrations.sklearn import GPMISearchCV

X, Y = load_iris(return_X_y=True)
C = {"C": gpmi.Real(1e-2, 1e2, log=True)}


@parametrize_with_checks(
    [
        GPMISearchCV(LogisticRegression(), C, n_iter=3, cv=2, random_state=0, resource="n_samples"),
        GPMISearchCV(
            Ridge(),
            {"alpha": gpmi.Real(1e-2, 1e2, log=True)},
            n_iter=3,
            cv=2,
            random_state=0,
            resource="max_iter",
            max_resources=50,
        ),
    ]
)
@pytest.mark.filterwarnings("ignore")
def test_it_is_an_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


class Boosted(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Its score is a function of its parameters, and larger with fewer rounds: what is cheap looks best."""

    def __init__(self, a: float = 0.0, rounds: int = 90, limit: float = np.inf, at_most: int = 1000) -> None:
        self.a, self.rounds, self.limit, self.at_most = a, rounds, limit, at_most

    def fit(self, x: Any, y: Any) -> Boosted:
        if self.a > self.limit or self.rounds > self.at_most:
            raise RuntimeError("too large")
        self.classes_, self.rows_ = np.unique(y), len(x)
        return self

    def predict(self, x: Any) -> Any:
        return np.full(len(x), self.classes_[0])

    def score(self, x: Any, y: Any) -> float:
        return float(-((self.a - 0.3) ** 2) + 10.0 / self.rounds)


A = {"a": (0.0, 1.0)}


def search_of(**more: Any) -> GPMISearchCV:
    arguments: dict[str, Any] = {"n_iter": 25, "cv": 2, "random_state": 0, "resource": "rounds", **more}
    return GPMISearchCV(Boosted(), A, **arguments)


# Who wins


def test_only_rows_with_the_largest_resources_win_and_the_estimator_is_fitted_with_them() -> None:
    search = search_of().fit(X, Y)
    results = search.cv_results_
    used = results["n_resources"]
    assert set(used) == {3, 10, 30, 90} and len(used) == 25
    assert used[search.best_index_] == 90 and search.best_params_["rounds"] == 90
    assert search.best_estimator_.rounds == 90 and search.best_score_ == pytest.approx(10.0 / 90.0, abs=1e-3)
    assert results["mean_test_score"].max() > search.best_score_  # with fewer rounds, and no matter
    assert list(results["param_rounds"]) == list(used)
    at_target, ranks = used == 90, results["rank_test_score"]
    assert sorted(ranks[at_target])[0] == 1 and ranks[at_target].max() < ranks[~at_target].min()
    for part in (at_target, ~at_target):
        scores = results["mean_test_score"][part]
        assert all(
            (scores > one).sum() == rank - ranks[part].min() for one, rank in zip(scores, ranks[part], strict=True)
        )
    assert search.optimizer_.best.y == search.best_score_


def test_without_a_resource_there_is_no_such_column() -> None:
    search = GPMISearchCV(Boosted(), A, n_iter=3, cv=2, random_state=0).fit(X, Y)
    assert "n_resources" not in search.cv_results_


@pytest.mark.parametrize("n_iter", [1, 2, 5])
@pytest.mark.parametrize("n_points", [1, 3])
def test_even_a_short_search_has_one_row_that_can_win(n_iter: int, n_points: int) -> None:
    search = search_of(n_iter=n_iter, n_points=n_points).fit(X, Y)
    assert len(search.cv_results_["n_resources"]) == n_iter
    assert search.best_params_["rounds"] == 90


def test_a_function_as_refit_must_choose_a_row_with_the_largest_resources() -> None:
    search_of(refit=lambda results: int(np.flatnonzero(results["n_resources"] == 90)[0])).fit(X, Y)
    with pytest.raises(ValueError, match="refit returns 0, a row of cv_results_ with n_resources 3; choose one with"):
        search_of(refit=lambda results: 0).fit(X, Y)


def test_several_metrics_are_ranked_alike() -> None:
    search = GPMISearchCV(
        LogisticRegression(max_iter=90), C, n_iter=8, cv=2, random_state=0, resource="max_iter",
        scoring=["accuracy", "f1_macro"], refit="f1_macro", min_resources=10,
    )  # fmt: skip
    with np.errstate(all="ignore"), pytest.warns(UserWarning):  # few iterations do not converge
        search.fit(X, Y)
    for metric in ("accuracy", "f1_macro"):
        ranks, used = search.cv_results_[f"rank_test_{metric}"], search.cv_results_["n_resources"]
        assert ranks[used == 90].max() < ranks[used != 90].min()


# What is spent


def test_a_cost_counts_evaluations_with_the_largest_resources() -> None:
    search = search_of(cost=6.0, n_iter=1).fit(X, Y)
    spent = search.cv_results_["n_resources"].sum() / 90
    assert 6.0 - 1e-9 <= spent <= 7.0 and len(search.cv_results_["n_resources"]) > 8


def test_a_cost_of_one_is_one_full_evaluation() -> None:
    search = search_of(cost=1.0).fit(X, Y)
    assert list(search.cv_results_["n_resources"]) == [90]


def test_verbose_lines_have_the_resources_and_the_cost(capsys: Any) -> None:
    search_of(cost=2.0, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert all(
        re.match(r"\[\d+, cost [\d.]+/2\] score \S+ at rounds=\d+, best (none|\S+), time left", one) for one in lines
    )
    assert lines[-1].endswith("time left 0:00:00")


def test_a_finite_space_ends_when_every_setting_was_at_the_largest_resources() -> None:
    search = GPMISearchCV(Boosted(), {"a": [0.0, 0.5, 1.0]}, n_iter=50, cv=2, random_state=0, resource="rounds").fit(
        X, Y
    )
    assert search.reason_ == "space exhausted"
    rows = [(row["a"], row["rounds"]) for row in search.cv_results_["params"]]
    assert len(set(rows)) == len(rows) and {(0.0, 90), (0.5, 90), (1.0, 90)} <= set(rows)


# Failures


@pytest.mark.filterwarnings("ignore")
def test_failing_settings_teach_and_if_nothing_reaches_the_target_it_raises() -> None:
    search = GPMISearchCV(Boosted(limit=0.6), A, n_iter=25, cv=2, random_state=0, resource="rounds").fit(X, Y)
    assert search.best_params_["a"] == pytest.approx(0.3, abs=0.05)
    assert any(trial.status == "failed" for trial in search.optimizer_.trials)
    with pytest.raises(ValueError, match="fits failed"):
        GPMISearchCV(Boosted(at_most=50), A, n_iter=25, cv=2, random_state=0, resource="rounds").fit(X, Y)


# Rows as the resource


def test_rows_are_a_resource_and_the_last_fit_has_all_of_them() -> None:
    search = GPMISearchCV(Boosted(), A, n_iter=20, cv=3, random_state=0, resource="n_samples").fit(X, Y)
    assert set(search.cv_results_["n_resources"]) == {50, 150}  # at least two of each class in each fold
    assert search.best_estimator_.rows_ == 150 and "n_samples" not in search.best_params_
    search = GPMISearchCV(
        SVC(), C, n_iter=12, cv=3, random_state=0, resource="n_samples", min_resources=15, max_resources=135
    ).fit(X, Y)
    assert set(search.cv_results_["n_resources"]) == {15, 45, 135} and search.best_score_ > 0.9


def test_smaller_samples_are_within_larger_ones_and_have_every_class() -> None:
    base, y = StratifiedKFold(3), np.array([0] * 100 + [1] * 20 + [2] * 3)
    x = np.zeros((len(y), 1))
    before: list[set[int]] = [set()] * 3
    for share in (0.05, 0.1, 0.5, 1.0):
        folds = list(Subsample(base, share, 7, True).split(x, y))
        again = list(Subsample(base, share, 7, True).split(x, y))
        for (train, test), (same, _), (whole, tested), smaller in zip(
            folds, again, base.split(x, y), before, strict=True
        ):
            assert np.array_equal(train, same) and np.array_equal(test, tested)
            assert smaller <= set(train) <= set(whole) and len(train) == round(share * len(whole))
            assert set(y[train]) == {0, 1, 2}
        before = [set(train) for train, _ in folds]


def test_rows_of_a_regression() -> None:
    x, y = make_regression(90, 4, noise=5.0, random_state=0)
    search = GPMISearchCV(
        Ridge(), {"alpha": gpmi.Real(1e-3, 1e3, log=True)}, n_iter=12, cv=3, random_state=0, resource="n_samples"
    )
    assert not is_classifier(search) and search.fit(x, y).best_score_ > 0.9
    assert np.array_equal(clone(search).fit(x, y).cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])


# Names and numbers


def test_a_resource_inside_a_pipeline_and_in_branches() -> None:
    pipe = Pipeline([("scale", StandardScaler()), ("model", SVC())])
    branches = [
        {"model": [RandomForestClassifier(random_state=0)], "model__max_depth": gpmi.Int(1, 4)},
        {"model": [GradientBoostingClassifier(random_state=0)], "model__learning_rate": (0.01, 1.0)},
    ]
    search = GPMISearchCV(
        pipe, branches, n_iter=8, cv=2, random_state=0, resource="model__n_estimators", max_resources=9, min_resources=3
    ).fit(X, Y)
    assert search.best_estimator_["model"].n_estimators == 9 and search.best_score_ > 0.85


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"resource": "round"}, "resource is 'round', which the estimator Boosted does not have; give 'rounds'"),
        ({"resource": "colour"}, "give one of its parameters, or 'n_samples'"),
        ({"resource": 3}, "resource is 3; give the name of a parameter"),
        ({"resource": "a"}, "resource is 'a', which search_spaces has as well; leave it out there"),
        ({"resource": "limit"}, "limit of the estimator is no whole number above 1; give max_resources"),
        ({"min_resources": 90}, "min_resources is 90; give one below max_resources, 90"),
        ({"max_resources": 1}, "max_resources is 1; give a whole number of at least 2"),
        ({"max_resources": 9.5}, "max_resources is 9.5; give a whole number"),
        ({"resource": "n_samples", "max_resources": 151}, "max_resources is 151; give a whole number of at most 150"),
        ({"resource": None, "max_resources": 9}, "max_resources is 9, but resource is left out; give resource, too"),
        ({"resource": None, "cost": 9}, "cost is 9, but resource is left out; give resource, too"),
        ({"cost": 0.5}, "cost is 0.5; give at least 1"),
        ({"cost": "much"}, "cost is 'much'"),
    ],
)  # fmt: skip
def test_wrong_resources_are_refused_with_a_remedy(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        search_of(**arguments).fit(X, Y)


def test_every_branch_must_have_the_resource() -> None:
    pipe = Pipeline([("model", SVC())])
    branches = [{"model": [RandomForestClassifier()], "model__max_depth": gpmi.Int(1, 4)}, {"model__C": (0.1, 1.0)}]
    with pytest.raises(ValueError, match="of a branch of search_spaces does not have"):
        GPMISearchCV(pipe, branches, cv=2, resource="model__n_estimators").fit(X, Y)


@pytest.mark.parametrize(
    ("smallest", "largest", "levels"),
    [(1, 27, (1, 3, 9, 27)), (10, 100, (11, 33, 100)), (80, 100, (80, 100)), (1, 2, (1, 2)), (1, 3, (1, 3))],
)
def test_each_level_is_three_times_the_one_below(smallest: int, largest: int, levels: tuple[int, ...]) -> None:
    assert _levels(smallest, largest) == levels
