"""Policies for several objectives: a score of the moments of all objectives at a point.

Every objective is oriented so that larger is better. An output with a target t has the objective -|y - t|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.policies.front import boxes_above, non_dominated
from gpmi.policies.hypervolume import HypervolumeImprovement, random_direction
from gpmi.policies.phi import GPUCB
from gpmi.policies.policy import Guarantee, Policy, State

MOST_EXACT = 4  # objectives up to which the expected hypervolume improvement is computed exactly: boxes grow as n^(k/2)


class JointScore(Protocol):
    """The score of points by the moments of k objectives, under S draws of what is known."""

    @property
    def size(self) -> int:
        """S, the number of draws."""

    def __call__(self, mu: Array, var: Array) -> Array:
        """Return the score (m,) where the outputs have means mu (S, k, m) and variances var (1, k, m)."""

    def with_derivatives(self, mu: Array, var: Array) -> tuple[Array, Array, Array]:
        """Return the score (m,) and its derivatives by mu and by var, (S, k, m) each."""


@dataclass(frozen=True, eq=False)
class Standing:
    """What a policy for several objectives sees of a run."""

    values: Array  # (S, n, k), the objectives at the points told and pending, larger is better, in S draws
    feasible: Mask  # (n,), which of these points count: they probably succeed and keep the limits
    reference: Array  # (k,), the worst acceptable value of each objective, larger is better
    targets: tuple[float | None, ...]  # (k,): the target t of an output whose objective is -|y - t|
    state: State  # of the run: t, horizon, size and dim of the space
    stream: tuple[int, ...]  # numbers that seed the random choices of this query

    @property
    def fronts(self) -> list[Array]:
        """The non-dominated values above the reference in each draw."""
        return [front_above(values[self.feasible], self.reference) for values in self.values]


class JointPolicy(Policy):
    """Choose the next point for several objectives by a score of all of them."""

    several: ClassVar[bool] = True
    logarithmic: ClassVar[bool] = True
    additive: ClassVar[bool] = False

    def joint_score(self, standing: Standing) -> JointScore:
        """Return the score for the next query."""
        raise NotImplementedError(f"{type(self).__name__} must define joint_score(self, standing)")

    def level(self, standing: Standing) -> float:
        """Return the score of what is known, below which a point brings no gain; 0 for a logarithm."""
        return 0.0


@dataclass(frozen=True)
class EHVI(JointPolicy):
    """Maximise the expected hypervolume improvement, for up to 4 objectives; `Scalarised` above that.

    The hypervolume is the volume of what the front dominates above the reference. With noise, the improvement is
    averaged over joint draws of f at the points told: the front and the posterior are those of the draw.
    """

    guarantee: ClassVar[Guarantee] = Guarantee(
        False, "no bound on the hypervolume regret that this project has checked.", "none", "Emmerich et al. 2006"
    )

    def joint_score(self, standing: Standing) -> JointScore:
        if len(standing.reference) > MOST_EXACT:
            return Scalarised().joint_score(standing)
        boxes = tuple(boxes_above(front, standing.reference) for front in standing.fronts)
        return HypervolumeImprovement(boxes, standing.targets)


@dataclass(frozen=True)
class Scalarised(JointPolicy):
    """Maximise min_i (mu_i + phi_i - r_i) / lambda_i for a new random direction lambda at every query.

    The mean over directions of the best such value, to the power k, is the hypervolume above the reference r: queries
    for random directions cover the front. phi_i is that of GP-UCB, sqrt(scale beta_t) sd_i. Each objective is divided
    by its range on the front, so that units do not matter.
    """

    delta: float = 1e-6
    scale: float = 0.2  # of the experiments of Srinivas et al.

    logarithmic: ClassVar[bool] = False
    additive: ClassVar[bool] = True
    guarantee: ClassVar[Guarantee] = Guarantee(
        True,
        "the hypervolume regret after T queries is O(k^2 sqrt(d gamma_T log T / T)) in expectation over the "
        "directions, for scale = 1; the proof has not been checked by this project.",
        "f drawn from the GP prior, kernels and noise_var known, reference fixed, one query at a time",
        "Golovin and Zhang 2020, Random Hypervolume Scalarizations",
    )

    def __post_init__(self) -> None:
        GPUCB(self.delta, self.scale)  # refuses what is not allowed

    @property
    def _bonus(self) -> GPUCB:
        return GPUCB(self.delta, self.scale)

    def joint_score(self, standing: Standing) -> JointScore:
        return self._score(standing)

    def level(self, standing: Standing) -> float:
        known = standing.values[:, standing.feasible].mean(axis=0)
        return 0.0 if len(known) == 0 else float(self._score(standing).of_values(known).max())

    def _score(self, standing: Standing) -> DirectionScore:
        known = standing.values[:, standing.feasible].mean(axis=0)
        front = known[non_dominated(known)] if len(known) else known
        span = np.ptp(np.concatenate([front, standing.reference[None]]), axis=0)
        seed = [int(standing.state.t), *standing.stream]
        direction = random_direction(len(span), np.random.default_rng(seed))
        weights = direction * np.where(span > 0.0, span, 1.0)
        return DirectionScore(standing.reference, weights, standing.targets, self._bonus, standing.state)


@dataclass(frozen=True, eq=False)
class DirectionScore:
    """min_i (z_i - r_i) / weights_i at z_i = mu_i + phi_i, or at -max(|mu_i - t| - phi_i, 0) for a target t."""

    reference: Array  # (k,)
    weights: Array  # (k,)
    targets: tuple[float | None, ...]
    bonus: Policy
    state: State
    size: int = 1

    def of_values(self, values: Array) -> Array:
        """Return the score of known values (n, k) of the objectives, (n,)."""
        result: Array = ((values - self.reference) / self.weights).min(axis=1)
        return result

    def __call__(self, mu: Array, var: Array) -> Array:
        return self.with_derivatives(mu, var)[0]

    def with_derivatives(self, mu: Array, var: Array) -> tuple[Array, Array, Array]:
        mean, (var,) = mu.mean(axis=0), var
        phi, slope = self.bonus.phi(var, self.state), self.bonus.slope(var, self.state)
        value, by_mean, by_phi = mean + phi, np.ones_like(mean), np.ones_like(mean)
        for i, target in enumerate(self.targets):
            if target is not None:
                off = mean[i] - target
                reached = np.abs(off) <= phi[i]
                value[i] = np.minimum(phi[i] - np.abs(off), 0.0)
                by_mean[i], by_phi[i] = np.where(reached, 0.0, -np.sign(off)), np.where(reached, 0.0, 1.0)
        each = (value - self.reference[:, None]) / self.weights[:, None]
        lowest, columns = each.argmin(axis=0), np.arange(mean.shape[1])
        mask = np.zeros_like(mean)
        mask[lowest, columns] = 1.0 / self.weights[lowest]
        by_mu = np.broadcast_to(mask * by_mean / len(mu), mu.shape)
        by_var = np.broadcast_to(mask * by_phi * slope / len(mu), mu.shape)
        return each[lowest, columns], by_mu, by_var


def front_above(values: Array, reference: Array) -> Array:
    """Return the non-dominated rows of values (n, k) that are above the reference (k,) in every objective."""
    above = values[np.all(values > reference, axis=1)]
    return above[non_dominated(above)] if len(above) else above
