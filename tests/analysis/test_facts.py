"""One decision whether to stop, with a clause for each case."""

from __future__ import annotations

import pytest
from sample_ledgers import WRONG, SampleLedger

from gpmi.analysis.ledger.facts import LockIn, RunLedger, can_stop


class LockedIn(SampleLedger):
    lock_in = LockIn(3, 0.5, "the last 12 queries were at one point")  # type: ignore[assignment]


class Unaccepted(SampleLedger):
    accepted = False  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("ledger", "answer", "advice", "kind", "words"),
    [
        (SampleLedger(0.01), "yes", "stop", "yes", "Yes, you can stop"),
        (SampleLedger(0.01, missed=0.1), "yes", "stop", "yes", "as far as the results can tell"),
        (SampleLedger(0.01, missed=0.11), "cannot tell", "go on", "careful", "better by more than 0.38"),
        (SampleLedger(0.01, tried=6), "yes", "stop", "yes", "Yes, you can stop"),
        (SampleLedger(0.01, tried=5), "cannot tell", "go on", "careful", "DMF has 5 results so far"),
        (SampleLedger(0.01, tried=0), "cannot tell", "go on", "careful", "DMF has no results so far"),
        (SampleLedger(0.06, tried=0), "not yet", "go on", "not yet", "Not yet: the chance"),
        (SampleLedger(0.05), "yes", "stop", "yes", "about 5"),
        (SampleLedger(0.06), "not yet", "go on", "not yet", "Not yet: the chance"),
        (SampleLedger(0.01, residuals=tuple(WRONG)), "cannot tell", "distrust", "careful", "Measure the best"),
        (SampleLedger(0.01, residuals=(0.5, -0.5)), "not yet", "go on", "too early", "after 12 more results."),
        (SampleLedger(0.01, why_unknown="not known yet: too few"), "not yet", "go on", "too early", "after 3 more"),
        (LockedIn(0.01), "cannot tell", "distrust", "careful", "all much the same"),
        (LockedIn(0.01, residuals=tuple(WRONG)), "cannot tell", "distrust", "careful", "Measure the best"),
        (Unaccepted(0.01), "not yet", "go on", "not yet", "no experiment meets everything"),
    ],
)  # fmt: skip
def test_the_decision_has_one_clause_for_each_case(
    ledger: RunLedger, answer: str, advice: str, kind: str, words: str
) -> None:
    decision = can_stop(ledger)
    assert (decision.answer, decision.advice.what, decision.kind) == (answer, advice, kind)
    assert words in decision.text and decision.why and not decision.why.endswith(".")
    assert (decision.needed is not None) == (kind == "too early")


def test_nothing_is_said_beside_the_answer_while_it_is_unknown_or_nothing_is_accepted() -> None:
    early, unaccepted = SampleLedger(0.01, why_unknown="not known yet: too few"), Unaccepted(0.01)
    assert early.answer() == [("can I stop?", "not known yet: too few")]
    assert "missing" in early.statistics and "gain" not in str(early)
    ((_, words),) = unaccepted.answer()
    assert words.startswith("not yet: no trial keeps all limits")
    assert unaccepted.facts()["chance"].value == 0.01
