"""scikit-learn: tune an estimator or a pipeline by cross-validation. Needs scikit-learn.

`GPMISearchCV` replaces GridSearchCV and RandomizedSearchCV: the same arguments, the same results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

try:
    from sklearn.base import is_classifier
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state, get_tags
    from sklearn.utils.validation import _num_samples
except ImportError as error:
    raise ImportError("this needs scikit-learn: pip install scikit-learn") from error

from gpmi._support import checks
from gpmi._support.text import clock, rounded
from gpmi.analysis.ledger import Ledger
from gpmi.integrations.resources import COLUMN, SAMPLES, Resource
from gpmi.optimizer import Optimizer
from gpmi.policies import Aim
from gpmi.run import Rule, checked_rule, checked_stop
from gpmi.space import Choice, Int, Real, SpaceExhausted, named_parameters
from gpmi.trials import Trial

BRANCH = "branch of search_spaces"  # the parameter that selects a dict of the list
FAILED = "fits failed"  # in scikit-learn's message when all fits of a call failed


class GPMISearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search for the parameters of an estimator with the best score in cross-validation, by a Gaussian process.

    It has the attributes of RandomizedSearchCV (best_params_, best_score_, best_estimator_, cv_results_, ...) and those
    below.

    Parameters
    ----------
    estimator : the estimator or pipeline.
    search_spaces : a dict of parameter names with their domains: gpmi.Real(1e-3, 1e3, log=True), gpmi.Int(1, 8),
        (0.0, 1.0), a list of options, estimators among them, a constant, or one of SciPy's loguniform, uniform
        and randint. A parameter may have a condition: gpmi.Real(0.0, 1.0, when={"kernel": "rbf"}). Or a list of such
        dicts, of which one is chosen: the branches of a pipeline.
    n_iter : the number of settings to evaluate, at most.
    n_points : how many of them to evaluate at the same time. With n_jobs, a call runs n_points times folds fits.
    verbose : 1 prints a line for each setting: its score, the best, and the time left. More is as in scikit-learn.
    scoring, n_jobs, refit, cv, pre_dispatch, error_score, return_train_score : as those of RandomizedSearchCV.
        With several metrics `refit` is the name of the one that is maximised.
    random_state : the seed.
    stop : a rule of gpmi.stopping that may end the search before n_iter.
    aim : "find", the best setting at the end, or "earn", good settings all along.
    resource : what makes an evaluation cheaper and less exact: a parameter of the estimator, such as "n_estimators", or
        "n_samples", the rows to train on. Evaluations are then at levels of it, each three times the one below. Those
        with max_resources alone count for the best setting; cv_results_ has the others, too, with their `n_resources`.
    min_resources, max_resources : the smallest and the largest level. By default the largest is what the estimator has,
        or all rows, and there are three levels below it. `refit` has the largest, with "n_samples" all rows.
    cost : what to spend, instead of n_iter: the number of evaluations with max_resources. Others cost their share.

    Attributes
    ----------
    optimizer_ : the gpmi.Optimizer, with a trial for each setting. Settings whose fits fail are failed trials; if all
        fits of a call fail, its settings are missing from cv_results_, but not here.
    ledger_ : what is known, and how certain it is.
    reason_ : why the search ended.
    """

    verbose: int

    def __init__(
        self,
        estimator: Any,
        search_spaces: Any,
        *,
        n_iter: int = 50,
        n_points: int = 1,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        random_state: Any = None,
        stop: Rule | None = None,
        aim: Aim = "find",
        resource: str | None = None,
        min_resources: int | None = None,
        max_resources: int | None = None,
        cost: float | None = None,
    ) -> None:
        self.search_spaces = search_spaces
        self.n_iter = n_iter
        self.n_points = n_points
        self.random_state = random_state
        self.stop = stop
        self.aim = aim
        self.resource = resource
        self.min_resources = min_resources
        self.max_resources = max_resources
        self.cost = cost
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = get_tags(self.estimator).target_tags.multi_output
        return tags

    @property
    def ledger_(self) -> Ledger:
        """The ledger of the search."""
        ledger = self.optimizer_.ledger
        assert isinstance(ledger, Ledger)
        return ledger

    def fit(self, X: Any, y: Any = None, **params: Any) -> GPMISearchCV:
        """Search for the best parameters, and fit the estimator with them on all data."""
        if self.resource == SAMPLES:
            self._rows, self._classes = _num_samples(X), 1
            if is_classifier(self.estimator) and y is not None:
                self._classes = len(np.unique(np.asarray(y)))
        super().fit(X, y, **params)
        return self

    def _run_search(self, evaluate_candidates: Callable[..., Mapping[str, Any]]) -> None:
        n_points = checks.whole("n_points", self.n_points, 1)
        rule = None if self.stop is None else checked_rule(self.stop)
        branches = Branches.of(self.search_spaces)
        resource, spec = self._resource(branches), dict(branches.spec)
        if resource is not None:
            spec[resource.name], self._target = resource.fidelity, resource.target
        n_iter, cost = self._limits(resource)
        seed = int(check_random_state(self.random_state).randint(2**31))
        self.optimizer_ = opt = Optimizer(spec, aim=self.aim, budget=n_iter, repeats=False, seed=seed)
        self.reason_, begin, failure = "budget", time.perf_counter(), None
        spending = SearchCost(opt, resource, n_iter, cost)
        while spending.left > 0:
            try:
                points = spending.ask(n_points)
            except SpaceExhausted:
                self.reason_ = "space exhausted"
                break
            for group in spending.groups(points):
                try:
                    scores = self._scores(self._evaluate(evaluate_candidates, group, branches, resource, seed), group)
                except ValueError as error:
                    if FAILED not in str(error) or self.error_score == "raise":
                        raise
                    failure, scores = error, [np.nan] * len(group)
                for trial, score in zip(group, scores, strict=True):
                    if np.isfinite(score):
                        opt.tell(trial, score)
                    else:
                        opt.fail(trial, why=f"its score is {score}")
                    if self.verbose > 0:
                        print(_progress_line(opt, trial, score, spending, time.perf_counter() - begin))
            if rule is not None and (ended := checked_stop(rule, rule.stop(opt, time.perf_counter() - begin))):
                self.reason_ = ended.reason
                break
        if failure is not None and opt.best is None:
            raise failure  # as every other search of scikit-learn does

    def _resource(self, branches: Branches) -> Resource | None:
        """Return the resource, if there is one; refuse arguments that need one."""
        if self.resource is None:
            for name in ("min_resources", "max_resources", "cost"):
                if (value := getattr(self, name)) is not None:
                    raise ValueError(f"{name} is {checks.shown(value)}, but resource is left out; give resource, too")
            return None
        names = {name for to_estimator in branches.names for name in to_estimator.values()}
        names |= {name for constants in branches.constants for name in constants}
        rows = least = 0
        if self.resource == SAMPLES:  # as in scikit-learn, two rows of each class in each fold
            rows, least = self._rows, 2 * self.n_splits_ * self._classes
        return Resource.of(self, branches.constants, names, rows, least)

    def _limits(self, resource: Resource | None) -> tuple[int | None, float | None]:
        """Return the number of evaluations and what to spend, of which one is None."""
        if self.cost is None:
            return checks.whole("n_iter", self.n_iter, 1), None
        cost = checks.number("cost", self.cost, "give a number of at least 1")
        if cost < 1.0:
            raise ValueError(f"cost is {cost:g}; give at least 1, one evaluation with max_resources")
        return None, cost

    def _evaluate(
        self,
        evaluate: Callable[..., Mapping[str, Any]],
        group: Sequence[Trial],
        branches: Branches,
        resource: Resource | None,
        seed: int,
    ) -> Any:
        """Evaluate settings, all with the same resources."""
        settings = [branches.params(dict(trial.x)) for trial in group]
        if resource is None:
            return self._evaluated(evaluate, settings)
        level = dict(group[0].x)[resource.name]
        settings = [resource.params(setting, level) for setting in settings]
        splitter = resource.splitter(self._checked_cv_orig, level, seed, is_classifier(self.estimator))
        return self._evaluated(evaluate, settings, cv=splitter, more_results={COLUMN: [level] * len(group)})

    def _format_results(self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None) -> Any:
        """Rank what has the largest resources first: nothing else is compared with it."""
        results = super()._format_results(candidate_params, n_splits, out, more_results)
        if COLUMN in results:
            is_target = results[COLUMN] == self._target
            for name in [name for name in results if name.startswith("rank_test_")]:
                order = np.lexsort([results[name], ~is_target])
                keys = np.stack([~is_target, results[name]], axis=1)[order]
                is_new = np.concatenate([[True], np.any(keys[1:] != keys[:-1], axis=1)])
                ranks = np.maximum.accumulate(np.where(is_new, np.arange(len(order)) + 1, 0))
                results[name] = ranks[np.argsort(order)].astype(np.int32)
        return results

    def _select_best_index(self, refit: Any, refit_metric: str, results: Mapping[str, Any]) -> Any:
        index = super()._select_best_index(refit, refit_metric, results)
        if COLUMN in results and results[COLUMN][index] != self._target:
            level = results[COLUMN][index]
            remedy = f"choose one with {COLUMN} {self._target}"
            raise ValueError(f"refit returns {index}, a row of cv_results_ with {COLUMN} {level}; {remedy}")
        return index

    def _evaluated(self, evaluate: Callable[..., Mapping[str, Any]], candidates: Any, **options: Any) -> Any:
        """Evaluate candidates without scikit-learn's own line, which is the same for each call."""
        verbose, self.verbose = self.verbose, 0  # what a fit prints if verbose > 1 was decided before
        try:
            return evaluate(candidates, **options)
        finally:
            self.verbose = verbose

    def _scores(self, results: Mapping[str, Any], group: Sequence[Trial]) -> list[float]:
        """Return the mean scores of the last settings."""
        name = f"mean_test_{self.refit if isinstance(self.refit, str) else 'score'}"
        if name not in results:
            metrics = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
            raise ValueError(
                f"refit is {self.refit!r}; with several metrics, give the one to maximise, one of {metrics}"
            )
        return [float(score) for score in results[name][-len(group) :]]


