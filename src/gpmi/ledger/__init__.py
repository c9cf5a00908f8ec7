"""What is known about a run, how certain it is, and what more evaluations are worth."""

from gpmi.ledger.account import Ledger, LockIn, Step, alarms
from gpmi.ledger.regret import Interval, Regret, credible_interval

__all__ = ["Interval", "Ledger", "LockIn", "Regret", "Step", "alarms", "credible_interval"]
