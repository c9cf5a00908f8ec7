"""The point that a tool recommends after its last value, where observed values are noisy.

A tool has up to three choices. OBSERVED is the point with the best observed value, which every tool has. TOLD is the
evaluated point with the best posterior mean, and ANYWHERE is the best posterior mean in the whole box, both by the
tool's own model after all values. gpmi's `recommend()` is ANYWHERE, and so is the favourite of CMA-ES, the mean of its
distribution. TPE and random search have neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from problems.functions import Array, Point

from .optimisers import BoTorch, CmaEs, Emukit, Gpmi, Opened, OptunaGp, OptunaTpe, Peer

OBSERVED, TOLD, ANYWHERE = CHOICES = ("observed", "told", "anywhere")
SCREEN, STARTS = 2000, 5  # points of the box that are scored, and climbs from the best of them and of those told
Mean = Callable[[Array], Array]  # the posterior mean at rows (m, d) of the unit cube, up to a shift and a scale


def recommended(peer: Peer, bounds: Sequence[tuple[float, float]], x: Sequence[Array], y: Sequence[float]) -> Any:
    """Return the points by choice, for a tool that was told the values y at the points x of a box."""
    tool = peer.peer if isinstance(peer, Opened) else peer
    found: dict[str, Point] = {OBSERVED: x[int(np.argmax(y))]}
    if isinstance(tool, CmaEs):
        return found | {ANYWHERE: tool.cube.point(tool.strategy.result.xfavorite)}
    mean = posterior_mean(tool)
    if mean is None:
        return found
    lo, hi = np.array(bounds).T
    rows = (np.array(x) - lo) / (hi - lo)
    found[TOLD] = x[int(np.argmax(mean(rows)))]
    found[ANYWHERE] = tool.optimizer.recommend() if isinstance(tool, Gpmi) else lo + (hi - lo) * best_row(mean, rows)
    return found


def posterior_mean(tool: Peer) -> Mean | None:
    """Return the posterior mean of the tool's own model, fitted to all values as for its next suggestion, if any."""
    if isinstance(tool, Gpmi):
        return _of_gpmi(tool)
    if isinstance(tool, Emukit):
        return _of_emukit(tool)
    if isinstance(tool, BoTorch):
        return _of_botorch(tool)
    if isinstance(tool, OptunaGp) and not isinstance(tool, OptunaTpe):
        return _of_optuna(tool)
    return None


def _of_gpmi(tool: Gpmi) -> Mean:
    space, model = tool.optimizer.space, tool.optimizer.model
    assert model is not None
    return lambda rows: model.posterior.mu(space.from_unit(rows))


def _of_emukit(tool: Emukit) -> Mean:
    tool.loop.loop_state.update(tool.new)
    tool.loop._update_models()
    tool.new = []
    return lambda rows: -tool.loop.model.predict(rows)[0][:, 0]


def _of_botorch(tool: BoTorch) -> Mean:
    model, torch = tool.fitted(), tool.torch

    def mean(rows: Array) -> Array:
        with torch.no_grad():
            found: Array = model.posterior(torch.tensor(rows)).mean.numpy()[:, 0]
        return found

    return mean


def _of_optuna(tool: OptunaGp) -> Mean:
    """Optuna shows no posterior; this is the regression that its sampler keeps, after the fit of one more `ask`."""
    import torch

    sampler = tool.study.sampler
    tool.study.ask(tool.distributions)
    (regression,) = sampler._gprs_cache_list

    def mean(rows: Array) -> Array:
        with torch.no_grad():
            found: Array = regression.posterior(torch.from_numpy(rows))[0].numpy()
        return found

    return mean


def best_row(mean: Mean, told: Array) -> Array:
    """Return the row of the unit cube with the best mean: climbs from the best of random rows and those told."""
    from scipy.optimize import minimize

    d = told.shape[1]
    rows = np.concatenate([told, np.random.default_rng(0).random((SCREEN, d))])
    starts = rows[np.argsort(-mean(rows))[:STARTS]]
    step = 1e-6

    def loss(row: Array) -> tuple[float, Array]:
        around = mean(row + step * np.concatenate([np.zeros((1, d)), np.eye(d), -np.eye(d)]))
        return -float(around[0]), -(around[1 : d + 1] - around[d + 1 :]) / (2 * step)

    ends = [minimize(loss, row, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * d).x for row in starts]
    both = np.concatenate([starts, ends])
    best: Array = both[int(np.argmax(mean(both)))]
    return best
