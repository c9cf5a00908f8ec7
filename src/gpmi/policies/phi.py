"""The choice of the next query: x_t = argmax mu_t(x) + phi_t(x), and rules of other forms with the same interface.

A policy sees neither kernel nor space, only mu and var at a point and the State of the run. It gives a score and the
score's derivatives by mu and by var; `argmax` turns these into gradients by the chain rule. Policies always maximise.

A phi of your own::

    class Optimism(gpmi.Policy):
        def phi(self, var, state):
            return 2.0 * np.sqrt(var)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from gpmi import checks
from gpmi.policies.promises import NONE, Promises
from gpmi.types import Array

TRUST = 0.25  # promises that count as made and kept before the first one: chosen in docs/policy.md's ablations
OF_FAILURE = "it is a probability of failure: give a number between 0 and 1"
_TINY = 1e-300  # keeps a quotient finite where the variance is 0
_FAR = 1e150  # the square of a larger z would overflow


@dataclass(frozen=True)
class State:
    """What a policy may know of the run besides mu and var. Values are oriented so that larger is better."""

    t: int = 1  # the number of this query among those the policy chose, from 1
    gamma_hat: float = 0.0  # sum of sigma_s^2(x_s) over the policy's earlier queries, pending and failed ones included
    noise_var: float = 0.0
    best_observed: float = 0.0  # the largest y told; the prior mean before the first
    best_mean: float = 0.0  # the largest posterior mean at a told point; the prior mean before the first
    size: int = 1  # |D|: the number of points, or of settings of the discrete parameters (1 on a box)
    dim: int = 0  # the number of continuous coordinates, 0 on a finite set
    horizon: int | None = None  # T, the number of queries the policy may choose in all, if the user said so
    promises: Promises = NONE  # what the policy's earlier queries promised, and how much of it was kept


@dataclass(frozen=True)
class Guarantee:
    """What is proven about a policy's regret, or that nothing is, and why."""

    proven: bool
    statement: str
    assumptions: str
    reference: str

    def __str__(self) -> str:
        verdict = "Proven" if self.proven else "Nothing is proven"
        return f"{verdict}: {self.statement} ({self.assumptions}; {self.reference})"


class Policy:
    """x_t = argmax mu_t + phi_t. Subclass it and give `phi`; `slope` is optional.

    Set `grows_with_var = True` if phi never decreases in var: large finite sets are then searched with lazy variances.
    """

    guarantee: ClassVar[Guarantee] = Guarantee(False, "the policy does not say.", "none", "none")
    grows_with_var: ClassVar[bool] = False
    additive: ClassVar[bool] = True  # False: the score is not of the form mu + phi
    joint: ClassVar[bool] = False  # True: the policy maximises a joint draw of f instead of a score

    def phi(self, var: Array, state: State) -> Array:
        """The exploration bonus at points with posterior variance var, element by element."""
        raise NotImplementedError(f"{type(self).__name__} must define phi(self, var, state)")

    def slope(self, var: Array, state: State) -> Array:
        """d phi / d var; by central differences unless a policy knows better."""
        low, high = var * (1.0 - 1e-5), var * (1.0 + 1e-5) + _TINY
        return (self.phi(high, state) - self.phi(low, state)) / (high - low)

    def score(self, mu: Array, var: Array, state: State) -> Array:
        """What is maximised."""
        return mu + self.phi(var, state)

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        """The score, d score / d mu and d score / d var."""
        return self.score(mu, var, state), np.ones_like(mu), self.slope(var, state)


@dataclass(frozen=True)
class GPMI(Policy):
    """phi_t = sqrt(alpha) (sqrt(var + gamma_hat) - sqrt(gamma_hat)), alpha = log(2 / delta): the paper's Algorithm 1.

    alpha, if given, takes the place of log(2 / delta). gamma_hat is the sum of the variances the policy has paid for,
    each taken before its point was observed; the more has been learned, the less is paid for exploration.

    GP-MI has no regret guarantee. The erratum withdraws Lemma 1 and with it every bound of the paper: phi at an
    unqueried point never grows, so GP-MI can settle on a wrong point for ever.
    """

    delta: float = 1e-6
    alpha: float | None = None

    guarantee: ClassVar[Guarantee] = Guarantee(
        False,
        "the paper's bounds R_T <= 5 sqrt(alpha C_1 gamma_T) + 4 sqrt(alpha) are withdrawn: M_T of Lemma 1 is not a "
        "martingale for the observations, and the policy can repeat a wrong point for ever.",
        "the erratum: they would hold if the algorithm observed the instantaneous regret; how far, docs/theory.md",
        "Contal, Perchet, Vayatis 2014, erratum; Scarlett 2018 for a lower bound that contradicts the claimed rate",
    )
    grows_with_var: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.probability("delta", self.delta, OF_FAILURE)
        if self.alpha is not None:
            checks.positive("alpha", self.alpha)

    @property
    def _alpha(self) -> float:
        return float(np.log(2.0 / self.delta)) if self.alpha is None else float(self.alpha)

    def phi(self, var: Array, state: State) -> Array:
        g = state.gamma_hat
        # The same number as in the paper, without the cancellation for var << gamma_hat.
        phi: Array = np.sqrt(self._alpha) * var / np.maximum(np.sqrt(var + g) + np.sqrt(g), _TINY)
        return phi

    def slope(self, var: Array, state: State) -> Array:
        slope: Array = 0.5 * np.sqrt(self._alpha / np.maximum(var + state.gamma_hat, _TINY))
        return slope


