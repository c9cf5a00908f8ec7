"""Where no point may be asked: around rejected points, and where trials probably fail."""

from __future__ import annotations

import numpy as np

from gpmi.analysis.ledger.ledger import SAME
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.search.barriers import Barriers
from gpmi.space import Space
from gpmi.trials import Log

# No point is asked within AROUND of the width of a rejected one, in every coordinate, until SOON more values are told:
# five are about a tenth of a usual run. Within SAME none is ever asked. Our choices, not tuned.
AROUND, SOON = 0.05, 5


def around_rejected(space: Space, log: Log) -> Barriers | None:
    """Return the barriers around rejected points; None if there are none. On a finite set they are only those rows."""
    if not log.rejected:
        return None
    at = np.array([log.row(number) for number in log.rejected])
    if space.rows is not None:
        return Barriers(at, np.zeros_like(at), np.zeros_like(at))
    soon = np.array([log.told_since(number) < SOON for number in log.rejected])
    core = np.maximum(SAME * space.span, space.rounding) + np.zeros_like(at)
    return Barriers(at, np.where(soon[:, None], AROUND * space.span, core), core)


def around_pending(space: Space, log: Log, barred: Barriers | None) -> Barriers:
    """Add a barrier around each pending point, as wide as the tolerance for duplicates."""
    at = np.array([log.rows[number] for number in log.pending])
    core = space.rounding + np.zeros_like(at)
    within = np.maximum(SAME * space.span, core)
    if barred is None:
        return Barriers(at, within, core)
    pairs = zip((barred.at, barred.within, barred.core), (at, within, core), strict=True)
    at, within, core = (np.concatenate(pair) for pair in pairs)
    return Barriers(at, within, core, barred.unsafe)


def and_unsafe(
    chance: SuccessProbability | None, space: Space, barred: Barriers | None, log_least: float | None
) -> Barriers | None:
    """Bar also all points whose success probability is below exp(log_least); None bars nothing more."""
    if chance is None or log_least is None:
        return barred
    none = np.empty((0, space.dim))
    return (barred or Barriers(none, none, none))._replace(unsafe=lambda z: chance.log(z) < log_least)
