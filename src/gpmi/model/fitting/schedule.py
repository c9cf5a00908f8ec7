"""When a fit is made: the prior in use with n observations, either fixed or learned from the first of them.

How many of them are used, and where the fit starts, depend on n alone. That is why a run replays bit for bit.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Literal

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Observations
from gpmi.gp.kernels import Kernel
from gpmi.model.fitting.criterion import Criterion, FitSetting
from gpmi.model.fitting.data import FIT_POINTS, FitData, merges
from gpmi.model.fitting.fit import Prior, fit
from gpmi.model.fitting.given_kernel import given_kernel
from gpmi.model.fitting.leave_one_out import LeaveOneOut
from gpmi.model.fitting.level_covariance import LevelColumn
from gpmi.model.fitting.noise_fit import fit_noise
from gpmi.model.fitting.source_fit import fit_with_sources
from gpmi.model.fitting.source_rows import SourceRows
from gpmi.model.fitting.student_prior import fit_student
from gpmi.model.fitting.warp import IDENTITY, Warp
from gpmi.model.fitting.warp_selection import WARP_FROM, choose_warp, softened
from gpmi.space.features import FeatureColumns

BULK = 128  # from this many preloaded values on, one fit serves all; for fewer, fits cost less than two suggestions


class PriorSchedule:
    """The prior in use with n observations, for every n: fixed, or learned from the first `fit_size(n)` and cached.

    kernel=None stands for Matern(nu=2.5, lengthscale=None, variance=None). Everything that is None is learned. `fit`
    says how: by the marginal likelihood ("map"), by the leave-one-out likelihood ("loo"), or by "map" with draws of the
    prior in addition ("mcmc").
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
        soften: bool = False,  # whether the worse half of the values is always compressed (`softened`)
        noise: Literal["normal", "student"] = "normal",
        transforms: bool = True,  # whether y may be transformed
        levels: LevelColumn | None = None,  # of a fidelity with levels
        features: FeatureColumns | None = None,  # of options with descriptors
        sources: SourceRows | None = None,  # of earlier studies, to whose functions f is related
    ) -> None:
        template = given_kernel(kernel, len(span))
        noise_var = None if noise_var is None else checks.variance("noise_var", noise_var)
        checks.one_of("fit", fit, ("map", "loo", "mcmc"))
        if fit != "map" and not template.unknown:
            raise ValueError(f"fit is {fit!r}, but kernel is given, so it is not learned; leave out one of them")
        checks.one_of("noise", noise, ("normal", "student"))
        if noise == "student" and fit != "map":
            raise ValueError(f"noise is 'student', but fit is {fit!r}; under heavy tails the prior is learned by 'map'")
        criterion = LeaveOneOut if fit == "loo" else Criterion
        self.student_noise = noise == "student"  # heavy tails: Student's t
        self.setting = FitSetting(template, noise_var, span, groups, criterion, levels, features, sources)
        self._sampled, self.seed, self._soften, self._transforms = fit == "mcmc", seed, soften, transforms
        self._learned: dict[int, Prior] = {}

    def cleared(self) -> PriorSchedule:
        """Return a copy with nothing learned, for other observations."""
        fresh = copy(self)
        fresh._learned = {}
        return fresh

    @cached_property
    def is_fixed(self) -> bool:
        """Whether nothing is learned."""
        return self.setting.noise_var is not None and not self.setting.template.unknown

    @property
    def learns_kernel(self) -> bool:
        """Whether a part of the kernel is learned."""
        return bool(self.setting.template.unknown)

    @property
    def noise_var(self) -> float | None:
        """The fixed noise variance; None if it is learned."""
        return self.setting.noise_var

    def fit_size(self, n: int) -> int:
        """Return how many of n observations the prior in use is learned from."""
        return 0 if self.is_fixed else fit_size(n)

    def begin(self, observed: Observations) -> int:
        """Return how many of these observations enter the posterior together: those from which the prior is learned.

        If values are merged and the prior is fixed, it is as many as if the prior were learned.
        """
        if self.student_noise:
            return self.fit_size(len(observed))
        return fit_size(len(observed)) if not self.is_fixed or merges(observed) else 0

    def __call__(self, p: int, observed: Observations, *, known_mean: bool = False, preloaded: int = 0) -> Prior:
        """Return the prior learned from the first p of the observations; y is oriented: larger is better.

        y is not transformed if a known part of its mean was subtracted, or if some values have error bars, which are in
        units of y. It is not transformed under heavy-tailed noise either: a transformation would explain the tails
        away.

        `preloaded` observations existed before the first suggestion. If there are BULK of them or more, no fit on fewer
        is needed. Then the first fit has no warm start, a bulk load costs one fit, and later fits start from it.
        """
        kernel, noise_var = self.setting.template, self.setting.noise_var
        if self.is_fixed:
            assert noise_var is not None
            return Prior(kernel, noise_var)
        if p not in self._learned:
            self._learned[p] = self._fit(p, observed, known_mean, preloaded)
        return self._learned[p]

    def _fit(self, p: int, observed: Observations, known_mean: bool, preloaded: int) -> Prior:
        first, kernel = observed.first(p), self.setting.template
        if self.student_noise:
            return fit_student(self.setting, first)
        data = FitData.of(first)
        if not kernel.unknown:
            return fit_noise(data.x, data.y, kernel, data.noises)
        is_bulk, begin, first_fit = p >= BULK <= preloaded, warm_size(p), fit_size(preloaded)
        if is_bulk and (begin is None or begin < first_fit):
            begin = first_fit if first_fit < p else None  # no fit on fewer values exists, or is needed
        is_cold = is_bulk and begin is None
        warm = None if begin is None else self(begin, observed, known_mean=known_mean, preloaded=preloaded)
        wide = is_cold or is_wide(p)
        if self.setting.sources is None:
            return self._alone(first, data, warm, known_mean=known_mean, anew=is_cold, wide=wide)
        earlier = () if warm is None else (warm, warm.rival)
        warms = {prior.sources is not None: prior for prior in earlier if prior is not None}
        alone = self._alone(first, data, warms.get(False), known_mean=known_mean, anew=is_cold, wide=wide)
        return fit_with_sources(self.setting, data, p, warms.get(True), alone, wide=wide, rng=self._rng(p))

    def _alone(
        self, first: Observations, data: FitData, warm: Prior | None, *, known_mean: bool, anew: bool, wide: bool
    ) -> Prior:
        """Return the prior that is learned from the observations, without earlier studies."""
        warp = IDENTITY
        if self._transforms and not (known_mean or first.noise_var.any()):
            warp = self._warp(first.x, first.y, IDENTITY if warm is None else warm.warp, anew=anew)
        if warp.bends and data.noises is not None:  # the mean of warp(y) is not warp(the mean of y)
            data = FitData.of(replace(first, y=warp(first.y)))
            data = replace(data, y=warp.inverse(data.y))
        learn = partial(fit, self._without_sources, data.x, data.y, noises=data.noises)
        predictive = self.setting.sources is not None
        n = len(first)
        return learn(warp=warp, warm=warm, wide=wide, many=n > FIT_POINTS, rng=self._rng(n), predictive=predictive)

    def _rng(self, p: int) -> np.random.Generator | None:
        """Return the random numbers of the fit on p observations; None if it draws no priors."""
        return np.random.default_rng([self.seed, p, 0]) if self._sampled else None

    @cached_property
    def _without_sources(self) -> FitSetting:
        return replace(self.setting, sources=None)

    def setting_of(self, near: Prior) -> FitSetting:
        """Return the setting of the fit `near`: without earlier studies, if they were ignored."""
        return self._without_sources if near.sources is None else self.setting

    def _warp(self, x: Array, y: Array, before: Warp, *, anew: bool) -> Warp:
        """Return the transformation of y: chosen at 8, 16, ..., 256 observations or `anew`, if nothing is fixed.

        Beyond FIT_POINTS it stays, because a fit uses no more observations than that.
        """
        n = len(y)
        if self.setting.all_unknown and n >= WARP_FROM and (anew or n == _octave(n) <= FIT_POINTS):
            return softened(y) if self._soften else choose_warp(self._without_sources, x, y)
        return before


