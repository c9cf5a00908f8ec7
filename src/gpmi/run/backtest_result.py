"""What a backtest found: curves, the gain over a random order, and the experiments that each order needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from gpmi._support.text import columns, html_table, rounded, shortened, some_of
from gpmi._support.types import Array, Event, Numbers
from gpmi.analysis.random_order import best_of_random, half_until, mean_until
from gpmi.run.past_experiments import PastExperiments

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RANDOM, AS_DONE = "random order", "as done"
AFTER = (10, 20, 30, 50)  # experiments after which the gain is reported
BAND = (0.1, 0.9)  # quantiles of the runs: the central 80 %, as in other figures
SHARES = (0.01, 0.05)  # of the rows; the first that is at least two rows counts as found. Our choice
FEW_SEEDS = 5  # below that the band covers all runs


class Curve(NamedTuple):
    """The best true value among the rows tried, after 1, 2, ... experiments."""

    mean: Array  # over the runs, (budget,); exact for a random order
    low: Array  # the 10 % quantile of the runs, the smallest of fewer than five
    high: Array  # the 90 % quantile
    batch: int | None = None  # experiments at the same time; None for an order that gpmi did not choose


class Needed(NamedTuple):
    """The experiments until a target is reached. Batches count whole."""

    half: int | None  # by which half of the runs have reached it; None if fewer did so within the budget
    mean: float | None  # over the runs, exact for a random order; None if a run did not reach it


class BacktestTarget(NamedTuple):
    """What is to be found, and how many experiments each order needs for it."""

    name: str
    rows: int  # that are good enough
    needed: Mapping[str, Needed]  # by the name of the order, as in `BacktestResult.curves`


@dataclass(frozen=True, eq=False, repr=False)
class BacktestResult:
    """How many experiments gpmi would have saved on a table of past ones. It prints as a short table.

    Orders have names: "gpmi", "gpmi, 5 at a time", "random order", "as done". A random order is computed exactly, not
    simulated. `plot()` draws the curves.
    """

    value: str  # the column of the values
    goal: Literal["max", "min"]
    parameters: tuple[str, ...]
    rows: int  # that are different
    experiments: int  # in the table, replicates included
    seeds: tuple[int, ...]
    budget: int  # experiments of a run
    optimum: float  # the best true value of a row
    mean: float  # the mean true value of the rows
    curves: Mapping[str, Curve]  # by the name of the order
    gain: Mapping[str, Mapping[int, float]]  # (best - random) / (optimum - random) after 10, 20, 30, 50 experiments
    targets: tuple[BacktestTarget, ...]
    events: tuple[Event, ...]  # rows and columns that were left out

    @staticmethod
    def of(
        past: PastExperiments,
        goal: Literal["max", "min"],
        runs: Mapping[int, Sequence[Sequence[int]]],
        *,
        seeds: Sequence[int],
        budget: int,
        as_done: bool,
    ) -> BacktestResult:
        """Compare runs with a random order. `runs` has the rows that each seed tried, by the size of a batch."""
        sign = 1.0 if goal == "max" else -1.0
        f = sign * past.truth  # larger is better from here on
        orders = {
            order_name(batch): (batch, [_best_so_far(f, rows) for rows in tried]) for batch, tried in runs.items()
        }
        curves = {name: _curve(best, budget, batch) for name, (batch, best) in orders.items()}
        mean, band = best_of_random(f, budget, BAND)
        curves[RANDOM] = Curve(mean, band[0], band[1])
        done = _best_so_far(f, past.order)
        if as_done:
            curves[AS_DONE] = _curve([done], budget, None)
        targets = []
        for name, least in _targets(f):
            rows = int(np.sum(f >= least))
            needed = {order: _needed(best, least, batch, budget) for order, (batch, best) in orders.items()}
            needed[RANDOM] = Needed(half_until(len(f), rows), mean_until(len(f), rows))
            if as_done:
                needed[AS_DONE] = _needed([done], least, 1, len(done))
            targets.append(BacktestTarget(name, rows, needed))
        return BacktestResult(
            value=past.value,
            goal=goal,
            parameters=past.space.names or (),
            rows=len(f),
            experiments=len(past.order),
            seeds=tuple(seeds),
            budget=budget,
            optimum=float(sign * f.max()),
            mean=float(sign * f.mean()),
            curves={name: _signed(curve, sign) for name, curve in curves.items()},
            gain={name: _gain(curves[name].mean, mean, float(f.max())) for name in orders},
            targets=tuple(targets),
            events=past.events,
        )

    @property
    def sentence(self) -> str:
        """The result in a sentence: what gpmi needs to find a very good row, one at a time, and a random order."""
        return _sentence(self.targets[-1], self.budget)

    def plot(self, *, ax: Axes | None = None) -> Figure:
        """Draw the curves, as `gpmi.plots.backtest` does."""
        from gpmi.views.figures.plots import backtest  # only for a figure

        return backtest(self, ax=ax)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values, for `json.dumps`."""
        return {
            "value": self.value,
            "goal": self.goal,
            "parameters": list(self.parameters),
            "rows": self.rows,
            "experiments": self.experiments,
            "seeds": list(self.seeds),
            "budget": self.budget,
            "optimum": self.optimum,
            "mean": self.mean,
            "targets": [
                {"name": target.name, "rows": target.rows, "needed": {k: v._asdict() for k, v in target.needed.items()}}
                for target in self.targets
            ],
            "gain": {name: {str(k): gain for k, gain in gains.items()} for name, gains in self.gain.items()},
            "curves": {
                name: {
                    "batch": curve.batch,
                    "mean": curve.mean.tolist(),
                    "low": curve.low.tolist(),
                    "high": curve.high.tolist(),
                }
                for name, curve in self.curves.items()
            },
            "sentence": self.sentence,
            "events": [{"kind": event.kind, "message": event.message} for event in self.events],
        }

    def __repr__(self) -> str:
        parts = [
            self._head,
            columns(self._needed_table()),
            *([columns(table)] if (table := self._best_table()) else []),
        ]
        return "\n\n".join([*parts, self.sentence])

    def _repr_html_(self) -> str:
        from html import escape  # only a notebook needs it

        tables = "".join(
            html_table(table[0], table[1:]) for table in (self._needed_table(), self._best_table()) if table
        )
        return f"<p>{escape(self._head)}</p>{tables}<p>{escape(self.sentence)}</p>"

    @property
    def _head(self) -> str:
        repeated = f" in {self.experiments} experiments" if self.experiments > self.rows else ""
        names = some_of([shortened(name, 30) for name in self.parameters], 60)
        goal = "largest" if self.goal == "max" else "smallest"
        runs = f"{len(self.seeds)} run{'s' * (len(self.seeds) > 1)} of {self.budget} experiments"
        return f"{goal} {shortened(self.value, 30)} of {self.rows} rows{repeated} ({names}), {runs}"

    def _needed_table(self) -> list[list[str]]:
        orders = [name for name in self.curves if name != RANDOM]
        head = ["experiments until half of the runs find", "rows", *orders, RANDOM, "(its mean)"]
        rows = []
        for target in self.targets:
            counts = [_count(target.needed[name].half, self.budget) for name in (*orders, RANDOM)]
            mean = target.needed[RANDOM].mean
            rows.append([target.name, str(target.rows), *counts, f"({mean:.1f})"])
        return [head, *rows]

    def _best_table(self) -> list[list[str]]:
        """Return the best values after some experiments; nothing if the budget is too small for that."""
        after = [k for k in AFTER if k <= self.budget]
        if not after:
            return []
        head = [f"best {shortened(self.value, 30)} after", *(str(k) for k in after)]
        rows = [[name, *(rounded_to(curve.mean[k - 1], self) for k in after)] for name, curve in self.curves.items()]
        gains = [
            [f"gain of {name}", *(f"{100.0 * gain[k]:.0f} %" if k in gain else "-" for k in after)]
            for name, gain in self.gain.items()
        ]
        return [head, *rows, *gains]


