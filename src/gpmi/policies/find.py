"""The default policy: look for the best point, and spend no query on a duplicate."""

from __future__ import annotations

from dataclasses import MISSING, Field, InitVar, dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias

from gpmi._support import checks
from gpmi.policies.batch import GPUCBPE, UpperBound
from gpmi.policies.improvement import LogEI
from gpmi.policies.policy import Delegating, Guarantee, PointSearch, Policy, Selected, checked_policy
from gpmi.policies.reinvest import Reinvest

# Instead of a point next to a pending one, Find takes the point of this GP-UCB, or else the largest variance in its
# relevant region. The scale is that of the experiments of Srinivas et al.
IN_BATCH = GPUCBPE(scale=0.2)

# In this last share of the budget, one pending point is the one with the best mean. Chosen among 0.1, 0.2, 0.35
# and 1 by runs that `benchmarks/batches.py --part late` repeats, on functions that are not on its page; the first
# three differ little.
LATE = 0.2

# On a finite set, of this many queries one tries an option that no trial has, while there is one. As it was first
# proposed; docs/benchmarks/first_experiments.md has what it brings. Every second query brought no more in a trial run.
PER_UNTRIED = 3


@dataclass(frozen=True, repr=False)
class Find(Delegating):
    """The policy of aim="find": the point of `first`, or of `then` if that is a duplicate, after three other rules.

    The first step that yields a point decides:

    1. After two queries in a row that taught nothing, the run may escape: on spaces with options to the next design
       point, on boxes of at most 3 numbers to the point farthest from all trials. On boxes, later escapes need more
       such queries (`gpmi.optimizer.escape`). Where constraints count parameters, one such query is enough, and the
       escape leads to the support with the next best value (`gpmi.optimizer.supports`).
    2. On a finite set with a learned prior, every third query is the best row by mu + sd with an option of a choice
       that no trial has, while there is one: of such an option the model knows little, and expects little.
    3. In the last fifth of a budget, one of the pending points is the point with the best posterior mean.
    4. The point of `first`, unless it is a duplicate. Reinvest weighs what a query may bring against what it costs.
       When it expects no more gain from the remaining queries, it repeats the best point it knows. That is right where
       every query pays. Where only the best point at the end counts, the repeat is wasted.
    5. The point of `then`, unless it is next to a pending point, or that of `first` was. LogEI goes where the most
       improvement is expected, whatever it costs.
    6. The point of GP-UCB, or else the largest variance where the maximum may be, or else the largest variance that is
       not next to a pending point.

    A point is a duplicate if a trial is within a thousandth of the box of it in each coordinate, or on a finite set in
    the same row. Without noise `then` chooses no point with a trial while there is another. The score, phi and
    derivatives are those of `first`. docs/notes/find.md has the experiments.
    """

    first: Policy = field(default_factory=Reinvest)
    then: Policy = field(default_factory=lambda: LogEI("mean"))
    last: InitVar[None] = None  # a third policy of earlier versions, which had no effect

    guarantee: ClassVar[Guarantee] = Guarantee(
        False,
        "the theorem of Reinvest needs its repeats, and the queries of the others follow no rule with a bound.",
        "none",
        "this project, docs/policy.md",
    )

    def __post_init__(self, last: Any) -> None:
        if last is not None:
            raise TypeError(f"last is {last!r}; Find has no third policy any more: leave it out (docs/notes/find.md)")
        for name in ("first", "then"):
            if isinstance(checked_policy(getattr(self, name)), Find):
                raise ValueError(f"{name} is a Find, which cannot be a part of another; give its parts")

    def __repr__(self) -> str:
        parts = ((part, getattr(self, part.name)) for part in fields(self))
        return f"Find({', '.join(f'{part.name}={value!r}' for part, value in parts if value != _default(part))})"

    @property
    def scorer(self) -> Policy:
        return self.first

    def choose(self, search: PointSearch) -> Selected:
        return search.escape() or _try_option(search) or _exploit_late(search) or self._choose_by_score(search)

    def _choose_by_score(self, search: PointSearch) -> Selected:
        """Try one score after the other, until the point is not a duplicate and not next to a pending one."""
        point = search.best(self.first)
        if not search.is_duplicate(point):
            return point
        if not search.is_near_pending(point):
            point = search.best_new(self.then)
        if search.is_near_pending(point):
            point = search.best_new(IN_BATCH)
        if search.is_near_pending(point):
            point = search.explore_relevant(IN_BATCH.weight(search.batch_state))
        if search.is_near_pending(point):  # the relevant region has shrunk to a single place
            point = search.explore_apart() or point
        return point


def _try_option(search: PointSearch) -> Selected | None:
    """Select a row with an untried option at every PER_UNTRIED-th query."""
    return None if search.state.t % PER_UNTRIED else search.try_option(UpperBound())


def _exploit_late(search: PointSearch) -> Selected | None:
    """Select the best posterior mean near the end of a budget, while other points of the policy are pending.

    One such point at a time is enough. It is the one with phi = 0.
    """
    state, budget = search.state, search.budget
    if state.horizon is None or budget is None or not 0 <= state.horizon - state.t < LATE * budget:
        return None
    pending = search.pending_phi
    if not pending or any(phi == 0.0 for phi in pending):
        return None
    point = search.best_mean()
    return None if point is None or search.is_near_pending(point) else point


def _default(part: Field[Any]) -> Any:
    return None if part.default_factory is MISSING else part.default_factory()


Aim: TypeAlias = Literal["find", "earn"]


def of_aim(aim: Aim) -> Policy:
    """Return the policy of an aim: the best point at the end ("find"), or the sum of all values ("earn")."""
    checks.one_of("aim", aim, ("find", "earn"))
    return Find() if aim == "find" else Reinvest()
