"""What is known about a run, how sure it is, and what going on is worth."""

from gpmi.ledger.account import Ledger, LockIn, Step
from gpmi.ledger.regret import Interval, Regret, credible_interval

__all__ = ["Interval", "Ledger", "LockIn", "Regret", "Step", "credible_interval"]
