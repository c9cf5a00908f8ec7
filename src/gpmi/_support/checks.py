"""Checks of arguments: each is accepted, or refused with its name, its value and the remedy."""

from __future__ import annotations

import inspect
import math
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from numbers import Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gpmi._support.refusals import RefusedType, RefusedValue
from gpmi._support.refusals import shown as shown  # part of every message of a check
from gpmi._support.types import Array

LARGEST_COUNT = 2**63 - 1  # of NumPy's integers
LARGEST_SEED = 10**100  # NumPy's own seeds have 39 digits; nobody can copy a number longer than this. Our choice
LARGEST = 1e100  # the largest |y|: y^2 = 1e200 leaves room for sums and products below the largest float, 1.8e308
_GOAL = "gpmi.maximize or gpmi.minimize, or goal= of gpmi.Optimizer"
_RUNS = "of gpmi.maximize and gpmi.minimize"
_GOALS = 'goals={"yield": "max", "cost": "min"} of gpmi.optimize, gpmi.Optimizer and gpmi.study'
SEVERAL = f"for several outputs use {_GOALS}"
ONE_VALUE = f"give one finite number, gpmi.Measured(y, constraints=[...]) for one with constraints; {SEVERAL}"
# Names that other libraries use for what is part of the space here.
ELSEWHERE = {
    **dict.fromkeys(
        ("pruner", "pruners", "scheduler", "early_stopping", "should_prune", "step", "report"),
        'give the space steps, such as "epoch": gpmi.Fidelity(1, 52), and let f yield (step, value): evaluations that '
        "will hardly win are stopped",
    ),
    **dict.fromkeys(
        ("fidelity", "fidelities", "fidelity_space", "resource", "min_resource", "max_resource", "max_t"),
        'it is a parameter of the space: "mesh": gpmi.Fidelity({"coarse": 1, "fine": 60}), or gpmi.Fidelity(1, 52)',
    ),
}
# Names that other libraries use for our arguments: Optuna, scikit-optimize, scikit-learn, bayesian-optimization,
# hyperopt, Ax, Ray Tune, SMAC, Nevergrad, SciPy.
FOREIGN_NAMES = {
    **dict.fromkeys(
        (
            *("n_trials", "n_calls", "n_iter", "max_evals", "max_iter", "maxiter", "total_trials", "num_samples"),
            *("n_evaluations", "n_iterations", "max_trials", "num_trials", "maxfun"),
        ),
        "budget=",
    ),
    **dict.fromkeys(
        (
            *("pbounds", "dimensions", "search_space", "domain", "parameters", "configspace"),
            *("param_space", "parametrization", "param_distributions"),
        ),
        "space=",
    ),
    **dict.fromkeys(("noise_sd", "noise_std"), "noise_var=, the variance"),
    **dict.fromkeys(("objectives", "n_objectives", "directions", "values", "objective_thresholds"), _GOALS),
    **dict.fromkeys(
        ("reference_point", "ref_point"),
        "gpmi.Max(at_least=...) and gpmi.Min(at_most=...) in goals=, the worst values that you would accept",
    ),
    **dict.fromkeys(("direction", "sense", "mode", "minimize", "maximize"), _GOAL),
    **dict.fromkeys(("func", "fun", "fn", "objective", "evaluation_function"), f"f, the first argument {_RUNS}"),
    **dict.fromkeys(("y0", "warm_start", "points_to_evaluate", "evaluated_rewards"), f"earlier= {_RUNS}, or x0="),
    **dict.fromkeys(("parameter_constraints", "outcome_constraints", "constraints_func"), "constraints="),
    "catch": f'on_failure="learn" {_RUNS}',
    "study_name": "name= of gpmi.study",
    "load_if_exists": "gpmi.study, which opens a study that exists",
    **dict.fromkeys(("random_state", "rng", "rstate"), "seed="),
    **dict.fromkeys(("n_jobs", "n_workers", "num_workers"), f"workers= {_RUNS}"),
    **dict.fromkeys(("n_initial_points", "n_random_starts", "init_points", "n_startup_trials"), "n_init="),
    **dict.fromkeys(("acq_func", "acquisition_function", "sampler"), "policy="),
    **dict.fromkeys(("callback", "callbacks"), f"on_trial= {_RUNS}"),
    **dict.fromkeys(("verbose", "show_progress_bar"), f"progress=True {_RUNS}"),
    "storage": f"study= {_RUNS}, or the address of gpmi.study",
}

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def with_name_hints(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Decorate a function to reject unknown keyword arguments and suggest the intended name.

    Its arguments are those of its signature, which may list more than its code does (`gpmi.run.options`).
    """
    parameters = inspect.signature(function).parameters

    @wraps(function)
    def hinted(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        for name in kwargs:
            if name not in parameters:
                what = function.__qualname__.removesuffix(".__init__")
                raise TypeError(f"{name} is not an argument of {what}; {name_hint(name, parameters)}")
        return function(*args, **kwargs)

    return hinted


def name_hint(name: str, parameters: Iterable[str]) -> str:
    """Say what an unknown argument may mean: the name that gpmi has for it, or where it is given."""
    from difflib import get_close_matches  # only for a message

    if name in ELSEWHERE:
        return ELSEWHERE[name]
    if name == "goals":  # an argument of ours, but not of every call
        return SEVERAL
    names = [parameter for parameter in parameters if parameter != "self"]
    if (ours := FOREIGN_NAMES.get(name)) is not None:
        if ours.endswith("=") and ours[:-1] not in names:
            ours += " of gpmi.study"  # a study takes the arguments of an optimizer, its run those of an evaluation
        return f"did you mean {ours}?"
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}=?" if near else f"it takes {', '.join(names)}"


def check_objective(f: Any, names: Sequence[str] | None, count: int) -> None:
    """Refuse an f that cannot be called with one point: a dict with these names, or an array of shape (count,).

    The signature of f itself counts, not that of a function it wraps. A function without a signature passes.
    """
    if not callable(f):
        raise TypeError(f"f is {shown(f)}; give a function of one point")
    try:
        signature = inspect.signature(f, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    if _takes(signature, 1):
        return
    apart = _takes(signature, *range(count)) if names is None else _takes(signature, **dict.fromkeys(names))
    remedy = "give a function of one argument, the point"
    if apart:
        remedy = f"give lambda p: f({'*p' if names is None else '**p'})"
    raise TypeError(f"f takes {signature}, but it is called with {expected_point(names, count)}; {remedy}")


def expected_point(names: Sequence[str] | None, count: int) -> str:
    """Describe the argument that f is called with."""
    return f"one point, an array of shape ({count},)" if names is None else f"one point, a dict of {', '.join(names)}"


def _takes(signature: inspect.Signature, /, *args: Any, **kwargs: Any) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def number(name: str, value: Any, remedy: str = "give one finite number") -> float:
    """Return a finite float from a real number of any type, but not from a bool, a string or an array."""
    if type(value) is float and math.isfinite(value):
        return value
    plain = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(plain, bool | np.bool_) or not isinstance(plain, Real) or hasattr(value, "mask"):
        raise RefusedType(f"{name} is {shown(value)}; {remedy}", "not-a-number", name=name, value=value)
    try:
        result = float(plain)
    except OverflowError:
        result = math.inf
    except (TypeError, ValueError):  # a timedelta64 claims to be a whole number
        raise RefusedType(f"{name} is {shown(value)}; {remedy}", "not-a-number", name=name, value=value) from None
    if not math.isfinite(result):
        raise RefusedValue(f"{name} is {shown(value)}; {remedy}", "not-a-number", name=name, value=value)
    return result


def positive(name: str, value: Any) -> float:
    """Return a finite number above 0."""
    result = number(name, value, remedy := "give one positive, finite number")
    if result <= 0.0:
        raise RefusedValue(f"{name} is {shown(value)}; {remedy}", "not-positive", name=name, value=value)
    return result


def variance(name: str, value: Any) -> float:
    """Return a finite number, 0 or larger."""
    result = number(name, value, remedy := "it is a variance: give one finite number, 0 or larger")
    if result < 0.0:
        raise RefusedValue(f"{name} is {shown(value)}; {remedy}", "negative-variance", name=name, value=value)
    return result


def variances(name: str, value: Any, n: int, common: float) -> Array:
    """Return n finite variances, 0 or larger: one for each value, one for all, or `common` if `value` is None."""
    if value is None:
        return np.full(n, common)
    array = np.asarray(value, dtype=float)
    if array.shape not in ((), (n,)) or not np.all(np.isfinite(array) & (array >= 0.0)):
        raise ValueError(f"{name} is {shown(value)}; give one variance, 0 or larger, or one for each of {n} values")
    return np.full(n, array)


def probability(name: str, value: Any, remedy: str = "it is a probability: give a number between 0 and 1") -> float:
    """Return a number above 0 and below 1."""
    result = number(name, value, remedy)
    if not 0.0 < result < 1.0:
        raise ValueError(f"{name} is {shown(value)}; {remedy}")
    return result


def whole(name: str, value: Any, least: int, most: int = LARGEST_COUNT) -> int:
    """Return a whole number from `least` to `most`."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | np.integer):
        raise RefusedType(f"{name} is {shown(value)}; give a whole number", "not-whole", name=name, value=value)
    if value < least:
        sentence = f"{name} is {shown(int(value))}; give a whole number of at least {least}"
        raise RefusedValue(sentence, "too-small", name=name, value=value, low=least)
    if value > most:
        sentence = f"{name} is {shown(int(value))}; give a whole number of at most {most}"
        raise RefusedValue(sentence, "too-large", name=name, value=value, high=most)
    return int(value)


def flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {shown(value)}; give True or False")
    return bool(value)


def one_of(name: str, value: Any, words: Sequence[str]) -> str:
    """Return one of several words."""
    if not isinstance(value, str) or value not in words:
        sentence = f"{name} is {shown(value)}; give one of {', '.join(map(repr, words))}"
        raise RefusedValue(sentence, "not-a-choice", name=name, value=value, options=words)
    return value


def points(name: str, value: Any, d: int | None) -> Array:
    """Return points as a finite (m, d) array, or one point as (1, d). With d None, d may be any number."""
    array = np.asarray(value, dtype=float)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or (d is not None and array.shape[1] != d):
        want = "d" if d is None else str(d)
        raise ValueError(f"{name} has shape {np.shape(value)}; give an array of shape (m, {want}), a point per row")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has a coordinate that is not finite; leave out such points")
    return array


def shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of an array or of nested lists; None for anything else, including ragged lists."""
    if not isinstance(value, np.ndarray | list | tuple):
        return None
    try:
        return np.shape(value)
    except ValueError:
        return None


def writable_folder(name: str, value: Path, folder: Path) -> None:
    """Make `folder` if it does not exist. Refuse the argument `value` if no file can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"{name} is {str(value)!r}, but {str(folder)!r} cannot be written to ({reason}); give another"
        ) from error


