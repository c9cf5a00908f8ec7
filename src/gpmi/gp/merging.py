"""Posteriors whose observations at equal points are merged into rows."""

from __future__ import annotations

from dataclasses import replace

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.replicates import ObservationSequence, Replicates, merge


@one_blas_thread
def condition_merged(prior: Posterior, x: Array, y: Array, noise_var: Array | float | None = None) -> Posterior:
    """Return what `prior.condition` returns, with observations at equal points merged. Only a prior can do this.

    With m different points it costs O(k + m^3). mu, var and the evidence are those of `condition` up to rounding. So
    are `gamma_hat` and `ahead`, which depend on the order of the observations: they cost O(k m^2) when first read.
    """
    if prior.n:
        raise ValueError(f"the posterior has {prior.n} observations; only a prior takes merged ones")
    x, y = prior._observations(x, y)
    noise = checks.variances("noise_var", noise_var, len(x), prior.noise_var)
    if len(x) == 0:
        return prior
    rows = merge(x, y, noise)
    source = ObservationSequence(prior.kernel, prior.prior_mean(rows.x), rows.x, rows.place, noise)
    replicates = Replicates(len(rows.x), y, noise, rows.log_within, source)
    return replace(prior._extend(rows.x, rows.y, rows.noise), replicates=replicates)


@one_blas_thread
def compacted(posterior: Posterior) -> Posterior:
    """Return the same posterior of f with the rows at equal points merged. O(n^3)."""
    merged, before = merge(posterior.x, posterior.y, posterior.noise), posterior.replicates
    within = merged.log_within + (0.0 if before is None else before.log_within)
    replicates = Replicates(len(merged.x), posterior.observed, posterior.noise_of_observed, within, posterior.ahead)
    return replace(posterior._start()._extend(merged.x, merged.y, merged.noise), replicates=replicates)
