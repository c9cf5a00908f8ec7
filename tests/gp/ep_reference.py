"""Long runs of MCMC that tests/gp/test_ep.py compares expectation propagation with.

`python tests/gp/ep_reference.py` writes tests/gp/ep_reference.json anew: for ten small data sets with failures and
ten with heavy tails, what elliptical slice sampling (Murray, Adams, MacKay 2010) and Gibbs sampling say of new points.
It takes about a minute on an idle machine.
"""

from __future__ import annotations

import json
import sys
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


def sampled(data: DataSet, seed: int) -> dict[str, list[float]]:
    """Means and variances of f, and P(success), at z."""
    rng = np.random.default_rng([7, seed])
    n = len(data.x)
    k, cross = data.kernel(data.x, data.x) + 1e-10 * np.eye(n), data.kernel(data.z, data.x)
    prior = data.kernel.diagonal(data.z)
    return (by_mixture if data.scale2 else by_slices)(data, k, cross, prior, rng)


def by_slices(data: DataSet, k: Any, cross: Any, prior: Any, rng: np.random.Generator) -> dict[str, list[float]]:
    """Elliptical slice sampling of f at the points, for successes and failures; all chains at once."""
    from scipy.special import log_ndtr, ndtr

    def log_likelihood(f: Any) -> Any:
        return log_ndtr(np.where(data.seen, f, -f)).sum(axis=1)

    n, root = len(k), np.linalg.cholesky(k)
    smoother = np.linalg.solve(k, cross.T).T  # (m, n)
    left = prior - np.einsum("ij,ij->i", smoother, cross)
    f = rng.standard_normal((CHAINS, n)) @ root.T
    log = log_likelihood(f)
    sums = np.zeros((3, len(data.z)))
    for t in range(WARM_UP + ROUNDS):
        other = rng.standard_normal((CHAINS, n)) @ root.T
        level = log + np.log(rng.random(CHAINS))
        angle = rng.uniform(0, 2 * np.pi, CHAINS)
        low, high = angle - 2 * np.pi, angle.copy()
        new, at = f.copy(), np.arange(CHAINS)
        while len(at):
            new[at] = f[at] * np.cos(angle[at])[:, None] + other[at] * np.sin(angle[at])[:, None]
            log[at] = log_likelihood(new[at])
            at = at[log[at] <= level[at]]
            low[at] = np.where(angle[at] < 0, angle[at], low[at])
            high[at] = np.where(angle[at] >= 0, angle[at], high[at])
            angle[at] = rng.uniform(low[at], high[at])
        f = new
        if t >= WARM_UP:
            at_z = f @ smoother.T
            sums += at_z.mean(axis=0), (at_z**2).mean(axis=0), ndtr(at_z / np.sqrt(1.0 + left)).mean(axis=0)
    mean, square, p = sums / ROUNDS
    return {"mean": mean.tolist(), "var": (square - mean**2 + left).tolist(), "p": p.tolist()}


def by_mixture(data: DataSet, k: Any, cross: Any, prior: Any, rng: np.random.Generator) -> dict[str, list[float]]:
    """Gibbs sampling for Student's t: the precision of each value given f, then f given all precisions, exactly.

    Slices move f by about the scale of the noise, far too little here. What is averaged is the mean and the variance of
    f at z given the precisions.
    """
    n, chains, rounds = len(k), CHAINS // 5, 2 * ROUNDS
    w = rng.gamma(NU / 2, 2 / NU, (chains, n))
    sums = np.zeros((2, len(data.z)))
    for t in range(WARM_UP + rounds):
        c = k + (data.scale2 / w)[:, :, None] * np.eye(n)
        both = np.concatenate([k, cross])  # f at the points and at z
        solved = np.linalg.solve(c, np.broadcast_to(both.T, (chains, n, len(both))))  # (chains, n, n + m)
        mean = np.einsum("cij,i->cj", solved, data.seen)
        cov = k - np.einsum("ij,cjk->cik", k, solved[:, :, :n])
        root = np.linalg.cholesky(0.5 * (cov + cov.transpose(0, 2, 1)) + 1e-9 * np.eye(n))
        f = mean[:, :n] + np.einsum("cij,cj->ci", root, rng.standard_normal((chains, n)))
        w = rng.gamma((NU + 1) / 2, 2 / (NU + (data.seen - f) ** 2 / data.scale2))
        if t >= WARM_UP:
            var = prior - np.einsum("mi,cim->cm", cross, solved[:, :, n:])
            sums += mean[:, n:].mean(axis=0), (var + mean[:, n:] ** 2).mean(axis=0)
    first, second = sums / rounds
    return {"mean": first.tolist(), "var": (second - first**2).tolist()}


def main(only: list[str]) -> None:
    made = json.loads(FILE.read_text()) if only else {}
    for name, sets in (("failures", with_failures()), ("outliers", with_outliers())):
        if not only or name in only:
            made[name] = [sampled(data, i) for i, data in enumerate(sets)]
    FILE.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
