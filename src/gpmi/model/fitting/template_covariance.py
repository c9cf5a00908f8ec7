"""K as a function of the unknowns of any template: a kernel of which some hyper-parameters are given."""

from __future__ import annotations

import math

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.gp.kernels import Kernel
from gpmi.model.fitting.covariance import EXACT, LEAST, Pairs, PairValues
from gpmi.model.fitting.theta_units import ThetaUnit, theta_units
from gpmi.model.fitting.unknowns import Unknowns


class TemplateCovariance:
    """Any template. If theta_i is unknown, it is the log of a unit plus one entry of q, which a 0/1 matrix selects."""

    def __init__(
        self, template: Kernel, x: Array, units: list[ThetaUnit], groups: tuple[int, ...], scale: float
    ) -> None:
        self._template, self._x, self._units, self._groups, self._scale = template, x, units, groups, scale
        self.pairs = Pairs(len(x))
        self._log_units = np.array([place.log_unit for place in units])
        # q has one entry for each unknown variance, and one for each lengthscale of each parameter in each kernel. The
        # coordinates of one parameter (the options of a choice) share a lengthscale.
        self._firsts: list[int] = []
        shares: list[float | None] = []
        columns: dict[tuple[int, int], int] = {}
        self._map = np.zeros((len(units), len(units)))
        for i in np.flatnonzero(np.isnan(template.theta)).tolist():
            coordinate, _, share = units[i]
            leaf = i - 1 - coordinate if coordinate is not None else i  # its elementary kernel begins here in theta
            key = (leaf, -1 if coordinate is None else groups[coordinate])
            if key not in columns:
                columns[key] = len(columns)
                self._firsts.append(i)
                shares.append(share if coordinate is None else None)
            self._map[i, columns[key]] = 1.0
        self._map = self._map[:, : len(columns)]
        self.unknowns = Unknowns.of(shares, max(groups) + 1)

    def __call__(self, q: Array) -> PairValues:
        """O(n^2 d)."""
        matrix, pull_theta = self.kernel(q).with_theta_pullback(self._x)
        unit = self._scale**2
        matrix = matrix / unit
        diagonal = matrix.diagonal()
        # A fixed variance may be far above the variance of y, so EXACT is also taken relative to it.
        lifted = diagonal + EXACT * float(diagonal.mean())

        def pull(by_pair: Array, by_diagonal: Array, gradient: Array) -> None:
            weights = self.pairs.matrix(by_pair, by_diagonal + EXACT * float(by_diagonal.mean()))
            gradient[:-1] += (0.5 / unit) * (pull_theta(weights) @ self._map)

        return PairValues(matrix.reshape(-1)[self.pairs.at], lifted, pull)

    def kernel(self, q: Array) -> Kernel:
        """Return the kernel at q, in the user's units. Fixed numbers stay exactly as they are."""
        return self._template.filled(self._log_units + self._map @ q[:-1])

    def q_of(self, kernel: Kernel, noise: float) -> Array:
        """Return the q of such a kernel, and of a noise in units of the variance of y."""
        return np.append((kernel.theta - self._log_units)[self._firsts], math.log(max(noise, LEAST)))

    def restricted(self, rows: Numbers) -> TemplateCovariance:
        """Return the same function of q at some of the points."""
        return TemplateCovariance(self._template, self._x[rows], self._units, self._groups, self._scale)


def template_covariance(
    template: Kernel, x: Array, span: Array, groups: tuple[int, ...], scale: float
) -> TemplateCovariance:
    """Return the covariance of a template at x (n, d); the unit of its unknown variances is scale^2."""
    return TemplateCovariance(template, x, theta_units(template, x, span, 2.0 * math.log(scale)), groups, scale)
