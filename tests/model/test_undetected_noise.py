"""Noise that a fit misses: an event reports the doubt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as descent

import gpmi
from gpmi import Optimizer, kernels
from gpmi.analysis.ledger import warning_events
from paper.tasks.functions import branin

POINTS = np.random.default_rng(0).random((24, 2))
MISSED, FOUND = 1, 0  # seeds of noise at which the fit has learned none, and some


def told(y: Any, **options: Any) -> Optimizer:
    opt = Optimizer([(0.0, 1.0)] * 2, seed=0, **options)
    opt.tell_all(list(zip(POINTS, y, strict=False)))
    return opt


def smooth() -> Any:
    return np.sin(4.0 * POINTS[:, 0]) + POINTS[:, 1]


def noisy(seed: int) -> Any:
    return smooth() + 0.6 * np.random.default_rng(seed).standard_normal(24)


def kinds(opt: Optimizer) -> list[str]:
    return [event.kind for event in warning_events(opt.ledger)]


def evidence(q: Any, z: Any) -> float:
    """-log of the evidence and of the prior of all but the noise: Matern-5/2, the mean at its most probable value."""
    variance, *lengths, noise = np.exp(q)
    s = np.sqrt(5.0) * np.sqrt((((POINTS[:, None] - POINTS) / lengths) ** 2).sum(axis=2))
    c = variance * (1.0 + s + s**2 / 3.0) * np.exp(-s) + noise * np.eye(len(z))
    inverse = np.linalg.inv(c)
    mean = inverse.sum(axis=0) @ z / (inverse.sum() + 1.0)
    fit = (z - mean) @ inverse @ (z - mean) + np.linalg.slogdet(c)[1] + mean**2
    centre = np.sqrt(2.0) - 3.0 + 0.5 * np.log(2.0)
    return 0.5 * float(fit + q[0] ** 2 + ((q[1:3] - centre) ** 2).sum())


def test_the_nats_are_those_of_an_independent_search() -> None:
    """Noise of 1 % at most against 5 % at least; the penalty of the noise counts in the search, not in the nats."""
    y = noisy(MISSED)
    found = told(y).ledger.undetected_noise()
    assert found is not None
    z = (y - y.mean()) / y.std()

    def best(low: float, high: float) -> tuple[float, float]:
        def loss(q: Any) -> float:
            return evidence(q, z) + 0.5 * ((q[3] - np.log(1e-5)) / 3.0) ** 2

        bounds = [(-6.0, 6.0), *[(np.log(5e-3), np.log(1e3))] * 2, (np.log(low), np.log(high))]
        starts = [(0.0, *np.log([one, other]), np.log(low)) for one in (0.1, 0.6) for other in (0.1, 0.6)]
        ends = [descent(loss, start, bounds=bounds, method="L-BFGS-B") for start in starts]
        end = min(ends, key=lambda end: float(end.fun))
        return evidence(end.x, z), float(np.exp(end.x[3]))

    exact, (noise, share) = best(1e-8, 0.01)[0], best(0.05, 2.0)
    assert abs(found.nats - (noise - exact)) < 0.1 and found.share == pytest.approx(share, rel=0.2)


def test_noise_that_explains_as_much_as_a_rough_f_is_an_event() -> None:
    opt = told(noisy(MISSED))
    (event,) = warning_events(opt.ledger)
    assert event.kind == "noise uncertain" and "of the variance of y fits as well" in event.message
    assert "evaluate the best point again, or give noise_var" in event.message
    for y in (0.0, 2.0, 0.5, 1.5):  # one point again and again, with other values: the fit now sees it
        opt.tell([0.5, 0.5], y)
    assert kinds(opt) == []


@pytest.mark.parametrize(
    "opt",
    [
        told(smooth()),
        told(noisy(FOUND)),
        told(noisy(MISSED)[:19]),
        told(noisy(MISSED), noise_var=1e-6),
        told(noisy(MISSED), noise="student"),
        told(noisy(MISSED), kernel=kernels.RBF(0.1), noise_var=1e-6),
        told(noisy(MISSED), kernel=kernels.RBF(0.1)),
        told(np.zeros(24)),
        told([]),
    ],
    ids=["exact", "seen", "few", "given", "student", "all given", "kernel given", "constant", "nothing"],
)
def test_without_doubt_there_is_no_event(opt: Optimizer) -> None:
    assert opt.trials == () or kinds(opt) == []


def test_a_table_is_never_in_doubt() -> None:
    """Its values are too far apart to say anything either way."""
    opt = Optimizer(POINTS, seed=0)
    opt.tell_all(list(zip(POINTS, noisy(MISSED), strict=True)))
    assert kinds(opt) == []


def test_a_run_under_strong_noise_reports_that_it_may_have_missed_it() -> None:
    rng = np.random.default_rng(1000)
    r = gpmi.maximize(lambda x: branin(x) + 50.0 * rng.standard_normal(), [(-5, 10), (0, 15)], budget=20, seed=0)
    assert [event.kind for event in r.events] == ["noise uncertain"]


def test_with_error_bars_there_is_no_event() -> None:
    opt = Optimizer([(0.0, 1.0)] * 2, seed=0)
    for x, y in zip(POINTS, noisy(MISSED), strict=True):
        opt.tell(x, y, noise_var=0.36)
    assert kinds(opt) == []
