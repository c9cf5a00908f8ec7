"""The simple regret over a run: at a few moments, each under the model of that moment."""

from __future__ import annotations

import numpy as np

from gpmi.analysis.ledger.ledger import Ledger
from gpmi.analysis.ledger.regret import Regret

# Each moment costs a fit and draws, up to O(t^3). Moments in geometric progression cost little more than the last one,
# and the regret falls by orders of magnitude, not by equal steps. After MANY values there are fewer moments.
LOOKS, FEWER, MANY = 8, 5, 300


def regret_history(ledger: Ledger) -> tuple[Regret, ...]:
    """Return the regret after t values at some moments t, from the policy's first choice on; only where it is known."""
    looks = LOOKS if ledger.n <= MANY else FEWER
    first = next((step.t for step in ledger.steps if step.choice is not None), ledger.n)
    moments = np.unique(np.geomspace(first, ledger.n, looks).round().astype(int)).tolist() if ledger.n else []
    regrets = (ledger.regret(t) for t in moments)
    return tuple(regret for regret in regrets if regret.known)