@dataclass(frozen=True)
class GPUCB(Policy):
    """phi_t = sqrt(scale beta_t var); scale = 1/5 is what Srinivas et al. used in their experiments.

    On a finite set beta_t = 2 log(|D| t^2 pi^2 / (6 delta)). With d continuous coordinates
    beta_t = 2 log(|D| 2 pi^2 t^2 / (3 delta)) + 2 d log(d t^2 sqrt(log(4 d / delta))), their bound for compact sets in
    units in which the constants a, b and r are 1; |D| counts the settings of the discrete parameters.
    """

    delta: float = 1e-6
    scale: float = 1.0

    guarantee: ClassVar[Guarantee] = Guarantee(
        True,
        "R_T <= sqrt(C_1 T beta_T gamma_T) with probability 1 - delta, C_1 = 8 / log(1 + 1 / noise_var); + 2 on a box.",
        "f drawn from the GP prior, kernel and noise_var known, k <= 1, scale = 1; on a box also smooth samples and a, "
        "b, r as they are, not 1; nothing for mixed spaces",
        "Srinivas, Krause, Kakade, Seeger 2012, Theorems 1 and 2",
    )
    grows_with_var: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.probability("delta", self.delta, OF_FAILURE)
        checks.positive("scale", self.scale)

    def beta(self, state: State) -> float:
        """beta_t, before `scale`."""
        t, d = state.t, state.dim
        if d == 0:
            return 2.0 * (math.log(state.size) + math.log(t**2 * math.pi**2 / (6.0 * self.delta)))
        cover = d * t**2 * math.sqrt(math.log(4.0 * d / self.delta))
        covered = math.log(state.size) + d * math.log(cover)  # math.log: |D| may be too large for a float
        return 2.0 * (covered + math.log(2.0 * math.pi**2 * t**2 / (3.0 * self.delta)))

    def phi(self, var: Array, state: State) -> Array:
        return np.sqrt(self.scale * self.beta(state) * var)

    def slope(self, var: Array, state: State) -> Array:
        return np.sqrt(self.scale * self.beta(state) / np.maximum(var, _TINY)) / 2.0


@dataclass(frozen=True)
class VarianceBonus(Policy):
    """phi_t = sqrt(alpha) / 2 * var, alpha = log(2 / delta): the variant of Corollary 1.

    Unlike the other policies it depends on the units of y, because var is y squared.
    """

    delta: float = 1e-6

    guarantee: ClassVar[Guarantee] = Guarantee(
        False,
        "R_T = O(gamma_T) of Corollary 1 is withdrawn with Theorem 1, from which it follows.",
        "the erratum: it would hold if the algorithm observed the instantaneous regret; how far, docs/theory.md",
        "Contal, Perchet, Vayatis 2014, erratum",
    )
    grows_with_var: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.probability("delta", self.delta, OF_FAILURE)

    def phi(self, var: Array, state: State) -> Array:
        result: Array = 0.5 * np.sqrt(np.log(2.0 / self.delta)) * var
        return result

    def slope(self, var: Array, state: State) -> Array:
        return np.full_like(var, 0.5 * np.sqrt(np.log(2.0 / self.delta)))


_NO_BOUND_FOR_EI = Guarantee(
    False,
    "no bound on the regret with noise that this project has checked; without noise EI finds the optimum of a "
    "function in the kernel's RKHS.",
    "kernel known, exact observations",
    "Bull 2011 for the exact case; Ament et al. 2023 for LogEI, which changes the numerics and proves nothing",
)


