"""What the ledger advises, in a word and a sentence: stop, go on, or distrust what the model says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpmi._support.text import rough
from gpmi.analysis.ledger.account import Ledger
from gpmi.analysis.ledger.calibration import ENOUGH

SURE = 0.95  # the level of the stopping rules (`gpmi.run.stopping`)


@dataclass(frozen=True)
class Advice:
    """What to do next, and why."""

    what: Literal["stop", "go on", "distrust"]
    why: str


def advise(ledger: Ledger) -> Advice:
    """Stop where nothing above the noise is left to be had, go on where it may be; distrust a model that was wrong.

    A stop needs what `gpmi.run.stopping.RegretBelowNoise` needs. It costs what `regret` and `calibration` cost.
    """
    if not ledger.n:
        return Advice("go on", "no value has been told yet")
    verdict, reason = ledger.calibration.verdict, ledger.calibration.reason
    if verdict == "over-confident":
        return Advice(
            "distrust",
            f"the model was surer than it had a right to be ({reason}); trust the values that were measured, not the "
            "interval, and measure the best point again",
        )
    if ledger.lock_in is not None:
        return Advice("distrust", f"{ledger.lock_in.reason}; look at other points")
    regret = ledger.regret()
    if not regret.known:
        return Advice("go on", regret.how)
    below, floor = regret.probability_below(ledger.floor), ledger.floor
    if verdict == "too early to say":
        return Advice("go on", f"too early to say whether the model can be believed: {reason}, {ENOUGH} are enough")
    if below >= SURE:
        return Advice(
            "stop",
            f"with probability {below:.0%} no point is better than the recommended one by more than {rough(floor)}, "
            "the noise or what can be resolved",
        )
    gain = f"one more evaluation is expected to bring at most {rough(ledger.improvement)}"
    if floor == ledger.noise_sd and regret.interval()[1] > 2.0 * floor:
        # By how much is measured in docs/benchmarks/noise.md.
        gain += f"; the noise keeps the interval wide: {ledger.n} evaluations more usually halve it"
    return Advice(
        "go on", f"a gain of more than {rough(floor)} is to be had with probability {1.0 - below:.0%}; {gain}"
    )
