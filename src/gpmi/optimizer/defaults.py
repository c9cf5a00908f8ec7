"""Defaults that depend on the aim: the policy, the initial design, the scale of the coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gpmi._support import checks
from gpmi.gp.kernels import Kernel
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.policies import Aim, Find, Guarded, Policy, of_aim
from gpmi.space import Space


def has_bound(space: Space, kernel: Kernel | None, noise_var: float | None, repeats: bool) -> bool:
    """Whether the theorem of `Guarded` holds: two candidates or more, a given prior with noise, and repeats."""
    if not isinstance(kernel, Kernel) or kernel.unknown or noise_var is None or not repeats or space.target_values:
        return False
    return checks.variance("noise_var", noise_var) > 0.0 and space.rows is not None and len(space.rows) > 1


@dataclass(frozen=True)
class Defaults:
    """The settings that come with a policy. `Optimizer.defaults` holds them, and an Optimizer prints them.

    Only `Find` switches any on, whether it comes from aim="find" or from the user. A given kernel has its own units, so
    then only the initial design differs. docs/notes/find.md has the experiments.
    """

    policy: Policy
    show_options: bool = False  # the initial design shows the options of each choice early
    short_design: bool = False  # on a finite set the initial design has at most five rows
    rank_columns: bool = False  # a column of candidates with few different numbers is modelled by rank
    widen_choices: bool = False  # the unit of length is wider for a choice than for a number (`Space.units`)
    compress_losses: bool = False  # on a finite set the model compresses the values below the median

    @staticmethod
    def of(aim: Aim | Policy, kernel: Kernel | Mapping[str, Any] | None = None, *, bounded: bool = False) -> Defaults:
        """Return the defaults of an aim, or of a policy that the user gave.

        `bounded` says whether the bound of a `Guarded` holds (`has_bound`): then aim="earn" has a guard.
        """
        policy = aim if isinstance(aim, Policy) else of_aim(aim)
        if isinstance(policy, Guarded) and not bounded:
            needs = "candidates, a given kernel and noise_var > 0, and repeats"
            raise ValueError(f"policy is {policy!r}, whose bound needs {needs}; give {policy.policy!r}")
        if aim == "earn" and bounded:
            policy = Guarded(policy)
        finds, learned = isinstance(policy, Find), kernel is None
        return Defaults(policy, finds, finds, finds and learned, finds and learned, finds and learned)

    def __str__(self) -> str:
        switches = [field.name.replace("_", " ") for field in fields(self) if getattr(self, field.name) is True]
        return ", ".join(switches) or "none"


# Rows of the initial design of a finite set. Chosen among 3, 4, 5, 6 and 10 on tables of past experiments
# (docs/benchmarks/first_experiments.md): 3 to 6 differ little.
SHORT_DESIGN = 5


def default_n_init(
    space: Space, priors: PriorSchedule, budget: int | None, sources: int = 0, *, short: bool = False
) -> int:
    """Return the size of the initial design: 0 with a given prior, else the number of parameters plus 3.

    At most ten, and at most a third of the budget: our choice (docs/notes/find.md). At most SHORT_DESIGN rows if it is
    `short` and the set is finite. With earlier studies it is the best point of each and one other, if that is less.
    Where constraints count parameters and leave few supports, it shows each of them.
    """
    if priors.is_fixed:
        return 0
    most = SHORT_DESIGN if short and space.target.rows is not None else 10
    n_init = max(min(most, space.parameter_count + 3), space.support_count)
    n_init = min(n_init, sources + 1) if sources else n_init
    return n_init if budget is None else max(1, min(n_init, budget // 3))
