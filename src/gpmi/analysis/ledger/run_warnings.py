"""Warnings about a run: lock-in and undetected noise while it goes on, at its end also a chance it did not take."""

from __future__ import annotations

from gpmi._support.text import percent, rough
from gpmi._support.types import Event
from gpmi.analysis.ledger.facts import RunLedger
from gpmi.analysis.ledger.options import FORGOTTEN

# Chosen on the runs of docs/benchmarks/noise.md: the minimum number of values before we look for undetected noise, and
# the evidence for exact values, in nats, below which we warn. On a finite set we do not look: its values lie far apart
# and say almost nothing either way, so most runs would get the warning, with noise and without.
DOUBTED, NATS = 20, 0.5
# The least probability of a better point that is worth an event. Chosen among 0.15, 0.2 and 0.25 on the development
# functions of docs/benchmarks/humps.md and one more: of 22 runs on a lower hump 18, 16 and 14 had an event, of 68
# others 44, 33 and 26.
UNTAKEN = 0.2


def warning_events(ledger: RunLedger) -> tuple[Event, ...]:
    """Return events for the lock-in of a run and for noise that the model may have missed; empty if all is well."""
    events = []
    if ledger.lock_in is not None:
        events.append(Event("lock-in", ledger.lock_in.reason))
    is_searched = ledger.n >= DOUBTED and ledger.space.rows is None
    noise = ledger.undetected_noise() if is_searched else None
    if noise is not None and noise.nats < NATS:
        doubt = f"the model has no noise, but noise of {noise.share:.0%} of the variance of y fits as well"
        events.append(Event("noise uncertain", f"{doubt}; evaluate the best point again, or give noise_var"))
    return tuple(events)


def untaken_chance(ledger: RunLedger) -> Event | None:
    """Return an event if a better point exists with a probability of at least UNTAKEN; None if a lock-in says so.

    It is for runs under aim="earn", which stay where they earn: looking elsewhere may cost more than it brings. It
    costs what `regret` costs.
    """
    missed = ledger.chance_of_better()
    if missed < UNTAKEN or ledger.lock_in is not None:
        return None
    step = rough(ledger.smallest_gain, 2)
    better = f"with probability {percent(missed)} a point is better than the recommended one by more than {step}"
    return Event("chance not taken", f'{better}; to look for it, go on with aim="find"')


def forgotten_options(ledger: RunLedger) -> tuple[Event, ...]:
    """Return an event for each option that may hold the best and has not been tried for long.

    It costs what `regret` costs, unless every option has been tried lately.
    """
    if ledger.longest_idle < FORGOTTEN:
        return ()
    return tuple(
        Event("option not tried", f"{summary.parameter} {summary} was last tried {summary.idle} values ago")
        for summary in ledger.options
        if summary.is_forgotten
    )
