"""Beside a result: values that were used instead, skipped experiments, notes, names, the sheet, and what is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratory import Page, client_for, create_study, follow, send, text_of
from sample_ledgers import SampleLedger

import gpmi
from gpmi.serve.model_worker import STATISTICS, draw_pictures, summarise

AT = "/study/default"
SPACE = {
    "A": (0.0, 1.0),
    "B": (0.0, 1.0),
    "C": (0.0, 1.0),
    "temperature": gpmi.Real(20.0, 90.0, unit="°C"),
    "solvent": ["THF", "DMF"],
}
GOALS = {"yield": "max", "cost": "min"}
# What a chemist need not know. "sd" is a word of its own.
JARGON = re.compile(r"residual|regret|lock-in|sobol|\bsd\b|kernel|standard deviation|hypervolume|posterior", re.I)


def measured(x: Any) -> dict[str, float]:
    hot = (x["temperature"] - 60.0) / 25.0
    return {"yield": 80.0 - 30.0 * hot**2 + 10.0 * x["A"], "cost": 3.0 + 5.0 * x["A"] + (x["solvent"] == "DMF")}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return create_study(tmp_path, space=SPACE, constraints=["A + B + C == 1"], goals=GOALS)


@pytest.fixture
def client(path: str) -> Iterator[Any]:
    with client_for(path) as client:
        yield client


def asked(client: Any, n: int = 1) -> Any:
    return follow(client, send(client, client.get(AT), "/ask", n=str(n)))


def trial(client: Any, number: int = 0) -> Any:
    return client.get("/api/trials").json()["trials"][number]


def shown(page: Any, name: str) -> str:
    """Return what the form of the results has in a field."""
    return str(Page(page.text).form("/results").fields[name])


def test_what_was_used_is_what_is_recorded_and_the_suggestion_is_kept(client: Any) -> None:
    page = asked(client)
    before = trial(client)["x"]
    used = {"used-0-3": "85", "y-0-0": "71.2", "y-0-1": "4", "who": "Anna", "note-0": "heated too far"}
    done = follow(client, send(client, page, "/results", **used))
    told = trial(client)
    assert told["x"] == {**before, "temperature": 85.0} and told["outputs"] == {"yield": 71.2, "cost": 4.0}
    assert told["suggested"] == before and told["number"] == 0
    assert [(one["who"], one["text"], one["did"]) for one in told["notes"]] == [("Anna", "heated too far", "told")]
    assert "suggested: temperature" in text_of(done) and "Anna: heated too far" in text_of(done)
    own = text_of(client.get(f"{AT}/trial/0"))
    assert "Was suggested" in own and "Anna entered a result" in own and "heated too far" in own


def test_values_that_are_left_alone_keep_all_their_digits(client: Any) -> None:
    page = asked(client)
    before = trial(client)["x"]
    follow(client, send(client, page, "/results", **{"y-0-0": "71.2"}))
    assert trial(client)["x"] == before and trial(client)["suggested"] is None and trial(client)["notes"] == []


def test_components_that_are_changed_must_fit_their_sum(client: Any) -> None:
    page = asked(client)
    typed = {"used-0-0": "0,35", "used-0-1": "0.317", "used-0-2": "0.3", "y-0-0": "71.2", "note-0": "weighed again"}
    wrong = send(client, page, "/results", **typed)
    assert wrong.status_code == 400 and "“A + B + C = 1” must hold" in text_of(wrong)
    assert "off by 0.033" in text_of(wrong) and trial(client)["status"] == "pending"
    assert {name: shown(wrong, name) for name in typed} == typed  # nothing is lost
    follow(client, send(client, wrong, "/results", **{"used-0-2": "0.333"}))
    assert trial(client)["x"] | {"temperature": 0, "solvent": ""} == {
        **{"A": 0.35, "B": 0.317, "C": 0.333, "temperature": 0, "solvent": ""}
    }


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("used-0-3", "95", "temperature is 95, outside 20 to 90"),
        ("used-0-3", "hot", "temperature: 'hot' is not a number"),
        ("used-0-3", "", "temperature is empty"),
        ("used-0-4", "water", "solvent is 'water'; choose one of the listed values"),
        ("note-0", "x" * 2001, "text has 2001 characters"),
        ("files-0", ",".join("abcdefghijklmnopqrstuvwxyz"), "files has 26 names"),
        ("who", "x" * 81, "who has 81 characters"),
    ],
)
def test_bad_input_is_refused_in_words_and_nothing_typed_is_lost(
    client: Any, field: str, typed: str, message: str
) -> None:
    page = asked(client, 2)
    entered = {"y-0-0": "71.2", field: typed, "y-1-0": "50"}
    wrong = send(client, page, "/results", **entered)
    assert wrong.status_code == 400 and message in text_of(wrong)
    assert shown(wrong, "y-0-0") == "71.2"
    assert shown(wrong, field) == (typed if field != "used-0-4" else trial(client)["x"]["solvent"])  # it has options
    assert trial(client, 0)["status"] == "pending"
    assert trial(client, 1)["status"] == ("pending" if field == "who" else "told")  # the other row is saved


def test_what_is_beside_a_result_that_cannot_be_read_waits_for_it(client: Any) -> None:
    typed = {"used-0-3": "85", "note-0": "cloudy", "y-0-0": "lots", "who": "Anna"}
    wrong = send(client, asked(client), "/results", **typed)
    assert wrong.status_code == 400 and {name: shown(wrong, name) for name in typed} == typed
    assert trial(client)["suggested"] is None and trial(client)["notes"] == []
    follow(client, send(client, wrong, "/results", **{"y-0-0": "70"}))
    assert trial(client)["x"]["temperature"] == 85.0 and [one["text"] for one in trial(client)["notes"]] == ["cloudy"]


def test_a_result_beside_one_that_cannot_be_read_is_saved_once(client: Any) -> None:
    typed = {"used-0-3": "85", "note-0": "cloudy", "y-0-0": "70", "y-0-1": "much"}
    wrong = send(client, asked(client), "/results", **typed)
    assert wrong.status_code == 400 and trial(client)["outputs"] == {"yield": 70.0}
    follow(client, send(client, wrong, "/results", **{"y-0-1": "4"}))
    assert trial(client)["outputs"] == {"yield": 70.0, "cost": 4.0} and trial(client)["x"]["temperature"] == 85.0
    assert [one["text"] for one in trial(client)["notes"]] == ["cloudy"]


def test_other_values_can_be_planned_before_there_is_a_result(client: Any) -> None:
    page = follow(client, send(client, asked(client), "/results", **{"used-0-3": "85"}))
    assert trial(client)["x"]["temperature"] == 85.0 and trial(client)["status"] == "pending"
    assert "is done with other values than suggested" in text_of(page) and "85.00 suggested" in text_of(page)


def test_a_page_that_is_out_of_date_does_not_move_a_trial_back(client: Any) -> None:
    page = asked(client, 2)
    follow(client, send(client, page, "/results", **{"used-0-3": "85", "once": "a"}))
    follow(client, send(client, page, "/results", **{"y-1-0": "50", "once": "b"}))
    assert trial(client)["x"]["temperature"] == 85.0 and trial(client, 1)["status"] == "told"


def test_two_people_at_one_trial_lose_nothing(client: Any) -> None:
    page = asked(client)
    follow(client, send(client, page, "/results", **{"y-0-0": "70", "once": "a"}))
    typed = {"used-0-3": "85", "y-0-0": "60", "note-0": "mine", "who": "Bo", "once": "b"}
    late = send(client, page, "/results", **typed)
    assert late.status_code == 409 and "With other values: 85" in text_of(late)
    follow(client, send(client, late, "/results", again="0"))
    assert trial(client)["outputs"] == {"yield": 70.0}
    added = trial(client, 1)
    assert added["x"]["temperature"] == 85.0 and added["outputs"] == {"yield": 60.0}
    assert [(one["who"], one["text"]) for one in added["notes"]] == [("Bo", "mine")]


def test_a_skipped_experiment_has_a_reason_in_the_history(client: Any) -> None:
    page = asked(client)
    done = follow(client, send(client, page, "/results", reject="0", **{"why-0": "no THF left", "who": "Anna"}))
    assert "Trial 0 was skipped." in text_of(done)
    assert (trial(client)["status"], trial(client)["why"]) == ("rejected", "no THF left")
    history = text_of(client.get(f"{AT}/trials"))
    assert "skipped" in history and "no THF left" in history and "Anna" in history


def test_the_browser_remembers_the_name(client: Any) -> None:
    page = asked(client)
    follow(client, send(client, page, "/results", **{"y-0-0": "70", "who": "Zoë O’Neil"}))
    assert shown(asked(client), "who") == "Zoë O’Neil"
    send(client, client.get(f"{AT}/trial/0"), "/trial/0", word="retract")
    assert [one["did"] for one in trial(client)["notes"]] == ["told", "retracted"]
    assert {one["who"] for one in trial(client)["notes"]} == {"Zoë O’Neil"}


def test_the_history_is_searched_by_names_notes_and_files(client: Any) -> None:
    page = asked(client, 3)
    rows = {"y-0-0": "70", "note-0": "cloudy <b>", "files-0": "nmr_1.pdf, ir.png", "y-1-0": "61.5", "who": "Anna"}
    follow(client, send(client, page, "/results", **rows))

    def found(q: str) -> list[str]:
        text = client.get(f"{AT}/trials", params={"q": q}).text
        return re.findall(r"/trial/([0-9]+)\"", text)

    assert found("cloudy") == ["0"] and found("NMR_1") == ["0"] and found("anna") == ["1", "0"]
    assert found("anna 61.5") == ["1"] and found("waiting") == ["2"] and found("nobody") == []
    assert "cloudy &lt;b&gt;" in client.get(f"{AT}/trials").text
    assert 'value="&lt;x&gt;"' in client.get(f"{AT}/trials", params={"q": "<x>"}).text


def test_a_note_is_added_later_on_the_page_of_a_trial(client: Any) -> None:
    asked(client)
    at = f"{AT}/trial/0"
    wrong = send(client, client.get(at), "/trial/0", word="note")
    assert wrong.status_code == 400 and "There is no note and no file" in text_of(wrong)
    long = send(client, client.get(at), "/trial/0", word="note", **{"note-0": "x" * 2001})
    assert long.status_code == 400 and "x" * 2001 in long.text
    page = follow(
        client, send(client, client.get(at), "/trial/0", word="note", **{"note-0": "seen", "files-0": "a.pdf"})
    )
    assert "The note was saved." in text_of(page) and "Files: a.pdf." in text_of(page)


def test_the_sheet_has_blank_fields_and_plates(client: Any) -> None:
    assert "nothing to print" in text_of(client.get(f"{AT}/sheet"))
    asked(client, 30)
    text = client.get(f"{AT}/sheet").text
    assert text.count('<td class="blank"></td>') == 30 * 2 and "temperature (°C)" in text
    plates = client.get(f"{AT}/sheet", params={"plate": "24"}).text
    assert plates.count('class="print-plate"') == 2 and "#29" in plates
    csv = client.get(f"{AT}/sheet.csv", params={"plate": "24"}).text.splitlines()
    assert csv[0] == "well,trial,A,B,C,temperature,solvent" and len(csv) == 31 and csv[25].startswith("A1,24,")
    assert client.get(f"{AT}/sheet", params={"plate": "7"}).status_code == 200
    assert client.get("/study/nothing/sheet").status_code == 404


# The API


def test_programs_move_annotate_and_skip(client: Any) -> None:
    client.post("/api/ask", json={"n": 2})
    x = {**trial(client)["x"], "temperature": 33.0}
    moved = client.post("/api/move", json={"number": 0, "x": x}).json()["trial"]
    assert moved["x"]["temperature"] == 33.0 and moved["suggested"]["temperature"] != 33.0
    noted = client.post("/api/annotate", json={"number": 0, "text": "by a robot", "who": "R2", "files": ["a"]})
    assert noted.json()["trial"]["notes"][0]["files"] == ["a"]
    assert client.post("/api/reject", json={"number": 1, "why": "broken"}).json()["trial"]["why"] == "broken"
    assert client.post("/api/move", json={"number": 1, "x": x}).status_code == 409
    bad = client.post("/api/move", json={"number": 0, "x": {**x, "A": 2.0}})
    assert bad.status_code == 400 and "A is 2.0, outside" in bad.json()["error"]
    assert client.post("/api/annotate", json={"number": 0}).status_code == 400
    assert client.post("/api/annotate", json={"number": 9, "text": "x"}).status_code == 404
    assert client.post("/api/annotate", json={"number": 0, "text": "x", "files": "a"}).status_code == 400


# "Can I stop?"


def test_nothing_is_claimed_before_there_are_enough_results(path: str) -> None:
    with gpmi.study(path) as study:
        for n in range(4):
            found = summarise(study)
            decision = found.facts.decision
            assert decision.kind == "too early" and "%" not in decision.text
            more = f"gpmi can say more after {18 - n} more results."
            assert decision.text == f"Too early to say: {more}" and decision.needed == 18 - n
            one = study.ask()
            study.tell(one, measured(one.x))


def test_the_answer_agrees_with_the_ledger() -> None:
    space = {"x": (0.0, 1.0)}
    optimizer = gpmi.Optimizer(space, seed=0)
    seen, before = set(), 30
    for _ in range(30):
        point = optimizer.ask()
        optimizer.tell(point, -((point["x"] - 0.3) ** 2))
        ledger = optimizer.ledger
        answer = ledger.can_stop
        seen.add(answer.kind)
        if ledger.n < ledger.needed:
            assert answer.kind == "too early" and answer.needed == 15 - ledger.n
        elif ledger.advice.what == "stop":
            assert answer.answer == "yes" and answer.text.startswith("Yes, you can stop")
        else:
            assert answer.answer != "yes" and not answer.text.startswith("Yes")
        assert answer.needed is None or answer.needed < before  # the number of results to wait for never rises
        before = answer.needed or 0
        assert answer.text.count(". ") <= 1 and not JARGON.search(answer.text)
    assert "too early" in seen and len(seen) > 1


@pytest.mark.parametrize(
    ("fidelity", "where"),
    [(gpmi.Fidelity({"coarse": 1, "fine": 20}), "at mesh fine"), (gpmi.Fidelity(1, 9), "at mesh 9")],
)
def test_only_results_at_the_target_count(fidelity: gpmi.Fidelity, where: str) -> None:
    optimizer = gpmi.Optimizer({"x": (0.0, 1.0), "mesh": fidelity}, seed=0)
    for _ in range(3):
        point = optimizer.ask()
        optimizer.tell(point, point["x"])
    answer = optimizer.ledger.can_stop
    reached = sum(trial.x["mesh"] == fidelity.target for trial in optimizer.trials)
    assert answer.text == f"Too early to say: gpmi can say more after {15 - reached} more results {where}."


@pytest.mark.parametrize(("chance", "words"), [(0.001, "is below 1"), (0.3, "is about 30"), (0.999, "is above 99")])
def test_chances_are_english(chance: float, words: str) -> None:
    assert words in SampleLedger(chance).can_stop.text


def test_the_answer_of_equal_results_and_of_several_objectives() -> None:
    optimizer = gpmi.Optimizer({"x": (0.0, 1.0)}, seed=0)
    for _ in range(8):
        optimizer.tell(optimizer.ask(), 1.0)
    assert "the same" in optimizer.ledger.can_stop.text
    several = gpmi.Optimizer({"x": (0.0, 1.0)}, goals={"a": "max", "b": "min", "c": gpmi.AtLeast(0.0)}, seed=0)
    for n in range(1, 17):
        point = several.ask()
        several.tell(point, {"a": point["x"], "b": point["x"] ** 2, "c": 1.0 + 0.1 * point["x"]})
        answer = several.ledger.can_stop
        if n < 6:
            assert answer.needed == 15 - n, (n, answer)
    assert not JARGON.search(answer.text)


def test_the_words_of_statisticians_are_in_their_fold_alone(path: str) -> None:
    with gpmi.study(path) as study:
        for _ in range(20):
            one = study.ask()
            study.tell(one, measured(one.x))
        sections = draw_pictures(study)
    assert {one.id for one in sections} > {"mixture", "slices", "importance", "calibration"}
    plain = [one for one in sections if one.id not in STATISTICS]
    for one in plain:
        assert not (found := JARGON.findall(re.sub("<[^>]*>", " ", one.title + one.html))), (one.id, found)
    inside = " ".join(one.html for one in sections if one.id in STATISTICS)
    assert "Sobol" in inside and "residuals" in inside  # the test can fail
    with client_for(path) as client:
        wait_for_pictures(client)
        page = client.get(AT).text
    outside = re.sub(r'<details id="statistics".*', "", page, flags=re.S)
    assert 'id="statistics"' in page and not JARGON.search(re.sub("<[^>]*>", " ", outside))
    assert 'id="answer"' in outside


def wait_for_pictures(client: Any) -> None:
    from waiting import wait_until

    wait_until(lambda: "being drawn" not in client.get(AT).text and 'id="statistics"' in client.get(AT).text)
