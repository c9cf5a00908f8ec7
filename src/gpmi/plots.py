"""Figures of a posterior and of a run: the public names of `gpmi.views.figures.plots`."""

from gpmi.views.figures.plots import (
    calibration,
    contours,
    convergence,
    importances,
    ledger,
    parallel,
    partial_dependence,
    posterior_1d,
    run,
    slices,
)

__all__ = [
    "calibration",
    "contours",
    "convergence",
    "importances",
    "ledger",
    "parallel",
    "partial_dependence",
    "posterior_1d",
    "run",
    "slices",
]
