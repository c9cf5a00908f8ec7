"""Warnings about a run, at its end and while it goes on: lock-in and undetected noise."""

from __future__ import annotations

from dataclasses import replace

from gpmi._support.types import Event
from gpmi.analysis.ledger.ledger import Ledger
from gpmi.gp.linalg import one_blas_thread
from gpmi.model.fitting.undetected_noise import UndetectedNoise

# Chosen on the runs of docs/benchmarks/noise.md: the minimum number of values before we look for undetected noise, and
# the evidence for exact values, in nats, below which we warn. On a finite set we do not look: its values lie far apart
# and say almost nothing either way, so most runs would get the warning, with noise and without.
DOUBTED, NATS = 20, 0.5


def warning_events(ledger: Ledger) -> tuple[Event, ...]:
    """Return events for the lock-in of a run and for noise that the model may have missed; empty if all is well."""
    found = []
    if ledger.lock_in is not None:
        found.append(Event("lock-in", ledger.lock_in.reason))
    is_searched = ledger.n >= DOUBTED and ledger.space.rows is None
    noise = undetected_noise_of(ledger) if is_searched else None
    if noise is not None and noise.nats < NATS:
        doubt = f"the model has no noise, but noise of {noise.share:.0%} of the variance of y fits as well"
        found.append(Event("noise uncertain", f"{doubt}; evaluate the best point again, or give noise_var"))
    return tuple(found)


@one_blas_thread
def undetected_noise_of(ledger: Ledger) -> UndetectedNoise | None:
    """Return the noise that may exist although the model has none (`fitting.undetected_noise`); None if it has some."""
    detrended = ledger.setting.detrended(replace(ledger.observed, y=ledger.values))
    return ledger.setting.priors.undetected_noise(detrended, ledger.model.prior)
