"""The simple regret over the course of a run: a few looks, each under what was believed at that moment."""

from __future__ import annotations

import numpy as np

from gpmi.analysis.ledger.account import Ledger
from gpmi.analysis.ledger.regret import Regret

# Each look costs a fit and draws, up to O(t^3). Looks at moments in geometric progression cost little more than the
# last of them, and the regret falls by orders of magnitude, not by equal steps. After MANY values there are fewer.
LOOKS, FEWER, MANY = 8, 5, 300


def course(ledger: Ledger) -> tuple[Regret, ...]:
    """The regret after t values at some moments t, from the policy's first choice on; those at which it is known."""
    looks = LOOKS if ledger.n <= MANY else FEWER
    first = next((step.t for step in ledger.steps if step.choice is not None), ledger.n)
    moments = np.unique(np.geomspace(first, ledger.n, looks).round().astype(int)).tolist() if ledger.n else []
    found = (ledger.regret(t) for t in moments)
    return tuple(regret for regret in found if regret.known)
