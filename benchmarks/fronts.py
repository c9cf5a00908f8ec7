"""Where are the fronts of the problems with several objectives, and what are their largest hypervolumes?

    python benchmarks/fronts.py                   writes benchmarks/problems/fronts.json; an hour
    python benchmarks/fronts.py --problems ZDT1-6 some problems only

1. An evolution strategy in the manner of NSGA-II (Deb and others 2002), with a large population and several seeds,
   finds a front.
2. The hypervolume below a reference r is c E max_x min_i ((r_i - f_i(x)) / w_i)^m, with w uniform on the part of the
   unit sphere where all weights are positive (Golovin and Zhang 2020). Each of some thousand weights, spread evenly,
   has a point of its own, which differential evolution among neighbours improves. The sum has no error from gaps
   between points of a front, so it is closer than the hypervolume of the points found, and is a bit low only where a
   point is not yet the best. The hypervolume of all points found is stored if it should be larger.
3. The same search below a reference that is far away is made before, twice: it finds the ends of the front. Ideal and
   nadir are the smallest and the largest values on the front of all points found until then.
"""

from __future__ import annotations

import json
import math
from typing import Any

import harness
import numpy as np
from problems.functions import Array
from problems.hypervolume import hypervolume, nondominated
from problems.objectives import DEFINITIONS, FRONTS, MARGIN, PROBLEMS, Problem
from scipy.special import ndtri
from scipy.stats import qmc

POPULATION, GENERATIONS, SEEDS = 600, 400, 3
WEIGHTS = {2: 1000, 3: 4096, 4: 8192}
ROUNDS, NEIGHBOURS = 300, 20
INFEASIBLE = 1e6  # added to the excess of a point that breaks a constraint


def excess(limits: Array) -> Array:
    """Return by how much points break the constraints, each measured by its typical size."""
    if not limits.shape[1]:
        return np.zeros(len(limits))
    return np.sum(np.maximum(limits, 0.0) / (1 + np.median(np.abs(limits), axis=0)), axis=1)


def ranks(values: Array, broken: Array) -> Array:
    """Return the number of the front of each row: feasible rows by dominance, the others after them by their excess."""
    better = (values[:, None] <= values).all(axis=2) & (values[:, None] < values).any(axis=2)
    feasible = broken == 0
    better &= feasible[:, None] & feasible
    rank, left, number = np.full(len(values), -1), feasible.copy(), 0
    count = better.sum(axis=0)
    while left.any():
        front = left & (count == 0)
        rank[front] = number
        count = count - better[front].sum(axis=0)
        left &= ~front
        number += 1
    order = np.argsort(broken[~feasible], kind="stable")
    rank[np.flatnonzero(~feasible)[order]] = number + np.arange(len(order))
    return rank


