"""Which prior is in use with n observations: given, or learned from the first few of them.

Which observations a prior is learned from, and how, is a function of n alone, so that runs replay.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gpmi import checks
from gpmi.gp.kernels import Kernel
from gpmi.prior.choice import WARP_FROM, choose_warp
from gpmi.prior.criterion import Setting
from gpmi.prior.data import FIT_POINTS
from gpmi.prior.fit import Prior, fit, fit_noise
from gpmi.prior.unknowns import DEFAULT
from gpmi.prior.warp import IDENTITY, Warp
from gpmi.types import Array


class Priors:
    """The prior in use with n observations, for every n: given, or learned from the first `point(n)` of them and kept.

    kernel None stands for Matern(nu=2.5, lengthscale=None, variance=None); what is None is learned, by the marginal
    likelihood ("map"), the leave-one-out one ("loo"), or the first with draws of the prior ("mcmc").
    """

    def __init__(
        self,
        kernel: Kernel | None,
        noise_var: float | None,
        fit: Literal["map", "loo", "mcmc"],
        *,
        span: Array,  # (d,), the width of the space
        groups: tuple[int, ...],  # (d,), the parameter that each coordinate belongs to
        seed: int,
    ) -> None:
        template = _checked_kernel(kernel, len(span))
        noise_var = None if noise_var is None else checks.variance("noise_var", noise_var)
        checks.one_of("fit", fit, ("map", "loo", "mcmc"))
        if fit != "map" and not template.unknown:
            raise ValueError(f"fit is {fit!r}, but kernel is given, so it is not learned; leave out one of them")
        self._setting = Setting(template, noise_var, span, groups, loo=fit == "loo")
        self._sampled, self._seed = fit == "mcmc", seed
        self._learned: dict[int, Prior] = {}

    @property
    def given(self) -> bool:
        """Whether nothing is learned."""
        return self._setting.noise_var is not None and not self._setting.template.unknown

    def point(self, n: int) -> int:
        """How many of n observations are behind the prior in use."""
        return 0 if self.given else fit_point(n)

    def __call__(self, p: int, x: Array, y: Array) -> Prior:
        """The prior learned from the first p of the observations x (n, d), y (n,), of which large y are good."""
        kernel, noise_var = self._setting.template, self._setting.noise_var
        if not kernel.unknown and noise_var is not None:
            return Prior(kernel, noise_var)
        if p not in self._learned:
            if not kernel.unknown:
                self._learned[p] = fit_noise(x[:p], y[:p], kernel)
            else:
                begin = warm_point(p)
                warm = None if begin is None else self(begin, x, y)
                warp = self._warp(x[:p], y[:p], IDENTITY if warm is None else warm.warp)
                rng = np.random.default_rng([self._seed, p, 0]) if self._sampled else None
                self._learned[p] = fit(self._setting, x[:p], y[:p], warp=warp, warm=warm, wide=is_wide(p), rng=rng)
        return self._learned[p]

    def _warp(self, x: Array, y: Array, before: Warp) -> Warp:
        """The transformation of y: chosen at 8, 16, 32, ... observations where nothing is given, else as before."""
        n = len(y)
        if self._setting.all_unknown and n >= WARP_FROM and n == _octave(n):
            return choose_warp(self._setting, x, y)
        return before


def fit_point(n: int) -> int:
    """The number of observations behind the prior in use when there are n.

    Every n up to 16, then 8 per doubling, from 64 on 4. A fit costs O(n^3) and serves of the order of n suggestions, so
    the average per suggestion stays of order n^2.
    """
    octave = _octave(n)
    return n - n % max(1, octave // (8 if octave < 64 else 4))


def warm_point(p: int) -> int | None:
    """The number of observations of the earlier fit from which the one on p observations starts, if any.

    It is p without its lowest binary digit, a recent fit with few fits behind it even if all the data came at once.
    The first fit of a doubling starts, unless it is cheap, from the first of the doubling before.
    """
    if p != _octave(p):
        return p & (p - 1)
    return p // 2 if p >= 128 else None


def is_wide(p: int) -> bool:
    """Whether the fit on p observations looks beyond its warm start: up to 16, at 24, 32, 48, 64, 128 and 256.

    A later fit sees no more observations than that at 256.
    """
    return p <= 16 or (p == _octave(p) and p <= FIT_POINTS) or (p <= 64 and 2 * p == 3 * _octave(p))


def _octave(n: int) -> int:
    """The largest power of 2 up to n, 0 for 0."""
    return 1 << (n.bit_length() - 1) if n else 0


def _checked_kernel(kernel: Any, d: int) -> Kernel:
    if kernel is None:
        return DEFAULT
    if isinstance(kernel, type):
        raise TypeError(f"kernel is the class {kernel.__name__}; give an instance, {kernel.__name__}(...)")
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel is {kernel!r}; give a kernel such as gpmi.kernels.RBF(lengthscale=0.3)")
    if kernel.dim not in (None, d):
        raise ValueError(
            f"kernel has {kernel.dim} lengthscales but the space has {d} coordinates; give one lengthscale "
            "per coordinate, or a single number for all"
        )
    return kernel
