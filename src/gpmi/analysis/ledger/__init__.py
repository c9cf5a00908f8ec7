"""The ledger of a run: how far from the optimum it is, whether to trust the model, and what more values are worth.

`ledger` has the `Ledger`, `steps` its entries, `regret` the draws of the regret and `history` the regret over a run.
`calibration` judges the model's confidence. `facts` has everything that is said of a run, and decides whether to stop.
`options` has what is known of each option of a choice. `run_warnings` finds lock-in, undetected noise and chances not
taken. All of it is computed from the `belief`, a mixture over draws of a learned prior. `gain` says what more
evaluations would bring. Behind the regret `maxima` draws max f, `region` draws what works, and `contexts` handles fixed
coordinates.
"""

from gpmi.analysis.ledger.facts import (
    HEADING,
    QUESTION,
    VERDICTS,
    Fact,
    Facts,
    LockIn,
    RunLedger,
    interval,
    share_missing,
    unsaid,
)
from gpmi.analysis.ledger.gain import Gain
from gpmi.analysis.ledger.history import regret_history
from gpmi.analysis.ledger.ledger import Ledger
from gpmi.analysis.ledger.options import OptionSummary
from gpmi.analysis.ledger.regret import Interval, Regret, credible_interval
from gpmi.analysis.ledger.run_warnings import forgotten_options, untaken_chance, warning_events
from gpmi.analysis.ledger.steps import Step

__all__ = [
    "HEADING",
    "QUESTION",
    "VERDICTS",
    "Fact",
    "Facts",
    "Gain",
    "Interval",
    "Ledger",
    "LockIn",
    "OptionSummary",
    "Regret",
    "RunLedger",
    "Step",
    "credible_interval",
    "forgotten_options",
    "interval",
    "regret_history",
    "share_missing",
    "unsaid",
    "untaken_chance",
    "warning_events",
]
