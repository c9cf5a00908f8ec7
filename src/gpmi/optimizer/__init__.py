"""Ask for a point, tell its value: the `Optimizer`, and how it selects a suggestion."""

from gpmi.optimizer.optimizer import Optimizer

__all__ = ["Optimizer"]
