"""The ledger of a run: how far from the optimum it is, whether to trust the model, and what more values are worth.

`ledger` has the `Ledger`, `steps` its entries, `regret` the draws of the regret and `history` the regret over a run.
`calibration` judges the model's confidence. `advice` says whether to stop. `run_warnings` finds lock-in and undetected
noise. Behind the regret: `maxima` draws max f, `contexts` handles fixed coordinates, and `averaged_prediction` averages
over a learned prior.
"""

from gpmi.analysis.ledger.ledger import Ledger, LockIn
from gpmi.analysis.ledger.regret import Interval, Regret, credible_interval
from gpmi.analysis.ledger.run_warnings import warning_events
from gpmi.analysis.ledger.steps import Step

__all__ = ["Interval", "Ledger", "LockIn", "Regret", "Step", "credible_interval", "warning_events"]
