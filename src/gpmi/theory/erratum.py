"""The setting in which, by the erratum, the paper's proof works: the learner observes its regret, without noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Numbers
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import Factor, one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import first_best, next_row
from gpmi.policies import GPMI, Policy, State


@dataclass(frozen=True, eq=False)
class RegretRun:
    """T queries of a learner that observes its regret. Every array is (T,); moments are those before query t."""

    rows: Numbers  # x_t
    regret: Array  # r_t = f(x*) - f(x_t)
    expected: Array  # mu_t(x*) - mu_t(x_t), what Lemma 1 takes for E[r_t | r_1, ..., r_{t-1}]
    spread: Array  # ell_t^2 = var[f(x*) - f(x_t)], with the posterior covariance, not the prior k of the paper's Eq. 5
    var: Array  # sigma_t^2(x_t)
    var_star: Array  # sigma_t^2(x*)
    phi_gap: Array  # phi_t(x_t) - phi_t(x*)
    repaired: int  # observations, initial ones included, that needed jitter to keep the covariance positive definite

    @property
    def martingale(self) -> Array:
        """M_t = sum_{s<=t} (r_s - (mu_s(x*) - mu_s(x_s))). (T,)"""
        total: Array = np.cumsum(self.regret - self.expected)
        return total

    @property
    def gamma_hat(self) -> Array:
        """sum_{s<=t} sigma_s^2(x_s) given regrets. (T,)"""
        total: Array = np.cumsum(self.var)
        return total


@one_blas_thread
def observe_regret(
    kernel: Kernel,
    candidates: Array,
    f: Array,
    horizon: int,
    *,
    policy: Policy | None = None,
    knows: Literal["place", "value"] = "place",
    star: int | None = None,
    initial: Sequence[int] = (),
) -> RegretRun:
    """x_t = argmax mu_t + phi_t on candidates (m, d), where r_t = f(x*) - f(x_t) is observed exactly. O(T^2 m).

    In the erratum's setting mu_t(x) = E[f(x) | r_1, ..., r_{t-1}] and sigma_t^2(x) = Var[f(x) | r_1, ..., r_{t-1}].
    It has no noise: noisy regrets would again not determine M_T. A regret is about two points, so the moments depend on
    what the learner knows of x*:

    - knows="place", the erratum taken literally: x* is fixed, and the model knows where it is, because it needs
      cov[r_t, f(x)] = k(x*, x) - k(x_t, x). If x* was chosen before f is drawn, M_T is a martingale with Gaussian
      increments. If x* is the maximiser of f, M_T is not a martingale, because its mean is not 0. And a learner that
      knows the place could query it at once.
    - knows="value": the learner knows f(x*) but not x*, so r_t tells it f(x_t) exactly. Lemma 1 does not hold:
      mu_t(x*) is not the mean of f(x*) given that x* is the maximiser.

    f (m,) has the true values. star is the row of x*, by default the first maximiser. The rows in `initial` are
    observed first; they count neither as queries nor in gamma_hat. policy is `GPMI()` by default; its phi may depend
    on var, t, gamma_hat and |D|. A tie goes to the lowest row. Nothing is random.
    """
    Posterior.prior(kernel, 0.0)  # refuses what is not a kernel
    z, horizon = checks.points("candidates", candidates, kernel.dim), checks.whole("horizon", horizon, 1)
    values, policy = np.asarray(f, dtype=float), policy or GPMI()
    checks.one_of("knows", knows, ("place", "value"))
    if len(z) == 0 or values.shape != (len(z),) or not np.all(np.isfinite(values)):
        raise ValueError(f"f has shape {values.shape}; give a finite value for each of the {len(z)} candidates")
    if type(policy).phi is Policy.phi:
        raise ValueError(f"policy is {policy!r}; the scheme is mu + phi, so give a policy that defines phi")
    star = int(np.argmax(values)) if star is None else checks.whole("star", star, 0)
    first = [checks.whole("initial", row, 0) for row in initial]
    if max([star, *first]) >= len(z):
        raise ValueError(f"star is {star} and initial is {first}; rows of candidates go up to {len(z) - 1}")
    model = _Exact(kernel, z, star if knows == "place" else None)
    for row in first:
        model.observe(row, values)
    queries: list[_Query] = []
    gamma_hat = 0.0
    for t in range(1, horizon + 1):
        queries.append(_next_query(model, policy, _state(t, gamma_hat, len(z), horizon), values, star))
        gamma_hat += float(queries[-1].var)
        model.observe(queries[-1].row, values)
    columns = {name: np.array([getattr(query, name) for query in queries]) for name in _Query._fields[1:]}
    rows = np.array([query.row for query in queries], dtype=np.intp)
    return RegretRun(rows=rows, **columns, repaired=model.repaired)


class _Query(NamedTuple):
    """One query of a `RegretRun`."""

    row: int
    regret: float
    expected: float
    spread: float
    var: float
    var_star: float
    phi_gap: float


def _state(t: int, gamma_hat: float, size: int, horizon: int) -> State:
    """The state for a policy. The best values are nan, so a phi that depends on them is not finite and is refused."""
    return State(
        t=t,
        gamma_hat=gamma_hat,
        noise_var=0.0,
        best_observed=math.nan,
        best_mean=math.nan,
        size=size,
        dim=0,
        horizon=horizon,
    )


def _next_query(model: _Exact, policy: Policy, state: State, values: Array, star: int) -> _Query:
    """x_t = argmax mu_t + phi_t, and the moments before it is observed."""
    mu, var = model.mu, model.var
    phi = policy.phi(var, state)
    score = mu + phi
    if not np.all(np.isfinite(score)):
        raise ValueError(f"policy is {policy!r}; its phi is not finite. It may depend on var, t, gamma_hat and |D|")
    row = first_best(score)
    return _Query(
        row,
        regret=values[star] - values[row],
        expected=mu[star] - mu[row],
        spread=max(var[star] + var[row] - 2.0 * model.covariance(star, row), 0.0),
        var=var[row],
        var_star=var[star],
        phi_gap=phi[row] - phi[star],
    )


class _Exact:
    """mu and var of f at z (m, d) given exact observations of f(x_s), or of f(x*) - f(x_s) where star is a row.

    V (n, m) = L^-1 cov[observations, f(z)] as in `gpmi.gp.tracking`. A repeated query adds no information: it is
    ignored.
    """

    def __init__(self, kernel: Kernel, z: Array, star: int | None) -> None:
        self.kernel, self.z, self.star = kernel, z, star
        self.mu, self.var, self.repaired = np.zeros(len(z)), kernel.diagonal(z), 0
        self._known: list[int] = [] if star is None else [star]  # f(x*) - f(x*) is 0 and adds no information
        self._observed: list[int] = []
        self._factor, self._whitened, self._v = Factor.empty(), np.empty(0), np.empty((0, len(z)))

    def _covariance_with_f(self, row: int) -> Array:
        """cov[what is observed at a row, f(z)]. (m,)"""
        covariance: Array = self.kernel(self.z[row : row + 1], self.z)[0]
        if self.star is not None:
            covariance = self.kernel(self.z[self.star : self.star + 1], self.z)[0] - covariance
        return covariance

    def _apply(self, values: Array, rows: list[int]) -> Array:
        """What is observed at rows, if f is `values`. It is linear, so it also takes cov[., f] to cov[., observed]."""
        at_rows: Array = values[rows]
        return at_rows if self.star is None else values[self.star] - at_rows

    def observe(self, row: int, values: Array) -> None:
        """Condition on what is observed at a row when f is `values`. O(n m)."""
        if row in self._known:
            return
        across = self._covariance_with_f(row)
        column, variance = self._apply(across, self._observed), float(self._apply(across, [row])[0])
        self._factor, jitter = self._factor.append(column, variance)
        self.repaired += jitter > 0.0
        lower = self._factor.row(self._factor.n - 1)
        v = next_row(across, lower, [self._v])
        white = (float(self._apply(values, [row])[0]) - float(lower[:-1] @ self._whitened)) / lower[-1]
        self.mu, self.var = self.mu + white * v, np.maximum(self.var - v * v, 0.0)
        self._v, self._whitened = np.vstack([self._v, v]), np.append(self._whitened, white)
        self._known.append(row)
        self._observed.append(row)

    def covariance(self, i: int, j: int) -> float:
        """cov[f(z_i), f(z_j)] given what was observed. O(n)."""
        prior = float(self.kernel(self.z[i : i + 1], self.z[j : j + 1])[0, 0])
        return prior - float(self._v[:, i] @ self._v[:, j])
