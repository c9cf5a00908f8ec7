"""What may be said of a run: a list of facts, and the answer to "can I stop?".

Print, report, page, API, progress and command line arrange these facts and word none of their own. A number that all of
them shall show is a function here and an entry in `NUMBERS`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

from gpmi._support.text import VALUE, Line, aligned, percent, rough, rounded, shortened
from gpmi.analysis.ledger.calibration import ENOUGH, Calibration
from gpmi.analysis.ledger.gain import Gain
from gpmi.analysis.ledger.options import OptionSummary
from gpmi.model.fitting.undetected_noise import UndetectedNoise
from gpmi.space import Space
from gpmi.trials import Trial

QUESTION, HEADING = "can I stop?", "Can I stop?"
# Stop if MORE evaluations gain anything with a probability of at most UNLIKELY, a better point exists with at most
# CLOSE, and every option has TRIED values (docs/benchmarks/can_stop.md).
MORE, UNLIKELY, CLOSE, TRIED = 10, 0.05, 0.1, 6
SHOWN = 3  # options of a choice in a line of text; our choice
NONE_ACCEPTED = "no trial keeps all limits and is acceptable in every objective"


@dataclass(frozen=True)
class Fact:
    """One thing that may be said of a run. A sentence is empty where there is nothing to say to its readers."""

    key: str
    value: Any = None  # numbers, texts, lists and dicts of them; None if it is not known
    text: str = ""  # for people
    statistics: str = ""  # for statisticians
    name: str = ""  # what stands before the sentences; by default the key

    @property
    def title(self) -> str:
        """What stands before the sentences."""
        return self.name or self.key


Answer = Literal["yes", "not yet", "cannot tell"]
# The questions behind "can I stop?", each with the answer if it decides. They are asked in this order, and the first
# that decides is the last that is asked.
CLAUSES: dict[str, Answer] = {
    "unknown": "cannot tell",  # the values have shown no effect, or there is no model
    "early": "not yet",  # there are too few values
    "doubtful": "cannot tell",  # a value does not fit the others, and nobody has said whether it is right
    "unaccepted": "not yet",  # no trial meets everything that was asked for
    "over-confident": "cannot tell",  # values fell farther from the predictions than the model allowed for
    "repeats": "cannot tell",  # the run repeats one point, although a better one may exist
    "gain": "not yet",  # more evaluations may bring something
    "options": "cannot tell",  # an option has too few values
    "better": "cannot tell",  # a better point may exist that takes longer to find
    "none": "yes",  # nothing speaks against it
}


@dataclass(frozen=True)
class Decision:
    """The answer to "can I stop?", as far as the values can tell."""

    clause: str  # what decided, of CLAUSES
    short: str  # the answer in a few words
    text: str  # the answer in a sentence or two that need no statistics
    why: str  # the reason, with its numbers
    needed: int | None = None  # how many more results it takes to say more, if these are too few

    @property
    def answer(self) -> Answer:
        """Whether to stop."""
        return CLAUSES[self.clause]

    @property
    def trusted(self) -> bool:
        """Whether the model deserves trust: it was not surprised, and the run does not repeat itself."""
        return self.clause not in ("doubtful", "over-confident", "repeats")

    @property
    def kind(self) -> Literal["yes", "not yet", "too early", "careful"]:
        """The answer, with what stands in its way: too few results, or what the values cannot exclude."""
        if self.clause in ("unknown", "early"):
            return "too early"
        return "careful" if self.answer == "cannot tell" else self.answer

    @property
    def advice(self) -> Advice:
        """What to do next, and why."""
        what: Literal["stop", "go on", "distrust"] = "stop" if self.answer == "yes" else "go on"
        return Advice(what if self.trusted else "distrust", self.why)


@dataclass(frozen=True)
class Advice:
    """What to do next, and why."""

    what: Literal["stop", "go on", "distrust"]
    why: str


@dataclass(frozen=True)
class Facts:
    """All that may be said of a run, as plain values. Iterate over the facts, or read one by its key."""

    decision: Decision
    run: tuple[Fact, ...]  # how much there is
    answer: tuple[Fact, ...]  # whether to stop, and the numbers behind it
    other: tuple[Fact, ...]  # what statisticians want to know beside these

    def __iter__(self) -> Iterator[Fact]:
        return iter((*self.run, *self.answer, *self.other))

    def __getitem__(self, key: str) -> Fact:
        return next(fact for fact in self if fact.key == key)

    @property
    def doubts(self) -> list[dict[str, Any]]:
        """The doubtful values: the trial of each, and why it does not fit the others."""
        return next((fact.value for fact in self.run if fact.key == "doubts"), [])

    @property
    def text(self) -> list[Line]:
        """The lines for people: how much there is, whether to stop, and the numbers behind it."""
        return lines((*self.run, *self.answer))

    @property
    def numbers(self) -> list[Line]:
        """The lines of the numbers behind the answer; none if it is too early."""
        return lines(self.answer[1:])

    @property
    def statistics(self) -> list[Line]:
        """The lines for statisticians."""
        return [(fact.title, fact.statistics) for fact in self if fact.statistics]


def unsaid(text: str, why: str) -> Facts:
    """Return the facts of a run of which nothing can be said: a sentence for people, and the reason."""
    return Facts(Decision("unknown", why, text, why), (), (), ())


def lines(facts: tuple[Fact, ...]) -> list[Line]:
    """Return the lines of facts for people."""
    return [(fact.title, fact.text) for fact in facts if fact.text]


@dataclass(frozen=True)
class Caveat:
    """What the advice to stop does not exclude: something better that takes longer to find."""

    chance: float  # of a gain that counts
    why: str  # to be added to the reason
    text: str = ""


class LockIn(NamedTuple):
    """The run repeats one point, although a better one may exist."""

    since: int  # the step of the first of the repeated queries
    probability: float  # of a simple regret above the standard deviation of the noise
    reason: str


class RunLedger(ABC):
    """The ledger of a run. What it says are `facts`, and first of all whether to stop."""

    nothing: ClassVar[str]  # what it says before the first value

    # Numbers

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of values."""

    @property
    @abstractmethod
    def space(self) -> Space:
        """The space of the run."""

    @property
    @abstractmethod
    def unknown(self) -> str | None:
        """Why the values support no statement yet, as text; None if they do."""

    @property
    @abstractmethod
    def lacking(self) -> int:
        """How many more values it takes to answer; 0 if there are enough, and something else is wrong."""

    @property
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other trial beats in every objective; none where there is one value."""
        return ()

    @property
    def accepted(self) -> bool:
        """Whether a trial meets everything that was asked for."""
        return True

    @property
    @abstractmethod
    def calibrations(self) -> Mapping[str, Calibration]:
        """Whether the confidence in each output that decides was justified; "" is the output without a name."""

    @property
    def watched(self) -> Mapping[str, Calibration]:
        """The same for outputs that are only watched."""
        return {}

    @property
    def doubtful(self) -> tuple[Trial, ...]:
        """The trials with a value that does not fit the others, and that nobody has answered for yet."""
        return ()

    @property
    def doubt(self) -> str | None:
        """Why the model's confidence certifies nothing, as text; None if it may. No stopping rule overrules it."""
        if self.doubtful:
            return questions(self.doubtful)
        doubts = ((name, judged.doubt) for name, judged in self.calibrations.items())
        return next((f"{name}: {doubt}" if name else doubt for name, doubt in doubts if doubt is not None), None)

    def chance_of_better(self) -> float:
        """Return the probability that a point is better than the recommended one by what counts; 0 if not known."""
        return 0.0

    @property
    def lock_in(self) -> LockIn | None:
        """A warning if the run repeats one point although a better one may exist; otherwise None."""
        return None

    @property
    def options(self) -> tuple[OptionSummary, ...]:
        """What is known of each option of each choice; empty without a choice."""
        return ()

    @property
    def scarcest(self) -> OptionSummary | None:
        """The option with the fewest values; None without a choice."""
        return None

    @property
    def longest_idle(self) -> int:
        """How many values came after the last one of the option that was tried least lately; 0 without a choice."""
        return 0

    @property
    @abstractmethod
    def smallest_gain(self) -> float:
        """The smallest gain that counts."""

    @abstractmethod
    def gain(self, evaluations: int = 10) -> Gain:
        """Return draws of what this many further evaluations would add."""

    @property
    @abstractmethod
    def gain_unit(self) -> float:
        """The size of a gain that a user states as 1: 1 in units of y, or with several objectives the hypervolume."""

    @property
    def draws_are_cheap(self) -> bool:
        """Whether draws cost less than a suggestion, so that a rule may look after every value."""
        return False

    @abstractmethod
    def stagnates(self, evaluations: int) -> bool:
        """Return whether this many last values brought nothing better."""

    def undetected_noise(self) -> UndetectedNoise | None:
        """Return the noise that may exist although the model has none; None if it is not looked for."""
        return None

    # Words for these numbers

    @abstractmethod
    def amount(self, size: float) -> str:
        """Return a gain that a user states, as text."""

    @property
    @abstractmethod
    def least_gain(self) -> str:
        """The smallest gain that counts, as text."""

    @abstractmethod
    def improvement_in_words(self, unit: str) -> str:
        """Return what a gain that counts does, as text for people; `unit` is that of a single result."""

    @abstractmethod
    def caveat(self, unit: str = "") -> Caveat:
        """Return what the advice to stop does not exclude; `unit` is that of a single result."""

    @abstractmethod
    def run_facts(self) -> list[Fact]:
        """Return how much there is. It needs no draws."""

    @abstractmethod
    def missing_fact(self) -> Fact:
        """Return how much may be missing. Called only if the values support a statement."""

    @abstractmethod
    def noise_fact(self) -> Fact:
        """Return the noise. Called only if the values support a statement."""

    @abstractmethod
    def other_facts(self) -> list[Fact]:
        """Return what statisticians want to know beside these."""

    # What is said

    @property
    def can_stop(self) -> Decision:
        """Whether to stop, and what the answer rests on. It costs what the draws behind it cost."""
        return can_stop(self)

    @property
    def advice(self) -> Advice:
        """Stop if more evaluations will hardly help, go on if they may, or distrust a model that was wrong."""
        return self.can_stop.advice

    def facts(self, unit: str = "") -> Facts:
        """Return all that may be said of the run; `unit` is that of a single result."""
        return facts_of(self, unit)

    def answer(self) -> list[Line]:
        """Return whether to stop and the numbers behind the answer, as lines. While there are too few values, say so.

        What more evaluations would gain does not say how good the recommended point is: the line "missing" does.
        """
        return lines(self.facts().answer)

    @property
    def statistics(self) -> str:
        """The statistics behind the answer, one in each line."""
        return aligned(self.facts().statistics)

    def __repr__(self) -> str:
        """Return the statistics that need no draws, so it is cheap. `print(ledger)` says whether to stop."""
        return aligned([(fact.title, fact.statistics) for fact in self.run_facts()])

    def __str__(self) -> str:
        hint = ("more", "ledger.advice says why; print(ledger.statistics) has more")
        return aligned([*self.facts().text, hint]) if self.n else self.nothing