def fit_size(n: int) -> int:
    """Return from how many of n observations the prior in use is learned.

    There is a fit at every n up to 16, then 8 fits in each doubling of n, and 4 from n = 64 on. A fit costs at most
    O(n^3) and serves at least n / 16 suggestions, so its cost per suggestion is O(n^2). The numbers are our choice.
    """
    octave = _octave(n)
    return n - n % max(1, octave // (8 if octave < 64 else 4))


def warm_size(p: int) -> int | None:
    """Return the earlier fit, by its number of observations, from which the fit on p observations takes its warm start.

    It is p with its lowest 1 in binary set to 0: a recent fit, which itself needs at most log2(p) earlier fits if all
    data came at once. A power of 2 starts from half of it, or without a warm start below 128, where a fit is cheap.
    """
    if p != _octave(p):
        return p & (p - 1)
    return p // 2 if p >= 128 else None


def is_wide(p: int) -> bool:
    """Return whether the fit on p observations has other starts besides its warm start.

    It has up to 16 observations, at 24, 32, 48, 64, 128 and 256, and beyond FIT_POINTS: there a fit serves many
    suggestions, so its cost does not matter, and a wrong optimum would be inherited by all later ones. Our choice.
    """
    return p <= 16 or p > FIT_POINTS or p == _octave(p) or (p <= 64 and 2 * p == 3 * _octave(p))


def _octave(n: int) -> int:
    """Return the largest power of 2 up to n, 0 for 0."""
    return 1 << (n.bit_length() - 1) if n else 0
