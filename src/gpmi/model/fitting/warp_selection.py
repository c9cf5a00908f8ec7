"""Decide whether to transform y before it is modelled, and how."""

from __future__ import annotations

import math

import numpy as np

from gpmi._support.sobol import far_apart
from gpmi._support.types import Array
from gpmi.model.fitting.criterion import FitSetting
from gpmi.model.fitting.data import FIT_POINTS, standardised, subset
from gpmi.model.fitting.descent import descend, start
from gpmi.model.fitting.warp import IDENTITY, Warp

# Our choices, not tuned. A transformation must be better by many nats (see _CLEARLY), so a rough fit on few
# observations is enough to decide.
WARP_PLACES = 4  # different points among them, at least: this few already show a penalty value at one of them
WARP_FROM = 8  # observations, at least: with fewer the evidence is never clear
_WARP_POINTS = 64  # observations used, at most
_WARP_APART = 0.05  # of two observations closer than this, in diagonals of the cube, only one is used
_WARP_ROUNDS = 6  # steps of a descent

# The gain in log evidence, in nats, that a transformation needs over none: the larger of _CLEARLY (on pure noise the
# gain is 1 to 4) and a number for each observation. That number is larger if the transformation compresses the
# differences between the best values, which costs cumulative regret. On Hartmann-6, where this would hurt, the gain is
# 0.3 to 1.4 for each observation. Chosen on eight functions. A check used other seeds (T = 45, 8 runs each; the runs
# were not stored). A transformation was chosen in every run on Goldstein-Price, Zakharov-4 and Beale, where R_T / T
# became 0.3 to 0.6 times as large, and in 1 of 56 runs on seven other problems.
_CLEARLY, _CLEARLY_EACH, _CLEARLY_EACH_AT_BEST = 6.0, 0.5, 1.5


def choose_warp(setting: FitSetting, x: Array, y: Array) -> Warp:
    """Return the transformation z(y) with the largest evidence p(y) = p(z) dz/dy, if it is clearly better than none.

    y is oriented so that larger is better. There are three kinds of transformation: logarithmic above the lowest value,
    below the highest value, or beyond both quartiles. The kind that makes y most normal is a candidate, with up to
    three widths. The evidence decides between these and none. That takes up to four rough fits on at most _WARP_POINTS
    observations; each but the first starts where the last one ended.
    """
    x, y = _thinned(setting, x, y)
    if len(y) < WARP_PLACES:
        return IDENTITY
    normal, kind = max(
        ((max(_log_density(warp, y) for warp in kind), kind) for kind in _warps(y)),
        default=(-np.inf, []),
        key=lambda pair: pair[0],
    )
    # If y does not become much more normal, it will not become clearly more probable: no fit is needed.
    if normal - _log_density(IDENTITY, y) < 0.5 * max(_CLEARLY, _CLEARLY_EACH * len(y)):
        return IDENTITY
    best, value, peak = IDENTITY, -np.inf, None
    for warp in [IDENTITY, *kind]:
        _, scale, z = standardised(warp(y))
        criterion = setting.by_evidence.criterion(x, z, scale)
        centre, noisy = criterion.unknowns.centre, criterion.unknowns.noisy
        starts = [peak] if peak else [start(criterion, q) for q in (centre, noisy)]
        peak = min((descend(criterion, begin, _WARP_ROUNDS) for begin in starts), key=lambda peak: peak.loss)
        evidence = float(warp.log_slope(y).sum()) - len(y) * math.log(scale) - peak.loss
        if warp.bends:
            at_best = warp.hi < np.inf
            evidence -= max(_CLEARLY, len(y) * (_CLEARLY_EACH_AT_BEST if at_best else _CLEARLY_EACH))
        if evidence > value:
            best, value = warp, evidence
    return best


def softened(y: Array) -> Warp:
    """Return a warp that is logarithmic below the median of y, in units of the distance from there to the best value.

    y is oriented. On a finite set only the ranking near the top matters. How bad a bad row is says little about where
    the best one is, but it affects the scale and the lengthscales that a fit finds. So values below the median are
    compressed. Median and unit are our choice among the four tried on the development tables of
    docs/benchmarks/tables.md.
    """
    middle, best = float(np.median(y)), float(y.max())
    unit = best - middle
    return Warp(middle, np.inf, unit, middle) if unit > 1e-10 * (best - float(y.min())) else IDENTITY


def _thinned(setting: FitSetting, x: Array, y: Array) -> tuple[Array, Array]:
    """Return at most _WARP_POINTS observations; of those close to each other, the one farthest from the median of y.

    A run collects many observations near its optimum, with ever smaller differences between them. These say nothing
    about the shape of f. The most extreme one stays, so that an outlier is not overlooked.
    """
    rows = subset(y, FIT_POINTS)
    x, y = x[rows], y[rows]
    extreme_first = np.argsort(-np.abs(y - np.median(y)), kind="stable")
    rows = np.sort(far_apart(x / setting.span, extreme_first, _WARP_APART))
    x, y = x[rows], y[rows]
    rows = subset(y, _WARP_POINTS)
    return x[rows], y[rows]


def _warps(y: Array) -> list[list[Warp]]:
    """Return candidates by kind, each with up to three widths s: the median, quartile and octile of the distances."""
    low, high = float(y.min()), float(y.max())
    q1, q3 = np.quantile(y, [0.25, 0.75])
    kinds: list[list[Warp]] = []
    for gaps, lo, hi in (
        (y - low, -np.inf, low),
        (high - y, high, np.inf),
        (np.maximum(q1 - y, y - q3), float(q1), float(q3)),
    ):
        gaps = np.sort(gaps[gaps > 1e-10 * gaps.max()])
        if len(gaps) > 1:
            ranks = sorted({len(gaps) // 2, len(gaps) // 4, len(gaps) // 8})
            # With two knees the origin, where z keeps the digits of y, is at one of them. At the other one the
            # precision is relative to hi - lo, so s must not be small compared with that. The factor is our choice, not
            # tuned.
            least = 0.1 * (hi - lo) if np.isfinite(hi - lo) else 0.0
            origin = hi if hi < np.inf else lo
            kinds.append([Warp(lo, hi, max(float(gaps[k]), least), origin) for k in ranks])
    return kinds


def _log_density(warp: Warp, y: Array) -> float:
    """Return log p(y), up to a constant, if z = warp(y) were independent and normal with its own mean and variance."""
    return float(warp.log_slope(y).sum()) - len(y) * math.log(standardised(warp(y))[1])
