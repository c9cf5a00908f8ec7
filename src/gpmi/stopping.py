"""Stopping rules: the public door to `gpmi.run.stopping`."""

from gpmi.run.stopping import (
    Both,
    Budget,
    Either,
    ImprovementBelow,
    PhiBelow,
    RegretBelow,
    RegretBelowNoise,
    Rule,
    Seconds,
    Stagnation,
    Stop,
    Target,
)

__all__ = [
    "Both",
    "Budget",
    "Either",
    "ImprovementBelow",
    "PhiBelow",
    "RegretBelow",
    "RegretBelowNoise",
    "Rule",
    "Seconds",
    "Stagnation",
    "Stop",
    "Target",
]