def checked_noise(noise_var: Any, repeats: Any, output: str | None = None) -> tuple[float, int]:
    """Return the known variance of a value, or of an output, and the number of evaluations it is the mean of."""
    if type(noise_var) is float and noise_var == 0.0 and type(repeats) is int and repeats == 1:
        return 0.0, 1
    of = "" if output is None else f"[{output!r}]"
    value = variance(f"noise_var{of}", noise_var)
    if value > LARGEST**2:
        remedy = f"give a variance below {LARGEST**2:g}, in other units, or leave out a value that tells nothing"
        raise ValueError(f"noise_var{of} is {noise_var!r}, too large to compute with; {remedy}")
    return value, whole(f"repeats{of}", repeats, 1)


def checked_value(y: Any) -> float:
    """Return y as a finite number that is small enough to square."""
    remedy = "give one finite number, or call fail(x) for an evaluation that has none"
    value = number("y", y, ONE_VALUE if has_several(y) else remedy)
    if abs(value) > LARGEST:
        raise ValueError(f"y is {y!r}, too large to square; give values below {LARGEST:g}, in other units")
    return value


def has_several(value: Any) -> bool:
    """Whether a value is a collection of several values, as an evaluation with several objectives returns."""
    size = value.size if isinstance(value, np.ndarray) else len(value) if isinstance(value, list | tuple | dict) else 0
    return size > (0 if isinstance(value, dict) else 1)  # one output by name is an evaluation of a run with goals


def checked_goal(goal: Any) -> None:
    """Refuse a goal that is neither "max" nor "min", and several of them with a sentence of their own."""
    if isinstance(goal, list | tuple | dict):
        raise TypeError(f"goal is {shown(goal)}; give 'max' or 'min', and {SEVERAL}")
    one_of("goal", goal, ("max", "min"))


def missing_attribute(module: str, public: Sequence[str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module that suggests the most similar of its public names."""

    def getattr_(name: str) -> Any:
        near = "" if name.startswith("_") else similar_name(name, public)
        hint = f"; did you mean {near!r}?" if near else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}")

    return getattr_


def similar_name(name: str, names: Sequence[str]) -> str | None:
    """Return the name that is most similar to this one, whatever its case; None if none is."""
    from difflib import get_close_matches  # only for a message

    lower = {original.lower(): original for original in reversed(names)}
    near = get_close_matches(name.lower(), list(lower), n=1)
    return lower[near[0]] if near else None
