"""The policy of aim="earn": exploration as an investment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Mask
from gpmi.policies.normal import LARGEST_Z, pdf
from gpmi.policies.policy import OF_FAILURE, TINY, Guarantee, PointSearch, Policy, Selected, State


class _Priced(NamedTuple):
    """phi at m points, and its parts."""

    phi: Array  # (m,)
    limited: Mask  # (m,), whether c H_t EI, not sqrt(alpha_t) sd, limits phi
    weight: float  # k_t c H_t
    optimism: float  # k_t sqrt(alpha_t)
    sd: Array  # (m,)
    cdf: Array  # (m,), the normal cdf at (mu - best mean) / sd
    density: Array  # (m,)


TRUST = 0.25  # initial value of `promised` and `kept`, so that k_1 = 1; our choice, without an ablation


@dataclass(frozen=True)
class Reinvest(Policy):
    """phi_t = k_t min(sqrt(alpha_t) sd, c H_t EI(x; best posterior mean)), alpha_t = log(2 t^2 / delta): aim="earn".

    Exploration is treated as an investment.

    - sqrt(alpha_t) sd is GP-MI's phi while gamma_hat = 0. It grows slowly with t, so no point is given up for ever.
    - c H_t EI limits the price to what exploring can bring back: the expected improvement, in each of the H_t queries
      that are left. H_t = T - t + 1 with a horizon T. Without one, or beyond it, H_t = t: the run is expected
      to last as long again as it has lasted. With fixed coordinates, H_t - 1 is multiplied by the share of a gain that
      carries over to other fixed coordinates (`gpmi.optimizer.contexts.share_of_gain`).
    - k_t = (1/4 + kept) / (1/4 + promised), between `floor` and 1, is the share of the model's promises that were kept
      so far (`gpmi.policies.promises`). If exploring did not bring what the model promised, the policy explores less.
      As those queries fade from the account, it explores again.

    GP-MI stops exploring because it has learned much. Reinvest stops because it has gained little, and starts again.

    c and delta were chosen on the tasks of docs/benchmarks/policies.md, which has their ablations (c = 1 and 100, delta
    = 1e-6); `floor` is our choice, and the proof needs it above 0 (docs/proofs.md). docs/notes/reinvest.md has
    alternatives.

    On a finite set with a given prior, aim="earn" stands for `gpmi.policies.guard.Guarded(Reinvest())`, which has a
    bound for every T.
    """

    c: float = 10.0
    delta: float = 0.1
    floor: float = 0.1

    guarantee: ClassVar[Guarantee] = Guarantee(
        True,
        "almost surely every point is queried again and again, and R_T <= sum over suboptimal x of "
        "4 noise_var alpha_T / gap(x) + a finite random constant: R_T = O(log T). No rate uniform in f; the constant "
        "may be huge. aim='earn' adds a bound for every T by a guard, where one is known.",
        "finite set, kernel and noise_var > 0 given, any f, independent noise of finite variance, K positive definite "
        "on the set, no horizon. Nothing for boxes or for a prior that is refitted",
        "this project, docs/proofs.md",
    )
    grows_with_var: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.positive("c", self.c)
        checks.probability("delta", self.delta, OF_FAILURE)
        if not 0.0 < checks.number("floor", self.floor, "give a share between 0 and 1") <= 1.0:
            raise ValueError(f"floor is {self.floor!r}; give a share between 0 and 1")

    def choose(self, search: PointSearch) -> Selected:
        return search.best(self, discount=True)

    def share(self, state: State) -> float:
        """Return k_t, the share of the model's promises that were kept so far."""
        promises = state.promises
        return min(1.0, max(self.floor, (TRUST + promises.kept) / (TRUST + promises.promised)))

    def queries_left(self, state: State) -> float:
        """Return H_t, the number of queries, this one included, that can use a gain found now."""
        t, horizon = state.t, state.horizon
        left = t if horizon is None or t > horizon else horizon - t + 1
        return 1.0 + state.alike * (left - 1)

    def phi(self, var: Array, state: State, mu: Array | None = None) -> Array:
        """Return phi_t where the posterior has variance var and mean mu, by default the best posterior mean so far."""
        at = np.full_like(var, state.best_mean) if mu is None else mu
        return self._priced(at, var, state).phi

    def score(self, mu: Array, var: Array, state: State) -> Array:
        return mu + self.phi(var, state, mu)

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        phi, limited, weight, optimism, sd, cdf, density = self._priced(mu, var, state)
        by_mu = np.where(limited, weight * cdf, 0.0)
        by_var = np.where(limited, weight * density, optimism) / (2.0 * sd)
        return mu + phi, 1.0 + by_mu, by_var

    def _priced(self, mu: Array, var: Array, state: State) -> _Priced:
        """Return phi and the parts of its derivatives."""
        from scipy.special import ndtr

        k, sd = self.share(state), np.sqrt(np.maximum(var, TINY))
        weight = k * self.c * self.queries_left(state)
        z = np.minimum(np.maximum((mu - state.best_mean) / sd, -LARGEST_Z), LARGEST_Z)
        cdf, density = ndtr(z), pdf(z)
        # EI directly, not by its logarithm: where its digits cancel, it is far below the rounding of mu.
        returned = weight * sd * (density + z * cdf)
        optimism = k * math.sqrt(math.log(2.0 * state.t**2 / self.delta))
        paid = optimism * sd
        limited = returned < paid
        return _Priced(np.where(limited, returned, paid), limited, weight, optimism, sd, cdf, density)
