"""The data by which the guard of aim="earn" judges a query, from the model and log of a run on a finite set."""

from __future__ import annotations

import numpy as np

from gpmi.model.model import Model
from gpmi.policies.policy import Audit
from gpmi.search.finite import drawn_maximum
from gpmi.search.finite_search import FiniteSearch
from gpmi.search.objective import Objective
from gpmi.search.subspaces import Subspace
from gpmi.trials import Log

GUARD = 1  # stream id of the guard


def audit_of(model: Model, log: Log, subspace: Subspace, objective: Objective) -> Audit | None:
    """Return the data by which a query is judged; None if the moments of all candidates do not fit in memory.

    O(n + m) beyond the moments. With fixed coordinates the regret is that among the points that have them, and |D|
    stays that of the whole set: the bound is then on the regret against the best point available at each query.
    """
    every, rows, search = model.setting.space.rows, subspace.space.rows, subspace.search
    posterior = objective.posterior
    is_given = model.setting.priors.is_fixed and posterior.noise_var > 0.0
    if every is None or rows is None or not isinstance(search, FiniteSearch) or not is_given:
        raise ValueError("policy is a Guarded, whose bound needs candidates, kernel and noise_var > 0; give its policy")
    moments = search.moments(model.posterior, model.anchor)
    if moments is None:
        return None
    mu, var = moments
    if (
        model.chance is not None and (likely := model.allowed(rows)).any()
    ):  # the maximum over points that probably succeed
        rows, mu, var = rows[likely], mu[likely], var[likely]
    notes = [log[number].policy_notes or {} for number in (*log.told, *log.unobserved)]
    noted = np.array(
        ["charge" in fields for fields in notes], dtype=bool
    )  # another policy may have written other notes
    notes += [log[number].policy_notes or {} for number in log.failed]
    rng = np.random.default_rng([model.setting.seed, model.n, len(log.failed) + len(log.pending), GUARD])
    return Audit(
        mu,
        var,
        float(posterior.kernel.diagonal(every).max()),
        [fields for fields in notes if "charge" in fields],
        posterior.predictive_var[noted],
        posterior.noise_of_observed[noted],
        rng,
        lambda draws: drawn_maximum(model.posterior, rows, mu, var, draws, rng),
    )
