"""Fixtures and helpers for all tests: kernels, the equations of the paper solved directly, a clean environment."""

from __future__ import annotations

import gc
import os
from importlib.util import find_spec

# Set before NumPy is imported. More threads slow the tests down, tenfold on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import fuzzing
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

from gpmi import kernels
from gpmi.gp.linalg import one_blas_thread

type(one_blas_thread).warns = True  # users see no warning of NumPy, but the tests do, as errors

# `make test` draws the same examples every time, so a failure is about the change. `make check` draws a few new ones,
# `make examples` many. There is no deadline, and drawing may be slow, as it is on a busy machine.
PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("gpmi", max_examples=50, derandomize=True, **PATIENT)
settings.register_profile("quick", max_examples=10, **PATIENT)
settings.register_profile("many", max_examples=1000, **PATIENT)
settings.load_profile("gpmi")

Array = NDArray[np.float64]

KERNELS = {
    "rbf": kernels.RBF(0.7, variance=1.3),
    "rbf-ard": kernels.RBF([0.5, 1.1, 2.0]),
    "matern-0.3": kernels.Matern(nu=0.3, lengthscale=0.9),
    "matern-1/2": kernels.Matern(nu=0.5, lengthscale=0.8, variance=0.4),
    "matern-1": kernels.Matern(nu=1, lengthscale=0.8),
    "matern-3/2-ard": kernels.Matern(nu=1.5, lengthscale=[0.4, 0.8, 1.5]),
    "matern-5/2": kernels.Matern(nu=2.5, lengthscale=1.2),
    "matern-3": kernels.Matern(nu=3, lengthscale=[0.6, 0.9, 1.4], variance=2.0),
    "matern-7/2": kernels.Matern(nu=3.5, lengthscale=0.7),
    "linear": kernels.Linear(variance=0.6),
    "sum": kernels.RBF(0.5) + kernels.Linear(0.3),
    "product": kernels.Matern(nu=2.5, lengthscale=[0.5, 1.0, 1.5]) * kernels.Linear(2.0),
    "nested": (kernels.RBF(0.8) + kernels.Linear()) * kernels.Matern(nu=1.5, lengthscale=2.0),
}


@dataclass(frozen=True)
class RationalQuadratic(kernels.Stationary):
    """A kernel as a user would write it: one method."""

    alpha: float = 1.0

    def kappa_and_slope(self, r2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        base = 1.0 + r2 / (2.0 * self.alpha)
        kappa = base**-self.alpha
        return kappa, -0.5 * kappa / base


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over all that was imported and collected: a twelfth of the time of many tests."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `anuga` if the simulator is not installed."""
    if find_spec("anuga") is None:
        for item in items:
            if item.get_closest_marker("anuga"):
                item.add_marker(pytest.mark.skip(reason="ANUGA is missing: pip install -r paper/requirements.txt"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what became of the cases of `make fuzz`."""
    for line in fuzzing.SUMMARY:
        terminalreporter.write_line(line)


@pytest.fixture(params=KERNELS, ids=list(KERNELS))
def kernel(request: pytest.FixtureRequest) -> kernels.Kernel:
    """Each of `KERNELS` in turn; all accept three coordinates."""
    return KERNELS[request.param]


def direct(kernel: kernels.Kernel, noise_var: float, x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """Return the mean and variance at z by equations 1 and 2, with a general solver."""
    c = kernel(x, x) + noise_var * np.eye(len(x))
    k = kernel(x, z)
    return k.T @ np.linalg.solve(c, y), kernel.diagonal(z) - np.einsum("ij,ij->j", k, np.linalg.solve(c, k))


@pytest.fixture
def few_draws() -> Iterator[None]:
    """Draw few functions for the ledger's regrets: enough where only their place in a text or picture matters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpmi.analysis.ledger.regret.PATHS", 32)
        patch.setattr("gpmi.analysis.ledger.regret.DRAWS", 64)
        yield


@pytest.fixture
def storages_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the connections of Optuna's storages. Optuna leaves it to the garbage collector, and Python 3.13 warns."""
    storage = pytest.importorskip("optuna").storages.RDBStorage
    opened, init = [], storage.__init__

    def init_and_note(self: object, *arguments: object, **named: object) -> None:
        init(self, *arguments, **named)
        opened.append(self)

    monkeypatch.setattr(storage, "__init__", init_and_note)
    yield
    for one in opened:
        one.remove_session()
        one.engine.dispose()


@pytest.fixture(autouse=True, scope="session")
def nothing_lands_in_the_repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run in a temporary folder, which then holds files such as the outbox of a study on a server."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("working-directory"))
    yield
    os.chdir(before)


@pytest.fixture(autouse=True, scope="session")
def signals_are_not_ignored() -> Iterator[None]:
    """Restore the default handlers of SIGINT and SIGHUP, which the tests of signals and their child processes need.

    Shells start background jobs with SIGINT ignored, nohup with SIGHUP ignored, and child processes inherit that.
    """
    handlers = {signal.SIGINT: signal.default_int_handler}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = signal.SIG_DFL
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
