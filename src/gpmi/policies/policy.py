"""What a policy is: it scores a point by mu and var there and by the state of the run.

A policy sees neither kernel nor space nor posterior. It gives a score and the score's derivatives by mu and by var;
`gpmi.search` turns these into gradients by the chain rule. Policies always maximise.

A phi of your own::

    class Optimism(gpmi.Policy):
        def phi(self, var, state):
            return 2.0 * np.sqrt(var)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpmi._support.types import Array
from gpmi.policies.promises import NONE, Promises

OF_FAILURE = "it is a probability of failure: give a number between 0 and 1"  # what delta is
SAFE = 0.95  # no caution is needed where a query succeeds with this probability
LOG_SAFE = float(np.log(SAFE))
TINY = 1e-300  # keeps a quotient finite where a variance is 0


@dataclass(frozen=True)
class State:
    """What a policy may know of the run besides mu and var. Values are oriented so that larger is better."""

    t: int = 1  # the number of this query among those the policy chose, from 1
    gamma_hat: float = 0.0  # sum of sigma_s^2(x_s) over the policy's earlier queries, pending ones included
    noise_var: float = 0.0
    best_observed: float = 0.0  # the largest y told; the prior mean before the first
    best_mean: float = 0.0  # the largest posterior mean at a told point; the prior mean before the first
    size: int = 1  # |D|: the number of candidates; on a mixed space that of settings of the discrete parameters
    dim: int = 0  # the number of continuous coordinates, 0 on a finite set
    horizon: int | None = None  # T, the number of queries the policy may choose in all, if the user said so
    alike: float = 1.0  # how much of a gain serves queries with other given coordinates; 1 where none is given
    promises: Promises = NONE  # what the policy's earlier queries promised, and how much of it was kept
    caution: float = 0.0  # how much more than by p a gain is weighed where the probability of success p is too low
    log_enough: float = LOG_SAFE  # the logarithm of the p that is not too low


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
    logarithmic: ClassVar[bool] = False  # True: the score is the logarithm of what is expected

    def phi(self, var: Array, state: State) -> Array:
        """The exploration bonus at points with posterior variance var, element by element."""
        raise NotImplementedError(f"{type(self).__name__} must define phi(self, var, state)")

    def slope(self, var: Array, state: State) -> Array:
        """d phi / d var, by central differences; a policy may override it. The step, 1e-5, is near eps^(1/3)."""
        low, high = var * (1.0 - 1e-5), var * (1.0 + 1e-5) + TINY
        return (self.phi(high, state) - self.phi(low, state)) / (high - low)

    def score(self, mu: Array, var: Array, state: State) -> Array:
        """What is maximised."""
        return mu + self.phi(var, state)

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        """The score, d score / d mu and d score / d var."""
        return self.score(mu, var, state), np.ones_like(mu), self.slope(var, state)

    def weighed(self, score: Array, log_p: Array, state: State) -> tuple[Array, Array, Array]:
        """The score where a query succeeds with probability p only, and its derivatives by score and by log p. (m,)

        An expected gain is multiplied by w = p min(1, p / enough)^c, c = state.caution; its logarithm grows by log w.
        A score that is not a gain is taken as one: what it exceeds a level by, the best posterior mean where it is of
        the form mu + phi, or is a draw of f, and 0 otherwise. Below that level a score falls to twice its distance as
        w goes to 0, so that failures are avoided there as well.
        """
        short = np.minimum(log_p - state.log_enough, 0.0)
        log_w, slope = log_p + state.caution * short, np.where(short < 0.0, 1.0 + state.caution, 1.0)
        if self.logarithmic:
            return score + log_w, np.ones_like(score), slope
        level = state.best_mean if self.additive or self.joint else 0.0
        w, gain = np.exp(log_w), score - level
        factor = np.where(gain > 0.0, w, 2.0 - w)
        return level + factor * gain, factor, np.where(gain > 0.0, w, -w) * slope * gain


def checked_policy(policy: Any) -> Policy:
    """A policy, not a class or something else."""
    if isinstance(policy, type) and issubclass(policy, Policy):
        raise TypeError(f"policy is the class {policy.__name__}; give an instance, {policy.__name__}()")
    if not isinstance(policy, Policy):
        raise TypeError(f"policy is {policy!r}; give a policy such as gpmi.GPMI(), or None")
    return policy
