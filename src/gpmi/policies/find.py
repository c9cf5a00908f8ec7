"""The default policy: look for the best point, and spend no query on what is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from gpmi import checks
from gpmi.policies.improvement import LogEI
from gpmi.policies.policy import Guarantee, Policy, State, checked_policy
from gpmi.policies.reinvest import Reinvest
from gpmi.types import Array


@dataclass(frozen=True)
class Find(Policy):
    """The point of `first`, unless it is known already: then the point of `then`. What aim="find" stands for.

    Reinvest, the first, weighs what a query may bring against what it costs now. When it expects no more gain from the
    queries that are left it repeats the best point it knows, which is right where every query pays. Where only the best
    point at the end counts, such a repeat is wasted; LogEI, the second, then looks where the most improvement is
    expected, whatever it costs.

    A point is known if there is a trial at it: within a thousandth of the box in each coordinate; on a
    finite set in the same row. `gpmi.suggestion` applies the rule, because a policy does not see points. The score,
    phi and derivatives below are those of `first`. docs/policy.md has the experiments.
    """

    first: Policy = field(default_factory=Reinvest)
    then: Policy = field(default_factory=lambda: LogEI("mean"))

    guarantee: ClassVar[Guarantee] = Guarantee(
        False,
        "the theorem of Reinvest needs its repeats, and a bound for LogEI with noise is not known to us.",
        "none",
        "this project, docs/policy.md",
    )

    def __post_init__(self) -> None:
        checked_policy(self.first)
        checked_policy(self.then)

    @property
    def grows_with_var(self) -> bool:  # type: ignore[override]
        return self.first.grows_with_var

    @property
    def additive(self) -> bool:  # type: ignore[override]
        return self.first.additive

    @property
    def joint(self) -> bool:  # type: ignore[override]
        return self.first.joint

    def phi(self, var: Array, state: State) -> Array:
        return self.first.phi(var, state)

    def score(self, mu: Array, var: Array, state: State) -> Array:
        return self.first.score(mu, var, state)

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        return self.first.with_derivatives(mu, var, state)


Aim: TypeAlias = Literal["find", "earn"]


def of_aim(aim: Aim) -> Policy:
    """The policy for an aim: the best point at the end ("find"), or the sum of all values ("earn")."""
    checks.one_of("aim", aim, ("find", "earn"))
    return Find() if aim == "find" else Reinvest()
