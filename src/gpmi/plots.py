"""Figures of a posterior and of a run: the public names of `gpmi.views.figures.plots`."""

from typing import TYPE_CHECKING

from gpmi._support.name_hints import missing_attribute
from gpmi.views.figures.plots import (
    backtest,
    calibration,
    contours,
    convergence,
    cost,
    curves,
    front,
    hypervolume,
    importances,
    ledger,
    parallel,
    partial_dependence,
    posterior_1d,
    run,
    slices,
    ternary,
)

__all__ = [
    "backtest",
    "calibration",
    "contours",
    "convergence",
    "cost",
    "curves",
    "front",
    "hypervolume",
    "importances",
    "ledger",
    "parallel",
    "partial_dependence",
    "posterior_1d",
    "run",
    "slices",
    "ternary",
]

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
