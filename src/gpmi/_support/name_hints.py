"""Hints at the name that was meant: names that other libraries use, and names that are similar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

_GOAL = "gpmi.maximize or gpmi.minimize, or goal= of gpmi.Optimizer"
_RUNS = "of gpmi.maximize and gpmi.minimize"
_GOALS = 'goals={"yield": "max", "cost": "min"} of gpmi.optimize, gpmi.Optimizer and gpmi.study'
SEVERAL = f"for several outputs use {_GOALS}"
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


def similar_name(name: str, names: Sequence[str]) -> str | None:
    """Return the name that is most similar to this one, whatever its case; None if none is."""
    from difflib import get_close_matches  # only for a message

    lower = {original.lower(): original for original in reversed(names)}
    near = get_close_matches(name.lower(), list(lower), n=1)
    return lower[near[0]] if near else None


def missing_attribute(module: str, public: Sequence[str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module that suggests the most similar of its public names."""

    def getattr_(name: str) -> Any:
        near = "" if name.startswith("_") else similar_name(name, public)
        hint = f"; did you mean {near!r}?" if near else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}")

    return getattr_
