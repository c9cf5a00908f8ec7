"""Values of any size that is accepted, under warnings as errors: no overflow leaks, and replay stays exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpmi import Int, LogEI, Optimizer, Real, Thompson, kernels
from gpmi.gp.linalg import one_blas_thread

ROWS = np.linspace(0.0, 1.0, 9)[:, None]
BOX = [(0.0, 1.0)] * 2
MIXED = {"lr": Real(1e-5, 1e-1, log=True), "n": Int(1, 20), "act": ["a", "b"]}


def total(x: Any) -> float:
    return float(x["lr"] * x["n"]) if isinstance(x, dict) else float(np.sin(5.0 * x.sum()) + 1.0)


@pytest.mark.parametrize("scale", [*(pytest.param(s, marks=pytest.mark.slow) for s in (1e-30, 1e13, 1e30)), 1e90])
@pytest.mark.parametrize(
    ("space", "arguments"),
    [
        (ROWS, {}),
        (ROWS, {"noise_var": 0.0}),
        (BOX, {"noise_var": 0.0}),
        (BOX, {"policy": LogEI(), "kernel": kernels.RBF(0.3), "noise_var": 0.0}),
        (BOX, {"policy": Thompson(), "kernel": kernels.RBF(0.3), "noise_var": 0.0}),
        (MIXED, {"kernel": kernels.RBF(0.3), "noise_var": 1e-4}),
        (MIXED, {}),
    ],
)
def test_large_and_small_values_leak_no_warning(space: Any, arguments: dict[str, Any], scale: float) -> None:
    opt = Optimizer(space, seed=1, **arguments)
    for _ in range(12):
        x = opt.ask()
        opt.tell(x, scale * total(x))
    assert np.isfinite(opt.ledger.improvement) and np.isfinite(opt.ledger.regret().simple).all()
    again = Optimizer(space, seed=1, **arguments).replay(opt.trials)
    np.testing.assert_equal(again.ask(), opt.ask())


@pytest.mark.parametrize(
    "kernel", [None, kernels.RBF(lengthscale=None, variance=None) + kernels.Linear(variance=None)], ids=repr
)
def test_exact_observations_of_large_values_can_be_learned_from(kernel: kernels.Kernel | None) -> None:
    opt = Optimizer([(0.0, 1.0)], kernel=kernel, noise_var=0.0, seed=0)
    for x, y in ((0.0, -9.9e89), (1.0 / 3.0, 7.6e89), (2.0 / 3.0, 1e87)):
        opt.tell(np.array([x]), y)
        assert opt.posterior is not None


def test_two_values_that_a_choice_cannot_explain() -> None:
    opt = Optimizer({"p": ["a", "b"]}, noise_var=1e-9, seed=0)
    opt.tell({"p": "b"}, 0.0)
    opt.tell({"p": "b"}, 1e12)
    assert np.isfinite(opt.ledger.regret().simple).all()


def test_variances_that_are_mostly_rounding_do_not_decide_between_equal_rows() -> None:
    """k is 100 and var 5e-8, so that var is off by 1e-7 of itself: the run and its replay still ask the same rows."""
    rows = np.array([[0.0, 1.0]] * 4 + [[1.0, 0.0]] * 2)

    def make() -> Optimizer:
        return Optimizer(rows, LogEI(), kernel=kernels.RBF(3.0, variance=100.0), noise_var=1e-9, budget=1, seed=3)

    opt = make()
    for _ in range(8):
        again = make().replay(opt.trials)
        np.testing.assert_array_equal(opt.ask(), again.ask())


FAINT = [-4.7e-91, 9.5e-92, 5.4e-91, -9.2e-91, 7.6e-92, 3.1e-91]
TINY = [-7.5e-151, -3.3e-152, 7.9e-151, -1.7e-151, 5.2e-151, 1.0e-151]


@pytest.mark.parametrize(
    ("values", "error_bars", "arguments"),
    [
        (FAINT, {1: 1e200}, {"noise": "student"}),
        (FAINT, dict.fromkeys(range(6), 1e200), {"noise": "student"}),
        ([*FAINT, 1e99], {6: 1e200}, {"noise": "student"}),
        ([-1e-30, *TINY], {0: 1.3e195, 6: 2.6e-96}, {"noise": "student"}),
        ([*TINY, 1e-90], {3: 9.1e173, 4: 3.1e-103, 6: 1.5e21}, {"noise": "student"}),
        (FAINT, {1: 1e200}, {}),
        (FAINT, {1: 7e168}, {"fit": "loo"}),
        (FAINT, {1: 1e200}, {"fit": "mcmc"}),
        (FAINT, dict.fromkeys(range(6), 1e200), {}),
        ([*FAINT, 1e99], {6: 1e200}, {}),
        ([*FAINT, 1e99], {6: 1e-150}, {}),
    ],
)
def test_error_bars_far_above_the_values_tell_nothing(
    values: list[float], error_bars: dict[int, float], arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_blas_thread, "warns", False)  # as for users
    opt = Optimizer([(0.0, 1.0)], seed=1, n_init=3, **arguments)
    for i, y in enumerate(values):
        opt.tell(opt.ask(), y, noise_var=error_bars.get(i, 0.0))
    again = Optimizer([(0.0, 1.0)], seed=1, n_init=3, **arguments).replay(opt.trials)
    np.testing.assert_equal(again.ask(), opt.ask())
    assert opt.posterior is not None and opt.ledger is not None
    assert np.isfinite(opt.posterior(ROWS)).all() and np.isfinite(opt.recommend()).all()
    assert np.isfinite(opt.ledger.regret().simple).all()


@pytest.mark.parametrize("noise", ["normal", "student"])
def test_an_error_bar_beyond_the_limit_teaches_what_one_below_it_does(noise: Any) -> None:
    """A fit in which one value tells nothing is the fit without that value."""

    def prior(own: float) -> Any:
        opt = Optimizer([(0.0, 1.0)], seed=1, noise=noise)
        for i, x in enumerate(np.linspace(0.0, 1.0, 8)):
            opt.tell([x], 1e-90 * np.sin(5.0 * x), noise_var=own if i == 3 else 0.0)
        assert opt.posterior is not None
        return opt.posterior.kernel.theta

    np.testing.assert_allclose(prior(1e-60), prior(1e190), rtol=0.05)