def order_name(batch: int) -> str:
    """Return the name of the order of a gpmi that asks for this many experiments at a time."""
    return "gpmi" if batch == 1 else f"gpmi, {batch} at a time"


def rounded_to(value: float, result: BacktestResult) -> str:
    """Format a value with as many digits as a hundredth of the way from the mean to the optimum needs."""
    way = abs(result.optimum - result.mean)
    places = max(0, -math.floor(math.log10(0.01 * way)))
    return f"{value:.{places}f}" if places <= 6 else rounded(value)


def _best_so_far(f: Array, rows: Sequence[int] | Numbers) -> Array:
    best: Array = np.maximum.accumulate(f[np.asarray(rows, dtype=np.intp)])
    return best


def _curve(runs: Sequence[Array], budget: int, batch: int | None) -> Curve:
    """Return the curve of several runs. One that ended early had found the best row."""
    table = np.stack(
        [np.concatenate([values, np.full(max(0, budget - len(values)), values[-1])])[:budget] for values in runs]
    )
    low, high = np.quantile(table, BAND if len(runs) >= FEW_SEEDS else (0.0, 1.0), axis=0)
    return Curve(np.mean(table, axis=0), low, high, batch)


def _signed(curve: Curve, sign: float) -> Curve:
    """Return the curve in units of the table, where smaller may be better."""
    low, high = (curve.low, curve.high) if sign > 0.0 else (-curve.high, -curve.low)
    return curve._replace(mean=sign * curve.mean, low=low, high=high)


