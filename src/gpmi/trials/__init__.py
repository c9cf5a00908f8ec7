"""Trials: one point each, the log of all of them, and trials in tables and files."""

from gpmi.trials.log import Entry, Log
from gpmi.trials.trial import Origin, Outcome, Status, Trial, names_a_trial

__all__ = ["Entry", "Log", "Origin", "Outcome", "Status", "Trial", "names_a_trial"]
