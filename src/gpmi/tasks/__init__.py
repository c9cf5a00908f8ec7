"""Functions to optimise, with their known optima."""

from gpmi.tasks.functions import HIMMELBLAU, Function, himmelblau

__all__ = ["HIMMELBLAU", "Function", "himmelblau"]