# All facts


def facts_of(ledger: RunLedger, unit: str = "") -> Facts:
    """Return the facts of a run; `unit` is that of a single result. It costs what the draws behind them cost."""
    decision = can_stop(ledger, unit)
    numbers = [Fact("missing", statistics=ledger.unknown or "")]
    if ledger.unknown is None:
        numbers = [number(ledger) for number in NUMBERS]
    if not ledger.accepted:
        numbers = [replace(fact, text="") for fact in numbers]
    stop = Fact("stop", decision.answer, decision.short, name=QUESTION)
    run = (*ledger.run_facts(), *doubtful_values(ledger.doubtful))
    return Facts(decision, run, (stop, *numbers), tuple(ledger.other_facts()))


# The decision


def can_stop(ledger: RunLedger, unit: str = "") -> Decision:
    """Decide whether to stop, as far as the values can tell: a peak that no query came near is in no draw.

    The clauses are those of `CLAUSES`, in that order. Their limits were chosen on development runs and checked on
    others (docs/benchmarks/can_stop.md).
    """
    if ledger.unknown is not None:
        why = f"whether to stop is {ledger.unknown}"
        if ledger.lacking:
            return Decision("early", ledger.unknown, _too_early(ledger, ledger.lacking), why, ledger.lacking)
        same = "Too early to say: a result has been the same in all experiments, so nothing has shown an effect."
        return Decision("unknown", ledger.unknown, same, why)
    if ledger.doubtful:
        text = "Not yet: a result does not fit the others. Say first whether it is right."
        return Decision("doubtful", "a value is doubtful", text, questions(ledger.doubtful))
    if not ledger.accepted:
        why = f"{NONE_ACCEPTED}: relax what you state as acceptable, or the limits, if it stays so"
        text = "Not yet: no experiment meets everything that you asked for."
        return Decision("unaccepted", f"not yet: {NONE_ACCEPTED}", text, why)
    for name, judged in ledger.calibrations.items():
        if judged.is_over_confident:
            text = "Not yet: some results were far from what was expected. Measure the best experiment again first."
            remedy = "trust the measured values, not the intervals, and measure the best point again"
            why = f"{distrust(name, judged)}; {remedy}"
            return Decision("over-confident", "the model cannot say", text, why)
    if ledger.lock_in is not None:
        text = "Not yet: the last experiments were all much the same. Try something different first."
        why = f"{ledger.lock_in.reason}; look at other points"
        return Decision("repeats", "the model cannot say", text, why)
    early = {name: judged for name, judged in ledger.calibrations.items() if judged.is_early}
    if early:
        name, judged = next(iter(early.items()))
        why = f"it is too early to judge the model{_of(name)}: {judged.reason}; at least {ENOUGH} are needed"
        lacking = max(1, *(ENOUGH - len(each.ahead) for each in early.values()))
        return Decision("early", "not yet", _too_early(ledger, lacking), why, lacking)
    chance, more = _chance(ledger), gain_in_words(ledger)
    likely = f"the chance that {MORE} more experiments {ledger.improvement_in_words(unit)} is {_about(chance)}"
    if not chance <= UNLIKELY:
        return Decision("gain", "not yet", f"Not yet: {likely}.", more)
    scarce = ledger.scarcest
    if scarce is not None and scarce.values < TRIED:
        few = f"{scarce.option} has {scarce.values or 'no'} result{'s' * (scarce.values != 1)}"
        text = f"Hard to say: {few} so far, so it may still be the best. Try each option at least {TRIED} times."
        option = f"the option {scarce.option} of {scarce.parameter} has {scarce.values} values"
        why = f"{option}, and it takes {TRIED} to judge it"
        return Decision("options", f"the values cannot tell: {few}", text, why)
    caveat = ledger.caveat(unit)
    if not caveat.chance <= CLOSE:
        return Decision("better", "the values cannot tell", f"Hard to say: {caveat.text}", f"{more}{caveat.why}")
    text = f"Yes, you can stop, as far as the results can tell: {likely}."
    return Decision("none", "yes, as far as the values can tell", text, f"{more}{caveat.why}")


