"""What is known about information and regret: I_T, gamma_T, C_1, the paper's bounds and what is wrong with them.

Information is in nats. It needs noise: an exact observation has infinite information. `greedy` brackets gamma_T. A
bound on the regret is a `Bound`, its value together with its status: those of the paper are withdrawn, GP-UCB's and
Reinvest's stand.
`observe_regret` runs the setting in which, by the erratum, the paper's proof works. docs/theory.md explains all of it.
"""

from typing import TYPE_CHECKING

from gpmi._support.name_hints import missing_attribute
from gpmi.theory.bounds import Bound, corollary_1, corollary_2, gp_ucb, reinvest, theorem_1, theorem_2
from gpmi.theory.erratum import RegretRun, observe_regret
from gpmi.theory.gamma import (
    GREEDY,
    Greedy,
    Growth,
    c1,
    gamma_hat,
    greedy,
    greedy_on_box,
    grid,
    growth,
    information,
    information_at,
)

__all__ = [
    "GREEDY",
    "Bound",
    "Greedy",
    "Growth",
    "RegretRun",
    "c1",
    "corollary_1",
    "corollary_2",
    "gamma_hat",
    "gp_ucb",
    "greedy",
    "greedy_on_box",
    "grid",
    "growth",
    "information",
    "information_at",
    "observe_regret",
    "reinvest",
    "theorem_1",
    "theorem_2",
]

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
