"""The lines of a run's summary that are about its trials: what was found, and how they ended."""

from __future__ import annotations

from gpmi._support.text import Line
from gpmi.trials import Log, Trial
from gpmi.trials.goal_summary import found_lines, infeasible_note, waiting_lines


def trial_lines(log: Log, best: Trial | None, front: tuple[Trial, ...]) -> list[Line]:
    """Return the best value, or the front of several objectives, and the number of trials by how they ended."""
    retracted = sum(trial.status == "retracted" for trial in log.trials)
    others = [("stopped", len(log.stopped)), ("rejected", len(log.rejected)), ("retracted", retracted)]
    told = f"{len(log.told) + len(log.awaiting)} told"
    if log.fidelity is not None and not (log.fidelity.fidelity.has_steps and len(log.reached) == len(log.told)):
        told += f" ({len(log.reached)} at {log.fidelity.name} {log.fidelity.fidelity.target})"
    outcomes = f"{told}, {len(log.pending)} pending, {len(log.failed)} failed"
    outcomes += "".join(f", {count} {name}" for name, count in others if count)
    x, y = (None, None) if best is None else (best.x, best.y)
    lines = found_lines(log.goals, log.trials, x, y, front, ", by the values told")
    outcomes = ", ".join([outcomes, *infeasible_note(log.trials)])
    waiting = waiting_lines(log.trials, log.goals)
    return [*lines, ("trials", outcomes if log.budget is None else f"{outcomes}; budget {log.budget}"), *waiting]