def _about(chance: float) -> str:
    """Return a chance for people, such as "about 5 %"."""
    size = percent(chance).replace(" %", "\u00a0%")
    return f"about {size}" if size[0].isdigit() else size


def distrust(name: str, judged: Calibration) -> str:
    """Say why the model of an output must not be trusted."""
    return f"the model{_of(name)} was {judged.verdict} ({judged.reason})"


def _of(name: str) -> str:
    """Return the words for the model of an output; "" is the output without a name."""
    return f" of {name}" if name else ""


def _too_early(ledger: RunLedger, lacking: int) -> str:
    """Say how many more results it takes; where there is a fidelity, those at its target count."""
    fidelity = ledger.space.fidelity
    where = "" if fidelity is None else f" at {shortened(fidelity.name, VALUE)} {fidelity.fidelity.target}"
    return f"Too early to say: gpmi can say more after {lacking} more result{'s' if lacking != 1 else ''}{where}."


def better_point(chance: float, least: float, most: float, unit: str = "") -> Caveat:
    """Return the caveat of a single value: a point is better by more than `least` with this chance, by up to `most`."""
    size = rough(least, 2)
    if chance <= CLOSE:
        return Caveat(chance, f", and a point is better by {size} with probability {percent(chance)}")
    why = f". A point may be better by more than {size}, and by up to {rough(most)}: with probability {percent(chance)}"
    text = f"a recipe may exist that is better by more than {size}{unit and f' {unit}'} (chance {_about(chance)}), but "
    return Caveat(chance, why, f"{text}{MORE} more experiments would hardly find it.")


