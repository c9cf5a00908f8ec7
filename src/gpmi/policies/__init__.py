"""How the next query is chosen: x_t = argmax mu_t + phi_t, and rules of other forms with the same interface."""

from gpmi.policies.phi import (
    EI,
    GPMI,
    GPUCB,
    Explore,
    Guarantee,
    LogEI,
    Mean,
    Policy,
    Reinvest,
    State,
    Thompson,
    VarianceBonus,
)

__all__ = [
    "EI",
    "GPMI",
    "GPUCB",
    "Explore",
    "Guarantee",
    "LogEI",
    "Mean",
    "Policy",
    "Reinvest",
    "State",
    "Thompson",
    "VarianceBonus",
]
