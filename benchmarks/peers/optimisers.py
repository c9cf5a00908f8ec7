"""The peers of the comparison, behind one protocol: tell points and values, ask for the next point.

Each adapter hands the problem to its library as that library's manual recommends, and leaves every setting at its
default unless its docstring says otherwise. A library that supports integers, choices and logarithmic scales is told
about them. For the others `Cube` relaxes the space to [0, 1]^d. It takes logarithms of logarithmic parameters and
rounds integers. A choice has one coordinate for each option, and the largest wins. The point told is the one evaluated.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, Protocol

import harness
import numpy as np
from problems.functions import Array, Point

import gpmi
from gpmi.space import Choice, Int, Parameters, Real


class Peer(Protocol):
    """An optimiser that maximises."""

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None: ...

    def ask(self) -> Point: ...


class Cube:
    """The space as the unit cube: points become rows (d,) of numbers in [0, 1], and rows points by rounding."""

    def __init__(self, space: Parameters) -> None:
        self.space, self.d = space, space.dim

    def row(self, point: Point) -> Array:
        return (self.space.encode(point) - self.space.lo) / self.space.span

    def rows(self, points: Sequence[Point]) -> Array:
        return np.array([self.row(point) for point in points])

    def point(self, row: Array) -> Point:
        return self.space.decode(self.space.lo + np.clip(row, 0.0, 1.0) * self.space.span)


class Names:
    """Points as dicts of named values, which most libraries want. The coordinates of a box are x0, x1, ..."""

    def __init__(self, space: Parameters) -> None:
        self.space = space
        self.names = space.names or tuple(f"x{i}" for i in range(len(space.parameters)))
        self.parameters = dict(zip(self.names, space.parameters, strict=True))

    def named(self, point: Point) -> dict[str, Any]:
        values = [point[name] for name in self.names] if self.space.names else [float(v) for v in point]
        return dict(zip(self.names, values, strict=True))

    def point(self, values: dict[str, Any]) -> Point:
        """Return the point with these values, inside the bounds and of plain types."""
        plain = [_plain(p, values[name]) for name, p in self.parameters.items()]
        return dict(zip(self.names, plain, strict=True)) if self.space.names else np.array(plain)


def _plain(parameter: Real | Int | Choice, value: Any) -> Any:
    if isinstance(parameter, Choice):
        return parameter.canonical(value)
    clipped = min(max(value, parameter.lo), parameter.hi)
    return round(clipped) if isinstance(parameter, Int) else float(clipped)


class Opened:
    """A peer without an initial design of its own: it is told n points, Sobol' or uniform, all at once."""

    def __init__(self, peer: Peer, space: Parameters, seed: int, n: int, *, sobol: bool = False) -> None:
        rng = np.random.default_rng([2, seed])
        unit = _sobol(space.unit_dim, n, seed) if sobol else rng.random((n, space.unit_dim))
        self.peer, self.waiting = peer, [space.decode(row) for row in space.from_unit(unit)]
        self.n, self.points, self.values = n, list[Point](), list[float]()

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        if len(self.values) >= self.n:
            self.peer.tell(points, values)
            return
        self.points += points
        self.values += values
        if len(self.values) == self.n:
            self.peer.tell(self.points, self.values)

    def ask(self) -> Point:
        return self.waiting.pop(0) if self.waiting else self.peer.ask()


def _sobol(d: int, n: int, seed: int) -> Array:
    from scipy.stats import qmc

    return qmc.Sobol(d, seed=seed).random(2 ** int(np.ceil(np.log2(n))))[:n]


def opening(space: Parameters) -> int:
    """Return how many points to begin with where a library leaves it to its user: 2 (d + 1), at most a third of 60."""
    return min(20, 2 * (space.dim + 1))


