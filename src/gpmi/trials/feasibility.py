"""What the probability of success is learned from: where evaluations succeeded or failed, and measured constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi._support.types import Array, Mask, Numbers, Observations
from gpmi.gp.replicates import places_of


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The points of all values and failures, in the order of their outcomes, and the constraints measured there."""

    x: Array  # (n, d), coordinates
    failed: Mask  # (n,)
    # (t, k), of the t points with a value, in their order; a point is feasible where all are <= 0. nan: not measured.
    constraints: Array
    # Of a run with goals, where an output may be measured without the others: the values of each limit with their
    # points and noise, and how many of them, (t,), there were after each of the t points with a value.
    limits: tuple[Observations, ...] | None = None
    limit_counts: tuple[Numbers, ...] = ()

    @property
    def size(self) -> tuple[int, ...]:
        """How many outcomes there are, and how many values of each limit: within a run it only grows."""
        return (len(self.x), *(() if self.limits is None else map(len, self.limits)))

    @property
    def success(self) -> Mask:
        """Which points have a value, (n,)."""
        return ~self.failed

    @property
    def told(self) -> Array:
        """The coordinates of the points with a value, (t, d)."""
        return self.x[~self.failed]

    @property
    def feasible(self) -> Mask:
        """Which values came with constraints that are all <= 0, (t,)."""
        feasible: Mask = np.all(self.constraints <= 0.0, axis=1)
        return feasible

    def up_to(self, t: int) -> Outcomes:
        """The outcomes up to the t-th value."""
        (told,) = np.nonzero(~self.failed)
        if t == len(told):
            return self
        end, limits = int(told[t - 1]) + 1, self.limits
        if limits is not None:
            counts = [int(counts[t - 1]) for counts in self.limit_counts]
            limits = tuple(limit.first(count) for limit, count in zip(limits, counts, strict=True))
        return Outcomes(self.x[:end], self.failed[:end], self.constraints[:t], limits, self.limit_counts)

    def feasible_at(self, x: Array, *, unmeasured: bool = False) -> Mask:
        """At which of the told points x (m, d) every constraint, averaged over the values there, is <= 0. O(t + m)

        `unmeasured` says whether a constraint holds that was not measured with any of the values there.
        """
        (m, k), told = (len(x), self.constraints.shape[1]), self.told
        place = places_of(np.concatenate([x.reshape(m, self.x.shape[1]), told]))
        unknown = np.isnan(self.constraints)
        sums, measured, missing = np.zeros((3, int(place.max(initial=-1)) + 1, k))
        np.add.at(sums, place[m:], np.where(unknown, 0.0, self.constraints))
        good: Mask = np.all(sums[place[:m]] <= 0.0, axis=1)
        if unknown.any() and not unmeasured:
            np.add.at(measured, place[m:], ~unknown)
            np.add.at(missing, place[m:], unknown)
            good &= np.all((measured > 0.0) | (missing == 0.0), axis=1)[place[:m]]
        return good
