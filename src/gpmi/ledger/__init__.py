"""What is known about a run, how sure it is, and what going on is worth."""

from gpmi.ledger.account import Interval, Ledger, LockIn, Regret, Step, credible_interval

__all__ = ["Interval", "Ledger", "LockIn", "Regret", "Step", "credible_interval"]