class Gpmi:
    """gpmi with nothing set but the budget."""

    aim: Literal["find", "earn"] = "find"

    def __init__(self, space: Parameters, seed: int, budget: int | None) -> None:
        self.optimizer = gpmi.Optimizer(space, aim=self.aim, budget=budget, seed=seed)

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        for point, value in zip(points, values, strict=True):
            self.optimizer.tell(point, value)

    def ask(self) -> Point:
        return self.optimizer.ask()


class GpmiEarn(Gpmi):
    """gpmi with the other aim: every evaluation counts."""

    aim = "earn"


class Random:
    """Uniform points."""

    def __init__(self, space: Parameters, seed: int, budget: int | None) -> None:
        self.space, self.rng = space, np.random.default_rng([1, seed])

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        pass

    def ask(self) -> Point:
        return self.space.decode(self.space.from_unit(self.rng.random((1, self.space.unit_dim)))[0])


class CmaEs:
    """pycma on the relaxed cube, a generation at a time. It starts at the best point told first, with sigma 0.25."""

    def __init__(self, space: Parameters, seed: int, budget: int | None) -> None:
        import cma

        self.cube, self.seed, self.cma = Cube(space), seed, cma
        self.strategy: Any = None
        self.asked: list[Array] = []  # of the generation under way, in order
        self.values: list[float] = []

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        if self.strategy is None:
            options = {"bounds": [0.0, 1.0], "seed": self.seed + 1, "verbose": -9}
            start = self.cube.row(points[int(np.argmax(values))])
            self.strategy = self.cma.CMAEvolutionStrategy(start, 0.25, options)
            return
        self.values += [-value for value in values]
        if len(self.values) == len(self.asked):
            self.strategy.tell(self.asked, self.values)
            self.asked, self.values = [], []

    def ask(self) -> Point:
        if not self.asked:
            self.asked = self.strategy.ask()
        return self.cube.point(self.asked[len(self.values)])


class BoTorch:
    """SingleTaskGP on the relaxed cube, values standardised, refitted for every point; 10 restarts, 512 samples."""

    def __init__(self, space: Parameters, seed: int, budget: int | None) -> None:
        import botorch
        import torch

        self.cube, self.botorch, self.torch = Cube(space), botorch, torch
        torch.manual_seed(seed)
        self.x, self.y = torch.empty((0, self.cube.d)).double(), torch.empty((0, 1)).double()

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        self.x = self.torch.cat([self.x, self.torch.tensor(self.cube.rows(points))])
        self.y = self.torch.cat([self.y, self.torch.tensor(values).double()[:, None]])

    def bounds(self) -> Any:
        return self.torch.tensor([[0.0], [1.0]]).double().repeat(1, self.cube.d)

    def fitted(self) -> Any:
        """Return the model of all values so far."""
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Normalize, Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        normalize = Normalize(self.cube.d, bounds=self.bounds())
        model = SingleTaskGP(self.x, self.y, input_transform=normalize, outcome_transform=Standardize(1))
        self.botorch.fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def ask(self) -> Point:
        from botorch.optim import optimize_acqf

        acquisition = self.acquisition(self.fitted())
        best, _ = optimize_acqf(acquisition, self.bounds(), q=1, num_restarts=10, raw_samples=512)
        return self.cube.point(best[0].numpy())

    def acquisition(self, model: Any) -> Any:
        from botorch.acquisition import LogExpectedImprovement

        return LogExpectedImprovement(model, best_f=self.y.max())


class BoTorchUcb(BoTorch):
    """The same with the upper confidence bound, beta = 4."""

    def acquisition(self, model: Any) -> Any:
        from botorch.acquisition import UpperConfidenceBound

        return UpperConfidenceBound(model, beta=4.0)


