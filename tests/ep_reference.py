"""Long runs of MCMC that tests/test_ep.py compares expectation propagation with.

`python tests/ep_reference.py` writes tests/ep_reference.json anew: for ten small data sets with failures and ten with
heavy tails, what elliptical slice sampling (Murray, Adams, MacKay 2010) says of new points. It takes some minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpmi.gp.kernels import RBF, Kernel, Matern

FILE = Path(__file__).with_name("ep_reference.json")
CHAINS, WARM_UP, ROUNDS = 1000, 150, 500
NU = 4.0


@dataclass(frozen=True)
class DataSet:
    """Points, what was seen there, and points at which f is to be predicted."""

    kernel: Kernel
    x: Any  # (n, d)
    z: Any  # (m, d)
    seen: Any  # (n,): whether it was a success, or y
    scale2: float = 0.0  # of Student's t


def with_failures() -> list[DataSet]:
    """One to four coordinates, 6 to 24 points, regions of several shapes, failures at random in two of them."""
    sets = []
    for i in range(10):
        rng = np.random.default_rng([14, i])
        d, n = 1 + i % 4, 6 + 2 * i
        x, z = rng.random((n, d)), rng.random((6, d))
        regions: list[Callable[[Any], Any]] = [
            lambda x: x[:, 0] < 0.6,
            lambda x: ((x - 0.5) ** 2).sum(axis=1) < 0.12 * x.shape[1],
            lambda x: np.sin(6 * x).sum(axis=1) > 0.0,
        ]
        success = regions[i % 3](x)
        if i in (3, 7):
            success = success ^ (rng.random(n) < 0.15)
        length, variance = (0.2, 0.4, 0.8)[i % 3] * np.sqrt(d), (1.0, 4.0, 16.0)[(i // 2) % 3]
        kernel = (RBF if i % 2 else Matern)(lengthscale=length, variance=variance)
        sets.append(DataSet(kernel, x, z, success))
    return sets


def with_outliers() -> list[DataSet]:
    """Smooth functions with noise of heavy tails, and two far outliers in half of them."""
    sets = []
    for i in range(10):
        rng = np.random.default_rng([41, i])
        d, n = 1 + i % 3, 8 + 2 * i
        x, z = rng.random((n, d)), rng.random((6, d))
        scale = (0.05, 0.1, 0.2)[i % 3]
        y = np.sin(5 * x).sum(axis=1) + scale * rng.standard_t(NU, n)
        if i % 2:
            y[:2] += (4.0, -2.0)
        sets.append(DataSet(RBF(lengthscale=0.35 * np.sqrt(d), variance=1.5), x, z, y, scale**2))
    return sets


def log_likelihood(data: DataSet, f: Any) -> Any:
    """log p(seen | f) for f (chains, n)."""
    from scipy.special import log_ndtr

    if data.scale2 == 0.0:
        return log_ndtr(np.where(data.seen, f, -f)).sum(axis=1)
    return (-0.5 * (NU + 1) * np.log1p((data.seen - f) ** 2 / (NU * data.scale2))).sum(axis=1)


def sampled(data: DataSet, seed: int) -> dict[str, list[float]]:
    """Means and variances of f, and P(success), at z, from CHAINS chains of elliptical slice sampling."""
    from scipy.special import ndtr

    rng = np.random.default_rng([7, seed])
    n = len(data.x)
    k, cross = data.kernel(data.x, data.x), data.kernel(data.z, data.x)
    root = np.linalg.cholesky(k + 1e-10 * np.eye(n))
    smoother = np.linalg.solve(k + 1e-10 * np.eye(n), cross.T).T  # (m, n)
    left = data.kernel.diagonal(data.z) - np.einsum("ij,ij->i", smoother, cross)
    f = rng.standard_normal((CHAINS, n)) @ root.T
    log = log_likelihood(data, f)
    sums = np.zeros((3, len(data.z)))
    for t in range(WARM_UP + ROUNDS):
        other = rng.standard_normal((CHAINS, n)) @ root.T
        level = log + np.log(rng.random(CHAINS))
        angle = rng.uniform(0, 2 * np.pi, CHAINS)
        low, high = angle - 2 * np.pi, angle.copy()
        new, moving = f.copy(), np.ones(CHAINS, dtype=bool)
        while moving.any():
            at = np.flatnonzero(moving)
            new[at] = f[at] * np.cos(angle[at])[:, None] + other[at] * np.sin(angle[at])[:, None]
            log[at] = log_likelihood(data, new[at])
            bad = at[log[at] <= level[at]]
            moving[:] = False
            moving[bad] = True
            low[bad], high[bad] = (
                np.where(angle[bad] < 0, angle[bad], low[bad]),
                np.where(angle[bad] >= 0, angle[bad], high[bad]),
            )
            angle[bad] = rng.uniform(low[bad], high[bad])
        f = new
        if t >= WARM_UP:
            at_z = f @ smoother.T
            sums += at_z.mean(axis=0), (at_z**2).mean(axis=0), ndtr(at_z / np.sqrt(1.0 + left)).mean(axis=0)
    mean, square, p = sums / ROUNDS
    return {"mean": mean.tolist(), "var": (square - mean**2 + left).tolist(), "p": p.tolist()}


def main() -> None:
    made = {
        name: [sampled(data, i) for i, data in enumerate(sets)]
        for name, sets in (("failures", with_failures()), ("outliers", with_outliers()))
    }
    FILE.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