@dataclass(frozen=True)
class EI(Policy):
    """EI = E[max(f(x) - b, 0)] = sd h(z), z = (mu - b) / sd, h(z) = pdf(z) + z cdf(z).

    b is the largest observation (incumbent="observed") or the largest posterior mean at a queried point ("mean").
    """

    incumbent: Literal["observed", "mean"] = "observed"

    guarantee: ClassVar[Guarantee] = _NO_BOUND_FOR_EI
    grows_with_var: ClassVar[bool] = True
    additive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checks.one_of("incumbent", self.incumbent, ("observed", "mean"))

    def _standardised(self, mu: Array, var: Array, state: State) -> tuple[Array, Array]:
        """z and sd."""
        best = state.best_observed if self.incumbent == "observed" else state.best_mean
        sd = np.sqrt(np.maximum(var, _TINY))
        return np.clip((mu - best) / sd, -_FAR, _FAR), sd

    def score(self, mu: Array, var: Array, state: State) -> Array:
        z, sd = self._standardised(mu, var, state)
        return sd * np.exp(_log_h(z))

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        from scipy.special import ndtr

        z, sd = self._standardised(mu, var, state)
        return sd * np.exp(_log_h(z)), ndtr(z), _pdf(z) / (2.0 * sd)


@dataclass(frozen=True)
class LogEI(EI):
    """log EI: the same argmax as EI, with gradients that do not vanish where EI underflows."""

    def score(self, mu: Array, var: Array, state: State) -> Array:
        z, sd = self._standardised(mu, var, state)
        return np.log(sd) + _log_h(z)

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        from scipy.special import log_ndtr

        z, sd = self._standardised(mu, var, state)
        log_h = _log_h(z)
        with np.errstate(over="ignore", invalid="ignore"):
            by_mu = np.exp(log_ndtr(z) - log_h) / sd
            by_var = np.exp(_log_pdf(z) - log_h) / (2.0 * sd * sd)
        return np.log(sd) + log_h, np.nan_to_num(by_mu), np.nan_to_num(by_var)