class OptunaGp:
    """GPSampler on Optuna's own distributions."""

    def __init__(self, space: Parameters, seed: int, budget: int | None) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.names, self.optuna = Names(space), optuna
        self.study = optuna.create_study(direction="maximize", sampler=self.sampler(seed))
        self.distributions = {name: self._distribution(p) for name, p in self.names.parameters.items()}
        self.trial: Any = None

    def sampler(self, seed: int) -> Any:
        return self.optuna.samplers.GPSampler(seed=seed)

    def _distribution(self, p: Real | Int | Choice) -> Any:
        kinds = self.optuna.distributions
        if isinstance(p, Choice):
            return kinds.CategoricalDistribution(p.options)
        kind = kinds.IntDistribution if isinstance(p, Int) else kinds.FloatDistribution
        return kind(p.lo, p.hi, log=p.log)

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        if self.trial is not None:
            self.study.tell(self.trial, values[0])
            self.trial = None
            return
        for point, value in zip(points, values, strict=True):
            params = self.names.named(point)
            trial = self.optuna.create_trial(params=params, distributions=self.distributions, value=value)
            self.study.add_trial(trial)

    def ask(self) -> Point:
        self.trial = self.study.ask(self.distributions)
        return self.names.point(self.trial.params)


class OptunaTpe(OptunaGp):
    """TPESampler, univariate as by default."""

    def sampler(self, seed: int) -> Any:
        return self.optuna.samplers.TPESampler(seed=seed)


class Emukit:
    """Expected improvement on GPy's regression with a Matern-5/2 kernel, the model of Emukit's own example.

    Inputs are scaled to the unit cube and the values standardised by those of the initial design. Integers and choices
    are Emukit's discrete and one-hot parameters.
    """

    def __init__(self, space: Parameters, seed: int, budget: int | None) -> None:
        import emukit.bayesian_optimization.loops  # noqa: F401  (so that the import is not timed)
        import GPy

        self.cube, self.gpy = Cube(space), GPy
        self.loop: Any = None
        self.new: list[Any] = []  # results that the loop has not seen

    def _space(self) -> Any:
        from emukit.core import (
            CategoricalParameter,
            ContinuousParameter,
            DiscreteParameter,
            OneHotEncoding,
            ParameterSpace,
        )

        parameters: list[Any] = []
        for i, p in enumerate(self.cube.space.parameters):
            if isinstance(p, Choice):
                parameters.append(CategoricalParameter(f"x{i}", OneHotEncoding([str(o) for o in p.options])))
            elif isinstance(p, Int):
                levels = (p.levels - p.levels[0]) / (p.levels[-1] - p.levels[0])
                parameters.append(DiscreteParameter(f"x{i}", [float(v) for v in levels[:, 0]]))
            else:
                parameters.append(ContinuousParameter(f"x{i}", 0.0, 1.0))
        return ParameterSpace(parameters)

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        from emukit.bayesian_optimization.acquisitions import ExpectedImprovement
        from emukit.bayesian_optimization.loops import BayesianOptimizationLoop
        from emukit.core.loop import UserFunctionResult
        from emukit.model_wrappers import GPyModelWrapper

        x = self.cube.rows(points)
        if self.loop is None:
            self.centre, self.scale = np.mean(values), np.std(values) or 1.0
            y = -(np.array(values)[:, None] - self.centre) / self.scale
            model = GPyModelWrapper(self.gpy.models.GPRegression(x, y, self.gpy.kern.Matern52(self.cube.d)))
            model.optimize()
            self.loop = BayesianOptimizationLoop(self._space(), model, ExpectedImprovement(model))
        else:
            self.new += [
                UserFunctionResult(row, np.array([-(value - self.centre) / self.scale]))
                for row, value in zip(x, values, strict=True)
            ]

    def ask(self) -> Point:
        row = self.loop.get_next_points(self.new)[0]
        self.new = []
        return self.cube.point(row)


