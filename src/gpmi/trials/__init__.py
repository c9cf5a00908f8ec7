"""Trials: one point each, the log of all of them, and trials in tables and files."""

from gpmi.trials.costs import ENDED, cost_of
from gpmi.trials.dataframe import Printable, front_listing, listing, names_of
from gpmi.trials.files import output_columns, row_of, titles_of, trial_of
from gpmi.trials.log import Entry, Log
from gpmi.trials.outcomes import OUTPUTS, Details, Outcome
from gpmi.trials.outputs import Outputs, Y
from gpmi.trials.trial import Origin, Report, Status, Trial, names_a_trial
from gpmi.trials.units import Units
from gpmi.trials.value_bounds import OPEN, ValueBounds

__all__ = [
    "ENDED",
    "OPEN",
    "OUTPUTS",
    "Details",
    "Entry",
    "Log",
    "Origin",
    "Outcome",
    "Outputs",
    "Printable",
    "Report",
    "Status",
    "Trial",
    "Units",
    "ValueBounds",
    "Y",
    "cost_of",
    "front_listing",
    "listing",
    "names_a_trial",
    "names_of",
    "output_columns",
    "row_of",
    "titles_of",
    "trial_of",
]
