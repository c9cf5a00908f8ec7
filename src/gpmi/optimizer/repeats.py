"""Whether a repeat may tell something: whether another value at the same point could differ."""

from __future__ import annotations

from gpmi.trials import Log


def is_noisy(given: float | None, log: Log) -> bool:
    """Whether another value at the same point may differ: a noise_var says so, or two told values do. O(n).

    A learned noise_var does not count: on rough tables the fit sometimes takes a part of f for noise.
    """
    if not log.observed.plain and log.observed.noise_var.any():
        return True
    if given is not None:
        return given > 0.0
    if len(log.places) == len(log):
        return False
    first: dict[bytes, float] = {}
    return any(
        first.setdefault(row.tobytes(), value) != value
        for row, value in zip(log.observed.x, log.observed.y.tolist(), strict=True)
    )
