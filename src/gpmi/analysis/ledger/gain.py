"""What further evaluations would bring: draws of the gain of a few more, and the expected gain of the best other point.

Ten more evaluations that will not help do not make the recommended point the optimum: the regret says how far that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Mask
from gpmi.analysis.ledger.belief import Belief
from gpmi.analysis.ledger.maxima import spread_of_difference
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import moments_in_chunks
from gpmi.model.model import Model
from gpmi.policies import EI, State
from gpmi.trials.value_bounds import ValueBounds

MOST = 100  # evaluations: their joint values take O(MOST^3) for each draw
DRAWS = 512  # of the gain: a probability of 0.05 is estimated with an sd of 0.01
# How often a gain happened, by the share of draws with one, in runs with noise (docs/benchmarks/can_stop.md).
DAMPED, POWER = 0.7, 0.8
_CLOSEST = 1000  # points whose improvement is computed if y is transformed or has bounds: our limit on the cost
_QUANTILES = 32  # of f at the recommended point, if y has bounds; our choice


@dataclass(frozen=True, eq=False, repr=False)
class Gain:
    """Draws of what further evaluations would add to f at the recommended point, in units of y.

    A draw may be negative: noise can make a worse point look better.
    """

    evaluations: int
    draws: Array  # (DRAWS,); (0,) if there are too few values to say
    is_damped: bool = False  # whether probabilities are damped: the prior is learned, and the values are noisy

    @property
    def known(self) -> bool:
        """Whether there are enough values to say."""
        return len(self.draws) > 0

    def probability_above(self, eps: float) -> float:
        """Return the probability of a gain of more than eps; nan if there are too few values to say.

        Under a learned prior and noise the share p of such draws is too large: they choose and judge points by the
        function that they draw, and a run has to learn it. There it is DAMPED p^POWER.
        """
        if not self.known:
            return np.nan
        share = float(np.mean(self.draws > checks.number("eps", eps)))
        return DAMPED * share**POWER if self.is_damped else share

    @property
    def mean(self) -> float:
        """The expected gain; nan if there are too few values to say."""
        return float(self.draws.mean()) if self.known else np.nan

    def __repr__(self) -> str:
        if not self.known:
            return f"Gain({self.evaluations} evaluations, unknown)"
        low, high = np.quantile(self.draws, [0.05, 0.95]).tolist()
        return f"Gain({self.evaluations} evaluations, {low:.3g} to {high:.3g} with probability 90 %)"


@one_blas_thread
def draw_gain(
    model: Model, belief: Belief, row: Array, where: Array, evaluations: int, rng: np.random.Generator
) -> Gain:
    """Draw the gain of further evaluations over f at the recommended point `row` (d,).

    `where` (m, d) are points that may hold the maximum: those of the drawn functions behind the regret, in the order of
    the posteriors. Under each posterior f is drawn at its own points and at those of the others. The evaluations are at
    the maxima of other draws of the same posterior (Thompson sampling). Their noisy values update the mean; its largest
    value is the new recommended point. The gain is f there minus f at `row`. O(n^2 m + m^3) for each posterior.

    Where trials fail, what works is drawn, too. Evaluations are at the maxima over what works in the other draws. If a
    point does not work in the draw of f, its evaluation fails and has no value. So does one that only breaks a measured
    constraint, whose value would teach a little more. The new recommended point is `row` or one that was evaluated and
    works.
    """
    z = np.unique(np.concatenate([row[None], where]), axis=0)
    here = int(np.flatnonzero((z == row).all(axis=1))[0])
    size = -(-DRAWS // len(belief.posteriors))
    works = None
    if model.chance is not None:
        success_rng = np.random.default_rng(
            [model.setting.seed, model.n, evaluations, 7]
        )  # no suggestion draws from it
        works = model.chance.draw(z, success_rng, size * len(belief.posteriors)).reshape(-1, size, len(z))
        works[..., here] = True
    pairs = [
        _one_gain(posterior, z, here, evaluations, size, rng, None if works is None else works[number])
        for number, posterior in enumerate(belief.posteriors)
    ]
    before, after = (model.to_units_of_y(np.concatenate([pair[i] for pair in pairs])) for i in (0, 1))
    return Gain(evaluations, (after - before)[:: max(1, len(after) // DRAWS)])


def _one_gain(
    posterior: Posterior,
    z: Array,
    here: int,
    evaluations: int,
    size: int,
    rng: np.random.Generator,
    works: Mask | None,  # (size, m): which points work in each draw of f
) -> tuple[Array, Array]:
    """Return draws of f at z[here] and at the point recommended after the evaluations, (size,) each."""
    mu, cov = posterior.mu(z), posterior.covariance(z, z)
    f = posterior.sample(z, rng, size)
    others = posterior.sample(z, rng, size)
    others = others if works is None else np.where(np.roll(works, 1, axis=0), others, -np.inf)
    order = rng.permuted(np.tile(others.argmax(axis=1), (size, 1)), axis=1)
    at = order[:, :evaluations] if size >= evaluations else rng.choice(others.argmax(axis=1), (size, evaluations))
    noise = posterior.noise_var
    y = np.take_along_axis(f, at, axis=1) + np.sqrt(noise) * rng.standard_normal(at.shape)
    jitter = 1e-10 * float(np.max(np.diagonal(cov), initial=0.0)) + np.finfo(float).tiny
    block = cov[at[:, :, None], at[:, None, :]] + (noise + jitter) * np.eye(evaluations)
    off = y - mu[at]
    if works is not None:  # a failure has no value: its row is that of an unrelated observation, and its weight is 0
        fine = np.take_along_axis(works, at, axis=1)
        block = np.where(fine[:, :, None] & fine[:, None, :], block, np.eye(evaluations))
        off = np.where(fine, off, 0.0)
    weights = np.linalg.solve(block, off[..., None])[..., 0]
    updated = mu + np.einsum("sj,sjk->sk", weights, cov[at])
    if works is not None:
        proven = np.zeros(works.shape, dtype=bool)
        np.put_along_axis(proven, at, True, axis=1)
        proven[:, here] = True
        updated = np.where(proven & works, updated, -np.inf)
    best = updated.argmax(axis=1)
    return f[:, here], np.take_along_axis(f, best[:, None], axis=1)[:, 0]


@one_blas_thread
def expected_improvement(model: Model, belief: Belief, z: Array) -> float:
    """Return max over z (m, d) of E[(f(z) - f(recommended))^+] under the belief, in units of y.

    Where trials fail it is weighted by the probability that z works. If y is transformed, f(recommended) is replaced by
    its median under each posterior. O(n^2 m) for each posterior.
    """
    row, total = model.recommendation.row, np.zeros(len(z))
    for posterior in belief.posteriors:
        best = float(posterior.mu(row)[0])
        state = State(noise_var=posterior.noise_var, best_observed=best, best_mean=best)
        mu, var = moments_in_chunks(posterior, z)
        if not (model.warp.bends or model.setting.bounds.limited):
            total += EI("mean").score(mu, spread_of_difference(posterior, z, row), state)
            continue
        from scipy.special import ndtri

        top = np.argsort(-EI("mean").score(mu, var, state))[:_CLOSEST]
        if not model.warp.bends:
            total[top] += bounded_improvement(posterior, z[top], row, model.setting.bounds)
            continue
        values = mu[top, None] + np.sqrt(var[top, None]) * ndtri((np.arange(200) + 0.5) / 200)
        gains = model.to_units_of_y(values) - model.to_units_of_y(np.array([best]))
        total[top] += np.maximum(gains, 0.0).mean(axis=1)
    total = total if model.chance is None else total * model.chance.works(z)
    return float(total.max(initial=0.0)) / len(belief.posteriors)


def bounded_improvement(posterior: Posterior, z: Array, row: Array, bounds: ValueBounds) -> Array:
    """Return E[(clip f(z) - clip f(row))^+] at z (m, d), where clip keeps to the bounds of y. (m,), O(n^2 m).

    Given f(row) = b, f(z) is normal, and with c = clip(b) the expectation is E[(f(z) - c)^+] - E[(f(z) - hi)^+]. It is
    averaged over quantiles of b.
    """
    from scipy.special import ndtri

    (mu, var), (at, spread) = moments_in_chunks(posterior, z), posterior(row[None])
    covariance = 0.5 * (var + spread[0] - spread_of_difference(posterior, z, row))
    slope = covariance / spread[0] if spread[0] > 0.0 else np.zeros(len(z))
    rest = np.maximum(var - slope * covariance, 0.0)[:, None]
    b = np.sqrt(spread[0]) * ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)  # minus its mean, (q,)
    means, floor = mu[:, None] + slope[:, None] * b, bounds.clip(at[0] + b)
    gains = _excess(means, rest, floor)
    gains -= _excess(means, rest, np.full(_QUANTILES, bounds.hi)) if np.isfinite(bounds.hi) else 0.0
    result: Array = np.maximum(gains, 0.0).mean(axis=1)
    return result


def _excess(mu: Array, var: Array, level: Array) -> Array:
    """Return E[(f - level)^+] for f ~ N(mu, var)."""
    return EI("mean").score(mu - level, var + np.zeros_like(mu), State(best_observed=0.0, best_mean=0.0))
