"""The ledger's advice, in a word and a sentence: stop, go on, or distrust the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpmi._support.text import rough
from gpmi.analysis.ledger.calibration import ENOUGH
from gpmi.analysis.ledger.ledger import Ledger

SURE = 0.95  # the level of the stopping rules (`gpmi.run.stopping`)


@dataclass(frozen=True)
class Advice:
    """What to do next, and why."""

    what: Literal["stop", "go on", "distrust"]
    why: str


def advise(ledger: Ledger) -> Advice:
    """Advise to stop if no gain above the noise is left, to go on if one may be, or to distrust a model that was wrong.

    A stop has the same requirements as `gpmi.run.stopping.RegretBelowNoise`. It costs what `regret` and `calibration`
    cost.
    """
    if not ledger.n:
        return Advice("go on", "no value has been told yet")
    verdict, reason = ledger.calibration.verdict, ledger.calibration.reason
    if verdict == "over-confident":
        return Advice(
            "distrust",
            f"the model was over-confident ({reason}); trust the measured values, not the interval, and measure the "
            "best point again",
        )
    if ledger.lock_in is not None:
        return Advice("distrust", f"{ledger.lock_in.reason}; look at other points")
    regret = ledger.regret()
    if not regret.known:
        return Advice("go on", regret.how)
    below, floor = regret.probability_below(ledger.floor), ledger.floor
    if verdict == "too early to say":
        return Advice("go on", f"it is too early to judge the model: {reason}; at least {ENOUGH} are needed")
    if below >= SURE:
        return Advice(
            "stop",
            f"with probability {below:.0%} no point is better than the recommended one by more than {rough(floor)}, "
            "the noise or the resolution",
        )
    gain = f"one more evaluation is expected to gain at most {rough(ledger.improvement)}"
    if floor == ledger.noise_sd and regret.interval()[1] > 2.0 * floor:
        # docs/benchmarks/noise.md measures by how much.
        gain += f"; the noise keeps the interval wide, and {ledger.n} more evaluations usually halve it"
    return Advice("go on", f"a gain of more than {rough(floor)} is possible with probability {1.0 - below:.0%}; {gain}")
