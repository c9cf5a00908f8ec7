"""maximize and minimize: the loop around an Optimizer."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from gpmi.frame import frame, notebook
from gpmi.gp.kernels import Kernel
from gpmi.gp.posterior import Posterior
from gpmi.ledger import Ledger
from gpmi.optimizer import Optimizer
from gpmi.policies import Policy
from gpmi.prior.warp import IDENTITY, Warp
from gpmi.space import Space, SpaceExhausted
from gpmi.stopping import Rule, Stop, checked_rule
from gpmi.text import Line, aligned, best_lines, point, tally
from gpmi.trials import Trial
from gpmi.types import Event, Point

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a run found. At a prompt it shows a summary, in a notebook also its best trials."""

    x: Point | None  # the point with the best observed value; None if nothing was evaluated
    y: float | None  # that value
    recommended: Point | None  # the point with the best posterior mean: what to use when y is noisy
    trials: tuple[Trial, ...]  # every evaluation, in order
    reason: str  # why it stopped
    events: tuple[Event, ...]  # what the library did that was not asked for
    goal: Literal["max", "min"]
    seed: int
    space: Space
    posterior: Posterior | None  # of warp(y)
    ledger: Ledger | None = None  # what is known and how sure it is
    warp: Warp = IDENTITY  # usually z = y; see `Optimizer.warp`

    @staticmethod
    def of(optimizer: Optimizer, reason: str) -> Result:
        """The result of a run so far."""
        best, recommended, posterior, ledger, events = optimizer.best, None, None, None, optimizer.events
        if best is not None:
            try:
                recommended, posterior, ledger = optimizer.recommend(), optimizer.posterior, optimizer.ledger
            except Exception as error:  # the evaluations must come out, whatever the model says
                events += (Event("no recommendation", f"the model failed: {error}"),)
        return Result(
            x=None if best is None else best.x,
            y=None if best is None else best.y,
            recommended=recommended,
            trials=tuple(trial for trial in optimizer.trials if trial.status != "pending"),
            reason=reason,
            events=events,
            goal=optimizer.goal,
            seed=optimizer.seed,
            space=optimizer.space,
            posterior=posterior,
            ledger=ledger,
            warp=IDENTITY if posterior is None else optimizer.warp,
        )

    def to_dataframe(self) -> DataFrame:
        """One row for each trial: its parameters, y, status, origin, what was predicted, times. Needs pandas."""
        return frame(self.trials, self.space)

    def __repr__(self) -> str:
        return aligned(self._lines())

    def _repr_html_(self) -> str:
        return notebook(self._lines(), self.trials, self.space, self.goal)

    def _lines(self) -> list[Line]:
        """What matters, name by name."""
        failed = sum(trial.status == "failed" for trial in self.trials)
        return [
            *best_lines(self.goal, self.x, self.y),
            ("recommended", point(self.recommended)),
            ("evaluations", f"{len(self.trials)}, of which {failed} failed" if failed else f"{len(self.trials)}"),
            ("stopped", self.reason),
            ("seed", str(self.seed)),
            ("events", tally(event.kind for event in self.events)),
        ]


def maximize(
    f: Callable[[Any], float],
    space: Any,
    *,
    budget: int | None = None,
    stop: Rule | None = None,
    policy: Policy | None = None,
    kernel: Kernel | None = None,
    noise_var: float | None = None,
    fit: Literal["map", "loo", "mcmc"] = "map",
    n_init: int | None = None,
    repeats: bool = True,
    seed: int | None = None,
    progress: bool = False,
) -> Result:
    """Evaluate f at `budget` points of the space, chosen one after the other, to find its maximum.

    f takes one point in the form of the space and returns a number. `stop` is a rule of `gpmi.stopping` that may end
    the run earlier, or at all if there is no budget; `reason` then says which. The other arguments are those of
    `Optimizer`; `progress=True` shows a live display (needs the extra `cli`).

    If f raises, or returns something that is not a finite number, the exception is raised on with everything
    evaluated so far in its attribute `result`. Ctrl-C ends the run and returns the result so far.

    Examples
    --------
    >>> r = maximize(lambda x: -(x[0] - 0.3) ** 2, [(0.0, 1.0)], budget=15, seed=0)
    >>> abs(float(r.x[0]) - 0.3) < 0.01, r.reason
    (True, 'budget')
    """
    optimizer = Optimizer(
        space, policy, kernel=kernel, noise_var=noise_var, fit=fit, n_init=n_init, budget=_needed(budget, stop),
        repeats=repeats, seed=seed, goal="max",
    )  # fmt: skip
    return _run(f, optimizer, stop, progress)


def minimize(
    f: Callable[[Any], float],
    space: Any,
    *,
    budget: int | None = None,
    stop: Rule | None = None,
    policy: Policy | None = None,
    kernel: Kernel | None = None,
    noise_var: float | None = None,
    fit: Literal["map", "loo", "mcmc"] = "map",
    n_init: int | None = None,
    repeats: bool = True,
    seed: int | None = None,
    progress: bool = False,
) -> Result:
    """As `maximize`, for the minimum; y keeps its sign."""
    optimizer = Optimizer(
        space, policy, kernel=kernel, noise_var=noise_var, fit=fit, n_init=n_init, budget=_needed(budget, stop),
        repeats=repeats, seed=seed, goal="min",
    )  # fmt: skip
    return _run(f, optimizer, stop, progress)


def _needed(budget: int | None, stop: Rule | None) -> int | None:
    if stop is not None:
        checked_rule(stop)
    elif budget is None:
        raise TypeError("budget is None; give the number of times f may be evaluated, or a rule to stop by")
    return budget


def _run(f: Callable[[Any], float], optimizer: Optimizer, stop: Rule | None, progress: bool) -> Result:
    if not callable(f):
        raise TypeError(f"f is {f!r}; give a function of one point")
    end, begin = None, time.perf_counter()
    with _display(optimizer) if progress else nullcontext(_ignore) as report:
        try:
            for _ in count() if optimizer.budget is None else range(optimizer.budget):
                try:
                    x = optimizer.ask()
                except SpaceExhausted:
                    end = Stop("space exhausted")
                    break
                report(_evaluate(f, x, optimizer))
                end = None if stop is None else stop.stop(optimizer, time.perf_counter() - begin)
                if end is not None:
                    break
        except KeyboardInterrupt:
            end = Stop("interrupted")
        except BaseException as error:
            _attach(error, Result.of(optimizer, f"error: {error}"))
            raise
    reason, events = end or Stop("budget")
    result = Result.of(optimizer, reason)
    return replace(result, events=result.events + events)


def _evaluate(f: Callable[[Any], float], x: Point, optimizer: Optimizer) -> Trial:
    """One evaluation; f gets a copy of the point, so that it may change it."""
    y = f(deepcopy(x))
    try:
        return optimizer.tell(x, y)
    except (TypeError, ValueError) as error:
        raise type(error)(f"f returned {y!r} at x = {x!r}; it must return one finite number ({error})") from error


def _attach(error: BaseException, result: Result) -> None:
    """Let the exception carry the result, past any rule of its class about attributes."""
    error.__dict__["result"] = result
    note = f"gpmi: {len(result.trials)} evaluations are kept in the exception's attribute `result`"
    error.__dict__.setdefault("__notes__", []).append(note)


def _ignore(trial: Trial) -> None:
    pass


def _display(optimizer: Optimizer) -> Any:
    from gpmi.show.progress import live  # needs rich

    return live(optimizer)
