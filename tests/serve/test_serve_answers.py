"""What the first screen says: can I stop, what to expect, how many are left, and who was there before."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import Page, client_for, create_study, follow, send, text_of
from sample_ledgers import SampleLedger
from waiting import wait_until

import gpmi
from gpmi.analysis.ledger.facts import can_stop
from gpmi.serve.model_worker import summarise

AT = "/study/default"


def asked(client: Any, n: int = 1) -> Any:
    return follow(client, send(client, client.get(AT), "/ask", n=str(n)))


# "Can I stop?"


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"chance": 0.03, "missed": 0.04}, "Yes, you can stop, as far as the results can tell: the chance that 10 more "
         "experiments improve the result by more than 1.5 % (the size of the noise) is about 3 %."),
        ({"chance": 0.3, "missed": 0.4, "given": 1.5}, "Not yet: the chance that 10 more experiments improve the "
         "result by more than 1.5 % (your error bar) is about 30 %."),
        ({"chance": 0.3, "missed": 0.4, "noise": 0.01}, "more than 1.5 % (a hundredth of the way from the average "
         "result to the best one) is about 30 %."),
        ({"chance": 0.03, "missed": 0.2}, "Hard to say: a recipe may exist that is better by more than 0.38 % (chance "
         "about 20 %), but 10 more experiments would hardly find it."),
        ({"chance": 0.03, "tried": 3}, "Hard to say: DMF has 3 results so far, so it may still be the best. Try each "
         "option at least 6 times."),
    ],
)  # fmt: skip
def test_the_answer_has_a_unit_a_reason_and_its_caveat(known: dict[str, Any], words: str) -> None:
    if known.get("given"):  # y is transformed
        rough = SampleLedger(**{**known, "step": 1.6, "noise": 1.6})
        assert "1.6 (about your error bar)" in can_stop(rough).text
    text = can_stop(SampleLedger(**known), "%").text.replace("\u00a0", " ")
    assert text.endswith(words) and ("may exist" in words or "may exist" not in text)


def test_the_answer_of_a_study_has_its_unit(tmp_path: Path) -> None:
    path = create_study(tmp_path, space={"x": (0.0, 1.0)}, goals={"strength": "max"}, units={"strength": "mPa"},
                        noise_var={"strength": 0.25})  # fmt: skip
    rng = np.random.default_rng(0)
    with gpmi.study(path) as study:
        for x in np.linspace(0.0, 1.0, 18):
            study.tell({"x": float(x)}, {"strength": 90.0 - 40.0 * (x - 0.4) ** 2 + 0.5 * float(rng.normal())})
        answer = summarise(study).facts.decision.text
    assert re.search(r"by more than [0-9.]+[ \u00a0]mPa", answer), answer


# What to expect


def test_the_point_to_use_has_an_expected_result_and_luck_is_named(tmp_path: Path) -> None:
    path = create_study(tmp_path, space={"x": (0.0, 1.0)}, goals={"strength": "max"}, units={"strength": "%"})
    rng = np.random.default_rng(4)
    with gpmi.study(path) as study:
        for x in np.linspace(0.0, 1.0, 24):
            study.tell({"x": float(x)}, {"strength": 90.0 - 40.0 * (x - 0.4) ** 2 + 2.0 * float(rng.normal())})
        low, middle, high = summarise(study).believed or (0.0, 0.0, 0.0)
        best = study.best
        assert best is not None and best.y is not None and best.y > high  # the largest of 24 noisy values
    with client_for(path) as client:
        wait_until(lambda: "Expected there" in text_of(client.get(AT)))
        words = text_of(client.get(AT)).partition("For statisticians")[0]
        found = re.search(r"Expected there: ([0-9.]+) ± ([0-9.]+) %", words)
        assert found and float(found[1]) == pytest.approx(middle, abs=0.1)
        assert float(found[2]) == pytest.approx(0.5 * (high - low), rel=0.1)
        assert "Largest strength so far" in words and "A single measurement: part of it may be luck." in words
        report = client.get(f"{AT}/report").text
        cells = re.findall(r"<td[^>]*>([^<]*)</td>", report.partition('scope="row">strength')[2].partition("</tr>")[0])
        assert len(cells) == 2 and cells[1] == f"{found[1]} ± {found[2]} expected"


def test_without_noise_nothing_is_luck(tmp_path: Path) -> None:
    path = create_study(tmp_path, space={"x": (0.0, 1.0)})
    with gpmi.study(path) as study:
        for x in np.linspace(0.0, 1.0, 18):
            study.tell({"x": float(x)}, 90.0 - 40.0 * (x - 0.4) ** 2)
    with client_for(path) as client:
        wait_until(lambda: "Expected there" in text_of(client.get(AT)))
        assert "luck" not in text_of(client.get(AT))


# The next suggestions, and what has no result


def test_the_number_of_suggestions_is_remembered(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path)) as client:
        assert Page(client.get(AT).text).form("/ask").fields["n"] == "1"
        assert Page(asked(client, 4).text).form("/ask").fields["n"] == "4"
        assert send(client, client.get(AT), "/ask", n="500").status_code == 400
        assert Page(client.get(AT).text).form("/ask").fields["n"] == "4"
        for wrong in ("0", "101", "x", "<b>", "99999"):
            client.cookies.clear()
            client.cookies.set("gpmi_n", wrong)
            assert Page(client.get(AT).text).form("/ask").fields["n"] == "1"


def test_a_failure_says_what_is_learned(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path)) as client:
        for page in (asked(client), client.get(f"{AT}/trial/0")):
            words = text_of(page)
            assert "It failed because of these settings" in words and "such as a broken beaker" in words


# Two people


def test_a_conflict_says_who_entered_what_and_when(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path, units="%")) as client:
        page = asked(client, 3)
        follow(client, send(client, page, "/results", who="Berta", **{"y-0": "74.4", "y-1": "failed: no gas"}))
        follow(client, send(client, client.get(AT), "/results", who="Carl", forget="2"))
        answer = send(client, page, "/results", who="Anna", once="second", **{"y-0": "80", "y-1": "81", "y-2": "82"})
        words = text_of(answer)
        assert answer.status_code == 409
        assert re.search(r"Berta entered 74.4 % for trial 0 at \d\d:\d\d", words)
        assert re.search(r"Berta said that trial 1 failed at \d\d:\d\d: no gas", words)
        assert re.search(r"Carl withdrew trial 2 at \d\d:\d\d", words)


def test_a_conflict_names_nobody_who_left_no_name(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path)) as client:
        page = asked(client)
        follow(client, send(client, page, "/results", who="Berta", **{"y-0": "74.4"}))
        client.post("/api/correct", json={"number": 0, "y": 75.0})  # by a program
        words = text_of(send(client, page, "/results", who="Anna", once="second", **{"y-0": "80"}))
        assert "Trial 0 already has the value 75.0" in words and "Berta" not in words
