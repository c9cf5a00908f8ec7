"""The answer to "can I stop?" in a sentence or two that need no statistics, from the numbers of the ledger.

Nothing is claimed before the ledger claims something: until then the answer says how many results it takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from gpmi._support.text import VALUE, percent, rough, shortened
from gpmi.analysis.ledger import Ledger
from gpmi.analysis.ledger.advice import MORE, UNLIKELY
from gpmi.analysis.ledger.calibration import ENOUGH
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.analysis.ledger.ledger import needed_values
from gpmi.space import Space


@dataclass(frozen=True)
class StopAnswer:
    """A word, and the sentence after it."""

    what: Literal["yes", "not yet", "too early", "careful"]
    text: str
    needed: int | None = None  # results until something can be said, if it is too early


def too_early(needed: int, space: Space) -> StopAnswer:
    """Return how many results are still needed; where there is a fidelity, those at its target count."""
    found = space.fidelity
    where = "" if found is None else f" at {shortened(found.name, VALUE)} {found.fidelity.target}"
    results = f"{needed} more result{'s' if needed != 1 else ''}{where}"
    text = f"Too early to say: gpmi can say more after {results}."
    return StopAnswer("too early", text, needed)


def enough(ledger: Ledger) -> int:
    """Return how many results it takes: what the ledger needs, and what its check of the model needs.

    With a learned prior, n results have n - 1 residuals.
    """
    return ledger.needed if ledger.setting.priors.is_fixed else max(ledger.needed, ENOUGH + 1)


def stop_answer(ledger: Ledger, unit: str = "") -> StopAnswer:
    """Answer for a study with one result to optimise, in its unit. It costs what `ledger.advice` costs."""
    if ledger.n < ledger.needed:
        return too_early(enough(ledger) - ledger.n, ledger.space)
    if ledger.unknown is not None:
        return StopAnswer(
            "too early", "Too early to say: all results so far are the same, so nothing has shown an effect."
        )
    advice = ledger.advice
    if advice.what == "distrust":
        return _careful(is_narrow=ledger.lock_in is not None and ledger.calibration.verdict != "over-confident")
    if ledger.calibration.verdict == "too early to say":
        return too_early(max(1, ENOUGH - len(ledger.calibration.ahead)), ledger.space)
    chance = ledger.gain(MORE).probability_above(ledger.smallest_gain)
    answer = by_chance(
        chance, f"improve the result by more than {_smallest(ledger, unit)}", stops=advice.what == "stop"
    )
    missed = 1.0 - ledger.regret().probability_below(ledger.smallest_gain)
    if answer.what != "yes" or missed <= UNLIKELY:
        return answer
    size = percent(missed).replace(" %", "\u00a0%")
    caveat = f"A better recipe may still exist (chance {size}), but these experiments would hardly find it."
    return replace(answer, text=f"{answer.text} {caveat}")


def _smallest(ledger: Ledger, unit: str) -> str:
    """Return the smallest gain that counts, with the reason why it is this one."""
    step, given = rough(ledger.smallest_gain, 2), ledger.setting.priors.noise_var
    if ledger.smallest_gain > ledger.noise_sd:
        why = "a hundredth of the way from the average result to the best one"
    elif given is None:
        why = "the size of the noise"
    else:  # where y is transformed, the error bar at the point to use is not quite the one that was given
        why = "your error bar" if rough(given**0.5, 2) == step else "about your error bar"
    return f"{step}\u00a0{unit} ({why})" if unit else f"{step} ({why})"


def front_stop_answer(ledger: FrontLedger) -> StopAnswer:
    """Answer for a study with several objectives."""
    wanted = [*ledger.goals.objectives, *ledger.goals.limits]
    known = [ledger.outputs[name] for name in wanted if name in ledger.outputs]
    lacking = [enough(one) - one.n for one in known if one.n < one.needed]
    if len(known) < len(wanted) and known:  # an output without any value needs as many as the others
        lacking.append(max(map(enough, known)))
    if not known:  # no output has a model that would say whether its prior is learned: it usually is
        lacking.append(max(ledger.needed, needed_values(ledger.space), ENOUGH + 1))
    if missing := max(lacking, default=0):
        return too_early(missing, ledger.space)
    if ledger.unknown is not None:
        left = ledger.needed - ledger.n
        same = "Too early to say: a result has been the same in all experiments, so nothing has shown an effect."
        return too_early(left, ledger.space) if left > 0 else StopAnswer("too early", same)
    if not ledger.front:
        return StopAnswer("not yet", "Not yet: no experiment meets everything that you asked for.")
    advice = ledger.advice
    if advice.what == "distrust":
        return _careful(is_narrow=False)
    early = [one for one in known if one.calibration.verdict == "too early to say"]
    if early and advice.what != "stop":
        return too_early(max(1, *(ENOUGH - len(one.calibration.ahead) for one in early)), ledger.space)
    chance = ledger.gain(MORE).probability_above(ledger.smallest_gain)
    return by_chance(chance, "improve the best trade-offs noticeably", stops=advice.what == "stop")


def _careful(*, is_narrow: bool) -> StopAnswer:
    if is_narrow:
        text = "Not yet: the last experiments were all much the same. Try something different first."
    else:
        text = "Not yet: some results were far from what was expected. Measure the best experiment again first."
    return StopAnswer("careful", text)


def by_chance(chance: float, what: str, *, stops: bool) -> StopAnswer:
    size = percent(chance)
    size = f"about {size}" if size[0].isdigit() else size
    chances = f"the chance that {MORE} more experiments {what} is {size}"
    chances = chances.replace(" %", "\u00a0%")
    return (
        StopAnswer("yes", f"Yes, you can stop: {chances}.") if stops else StopAnswer("not yet", f"Not yet: {chances}.")
    )
