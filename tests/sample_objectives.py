"""Scores to search, for the tests of the search: of drawn functions under a policy, and plain functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpmi import Posterior, kernels
from gpmi._support.sobol import sobol
from gpmi._support.types import Event
from gpmi.gp.approximate.success import Requirement, SuccessProbability
from gpmi.policies import Policy, State
from gpmi.search.multistart import best_point
from gpmi.search.neighbours import best_observed
from gpmi.search.objective import Objective, SearchResult
from gpmi.search.screen import SCREEN
from gpmi.space import Parameters, Space

Array = NDArray[np.float64]


def box(*bounds: tuple[float, float]) -> Parameters:
    return Parameters.box(bounds)


def posterior_in(space: Space, seed: int, n: int = 25, noise_var: float = 1e-4) -> Posterior:
    """Return the posterior after n values of a draw of f at random points of the space."""
    rng = np.random.default_rng(seed)
    if space.rows is not None:
        x = space.rows[rng.integers(len(space.rows), size=n)]
    else:
        assert isinstance(space, Parameters)
        x = space.from_unit(rng.random((n, space.unit_dim)))
    kernel = kernels.Matern(nu=2.5, lengthscale=0.25 * space.span)
    y = Posterior.prior(kernel, 1e-6).sample(x, rng)[0]
    return Posterior.prior(kernel, noise_var).condition(x, y)


def score_of(policy: Policy, posterior: Posterior, space: Space, **options: Any) -> Objective:
    """Return the score of the policy under a posterior, in its fifth query."""
    best = float(posterior.observed.max(initial=0.0))
    return Objective(posterior, policy, State(5, 0.5, 1e-4, best, best, *space.extent), **options)


def objective(space: Space, policy: Policy, seed: int, n: int = 25) -> Objective:
    """Return the score of the policy after n values of a draw of f."""
    return score_of(policy, posterior_in(space, seed, n), space)


def chance_in(space: Space, seed: int, spread: float = 0.0) -> SuccessProbability:
    """Return the probability that another drawn function, seen at a few points, is at least 0."""
    return SuccessProbability((Requirement(posterior_in(space, seed + 1000, 8), spread=spread),))


def found_by(o: Objective, space: Parameters, seed: int = 0) -> tuple[Array, float]:
    """Return the best point of the score, from a screen of the space, and the score there."""
    screen = space.from_unit(sobol(space.unit_dim, SCREEN.bit_length() - 1, (seed,)))
    result = best_point(o, space, screen, o(screen), best_observed(o.posterior), np.random.default_rng(seed))
    return result.row, result.score


def grid_in(space: Parameters, k: int) -> Array:
    """Return a grid of the space, k points along each parameter."""
    axes = [np.linspace(0.0, 1.0, k)] * space.unit_dim
    return space.from_unit(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, space.unit_dim))


@dataclass(frozen=True)
class PlainScore:
    """A score given by a function and its gradient instead of a model."""

    f: Callable[[Array], Array]  # (m, d) -> (m,)
    gradient: Callable[[Array], Array]  # (m, d) -> (m, d)
    posterior: ClassVar[Any] = SimpleNamespace(n=0)

    def __call__(self, z: Array) -> Array:
        return self.f(z)

    def with_gradient(self, z: Array, size: int = 1) -> tuple[Array, Array]:
        return self.f(z), self.gradient(z)

    def reach(self, d: int) -> Array:
        return np.ones(d)

    def result_at(self, row: Array, number: int | None = None, events: tuple[Event, ...] = ()) -> SearchResult:
        return SearchResult(row, np.nan, np.nan, float(self(row[None])[0]), number, events)


def hill(top: Array) -> PlainScore:
    """Return the score -|z - top|^2."""
    return PlainScore(lambda z: -((z - top) ** 2).sum(axis=1), lambda z: -2.0 * (z - top))


def assert_is_slope(
    f: Callable[[Array], Array], gradient: Array, z: Array, steps: Array, rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Compare the gradient of f at z (m, d) with its difference quotients, with a step (d,) along each coordinate."""
    for j, step in enumerate(np.diag(steps)):
        quotient = (f(z + step) - f(z - step)) / (2.0 * step[j])
        np.testing.assert_allclose(gradient[:, j], quotient, rtol=rtol, atol=atol * max(1.0, np.abs(quotient).max()))