def better_front(share: float) -> Caveat:
    """Return the caveat of a front: at most this share of what is possible is missing."""
    missing = f"missing is {share_missing(share)}"
    return Caveat(0.0, f"; this does not exclude a better front that takes longer to find: {missing}")


# Numbers of every run


def _chance(ledger: RunLedger) -> float:
    return ledger.gain(MORE).probability_above(ledger.smallest_gain)


def gain_in_words(ledger: RunLedger) -> str:
    """Say what more evaluations bring."""
    return f"{MORE} more evaluations gain more than {ledger.least_gain} with probability {percent(_chance(ledger))}"


def gain(ledger: RunLedger) -> Fact:
    """Return the chance that more evaluations gain what counts."""
    chance = _chance(ledger)
    return Fact("chance", None if math.isnan(chance) else chance, gain_in_words(ledger), name="gain")


def step(ledger: RunLedger) -> Fact:
    """Return the smallest gain that counts. The chance of a gain names it."""
    return Fact("step", ledger.smallest_gain)


def options(ledger: RunLedger) -> Fact:
    """Return what is known of each option of each choice, the most promising ones in words."""
    by_choice: dict[str, list[OptionSummary]] = {}
    for summary in ledger.options:
        name = f"{summary.parameter} for {summary.output}" if summary.output else summary.parameter
        by_choice.setdefault(name, []).append(summary)
    words = []
    for name, summaries in by_choice.items():
        ranked = sorted(summaries, key=lambda summary: -(summary.chance or 0.0))
        rest = f" and {len(ranked) - SHOWN} more" if len(ranked) > SHOWN else ""
        words.append(f"{name}: {', '.join(map(str, ranked[:SHOWN]))}{rest}")
    text = "; ".join(words)
    return Fact("options", [summary.to_json() for summary in ledger.options], text, text)


