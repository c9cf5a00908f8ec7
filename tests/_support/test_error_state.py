"""The library computes the same whatever the user has set by numpy.seterr, in every thread, and gives it back."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import gpmi
from gpmi import kernels
from gpmi.gp.linalg import one_blas_thread

DEFAULT = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
NARROW = {"kernel": kernels.RBF(0.01), "noise_var": 1e-8}  # k vanishes between most points
NAMED = {"lr": gpmi.Real(1e-5, 1e-1, log=True), "n": gpmi.Int(1, 50, log=True), "act": ["a", "b"]}


def wave(x: Any) -> float:
    return float(np.sin(5.0 * np.sum(x)))


def named(x: Any) -> float:
    return float(np.log10(x["lr"]) + x["n"] / 50 + (x["act"] == "a"))


RUNS: dict[str, tuple[Callable[[Any], float], Any, dict[str, Any]]] = {
    "box": (wave, [(0.0, 1.0)] * 2, {}),
    "box, narrow kernel": (wave, [(0.0, 1.0)] * 2, NARROW | {"policy": gpmi.GPMI()}),
    "box, EI": (wave, [(0.0, 1.0)], {"policy": gpmi.EI()}),
    "box, Thompson": (wave, [(0.0, 1.0)], NARROW | {"policy": gpmi.Thompson()}),
    "box, exact": (wave, [(0.0, 1.0)] * 2, {"kernel": kernels.RBF(0.3), "noise_var": 0.0, "policy": gpmi.LogEI()}),
    "candidates": (wave, np.random.default_rng(0).uniform(size=(50, 2)), NARROW),
    "candidates, LogEI": (wave, np.linspace(0.0, 1.0, 40)[:, None], NARROW | {"policy": gpmi.LogEI()}),
    "named": (named, NAMED, {}),
}


def story(f: Callable[[Any], float], space: Any, arguments: dict[str, Any]) -> list[Any]:
    """Everything a user may read of a short run, as plain numbers."""
    r = gpmi.maximize(f, space, budget=8, seed=1, **arguments)
    p, ledger = r.posterior, r.ledger
    assert p is not None and ledger is not None
    z = np.array([r.space.encode(trial.x) for trial in r.trials])[:4]
    read = [p(z), p.mu(z), p.covariance(z), p.moments(z), p.sample(z, np.random.default_rng(0)), p.mu_at_observed]
    return [
        *((trial.y, trial.mu, trial.sd) for trial in r.trials),
        *(np.concatenate([np.ravel(part) for part in values]).tolist() for values in read),
        (p.information, p.log_evidence, p.gamma_hat(), ledger.improvement, ledger.regret().interval()),
        (str(ledger), ledger.lock_in, repr(r), r.events),
    ]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.slow
def test_a_run_is_the_same_under_any_error_state(run: str) -> None:
    ordinary = story(*RUNS[run])
    with np.errstate(all="raise"):
        assert story(*RUNS[run]) == ordinary


def test_users_see_no_warning_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_blas_thread, "warns", False)
    with one_blas_thread:
        assert np.geterr() == dict.fromkeys(DEFAULT, "ignore")
        assert np.isinf(np.square(1e200))
    assert np.geterr() == DEFAULT


def test_the_error_state_is_the_default_inside_and_given_back_outside() -> None:
    assert np.geterr() == DEFAULT
    with np.errstate(all="raise", divide="print"):
        own = np.geterr()
        with one_blas_thread:
            assert np.geterr() == DEFAULT
            with np.errstate(over="ignore"), one_blas_thread:
                assert np.geterr() == DEFAULT | {"over": "ignore"}  # what the library sets itself holds
            assert np.geterr() == DEFAULT
        assert np.geterr() == own
        with pytest.raises(ZeroDivisionError), one_blas_thread:
            raise ZeroDivisionError
        assert np.geterr() == own
        opt = gpmi.Optimizer([(0.0, 1.0)], seed=0)
        opt.tell(opt.ask(), 1.0)
        with pytest.raises(ValueError):
            opt.tell([2.0], 1.0)
        opt.recommend()
        assert np.geterr() == own


@pytest.mark.slow
def test_every_thread_has_its_own_error_state() -> None:
    states = [{"under": "raise"}, {"all": "raise"}, {}, {"all": "ignore"}]

    def work(seed: int) -> list[Any]:
        with np.errstate(**states[seed % len(states)]):
            before = np.geterr()
            told = story(*RUNS["box, narrow kernel"])
            assert np.geterr() == before
        return told

    with ThreadPoolExecutor(4) as pool:
        stories = list(pool.map(work, range(8)))
    assert all(told == stories[0] for told in stories)


def test_ctrl_c_while_it_is_entered_or_left_never_leaves_the_library_without_its_own_setting() -> None:
    def blas_threads() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    for moment in count(1):  # a key at each moment at which Python looks for one: a function begins, one of C has ended
        calls = 0

        def press(frame: Any, event: str, argument: Any, moment: int = moment) -> None:
            nonlocal calls
            if event in ("call", "c_return"):
                calls += 1
                if calls == moment:
                    signal.raise_signal(signal.SIGINT)

        with np.errstate(under="raise"), threadpool_limits(2, user_api="blas"):
            fresh = type(one_blas_thread)()
            libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            fresh._libraries = libraries  # to find them reads files, which Ctrl-C would leave open
            try:
                sys.setprofile(press)
                with fresh:
                    pass
            except KeyboardInterrupt:
                pass
            finally:
                sys.setprofile(None)
            with fresh:
                assert np.geterr() == DEFAULT and blas_threads() == {1}
        if calls < moment:
            break
    assert moment > 30  # it was entered and left
