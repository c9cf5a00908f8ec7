"""gpmi: optimisation of expensive, noisy functions with Gaussian processes."""

from gpmi import kernels, stopping
from gpmi.gp.posterior import Posterior
from gpmi.optimizer import Optimizer, Trial
from gpmi.policies.phi import (
    EI,
    GPMI,
    GPUCB,
    Explore,
    Guarantee,
    LogEI,
    Policy,
    Reinvest,
    State,
    Thompson,
    VarianceBonus,
)
from gpmi.run import Result, maximize, minimize
from gpmi.space import Choice, Int, Real, Space, SpaceExhausted
from gpmi.types import Event

__version__ = "0.1.0"

__all__ = [
    "EI",
    "GPMI",
    "GPUCB",
    "Choice",
    "Event",
    "Explore",
    "Guarantee",
    "Int",
    "LogEI",
    "Optimizer",
    "Policy",
    "Posterior",
    "Real",
    "Reinvest",
    "Result",
    "Space",
    "SpaceExhausted",
    "State",
    "Thompson",
    "Trial",
    "VarianceBonus",
    "kernels",
    "maximize",
    "minimize",
    "stopping",
]
