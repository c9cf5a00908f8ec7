"""Policies for several objectives: a score of the moments of all objectives at a point.

Every objective is oriented so that larger is better. An output with a target t has the objective -|y - t|.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Mask
from gpmi.policies.front import boxes_above, non_dominated
from gpmi.policies.hypervolume import HypervolumeImprovement, random_direction
from gpmi.policies.improvement import LogEI
from gpmi.policies.normal import pdf
from gpmi.policies.phi import GPUCB
from gpmi.policies.policy import TINY, Guarantee, Policy, State

MOST_EXACT = 4  # objectives up to which the expected hypervolume improvement is computed exactly: boxes grow as n^(k/2)

SAMPLES = 64  # draws of the outputs for a utility: our choice, not tuned
SMOOTH = 0.01  # of the range of the utilities known: the width over which an improvement is softened; our choice
STEP = 1e-4  # of the sd: the step of differences of a utility's score


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
    outputs: Array  # (S, n, k), the outputs behind them, as the model has them: they differ where there is a target
    feasible: Mask  # (n,), which of these points count: they probably succeed and keep the limits
    reference: Array  # (k,), the worst acceptable value of each objective, larger is better
    targets: tuple[float | None, ...]  # (k,): the target t of an output whose objective is -|y - t|
    state: State  # of the run: t, horizon, size and dim of the space
    stream: tuple[int, ...]  # numbers that seed the random choices of this query
    names: tuple[str, ...] = ()  # (k,), of the outputs
    signs: tuple[float, ...] = ()  # (k,): an output in the user's units is sign times its value in the model

    @property
    def known_outputs(self) -> Array:
        """The outputs at the points that count, as the model has them, averaged over the draws, (n', k)."""
        outputs: Array = self.outputs.mean(axis=0)[self.feasible]
        return outputs

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

    def check(self, names: Sequence[str]) -> None:
        """Refuse the objectives of a run, by name, if the policy does not fit them."""


@dataclass(frozen=True)
class EHVI(JointPolicy):
    """Maximise the expected hypervolume improvement, for up to 4 objectives; `Scalarised` takes more.

    The hypervolume is the volume of what the front dominates above the reference. With noise, the improvement is
    averaged over joint draws of f at the points told: the front and the posterior are those of the draw.
    """

    guarantee: ClassVar[Guarantee] = Guarantee(
        False, "no bound on the hypervolume regret that this project has checked.", "none", "Emmerich et al. 2006"
    )

    def check(self, names: Sequence[str]) -> None:
        if len(names) > MOST_EXACT:
            raise ValueError(f"policy is EHVI(), but there are {len(names)} objectives; give gpmi.Scalarised()")

    def joint_score(self, standing: Standing) -> JointScore:
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
        "f drawn from the GP prior, kernels and noise_var known, reference and ranges fixed, one query at a time",
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
        values = standing.values[:, standing.feasible].mean(axis=0)
        return 0.0 if len(values) == 0 else float(self._score(standing).of_values(values).max())

    def _score(self, standing: Standing) -> DirectionScore:
        values = standing.values[:, standing.feasible].mean(axis=0)
        front = values[non_dominated(values)] if len(values) else values
        span = np.ptp(np.concatenate([front, standing.reference[None]]), axis=0)
        seed = [int(standing.state.t), *standing.stream]
        direction = random_direction(len(span), np.random.default_rng(seed))
        weights = direction * np.where(span > 0.0, span, 1.0)
        return DirectionScore(standing.reference, weights, standing.targets, self._bonus, standing.state)


class Utility(JointPolicy):
    """Maximise the expected improvement of a utility of the objectives' outputs. Subclass it and define `utility`.

    A desirability, the geometric mean of how well each output does between 0 and 1::

        class Desirability(gpmi.Utility):
            def utility(self, y):
                good, cheap = np.clip(y["yield"] / 100.0, 0.0, 1.0), np.clip(1.0 - y["cost"] / 10.0, 0.0, 1.0)
                return np.sqrt(good * cheap)

    The expectation is over SAMPLES draws of the outputs, the same at all points.
    """

    guarantee: ClassVar[Guarantee] = Guarantee(False, "nothing is known about a utility of your own.", "none", "none")

    def utility(self, y: Mapping[str, Array]) -> Array:
        """Return the utility of outputs in their own units, arrays of one shape by name. Larger is better."""
        raise NotImplementedError(f"{type(self).__name__} must define utility(self, y)")

    def joint_score(self, standing: Standing) -> JointScore:
        from gpmi._support.sobol import sobol  # scipy.stats is large

        utilities = self.of(standing, standing.known_outputs)
        draws = _normal_quantiles(sobol(len(standing.names), SAMPLES.bit_length() - 1, (0,)))
        best, spread = (float(utilities.max()), float(np.ptp(utilities))) if len(utilities) else (0.0, 1.0)
        return UtilityScore(self, standing, draws, best, SMOOTH * (spread or 1.0))

    def of(self, standing: Standing, y: Array) -> Array:
        """Return the utility of outputs y (..., k) as the model has them, (...)."""
        if y.size == 0:
            return np.empty(y.shape[:-1])
        outputs = {
            name: sign * y[..., i] for i, (name, sign) in enumerate(zip(standing.names, standing.signs, strict=True))
        }
        value = np.asarray(self.utility(outputs), dtype=float)
        if value.shape != y.shape[:-1] or not np.isfinite(value).all():
            raise ValueError(
                f"utility of {self!r} gave an array of shape {value.shape} for outputs of shape {y.shape[:-1]}, or a "
                "number that is not finite; it must return one finite number for each, with NumPy's functions"
            )
        return value


@dataclass(frozen=True, eq=False)
class UtilityScore:
    """The logarithm of E[(u(Y) - best)+] over draws of the outputs Y, softened by `width`."""

    policy: Utility
    standing: Standing
    draws: Array  # (Q, k), standard normal
    best: float
    width: float
    size: int = 1

    def __call__(self, mu: Array, var: Array) -> Array:
        return self._log(mu.mean(axis=0), np.sqrt(var[0]))

    def with_derivatives(self, mu: Array, var: Array) -> tuple[Array, Array, Array]:
        mean, sd = mu.mean(axis=0), np.sqrt(np.maximum(var[0], TINY))
        by_mu, by_sd = np.empty_like(mean), np.empty_like(sd)
        for i in range(len(mean)):  # central differences: utility may be any function
            step = STEP * np.maximum(sd[i], STEP * np.abs(mean[i]) + TINY)
            for slope, moments in ((by_mu, (mean, sd)), (by_sd, (sd, mean))):
                high, low = moments[0].copy(), moments[0].copy()
                high[i] += step
                low[i] -= step
                pair = [(shifted, sd) if slope is by_mu else (mean, shifted) for shifted in (high, low)]
                slope[i] = (self._log(*pair[0]) - self._log(*pair[1])) / (2.0 * step)
        by_var = by_sd / (2.0 * sd)
        return (
            self._log(mean, sd),
            np.broadcast_to(by_mu / len(mu), mu.shape),
            np.broadcast_to(by_var / len(mu), mu.shape),
        )

    def _log(self, mean: Array, sd: Array) -> Array:
        y = mean.T[:, None] + sd.T[:, None] * self.draws  # (m, Q, k)
        gain = (self.policy.of(self.standing, y) - self.best) / self.width
        soft = np.logaddexp(0.0, np.clip(gain, -1e3, None))
        log: Array = np.log(np.maximum(soft.mean(axis=1), TINY))
        return log


@dataclass(frozen=True, init=False, repr=False)
class Weights(JointPolicy):
    """Maximise a weighted sum of the objectives, in their own units: Weights(yield_=2, cost=1).

    An objective that is minimised counts negatively, and one with a target by its distance from it. An underscore at
    the end of a name is dropped if the goals do not have it. The score is the logarithm of the expected improvement.
    """

    weights: tuple[tuple[str, float], ...]

    guarantee: ClassVar[Guarantee] = Guarantee(False, "as for LogEI.", "none", "Ament et al. 2023")

    def __init__(self, weights: Any = (), **by_output: float) -> None:
        pairs = {str(name): weight for name, weight in (*weights, *by_output.items())}
        checked = tuple((name, checks.positive(name, weight)) for name, weight in pairs.items())
        if not checked:
            raise TypeError("Weights has no weight; name the outputs, as in gpmi.Weights(quality=2, cost=1)")
        object.__setattr__(self, "weights", checked)

    def __repr__(self) -> str:
        return f"Weights({', '.join(f'{name}={weight:g}' for name, weight in self.weights)})"

    def check(self, names: Sequence[str]) -> None:
        self._by_name(names)

    def joint_score(self, standing: Standing) -> JointScore:
        by_name = self._by_name(standing.names)
        weights = np.array([by_name[name] for name in standing.names])
        sums = standing.values.mean(axis=0)[standing.feasible] @ weights
        best = float(sums.max()) if len(sums) else -np.inf
        return WeightedScore(weights, standing.targets, best if np.isfinite(best) else 0.0)

    def _by_name(self, names: Sequence[str]) -> dict[str, float]:
        given = {name if name in names else name.removesuffix("_"): weight for name, weight in self.weights}
        for name in (*given, *names):
            if name not in names or name not in given:
                raise ValueError(
                    f"policy is {self!r}, but the objectives are {', '.join(names)}; give each one a weight"
                )
        return given


@dataclass(frozen=True, eq=False)
class WeightedScore:
    """log EI of sum_i w_i z_i, a normal variable.

    For a target t, z = -|y - t| is a folded normal variable. The sum is then taken for a normal one with its moments.
    """

    weights: Array  # (k,)
    targets: tuple[float | None, ...]
    best: float
    size: int = 1

    def __call__(self, mu: Array, var: Array) -> Array:
        return self.with_derivatives(mu, var)[0]

    def with_derivatives(self, mu: Array, var: Array) -> tuple[Array, Array, Array]:
        from scipy.special import ndtr

        mean, variance = mu.mean(axis=0), np.maximum(var[0], TINY)
        z, spread = mean.copy(), variance.copy()
        z_by_mu, s_by_mu = np.ones_like(mean), np.zeros_like(mean)
        z_by_var, s_by_var = np.zeros_like(mean), np.ones_like(mean)
        for i, target in enumerate(self.targets):
            if target is not None:
                off, sd = mean[i] - target, np.sqrt(variance[i])
                density, inside = pdf(off / sd), 2.0 * ndtr(off / sd) - 1.0
                z[i] = -(2.0 * sd * density + off * inside)  # -E|y - t|
                z_by_mu[i], z_by_var[i] = -inside, -density / sd
                spread[i] = np.maximum(off**2 + variance[i] - z[i] ** 2, TINY)
                s_by_mu[i], s_by_var[i] = 2.0 * off - 2.0 * z[i] * z_by_mu[i], 1.0 - 2.0 * z[i] * z_by_var[i]
        w = self.weights[:, None]
        state = State(best_mean=self.best)
        log, by_total, by_spread = LogEI("mean").with_derivatives(
            (w * z).sum(axis=0), (w**2 * spread).sum(axis=0), state
        )
        by_mu = by_total * w * z_by_mu + by_spread * w**2 * s_by_mu
        by_var = by_total * w * z_by_var + by_spread * w**2 * s_by_var
        return log, np.broadcast_to(by_mu / len(mu), mu.shape), np.broadcast_to(by_var / len(mu), mu.shape)


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


def _normal_quantiles(u: Array) -> Array:
    """Return standard normal numbers for points u (n, k) of the unit cube, without the infinities of its corners."""
    from scipy.special import ndtri

    inside: Array = ndtri(np.clip(u, 0.5 / len(u), 1.0 - 0.5 / len(u)))
    return inside