class SearchCost:
    """What a search has spent of its evaluations, or of its cost, and what it evaluates next."""

    def __init__(self, opt: Optimizer, resource: Resource | None, n_iter: int | None, cost: float | None) -> None:
        self.opt, self.resource, self.n_iter, self.cost = opt, resource, n_iter, cost

    def level(self, trial: Trial) -> int | None:
        """Return the resources of a trial."""
        return None if self.resource is None else int(dict(trial.x)[self.resource.name])

    @property
    def spent(self) -> float:
        """The number of evaluations, or their cost, in evaluations with the largest resources."""
        if self.cost is None or self.resource is None:
            return len(self.opt.trials)
        return float(sum(self.level(trial) or 0 for trial in self.opt.trials)) / self.resource.target

    @property
    def left(self) -> float:
        limit = self.cost if self.n_iter is None else self.n_iter
        assert limit is not None
        return limit - self.spent - 1e-9 * (self.cost is not None)  # sums of shares are not exact

    def ask(self, n_points: int) -> list[Trial]:
        """Return the next trials. The last of all has the largest resources if no other one has."""
        count = n_points if self.n_iter is None else min(n_points, round(self.left))
        if self.resource is not None and not any(
            self.level(trial) == self.resource.target for trial in self.opt.trials
        ):
            count = count if self.n_iter is None else min(n_points, round(self.left) - 1)
            if count < 1 or (self.cost is not None and self.left <= 1.0):
                has_values = any(trial.y is not None for trial in self.opt.trials)
                best = dict(self.opt.recommend()) if has_values else {}
                self.opt.ask(fixed={**best, self.resource.name: self.resource.target})
                return list(self.opt.pending)
        self.opt.ask(count)
        return list(self.opt.pending)

    def groups(self, trials: Sequence[Trial]) -> list[list[Trial]]:
        """Return the trials in groups with the same resources."""
        groups: dict[int | None, list[Trial]] = {}
        for trial in trials:
            groups.setdefault(self.level(trial), []).append(trial)
        return list(groups.values())


