"""The pages and the API of studies with a fidelity: levels, steps, curves, stopped trials, and how they are created."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratory import Page, client_for, create_study, follow, send, text_of
from sample_fidelities import LEVELS, STEPS, accuracy, drag

import gpmi
from gpmi.serve.study_form import space_of
from gpmi.serve.trial_table import format_result

AT = "/study/default"


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[Any]:
    with client_for(create_study(tmp_path, space=STEPS)) as one:
        yield one


@pytest.fixture
def levels(tmp_path: Path) -> Iterator[Any]:
    with client_for(create_study(tmp_path, space=LEVELS)) as one:
        yield one


def asked(client: Any, **body: Any) -> dict[str, Any]:
    (trial,) = client.post("/api/ask", json=body).json()["trials"]
    return dict(trial)


def trials(client: Any) -> list[Any]:
    return list(client.get("/api/trials").json()["trials"])


def run_until_one_stops(client: Any) -> dict[str, Any]:
    """Report the curves of trials until one of them is stopped, and return it."""
    for _ in range(12):
        trial = asked(client)
        for step in range(1, 53):
            y = accuracy(trial["x"], step)
            answer = client.post("/api/report", json={"number": trial["number"], "step": step, "y": y})
            assert answer.status_code == 200
            if answer.json()["answer"] == "stop":
                break
        if answer.json()["trial"]["status"] == "stopped":
            return dict(answer.json()["trial"])
    raise AssertionError("no trial was stopped")


# Steps


def test_steps_are_reported_and_a_stopped_trial_is_shown_in_words(steps: Any) -> None:
    stopped = run_until_one_stops(steps)
    number, last = stopped["number"], stopped["curve"][-1]["step"]
    assert last < 52 and stopped["y"] is None and [one["step"] for one in stopped["curve"]] == [*range(1, last + 1)]
    for address in (AT, f"{AT}/trials", f"{AT}/trials?status=stopped"):
        assert f"stopped at step {last}: will hardly win" in text_of(steps.get(address))
    assert f"{last} of 52" in text_of(steps.get(f"{AT}/trials"))
    only = steps.get(f"{AT}/trials?status=stopped").text
    assert re.findall(r'href="/study/default/trial/(\d+)"', only) == [str(number)] and len(trials(steps)) > 1
    assert "1 stopped" in text_of(steps.get(AT))
    page = steps.get(f"{AT}/trial/{number}")
    assert "Its curve" in text_of(page) and f"at step {last}, stopped." in text_of(page)
    (drawn,) = re.findall(r"<polyline[^>]*>", page.text)
    assert len(drawn.split()) > last


def test_the_value_at_the_last_step_is_the_result(steps: Any) -> None:
    number = asked(steps)["number"]
    for step, y in ((1, 0.1), (52, 0.9)):
        answer = steps.post("/api/report", json={"number": number, "step": step, "y": y}).json()
    assert answer["answer"] == "stop" and answer["trial"]["status"] == "told" and answer["trial"]["y"] == 0.9
    assert answer["trial"]["curve"] == [{"step": 1, "y": 0.1}, {"step": 52, "y": 0.9}]


def test_a_step_counts_once_and_another_value_is_a_conflict(steps: Any) -> None:
    number = asked(steps)["number"]
    body = {"number": number, "step": 3, "y": 0.5}
    assert [steps.post("/api/report", json=body).json()["answer"] for _ in range(2)] == ["continue"] * 2
    other = steps.post("/api/report", json={**body, "y": 0.6})
    assert other.status_code == 409 and "already has 0.5 at step 3" in other.json()["error"]
    assert other.json()["trial"]["curve"] == [{"step": 3, "y": 0.5}] == trials(steps)[0]["curve"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"step": 1, "y": 0.5}, "number is missing"),
        ({"number": 0, "y": 0.5}, "step is missing"),
        ({"number": 0, "step": 1}, "y is missing"),
        ({"number": 0, "step": 0, "y": 0.5}, "step is 0"),
        ({"number": 0, "step": 1.5, "y": 0.5}, "give a whole number"),
        ({"number": 0, "step": 53, "y": 0.5}, "epoch goes from 1 to 52"),
        ({"number": 0, "step": 1, "outputs": {"a": 1}}, "no goals"),
    ],
)
def test_a_report_that_cannot_be_meant_is_refused(steps: Any, body: dict[str, Any], words: str) -> None:
    asked(steps)
    answer = steps.post("/api/report", json=body)
    assert answer.status_code == 400 and words in answer.json()["error"]
    assert trials(steps)[0]["curve"] == []


def test_a_report_for_a_trial_that_has_ended_changes_nothing(steps: Any) -> None:
    number = asked(steps)["number"]
    steps.post("/api/tell", json={"number": number, "y": 0.9})
    answer = steps.post("/api/report", json={"number": number, "step": 4, "y": 0.5})
    assert answer.status_code == 409 and "already has the value 0.9" in answer.json()["error"]


def test_a_study_without_steps_takes_no_report(levels: Any) -> None:
    number = asked(levels)["number"]
    answer = levels.post("/api/report", json={"number": number, "step": 1, "y": 0.5})
    assert answer.status_code == 400 and "has no steps to report" in answer.json()["error"]
    assert "It is on its way" not in text_of(levels.get(f"{AT}/trial/{number}"))


def test_a_step_is_typed_on_the_page_of_a_trial(steps: Any) -> None:
    number = asked(steps)["number"]
    address = f"{AT}/trial/{number}"
    assert "The result is the value at epoch 52." in text_of(steps.get(AT))

    def typed(**cells: str) -> Any:
        return send(steps, steps.get(address), address, word="report", **cells)

    done = follow(steps, typed(step="7", y="0,5"))
    assert "Step 7 saved. Go on." in text_of(done) and "0,5 was read as 0.5" in text_of(done)
    assert "running, at step 7" in text_of(steps.get(address))
    for cells, words in (
        ({"step": "soon", "y": "0.6"}, "give a whole number"),
        ({"step": "8", "y": ""}, "no value at this step"),
        ({"step": "8", "y": "0.6 ± 0.1"}, "has no error bar"),
        ({"step": "3", "y": "0.6"}, "report in order"),
        ({"step": "7", "y": "0.6"}, "already has 0.5 at step 7"),
    ):
        answer = typed(**cells)
        assert answer.status_code == 400 and words in text_of(answer)
        kept = [one.fields for one in Page(answer.text).forms if "step" in one.fields]
        assert [(one["step"], one["y"]) for one in kept] == [(cells["step"], cells["y"])]
    assert [one["step"] for one in trials(steps)[0]["curve"]] == [7]


def test_a_stopped_trial_that_went_on_takes_its_result(steps: Any) -> None:
    stopped = run_until_one_stops(steps)
    address = f"{AT}/trial/{stopped['number']}"
    page = steps.get(address)
    assert "It went on to the end: enter its result" in text_of(page)
    assert "Saved." in text_of(follow(steps, send(steps, page, address, word="tell", y="0.7")))
    (trial,) = [one for one in trials(steps) if one["number"] == stopped["number"]]
    assert trial["status"] == "told" and trial["y"] == 0.7 and trial["curve"][-1] == {"step": 52, "y": 0.7}


@pytest.mark.parametrize("action", ["fail", "correct", "reject", "forget"])
def test_what_a_stopped_trial_cannot_take_is_a_conflict_that_says_so(steps: Any, action: str) -> None:
    stopped = run_until_one_stops(steps)
    more = {"y": 1.0} if action == "correct" else {}
    answer = steps.post(f"/api/{action}", json={"number": stopped["number"], **more})
    assert answer.status_code == 409 and "was stopped at step" in answer.json()["error"]


def test_an_own_measurement_needs_no_step(steps: Any) -> None:
    done = send(steps, steps.get(AT), "/observe", own__rate="0.5", own__width="0.5", own__result="0.4")
    assert "Added as trial 0." in text_of(follow(steps, done))
    assert trials(steps)[0]["x"]["epoch"] == 52


def test_the_csv_of_a_study_has_the_curves_and_reads_back(steps: Any, tmp_path: Path) -> None:
    stopped = run_until_one_stops(steps)
    (tmp_path / "a.csv").write_text(steps.get(f"{AT}/trials.csv").text)
    read = gpmi.exchange.read_trials(tmp_path / "a.csv", STEPS)
    assert len(read[stopped["number"]].curve) == len(stopped["curve"])


# Levels


def test_results_of_lower_levels_are_entered_and_do_not_count_as_best(levels: Any) -> None:
    for mesh in ("coarse", "1"):
        trial = asked(levels, fixed={"mesh": mesh})
        page = levels.get(AT)
        assert mesh in text_of(page)
        cell = {f"y__{trial['number']}": str(drag(trial["x"]))}
        assert "1 result saved." in text_of(follow(levels, send(levels, page, "/results", **cell)))
    told = trials(levels)
    assert [one["x"]["mesh"] for one in told] == ["coarse", "1"] and told[0]["y"] > told[1]["y"]
    assert levels.get("/api/best").json()["trial"]["number"] == told[1]["number"]
    assert "trial 1" in text_of(levels.get(AT))
    assert {"mesh"} <= set(re.findall(r'scope="col">(\w+)<', levels.get(f"{AT}/trials").text))


def test_an_own_measurement_names_its_level(levels: Any) -> None:
    page = levels.get(AT)
    assert send(levels, page, "/observe", own__a="0.5", own__b="0.5", own__result="0.4").status_code == 400
    done = send(levels, page, "/observe", own__a="0.5", own__b="0.5", own__mesh="medium", own__result="0.4")
    assert "Added as trial 0." in text_of(follow(levels, done))
    assert trials(levels)[0]["x"]["mesh"] == "medium"


def test_the_api_describes_the_fidelity(tmp_path: Path) -> None:
    costs = [{"level": "coarse", "cost": 1.0}, {"level": "medium", "cost": 10.0}, {"level": "1", "cost": 60.0}]
    for name, space, said in (
        ("a", LEVELS, {"name": "mesh", "levels": costs}),
        ("b", STEPS, {"name": "epoch", "first": 1, "last": 52}),
    ):
        (tmp_path / name).mkdir()
        with client_for(create_study(tmp_path / name, space=space)) as client:
            assert client.get("/api/study").json()["fidelity"] == said


def test_a_study_without_a_fidelity_says_nothing_about_one(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path)) as client:
        assert "fidelity" not in client.get("/api/study").json() and "curve" not in asked(client)
        assert "status=stopped" not in client.get(f"{AT}/trials").text


# New studies


def row(**cells: str) -> dict[str, str]:
    """The form of a new study with a number and a row of the kind fidelity."""
    return {
        **{"name-0": "a", "lo-0": "0", "hi-0": "1", "name-1": "mesh", "kind-1": "fidelity"},
        **{f"{key}-1": value for key, value in cells.items()},
    }


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (row(options="coarse: 1, fine: 60"), gpmi.Fidelity({"coarse": 1, "fine": 60})),
        (row(options="coarse: 0,5; a:b: 60"), gpmi.Fidelity({"coarse": 0.5, "a:b": 60})),
        (row(options="coarse\nfine\n"), gpmi.Fidelity(["coarse", "fine"])),
        (row(lo="1", hi="52", unit="epochs"), gpmi.Fidelity(1, 52, unit="epochs")),
    ],
)
def test_a_fidelity_is_read_as_it_was_meant(typed: dict[str, str], meant: gpmi.Fidelity) -> None:
    read = space_of(typed)["mesh"]
    assert read == meant and read.unit == meant.unit


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (row(), "“From” is empty; give the first and the last step, or levels"),
        (row(options="coarse: 1"), "Fidelity has 1 levels; give 2 to 20"),
        (row(options="coarse: 1, fine"), "give the cost of every level, or of none"),
        (row(options="coarse: 60, fine: 1"), "from the cheapest to the most expensive"),
        (row(options="coarse: 0, fine: 1"), "give a number above 0"),
        (row(options="coarse: cheap, fine: 1"), "'cheap' is not a number"),
        (row(options="a: 1, a: 2"), "'a'"),
        (row(options=": 1, fine: 2"), "has no level"),
        (row(options="coarse:, fine: 2"), "has no cost after its colon"),
        (row(options="coarse: 1, fine: 2", lo="1"), "it has options and steps"),
        (row(lo="1", hi="52", log="on"), "no logarithmic scale"),
        (row(lo="5", hi="5"), "“From” must be at least 1"),
        (row(lo="1.5", hi="52"), "give whole numbers"),
        ({**row(lo="1", hi="9"), "name-2": "t", "kind-2": "fidelity", "lo-2": "1", "hi-2": "9"}, "several fidelities"),
    ],
)
def test_a_fidelity_that_cannot_be_meant_creates_no_study_and_keeps_what_was_typed(
    tmp_path: Path, typed: dict[str, str], words: str
) -> None:
    path = tmp_path / "new.db"
    with client_for(str(path)) as client:
        answer = send(client, client.get("/new"), "/new/parameters", study="x", **typed)
        assert answer.status_code == 400 and words in text_of(answer)
        fields = Page(answer.text).form("/new/parameters").fields
        assert {key: fields.get(key) for key in typed} == typed
        assert client.get("/api/studies").json() == {"studies": []}


def test_a_study_with_a_fidelity_is_created_on_the_page(tmp_path: Path) -> None:
    with client_for(str(tmp_path / "new.db")) as client:
        page = follow(
            client, send(client, client.get("/new"), "/new/parameters", study="x", **row(options="c: 1, f: 9"))
        )
        assert "The study was created." in text_of(page)
        assert client.get("/api/study").json()["fidelity"]["levels"][-1] == {"level": "f", "cost": 9.0}
        assert asked(client)["x"]["mesh"] in ("c", "f")


# Words


def test_words_for_trials_on_their_way() -> None:
    opt = gpmi.Optimizer(STEPS, seed=0)
    opt.ask()
    assert format_result(opt.trials[0]) == "waiting"
    opt.report(0, 4, 0.5)
    assert format_result(opt.trials[0]) == "running, at step 4"
