"""The best trade-offs: the front of several objectives as pictures, with its recipes, and as a table."""

from __future__ import annotations

from gpmi._support.text import shortened
from gpmi.trials import Goals, Trial
from gpmi.trials.goal_summary import along_front
from gpmi.views.front_view import complete
from gpmi.views.html.front import Recipe, trade_offs
from gpmi.views.html.markup import Markup, joined, shown, tag
from gpmi.views.html.trials import trials_table
from gpmi.views.pictures.front import NAME
from gpmi.views.run_view import RunView
from gpmi.views.trial_notes import broken_words
from gpmi.views.trial_notes import joined as joined_notes


def tradeoffs(run: RunView) -> Markup | None:
    """Return the front of a run with several objectives; None for any other run. One with a target has one point."""
    if not run.told or len(run.objectives) < 2:
        return None
    words, goals = _words(run, run.goals), run.goals
    measured = complete(run.told, goals)
    if not measured:
        return words
    middle = None if run.compromise is None else run.compromise.number
    drawn = trade_offs(
        goals,
        run.told,
        run.front_numbers,
        lambda trial: recipe_of(run, trial),
        bands=run.front_bands,
        middle=middle,
    )
    caption = "The trials on the front. The best in the first objective is on top."
    table = trials_table(run, along_front(run.front, goals), "front-table", caption, anchor="front-")
    return joined(words, drawn, table if run.front else None)


def _words(run: RunView, goals: Goals) -> Markup:
    """Return what the front is, in a paragraph."""
    names = [shortened(name, NAME) for name in goals.objectives]
    if not run.front:
        limits = " and keeps all limits" if goals.limits else ""
        return tag("p", f"No trial has all objectives, is acceptable in each{limits} yet, so there is no front.")
    if len(run.front) == 1:
        others = "all others that are acceptable" if goals.has_limits else "all others"
        return tag("p", f"One trial is at least as good as {others} in {' and '.join(names)}.")
    listed = f"{', '.join(names[:-1])} or {names[-1]}"
    text = (
        f"For each of these {len(run.front)} trials, no other one is better in {listed} without being worse elsewhere."
    )
    return tag("p", text, " Together they are the front: choose the one that suits you.", run.compared)


def recipe_of(run: RunView, trial: Trial) -> Recipe:
    """Return a trial in words, for its point in a picture."""
    outputs = [(shortened(name, NAME), shown(trial.outputs.get(name)) or "not measured") for name in run.goals]
    units = {axis.name: axis.unit for axis in run.axes(2)}
    x = [
        (shortened(name, NAME), f"{shortened(shown(value), NAME)} {units.get(name, '')}".strip())
        for name, value in zip(run.names, run.values(trial.x), strict=True)
        if value is not None
    ]
    label = "" if trial.label is None else f", row {trial.label}"
    notes = joined_notes(broken_words(trial, run.goals), run.note(trial))
    return Recipe(f"Trial {trial.number}{label}", outputs, x, notes)
