"""The prediction averaged over what the prior may be: what the interval is made of where the prior is learned.

A single prior, the most probable one, takes for certain what is only likely. Averaged over draws of the prior the
prediction is honest if the model is right. Where it is not, the residuals of earlier predictions say so, and the
variances are raised to what they show.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpmi.gp.lifted import Lifted
from gpmi.gp.posterior import Posterior
from gpmi.model import Setting
from gpmi.prior.fit import Prior
from gpmi.prior.warp import Warp
from gpmi.types import Array

FIRST = 4  # values from which the first residuals are foreseen: with fewer a draw of the prior is only its hyper-prior
_BELIEF = 5.0  # the variances count as confirmed by this many residuals of mean square 1; chosen on draws


@dataclass(eq=False)
class Foreseen:
    """What a run's residuals were computed from, so that the next value costs O(n^2) for each draw of the prior."""

    members: dict[tuple[int, Warp], tuple[Posterior, ...]] = field(default_factory=dict)  # by anchor, extended
    residuals: dict[tuple[int, Warp], float] = field(default_factory=dict)  # by the number of the value

    def __call__(self, setting: Setting, x: Array, y: Array, warp: Warp) -> Array:
        """The one-step residuals of warp(y) at x (n, d), from value FIRST + 1 on.

        Value s is predicted from all values before it, under draws of the prior that knew only the first a values: a is
        the largest power of 2 below s. The draws have equal weights. (y - mean) / sd, both those of the mixture.
        """
        z, n = warp(y), len(y)
        for s in range(FIRST, n):
            if (s, warp) not in self.residuals:
                self.residuals[s, warp] = self._residual(setting, x, y, z, s, warp)
        return np.array([self.residuals[s, warp] for s in range(FIRST, n)])

    def _residual(self, setting: Setting, x: Array, y: Array, z: Array, s: int, warp: Warp) -> float:
        anchor = 1 << (s.bit_length() - 1)
        members = self.members.get((anchor, warp))
        if members is None:
            drawn = setting.priors.draws(anchor, x, y, warp)
            members = tuple(prior.posterior().condition(x[:anchor], z[:anchor]) for prior in drawn)
        while members[0].n <= s:
            k = members[0].n
            members = tuple(member.condition(x[k], z[k : k + 1]) for member in members)
        self.members[anchor, warp] = members
        mu, var = np.array([_foreseen(member, s) for member in members]).T
        return float((z[s] - mu.mean()) / np.sqrt(var.mean() + mu.var()))


def _foreseen(posterior: Posterior, s: int) -> tuple[float, float]:
    """The mean and the variance of observation s, noise included, as predicted from those before it. O(n)."""
    row = posterior.factor.row(s)
    pivot = float(row[-1])
    return float(posterior.y[s]) - pivot * float(posterior.whitened[s]), pivot**2


def inflation(z: Array) -> float:
    """s^2 = max(1, (b + sum z^2) / (b + n)), by which the variances must be multiplied to explain residuals z (n,)."""
    return max(1.0, (_BELIEF + float(z @ z)) / (_BELIEF + len(z)))


def inflated(prior: Prior, factor: float) -> Posterior:
    """The posterior without observations, the variances of f and of the noise multiplied by a factor."""
    kernel = prior.kernel
    if isinstance(kernel, Lifted):
        kernel = Lifted(kernel.base, factor * kernel.factor, kernel.constant)
        return Posterior.prior(kernel, factor * prior.noise_var, prior.mean)
    return prior.posterior()


def averaged(setting: Setting, x: Array, y: Array, warp: Warp, factor: float) -> tuple[Posterior, ...]:
    """The posteriors of warp(y) given y at x (n, d) under draws of the prior. Their mixture is what is believed."""
    point, z = setting.priors.point(len(y)), warp(y)
    return tuple(inflated(prior, factor).condition(x, z) for prior in setting.priors.draws(point, x, y, warp))
