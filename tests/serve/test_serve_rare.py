"""Rare cases of `gpmi serve`: unusual spaces, running programs, failing models, unreachable databases."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from laboratory import Page, client_for, create_study, follow, send, text_of
from waiting import wait_until

import gpmi
from gpmi.serve import live_updates, model_worker
from gpmi.storage.entries import checksum
from gpmi.storage.serialization import text_of as text_of_json

AT = "/study/default"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    with client_for(create_study(tmp_path)) as one:
        yield one


def complete_page(client: Any) -> Any:
    """Return the text of the page once everything is computed."""

    def words() -> str:
        return text_of(client.get(AT))

    wait_until(lambda: not re.search("Working out|being drawn", words()))
    return words()


def test_every_kind_of_parameter_is_shown_and_accepted(tmp_path: Path) -> None:
    space = {
        **{"n": gpmi.Int(1, 9, unit="ml"), "how": ["a", "b"], "by": "hand"},
        "deep": gpmi.Real(0.0, 1.0, when={"how": "b"}),
    }
    with client_for(create_study(tmp_path, space=space)) as client:
        follow(client, send(client, client.get(AT), "/ask", n="1", given__n="3"))
        assert client.get("/api/trials").json()["trials"][0]["x"]["n"] == 3
        for given, words in (("2,5", "whole number"), ("many", "not a number")):
            wrong = send(client, client.get(AT), "/ask", given__n=given)
            assert wrong.status_code == 400 and words in text_of(wrong)
        own = {"own__n": "2", "own__how": "a", "own-result": "5"}
        follow(client, send(client, client.get(AT), "/observe", **own))
        assert client.get("/api/best").json()["trial"]["x"] == {"n": 2, "how": "a", "by": "hand"}
        assert "–" in text_of(client.get(AT))  # an inactive parameter
        wrong = send(client, client.get(AT), "/observe", **{**own, "own__how": "c"})
        assert wrong.status_code == 400 and "choose one" in text_of(wrong)
        assert send(client, client.get(AT), "/observe", **{**own, "own-result": ""}).status_code == 400


def test_a_long_column_of_candidates_is_a_number(tmp_path: Path) -> None:
    from gpmi.space import Candidates

    space = Candidates.from_columns({"v": [i / 10 for i in range(60)], "w": [0, 1] * 30})
    with client_for(create_study(tmp_path, space=space)) as client:
        follow(client, send(client, client.get(AT), "/ask", given__v="1,5"))
        assert client.get("/api/trials").json()["trials"][0]["x"] == {"v": 1.5, "w": 1}
        kinds = [(one["kind"], one["lo"]) for one in client.get("/api/study").json()["parameters"]]
        assert kinds == [("number", 0.0), ("choice", None)]


def test_trials_of_programs_have_no_cell_for_a_result(tmp_path: Path) -> None:
    path = create_study(tmp_path)
    with gpmi.study(path) as worker, client_for(path) as client:
        worker.ask(2)
        page = Page(client.get(AT).text)
        assert "2 experiments are being run by programs: #0, #1." in page.text
        assert not [form for form in page.forms if form.action.endswith("/results")]


def test_late_entries_for_finished_trials_are_conflicts(client: Any) -> None:
    page = follow(client, send(client, client.get(AT), "/ask", n="2"))
    client.post("/api/tell", json={"number": 0, "y": 1.0, "repeats": 3})
    late = send(client, page, "/results", fail="0", why__0="spilt")
    assert late.status_code == 409 and "already has the value 1.0" in text_of(late)
    client.post("/api/reject", json={"number": 1})
    late = send(client, page, "/results", y__1="3", once="2")
    assert late.status_code == 409 and Page(late.text).form("/results").buttons == [("again", "1"), ("leave", "1")]
    missing = send(client, page, "/results", y__7="3", once="3")
    assert missing.status_code == 400
    assert "mean of 3" in text_of(client.get(f"{AT}/trials"))
    assert send(client, client.get(f"{AT}/trial/0"), "/trial/0", word="fail").status_code == 409


def test_a_model_that_fails_hides_no_result(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(source: Any) -> Any:
        raise FloatingPointError("no model")

    monkeypatch.setitem(model_worker.TASKS, "summary", fails)
    monkeypatch.setitem(model_worker.TASKS, "pictures", fails)
    client.post("/api/tell", json={"x": {"temperature": 30.0, "catalyst": "A"}, "y": 4.25})
    words = complete_page(client)
    assert "4.25" in words and "FloatingPointError: no model" in words


def test_a_very_large_study_names_what_it_leaves_out(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_worker, "DRAW_LIMIT", 2)
    for i in range(4):
        client.post("/api/tell", json={"x": {"temperature": 30.0 + i, "catalyst": "A"}, "y": float(i)})
    words = complete_page(client)
    assert "not computed" in words and "The report has them." in words


def test_an_unreachable_database_is_reported_on_a_page(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client.get(AT)
    client.post("/api/ask", json={})
    page = client.get(AT)
    monkeypatch.setattr("gpmi.serve.session.Session.is_stored", lambda *given: False)
    assert client.post("/api/tell", json={"number": 0, "y": 1.0}).status_code == 202
    kept = follow(client, send(client, page, "/results", y__0="1.0"))
    assert "in a file" in text_of(kept)

    def away(*given: Any) -> Any:
        raise gpmi.StudyError("the disk is gone")

    monkeypatch.setattr("gpmi.serve.session.Session.snapshot", away)
    monkeypatch.setattr("gpmi.serve.catalogue.Catalogue.studies", away)
    for address in (AT, "/", "/api/studies", "/api/trials?study=default"):
        answer = client.get(address)
        assert answer.status_code == 503 and "the disk is gone" in answer.text


@pytest.mark.parametrize(
    "fields", [{"y": 1e999}, {"y": True}, {"y": None}, {"noise_var": -5}, {"repeats": 0}, {"constraints": ["x"]}]
)
def test_a_hostile_study_is_named_on_a_readable_page(tmp_path: Path, fields: dict[str, Any]) -> None:
    """The checksums fit. Every address of the study answers with a sentence, whether it was open before or not."""
    path = create_study(tmp_path)
    with gpmi.study(path) as study:
        study.tell(study.ask(), 1.0)
    with client_for(path) as client:
        if "y" in fields:
            assert client.get(AT).status_code == 200
        with gpmi.study(path) as study:
            study.tell(study.ask(), 2.0)
            before, told = study.log()[-2:]
        body = text_of_json({**json.loads(told.body), **fields})
        own = checksum(before.checksum, told.seq, told.kind, body, told.time, told.worker, told.token)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE gpmi_events SET body = ?, checksum = ? WHERE seq = 4", (body, own))
            connection.commit()
        for address in (AT, f"{AT}/trials", f"{AT}/trials.csv", f"{AT}/trial/0", f"{AT}/report"):
            answer = client.get(address)
            assert answer.status_code == 503 and "entry 4 of the log (told) cannot be replayed" in text_of(answer)
        for address in ("/api/study", "/api/trials", "/api/best"):
            answer = client.get(address)
            assert answer.status_code == 503 and "entry 4 of the log (told)" in answer.text


def test_infinite_predictions_are_shown(tmp_path: Path) -> None:
    """A value without noise has infinite information, so predictions need not be finite."""
    path = create_study(tmp_path)
    with gpmi.study(path) as study:
        for y in (1.0, 2.0, 3.0):
            study.tell(study.ask(), y)
        before, told = study.log()[-2:]
    said = dict.fromkeys(("mu", "sd", "surprise", "information"), math.inf)
    body = text_of_json({**json.loads(told.body), "said": said})
    own = checksum(before.checksum, told.seq, told.kind, body, told.time, told.worker, told.token)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE gpmi_events SET body = ?, checksum = ? WHERE seq = ?", (body, own, told.seq))
        connection.commit()
    with client_for(path) as client:
        for address in (AT, f"{AT}/trials", f"{AT}/trials.csv", f"{AT}/trial/2", f"{AT}/report", "/api/trials"):
            assert client.get(address).status_code == 200


def test_the_number_of_watchers_is_limited(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_updates, "MAX_WATCHERS", 0)
    assert client.get(f"{AT}/events").status_code == 503
    assert client.get("/api/events").status_code == 503
