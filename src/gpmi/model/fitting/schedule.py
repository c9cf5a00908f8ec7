"""Which prior is in use with n observations: a given one, or one learned from the first of them.

How many of them, and where the fit starts, is a function of n alone. That is why a run replays bit for bit.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Observations
from gpmi.gp.kernels import Kernel
from gpmi.model.fitting.choice import WARP_FROM, choose_warp, softened
from gpmi.model.fitting.criterion import Setting
from gpmi.model.fitting.data import FIT_POINTS, Data, merges
from gpmi.model.fitting.doubt import Unseen, unseen_noise
from gpmi.model.fitting.draws import draws, draws_of_noise, moved
from gpmi.model.fitting.fit import Prior, fit, fit_noise
from gpmi.model.fitting.heavy import fit_student
from gpmi.model.fitting.unknowns import DEFAULT
from gpmi.model.fitting.warp import IDENTITY, Warp

BULK = 128  # as many values told at once are fitted at once; below, the fits before cost less than a suggestion or two


class Priors:
    """The prior in use with n observations, for every n: given, or learned from the first `point(n)` and remembered.

    kernel=None stands for Matern(nu=2.5, lengthscale=None, variance=None). What is None is learned: by the marginal
    likelihood ("map"), by the leave-one-out likelihood ("loo"), or as "map" with draws of the prior as well ("mcmc").
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
        soften: bool = False,  # whether the worse half of the values is compressed in any case (`softened`)
        noise: Literal["normal", "student"] = "normal",
    ) -> None:
        template = _checked_kernel(kernel, len(span))
        noise_var = None if noise_var is None else checks.variance("noise_var", noise_var)
        checks.one_of("fit", fit, ("map", "loo", "mcmc"))
        if fit != "map" and not template.unknown:
            raise ValueError(f"fit is {fit!r}, but kernel is given, so it is not learned; leave out one of them")
        checks.one_of("noise", noise, ("normal", "student"))
        if noise == "student" and fit != "map":
            raise ValueError(f"noise is 'student', but fit is {fit!r}; under heavy tails the prior is learned by 'map'")
        self.heavy = noise == "student"  # whether the noise has the tails of Student's t
        self._setting = Setting(template, noise_var, span, groups, loo=fit == "loo")
        self._sampled, self._seed, self._soften = fit == "mcmc", seed, soften
        self._learned: dict[int, Prior] = {}

    def anew(self) -> Priors:
        """The same, with nothing learned: for other observations."""
        fresh = copy(self)
        fresh._learned = {}
        return fresh

    @cached_property
    def given(self) -> bool:
        """Whether nothing is learned."""
        return self._setting.noise_var is not None and not self._setting.template.unknown

    @property
    def noise_var(self) -> float | None:
        """The given noise variance; None if it is learned."""
        return self._setting.noise_var

    def point(self, n: int) -> int:
        """How many of n observations the prior in use is learned from."""
        return 0 if self.given else fit_point(n)

    def begin(self, observed: Observations) -> int:
        """How many of these observations enter the posterior together: those that the prior is learned from.

        Where values are merged and the prior is given it is as many as if it were learned.
        """
        if self.heavy:
            return self.point(len(observed))
        return fit_point(len(observed)) if not self.given or merges(observed) else 0

    def __call__(self, p: int, observed: Observations, *, known_mean: bool = False, given: int = 0) -> Prior:
        """The prior learned from the first p of the observations; y is oriented: larger is better.

        y is not transformed if a part of its mean is known and was subtracted, nor if some values have error bars:
        these are in units of y. Nor is it if the noise has heavy tails: a transformation would explain these away.
        `given` observations were there before anything was asked. If they are many, BULK or more, no fit on fewer is
        needed: the first fit has no warm start, a bulk load costs one fit, and later ones start from it.
        """
        kernel, noise_var = self._setting.template, self._setting.noise_var
        if self.given:
            assert noise_var is not None
            return Prior(kernel, noise_var)
        if p not in self._learned:
            first = observed.first(p)
            if self.heavy:
                self._learned[p] = fit_student(self._setting, first)
                return self._learned[p]
            data = Data.of(first)
            if not kernel.unknown:
                self._learned[p] = fit_noise(data.x, data.y, kernel, data.noises)
            else:
                begin, first_fit = warm_point(p), fit_point(given)
                if p >= BULK <= given and (begin is None or begin < first_fit):
                    begin = first_fit if first_fit < p else None  # no fit on fewer values is there, or needed
                cold = p >= BULK <= given and begin is None
                warm = None if begin is None or cold else self(begin, observed, known_mean=known_mean, given=given)
                before = IDENTITY if warm is None else warm.warp
                untransformed = known_mean or first.noise_var.any()
                warp = IDENTITY if untransformed else self._warp(first.x, first.y, before, anew=cold)
                if warp.bends and data.noises is not None:  # a mean of y is not one of warp(y)
                    data = Data.of(replace(first, y=warp(first.y)))
                    data = replace(data, y=warp.inverse(data.y))
                rng = np.random.default_rng([self._seed, p, 0]) if self._sampled else None
                learn = partial(fit, self._setting, data.x, data.y, noises=data.noises)
                self._learned[p] = learn(warp=warp, warm=warm, wide=cold or is_wide(p), rng=rng)
        return self._learned[p]

    def drawn(
        self, p: int, observed: Observations, warp: Warp, *, known_mean: bool = False, given: int = 0
    ) -> tuple[Prior, ...]:
        """What the prior of warp(y) may be, given the first p of the observations: draws with equal weights.

        No suggestion uses them. Only for a prior that is learned.
        """
        first = observed.first(p)
        if not self._setting.template.unknown:
            return draws_of_noise(self._setting, first)
        near = self(fit_point(p), observed, known_mean=known_mean, given=given)
        return draws(self._setting, first, near, warp, self._stream(p, 3))

    def moved(
        self, p: int, observed: Observations, before: tuple[Prior, ...], *, known_mean: bool = False, given: int = 0
    ) -> tuple[Prior, ...]:
        """Draws given the first p of the observations, made from draws `before` that have their law, see `moved`."""
        first = observed.first(p)
        if not self._setting.template.unknown:
            return draws_of_noise(self._setting, first)
        near = self(fit_point(p), observed, known_mean=known_mean, given=given)
        hessian = near.hessian if near.warp == before[0].warp and not self._setting.loo else None
        return moved(self._setting, first, before, hessian, self._stream(p, 4))

    def unseen_noise(self, observed: Observations, near: Prior) -> Unseen | None:
        """The noise that there may be although `near`, learned from these values, has next to none; or None."""
        learned = self._setting.template.unknown and not self.heavy
        return unseen_noise(self._setting, observed, near) if learned else None

    def _stream(self, p: int, use: int) -> np.random.Generator:
        """Random numbers that no suggestion draws from; 1 and 2 in the last place are those of the ledger."""
        return np.random.default_rng([self._seed, p, 0, use])

    def _warp(self, x: Array, y: Array, before: Warp, *, anew: bool) -> Warp:
        """The transformation of y: chosen at 8, 16, ..., 256 observations, or `anew`, if nothing is given.

        Beyond FIT_POINTS it stays, because no more observations than that are looked at.
        """
        n = len(y)
        if self._setting.all_unknown and n >= WARP_FROM and (anew or n == _octave(n) <= FIT_POINTS):
            return softened(y) if self._soften else choose_warp(self._setting, x, y)
        return before


def fit_point(n: int) -> int:
    """How many of n observations the prior in use is learned from.

    There is a fit at every n up to 16, then 8 fits in each doubling of n, and 4 from n = 64 on. A fit costs at most
    O(n^3) and serves at least n / 16 suggestions, so its cost per suggestion is O(n^2). The numbers are our choice.
    """
    octave = _octave(n)
    return n - n % max(1, octave // (8 if octave < 64 else 4))


def warm_point(p: int) -> int | None:
    """The earlier fit, by its number of observations, from which the fit on p observations takes its warm start.

    It is p with its lowest 1 in binary set to 0: a recent fit, which itself needs at most log2(p) earlier fits if all
    data came at once. A power of 2 starts from half of it, or without a warm start below 128, where a fit is cheap.
    """
    if p != _octave(p):
        return p & (p - 1)
    return p // 2 if p >= 128 else None


def is_wide(p: int) -> bool:
    """Whether the fit on p observations has starts besides its warm start: up to 16, at 24, 32, 48, 64, 128 and 256.

    Beyond 256 a fit uses no more observations than that (FIT_POINTS), so its optimum moves little. Our choice.
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