class BayesianOptimization:
    """bayesian-optimization's own acquisition (UCB) and space. It has no logarithmic scale, so it gets logarithms."""

    def __init__(self, space: Parameters, seed: int, budget: int | None) -> None:
        from bayes_opt import BayesianOptimization as Library

        self.names = Names(space)
        bounds = {name: self._bounds(p) for name, p in self.names.parameters.items()}
        self.library = Library(f=None, pbounds=bounds, random_state=seed, verbose=0, allow_duplicate_points=True)

    @staticmethod
    def _bounds(p: Real | Int | Choice) -> tuple[Any, ...]:
        if isinstance(p, Choice):
            return p.options
        if p.log:
            return float(np.log(p.lo)), float(np.log(p.hi))
        return (p.lo, p.hi, int) if isinstance(p, Int) else (p.lo, p.hi)

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        for point, value in zip(points, values, strict=True):
            named = self.names.named(point)
            logs = {k: np.log(v) if getattr(self.names.parameters[k], "log", False) else v for k, v in named.items()}
            self.library.register(params=logs, target=value)

    def ask(self) -> Point:
        logs = self.library.suggest()
        parameters = self.names.parameters
        return self.names.point({k: np.exp(v) if getattr(parameters[k], "log", False) else v for k, v in logs.items()})


class ScikitOptimize:
    """skopt.Optimizer with its Gaussian process and gp_hedge. It fits and searches in `tell`."""

    def __init__(self, space: Parameters, seed: int, budget: int | None) -> None:
        import skopt

        self.names = Names(space)
        dimensions = [self._dimension(skopt.space, name, p) for name, p in self.names.parameters.items()]
        self.optimizer = skopt.Optimizer(dimensions, "gp", n_initial_points=10, acq_func="gp_hedge", random_state=seed)

    @staticmethod
    def _dimension(kinds: Any, name: str, p: Real | Int | Choice) -> Any:
        if isinstance(p, Choice):
            return kinds.Categorical(p.options, name=name)
        kind = kinds.Integer if isinstance(p, Int) else kinds.Real
        return kind(p.lo, p.hi, prior="log-uniform" if p.log else "uniform", name=name)

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        rows = [list(self.names.named(point).values()) for point in points]
        self.optimizer.tell(rows, [-value for value in values])

    def ask(self) -> Point:
        return self.names.point(dict(zip(self.names.names, self.optimizer.ask(), strict=True)))


class Hebo:
    """HEBO on its own design space."""

    def __init__(self, space: Parameters, seed: int, budget: int | None) -> None:
        import pandas
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        self.names, self.pandas = Names(space), pandas
        design = DesignSpace().parse([self._parameter(name, p) for name, p in self.names.parameters.items()])
        self.optimizer = HEBO(design, scramble_seed=seed)

    @staticmethod
    def _parameter(name: str, p: Real | Int | Choice) -> dict[str, Any]:
        if isinstance(p, Choice):
            return {"name": name, "type": "cat", "categories": list(p.options)}
        kind = {(Real, False): "num", (Real, True): "pow", (Int, False): "int", (Int, True): "pow_int"}[type(p), p.log]
        return {"name": name, "type": kind, "lb": p.lo, "ub": p.hi}

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        frame = self.pandas.DataFrame([self.names.named(point) for point in points])
        self.optimizer.observe(frame, -np.array(values)[:, None])

    def ask(self) -> Point:
        return self.names.point(self.optimizer.suggest(1).iloc[0].to_dict())


class Ax:
    """Ax's client with the generation strategy it chooses. The initial design counts as its initialisation.

    initialize_with_center=False changes nothing here: the first point would be a Sobol point in either case.
    """

    def __init__(self, space: Parameters, seed: int, budget: int | None) -> None:
        import logging

        from ax.api.client import Client

        logging.getLogger("ax").setLevel(logging.ERROR)
        self.names, self.client, self.trial = Names(space), Client(random_seed=seed), None
        self.client.configure_experiment([self._parameter(name, p) for name, p in self.names.parameters.items()])
        self.client.configure_optimization("y")
        self.client.configure_generation_strategy(initialize_with_center=False)

    @staticmethod
    def _parameter(name: str, p: Real | Int | Choice) -> Any:
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

        if isinstance(p, Choice):
            return ChoiceParameterConfig(name, list(p.options), "str", is_ordered=False)
        kind = "int" if isinstance(p, Int) else "float"
        return RangeParameterConfig(name, (p.lo, p.hi), kind, scaling="log" if p.log else "linear")

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        for point, value in zip(points, values, strict=True):
            number = self.client.attach_trial(self.names.named(point)) if self.trial is None else self.trial
            self.client.complete_trial(number, {"y": float(value)})
            self.trial = None

    def ask(self) -> Point:
        ((self.trial, values),) = self.client.get_next_trials(1).items()
        return self.names.point(values)


