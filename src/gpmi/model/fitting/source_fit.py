"""A fit with earlier studies, and its rival without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpmi._support.types import Event
from gpmi.model.fitting.criterion import FitSetting
from gpmi.model.fitting.data import FIT_POINTS, FitData
from gpmi.model.fitting.fit import Prior, fit
from gpmi.model.fitting.source_rows import SourceRows

# Earlier studies are ignored if the values are predicted better without them by this many nats. A single prediction
# counts for at most MOST_NATS. CLEARLY was compared with 4, and with never, on the development problems of
# docs/benchmarks/transfer.md; MOST_NATS is our choice, as for levels.
CLEARLY, MOST_NATS = 2.0, 3.0


def fit_with_sources(
    setting: FitSetting,
    data: FitData,  # of p observations
    p: int,
    warm: Prior | None,
    alone: Prior,  # the fit without earlier studies
    *,
    wide: bool,
    rng: np.random.Generator | None,
) -> Prior:
    """Return the fit with the earlier studies of the setting, or `alone` where that predicts the values better."""
    assert setting.sources is not None
    many = p > FIT_POINTS
    fitted = fit(setting, data.x, data.y, warm=warm, wide=wide, many=many, rng=rng, noises=data.noises, predictive=True)
    return _better(fitted, alone, setting.sources)


def _better(related: Prior, alone: Prior, sources: SourceRows) -> Prior:
    """Return the fit with earlier studies, or its rival without them if that one predicts the values clearly better.

    Both predict each value from the others. A single value counts for at most MOST_NATS.
    """
    assert related.log_predictive is not None and alone.log_predictive is not None
    gains = np.clip(related.log_predictive - alone.log_predictive, -MOST_NATS, MOST_NATS)
    if float(gains.sum()) >= -CLEARLY:
        return replace(related, rival=alone)
    names = " and ".join(map(repr, sources.names))
    reason = f"the values of this study were predicted better without {names}, and are modelled alone while that is so"
    return replace(alone, rival=related, events=(*alone.events, Event("source ignored", reason)))
