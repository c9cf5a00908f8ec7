"""What several test modules need: kernels to try, and the paper's equations evaluated the direct way."""

from __future__ import annotations

import os
from importlib.util import find_spec

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # before NumPy; more only slow the oracles, on a busy machine tenfold

import signal
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from gpmi import kernels

# `make test` draws the same examples every time, so that what it says is about the change; new ones are drawn by
# `make check` (few) and `make examples` (many). On a shared machine a slow example is no failure.
settings.register_profile("gpmi", deadline=None, max_examples=100, derandomize=True)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.register_profile("many", deadline=None, max_examples=1000)
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is marked `anuga` is skipped where the simulator is missing."""
    if find_spec("anuga") is None:
        for item in items:
            if item.get_closest_marker("anuga"):
                item.add_marker(pytest.mark.skip(reason='ANUGA is missing: pip install "gpmi[tsunami]"'))


@pytest.fixture(params=KERNELS, ids=list(KERNELS))
def kernel(request: pytest.FixtureRequest) -> kernels.Kernel:
    """One kernel after another, all for three coordinates."""
    return KERNELS[request.param]


def direct(kernel: kernels.Kernel, noise_var: float, x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """Equations 1 and 2 by a general solver."""
    c = kernel(x, x) + noise_var * np.eye(len(x))
    k = kernel(x, z)
    return k.T @ np.linalg.solve(c, y), kernel.diagonal(z) - np.einsum("ij,ij->j", k, np.linalg.solve(c, k))


@pytest.fixture
def storages_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Optuna leaves the connections of its storages to the garbage collector, of which Python 3.13 warns."""
    storage = pytest.importorskip("optuna").storages.RDBStorage
    made, begin = [], storage.__init__

    def begun(self: object, *arguments: object, **named: object) -> None:
        begin(self, *arguments, **named)
        made.append(self)

    monkeypatch.setattr(storage, "__init__", begun)
    yield
    for one in made:
        one.remove_session()
        one.engine.dispose()


@pytest.fixture(autouse=True, scope="session")
def nothing_lands_in_the_repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is written to the working directory, such as the spool of a server's study, goes to a temporary folder."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("working-directory"))
    yield
    os.chdir(before)


@pytest.fixture(autouse=True, scope="session")
def signals_are_not_ignored() -> Iterator[None]:
    """A shell starts what runs in the background with Ctrl-C ignored, and nohup with SIGHUP ignored, and programs that
    the tests start inherit that; the tests of signals need Python's own handler and the system's."""
    handlers = {signal.SIGINT: signal.default_int_handler}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = signal.SIG_DFL
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