Maker = Callable[[Parameters, int, int | None], Peer]  # of the space, the seed and the budget

# Cheap peers first, so that a partial table is balanced. The version is that of the package named second.
PEERS: dict[str, tuple[Maker, str]] = {
    "gpmi": (Gpmi, "gpmi"),
    "gpmi earn": (GpmiEarn, "gpmi"),
    "random": (Random, "numpy"),
    "CMA-ES": (CmaEs, "cma"),
    "Optuna TPE": (OptunaTpe, "optuna"),
    "Emukit EI": (Emukit, "emukit"),
    "Optuna GP": (OptunaGp, "optuna"),
    "bayesian-optimization": (BayesianOptimization, "bayesian-optimization"),
    "BoTorch LogEI": (BoTorch, "botorch"),
    "BoTorch UCB": (BoTorchUcb, "botorch"),
    "scikit-optimize": (ScikitOptimize, "scikit-optimize"),
    "Ax": (Ax, "ax-platform"),
    "HEBO": (Hebo, "hebo"),
}
OURS = ("gpmi", "gpmi earn")
# The design of peers that leave it to their user: the number of points for a space, and whether they are Sobol' points.
# BoTorch's and Emukit's examples draw a few for each dimension, bayesian-optimization five, CMA-ES one to start from.
OPENINGS: dict[str, tuple[Callable[[Parameters], int], bool]] = {
    "CMA-ES": (lambda space: 1, False),
    "Emukit EI": (opening, False),
    "bayesian-optimization": (lambda space: 5, False),
    "BoTorch LogEI": (opening, True),
    "BoTorch UCB": (opening, True),
}
CHEAP = ("gpmi", "gpmi earn", "random", "CMA-ES", "Optuna TPE", "Emukit EI", "Optuna GP")  # also with 200 evaluations
SLOWEST = ("Ax", "HEBO")
SLOW = ("BoTorch LogEI", "BoTorch UCB", "scikit-optimize", *SLOWEST)  # 30 s of CPU a run and more
HALF_SLOW = ("Emukit EI", "Optuna GP", *SLOW)  # the same with 200 evaluations
# HEBO's pins exclude those of the other peers. In its environment boosting-cancer differs by some 1e-4: the last digit
# of NumPy's exponential decides between nearly equal splits of a tree. The other problems are the same.
OWN_ENVIRONMENT = {"HEBO": ".venv-bench-hebo"}


def make(name: str, space: Any, seed: int, budget: int | None = None, *, alone: bool = False) -> Peer:
    """Return the peer, ready to be told an initial design or, with `alone`, to be asked. All randomness is seeded."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (some peers use NumPy's global generator)
    warnings.simplefilter("ignore")
    maker, _ = PEERS[name]
    made = gpmi.Space.of(space)
    assert isinstance(made, Parameters)
    peer = maker(made, seed, budget)
    if alone and name in OPENINGS:
        n, sobol = OPENINGS[name]
        return Opened(peer, made, seed, n(made), sobol=sobol)
    return peer


def version(name: str) -> str:
    """Return the peer's version: for gpmi, the commit of its source."""
    return harness.commit() if name in OURS else metadata.version(PEERS[name][1])


def python(name: str) -> Path:
    """Return the interpreter of the environment that the peer is installed in."""
    if name in OWN_ENVIRONMENT:
        return harness.ROOT / OWN_ENVIRONMENT[name] / "bin" / "python"
    return Path(sys.executable)


def one_thread() -> None:
    """Limit PyTorch, which has threads of its own, to one."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
