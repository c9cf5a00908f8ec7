"""Ask for a point, tell its value: the `Optimizer`, and how it selects a suggestion."""

from gpmi.optimizer.defaults import Defaults
from gpmi.optimizer.optimizer import Optimizer

__all__ = ["Defaults", "Optimizer"]
