"""BoTorch's knowledge gradient with several fidelities, used as its tutorial on discrete fidelities recommends."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from problems.fidelities import Problem
from problems.functions import Array

INITIAL = 16  # random points at random levels, as in the tutorial


class BoTorch:
    """qMFKG: SingleTaskMultiFidelityGP, 128 fantasies, 5 restarts, 128 raw samples, one point at a time.

    Points are rows of the unit cube. Levels are fidelities from 0 to 1, spread evenly, and the affine cost is that of
    the coarsest and of the finest level.
    """

    def __init__(self, problem: Problem, costs: tuple[float, ...], seed: int) -> None:
        import botorch  # noqa: F401  (so that the import is not timed)
        import torch

        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.torch, self.problem, self.costs = torch, problem, costs
        self.fidelities = np.linspace(0.0, 1.0, len(costs))
        self.rng = np.random.default_rng([3, seed])
        self.inputs, self.values = np.empty((0, problem.d + 1)), np.empty(0)

    def tell(self, u: Array, level: int, value: float) -> None:
        self.inputs = np.vstack([self.inputs, [*u, self.fidelities[level]]])
        self.values = np.append(self.values, value)

    def ask(self) -> tuple[Array, int]:
        """Return a point and a level."""
        if len(self.values) < INITIAL:
            return self.rng.random(self.problem.d), int(self.rng.integers(len(self.costs)))
        best = self._best()
        return best[:-1], int(np.argmin(np.abs(self.fidelities - best[-1])))

    def _best(self) -> Array:
        from botorch import fit_gpytorch_mll
        from botorch.acquisition import PosteriorMean
        from botorch.acquisition.cost_aware import InverseCostWeightedUtility
        from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
        from botorch.acquisition.knowledge_gradient import qMultiFidelityKnowledgeGradient
        from botorch.acquisition.utils import project_to_target_fidelity
        from botorch.models import AffineFidelityCostModel, SingleTaskMultiFidelityGP
        from botorch.models.transforms import Standardize
        from botorch.optim import optimize_acqf, optimize_acqf_mixed
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch, d = self.torch, self.problem.d
        x, y = torch.tensor(self.inputs), torch.tensor(self.values)[:, None]
        model = SingleTaskMultiFidelityGP(x, y, outcome_transform=Standardize(1), data_fidelities=[d])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        box = torch.tensor([[0.0] * (d + 1), [1.0] * (d + 1)]).double()
        target = FixedFeatureAcquisitionFunction(PosteriorMean(model), d=d + 1, columns=[d], values=[1.0])
        _, now = optimize_acqf(
            acq_function=target,
            bounds=box[:, :-1],
            q=1,
            num_restarts=10,
            raw_samples=1024,
            options={"batch_limit": 10, "maxiter": 200},
        )
        cost = AffineFidelityCostModel({d: self.costs[-1] - self.costs[0]}, fixed_cost=self.costs[0])

        def project(points: Any) -> Any:
            return project_to_target_fidelity(points, target_fidelities={d: 1.0}, d=d + 1)

        gradient = qMultiFidelityKnowledgeGradient(
            model=model,
            num_fantasies=128,
            current_value=now,
            cost_aware_utility=InverseCostWeightedUtility(cost),
            project=project,
        )
        found, _ = optimize_acqf_mixed(
            acq_function=gradient,
            bounds=box,
            fixed_features_list=[{d: float(fidelity)} for fidelity in self.fidelities],
            q=1,
            num_restarts=5,
            raw_samples=128,
            options={"batch_limit": 5, "maxiter": 200},
        )
        best: Array = found[0].detach().numpy()
        return best
