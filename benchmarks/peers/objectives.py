"""The peers for several objectives, behind one protocol: tell points with their outputs, ask for the next point.

Objectives are minimised, and a constraint holds where it is at most 0. Points are rows of the unit cube, for all tools.
Each tool is used as its manual recommends.
"""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
from problems.functions import Array
from problems.objectives import Problem


class Tool(Protocol):
    """An optimiser of several objectives. `repairs` counts suggestions that failed and were made at random."""

    repairs: int

    def tell(self, u: Array, objectives: Array, constraints: Array) -> None: ...  # (n, d), (n, m), (n, k)

    def ask(self) -> Array: ...  # (d,)


class Random:
    """Uniform points."""

    repairs = 0

    def __init__(self, problem: Problem, seed: int) -> None:
        self.d, self.rng = problem.d, np.random.default_rng([1, seed])

    def tell(self, u: Array, objectives: Array, constraints: Array) -> None:
        pass

    def ask(self) -> Array:
        return self.rng.random(self.d)


class BoTorch:
    """qLogNEHVI as in BoTorch's tutorials: one SingleTaskGP an output, 128 samples, 10 restarts, 512 raw samples.

    It is given the reference point. Inputs are in the unit cube, and outputs are standardised inside the models, which
    learn the noise. Objectives are also standardised outside of them, as Ax does it, because the acquisition function
    is smoothed by a constant width, which is too wide for objectives that differ by less than 0.01.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        import botorch  # noqa: F401  (so that the import is not timed)
        import torch

        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.torch, self.problem, self.seed = torch, problem, seed
        self.u, self.repairs = np.empty((0, problem.d)), 0
        self.objectives, self.constraints = np.empty((0, problem.m)), np.empty((0, problem.k))
        self.rng = np.random.default_rng([2, seed])

    def tell(self, u: Array, objectives: Array, constraints: Array) -> None:
        self.u = np.vstack([self.u, u])
        self.objectives = np.vstack([self.objectives, objectives])
        self.constraints = np.vstack([self.constraints, constraints])

    def ask(self) -> Array:
        try:
            return self._best()
        except Exception as error:
            print(f"{self.problem.name}, seed {self.seed}, {len(self.u)} points: {error!r:.200}", flush=True)
            self.repairs += 1
            return self.rng.random(self.problem.d)

    def _best(self) -> Array:
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
        from botorch.optim import optimize_acqf
        from botorch.sampling.normal import SobolQMCNormalSampler

        torch, m, k, d = self.torch, self.problem.m, self.problem.k, self.problem.d
        centre, scale = self.objectives.mean(axis=0), self.objectives.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        x = torch.tensor(self.u)
        y = torch.tensor(np.column_stack([-(self.objectives - centre) / scale, self.constraints]))
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model=self._model(x, y),
            ref_point=torch.tensor(-(self.problem.reference - centre) / scale),
            X_baseline=x,
            sampler=SobolQMCNormalSampler(sample_shape=torch.Size([128]), seed=self.seed),
            prune_baseline=True,
            objective=IdentityMCMultiOutputObjective(outcomes=[*range(m)]) if k else None,
            constraints=[lambda z, i=i: z[..., i] for i in range(m, m + k)] or None,
        )
        best, _ = optimize_acqf(
            acq_function=acquisition,
            bounds=torch.tensor([[0.0] * d, [1.0] * d]).double(),
            q=1,
            num_restarts=10,
            raw_samples=512,
            options={"batch_limit": 5, "maxiter": 200, "init_batch_limit": 64 if m < 4 else 8},
            sequential=True,
        )
        return best[0].detach().numpy()

    def _model(self, x: Any, y: Any) -> Any:
        from botorch import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.models.transforms import Normalize, Standardize
        from gpytorch.mlls import SumMarginalLogLikelihood

        d = self.problem.d
        box = self.torch.tensor([[0.0] * d, [1.0] * d]).double()
        models = [
            SingleTaskGP(
                x,
                y[:, i : i + 1],
                input_transform=Normalize(d, bounds=box),
                outcome_transform=Standardize(1),
            )
            for i in range(y.shape[1])
        ]
        model = ModelListGP(*models)
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        return model


class OptunaGp:
    """GPSampler. It infers a reference point of its own, and the points told first count as its initial trials."""

    repairs = 0

    def __init__(self, problem: Problem, seed: int) -> None:
        import optuna
        import torch

        torch.set_num_threads(1)
        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.optuna = optuna
        self.study = optuna.create_study(directions=["minimize"] * problem.m, sampler=self.sampler(seed))
        kind = optuna.distributions.FloatDistribution
        self.distributions: dict[str, Any] = {f"x{i}": kind(0.0, 1.0) for i in range(problem.d)}
        self.trial: Any = None

    def sampler(self, seed: int) -> Any:
        return self.optuna.samplers.GPSampler(seed=seed)

    def tell(self, u: Array, objectives: Array, constraints: Array) -> None:
        if self.trial is not None:
            for i, value in enumerate(constraints[0].tolist()):
                self.trial.set_constraint(f"c{i}", value)
            self.study.tell(self.trial, objectives[0].tolist())
            self.trial = None
            return
        for row, values, limits in zip(u, objectives, constraints, strict=True):
            named = dict(zip(self.distributions, row.tolist(), strict=True))
            held = {f"c{i}": value for i, value in enumerate(limits.tolist())}
            trial = self.optuna.create_trial(
                params=named, distributions=self.distributions, values=values.tolist(), constraints=held
            )
            self.study.add_trial(trial)

    def ask(self) -> Array:
        self.trial = self.study.ask(self.distributions)
        return np.array([self.trial.params[name] for name in self.distributions])


class OptunaTpe(OptunaGp):
    """TPESampler, univariate as by default."""

    def sampler(self, seed: int) -> Any:
        return self.optuna.samplers.TPESampler(seed=seed)
