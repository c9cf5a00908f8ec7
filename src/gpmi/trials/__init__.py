"""Trials: one point each, the log of all of them, and trials in tables and files."""

from gpmi.trials.log import Entry, Log
from gpmi.trials.outcomes import Details, Outcome
from gpmi.trials.trial import Origin, Status, Trial, names_a_trial

__all__ = ["Details", "Entry", "Log", "Origin", "Outcome", "Status", "Trial", "names_a_trial"]