def _targets(f: Array) -> list[tuple[str, float]]:
    """Return what is to be found, and from which value on it is."""
    best, mean = float(f.max()), float(f.mean())
    targets = [("the best row", best)]
    for share in (0.99, 0.95):
        targets.append(
            (f"a row {100.0 * share:.0f} % of the way from the mean to the best", mean + share * (best - mean))
        )
    for share in SHARES:
        rows = math.floor(share * len(f) + 0.5)
        if rows >= 2:
            targets.append((f"one of the best {100.0 * share:.0f} % of the rows", float(np.sort(f)[-rows])))
            break
    else:
        targets.append(targets.pop(0))  # the best row comes last: the sentence is about it
    return targets


def _needed(runs: Sequence[Array], least: float, batch: int, budget: int) -> Needed:
    """Return how many experiments runs need to reach a value. The batch in which they do counts whole."""
    times = []
    for best in runs:
        reached = np.flatnonzero(best >= least)
        times.append(min(budget, batch * (int(reached[0]) // batch + 1)) if len(reached) else math.inf)
    half, mean = sorted(times)[(len(times) + 1) // 2 - 1], sum(times) / len(times)
    return Needed(None if half == math.inf else int(half), None if mean == math.inf else mean)


def _gain(best: Array, random: Array, optimum: float) -> dict[int, float]:
    """Return the share of what a random order leaves to be gained, where it leaves something."""
    room = optimum - random
    least = 1e-9 * max(abs(optimum), abs(float(random[0])))
    return {k: float((best - random)[k - 1] / room[k - 1]) for k in AFTER if k <= len(best) and room[k - 1] > least}


def _count(half: int | None, budget: int) -> str:
    return f"over {budget}" if half is None else str(half)


def _sentence(target: BacktestTarget, budget: int) -> str:
    ours, random = target.needed["gpmi"].half, target.needed[RANDOM].half
    assert random is not None  # every row is tried in the end
    find = f"To find {target.name} gpmi needs"
    if ours is None:
        saving = "it saves nothing" if random <= budget else "a larger budget shows how many it saves"
        return f"{find} more than {budget} experiments (half of the runs) and random order {random}: {saving}."
    saved = random - ours
    result = f"it saves {saved}" if saved > 0 else "it saves nothing" if saved == 0 else f"it needs {-saved} more"
    return f"{find} {ours} experiment{'s' * (ours > 1)} (half of the runs) and random order {random}: {result}."
