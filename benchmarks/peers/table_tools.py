"""Tools that choose rows of a table, behind one protocol: ask for a row, tell its value.

Each tool is used out of the box, with its own initial design where it has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Protocol

import harness
import numpy as np
from problems.functions import Array
from problems.real_tables import Table, row_of

import gpmi
from gpmi.space import candidates

DESIGN = 10  # random rows for BoTorch and Emukit, which leave the design to the user
LIMIT = 30.0  # CPU seconds: a tool that takes longer is expensive


class Tool(Protocol):
    """Ask it for the number of a row, and tell it the value."""

    def ask(self) -> int: ...

    def tell(self, number: int, value: float) -> None: ...


Change = Callable[[gpmi.Optimizer], None]  # applied by a variant of find before every query


class Gpmi:
    """gpmi.Optimizer on the DataFrame of all rows. Only the budget, the seed and `options` are set."""

    def __init__(self, data: Table, seed: int, budget: int, change: Change | None = None, **options: Any) -> None:
        self.data, self.change = data, change
        self.optimizer = gpmi.Optimizer(data.frame, budget=budget, seed=seed, **options)
        self.x: Any = None

    def ask(self) -> int:
        if self.change is not None:
            self.change(self.optimizer)
        self.x = self.optimizer.ask()
        return self.data.number_of[tuple(self.x.values())]

    def tell(self, number: int, value: float) -> None:
        self.optimizer.tell(self.x, value)


class Optuna:
    """An Optuna sampler on the grid. A number is given by its rank in its column, a word as it is."""

    def __init__(self, data: Table, seed: int, budget: int, sampler: str) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        assert data.grid is not None
        self.grid, kinds = data.grid, optuna.distributions
        self.study = optuna.create_study(direction="maximize", sampler=getattr(optuna.samplers, sampler)(seed=seed))
        self.distributions: dict[str, Any] = {
            name: kinds.CategoricalDistribution(levels)
            if isinstance(levels[0], str)
            else kinds.IntDistribution(0, len(levels) - 1)
            for name, levels in self.grid.items()
        }
        self.trial: Any = None

    def ask(self) -> int:
        self.trial = self.study.ask(self.distributions)
        chosen = [self.trial.params[name] for name in self.grid]
        return row_of(self.grid, chosen)

    def tell(self, number: int, value: float) -> None:
        self.study.tell(self.trial, value)


class ScikitOptimize:
    """skopt.Optimizer with its defaults for a Gaussian process, on the grid as for Optuna."""

    def __init__(self, data: Table, seed: int, budget: int) -> None:
        import skopt

        assert data.grid is not None
        self.grid = data.grid
        dimensions = [
            skopt.space.Categorical(levels) if isinstance(levels[0], str) else skopt.space.Integer(0, len(levels) - 1)
            for levels in self.grid.values()
        ]
        self.optimizer = skopt.Optimizer(dimensions, "gp", random_state=seed)
        self.chosen: list[Any] = []

    def ask(self) -> int:
        self.chosen = self.optimizer.ask()
        return row_of(self.grid, self.chosen)

    def tell(self, number: int, value: float) -> None:
        self.optimizer.tell(self.chosen, -value)


class OnCandidates:
    """The row with the largest acquisition of all that were not evaluated. The first DESIGN rows are random.

    The rows are those of `Table.cube`.
    """

    def __init__(self, data: Table, seed: int, budget: int) -> None:
        self.x, self.order = data.cube, np.random.default_rng([2, seed]).permutation(len(data))
        self.numbers: list[int] = []
        self.values: list[float] = []

    def ask(self) -> int:
        if len(self.numbers) < DESIGN:
            return int(self.order[len(self.numbers)])
        score = self.score(self.x[self.numbers], np.array(self.values))
        score[self.numbers] = -np.inf
        return int(np.argmax(score))

    def tell(self, number: int, value: float) -> None:
        self.numbers.append(number)
        self.values.append(value)

    def score(self, x: Array, y: Array) -> Array:
        """Return the acquisition at all rows, given y (n,) at x (n, d)."""
        raise NotImplementedError


class BoTorch(OnCandidates):
    """LogEI on a SingleTaskGP with its defaults, values standardised, refitted for every row."""

    def __init__(self, data: Table, seed: int, budget: int) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        super().__init__(data, seed, budget)
        self.candidates = torch.tensor(self.x)

    def score(self, x: Array, y: Array) -> Array:
        import torch
        from botorch import fit_gpytorch_mll
        from botorch.acquisition import LogExpectedImprovement
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        model = SingleTaskGP(torch.tensor(x), torch.tensor(y)[:, None], outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, best_f=float(y.max()))
        with torch.no_grad():
            parts = [acquisition(part[:, None]) for part in self.candidates.split(4096)]
        return np.array(torch.cat(parts).numpy())


class Emukit(OnCandidates):
    """Expected improvement on GPy's regression with a Matern-5/2 kernel, values standardised, refitted for every row.

    It is the model of Emukit's own example.
    """

    def __init__(self, data: Table, seed: int, budget: int) -> None:
        super().__init__(data, seed, budget)
        self.model: Any = None

    def score(self, x: Array, y: Array) -> Array:
        import GPy
        from emukit.bayesian_optimization.acquisitions import ExpectedImprovement
        from emukit.model_wrappers import GPyModelWrapper

        z = -((y - y.mean()) / (y.std() or 1.0))[:, None]  # it minimises
        if self.model is None:
            self.model = GPyModelWrapper(GPy.models.GPRegression(x, z, GPy.kern.Matern52(x.shape[1])))
        self.model.set_data(x, z)
        self.model.optimize()
        acquisition = ExpectedImprovement(self.model)
        parts = [acquisition.evaluate(part)[:, 0] for part in np.array_split(self.x, math.ceil(len(self.x) / 4096))]
        return np.concatenate(parts)


class BayBE:
    """A campaign of BayBE with its defaults on the rows of a table: labels are one-hot, numbers discrete.

    Its first batch is random, as its default is. It asks several rows at a time.
    """

    def __init__(self, data: Table, seed: int) -> None:
        import torch
        from baybe import Campaign
        from baybe.parameters import CategoricalParameter, NumericalDiscreteParameter
        from baybe.searchspace import SearchSpace
        from baybe.targets import NumericalTarget
        from baybe.utils.random import set_random_seed

        torch.set_num_threads(1)
        set_random_seed(seed)
        self.data = data
        parameters = [
            (CategoricalParameter if isinstance(column[0], str) else NumericalDiscreteParameter)(
                name, sorted(set(column))
            )
            for name, column in data.columns.items()
        ]
        self.campaign = Campaign(SearchSpace.from_dataframe(data.frame, parameters), NumericalTarget("value"))
        self.asked: Any = None

    def ask_several(self, count: int) -> list[int]:
        self.asked = self.campaign.recommend(batch_size=count)
        rows = self.asked[list(self.data.columns)].itertuples(index=False, name=None)
        return [self.data.number_of[row] for row in rows]

    def tell_several(self, numbers: list[int]) -> None:
        self.campaign.add_measurements(self.asked.assign(value=self.data.values[numbers]))


Maker = Callable[[Table, int, int], Tool]  # of the table, the seed and the budget


@dataclass(frozen=True)
class Entry:
    """A tool of the comparison."""

    make: Maker
    distribution: str  # the package that has the version
    expensive: bool = False  # more than LIMIT CPU seconds a run
    needs_grid: bool = False  # it may ask any combination of levels, so the table must have all of them


def with_options(**options: Any) -> Maker:
    return lambda data, seed, budget: Gpmi(data, seed, budget, **options)


# Cheap tools first, so that a partial table is balanced.
TOOLS: dict[str, Entry] = {
    "find": Entry(with_options(), "gpmi"),
    "earn": Entry(with_options(aim="earn"), "gpmi"),
    "Optuna TPE": Entry(lambda *a: Optuna(*a, sampler="TPESampler"), "optuna", needs_grid=True),
    "Emukit EI": Entry(Emukit, "emukit"),
    "BoTorch LogEI": Entry(BoTorch, "botorch", expensive=True),
    "Optuna GP": Entry(lambda *a: Optuna(*a, sampler="GPSampler"), "optuna", needs_grid=True),
    "scikit-optimize": Entry(ScikitOptimize, "scikit-optimize", expensive=True, needs_grid=True),
}


# Variants of find, for the development. Each changes one thing.


def plain_y(opt: gpmi.Optimizer) -> None:
    opt._strategy._setting.priors._soften = False  # there is no option for it, on purpose


def with_policy(first: gpmi.Policy) -> Change:
    def change(opt: gpmi.Optimizer) -> None:
        opt.policy = gpmi.Find(first=first)

    return change


def every_second(opt: gpmi.Optimizer) -> None:
    opt.policy = gpmi.Find(first=EI_MEAN) if len(opt.trials) % 2 else gpmi.Find()


def all_ranks(data: Table, seed: int, budget: int) -> Tool:
    before, candidates.GRID = candidates.GRID, len(data)
    try:
        return Gpmi(data, seed, budget)
    finally:
        candidates.GRID = before


EI_MEAN = gpmi.LogEI("mean")
# The same kernel, but given by the user: no ranks, and y is not compressed.
AS_IT_WAS = gpmi.kernels.Matern(nu=2.5, lengthscale=None, variance=None)
VARIANTS: dict[str, Entry] = {
    "numbers and y as they are": Entry(with_options(kernel=AS_IT_WAS), "gpmi"),
    "y as it is": Entry(with_options(change=plain_y), "gpmi"),
    "ranks of all columns": Entry(all_ranks, "gpmi"),
    "LogEI first": Entry(with_options(change=with_policy(EI_MEAN)), "gpmi"),
    "every second LogEI": Entry(with_options(change=every_second), "gpmi"),
}


def entry_of(tool: str) -> Entry:
    """Return a tool, or a variant of find."""
    return TOOLS[tool] if tool in TOOLS else VARIANTS[tool]


def version(tool: str) -> str:
    """Return the version of a tool: for gpmi, the commit of its source."""
    name = entry_of(tool).distribution
    return harness.commit() if name == "gpmi" else metadata.version(name)
