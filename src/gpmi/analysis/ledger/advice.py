"""The ledger's advice, in a word and a sentence: stop, go on, or distrust the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpmi._support.text import percent, rough
from gpmi.analysis.ledger.calibration import ENOUGH

if TYPE_CHECKING:
    from gpmi.analysis.ledger.ledger import Ledger

MORE, UNLIKELY = 10, 0.05  # the advice is to stop if so many more evaluations gain anything with at most this chance


@dataclass(frozen=True)
class Advice:
    """What to do next, and why."""

    what: Literal["stop", "go on", "distrust"]
    why: str


def advise(ledger: Ledger) -> Advice:
    """Advise to stop if more evaluations will hardly help, to go on if they may, or to distrust a model that was wrong.

    A stop has the same requirements as `gpmi.run.stopping.GainBelow(ledger.smallest_gain)`. It costs what `regret` and
    `calibration` cost.
    """
    if not ledger.n:
        return Advice("go on", "no value has been told yet")
    regret = ledger.regret()
    if not regret.known:
        return Advice("go on", f"whether to stop is {regret.how}")
    verdict, reason = ledger.calibration.verdict, ledger.calibration.reason
    if verdict == "over-confident":
        return Advice(
            "distrust",
            f"the model was over-confident ({reason}); trust the measured values, not the interval, and measure the "
            "best point again",
        )
    if ledger.lock_in is not None:
        return Advice("distrust", f"{ledger.lock_in.reason}; look at other points")
    if verdict == "too early to say":
        return Advice("go on", f"it is too early to judge the model: {reason}; at least {ENOUGH} are needed")
    chance, step = ledger.gain(MORE).probability_above(ledger.smallest_gain), rough(ledger.smallest_gain, 2)
    more = f"{MORE} more evaluations gain more than {step} with probability {percent(chance)}"
    if chance <= UNLIKELY:
        left, missed = rough(regret.interval()[1]), percent(1.0 - regret.probability_below(ledger.smallest_gain))
        better = f"with probability {missed} one is better by more than {step}, by up to {left}"
        return Advice("stop", f"{more}; this does not exclude a better point that takes longer to find: {better}")
    return Advice("go on", more)
