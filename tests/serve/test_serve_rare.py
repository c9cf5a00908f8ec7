"""Rare cases of `gpmi serve`: odd spaces, programs at work, models that fail, databases that are away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratory import Page, browsing, followed, made, send

import gpmi
from gpmi.serve import live, model_worker

AT = "/study/default"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    with browsing(made(tmp_path)) as one:
        yield one


def known(client: Any) -> Any:
    """The page once everything is computed."""
    for _ in range(600):
        words = Page(client.get(AT).text).words
        if "Working out" not in words and "being drawn" not in words:
            return words
        time.sleep(0.05)
    raise AssertionError("nothing came")


def test_every_kind_of_parameter_is_shown_and_taken(tmp_path: Path) -> None:
    space = {
        **{"n": gpmi.Int(1, 9, unit="ml"), "how": ["a", "b"], "by": "hand"},
        "deep": gpmi.Real(0.0, 1.0, when={"how": "b"}),
    }
    with browsing(made(tmp_path, space=space)) as client:
        followed(client, send(client, client.get(AT), "/ask", n="1", given__n="3"))
        assert client.get("/api/trials").json()["trials"][0]["x"]["n"] == 3
        for given, words in (("2,5", "whole number"), ("many", "not a number")):
            wrong = send(client, client.get(AT), "/ask", given__n=given)
            assert wrong.status_code == 400 and words in Page(wrong.text).words
        own = {"own__n": "2", "own__how": "a", "own-result": "5"}
        followed(client, send(client, client.get(AT), "/observe", **own))
        assert client.get("/api/best").json()["trial"]["x"] == {"n": 2, "how": "a", "by": "hand"}
        assert "–" in Page(client.get(AT).text).words  # a parameter that is not there
        wrong = send(client, client.get(AT), "/observe", **{**own, "own__how": "c"})
        assert wrong.status_code == 400 and "choose one" in Page(wrong.text).words
        assert send(client, client.get(AT), "/observe", **{**own, "own-result": ""}).status_code == 400


def test_a_long_column_of_candidates_is_a_number(tmp_path: Path) -> None:
    from gpmi.space import Candidates

    space = Candidates.from_columns({"v": [i / 10 for i in range(60)], "w": [0, 1] * 30})
    with browsing(made(tmp_path, space=space)) as client:
        followed(client, send(client, client.get(AT), "/ask", given__v="1,5"))
        assert client.get("/api/trials").json()["trials"][0]["x"] == {"v": 1.5, "w": 1}
        kinds = [(one["kind"], one["lo"]) for one in client.get("/api/study").json()["parameters"]]
        assert kinds == [("number", 0.0), ("choice", None)]


def test_what_programs_evaluate_has_no_place_for_a_result(tmp_path: Path) -> None:
    path = made(tmp_path)
    with gpmi.study(path) as worker, browsing(path) as client:
        worker.ask(2)
        page = Page(client.get(AT).text)
        assert "2 experiments are with programs just now: #0, #1." in page.words
        assert not [form for form in page.forms if form.action.endswith("/results")]


def test_a_failure_of_a_trial_that_has_a_value_is_asked_about(client: Any) -> None:
    page = followed(client, send(client, client.get(AT), "/ask", n="2"))
    client.post("/api/tell", json={"number": 0, "y": 1.0, "repeats": 3})
    late = send(client, page, "/results", fail="0", why__0="spilt")
    assert late.status_code == 409 and "has the value 1.0 already" in Page(late.text).words
    client.post("/api/reject", json={"number": 1})
    late = send(client, page, "/results", y__1="3", once="2")
    assert late.status_code == 409 and Page(late.text).form("/results").buttons == [("again", "1"), ("leave", "1")]
    missing = send(client, page, "/results", y__7="3", once="3")
    assert missing.status_code == 400
    assert "mean of 3" in Page(client.get(f"{AT}/trials").text).words
    assert send(client, client.get(f"{AT}/trial/0"), "/trial/0", word="fail").status_code == 409


def test_a_model_that_fails_hides_no_result(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(source: Any) -> Any:
        raise FloatingPointError("no model")

    monkeypatch.setitem(model_worker.TASKS, "known", fails)
    monkeypatch.setitem(model_worker.TASKS, "pictures", fails)
    client.post("/api/tell", json={"x": {"temperature": 30.0, "catalyst": "A"}, "y": 4.25})
    words = known(client)
    assert "4.25" in words and "FloatingPointError: no model" in words


def test_a_very_large_study_says_what_is_left_out(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_worker, "DRAWN", 2)
    for i in range(4):
        client.post("/api/tell", json={"x": {"temperature": 30.0 + i, "catalyst": "A"}, "y": float(i)})
    words = known(client)
    assert "not drawn" in words and "The report has them." in words


def test_a_database_that_is_away_is_said_on_a_page(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client.get(AT)
    client.post("/api/ask", json={})
    page = client.get(AT)
    monkeypatch.setattr("gpmi.serve.session.Desk.is_stored", lambda *given: False)
    assert client.post("/api/tell", json={"number": 0, "y": 1.0}).status_code == 202
    kept = followed(client, send(client, page, "/results", y__0="1.0"))
    assert "kept in a file" in Page(kept.text).words

    def away(*given: Any) -> Any:
        raise gpmi.StudyError("the disk is gone")

    monkeypatch.setattr("gpmi.serve.session.Desk.look", away)
    monkeypatch.setattr("gpmi.serve.catalogue.Shelf.books", away)
    for address in (AT, "/", "/api/studies", "/api/trials?study=default"):
        answer = client.get(address)
        assert answer.status_code == 503 and "the disk is gone" in answer.text


def test_not_everybody_can_watch_at_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST", 0)
    assert client.get(f"{AT}/events").status_code == 503
    assert client.get("/api/events").status_code == 503
