"""Runs: the loop of `maximize` and `minimize`, evaluations, workers, stopping rules, results and studies."""

from gpmi.run.evaluation import EvaluationFailed, Failure, Measured, RepairNeeded
from gpmi.run.loop import maximize, optimize
from gpmi.run.pools import MOST_WORKERS
from gpmi.run.result import Result
from gpmi.run.stopping import Rule, checked_rule, checked_stop

__all__ = [
    "MOST_WORKERS",
    "EvaluationFailed",
    "Failure",
    "Measured",
    "RepairNeeded",
    "Result",
    "Rule",
    "checked_rule",
    "checked_stop",
    "maximize",
    "optimize",
]
