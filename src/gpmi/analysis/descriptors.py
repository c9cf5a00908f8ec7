"""Which descriptors of options matter, by the lengthscales of the fitted kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpmi._support.text import shortened
from gpmi.gp.conditioned import ConditionedKernel
from gpmi.gp.kernels import AffineKernel, Kernel, Levels, Mapped, Matern
from gpmi.space import Space

SHOWN = 3  # descriptors of a choice in a line of text; our choice


class DescriptorShares(NamedTuple):
    """What makes two options of a choice different under the model, as shares of the mean squared distance."""

    parameter: str
    label: float  # the share of being different options, whatever their descriptors are
    shares: tuple[tuple[str, float], ...]  # by descriptor, the largest first

    def __str__(self) -> str:
        parts = [f"{shortened(name, 40)} {share:.0%}" for name, share in self.shares[:SHOWN]]
        return f"{self.parameter}: {', '.join(parts)}, the option itself {self.label:.0%}"


def descriptor_shares(space: Space, kernel: Kernel) -> tuple[DescriptorShares, ...]:
    """Return the shares for each choice with descriptors; nothing if the kernel has none.

    The model takes two options for different by r^2 = 2 / l^2 + sum_k (f_k(a) - f_k(b))^2 / l_k^2. The share of a
    descriptor is that of its term, averaged over all pairs of options. With few values it is mostly that of the prior.
    """
    while isinstance(kernel, AffineKernel | Levels | ConditionedKernel):
        kernel = kernel.given.posterior.kernel if isinstance(kernel, ConditionedKernel) else kernel.base
    features = space.features
    if features is None or not isinstance(kernel, Mapped) or not isinstance(kernel.base, Matern):
        return ()
    scales, d = np.asarray(kernel.base.lengthscale, dtype=float), len(kernel.matrix)
    names = space.names or tuple(f"x{j}" for j in range(len(space.columns)))
    shares_of_choices = []
    for name, columns in zip(names, space.columns, strict=True):
        numbers = (
            []
            if columns.start == columns.stop
            else np.flatnonzero(np.asarray(features.owners) == space.groups[columns.start]).tolist()
        )
        if not numbers:
            continue
        table, count = features.matrix[columns][:, numbers], columns.stop - columns.start
        # The mean of (f(a) - f(b))^2 over pairs of different options is twice the sample variance of f.
        terms = 2.0 * table.var(axis=0, ddof=1) / scales[d:][numbers] ** 2
        label = 2.0 / float(scales[columns.start]) ** 2
        total = label + float(terms.sum())
        order = np.argsort(-terms, kind="stable")
        shares = tuple((features.names[numbers[k]], float(terms[k]) / total) for k in order)
        assert count > 1
        shares_of_choices.append(DescriptorShares(name, label / total, shares))
    return tuple(shares_of_choices)
