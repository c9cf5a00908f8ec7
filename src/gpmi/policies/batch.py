"""Policies for points that are evaluated in parallel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpmi._support.types import Array
from gpmi.policies.phi import GPUCB
from gpmi.policies.policy import TINY, Guarantee, PointSearch, Policy, Selected, State


@dataclass(frozen=True)
class GPUCBPE(GPUCB):
    """The first point of a batch is GP-UCB's, the others explore where the maximum may be: GP-UCB-PE.

    With mu and sd given the values told, w = sqrt(scale beta_t) and t the number of the batch's first point, the
    maximum may be in the relevant region {x: mu(x) + 2 w sd(x) >= max over x' of mu(x') - w sd(x')}. Each further point
    is the point of the region with the largest variance, given the values told and the pending points. The arguments
    are those of GPUCB.

    A point is the first as long as no other point of GP-UCB is pending. So with k workers that ask one by one, one
    query of k is GP-UCB's, as in batches of k. The score, phi and derivatives are those of GP-UCB.
    """

    guarantee: ClassVar[Guarantee] = Guarantee(
        True,
        "with probability 1 - delta the sum over T batches of k of the smallest regret in each is "
        "O(sqrt(T / k gamma_{T k} log(T k))), for scale = 1.",
        "f drawn from the GP prior, kernel and noise_var > 0 known, compact set; batches told as a whole; the region "
        "searched as a whole, which on a box it is not",
        "Contal, Buffoni, Robicquet, Vayatis 2013",
    )

    def choose(self, search: PointSearch) -> Selected:
        if all(phi is None for phi in search.pending_phi):
            return search.best(self)
        return search.explore_relevant(self.weight(search.batch_state))

    def weight(self, state: State) -> float:
        """Return w, the distance of a confidence bound from mu, in sd."""
        return math.sqrt(self.scale * self.beta(state))


@dataclass(frozen=True)
class UpperBound(Policy):
    """score = mu + sd: an upper bound of f(x), with a probability of 84 %."""

    guarantee: ClassVar[Guarantee] = Guarantee(False, "its weight does not grow.", "none", "none")
    grows_with_var: ClassVar[bool] = True

    def phi(self, var: Array, state: State) -> Array:
        return np.sqrt(var)

    def slope(self, var: Array, state: State) -> Array:
        return 1.0 / (2.0 * np.sqrt(np.maximum(var, TINY)))


@dataclass(frozen=True)
class LowerBound(Policy):
    """score = mu - weight sd: a lower confidence bound of f(x)."""

    weight: float

    guarantee: ClassVar[Guarantee] = Guarantee(False, "it never explores.", "none", "none")

    def phi(self, var: Array, state: State) -> Array:
        return -self.weight * np.sqrt(var)

    def slope(self, var: Array, state: State) -> Array:
        return -self.weight / (2.0 * np.sqrt(np.maximum(var, TINY)))
