"""Policies that are not of the form mu + phi: pure exploration, and the maximum of a draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpmi._support.types import Array
from gpmi.policies.policy import Guarantee, Policy, State


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
class Thompson(Policy):
    """x_t = argmax of one draw of f from the posterior.

    On a finite set the draw is exact and joint at all rows, or at 2,048 random ones if there are more (an event says
    so). On a box it is made at the points of a screen, then at ever closer neighbours of the best of them.
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
