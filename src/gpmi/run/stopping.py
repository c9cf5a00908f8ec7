"""When to stop: rules for `maximize(stop=...)`, combined by `|` (either) and `&` (both).

    stop = RegretBelow(0.01) | Seconds(600) | (PhiBelow(0.01) & Stagnation(20))

Rules are checked after every evaluation. A model-based rule applies only once a policy-chosen point has a value.
With several objectives there are `Budget`, `Seconds`, `Stagnation` and `GainBelow`, which look at the hypervolume; the
other rules need one objective and refuse.
A new rule is a class here and a name in `__all__`; study files find it by its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Event
from gpmi.analysis.ledger import Ledger
from gpmi.analysis.ledger.facts import questions
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.analysis.ledger.gain import MOST as MOST_MORE
from gpmi.analysis.ledger.ledger import of_value
from gpmi.optimizer import Optimizer

__all__ = [
    "Both",
    "Budget",
    "Either",
    "GainBelow",
    "ImprovementBelow",
    "PhiBelow",
    "RegretBelow",
    "RegretBelowNoise",
    "Rule",
    "Seconds",
    "Stagnation",
    "Stop",
    "Target",
]


class Stop(NamedTuple):
    """The reason why a run stops, with events for the user."""

    reason: str
    events: tuple[Event, ...] = ()


class Rule(ABC):
    """A rule that decides when to stop. Subclass it and define `stop`."""

    @abstractmethod
    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        """Return the reason to stop now, `seconds` after the start; None to continue."""

    def __or__(self, other: Rule) -> Rule:
        return Either(self, checked_rule(other))

    def __and__(self, other: Rule) -> Rule:
        return Both(self, checked_rule(other))


@dataclass(frozen=True)
class Either(Rule):
    """Stop when one of two rules stops; the first is checked first."""

    first: Rule
    second: Rule

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        return _checked(self.first, optimizer, seconds) or _checked(self.second, optimizer, seconds)


@dataclass(frozen=True)
class Both(Rule):
    """Stop when two rules stop at the same time."""

    first: Rule
    second: Rule

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        first = _checked(self.first, optimizer, seconds)
        second = None if first is None else _checked(self.second, optimizer, seconds)
        return None if first is None or second is None else Stop(f"{first.reason} and {second.reason}")


@dataclass(frozen=True)
class Budget(Rule):
    """Stop after this number of evaluations, including failed ones."""

    evaluations: int

    def __post_init__(self) -> None:
        checks.whole("evaluations", self.evaluations, 1)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        done = sum(trial.status != "pending" for trial in optimizer.trials)
        return Stop("budget") if done >= self.evaluations else None


@dataclass(frozen=True)
class Seconds(Rule):
    """Stop when this many seconds have passed since the start. A running evaluation is not interrupted."""

    limit: float

    def __post_init__(self) -> None:
        checks.positive("limit", self.limit)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        return Stop(f"{self.limit:g} seconds") if seconds >= self.limit else None


@dataclass(frozen=True)
class Target(Rule):
    """Stop when a value at least as good as this is observed."""

    value: float

    def __post_init__(self) -> None:
        checks.number("value", self.value)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        _ledger_of_value(self, optimizer)
        best = optimizer.best
        if best is None or best.y is None:
            return None
        reached = best.y >= self.value if optimizer.goal == "max" else best.y <= self.value
        return Stop(f"target {self.value:g} reached") if reached else None


@dataclass(frozen=True)
class Stagnation(Rule):
    """Stop when the last `evaluations` values brought no new best value. Infeasible values are never the best.

    With several objectives it stops when the last ones did not increase the hypervolume of the front.
    """

    evaluations: int

    def __post_init__(self) -> None:
        checks.whole("evaluations", self.evaluations, 1)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        stagnates = optimizer.ledger.stagnates(self.evaluations)
        return Stop(f"no improvement in {self.evaluations} evaluations") if stagnates else None


@dataclass(frozen=True)
class PhiBelow(Rule):
    """Stop when phi_t(x_t) was below eps at the policy's last query: the rule in the sources of the paper.

    A small phi means that the policy does not want to learn more, not that there is nothing to learn: GP-MI's phi is
    small once it has locked in. Combine the rule with another one. If it stops a run whose ledger finds the model
    over-confident or the run locked in, the result has an event "doubtful stop". phi is in units of y, or of
    `opt.warp(y)` if y is transformed.
    """

    eps: float

    def __post_init__(self) -> None:
        checks.positive("eps", self.eps)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        ledger = _ledger_of_value(self, optimizer)
        if not optimizer.policy.additive:
            raise ValueError(f"stop has {self!r}, but {optimizer.policy!r} has no phi; leave out one of them")
        if not _has_chosen(ledger):
            return None
        phi = next(trial.phi for trial in reversed(ledger.trials) if trial.origin == "policy")
        if phi is None or phi >= self.eps:
            return None
        doubts, lock_in = [], ledger.lock_in
        if ledger.doubtful:
            doubts.append(f"a value is doubtful: {questions(ledger.doubtful)}")
        if ledger.calibration.is_over_confident:
            doubts.append(f"the model is {ledger.calibration.doubt}")
        if lock_in is not None:
            doubts.append(lock_in.reason)
        reason = f"phi below {self.eps:g}"
        return Stop(reason, tuple(Event("doubtful stop", f"{reason}, but {doubt}") for doubt in doubts))


@dataclass(frozen=True)
class RegretBelow(Rule):
    """Stop when the simple regret max f - f(recommended) is at most eps, in units of y, with probability `level`.

    It never stops while the ledger's calibration is "over-confident" or "too early to say". On a box, and if the prior
    is learned, it is checked after 16, 20, 24, 28, 32, 40, ... values only, four times in each doubling. Where trials
    fail, the regret is against the best point that works, under draws of what works. With `fixed` the regret is that of
    the points with these coordinates, as in `Ledger.regret`.
    """

    eps: float
    level: float = 0.95
    fixed: Mapping[Any, Any] | None = None

    def __post_init__(self) -> None:
        checks.positive("eps", self.eps)
        checks.probability("level", self.level)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        ledger = _ledger_of_value(self, optimizer)
        if self.fixed is not None:
            optimizer.space.with_fixed(self.fixed)  # refuses what does not exist, at the first evaluation
        if not _is_due(ledger) or not ledger.is_below(self.eps, self.level, fixed=self.fixed):
            return None
        where = "" if not self.fixed else " with " + ", ".join(f"{name} = {v}" for name, v in self.fixed.items())
        return Stop(f"regret below {self.eps:g}{where}")


@dataclass(frozen=True)
class RegretBelowNoise(Rule):
    """Stop when the simple regret is at most the sd of the noise with probability `level`, like `RegretBelow`.

    A noise sd below 1e-4 prior sd, the resolution of the draws, is replaced by that resolution.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        checks.probability("level", self.level)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        ledger = _ledger_of_value(self, optimizer)
        below = _is_due(ledger) and ledger.is_below(ledger.floor, self.level)
        return Stop(f"regret below the noise, {ledger.floor:.3g}") if below else None


