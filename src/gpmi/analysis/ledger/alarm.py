"""What a run warns of at its end, and while it goes on."""

from __future__ import annotations

from dataclasses import replace

from gpmi._support.types import Event
from gpmi.analysis.ledger.account import Ledger
from gpmi.gp.linalg import one_blas_thread
from gpmi.model.fitting.undetected_noise import UndetectedNoise

# Chosen on the runs of docs/benchmarks/noise.md: values from which on noise is looked for, and the evidence, in nats,
# with which exact values must be more probable than noisy ones for there to be no doubt. The values of a table, which
# are far from each other, say next to nothing either way: there would be doubt in most runs, with noise and without.
DOUBTED, NATS = 20, 0.5


def alarms(ledger: Ledger) -> tuple[Event, ...]:
    """The lock-in of a run, and noise that cannot be told from a rough f, as events; none where all is well."""
    found = []
    if ledger.lock_in is not None:
        found.append(Event("lock-in", ledger.lock_in.reason))
    looks = ledger.n >= DOUBTED and ledger.space.rows is None
    noise = unseen_noise(ledger) if looks else None
    if noise is not None and noise.nats < NATS:
        words = f"the model has no noise, but noise of {noise.share:.0%} of the variance of y explains as much"
        found.append(Event("noise uncertain", f"{words}; evaluate the best point again, or give noise_var"))
    return tuple(found)


@one_blas_thread
def unseen_noise(ledger: Ledger) -> UndetectedNoise | None:
    """Return the noise that may exist although the model has none (`fitting.undetected_noise`); None if it has some."""
    known = ledger.setting.detrended(replace(ledger.observed, y=ledger.values))
    return ledger.setting.priors.undetected_noise(known, ledger.model.prior)