# What stands behind the answer, in this order. It is called only if the values support a statement.
NUMBERS: tuple[Callable[[RunLedger], Fact], ...] = (
    gain,
    step,
    lambda ledger: ledger.missing_fact(),
    lambda ledger: ledger.noise_fact(),
    options,
)


def doubtful_values(trials: Iterable[Trial]) -> list[Fact]:
    """Return the values that do not fit the others, with the question whether they are right; none if all fit."""
    value = [{"trial": trial.number, "why": trial.doubt} for trial in trials]
    return [Fact("doubts", value, questions(trials), questions(trials))] if value else []


def questions(trials: Iterable[Trial]) -> str:
    """Ask about doubtful values, as text."""
    return "; ".join(f"trial {trial.number}: {trial.doubt}" for trial in trials)


def calibrations(ledger: RunLedger) -> list[Fact]:
    """Return whether the confidence in each output was justified."""
    judged = {**ledger.calibrations, **ledger.watched}
    return [calibration(name, judgement) for name, judgement in judged.items()]


def calibration(name: str, judged: Calibration) -> Fact:
    """Return whether the confidence in an output was justified."""
    text, statistics = VERDICTS[judged.verdict], f"{judged.verdict}: {judged.reason}"
    return Fact(f"calibration{_of(name)}", judged.verdict, text, statistics)


VERDICTS = {
    "fine": "The model's confidence was justified: the values fell where it predicted.",
    "over-confident": "The model was too sure of itself: values fell farther from its predictions than it allowed for. "
    "Do not trust its intervals.",
    "under-confident": "The model was too cautious: values fell closer to its predictions than it expected.",
    "doubtful": "A value does not fit the others. The model cannot be judged before somebody says whether it is right.",
    "too early to say": "There are too few predictions to judge the model.",
}
NOT_COVERED = Fact("not covered", statistics="peaks that no query came near")


def interval(low: float, high: float, median: float) -> str:
    """Describe a credible interval of level 95 % and the median."""
    return f"{rough(low)} to {rough(high)} with probability 95 %, median {rough(median)}"


# Numbers of a single value


def values(n: int, chosen: int, explored: int) -> Fact:
    """Return how many values there are, and how many of them the policy chose, some to explore."""
    words = f"{n}, of which the policy chose {chosen}: {explored} to explore"
    return Fact("values", n, words, words)


