"""What a table says about a trial in words, beside its values."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from gpmi._support.text import coordinate, rounded, shortened
from gpmi.trials import AtMost, Goals, Trial
from gpmi.trials.goal_summary import broken_limits

NAME = 40  # characters of the name of an output, at most


def note(trial: Trial, *, bars: bool = True) -> str:
    """Return what else is known about a trial, in words. Without `bars` its error bar is left out."""
    notes = [trial.why or "", f"doubtful: {trial.doubt}" if trial.doubt is not None else ""]
    if trial.y_before is not None:
        notes.append(f"was {rounded(trial.y_before)}")
    if trial.is_infeasible:
        notes.append("violates a constraint")
    if trial.noise_var and bars:
        notes.append(f"error bar {rounded(math.sqrt(trial.noise_var))}")
    if trial.repeats != 1:
        notes.append(f"mean of {trial.repeats}")
    if trial.fixed:
        pairs = ((key if isinstance(key, str) else f"x{key}", value) for key, value in trial.fixed.items())
        notes.append("fixed: " + ", ".join(f"{name} = {_setting(value)}" for name, value in pairs))
    return joined(*notes)


def output_note(trial: Trial, goals: Goals) -> str:
    """Return what else is known about a trial with named outputs, in words, without the limits that it breaks.

    An output that is only watched may be missing.
    """
    notes = []
    if trial.status == "told":
        missing = [name for name, goal in goals.items() if goal is not None and name not in trial.outputs]
        notes += [f"{', '.join(missing)} not measured yet"] if missing else []
    before = {} if trial.outputs_before is None else trial.outputs_before
    changed = [f"{name} {rounded(y)}" for name, y in before.items() if trial.outputs.get(name) != y]
    notes += [f"was {', '.join(changed)}"] if changed else []
    bars = [f"{name} {rounded(math.sqrt(variance))}" for name, variance in trial.output_noise_var.items() if variance]
    notes += [f"error bar of {', '.join(bars)}"] if bars else []
    notes += [f"{name} is the mean of {count}" for name, count in trial.output_repeats.items() if count != 1]
    rest = note(replace(trial, unmet=(), constraints=(), y_before=None, noise_var=0.0, repeats=1))
    return joined(*notes, rest)


def broken_words(trial: Trial, goals: Goals) -> str:
    """Return the limits that a trial breaks, in words; one that was not measured yet is not broken."""
    limits = ((name, goals.limits[name]) for name in broken_limits(trial))
    sides = ((name, "above" if isinstance(limit, AtMost) else "below", limit.value) for name, limit in limits)
    return ", ".join(f"{shortened(name, NAME)} {side} {rounded(value)}" for name, side, value in sides)


def joined(*notes: str) -> str:
    """Return notes one after the other; one that is empty is left out."""
    return "; ".join(text for text in notes if text)


def _setting(value: Any) -> str:
    """Return a coordinate to read, an option without quotes."""
    return value if isinstance(value, str) else coordinate(value)
