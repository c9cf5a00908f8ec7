"""A rival knows a part of the log, which may lose values as well as gain them."""

from __future__ import annotations

import numpy as np

import gpmi
from gpmi.model.orientation import Orientation
from gpmi.optimizer.levels import RivalModel
from gpmi.trials import Log
from gpmi.trials.target import with_trials


def last(log: Log, count: int) -> Log:
    return with_trials(log, log.told[-count:])


def test_the_model_of_a_rival_is_that_of_its_part_whatever_it_knew_before() -> None:
    opt = gpmi.Optimizer([(0.0, 1.0)], seed=0)
    points = np.random.default_rng(0).random(14)
    setting = opt._strategy._setting
    kept = RivalModel(setting.cleared(), Orientation("max"))
    z = np.linspace(0.0, 1.0, 9)[:, None]
    for i, x in enumerate(points):
        opt.tell([x], float(np.sin(9.0 * x) + 0.1 * i))
        for count in (i + 1, 6, 3):
            part = last(opt._log, count)
            alone = RivalModel(setting.cleared(), Orientation("max")).after(part)
            assert kept.after(part).n == alone.n == min(count, i + 1)
            for ours, fresh in zip(kept.after(part).posterior(z), alone.posterior(z), strict=True):
                np.testing.assert_allclose(ours, fresh, rtol=1e-6, atol=1e-9)
