"""When to stop: rules for `maximize(stop=...)`, combined by `|` (either) and `&` (both).

    stop = RegretBelow(0.01) | Seconds(600) | (PhiBelow(0.01) & Stagnation(20))

A rule is asked after every evaluation. A rule about the model never stops before a point that the policy chose is told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Event
from gpmi.analysis.ledger import Ledger
from gpmi.optimizer import Optimizer


class Stop(NamedTuple):
    """Why a run stops, and what the user should know about it."""

    reason: str
    events: tuple[Event, ...] = ()


class Rule(ABC):
    """A rule that says when to stop. Subclass it and give `stop`."""

    @abstractmethod
    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        """The reason to stop now, `seconds` after the start; None to go on."""

    def __or__(self, other: Rule) -> Rule:
        return Either(self, checked_rule(other))

    def __and__(self, other: Rule) -> Rule:
        return Both(self, checked_rule(other))


@dataclass(frozen=True)
class Either(Rule):
    """Stop when one of two rules says so; the first is asked first."""

    first: Rule
    second: Rule

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        return _asked(self.first, optimizer, seconds) or _asked(self.second, optimizer, seconds)


@dataclass(frozen=True)
class Both(Rule):
    """Stop when two rules say so at the same time."""

    first: Rule
    second: Rule

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        first = _asked(self.first, optimizer, seconds)
        second = None if first is None else _asked(self.second, optimizer, seconds)
        return None if first is None or second is None else Stop(f"{first.reason} and {second.reason}")


@dataclass(frozen=True)
class Budget(Rule):
    """Stop after this number of evaluations, failed ones included."""

    evaluations: int

    def __post_init__(self) -> None:
        checks.whole("evaluations", self.evaluations, 1)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        done = sum(trial.status != "pending" for trial in optimizer.trials)
        return Stop("budget") if done >= self.evaluations else None


@dataclass(frozen=True)
class Seconds(Rule):
    """Stop when this many seconds have passed since the start. An evaluation that has begun is not interrupted."""

    limit: float

    def __post_init__(self) -> None:
        checks.positive("limit", self.limit)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        return Stop(f"{self.limit:g} seconds") if seconds >= self.limit else None


@dataclass(frozen=True)
class Target(Rule):
    """Stop when a value at least as good as this was observed."""

    value: float

    def __post_init__(self) -> None:
        checks.number("value", self.value)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        best = optimizer.best
        if best is None or best.y is None:
            return None
        reached = best.y >= self.value if optimizer.goal == "max" else best.y <= self.value
        return Stop(f"target {self.value:g} reached") if reached else None


@dataclass(frozen=True)
class Stagnation(Rule):
    """Stop when the last `evaluations` values told brought no new best value; one that broke a constraint is none."""

    evaluations: int

    def __post_init__(self) -> None:
        checks.whole("evaluations", self.evaluations, 1)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        ledger = optimizer.ledger
        values = ledger.values
        if ledger.infeasible:
            values = np.where([trial.feasible for trial in ledger.trials], values, -np.inf)
        since = ledger.n - 1 - int(np.argmax(values)) if ledger.n else 0
        return Stop(f"no improvement in {self.evaluations} evaluations") if since >= self.evaluations else None


@dataclass(frozen=True)
class PhiBelow(Rule):
    """Stop when phi_t(x_t) was below eps at the policy's last query: the rule in the sources of the paper.

    A small phi says that the policy does not want to learn more, not that there is nothing to learn: GP-MI's phi is
    small once it has locked in. So combine the rule with another one. If it stops a run whose ledger says that the
    model is over-confident or the run locked in, the result has an event "doubtful stop". phi is in units of y, or of
    `opt.warp(y)` where y is transformed.
    """

    eps: float

    def __post_init__(self) -> None:
        checks.positive("eps", self.eps)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        if not optimizer.policy.additive:
            raise ValueError(f"stop has {self!r}, but {optimizer.policy!r} has no phi; leave out one of them")
        ledger = _once_chosen(optimizer)
        if ledger is None:
            return None
        phi = next(trial.phi for trial in reversed(ledger.trials) if trial.origin == "policy")
        if phi is None or phi >= self.eps:
            return None
        doubts, lock_in = [], ledger.lock_in
        if ledger.calibration.verdict == "over-confident":
            doubts.append(f"the model is over-confident: {ledger.calibration.reason}")
        if lock_in is not None:
            doubts.append(lock_in.reason)
        reason = f"phi below {self.eps:g}"
        return Stop(reason, tuple(Event("doubtful stop", f"{reason}, but {doubt}") for doubt in doubts))


@dataclass(frozen=True)
class RegretBelow(Rule):
    """Stop when the simple regret max f - f(recommended) is at most eps, in units of y, with probability `level`.

    Never under a verdict "over-confident" or "too early to say" of the ledger's calibration. On a box, and where the
    prior is learned, it looks after 16, 20, 24, 28, 32, 40, ... values only, four times in each doubling. Where trials
    fail, f is compared with its maximum among points that probably work: a better one beyond their edge is not seen.
    """

    eps: float
    level: float = 0.95

    def __post_init__(self) -> None:
        checks.positive("eps", self.eps)
        checks.probability("level", self.level)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        ledger = _at_a_look(optimizer)
        below = ledger is not None and ledger.is_below(self.eps, self.level)
        return Stop(f"regret below {self.eps:g}") if below else None


@dataclass(frozen=True)
class RegretBelowNoise(Rule):
    """Stop when the simple regret is at most the sd of the noise with probability `level`: when `RegretBelow` would.

    Where the noise is below 1e-4 prior sd, which draws of the regret do not resolve, that takes its place.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        checks.probability("level", self.level)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        ledger = _at_a_look(optimizer)
        below = ledger is not None and ledger.is_below(ledger.floor, self.level)
        return Stop(f"regret below the noise, {ledger.floor:.3g}") if ledger is not None and below else None


