"""The values of earlier studies, as rows of a fit and of the prior.

Each source has its own units: its values are standardised, so they may be in any unit and of any sign. Its noise was
learned from its values alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.gp.conditioned import Conditioned
from gpmi.gp.kernels import Kernel
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.data import subset
from gpmi.model.fitting.level_covariance import LevelColumn
from gpmi.model.fitting.row_noise import RowNoise

# The largest number of rows of all sources that a fit uses, for its cost: with those of the study it is O(n^3). Our
# choice, not tuned.
FIT_ROWS = 128


@dataclass(frozen=True, eq=False)
class SourceRows:
    """Values of S sources; the study itself is number S."""

    x: Array  # (n, d)
    y: Array  # (n,), standardised for each source
    noise: Array  # (n,), its noise variance in the same units
    number: Numbers  # (n,), of the source
    names: tuple[str, ...]

    @property
    def column(self) -> LevelColumn:
        """The coordinate that numbers the functions, after those of the space."""
        return LevelColumn(self.x.shape[1], len(self.names) + 1, star=True)

    def flipped(self, q: Array) -> list[Array]:
        """Return q with all correlations negated, and with each of them alone: the likelihood has a peak on each side.

        q ends with the S correlations and the noise (`PairwiseLevels`).
        """
        count = len(self.names)
        signs = [-np.ones(count)]
        if count > 1:
            signs += list(1.0 - 2.0 * np.eye(count))
        return [np.concatenate([q[: -1 - count], sign * q[-1 - count : -1], q[-1:]]) for sign in signs]

    def for_fit(self) -> SourceRows:
        """Return at most FIT_ROWS of the rows, equally many of each source."""
        each = max(2, FIT_ROWS // len(self.names))
        kept = [np.flatnonzero(self.number == s) for s in range(len(self.names))]
        rows = np.concatenate([numbers[subset(self.y[numbers], each)] for numbers in kept])
        if len(rows) == len(self.y):
            return self
        return replace(self, x=self.x[rows], y=self.y[rows], noise=self.noise[rows], number=self.number[rows])

    def with_rows(self, x: Array, y: Array, noises: RowNoise | None) -> tuple[Array, Array, RowNoise]:
        """Return the rows of the sources, then those of the study, (m, d + 1), standardised, with their noise.

        A source is a mean of infinitely many values, as far as the common noise goes: it has its own noise alone.
        """
        n, m = len(self.y), len(y)
        ones, zeros = np.ones(m), np.zeros(m)
        study = noises or RowNoise(ones, zeros, ones, zeros)
        sources = RowNoise(np.full(n, np.inf), self.noise, np.ones(n), np.zeros(n))
        number = np.concatenate([self.number, np.full(m, len(self.names))])
        rows = np.column_stack([np.concatenate([self.x, x]), number])
        both = RowNoise(*(np.concatenate(pair) for pair in zip(sources, study, strict=True)))
        return rows, np.concatenate([self.y, y]), both

    def condition(
        self, kernel: Kernel, noise_var: float, mean: float, location: float, scale: float, factor: float = 1.0
    ) -> Conditioned:
        """Return f given the values of the sources, in the units of the study: location + scale * standardised."""
        rows, noise = np.column_stack([self.x, self.number]), factor * self.noise * scale**2
        start = Posterior.prior(kernel, noise_var, mean)
        return Conditioned(start.condition(rows, location + scale * self.y, noise), float(len(self.names)))


class SourceUnits(NamedTuple):
    """The values of earlier studies in the units of this one: location + scale * standardised value."""

    rows: SourceRows
    location: float
    scale: float
    noise_factor: float = 1.0  # of the noise variances

    def condition(self, kernel: Kernel, noise_var: float, mean: float) -> Conditioned:
        """Return f given the values of the sources."""
        return self.rows.condition(kernel, noise_var, mean, self.location, self.scale, self.noise_factor)
