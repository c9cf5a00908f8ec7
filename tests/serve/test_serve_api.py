"""The JSON API of `gpmi serve`: outcomes by trial number, each counted once, and the OpenAPI description."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from laboratory import client_for, create_study, running_server
from waiting import LIMIT, wait_until

import gpmi
from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.session import Session
from gpmi.trials import Details


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    with client_for(create_study(tmp_path)) as one:
        yield one


def post(client: Any, action: str, **body: Any) -> Any:
    """Send a POST request and return the JSON of its answer."""
    answer = client.post(f"/api/{action}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_trial_is_asked_told_corrected_and_read(client: Any) -> None:
    first, second, third = post(client, "ask", n=3)["trials"]
    assert [one["number"] for one in (first, second, third)] == [0, 1, 2]
    assert set(first["x"]) == {"temperature", "catalyst"}
    told = post(client, "tell", number=0, y=1.5, noise_var=0.01)["trial"]
    assert (told["status"], told["y"], told["noise_var"]) == ("told", 1.5, 0.01)
    assert post(client, "fail", number=1, why="the pump stopped")["trial"]["why"] == "the pump stopped"
    assert post(client, "reject", number=2)["trial"]["status"] == "rejected"
    assert post(client, "correct", number=0, y=2.5)["trial"]["y_before"] == 1.5
    assert client.get("/api/best").json()["trial"]["y"] == 2.5
    assert set(client.get("/api/recommend").json()["x"]) == {"temperature", "catalyst"}
    failed = client.get("/api/trials?status=failed").json()
    assert failed["total"] == 1 and failed["trials"][0]["number"] == 1
    assert [one["number"] for one in client.get("/api/trials?offset=1&limit=1").json()["trials"]] == [1]
    assert post(client, "retract", number=0)["trial"]["status"] == "retracted"
    assert client.get("/api/best").json()["trial"] is None


def test_the_description_of_a_study_has_units(client: Any) -> None:
    about = client.get("/api/study").json()
    assert [(one["name"], one["unit"]) for one in about["parameters"]] == [("temperature", "°C"), ("catalyst", "")]
    assert about["goal"] == "max" and about["trials"]["told"] == 0
    assert client.get("/api/studies").json()["studies"] == [{"study": "default", "name": "default", "title": "lab"}]


def test_an_error_has_a_code_and_values_for_programs(client: Any) -> None:
    answer = client.post("/api/ask", json={"fixed": {"temperature": 120}})
    assert answer.status_code == 400 and answer.json() == {
        "error": "fixed: temperature is 120, outside [20.0, 90.0]; give a value inside",
        "code": "outside",
        "values": {"name": "temperature", "value": 120, "low": 20.0, "high": 90.0},
    }
    refused = {
        "unknown-option": {"x": {"temperature": 50, "catalyst": "\ud800"}, "y": 1},
        "wrong-keys": {"x": {"temperature": 50}, "y": 1},
        "not-a-number": {"x": {"temperature": None, "catalyst": "A"}, "y": 1},
        "negative-variance": {"x": {"temperature": 50, "catalyst": "A"}, "y": 1, "noise_var": -1},
    }
    for code, body in refused.items():
        answer = client.post("/api/tell", content=json.dumps(body), headers={"content-type": "application/json"})
        assert answer.status_code == 400 and answer.json()["code"] == code
    assert "code" not in client.post("/api/tell", json={"number": 7, "y": 1}).json()
    described = client.get("/api/openapi.json").json()["components"]["schemas"]["Error"]
    assert described["required"] == ["error"] and described["properties"].keys() == {"error", "code", "values"}
    assert all(code in described["properties"]["code"]["description"] for code in ("outside", *refused))


def test_fixed_coordinates_stay_fixed(client: Any) -> None:
    (trial,) = post(client, "ask", fixed={"temperature": 21.5})["trials"]
    assert trial["x"]["temperature"] == 21.5 and trial["fixed"] == {"temperature": 21.5}
    post(client, "tell", number=0, y=1.0)
    fixed = json.dumps({"catalyst": "B"})
    assert client.get("/api/recommend", params={"fixed": fixed}).json()["x"]["catalyst"] == "B"


def test_parameters_without_names_go_by_number(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path, space=[(0.0, 1.0), (0.0, 1.0)])) as client:
        (trial,) = post(client, "ask", fixed={"1": 0.25})["trials"]
        assert trial["x"][1] == 0.25
        assert post(client, "tell", x=[0.5, 0.5], y=3.0)["trial"]["origin"] == "user"


def test_the_same_value_counts_once_and_a_different_one_is_never_lost(client: Any) -> None:
    post(client, "ask")
    for _ in range(3):
        post(client, "tell", number=0, y=1.5)
    refused = client.post("/api/tell", json={"number": 0, "y": 1.75})
    assert refused.status_code == 409 and refused.json()["trial"]["y"] == 1.5
    assert post(client, "tell", number=0, y=1.75, again=True)["trial"]["number"] == 1
    assert [one["y"] for one in client.get("/api/trials").json()["trials"]] == [1.5, 1.75]
    assert client.post("/api/fail", json={"number": 0}).status_code == 409


def test_a_failed_trial_can_be_corrected_to_a_value(client: Any) -> None:
    post(client, "ask", n=2)
    post(client, "fail", number=0)
    post(client, "fail", number=0)  # the same again changes nothing
    assert client.post("/api/tell", json={"number": 0, "y": 1.0}).status_code == 409
    assert post(client, "correct", number=0, y=1.0)["trial"]["status"] == "told"
    assert post(client, "forget", number=1) == {"number": 1}
    assert client.post("/api/tell", json={"number": 1, "y": 1.0}).status_code == 409  # with again it counts


def test_concurrent_tells_lose_nothing(tmp_path: Path) -> None:
    """Eight people tell values of five trials: each is accepted, added as a replicate, or refused with 409."""
    with client_for(create_study(tmp_path)) as client:
        post(client, "ask", n=5)

        def tell(k: int) -> tuple[int, float, int, bool]:
            number, y, again = k % 5, float(k), k % 2 == 0
            answer = client.post("/api/tell", json={"number": number, "y": y, "again": again})
            return number, y, answer.status_code, again

        with ThreadPoolExecutor(8) as people:
            answers = list(people.map(tell, range(40)))
        values = [one["y"] for one in client.get("/api/trials").json()["trials"]]
        taken = [y for _, y, status, _ in answers if status == 200]
        assert sorted(values) == sorted(taken)
        assert {status for _, _, status, again in answers if again} == {200}
        assert {status for _, _, status, again in answers if not again} <= {200, 409}
        assert {number for number, _, status, _ in answers if status == 200} == set(range(5))


@pytest.mark.parametrize(
    ("action", "body", "status"),
    [
        ("tell", {"number": 0}, 400),
        ("tell", {"y": 1.0}, 400),
        ("tell", {"number": 0, "y": "much"}, 400),
        ("tell", {"number": 0, "y": True}, 400),
        ("tell", {"number": 0, "y": 1.0, "noise_var": -1}, 400),
        ("tell", {"number": 0, "y": 1e300}, 400),
        ("tell", {"number": 0, "y": 1.0, "colour": "red"}, 400),
        ("tell", {"number": 0.5, "y": 1.0}, 400),
        ("tell", {"number": 10**30, "y": 1.0}, 400),
        ("tell", {"number": 7, "y": 1.0}, 404),
        ("tell", {"x": {"temperature": 500.0, "catalyst": "A"}, "y": 1.0}, 400),
        ("tell", {"x": "everywhere", "y": 1.0}, 400),
        ("ask", {"n": 0}, 400),
        ("ask", {"n": 101}, 400),
        ("ask", {"fixed": {"pressure": 1}}, 400),
        ("ask", {"fixed": [1]}, 400),
        ("fail", {"number": 0, "why": 5}, 400),
        ("correct", {"number": 0, "y": 1.0}, 409),
        ("retract", {"number": 0}, 409),
        ("reject", {"number": -1}, 400),
    ],
)
def test_bad_arguments_are_refused_with_a_reason(client: Any, action: str, body: dict[str, Any], status: int) -> None:
    post(client, "ask")
    answer = client.post(f"/api/{action}", json=body)
    assert answer.status_code == status, answer.text
    assert len(answer.json()["error"]) > 10
    assert client.get("/api/study").json()["trials"]["pending"] == 1


def test_every_candidate_is_suggested_once(tmp_path: Path) -> None:
    import numpy as np

    with client_for(create_study(tmp_path, space=np.array([[0.0], [1.0]]), repeats=False)) as client:
        assert len(post(client, "ask", n=5)["trials"]) == 2
        assert client.post("/api/ask", json={}).status_code == 410


def test_several_studies_are_served_side_by_side(tmp_path: Path) -> None:
    path = create_study(tmp_path, "one")
    create_study(tmp_path, "a/b <script>")
    with client_for(path) as client:
        studies = client.get("/api/studies").json()["studies"]
        assert {one["name"] for one in studies} == {"one", "a/b <script>"}
        assert client.get("/api/best").status_code == 404
        for one in studies:
            assert client.get("/api/study", params={"study": one["study"]}).json()["name"] == one["name"]
        assert client.get("/api/study?study=../lab.db").status_code == 404


def test_the_summary_is_computed_in_the_background(client: Any) -> None:
    for trial in post(client, "ask", n=4)["trials"]:
        post(client, "tell", number=trial["number"], y=-((trial["x"]["temperature"] - 60.0) ** 2))
    wait_until(lambda: client.get("/api/known").json()["now"])
    answer = client.get("/api/known").json()
    assert answer["known"]["t"] == 4 and answer["known"]["advice"] in ("go on", "stop", "distrust")


def test_the_description_is_valid_and_complete(client: Any) -> None:
    from openapi_spec_validator import validate

    from gpmi.serve.api import GET_ENDPOINTS, POST_ENDPOINTS
    from gpmi.serve.openapi import MEASURED

    description = client.get("/api/openapi.json").json()
    validate(description)
    assert set(description["paths"]) == {f"/api/{name}" for name in (*GET_ENDPOINTS, *POST_ENDPOINTS)}
    for name, method in {**dict.fromkeys(GET_ENDPOINTS, "get"), **dict.fromkeys(POST_ENDPOINTS, "post")}.items():
        assert method in description["paths"][f"/api/{name}"]
    assert set(MEASURED) == {"y", *Details.__annotations__}  # the fields of an outcome, all described


def test_watchers_are_notified_of_changes_that_another_page_read_first(tmp_path: Path) -> None:
    """A page that is opened just after a change must not hide the change from pages that are already open."""
    session = Session(create_study(tmp_path), "default", "lab", "default")

    async def watched() -> list[int]:
        live = LiveUpdates(session, stopping=lambda: False)
        live.up_to_date = lambda: True  # type: ignore[method-assign]  # a computation would notify them, too
        states = live.events()
        seen = [await anext(states)]
        session.observe({"temperature": 30.0, "catalyst": "A"}, 1.0)
        live.note_seq(session.seq())
        seen.append(await asyncio.wait_for(anext(states), LIMIT))
        await states.aclose()  # type: ignore[attr-defined]
        return [int(one.split()[1]) for one in seen]

    first, second = asyncio.run(watched())
    assert second == first + 1
    session.close()


# With a real server


def test_entries_are_streamed_as_they_are_written_and_missed_ones_are_sent_later(tmp_path: Path) -> None:
    import httpx2

    path = create_study(tmp_path)
    with running_server(path) as base, gpmi.study(path) as worker:
        found: list[str] = []
        with httpx2.stream("GET", f"{base}/api/events", timeout=LIMIT) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = answer.iter_lines()
            for line in lines:
                found += [line] if line.startswith(("event:", "id:")) else []
                if line == "event: created":
                    worker.tell(worker.ask(), 1.0)
                if line == "event: told":
                    break
        assert found == ["id: 0", "event: created", "id: 1", "event: asked", "id: 2", "event: told"]
        with httpx2.stream("GET", f"{base}/api/events", headers={"Last-Event-ID": "1"}, timeout=LIMIT) as answer:
            assert next(line for line in answer.iter_lines() if line.startswith("id:")) == "id: 2"
