"""The policy benchmark's own loop queries what the library queries."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import gpmi
from gpmi.tasks import TASKS

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
policies = pytest.importorskip("policies")


# EI on branin is not here: without noise its values next to the incumbent are rounding, and ties fall differently.
@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("generated-2", None),
        ("generated-2", gpmi.GPMI()),
        ("generated-2", gpmi.LogEI("mean")),
        ("branin", None),
        ("branin", gpmi.GPMI()),
    ],
    ids=repr,
)
def test_the_benchmark_makes_the_library_s_queries(name: str, policy: gpmi.Policy | None) -> None:
    scenario = policies.SCENARIOS[name](3)
    queries = policies.simulate(scenario, policy or gpmi.Reinvest(), 3, scenario.horizon)[:40]
    fixed = 0 if not name.startswith("generated") else 3
    task = TASKS[name].sample(np.random.default_rng([policies.zlib.crc32(name.encode()), fixed]))
    rng = np.random.default_rng([3, 17])
    opt = gpmi.Optimizer(
        task.candidates, policy, kernel=task.kernel, noise_var=task.noise_var, budget=scenario.horizon + 10
    )
    for row in rng.choice(len(task.values), 10, replace=False):
        opt.tell(task.candidates[row], task.values[row] + task.noise_sd * rng.standard_normal())
    for row in queries:
        x = opt.ask()
        assert np.array_equal(x, task.candidates[row])
        opt.tell(x, task.values[row] + task.noise_sd * rng.standard_normal())