@dataclass(frozen=True)
class Reinvest(Policy):
    """phi_t = k_t min(sqrt(alpha_t) sd, c H_t EI(x; best posterior mean)), alpha_t = log(2 t^2 / delta): the default.

    Exploration is an investment, and the ledger is its account.
    - sqrt(alpha_t) sd is what GP-MI pays when its gamma_hat starts anew; it grows slowly, so nothing is given up.
    - c H_t EI is what the investment can bring back: the gain EI promises, enjoyed by the H_t queries that are left.
      H_t = T - t + 1 with a horizon T; without one, or beyond it, H_t = t: a run is expected to last as long again.
    - k_t = (1/4 + kept) / (1/4 + made), between `floor` and 1, is the share of the model's promises that were kept so
      far (`gpmi.policies.promises`). Where exploring has not paid what the model promised, the policy stops paying for
      it, and tries again when those promises are long ago.

    GP-MI stops paying because it has learned much; this one because it has gained little, and it comes back.
    docs/policy.md has the experiments, the ablations and the proof of the guarantee.
    """

    c: float = 10.0
    delta: float = 0.1
    floor: float = 0.1

    guarantee: ClassVar[Guarantee] = Guarantee(
        True,
        "almost surely every point is queried again and again, and R_T <= sum over suboptimal x of 4 noise_var "
        "alpha_T / gap(x) + a finite random constant: R_T = O(log T). No rate uniform in f; the constant may be huge.",
        "any f on a finite set, independent noise of finite variance, kernel and noise_var > 0 given, K positive "
        "definite on the set, no horizon; nothing for boxes, for a known horizon or for a prior that is refitted",
        "this project, docs/policy.md",
    )
    grows_with_var: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.positive("c", self.c)
        checks.probability("delta", self.delta, OF_FAILURE)
        if not 0.0 < checks.number("floor", self.floor, "give a share between 0 and 1") <= 1.0:
            raise ValueError(f"floor is {self.floor!r}; give a share between 0 and 1")

    def share(self, state: State) -> float:
        """k_t."""
        promises = state.promises
        return min(1.0, max(self.floor, (TRUST + promises.kept) / (TRUST + promises.made)))

    def queries_left(self, state: State) -> int:
        """H_t."""
        t, horizon = state.t, state.horizon
        return t if horizon is None or t > horizon else horizon - t + 1

    def phi(self, var: Array, state: State, mu: Array | None = None) -> Array:
        """phi_t where the posterior has variance var and mean mu; as at the best mean so far if mu is left out."""
        at = np.full_like(var, state.best_mean) if mu is None else mu
        return self._parts(at, var, state)[0]

    def score(self, mu: Array, var: Array, state: State) -> Array:
        return mu + self.phi(var, state, mu)

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        phi, by_mu, by_var = self._parts(mu, var, state)
        return mu + phi, 1.0 + by_mu, by_var

    def _parts(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        """phi and its derivatives by mu and by var."""
        from scipy.special import ndtr

        k, sd = self.share(state), np.sqrt(np.maximum(var, _TINY))
        weight = k * self.c * self.queries_left(state)
        z = np.clip((mu - state.best_mean) / sd, -_FAR, _FAR)
        cdf, pdf = ndtr(z), _pdf(z)
        # Next to mu no logarithm is needed: what cancels here is far below the rounding of mu.
        returned = weight * sd * (pdf + z * cdf)
        optimism = k * math.sqrt(math.log(2.0 * state.t**2 / self.delta))
        paid = optimism * sd
        limited = returned < paid
        by_mu = np.where(limited, weight * cdf, 0.0)
        return np.where(limited, returned, paid), by_mu, np.where(limited, weight * pdf, optimism) / (2.0 * sd)


@dataclass(frozen=True)
class Explore(Policy):
    """score = var: pure exploration, the greedy maximisation of the information I_T."""

    guarantee: ClassVar[Guarantee] = Guarantee(
        False,
        "nothing for the regret; the information gathered is I_T >= (1 - 1/e) gamma_T.",
        "kernel and noise_var known",
        "Nemhauser, Wolsey, Fisher 1978; Krause and Guestrin 2005",
    )
    grows_with_var: ClassVar[bool] = True
    additive: ClassVar[bool] = False

    def score(self, mu: Array, var: Array, state: State) -> Array:
        return var

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        return var, np.zeros_like(mu), np.ones_like(var)


@dataclass(frozen=True)
class Mean(Policy):
    """score = mu: pure exploitation, what `recommend` maximises."""

    guarantee: ClassVar[Guarantee] = Guarantee(False, "it never explores.", "none", "none")
    grows_with_var: ClassVar[bool] = True

    def phi(self, var: Array, state: State) -> Array:
        return np.zeros_like(var)

    def score(self, mu: Array, var: Array, state: State) -> Array:
        return mu

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        return mu, np.ones_like(mu), np.zeros_like(var)


@dataclass(frozen=True)
class Thompson(Policy):
    """x_t = argmax of one draw of f from the posterior.

    The draw is exact on finite sets of up to 2,048 rows; of larger ones it sees that many random rows (an event says
    so), and on boxes a screen of points and ever closer neighbours of the best of them.
    """

    guarantee: ClassVar[Guarantee] = Guarantee(
        True,
        "E[R_T] = O(sqrt(T gamma_T log |D|)), the Bayesian regret.",
        "f drawn from the GP prior, kernel and noise_var known, finite set searched as a whole",
        "Russo and Van Roy 2014; Takeno et al. 2024",
    )
    joint: ClassVar[bool] = True
    additive: ClassVar[bool] = False

    def score(self, mu: Array, var: Array, state: State) -> Array:
        raise TypeError("Thompson sampling has no score point by point: it maximises a joint draw")


def _log_pdf(z: Array) -> Array:
    result: Array = -0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    return result


def _pdf(z: Array) -> Array:
    return np.exp(_log_pdf(z))


def _log_h(z: Array) -> Array:
    """log(pdf(z) + z cdf(z)), accurate to 1e-11 for every z; -inf where z^2 overflows.

    For z < -1 it is log pdf(z) + log(1 - a r(a)) with a = -z and Mills' ratio r = sqrt(pi/2) erfcx(a / sqrt 2); for
    a > 50, where the difference cancels, 1 - a r(a) = a^-2 (1 - 3 a^-2 + 15 a^-4 - 105 a^-6 + ...).
    """
    from scipy.special import erfcx, ndtr

    near = np.maximum(z, -1.0)
    log_h: Array = np.log(_pdf(near) + near * ndtr(near))
    if np.all(z >= -1.0):
        return log_h
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        a = np.maximum(-z, 1.0)
        middle = np.minimum(a, 50.0)
        tail = np.log(1.0 - middle * np.sqrt(np.pi / 2.0) * erfcx(middle / np.sqrt(2.0)))
        b = 1.0 / (a * a)
        far = np.log(b) + np.log1p(-3.0 * b + 15.0 * b**2 - 105.0 * b**3)
        log_h = np.where(z < -1.0, _log_pdf(z) + np.where(a > 50.0, far, tail), log_h)
    return log_h
