"""What further evaluations would add to the hypervolume of the front."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array, Mask, Numbers
from gpmi.analysis.ledger.front_draws import FrontDraws, FrontProblem
from gpmi.analysis.ledger.gain import Gain
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.policies.front import non_dominated

POINTS = 192  # of the drawn fronts, at which evaluations may be made: our limit on the cost
DRAWS = 256  # of the gain: a probability of 0.05 is estimated with an sd of 0.014


@one_blas_thread
def draw_front_gain(problem: FrontProblem, drawn: FrontDraws, evaluations: int, rng: np.random.Generator) -> Gain:
    """Draw what further evaluations would add to the hypervolume of our own front.

    The functions are drawn at our own points and at points of the drawn fronts. An evaluation is where another draw of
    the same posteriors gains most over our own points and the evaluations before it (Thompson sampling). The noisy
    values update the means. The new front are the points, our own and evaluated ones that keep the limits, that are not
    dominated by their means; its true hypervolume counts, and may be smaller. O(m^3) for each posterior and m points.
    """
    z = _points(problem, drawn, rng)
    count = max(map(len, problem.mixtures))
    size = max(2, -(-DRAWS // count))
    orders = [
        rng.permutation(len(mixture)) if i else np.arange(len(mixture)) for i, mixture in enumerate(problem.mixtures)
    ]
    gains = []
    for k in range(count):
        chosen = [mixture[order[k % len(mixture)]] for mixture, order in zip(problem.mixtures, orders, strict=True)]
        gains.append(_gains(problem, chosen, z, evaluations, size, rng))
    return Gain(evaluations, np.concatenate(gains))


def _points(problem: FrontProblem, drawn: FrontDraws, rng: np.random.Generator) -> Array:
    """Return our own points, then some where drawn fronts are higher, the more likely the more they gain. (m, d)"""
    k = len(drawn.rays.reference)
    gains = (drawn.heights**k - drawn.rays.heights(drawn.front_values) ** k).ravel()
    where = drawn.where.reshape(-1, problem.space.dim)
    total = float(gains.sum())
    if total > 0.0:
        picked = rng.choice(len(gains), size=min(POINTS, int(np.count_nonzero(gains))), replace=False, p=gains / total)
        where = np.unique(where[picked], axis=0)
    else:
        where = where[:0]
    return np.concatenate([problem.front, where])


def _gains(
    problem: FrontProblem, posteriors: list[Posterior], z: Array, evaluations: int, size: int, rng: np.random.Generator
) -> Array:
    """Return draws of the gain under one posterior of each function, (size,)."""
    n, fine = len(problem.front), problem.rays.fine
    if len(z) == n:
        return np.zeros(size)
    g = np.stack([posterior.sample(z, rng, size) for posterior in posteriors])  # (F, size, m)
    others = np.stack([posterior.sample(z, rng, size) for posterior in posteriors])
    means, covariances = (
        [posterior.mu(z) for posterior in posteriors],
        [posterior.covariance(z, z) for posterior in posteriors],
    )
    heights = np.clip(problem.sides.heights(others, problem.rays.directions), 0.0, problem.rays.ends)  # (size, m, W)
    front_heights = problem.rays.heights(problem.objectives(others[:, :, :n]))  # (size, W)
    objectives, works = problem.objectives(g), _works(problem, g)  # (size, m, k), (size, m)
    works[:, :n] = True
    gains = np.empty(size)
    for s in range(size):
        at = _picked(heights, front_heights, evaluations, len(problem.rays.reference), rng)
        tried = np.unique(np.concatenate([np.arange(n), at[works[s, at]]]))
        working = at[works[s, at]]
        updated = [
            _updated(mu, cov, posterior, working, f[s], rng)[tried]
            for mu, cov, posterior, f in zip(means, covariances, posteriors, g, strict=True)
        ]
        after = objectives[s, tried[non_dominated(problem.objectives(np.stack(updated)))]]
        before = objectives[s, :n]
        gains[s] = float(fine.volume(fine.heights(after)) - fine.volume(fine.heights(before)))
    return gains


def _works(problem: FrontProblem, g: Array) -> Mask:
    works: Mask = np.all(problem.sides.rows(g)[problem.sides.objective < 0] >= 0.0, axis=0)
    return works


def _picked(heights: Array, front_heights: Array, evaluations: int, k: int, rng: np.random.Generator) -> Numbers:
    """Return the points of the evaluations: each gains most in a draw of its own, heights (size, m, W)."""
    points: list[int] = []
    for number in rng.integers(len(heights), size=evaluations):
        reached = (
            front_heights[number]
            if not points
            else np.maximum(front_heights[number], heights[number, points].max(axis=0))
        )
        points.append(int(np.maximum(heights[number] ** k - reached**k, 0.0).sum(axis=1).argmax()))
    return np.array(points)


def _updated(mu: Array, cov: Array, posterior: Posterior, at: Numbers, f: Array, rng: np.random.Generator) -> Array:
    """Return the means (m,) after noisy values of f at some of the points."""
    if not len(at):
        return mu
    noise = posterior.noise_var
    y = f[at] + np.sqrt(noise) * rng.standard_normal(len(at))
    jitter = 1e-10 * float(np.max(np.diagonal(cov), initial=0.0)) + np.finfo(float).tiny
    block = cov[np.ix_(at, at)] + (noise + jitter) * np.eye(len(at))
    result: Array = mu + cov[:, at] @ np.linalg.solve(block, y - mu[at])
    return result
