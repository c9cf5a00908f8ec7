"""What may be said of a run is one list of facts, which every surface arranges."""

from __future__ import annotations

import html
import json
import math
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import client_for, create_study, text_of
from waiting import wait_until

import gpmi
from gpmi import kernels
from gpmi.analysis.ledger import facts
from gpmi.analysis.ledger.facts import Fact, RunLedger
from gpmi.serve.model_worker import summarise
from gpmi.views.html import report

RUNS: dict[str, dict[str, Any]] = {
    "one value": {},
    "an output": {"goals": {"strength": "max"}},
    "a front": {"goals": {"yield": gpmi.Max(at_least=-3.0), "cost": gpmi.Min(at_most=3.0)}},
    "a target": {"goals": {"size": gpmi.Match(0.5, within=1.0)}},
}
KINDS = [pytest.param(kind, marks=[pytest.mark.slow] * (kind == "a front")) for kind in RUNS]


def written(folder: Path, **goals: Any) -> str:
    """Return the path of a study with enough values to say something."""
    given = {"kernel": kernels.RBF(0.4), "noise_var": 0.01}
    path = create_study(folder, space={"x": (0.0, 1.0)}, **given, **goals)
    rng = np.random.default_rng(0)
    with gpmi.study(path) as study:
        names = study.optimizer.goals.named
        for x in np.linspace(0.0, 1.0, 16):
            values = {name: math.sin(3.0 * x + i) + 0.1 * rng.standard_normal() for i, name in enumerate(names or "y")}
            study.tell({"x": float(x)}, values if names else values["y"])
    return path


def shown(sentences: Any, surface: str) -> bool:
    return all(sentence in surface for sentence in sentences)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_in_the_list_is_on_every_surface(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def luck(ledger: RunLedger) -> Fact:
        return Fact("luck", ledger.n, f"a person reads {ledger.n} < 20", f"a statistician reads {ledger.n} < 30")

    monkeypatch.setattr(facts, "NUMBERS", (*facts.NUMBERS, luck))
    people, statisticians = "a person reads 16 < 20", "a statistician reads 16 < 30"
    path = written(tmp_path, **RUNS[kind])
    with gpmi.study(path) as study:
        ledger = study.ledger
        assert f"luck         {people}" in str(ledger) and re.search(f"luck +{statisticians}", ledger.statistics)
        assert ("luck", people) in ledger.answer() and ledger.facts()["luck"].value == 16
        (advice,) = report.sections(study, only=["advice"])
        assert shown((people, statisticians), html.unescape(advice.html))
    with client_for(path) as client:
        wait_until(lambda: client.get("/api/known").json()["now"])
        known = client.get("/api/known").json()["known"]
        assert known["luck"] == 16
        assert known["facts"]["luck"] == {"name": "luck", "text": people, "statistics": statisticians}
        wait_until(lambda: "being drawn" not in client.get("/study/default").text)
        assert shown((people, statisticians), text_of(client.get("/study/default")))


@pytest.mark.parametrize("kind", KINDS)
def test_every_surface_has_the_sentences_of_the_facts(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, **RUNS[kind])
    with gpmi.study(path) as study:
        ledger, said = study.ledger, study.ledger.facts()
        texts = [fact.text for fact in (*said.run, *said.answer) if fact.text]
        statistics = [fact.statistics for fact in said if fact.statistics]
        assert len(texts) >= 5 and len(statistics) >= 4
        assert shown(texts, str(ledger)) and shown((line[:100] for line in statistics), ledger.statistics)
        assert (ledger.advice, ledger.can_stop) == (said.decision.advice, said.decision)
        (advice,) = report.sections(study, only=["advice"])
        words = html.unescape(advice.html)
        assert shown((text for _, text in said.numbers), words) and shown(statistics, words)
        assert said.decision.why[1:] in words
        summary = summarise(study)
        assert summary.facts == said and pickle.loads(pickle.dumps(summary)) == summary
        known = json.loads(json.dumps(summary.to_json(), allow_nan=False))
        assert known["facts"].keys() == {fact.key for fact in said} and known["answer"] == said.decision.text
        keys = [fact.key for fact in said]
        assert len(keys) == len(set(keys)) and not set(keys) & {
            "t",
            "recommended",
            "believed",
            "front",
            "advice",
            "why",
        }
    with client_for(path) as client:
        wait_until(lambda: client.get("/api/known").json()["now"])
        wait_until(lambda: "being drawn" not in client.get("/study/default").text)
        page = text_of(client.get("/study/default"))
        assert said.decision.text in page and said.decision.why[1:] in page
        assert shown((text for _, text in said.numbers), page) and shown(statistics, page)


def test_a_page_has_the_options_of_a_choice_under_the_answer(tmp_path: Path) -> None:
    path = create_study(tmp_path, space={"x": (0.0, 1.0), "solvent": ["THF", "DMF"]})
    with gpmi.study(path) as study:
        for i in range(16):
            study.tell({"x": i / 15, "solvent": ["THF", "DMF"][i % 2]}, math.sin(3.0 * i / 15) + (i % 2))
        (section,) = report.sections(study, only=["options"])
    with client_for(path) as client:
        wait_until(lambda: 'id="answer"' in client.get("/study/default").text)
        page = client.get("/study/default").text
        assert section.html in page and page.index('id="answer"') < page.index(section.html)
        wait_until(lambda: "being drawn" not in client.get("/study/default").text)
        assert client.get("/study/default").text.count(section.html) == 1
