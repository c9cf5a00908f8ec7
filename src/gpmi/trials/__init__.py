"""Trials: one point each, what their outputs are for, the log of all of them, and trials in tables and files."""

from gpmi.trials.dataframe import Printable, front_listing, listing, names_of
from gpmi.trials.entries import Entry
from gpmi.trials.files import output_columns, row_of, titles_of, trial_of
from gpmi.trials.given_bounds import given_bounds
from gpmi.trials.goal_kinds import AtLeast, AtMost, Goal, Limit, Match, Max, Min, Objective
from gpmi.trials.goals import Goals
from gpmi.trials.log import Log, exactness_of
from gpmi.trials.named_goals import NamedGoals, given_goals
from gpmi.trials.outcomes import OUTPUTS, Details, Outcome
from gpmi.trials.outputs import Outputs, Y
from gpmi.trials.trial import ENDED, Origin, Report, Status, Trial, names_a_trial
from gpmi.trials.units import Units
from gpmi.trials.value_bounds import OPEN, ValueBounds
from gpmi.trials.value_goal import MAXIMISE, ValueGoal

__all__ = [
    "ENDED",
    "MAXIMISE",
    "OPEN",
    "OUTPUTS",
    "AtLeast",
    "AtMost",
    "Details",
    "Entry",
    "Goal",
    "Goals",
    "Limit",
    "Log",
    "Match",
    "Max",
    "Min",
    "NamedGoals",
    "Objective",
    "Origin",
    "Outcome",
    "Outputs",
    "Printable",
    "Report",
    "Status",
    "Trial",
    "Units",
    "ValueBounds",
    "ValueGoal",
    "Y",
    "exactness_of",
    "front_listing",
    "given_bounds",
    "given_goals",
    "listing",
    "names_a_trial",
    "names_of",
    "output_columns",
    "row_of",
    "titles_of",
    "trial_of",
]
