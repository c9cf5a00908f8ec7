"""Can the model be believed? Its residuals one by one, and in ascending order against those of a correct model."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import rounded
from gpmi.analysis.ledger import Ledger
from gpmi.views.pictures.picture import Band, Line, Note, Picture, Points, Ruler, Stripe

UNKNOWN = Note("no value has been predicted yet")


def residuals(ledger: Ledger) -> Picture:
    """Return the residuals in the order of their values, over the central 50 % and 95 % of N(0, 1)."""
    z = ledger.calibration.ahead
    reach = 1.08 * max(3.0, float(np.abs(z).max(initial=0.0)))
    return Picture(
        "Residuals of the predictions",
        f"{len(z)} residuals; their root mean square is {rounded(float(np.sqrt(np.mean(z**2))))} and should be 1."
        if len(z)
        else UNKNOWN.text,
        Ruler.counting("values told", ledger.n),
        Ruler("residual / sd", -reach, reach),
        [
            Stripe(-1.96, 1.96, look="likely"),
            Stripe(-0.674, 0.674, look="likely"),
            Points(np.arange(ledger.n + 1.0 - len(z), ledger.n + 1.0), z, "point"),
        ],
        "How far each value fell from its prediction, in standard deviations. Half of them should be in the inner "
        "band, 95 % in the outer one.",
    )


def quantiles(ledger: Ledger) -> Picture:
    """Return the ordered residuals against those of a correct model, and where 95 % of them would be."""
    from scipy.special import betaincinv, ndtri

    z = np.sort(ledger.calibration.ahead)
    n, k = len(z), np.arange(1.0, len(z) + 1.0)
    expected = ndtri((k - 0.5) / max(1, n))
    # The k-th smallest of n uniform numbers is Beta(k, n + 1 - k).
    low, high = (ndtri(betaincinv(k, n + 1.0 - k, share)) for share in (0.025, 0.975))
    reach = 1.05 * max(2.5, *(float(np.abs(values).max(initial=0.0)) for values in (z, expected)))
    ends = np.array([-reach, reach])
    return Picture(
        "Observed and expected residuals",
        "Ordered residuals against those of a correct model; they should follow the diagonal.",
        Ruler("expected from a correct model", -reach, reach),
        Ruler("observed", -reach, reach),
        [
            Band(expected, low, high, label="95 % if the model is correct"),
            Line(ends, ends, "reference"),
            Points(expected, z, "point", f"{n} residuals"),
        ]
        if n
        else [UNKNOWN],
        "The residuals in ascending order, against those of a correct model. Where they are steeper than the diagonal, "
        "the model was too sure of itself.",
    )