@dataclass(frozen=True)
class GainBelow(Rule):
    """Stop when it is unlikely that more evaluations improve the recommended point by more than eps, in units of y.

    `chance` is the largest probability that counts as unlikely, `evaluations` the number of further evaluations.

    It says that going on will hardly help, not that the recommended point is the optimum: `RegretBelow` says that. It
    is checked as often as `RegretBelow`, and never stops while the calibration is "over-confident" or "too early to
    say".

    With several objectives eps is a share of the hypervolume so far: GainBelow(0.01) stops when it is unlikely that
    more evaluations increase it by more than 1 %.
    """

    eps: float
    chance: float = 0.05
    evaluations: int = 10

    def __post_init__(self) -> None:
        checks.positive("eps", self.eps)
        checks.probability("chance", self.chance)
        checks.whole("evaluations", self.evaluations, 1, MOST_MORE)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        ledger = optimizer.ledger
        if not _is_due(ledger) or ledger.unknown is not None or ledger.doubt is not None:
            return None
        if not ledger.gain_unit > 0.0:  # nothing is acceptable yet
            return None
        gain = ledger.gain(self.evaluations)
        if not gain.known or gain.probability_above(self.eps * ledger.gain_unit) > self.chance:
            return None
        return Stop(f"{self.evaluations} more evaluations will hardly gain {ledger.amount(self.eps)}")


