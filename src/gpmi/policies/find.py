"""The default policy: look for the best point, and spend no query on what is known."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.policies.improvement import LogEI
from gpmi.policies.phi import GPUCB
from gpmi.policies.policy import Guarantee, Policy, State, checked_policy
from gpmi.policies.reinvest import Reinvest


@dataclass(frozen=True, repr=False)
class Find(Policy):
    """The point of `first`; if it is known already, that of `then`; for two known points in a row, that of `last`.

    This is what aim="find" stands for. Reinvest, the first, weighs what a query may bring against what it costs. When
    it expects no more gain from the queries that are left, it repeats the best point it knows, which is right where
    every query pays. Where only the best point at the end counts, such a repeat is wasted: LogEI then looks where the
    most improvement is expected, whatever it costs. Where the model is too sure of itself LogEI, too, asks one point
    after the other beside the best one, to refine it; then every second query is that of GP-UCB, which looks elsewhere.

    While points are pending none is asked beside them: where the point of `first`, or else that of `then`, is as close
    to a pending one as to be known, it is that of `last`; where that is, too, the point with the largest variance of
    those where the maximum may be (`GPUCBPE`), or else of those that are not beside a pending one. In the last fifth of
    a budget one of the pending points is that with the best posterior mean.

    A point is known if there is a trial at it: within a thousandth of the box in each coordinate; on a finite set in
    the same row. Without noise no point with a trial is chosen by `then` or `last` as long as there is another.
    Two queries in a row that taught nothing are followed by a point elsewhere, chosen without the model: where
    parameters are choices, and on a box of a few numbers, there later after more of them (`gpmi.optimizer.escape`).
    `optimizer.selection` applies the rules, because a policy does not see points. The score, phi and derivatives are
    those of `first`. docs/policy.md has the experiments.
    """

    first: Policy = field(default_factory=Reinvest)
    then: Policy = field(default_factory=lambda: LogEI("mean"))
    last: Policy = field(default_factory=lambda: GPUCB(scale=0.2))

    guarantee: ClassVar[Guarantee] = Guarantee(
        False,
        "the theorem of Reinvest needs its repeats, and the queries of the others follow no rule with a bound.",
        "none",
        "this project, docs/policy.md",
    )

    def __post_init__(self) -> None:
        for name in ("first", "then", "last"):
            if isinstance(checked_policy(getattr(self, name)), Find):
                raise ValueError(f"{name} is a Find, which is no policy for a part of another; give what it is made of")

    def __repr__(self) -> str:
        parts = ((part, getattr(self, part.name)) for part in fields(self))
        return f"Find({', '.join(f'{part.name}={value!r}' for part, value in parts if value != _default(part))})"

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

    def slope(self, var: Array, state: State) -> Array:
        return self.first.slope(var, state)

    def score(self, mu: Array, var: Array, state: State) -> Array:
        return self.first.score(mu, var, state)

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        return self.first.with_derivatives(mu, var, state)


def _default(part: Field[Any]) -> Any:
    return None if part.default_factory is MISSING else part.default_factory()


Aim: TypeAlias = Literal["find", "earn"]


def of_aim(aim: Aim) -> Policy:
    """The policy for an aim: the best point at the end ("find"), or the sum of all values ("earn")."""
    checks.one_of("aim", aim, ("find", "earn"))
    return Find() if aim == "find" else Reinvest()
