"""How a run went: its values and the best so far, the regret, the hypervolume; and several runs against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpmi._support.text import rough, rounded, shortened
from gpmi._support.types import Array
from gpmi.analysis import FrontLedger
from gpmi.analysis.ledger import interval, share_missing
from gpmi.trials import ENDED, Trial
from gpmi.views.front_view import stated
from gpmi.views.model_view import RegretHistory
from gpmi.views.pictures.picture import Band, Level, Line, Mark, Picture, Points, Ruler, Spans, Stripe
from gpmi.views.run_view import OutputView, RunView

NAME = 40  # characters of the name of an output, at most
FEW_RUNS = 5  # with fewer runs the band covers all of them, otherwise the central 80 %; our choice
GROUPS = 7  # looks of runs that are compared


def evaluated(run: RunView) -> list[Trial]:
    """Return the evaluations, failures included, in the order in which they ended."""
    return sorted((trial for trial in run.trials if trial.status in ENDED), key=lambda trial: trial.order or 0)


def best_so_far(run: OutputView) -> Array:
    """Return the best feasible value after each evaluation, failures included, (n,); nan before the first value.

    Where there is a fidelity, it is the best one at the target; all measurements count as evaluations.
    """
    feasible = {trial.number: trial.y for trial in run.told if trial.feasible}
    y = np.array([feasible.get(trial.number, np.nan) for trial in evaluated(run)], dtype=float)
    best = np.maximum.accumulate(np.where(np.isfinite(y), run.sign * y, -np.inf)) if len(y) else y
    return np.where(np.isfinite(best), run.sign * best, np.nan)


def values(run: OutputView) -> Picture:
    """Return the values of an output after each evaluation, and the best of them so far if it is an objective.

    A few bad values do not squeeze the others: they lie at the edge. A limit, or what is acceptable, is shown if it is
    near.
    """
    places = {trial.number: t for t, trial in enumerate(evaluated(run), 1)}
    goal, name, is_objective = run.goals[run.key], shortened(run.title, NAME), run.key in run.objectives
    t, y = np.array([places[trial.number] for trial in run.told]), np.array([trial.y for trial in run.told])
    feasible = np.array([trial.feasible for trial in run.told], dtype=bool)
    best = best_so_far(run) if is_objective else np.full(len(places), np.nan)
    present = best[np.isfinite(best)]
    ruler = _without_outliers(name, y, present[-1:])
    levels = [level for level in [stated(goal)] if level is not None and ruler.is_near(level)]
    ruler = _without_outliers(name, y, np.array([*present[-1:], *levels]))
    first = next((places[trial.number] for trial in run.told if trial.origin == "policy"), len(places) + 1)
    marks: list[Mark] = [Stripe(0.5, first - 0.5, "x", "design", "first points")] if first > 1 else []
    marks.append(Points(t[feasible], y[feasible], "observed", "observed"))
    if not feasible.all():
        marks.append(Points(t[~feasible], y[~feasible], "failed", "not known to be feasible"))
    what = "the worst that is acceptable" if is_objective else "the limit"
    marks += [Level(level, label=what) for level in levels]
    title, caption = f"The values of {name}", f"{len(y)} values in the order in which they came."
    if is_objective:
        marks.append(Line(np.arange(1.0, len(best) + 1.0), best, "mean", "best so far", steps=True))
        count = f"{len(places)} evaluation{'s' * (len(places) > 1)}"
        title = f"The {run.extreme} {shortened(run.noun, NAME)} so far"
        caption = f"It is {rounded(float(best[-1]))} after {count}." if len(present) else "None is feasible yet."
    return Picture(title, caption, Ruler.counting("evaluation", len(places)), ruler, marks, f"{title}. {caption}")


def _without_outliers(title: str, y: Array, needed: Array) -> Ruler:
    """Return an axis on which the best so far can be read, however bad a few values are."""
    low, high = np.quantile(y, [0.02, 0.98])
    reach = 1.5 * (high - low)
    return Ruler.fitted(title, np.concatenate([y[(y >= low - reach) & (y <= high + reach)], needed]))


def regret(run: OutputView, history: RegretHistory) -> Picture:
    """Return the interval of the simple regret at some moments of the run."""
    low, median, high = history.low, history.median, history.high
    y = Ruler.fitted("regret", high, zero=True)
    if history.floor is not None:
        low, median, high = (np.maximum(ends, history.floor) for ends in (low, median, high))
        y = Ruler("regret", history.floor, 1.3 * float(high.max()), log=True)
    title = "How far the recommended point may be from the optimum"
    now = f"After {int(history.t[-1])} values it is {interval(history.low[-1], history.high[-1], history.median[-1])}."
    return Picture(
        title,
        f"The simple regret, as believed at each moment. {now}",
        Ruler.counting("values told", 0 if run.ledger is None else run.ledger.n),
        y,
        [
            Band(history.t, low, high, label="95 % interval"),
            Line(history.t, median, label="median"),
            Points(history.t, median, "point"),
            *([Spans(history.t, low, high, "whisker")] if len(low) == 1 else []),
        ],
        f"{title}. {now}",
    )


def hypervolume(ledger: FrontLedger) -> Picture:
    """Return the hypervolume after each trial with all objectives, and how much is still to be had."""
    now, missing, words = ledger.hypervolume, ledger.missing, f"It is {rough(ledger.hypervolume, 4)}"
    marks: list[Mark] = [
        Line(np.arange(1.0, ledger.n + 1.0), np.array(ledger.history), label="hypervolume of the front", steps=True)
    ]
    high, lack = now, f"How much is missing is {missing.how}."
    if missing.known:
        high, lack = now + missing.interval()[1], f"Missing is {share_missing(missing.share()[1])}."
        marks.append(Stripe(now, high, label="still to be had, 95 %"))
        marks.append(Level(now + missing.median, look="front-median", label="its median"))
    name = shortened(" \N{MULTIPLICATION SIGN} ".join(ledger.goals.objectives), NAME)
    y = Ruler.fitted(f"hypervolume: {name}", np.array([*ledger.history, high]), zero=True)
    title, words = "How much the front covers (hypervolume)", f"{words} after {ledger.n} trials. {lack}"
    return Picture(title, words, Ruler.counting("trials with all objectives", ledger.n), y, marks, f"{title}. {words}")


# Several runs


def comparison(groups: Mapping[str, Sequence[OutputView]], optimum: float | None) -> Picture:
    """Return the best value so far, or its distance from the optimum: a run as a line, several as median and band."""
    curves = {name: [best_so_far(run) for run in runs] for name, runs in groups.items()}
    marks, drawn = list[Mark](), list[Array]()
    for number, (name, group) in enumerate(curves.items()):
        t = np.arange(1.0, max(map(len, group)) + 1.0)
        table = np.stack([_extended(curve, len(t)) for curve in group])
        table = table if optimum is None else np.abs(optimum - table)
        tails = [0.0, 0.5, 1.0] if len(group) < FEW_RUNS else [0.1, 0.5, 0.9]
        low, middle, high = np.quantile(table, tails, axis=0)  # nan until all runs have a value
        look, count = f"group {number % GROUPS}", f"({len(group)} runs)"
        drawn += [low, middle, high]
        marks += [Band(t, low, high, look, steps=True)] if len(group) > 1 else []
        label = f"{name} {count}".strip() if len(group) > 1 else name
        marks.append(Line(t, middle, look, label or "best so far", steps=True))
    longest = max(len(curve) for group in curves.values() for curve in group)
    run = next(iter(groups.values()))[0]
    title = f"{run.extreme} {shortened(run.title, NAME)} so far"
    shown = np.concatenate(drawn)
    y = Ruler.fitted(title, shown) if optimum is None else Ruler.fitted("simple regret", shown, wide=1.0)
    return Picture(title, "", Ruler.counting("evaluation", longest), y, marks)


def _extended(curve: Array, length: int) -> Array:
    """Extend a run that ended early by its best value."""
    return np.concatenate([curve, np.full(length - len(curve), curve[-1] if len(curve) else np.nan)])