def distance(low: float, high: float) -> Fact:
    """Return how far the best possible value may be from the recommended point."""
    bound = f"{rough(low)} to {rough(high)}" if low > 0.0 else f"at most {rough(high)}"
    return Fact("missing", high, f"{bound} to the best possible value, with probability 95 %")


def regrets(limits: tuple[float, float] | None, simple: str, cumulative: str, *, learned: bool) -> list[Fact]:
    """Return the 95 % interval of the simple regret, None if it is not known, and both regrets in words."""
    return [
        Fact("interval", limits, statistics=simple, name="simple regret"),
        *([NOT_COVERED] if learned else []),
        Fact("cumulative", statistics=cumulative),
    ]


def noise(sd: float, limits: tuple[float, float]) -> Fact:
    """Return the noise of a value, with limits of its standard deviation."""
    return Fact("noise", sd, noise_in_words(sd, limits))


def noise_in_words(sd: float, limits: tuple[float, float]) -> str:
    """Describe the standard deviation of the noise; as a range if its limits differ by more than a factor of 3."""
    low, high = limits
    if high > 3.0 * low and high > 2.0 * sd:
        return f"not clear yet: a single value has a standard deviation of {rough(low, 2)} to {rough(high, 2)}"
    return f"{rough(sd, 2)} is the standard deviation of a single value"


def improvement(least: float, noise: float, given: float | None, unit: str) -> str:
    """Say what an improvement is, in the unit of the result, and why the smallest one that counts is this.

    `given` is the standard deviation of the noise as it was given, if it was.
    """
    size = rough(least, 2)
    if least > noise:
        why = "a hundredth of the way from the average result to the best one"
    elif given is None:
        why = "the size of the noise"
    else:  # where y is transformed, the error bar at the point to use is not quite the one that was given
        why = "your error bar" if rough(given, 2) == size else "about your error bar"
    size = f"{size}\u00a0{unit}" if unit else size
    return f"improve the result by more than {size} ({why})"


def information(nats: float) -> Fact:
    """Return what the values say about f."""
    return Fact("information", nats, statistics=f"{nats:.4g} nats")


def failures(failed: int, reasons: str, infeasible: int) -> Fact:
    """Return how many trials failed, and why, and how many broke a constraint."""
    why = f" ({reasons})" if reasons != "none" else ""
    return Fact("failures", failed, statistics=f"{failed} failed{why}, {infeasible} infeasible")


def lock_in(reason: str | None) -> Fact:
    """Return why the run may be repeating one point in vain; None if it does not."""
    return Fact("lock-in", reason, statistics=reason or "none")


# Numbers of a front


def trials(n: int, front: int, failed: int, infeasible: int) -> Fact:
    """Return how many trials there are, and what became of them."""
    counts = {"failed": failed, "infeasible": infeasible}
    others = "".join(f"; {count} {what}" for what, count in counts.items() if count)
    words = f"{n}, of which {front} on the front{others}"
    return Fact("values", n, words, words)


def covered(volume: float, reference: Mapping[str, float] | None) -> Fact:
    """Return how much the front covers, counted from a reference."""
    if reference is None:
        return Fact("hypervolume", None, "not known yet", "not known yet")
    against = ", ".join(f"{name} {rounded(value)}" for name, value in reference.items())
    words = f"{rough(volume, 4)} against {against}"
    return Fact("hypervolume", volume, words, words)


def missing(share: float, high: float, median: float) -> Fact:
    """Return how much may be missing: at most this share of what is possible, and this hypervolume."""
    return Fact("missing", share, share_missing(share), volume_missing(high, median))


def volume_missing(high: float, median: float) -> str:
    """Say how much hypervolume may be missing."""
    return f"at most {rough(high)} with probability 95 %, median {rough(median)}"


def share_missing(share: float) -> str:
    """Say how much of what is possible may be missing."""
    size = "0.1 %" if share < 0.001 else f"{rough(100.0 * share, 2)} %"
    return f"at most {size} of what is possible, with probability 95 %"


def noises(sds: Mapping[str, float]) -> Fact:
    """Return the noise of each output."""
    words = ", ".join(f"{name} {rough(sd, 2)}" for name, sd in sds.items())
    return Fact("noise", dict(sds), f"{words} are the standard deviations of a single value")