def _progress_line(opt: Optimizer, trial: Trial, score: float, spending: SearchCost, seconds: float) -> str:
    """Return a line about a candidate: its score, the best one, and the time left at the mean speed so far."""
    done = sum(trial.status != "pending" for trial in opt.trials)
    shown = f"score {rounded(score)}" if np.isfinite(score) else "failed"
    if spending.resource is not None:
        shown += f" at {spending.resource.name}={spending.level(trial)}"
    best = "none" if opt.best is None else rounded(opt.best.y)
    if spending.n_iter is None:
        left = clock(seconds / spending.spent * max(0.0, spending.left))
        return (
            f"[{done}, cost {rounded(spending.spent)}/{rounded(spending.cost)}] {shown}, best {best}, time left {left}"
        )
    left = clock(seconds / done * (spending.n_iter - done))
    return f"[{done:>{len(str(spending.n_iter))}}/{spending.n_iter}] {shown}, best {best}, time left {left}"


# Search spaces


@dataclass(frozen=True)
class Branches:
    """Several dicts of parameters as one space with a choice between them; shared parameters appear once."""

    spec: dict[str, Any]
    names: tuple[dict[str, str], ...]  # for each branch: name in the space -> name in the estimator
    constants: tuple[dict[str, Any], ...]  # for each branch: its constants

    @staticmethod
    def of(search_spaces: Any) -> Branches:
        """Build the space from a dict or a list of dicts."""
        given = [search_spaces] if isinstance(search_spaces, Mapping) else search_spaces
        remedy = "give a dict of names and what they may be, or a list of such dicts"
        if not isinstance(given, Sequence) or not all(isinstance(branch, Mapping) for branch in given):
            raise TypeError(f"search_spaces is {checks.shown(search_spaces)}; {remedy}")
        if not given:
            raise ValueError(f"search_spaces is empty; {remedy}")
        read = [
            named_parameters({n: _converted(n, v) for n, v in branch.items()}) if branch else {} for branch in given
        ]
        constants = tuple({name: _only(p) for name, p in branch.items() if _is_constant(p)} for branch in read)
        varied = [{name: p for name, p in branch.items() if not _is_constant(p)} for branch in read]
        spec: dict[str, Any] = {BRANCH: Choice(tuple(range(len(given))))} if len(given) > 1 else {}
        names: list[dict[str, str]] = []
        for i, branch in enumerate(varied):
            inner = {name: _name(name, p, i, varied) for name, p in branch.items()}
            for name, p in branch.items():
                spec[inner[name]] = _placed(p, inner, constants[i], _shared(name, p, varied))
            names.append({there: name for name, there in inner.items()})
        if not spec:
            raise ValueError(
                f"search_spaces is {checks.shown(search_spaces)}, which leaves nothing to choose; {remedy}"
            )
        return Branches(spec, tuple(names), constants)

    def params(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the estimator at a point."""
        branch = point.get(BRANCH, 0)
        chosen = {name: point[there] for there, name in self.names[branch].items() if there in point}
        return {**self.constants[branch], **chosen}


def _shared(name: str, parameter: Any, varied: Sequence[Mapping[str, Any]]) -> list[int] | None:
    """Return the branches that share this parameter; None if all do."""
    having = [i for i, branch in enumerate(varied) if name in branch and branch[name] == parameter]
    return None if len(having) == len(varied) else having


def _name(name: str, parameter: Any, i: int, varied: Sequence[Mapping[str, Any]]) -> str:
    """Return the name of a parameter of branch i in the space, numbered by its first branch where others differ."""
    having = _shared(name, parameter, varied)
    differs = any(name in branch and branch[name] != parameter for branch in varied)
    return f"{name} [{having[0]}]" if differs and having is not None else name


def _placed(parameter: Any, inner: Mapping[str, str], constants: Mapping[str, Any], having: list[int] | None) -> Any:
    """Return the parameter with its conditions: its own, and the choice of its branches."""
    conditions = {inner[name]: value for name, value in (parameter.when or {}).items() if name in inner}
    for name in parameter.when or {}:
        if name not in inner and name not in constants:
            raise ValueError(f"when names {name!r}, which is not a parameter of the same dict; it has {list(inner)}")
        if name in constants:
            raise ValueError(f"when names {name!r}, which has only one value; leave the condition out")
    when = conditions if having is None else {**conditions, BRANCH: having}
    return replace(parameter, when=when or None)


def _is_constant(parameter: Any) -> bool:
    return bool(parameter.count == 1)


def _only(parameter: Any) -> Any:
    return parameter.decode(parameter.ends[1])


def _converted(name: str, value: Any) -> Any:
    """Convert what other searches accept: arrays of options, and three of SciPy's distributions."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value.tolist()
    if isinstance(value, tuple) and len(value) == 2 and all(type(end) is int for end in value):  # not bool
        lo, hi = value
        raise ValueError(
            f"search_spaces has {name}: {value}, which may mean integers or reals; give gpmi.Int({lo}, {hi}) or "
            f"({float(lo)}, {float(hi)})"
        )
    kind = getattr(getattr(value, "dist", None), "name", None)
    if kind is None:
        return value
    lo, hi = value.support()
    if kind in ("loguniform", "reciprocal"):
        return Real(float(lo), float(hi), log=True)
    if kind == "uniform":
        return Real(float(lo), float(hi))
    if kind == "randint":
        return Int(int(lo), int(hi))
    raise ValueError(f"search_spaces has {name}: the distribution {kind}; give gpmi.Real, gpmi.Int or a list instead")
