"""One run of one algorithm on one finite set, with a known prior: mu and var at every candidate, query by query.

The queries are those of `gpmi.Optimizer` (tests/paper/test_paper.py). The cost is much lower, because the covariances
are known beforehand. The posterior is summed element by element and in a fixed order, not by BLAS, whose last
digit depends on the processor. That matters: without noise the scores next to the incumbent are rounding
errors, and another digit is another query. (Where a long double is a double, as on Windows,
exponentials may still differ: `_covariance`.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from gpmi._support.types import Array
from gpmi.gp.kernels import RBF, Kernel
from gpmi.policies import Policy, Reinvest, State
from gpmi.policies.promises import NONE, account
from paper.tasks.task import Task

_JITTER = 1e-8  # of the mean variance, added so that a draw exists where the prior is singular; our choice


@dataclass(frozen=True, eq=False)
class Problem:
    """f on a finite set with its prior; what is observed is f plus noise of standard deviation noise_sd."""

    prior: Callable[[slice], Array]  # rows of the covariance of the candidates, (k, m)
    var: Array  # (m,), its diagonal
    values: Array  # (m,), f without noise
    noise_sd: float
    noise_var: float  # of the model

    @staticmethod
    def of(task: Task) -> Problem:
        """A task whose prior is given."""
        assert task.kernel is not None and task.noise_var is not None
        kernel, x = task.kernel, task.candidates
        return Problem(
            lambda rows: _covariance(kernel, x[rows], x), kernel.diagonal(x), task.values, task.noise_sd, task.noise_var
        )

    @staticmethod
    def given(covariance: Array, values: Array, noise_sd: float, noise_var: float) -> Problem:
        """A covariance (m, m) that is known as a whole."""
        return Problem(lambda rows: covariance[rows], covariance.diagonal(), values, noise_sd, noise_var)

    def row(self, i: int) -> Array:
        """The covariances with candidate i, (m,), computed once."""
        if i not in self._known:
            self._known[i] = self.prior(slice(i, i + 1))[0]
        return self._known[i]

    @cached_property
    def _known(self) -> dict[int, Array]:
        return {}

    @cached_property
    def root(self) -> Array:
        """The triangular root of the covariance of all candidates, for draws of f. O(m^3), once."""
        return triangular_root(self.prior(slice(None)))


def triangular_root(covariance: Array) -> Array:
    """L with L L^T = covariance + _JITTER of its mean variance: O(m^3), half a second for m = 1000.

    Not `linalg.Factor`, because LAPACK's last digit depends on the processor.
    """
    rest = covariance + _JITTER * float(covariance.diagonal().mean()) * np.eye(len(covariance))
    root = np.zeros_like(rest)
    for j in range(len(rest)):
        column = rest[j:, j] / math.sqrt(rest[j, j])
        root[j:, j] = column
        rest[j + 1 :, j + 1 :] -= column[1:, None] * column[1:]
    return root


def prior_draw(root: Array, rng: np.random.Generator) -> Array:
    """L z with z ~ N(0, I)."""
    f: Array = np.add.reduce(root.T * rng.standard_normal(len(root))[:, None], axis=0)
    return f


def _covariance(kernel: Kernel, x: Array, z: Array) -> Array:
    """k(x, z), with the exponential of the squared exponential rounded once, from long doubles.

    The priors of the noise-free tasks are nearly singular, and processors differ in the last digit of an exponential.
    """
    if not isinstance(kernel, RBF):
        return kernel(x, z)
    scale = np.asarray(kernel.lengthscale)
    r2 = cdist(x / scale, z / scale, "sqeuclidean")
    rounded: Array = kernel.known_variance * np.exp(-0.5 * r2.astype(np.longdouble)).astype(float)
    return rounded


@dataclass(eq=False)
class Run:
    """mu and var at all m candidates after the queries so far. A query costs O(n m)."""

    problem: Problem
    rng: np.random.Generator
    initial: int  # the number of random observations at the beginning, which no algorithm chose
    length: int  # queries in all
    queries: list[int] = field(default_factory=list)
    mu: Array = field(init=False)
    var: Array = field(init=False)

    def __post_init__(self) -> None:
        m = len(self.problem.values)
        self.mu, self.var = np.zeros(m), self.problem.var.copy()
        self._draws = self.rng.spawn(1)[0]  # so that the noise is the same for every algorithm
        self._whitened = np.empty((self.length, m))  # L^-1 K
        self._products = np.empty((self.length, m))  # room for the terms of a sum
        self._rows = np.empty(self.length, dtype=np.intp)  # the queries
        self._y = np.empty(self.length)
        self._predicted = np.empty((4, self.length))  # mu, var, pivot and surprise of each query

    def observe(self, i: int) -> None:
        """Query candidate i: Equations 1 and 2 at every candidate, by one more row of L^-1 K.

        `gpmi.gp.tracking.next_row` computes the same row by BLAS, whose last digit depends on the processor; here the
        sum has a fixed order (see the top of this module).
        """
        problem, n = self.problem, len(self.queries)
        y = problem.values[i]
        if problem.noise_sd > 0.0:
            y += problem.noise_sd * self.rng.standard_normal()
        var = float(self.var[i])
        pivot = math.sqrt(var + problem.noise_var)
        before = self._whitened[:n]
        explained = np.add.reduce(np.multiply(before, before[:, i, None], out=self._products[:n]), axis=0)
        row = (problem.row(i) - explained) / pivot
        surprise = (y - self.mu[i]) / pivot
        self._whitened[n], self._rows[n], self._y[n] = row, i, y
        self._predicted[:, n] = self.mu[i], var, pivot, surprise
        self.mu = self.mu + row * surprise
        self.var = np.maximum(self.var - row * row, 0.0)
        self.queries.append(i)

    @property
    def y(self) -> Array:
        """What was observed at every query. (n,)"""
        return self._y[: len(self.queries)]

    @property
    def queried_var(self) -> Array:
        """sigma_s^2(x_s), before y_s, of every query. (n,)"""
        return self._predicted[1, : len(self.queries)]

    def state(self, horizon: int | None, with_promises: bool = True) -> State:
        """What a policy may know before its next query. The account of promises, O(n), is for those that read it."""
        n, first = len(self.queries), self.initial
        mu, var, pivot, surprise = self._predicted[:, :n]
        return State(
            t=n - first + 1,
            gamma_hat=float(np.add.accumulate(var[first:])[-1]) if n > first else 0.0,
            noise_var=self.problem.noise_var,
            best_observed=float(self.y.max()) if n else 0.0,
            best_mean=float(self.mu[self._rows[:n]].max()) if n else 0.0,
            size=len(self.mu),
            dim=0,
            horizon=horizon,
            promises=account(mu, var, pivot, surprise, np.arange(n) >= first) if with_promises else NONE,
        )

    def draw(self) -> Array:
        """f ~ the posterior at all candidates: a draw of the prior, corrected at the queries (Matheron). O(m^2)."""
        problem, n = self.problem, len(self.queries)
        prior = prior_draw(problem.root, self._draws)
        if n == 0:
            return prior
        off = prior[self._rows[:n]] + math.sqrt(problem.noise_var) * self._draws.standard_normal(n)
        solved, lower = np.empty(n), self._whitened[:n, self._rows[:n]]  # lower[s] is column s of L
        for s in range(n):
            solved[s] = off[s] / self._predicted[2, s]
            off[s + 1 :] -= solved[s] * lower[s, s + 1 :]
        f: Array = prior + self.mu - np.add.reduce(self._whitened[:n] * solved[:, None], axis=0)
        return f


Scores = Callable[[Run], Array]  # what is maximised next, at all candidates


def scores(policy: Policy, horizon: int | None) -> Scores:
    """The scores of a policy that was told the horizon, or was not."""
    if policy.joint:
        return Run.draw
    with_promises = isinstance(policy, Reinvest)
    return lambda run: policy.score(run.mu, run.var, run.state(horizon, with_promises))


def simulate(problem: Problem, scores: Scores, rng: np.random.Generator, initial: int, horizon: int) -> list[int]:
    """The `horizon` queries that maximise the scores, after `initial` random ones. A tie goes to the lowest row."""
    run = Run(problem, rng, initial, initial + horizon)
    for i in rng.choice(len(problem.values), initial, replace=False):
        run.observe(int(i))
    for _ in range(horizon):
        run.observe(int(np.argmax(scores(run))))
    return run.queries[initial:]
