"""What is known about a run, how certain it is, and what more evaluations are worth."""

from gpmi.analysis.ledger.account import Ledger, LockIn
from gpmi.analysis.ledger.alarm import alarms
from gpmi.analysis.ledger.regret import Interval, Regret, credible_interval
from gpmi.analysis.ledger.steps import Step

__all__ = ["Interval", "Ledger", "LockIn", "Regret", "Step", "alarms", "credible_interval"]