@dataclass(frozen=True)
class ImprovementBelow(Rule):
    """Stop when max over x of E[(f(x) - f(recommended))^+] is below the price of one evaluation, in units of y.

    It is checked as often as `RegretBelow`, and never stops while the calibration is "over-confident" or "too early to
    say".
    """

    price: float

    def __post_init__(self) -> None:
        checks.positive("price", self.price)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        ledger = _ledger_of_value(self, optimizer)
        below = _is_due(ledger) and ledger.doubt is None and ledger.improvement < self.price
        return Stop(f"expected improvement below {self.price:g}") if below else None


def checked_rule(rule: object) -> Rule:
    """Return a rule; refuse anything else, such as a class or a number."""
    if not isinstance(rule, Rule):
        raise TypeError(f"stop has {rule!r}; give rules such as gpmi.stopping.RegretBelow(0.01), combined by | and &")
    return rule


def checked_stop(rule: Rule, answer: object) -> Stop | None:
    """Return the answer of a rule as a Stop or None. A rule may also return True or a reason; False to continue."""
    if answer is None or (isinstance(answer, bool | np.bool_) and not answer):
        return None
    if isinstance(answer, bool | np.bool_ | str):
        return Stop(answer if isinstance(answer, str) and answer else type(rule).__name__)
    if not isinstance(answer, Stop):
        raise TypeError(
            f"stop() of {rule!r} returned {answer!r}; it must return a gpmi.stopping.Stop, or None to continue"
        )
    if not isinstance(answer.reason, str):
        raise TypeError(f"stop() of {rule!r} gave the reason {answer.reason!r}; give a string")
    if not (isinstance(answer.events, list | tuple) and all(isinstance(event, Event) for event in answer.events)):
        raise TypeError(f"stop() of {rule!r} gave the events {answer.events!r}; give a tuple of gpmi.Event")
    return Stop(answer.reason, tuple(answer.events))


def _checked(rule: Rule, optimizer: Optimizer, seconds: float) -> Stop | None:
    return checked_stop(rule, rule.stop(optimizer, seconds))


def _has_chosen(ledger: Ledger | FrontLedger) -> bool:
    """Return whether a policy's point was told: a model of the initial design tells little."""
    return any(trial.origin == "policy" for trial in ledger.trials)


def _is_due(ledger: Ledger | FrontLedger) -> bool:
    """Return whether a rule looks at the model. Where that costs many suggestions, it does so after some values only.

    These are four in each doubling, and all below 8.
    """
    n = ledger.n
    return _has_chosen(ledger) and (ledger.draws_are_cheap or n % max(1, (1 << (n.bit_length() - 1)) // 4) == 0)


def _ledger_of_value(rule: Rule, optimizer: Optimizer) -> Ledger:
    """Return the ledger; refuse a rule about one value where there are several objectives."""
    names = ", ".join(optimizer.goals.objectives)
    remedy = "give GainBelow(0.01), a share of the hypervolume, Stagnation, Budget or Seconds"
    refusal = f"stop has {rule!r}, which needs one objective, but the goals have {names}; {remedy}"
    return of_value(optimizer.ledger, refusal)