@dataclass(frozen=True)
class ImprovementBelow(Rule):
    """Stop when max over x of E[(f(x) - f(recommended))^+] is below the price of one evaluation, in units of y.

    Never under a verdict "over-confident" or "too early to say" of the ledger's calibration.
    """

    price: float

    def __post_init__(self) -> None:
        checks.positive("price", self.price)

    def stop(self, optimizer: Optimizer, seconds: float) -> Stop | None:
        ledger = _once_chosen(optimizer)
        below = ledger is not None and ledger.improvement < self.price and ledger.doubt is None
        return Stop(f"expected improvement below {self.price:g}") if below else None


def checked_rule(rule: object) -> Rule:
    """A rule, not a class or a number."""
    if not isinstance(rule, Rule):
        raise TypeError(f"stop has {rule!r}; give rules such as gpmi.stopping.RegretBelow(0.01), combined by | and &")
    return rule


def checked_stop(rule: Rule, said: object) -> Stop | None:
    """What a rule said: a Stop, or in short True or a reason in words; None or False to go on."""
    if said is None or (isinstance(said, bool | np.bool_) and not said):
        return None
    if isinstance(said, bool | np.bool_ | str):
        return Stop(said if isinstance(said, str) and said else type(rule).__name__)
    if not isinstance(said, Stop):
        raise TypeError(f"stop() of {rule!r} returned {said!r}; it must return a gpmi.stopping.Stop, or None to go on")
    if not isinstance(said.reason, str):
        raise TypeError(f"stop() of {rule!r} gave the reason {said.reason!r}; give it in words")
    if not (isinstance(said.events, list | tuple) and all(isinstance(event, Event) for event in said.events)):
        raise TypeError(f"stop() of {rule!r} gave the events {said.events!r}; give a tuple of gpmi.Event")
    return Stop(said.reason, tuple(said.events))


def _asked(rule: Rule, optimizer: Optimizer, seconds: float) -> Stop | None:
    return checked_stop(rule, rule.stop(optimizer, seconds))


def _once_chosen(optimizer: Optimizer) -> Ledger | None:
    """The ledger once a point that the policy chose was told, else None: a model of the initial design says little."""
    ledger = optimizer.ledger
    return ledger if any(trial.origin == "policy" for trial in ledger.trials) else None


def _at_a_look(optimizer: Optimizer) -> Ledger | None:
    """The ledger where a rule about the regret looks at it: not after every value where it costs many suggestions."""
    ledger = _once_chosen(optimizer)
    if ledger is None or (ledger.setting.priors.is_fixed and ledger.space.rows is not None):
        return ledger
    return ledger if ledger.n % max(1, (1 << (ledger.n.bit_length() - 1)) // 4) == 0 else None
