"""How the next query is chosen: x_t = argmax mu_t + phi_t, and rules of other forms with the same interface."""

from gpmi.policies.batch import GPUCBPE
from gpmi.policies.expected_gain import log_h
from gpmi.policies.find import Aim, Find, of_aim
from gpmi.policies.guard import Guarded
from gpmi.policies.improvement import EI, LogEI
from gpmi.policies.objectives import EHVI, JointPolicy, Scalarised, Utility, Weights
from gpmi.policies.others import Explore, Thompson
from gpmi.policies.phi import GPMI, GPUCB, Mean, VarianceBonus
from gpmi.policies.policy import TINY, Guarantee, PointSearch, Policy, Selected, State, checked_policy
from gpmi.policies.promises import account
from gpmi.policies.reinvest import Reinvest

__all__ = [
    "EHVI",
    "EI",
    "GPMI",
    "GPUCB",
    "GPUCBPE",
    "TINY",
    "Aim",
    "Explore",
    "Find",
    "Guarantee",
    "Guarded",
    "JointPolicy",
    "LogEI",
    "Mean",
    "PointSearch",
    "Policy",
    "Reinvest",
    "Scalarised",
    "Selected",
    "State",
    "Thompson",
    "Utility",
    "VarianceBonus",
    "Weights",
    "account",
    "checked_policy",
    "log_h",
    "of_aim",
]