def crowding(values: Array) -> Array:
    """Return the distance between the neighbours of each row, summed over objectives; infinite at the ends."""
    distance = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        distance[order[[0, -1]]] = np.inf
        spread = column[order[-1]] - column[order[0]] or 1.0
        distance[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / spread
    return distance


def select(values: Array, broken: Array, size: int) -> Array:
    """Return the rows that survive: the best fronts, and of the last one those with the most room."""
    rank, chosen = ranks(values, broken), list[int]()
    for number in range(int(rank.max()) + 1):
        front = np.flatnonzero(rank == number)
        if len(chosen) + len(front) > size:
            front = front[np.argsort(-crowding(values[front]), kind="stable")[: size - len(chosen)]]
        chosen += front.tolist()
        if len(chosen) == size:
            break
    return np.array(chosen)


def children(u: Array, rng: np.random.Generator) -> Array:
    """Return as many new points: differential evolution around random parents, and small or large single changes."""
    n, d = u.shape
    a, b, c = (u[rng.integers(n, size=n)] for _ in range(3))
    step = rng.choice([0.3, 0.5, 0.9], size=(n, 1))
    mixed = np.where(rng.random((n, d)) < rng.choice([0.3, 0.9], size=(n, 1)), a + step * (b - c), a)
    return disturbed(mixed, rng)


def disturbed(u: Array, rng: np.random.Generator) -> Array:
    """Return points with about one coordinate changed at random scales, reflected at the bounds and cut off there."""
    n, d = u.shape
    scale = 10.0 ** rng.uniform(-5, -0.3, size=(n, 1))
    change = np.where(rng.random((n, d)) < 1 / d, scale * rng.standard_normal((n, d)), 0.0)
    return np.clip(u + change, 0.0, 1.0)


def evolve(problem: Problem, seed: int, generations: int) -> Array:
    """Return points of the unit cube whose values approximate the front."""
    rng = np.random.default_rng([11, seed])
    u = qmc.Sobol(problem.d, seed=seed).random(1024)[:POPULATION]
    values, limits = problem.evaluate(problem.scaled(u))
    for _ in range(generations):
        new = children(u, rng)
        v, c = problem.evaluate(problem.scaled(new))
        u, values, limits = np.vstack([u, new]), np.vstack([values, v]), np.vstack([limits, c])
        keep = select(values, excess(limits), POPULATION)
        u, values, limits = u[keep], values[keep], limits[keep]
    return u[(limits <= 0).all(axis=1)]


def weights(m: int) -> Array:
    """Return directions, spread evenly over the positive part of the unit sphere."""
    n = WEIGHTS[m]
    if m == 2:
        angle = (np.arange(n) + 0.5) / n * np.pi / 2
        return np.column_stack([np.cos(angle), np.sin(angle)])
    w = np.abs(ndtri(qmc.Sobol(m, seed=0).random(n)))
    return w / np.linalg.norm(w, axis=1, keepdims=True)


def lengths(values: Array, limits: Array, reference: Array, scale: Array, w: Array) -> Array:
    """Return min_i (r_i - f_i) / (scale_i w_i) of points for their weights, very negative where a constraint breaks."""
    inside = np.min((reference - values) / scale / w, axis=-1)
    return np.where((limits <= 0).all(axis=-1), inside, -INFEASIBLE - excess(limits))


def largest(problem: Problem, reference: Array, ideal: Array, start: Array, rounds: int) -> tuple[float, Array]:
    """Return the largest hypervolume below a reference and the points that were found, from points to start with."""
    rng, m = np.random.default_rng(12), problem.m
    w, scale = weights(m), reference - ideal
    near = np.empty((len(w), NEIGHBOURS), dtype=int)
    for i in range(len(w)):
        near[i] = np.argpartition(-(w @ w[i]), NEIGHBOURS)[:NEIGHBOURS]
    values, limits = problem.evaluate(problem.scaled(start))
    first = np.array([np.argmax(lengths(values, limits, reference, scale, row)) for row in w])
    u, values, limits = start[first], values[first], limits[first]
    reached = lengths(values, limits, reference, scale, w)
    everyone = np.arange(len(w))
    for turn in range(rounds):
        a, b, c = (u[near[everyone, rng.integers(NEIGHBOURS, size=len(w))]] for _ in range(3))
        parents = u if turn % 2 else a
        step = 10.0 ** rng.uniform(-1.5, 0, size=(len(w), 1))
        new = parents + step * (b - c)
        new = np.where(rng.random((len(w), 1)) < 0.5, disturbed(new, rng), np.clip(new, 0.0, 1.0))
        v, g = problem.evaluate(problem.scaled(new))
        for j in range(0, NEIGHBOURS, 4):  # a new point may be the best of a neighbour
            other = everyone if j == 0 else near[:, j]
            length = lengths(v, g, reference, scale, w[other])
            order = np.argsort(length, kind="stable")  # if several reach one weight, the longest is written last
            order = order[length[order] > reached[other[order]]]
            u[other[order]], reached[other[order]] = new[order], length[order]
    ball = math.pi ** (m / 2) / (2**m * math.gamma(m / 2 + 1))
    return float(ball * np.mean(np.maximum(reached, 0.0) ** m) * np.prod(scale)), u


def measure(name: str, effort: float) -> dict[str, Any]:
    """Return the ideal, the nadir and the largest hypervolumes of a problem."""
    problem = PROBLEMS[name]
    generations, rounds = round(GENERATIONS * effort), round(ROUNDS * effort)
    u = np.vstack([evolve(problem, seed, generations) for seed in range(SEEDS)])
    for _ in range(2):  # a far reference shows the ends of the front, which may be farther out than what is known
        ideal, nadir = ends(problem, u)
        u = np.vstack([u, largest(problem, nadir + (nadir - ideal), ideal, u, rounds)[1]])
    ideal, nadir = ends(problem, u)
    judged = nadir + MARGIN * (nadir - ideal)
    reference = judged if DEFINITIONS[name][4] is None else problem.reference
    volumes = []
    for point in (reference, judged):
        volume, more = largest(problem, point, ideal, u, rounds)
        u = np.vstack([u, more])
        volumes.append(volume)
    values, limits = problem.evaluate(problem.scaled(u))
    values = values[(limits <= 0).all(axis=1)]
    if problem.m < 4:
        volumes = [max(v, hypervolume(values, r)) for v, r in zip(volumes, (reference, judged), strict=True)]
    found = {"ideal": ideal.tolist(), "nadir": nadir.tolist()}
    return found | dict(zip(("hypervolume", "judged hypervolume"), volumes, strict=True))


def ends(problem: Problem, u: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest values on the front of feasible points."""
    values, limits = problem.evaluate(problem.scaled(u))
    values = values[(limits <= 0).all(axis=1)]
    front = values[nondominated(values)]
    return front.min(axis=0), front.max(axis=0)


def main() -> None:
    parser = harness.parser(__doc__, cores=True)
    parser.add_argument("--problems", nargs="+", choices=[*PROBLEMS], default=[*PROBLEMS])
    parser.add_argument("--effort", type=float, default=1.0, help="generations and rounds, times this (default: 1)")
    arguments = parser.parse_args()
    jobs = [(name, arguments.effort) for name in arguments.problems]
    for (name, _), found in harness.each(measure, jobs, arguments.cores):
        stored = json.loads(FRONTS.read_text()) if FRONTS.exists() else {}
        stored[name] = found
        FRONTS.write_text(json.dumps({key: stored[key] for key in PROBLEMS if key in stored}, indent=1) + "\n")
        published = PROBLEMS[name].best
        beside = "" if published is None else f", published {published:.6g}"
        harness.say(f"{name}: hypervolume {found['hypervolume']:.6g}{beside}")


if __name__ == "__main__":
    main()
