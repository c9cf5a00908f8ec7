"""What is known about a run, how certain it is, and what more evaluations are worth."""

from gpmi.ledger.account import Ledger, LockIn
from gpmi.ledger.alarm import alarms
from gpmi.ledger.regret import Interval, Regret, credible_interval
from gpmi.ledger.steps import Step

__all__ = ["Interval", "Ledger", "LockIn", "Regret", "Step", "alarms", "credible_interval"]
