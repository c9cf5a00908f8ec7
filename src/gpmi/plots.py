"""Pictures of a posterior and of a run: the public door to `gpmi.show.plots`."""

from gpmi.show.plots import contours, ledger, posterior_1d, run, slices

__all__ = ["contours", "ledger", "posterior_1d", "run", "slices"]
