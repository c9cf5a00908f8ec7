"""`gpmi serve` for studies with goals: outputs that come one by one, the front, the choice of a point, and the API."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from laboratory import Page, client_for, create_study, follow, send, text_of
from waiting import wait_until

import gpmi
from gpmi.serve import model_worker
from gpmi.serve.cell_parsing import parse_table
from gpmi.serve.output_fields import outputs_of
from gpmi.serve.study_form import goals_of
from gpmi.storage.errors import Unavailable
from gpmi.trials.named_goals import NamedGoals
from gpmi.trials.value_goal import MAXIMISE

AT = "/study/default"
EVIL = "<script>alert('x')</script>"
GOALS: dict[str, Any] = {
    "yield": gpmi.Max(at_least=10.0),
    "cost": "min",
    "purity": gpmi.AtLeast(0.9),
    "colour": None,
}
NAMES = tuple(GOALS)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return create_study(tmp_path, goals=GOALS)


@pytest.fixture
def client(path: str) -> Iterator[Any]:
    with client_for(path) as one:
        yield one


def suggested(client: Any, n: int) -> Any:
    return follow(client, send(client, client.get(AT), "/ask", n=str(n)))


def trials(client: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/api/trials").json()["trials"]
    return found


def outputs(client: Any) -> list[dict[str, float]]:
    return [one["outputs"] for one in trials(client)]


def post(client: Any, action: str, **body: Any) -> Any:
    answer = client.post(f"/api/{action}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def measured(x: dict[str, Any]) -> dict[str, float]:
    """What an experiment measures: hot ones yield more, cost more and are less pure."""
    hot = (x["temperature"] - 20.0) / 70.0
    metal = 0.0 if x["catalyst"] == "A" else 5.0
    return {"yield": 20.0 + 60.0 * math.sqrt(hot) + metal, "cost": 2.0 + 8.0 * hot + metal, "purity": 1.0 - 0.15 * hot}


def fill(path: str, n: int = 8) -> None:
    with gpmi.study(path) as study:
        for _ in range(n):
            trial = study.ask()
            study.tell(trial, measured(trial.x))


def complete_page(client: Any) -> Any:
    """Return the page of the study once everything is computed."""
    wait_until(lambda: not re.search("Working out|being drawn", text_of(client.get(AT))))
    return client.get(AT)


# New studies


TYPED = {
    **{"study": "coupling", "goal": "goals", "name-0": "warmth", "lo-0": "20", "hi-0": "90"},
    **{"output-name-0": "yield", "output-kind-0": "max", "output-number-0": "40"},
    **{"output-name-1": "cost", "output-kind-1": "min"},
    **{"output-name-2": "purity", "output-kind-2": "least", "output-number-2": "0,95"},
    **{"output-name-3": "colour", "output-kind-3": "watch"},
}


def test_a_study_with_goals_is_created_by_a_form(tmp_path: Path) -> None:
    with client_for(str(tmp_path / "new.db")) as client:
        typed = {**TYPED, "output-name-7": "size", "output-kind-7": "match", "output-number-7": "42"}
        typed |= {"output-within-7": "3", "budget": "30"}
        page = follow(client, send(client, client.get("/new"), "/new/parameters", **typed))
        assert "the largest yield, 40 or more" in text_of(page)
        about = client.get("/api/study").json()
        assert about["goals"] == [
            {"output": "yield", "kind": "Max", "at_least": 40.0},
            {"output": "cost", "kind": "Min", "at_most": None},
            {"output": "purity", "kind": "AtLeast", "value": 0.95},
            {"output": "colour"},
            {"output": "size", "kind": "Match", "target": 42.0, "within": 3.0},
        ]


def test_one_result_is_the_default_and_the_page_asks_for_the_worst_you_would_accept(tmp_path: Path) -> None:
    with client_for(str(tmp_path / "new.db")) as client:
        page = client.get("/new")
        form = Page(page.text).form("/new/parameters")
        assert form.fields["goal"] == "max"
        assert "the worst you would still accept" in text_of(page) and "worth more than any rule" in text_of(page)
        typed = {"study": "simple", "name-0": "warmth", "lo-0": "20", "hi-0": "90"}
        page = follow(client, send(client, page, "/new/parameters", **typed))
        assert "goals" not in client.get("/api/study").json()
        assert "y-0" in Page(suggested_at(client, page).text).form("/results").fields


def suggested_at(client: Any, page: Any) -> Any:
    return follow(client, send(client, page, "/ask", n="1"))


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"goal": "max"}, "choose “several outputs”, or clear them"),
        ({f"output-{key}-{i}": "" for key in ("name", "number") for i in range(4)}, "There is no output"),
        ({"output-name-0": ""}, "Output 1 has no name"),
        ({"output-name-1": "yield"}, "two outputs 'yield'"),
        ({"output-number-0": "lots"}, "Output 'yield': 'lots' is not a number"),
        ({"output-number-2": ""}, "Output 'purity': the limit is empty"),
        ({"output-number-3": "5"}, "only watched, but has a number"),
        ({"output-kind-3": "match", "output-number-3": "5"}, "distance from the target that you would accept is empty"),
        ({"output-kind-3": "match", "output-number-3": "5", "output-within-3": "-1"}, "the distance is -1"),
        ({"output-within-0": "3"}, "has a distance, but no target"),
        ({"output-kind-0": "watch", "output-number-0": "", "output-kind-1": "watch"}, "No output is made large"),
        ({"output-name-0": "warmth"}, "a parameter has the same name"),
        ({"output-name-0": "y" * 81}, "at most 80"),
    ],
)
def test_invalid_goals_create_no_study_and_lose_nothing(tmp_path: Path, typed: dict[str, str], words: str) -> None:
    path = tmp_path / "new.db"
    with client_for(str(path)) as client:
        answer = send(client, client.get("/new"), "/new/parameters", **{**TYPED, **typed})
        assert answer.status_code == 400 and words in text_of(answer)
        kept = Page(answer.text).form("/new/parameters").fields
        assert all(kept[name] == text for name, text in {**TYPED, **typed}.items())
        assert not path.exists()


def test_goals_are_read_as_they_were_typed() -> None:
    assert not goals_of({"goal": "max"}).named
    found = goals_of({"goal": "goals", "output-name-0": "a", "output-kind-0": "most", "output-number-0": "3"} | {
        "output-name-1": "b", "output-kind-1": "max"})  # fmt: skip
    assert found == NamedGoals.of({"a": gpmi.AtMost(3.0), "b": "max"})
    with pytest.raises(ValueError, match="what it is for is missing"):
        goals_of({"goal": "goals", "output-name-0": "a", "output-kind-0": "both"})


TABLE = "name;solvent;yield;Cost\nA1;water;3,2 ± 0,5;4\nA2;ethanol;;\nA3;acetone;4;\nA4;hexane;failed;\n"


def test_known_results_of_a_table_go_to_the_outputs_of_their_names(tmp_path: Path) -> None:
    with client_for(str(tmp_path)) as client:
        answer = send(client, client.get("/new"), "/new/table", files={"table": ("t.csv", TABLE.encode())})
        goals = {name: text for name, text in TYPED.items() if name.startswith("output-") or name == "goal"}
        uses = {f"use-{i}": use for i, use in enumerate(("label", "use", "result", "result"))}
        done = follow(client, send(client, answer, "/new/candidates", study="solvents", **uses, **goals))
        assert "2 known results imported." in text_of(done) and "1 failed row not imported" in text_of(done)
        first, second = trials(client)
        assert (first["outputs"], first["output_noise_var"]) == ({"yield": 3.2, "cost": 4.0}, {"yield": 0.25})
        assert second["outputs"] == {"yield": 4.0} and second["label"] == "A3"
        other = send(client, answer, "/new/candidates", study="more", once="2", **goals, **uses | {"use-1": "result"})
        assert other.status_code == 400 and "'solvent' has known results, but no output has this name" in text_of(other)


# Results


def test_each_output_has_a_cell_and_may_come_later(client: Any) -> None:
    page = suggested(client, 2)
    form = Page(page.text).form("/results")
    assert {f"y-{n}-{i}" for n in (0, 1) for i in range(4)} <= set(form.fields)
    page = follow(client, send(client, page, "/results", **{"y-0-0": "71,2 ± 0.5", "y-0-1": "3.4"}))
    assert "1 result saved." in text_of(page) and "Still missing: purity" in text_of(page)
    assert outputs(client) == [{"yield": 71.2, "cost": 3.4}, {}]
    assert trials(client)[0]["output_noise_var"] == {"yield": 0.25} and trials(client)[0]["missing"] == [
        "purity",
        "colour",
    ]
    fields = Page(page.text).form("/results").fields
    assert {"y-0-2", "y-0-3", "y-1-0"} <= set(fields) and not {"y-0-0", "y-0-1"} & set(fields)
    page = follow(client, send(client, page, "/results", **{"y-0-2": "0.97", "y-1-0": "failed: spilt"}))
    assert "1 result and 1 failure saved." in text_of(page) and "Still missing" not in text_of(page)
    assert outputs(client)[0] == {"yield": 71.2, "cost": 3.4, "purity": 0.97}
    assert (trials(client)[1]["status"], trials(client)[1]["why"]) == ("failed", "spilt")
    assert "Add outputs that nobody waits for (1 experiment)" in text_of(page)  # the colour is only watched
    follow(client, send(client, page, "/results", **{"y-0-3": "5"}))
    assert outputs(client)[0]["colour"] == 5.0 and "nobody waits for" not in text_of(client.get(AT))


def test_a_wrong_cell_keeps_its_text_and_the_other_outputs_are_saved(client: Any) -> None:
    answer = send(client, suggested(client, 2), "/results", **{"y-0-0": "71", "y-0-2": "pure", "y-1-1": "1,234"})
    page = Page(answer.text)
    assert answer.status_code == 400 and "'pure' is not a number" in page.text and "can mean 1.234" in page.text
    assert outputs(client) == [{"yield": 71.0}, {}]
    assert page.form("/results").fields["y-0-2"] == "pure" and page.form("/results").fields["y-1-1"] == "1,234"
    beside = send(client, client.get(AT), "/results", **{"y-1-0": "5", "y-1-1": "failed"})
    assert beside.status_code == 400 and "leave a cell empty if only this output is missing" in text_of(beside)
    assert Page(beside.text).form("/results").fields["y-1-1"] == "failed" and outputs(client)[1] == {}


def test_a_row_that_is_gone_shows_everything_that_was_typed(client: Any) -> None:
    page = suggested(client, 1)
    follow(client, send(client, page, "/results", reject="0"))
    late = send(client, page, "/results", once="late", **{"y-0-0": "5", "y-0-1": "6"})
    assert late.status_code == 409  # a rejected trial may have been measured all the same
    unknown = send(client, page, "/results", once="later", **{"y-9-0": "5", "y-9-1": "6"})
    assert unknown.status_code == 400 and "There is no trial 9" in text_of(unknown) and "5, 6" in text_of(unknown)


def test_two_people_with_different_outputs_of_one_trial_both_keep_theirs(client: Any) -> None:
    page = suggested(client, 2)
    follow(client, send(client, page, "/results", **{"y-0-0": "71"}))
    follow(client, send(client, page, "/results", once="2", **{"y-0-1": "3", "y-0-0": "71"}))  # the same once more
    assert outputs(client)[0] == {"yield": 71.0, "cost": 3.0} and len(trials(client)) == 2


@pytest.mark.parametrize(
    ("button", "first", "added"),
    [
        ("again", {"yield": 71.0}, [{"yield": 73.0, "purity": 0.97}]),
        ("correct", {"yield": 73.0, "purity": 0.97}, []),
        ("add", {"yield": 71.0, "purity": 0.97}, []),
        ("leave", {"yield": 71.0}, []),
    ],
)
def test_the_second_one_decides_about_a_different_value(
    client: Any, button: str, first: dict[str, float], added: list[dict[str, float]]
) -> None:
    page = suggested(client, 1)
    follow(client, send(client, page, "/results", **{"y-0-0": "71"}))
    late = send(client, page, "/results", once="late", **{"y-0-0": "73", "y-0-2": "0.97"})
    assert late.status_code == 409 and "already has yield 71" in text_of(late) and outputs(client) == [{"yield": 71.0}]
    form = Page(late.text).form("/results")
    assert (form.fields["y-0-0"], form.fields["y-0-2"]) == ("73", "0.97") and (button, "0") in form.buttons
    follow(client, send(client, late, "/results", **{button: "0"}))
    assert outputs(client) == [first, *added]


def test_a_late_failure_of_a_trial_with_outputs_is_asked_about(client: Any) -> None:
    page = suggested(client, 1)
    follow(client, send(client, page, "/results", **{"y-0-0": "71"}))
    late = send(client, page, "/results", once="late", **{"y-0-2": "failed: no sample"})
    assert late.status_code == 409 and "You entered: it failed: no sample." in text_of(late)
    follow(client, send(client, late, "/results", retract="0"))
    assert trials(client)[0]["status"] == "retracted"


def test_columns_are_pasted(client: Any) -> None:
    page = suggested(client, 3)
    follow(client, send(client, page, "/results", pasted="71\t3,5\t0.95\t\n\t\t\t\nfailed: spilt\t\t\t\n"))
    assert outputs(client) == [{"yield": 71.0, "cost": 3.5, "purity": 0.95}, {}, {}]
    assert [one["status"] for one in trials(client)] == ["told", "pending", "failed"]
    follow(client, send(client, client.get(AT), "/results", **{"y-1-0": "60"}))
    follow(client, send(client, client.get(AT), "/results", pasted="Trial\tPurity\n1\t0,91\n"))
    assert outputs(client)[1] == {"yield": 60.0, "purity": 0.91}
    answer = send(client, client.get(AT), "/results", pasted="trial\tpureness\n1\t0.91")
    assert answer.status_code == 400 and "The columns are 2, the outputs 4" in text_of(answer)
    assert Page(answer.text).form("/results").fields["pasted"] == "trial\tpureness\n1\t0.91"


def test_pasted_columns_are_read_by_order_or_by_name() -> None:
    names = ["yield", "cost"]
    assert parse_table("1\t2\n\t4\n", [7, 8], names) == {(7, 0): "1", (7, 1): "2", (8, 1): "4"}
    assert parse_table("8\t1\t2\n", [7, 8], names) == {(8, 0): "1", (8, 1): "2"}
    assert parse_table("cost\ttrial\n5\t#8\n\t\n6\t7", [7, 8], names) == {(8, 1): "5", (7, 1): "6"}
    assert parse_table("yield %\tprice\n5\t6", [7], names) == {(7, 0): "5", (7, 1): "6"}
    assert parse_table("yield\n5\n6", [7, 8], names) == {(7, 0): "5", (8, 0): "6"}
    for wrong, words in (
        ("1\n2\n", "columns are 1"),
        ("1\t2\n3\t4\n5\t6", "3 lines for 2 trials"),
        ("cost\tcost\n1\t2", "there twice"),
        ("cost\tprice\n1\t2", "'price' is not an output"),
        ("9\t1\t2", "trial 9, which is not waiting"),
        ("7\t1\t2\n7\t1\t2", "two lines"),
    ):
        with pytest.raises(ValueError, match=words):
            parse_table(wrong, [7, 8], names)


def test_only_cells_of_outputs_are_read() -> None:
    some = outputs_of(NamedGoals.of({"a": "max", "b": "min"}))
    data = {"y-3-1": "5", "y-3": "6", "y-3-2": "7", "y-03-1": "8", "y-3-01": "9", "y-٣-1": "1", "why-3": "x"}
    assert some.typed_cells(data) == {(3, 1): "5"}
    assert outputs_of(MAXIMISE).typed_cells(data) == {(3, 0): "6"}


def test_a_measurement_of_ones_own_has_a_field_for_each_output(client: Any) -> None:
    own = {"own-temperature": "30", "own-catalyst": "A", "own-result-0": "2,5 ± 0.5", "own-result-2": "0.9"}
    page = follow(client, send(client, client.get(AT), "/observe", **own))
    assert "Added as trial 0." in text_of(page) and "Still missing: cost" in text_of(page)
    assert outputs(client) == [{"yield": 2.5, "purity": 0.9}] and trials(client)[0]["output_noise_var"] == {
        "yield": 0.25
    }
    wrong = send(client, client.get(AT), "/observe", **{**own, "own-result-2": "pure"})
    assert wrong.status_code == 400 and "purity: 'pure' is not a number" in text_of(wrong)
    assert Page(wrong.text).form("/observe").fields["own-result-0"] == "2,5 ± 0.5"


def test_single_outputs_are_corrected_on_the_page_of_a_trial(client: Any) -> None:
    suggested(client, 1)
    at = f"{AT}/trial/0"
    follow(client, send(client, client.get(at), "/trial/0", word="tell", **{"y-0": "71 ± 2", "y-1": "3"}))
    forms = {form.fields["word"]: set(form.fields) for form in Page(client.get(at).text).forms}
    assert {"y-2", "y-3"} <= forms["tell"] and "y-0" not in forms["tell"]
    assert {"y-0", "y-1"} <= forms["correct"] and "y-2" not in forms["correct"]
    page = follow(client, send_word(client, at, "correct", **{"y-0": "72"}))
    assert "Corrected." in text_of(page) and "was yield 71" in text_of(page)
    assert trials(client)[0]["output_noise_var"] == {"yield": 4.0}  # the error bar stays
    follow(client, send_word(client, at, "tell", **{"y-2": "0.85"}))
    assert outputs(client) == [{"yield": 72.0, "cost": 3.0, "purity": 0.85}]
    assert "purity is below 0.9" in text_of(client.get(at))
    wrong = send_word(client, at, "correct", **{"y-1": "much"})
    assert wrong.status_code == 400 and "cost: 'much' is not a number" in text_of(wrong)
    typed = {form.fields["word"]: form.fields.get("y-1") for form in Page(wrong.text).forms}
    assert typed == {"tell": None, "correct": "much", "again": "", "retract": None, "note": None}
    page = follow(client, send_word(client, at, "again", **{"y-0": "70"}))
    assert outputs(client)[1] == {"yield": 70.0} and "Saved as trial 1." in text_of(page)
    assert "Still missing" not in text_of(client.get(AT))  # a second yield waits for nothing
    nothing = send_word(client, at, "correct")
    assert nothing.status_code == 400 and "give the result" in text_of(nothing)
    follow(client, send_word(client, at, "retract"))
    follow(client, send_word(client, at, "correct", **{"y-1": "4"}))
    assert outputs(client)[0] == {"cost": 4.0}


def send_word(client: Any, at: str, word: str, **typed: str) -> Any:
    """Send the form with this word on the page of a trial."""
    form = next(one for one in Page(client.get(at).text).forms if one.fields["word"] == word)
    return client.post(form.action, data={**form.fields, **typed}, headers={"origin": "http://127.0.0.1:8470"})


# What is known


def test_the_trials_have_a_column_for_each_output_and_marks(path: str) -> None:
    with gpmi.study(path) as study:
        for y in ({"yield": 50, "cost": 2, "purity": 0.95}, {"yield": 70, "cost": 1, "purity": 0.5}):
            study.tell(study.ask(), y)
        study.tell(study.ask(), {"yield": 40, "cost": 9, "purity": 0.95})
        study.tell(study.ask(), {"yield": 45.0})
        study.fail(study.ask(), why="spilt")
    with client_for(path) as client:
        for page in (f"{AT}/trials", AT):
            html = client.get(page).text
            found = re.findall(r"(<tr[^>]*>(?:(?!</tr>).)*?>#(\d)</a>.*?</tr>)", html)
            rows = {number: row for row, number in found if 'id="front-' not in row}
            assert re.findall('<th scope="col">([a-z]+)</th>', html)[-4:] == list(NAMES) or page == AT
            assert 'class="best"' in rows["0"] and "on the front" in rows["0"]
            assert 'class="unmet"' in rows["1"] and "purity is below 0.9" in rows["1"] and "front" not in rows["1"]
            assert "front" not in rows["2"] and "missing" in rows["3"] and 'colspan="4"' in rows["4"]


def test_the_csv_file_has_a_column_for_each_output(path: str) -> None:
    fill(path, 2)
    with client_for(path) as client:
        head, first, _ = client.get(f"{AT}/trials.csv").text.splitlines()
        row = dict(zip(head.split(","), first.split(","), strict=True))
        assert {name: float(row[name]) for name in NAMES[:3]} == trials(client)[0]["outputs"] and row["colour"] == ""


def test_a_summary_of_several_objectives(path: str) -> None:
    fill(path, 4)
    with client_for(path) as client:
        words = text_of(complete_page(client))
        assert re.search(r"\d best trade-offs? so far", words) and "largest yield" in words and "smallest cost" in words
        known = client.get("/api/known").json()["known"]
        assert "Can I stop?" in words and known["answer"] in words and known["answer"].startswith("Too early to say")
        assert known["t"] == 4 and known["advice"] == "go on"
        assert known["front"] == [one["number"] for one in client.get("/api/front").json()["trials"]]


def test_the_advice_speaks_of_trade_offs(path: str) -> None:
    fill(path, 10)
    with client_for(path) as client:
        words, known = text_of(complete_page(client)), client.get("/api/known").json()["known"]
        assert 0.0 <= known["chance"] <= 1.0 and 0.0 <= known["missing"] <= 1.0
        assert known["why"][1:] in words and "For statisticians" in words
        assert "10 more evaluations gain more than 1 % of the hypervolume" in words


def test_points_of_the_front_are_links_with_recipes(path: str) -> None:
    fill(path)
    with client_for(path) as client:
        page = complete_page(client)
        front = {str(one["number"]) for one in client.get("/api/front").json()["trials"]}
        points = re.findall(r'<a href="([^"]+)"[^>]* class="front-point (\w+)" data-number="(\d+)"', page.text)
        assert len(points) == 8 and {number for _, kind, number in points if kind == "front"} == front
        for href, kind, number in points:
            assert href == (f"#front-{number}" if kind == "front" else f"{AT}/trial/{number}")
        assert all(f'id="front-{number}"' in page.text for number in front)  # rows of the table, without a script
        cards = re.findall(r'class="front-recipe" data-number="(\d+)"', page.text)
        assert set(cards) == front and page.text.count("<dt>temperature</dt>") >= len(front)
        assert page.text.count('type="range"') == 2


def test_the_front_that_the_model_believes_in_is_drawn(path: str) -> None:
    fill(path, 10)
    with client_for(path) as client:
        part = complete_page(client).text.partition('id="front"')[2].partition("front-recipes")[0]
        assert 'class="area"' in part and "the best possible front" in part
        assert "bands" not in client.get("/api/known").json()["known"]


def test_three_objectives_have_a_picture_for_each_pair(tmp_path: Path) -> None:
    path = create_study(tmp_path, goals={"yield": "max", "cost": "min", "purity": gpmi.Match(0.95, within=0.1)})
    fill(path, 5)
    with client_for(path) as client:
        page = complete_page(client)
        pairs = re.findall(r'role="group" aria-label="([^"]+)"', page.text)
        assert [re.sub("distance of | from 0.95", "", one) for one in pairs] == [
            "yield and cost",
            "yield and purity",
            "cost and purity",
        ]
        assert "no other one beats one of them in all of" in text_of(page) or "One experiment is" in text_of(page)
        assert page.text.count('type="range"') == 3


def test_a_single_target_has_a_table_and_no_picture(tmp_path: Path) -> None:
    path = create_study(tmp_path, goals={"size": gpmi.Match(42.0, within=10.0)})
    with client_for(path) as client:
        page = suggested(client, 2)
        assert "They appear here once an experiment has a result for size." in text_of(page)
        page = follow(client, send(client, page, "/results", **{"y-0-0": "45", "y-1-0": "50"}))
        words = text_of(complete_page(client))
        assert "closest size" in words and "1 best experiment so far" in words and "Find a recipe" not in words
        assert "front-point" not in page.text


def test_a_single_objective_with_a_limit_has_a_best_trial(tmp_path: Path) -> None:
    path = create_study(tmp_path, goals={"yield": "max", "purity": gpmi.AtLeast(0.9)})
    with client_for(path) as client:
        page = suggested(client, 3)
        typed = {"y-0-0": "70", "y-0-1": "0.5", "y-1-0": "60", "y-1-1": "0.95", "y-2-1": "0.95"}
        follow(client, send(client, page, "/results", **typed))
        words = text_of(complete_page(client))
        assert "Largest yield so far" in words and "Still missing: yield" in words and "trade-off" not in words
        assert client.get("/api/best").json()["trial"]["y"] == 60.0
        assert client.get("/api/recommend").json()["x"] is not None


def test_nothing_acceptable_is_said_in_words(path: str) -> None:
    with client_for(path) as client:
        page = suggested(client, 1)
        follow(client, send(client, page, "/results", **{"y-0-0": "50", "y-0-1": "3", "y-0-2": "0.5"}))
        words = text_of(complete_page(client))
        assert "No best trade-offs so far" in words and "No experiment is known to keep all limits yet: purity" in words
        assert "No experiment is acceptable in everything and keeps the limits yet." in words


def test_a_model_that_fails_hides_no_front(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any) -> Any:
        raise RuntimeError("no memory")

    fill(path, 3)
    monkeypatch.setitem(model_worker.TASKS, "summary", fails)
    with client_for(path) as client:
        words = text_of(complete_page(client))
        assert "The model could not be computed: RuntimeError: no memory" in words and "on the front" in words


def test_names_of_outputs_are_escaped(tmp_path: Path) -> None:
    path = create_study(tmp_path, goals={EVIL: "max", '"><b>': gpmi.Min(at_most=5.0), "'&": gpmi.AtMost(1.0)})
    with gpmi.study(path) as study:
        for i in range(4):
            study.tell(study.ask(), {EVIL: float(i), '"><b>': float(i), "'&": 2.0 * (i % 2)})
        study.ask(lease=math.inf)
    with client_for(path) as client:
        complete_page(client)
        found = send(client, client.get(AT), "/choose", **{"choose-output": "0", "choose-direction": "max"})
        for page in (AT, f"{AT}/trials", f"{AT}/trial/1", f"{AT}/trial/4", found.headers["location"]):
            html = client.get(page).text
            assert EVIL not in html and "<b>" not in html and "&lt;script&gt;" in html


# The choice of a point


CHOICE = {"choose-output": "1", "choose-direction": "min", "choose-value-0": "50", "choose-condition-0": "least"}


def test_the_cheapest_recipe_with_a_yield_of_at_least_50_is_found_and_planned(path: str) -> None:
    fill(path)
    with client_for(path) as client:
        page = client.get(AT)
        form = Page(page.text).form("/choose").fields
        assert (form["choose-output"], form["choose-direction"], form["choose-confidence"]) == ("1", "min", "0.9")
        assert (form["choose-condition-0"], form["choose-condition-1"]) == ("least", "most")
        answer = send(client, page, "/choose", **CHOICE)
        assert answer.headers["location"].startswith(f"{AT}?chosen=") and answer.headers["location"].endswith("#choice")
        page = follow(client, answer)
        words = text_of(page)
        assert "What to expect" in words and "All conditions and limits hold with a probability of" in words
        assert Page(page.text).form("/choose").fields["choose-value-0"] == "50"
        expected = post(client, "choose", output="cost", direction="min", where={"yield": ">= 50"})
        done = follow(client, send(client, page, "/plan"))
        assert "Trial 8 is at the chosen point. Enter its results below." in text_of(done)
        planned = trials(client)[8]
        assert planned["status"] == "pending" and planned["x"] == expected["x"]
        assert measured(planned["x"])["yield"] > 45.0
        again = follow(client, send(client, page, "/plan"))  # the same click
        assert len(trials(client)) == 9 and "y-8-0" in Page(again.text).form("/results").fields


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"choose-output": "9"}, "Nothing was chosen"),
        ({"choose-direction": "up"}, "Nothing was chosen"),
        ({"choose-confidence": "2"}, "Nothing was chosen"),
        ({"choose-value-0": "much"}, "yield: 'much' is not a number"),
        ({"choose-value-3": "5"}, "colour has no value yet"),
        ({"choose-value-1": "1e300"}, "cost: '1e300' is too large"),
        ({"choose-direction": "match"}, "match"),
    ],
)
def test_a_choice_that_cannot_be_made_is_shown_again(path: str, typed: dict[str, str], words: str) -> None:
    fill(path, 3)
    with client_for(path) as client:
        answer = send(client, client.get(AT), "/choose", **{**CHOICE, **typed})
        assert answer.status_code == 400 and words in text_of(answer)
        assert Page(answer.text).form("/choose").fields["choose-value-0"] == typed.get("choose-value-0", "50")
        gone = send(client, client.get(AT), "/choose", once="x", **CHOICE)
        page = follow(client, gone)
        other = send(client, page, "/plan", chosen="nothing")
        assert other.status_code == 400 and "no longer available" in text_of(other) and len(trials(client)) == 3


def test_a_condition_that_no_recipe_meets_is_said_in_words(path: str) -> None:
    fill(path)
    with client_for(path) as client:
        page = follow(client, send(client, client.get(AT), "/choose", **{**CHOICE, "choose-value-0": "500"}))
        assert "No point found reaches 90 %" in text_of(page) and "It has been measured" in text_of(page)
        assert "Not tried yet, and more likely to hold" in text_of(page)
        count = len(trials(client))
        form = next(form for form in Page(page.text).forms if form.fields.get("untried") == "yes")
        follow(client, client.post(f"{AT}/plan", data=form.fields, headers={"origin": "http://127.0.0.1:8470"}))
        answer = client.post("/api/choose", json={"output": "cost", "direction": "min", "where": {"yield": ">= 500"}})
        new = trials(client)
        assert len(new) == count + 1 and answer.json()["trial"] is not None
        assert answer.json()["untried"]["x"] == pytest.approx(new[-1]["x"])


def test_a_choice_belongs_to_its_study(tmp_path: Path) -> None:
    path = create_study(tmp_path, "one", goals=GOALS)
    create_study(tmp_path, "two", goals=GOALS)
    for name in ("one", "two"):
        with gpmi.study(path, name) as study:
            trial = study.ask()
            study.tell(trial, measured(trial.x))
    with client_for(path) as client:
        answer = send(client, client.get("/study/one"), "/choose", **CHOICE)
        other = client.get(answer.headers["location"].replace("/one", "/two"))
        assert "What to expect" not in text_of(other)
        form = Page(client.get(answer.headers["location"]).text).form("/plan")
        planned = client.post("/study/two/plan", data=form.fields, headers={"origin": "http://127.0.0.1:8470"})
        assert planned.status_code == 400


def test_large_studies_compute_front_and_choice_elsewhere(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, 4)
    monkeypatch.setattr(model_worker, "LARGE", 0)
    with client_for(path) as client:
        here = gpmi.study(path)
        assert [one["number"] for one in client.get("/api/front").json()["trials"]] == [t.number for t in here.front]
        found = post(client, "choose", output="cost", direction="min", where={"yield": ">= 50"})
        own = here.choose(cost="min", where={"yield": ">= 50"})
        assert found["x"]["catalyst"] == own.x["catalyst"]
        assert found["x"]["temperature"] == pytest.approx(own.x["temperature"], abs=0.1)
        assert found["probability"] == pytest.approx(own.probability, abs=0.01)
        here.close()
        refused = client.post("/api/choose", json={"output": "colour", "direction": "max"})
        assert refused.status_code == 400 and "has no value yet" in refused.json()["error"]


# The API


def test_outputs_are_told_one_by_one_corrected_and_read(client: Any) -> None:
    post(client, "ask", n=2)
    told = post(client, "tell", number=0, outputs={"yield": 71.0, "cost": 3.0}, noise_var={"yield": 0.25})["trial"]
    assert (told["status"], told["y"], told["missing"]) == ("told", None, ["purity", "colour"])
    assert (told["output_noise_var"], told["unmet"]) == ({"yield": 0.25}, ["purity"])
    told = post(client, "tell", number=0, outputs={"purity": 0.97, "yield": 71.0})["trial"]
    assert told["outputs"] == {"yield": 71.0, "cost": 3.0, "purity": 0.97} and told["unmet"] == []
    for _ in range(2):  # the same value counts once
        assert post(client, "tell", number=0, outputs={"purity": 0.97})["trial"]["number"] == 0
    refused = client.post("/api/tell", json={"number": 0, "outputs": {"purity": 0.5, "colour": 1.0}})
    assert refused.status_code == 409 and refused.json()["trial"]["outputs"]["purity"] == 0.97
    assert "already has yield 71 and cost 3 and purity 0.97" in refused.json()["error"]
    again = post(client, "tell", number=0, outputs={"purity": 0.5}, again=True)["trial"]
    assert again["number"] == 2 and again["x"] == told["x"]
    corrected = post(client, "correct", number=0, outputs={"cost": 4.0})["trial"]
    assert corrected["outputs"] == {"yield": 71.0, "cost": 4.0, "purity": 0.97}
    assert corrected["outputs_before"]["cost"] == 3.0 and corrected["output_noise_var"] == {"yield": 0.25}
    assert post(client, "correct", number=0, outputs={"cost": 4.0})["trial"] == corrected  # nothing to change
    own = post(client, "tell", x={"temperature": 30.0, "catalyst": "A"}, outputs={"yield": 5.0})["trial"]
    assert (own["origin"], own["outputs"]) == ("user", {"yield": 5.0})
    post(client, "fail", number=1)
    assert post(client, "correct", number=1, outputs={"yield": 9.0}, repeats=2)["trial"]["output_repeats"] == {
        "yield": 2
    }
    assert client.get("/api/best").json()["trial"] is None


@pytest.mark.parametrize(
    ("action", "body", "words"),
    [
        ("tell", {"number": 0, "y": 1.0}, "the study has goals, so give outputs"),
        ("tell", {"number": 0}, "outputs is missing"),
        ("tell", {"number": 0, "outputs": {}}, "without an output"),
        ("tell", {"number": 0, "outputs": 5}, "dict"),
        ("tell", {"number": 0, "outputs": {"yeild": 1.0}}, "did you mean 'yield'"),
        ("tell", {"number": 0, "outputs": {"yield": "much"}}, "yield is 'much'"),
        ("tell", {"number": 0, "outputs": {"yield": True}}, "yield"),
        ("tell", {"number": 0, "outputs": {"yield": 1e300}}, "too large"),
        ("tell", {"number": 0, "outputs": {"yield": 1.0}, "noise_var": {"cost": 1.0}}, "noise_var has 'cost'"),
        ("tell", {"number": 0, "outputs": {"yield": 1.0}, "noise_var": -1}, "noise_var"),
        ("tell", {"number": 0, "outputs": {"yield": 1.0}, "constraints": [1.0]}, "constraints"),
        ("correct", {"number": 0, "y": 1.0}, "give outputs"),
        ("choose", {"output": "cost"}, "direction is missing"),
        ("choose", {"output": ["cost"], "direction": "min"}, "give the name of one"),
        ("choose", {"output": "price", "direction": "min"}, "'price' is not an output"),
        ("choose", {"output": "cost", "direction": "down"}, "give 'max', 'min'"),
        ("choose", {"output": "cost", "direction": "min", "where": []}, "give an object"),
        ("choose", {"output": "cost", "direction": "min", "where": {"yield": "lots"}}, "where has 'yield'"),
        ("choose", {"output": "cost", "direction": "min", "where": {"yield": {}}}, "where has 'yield'"),
        ("choose", {"output": "cost", "direction": "min", "confidence": 2}, "confidence"),
        ("choose", {"output": "cost", "direction": "min", "limit": 2}, "the name 'limit' is unknown"),
    ],
)
def test_bad_outputs_and_choices_are_refused(client: Any, action: str, body: dict[str, Any], words: str) -> None:
    post(client, "ask")
    if action == "choose":
        post(client, "tell", number=0, outputs={"yield": 1.0, "cost": 2.0})
    answer = client.post(f"/api/{action}", json=body)
    assert answer.status_code == 400 and words in answer.json()["error"], answer.text
    assert len(outputs(client)) == 1 and ("yield" in outputs(client)[0]) == (action == "choose")


def test_a_study_without_goals_refuses_outputs(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path)) as client:
        post(client, "ask")
        for action, body in (
            ("tell", {"number": 0, "outputs": {"yield": 1.0}}),
            ("choose", {"output": "cost", "direction": "min"}),
        ):
            answer = client.post(f"/api/{action}", json=body)
            assert answer.status_code == 400 and "has no goals" in answer.json()["error"]
        assert "has no goals" in client.get("/api/front").json()["error"]
        assert "outputs" not in trials(client)[0] and "front" not in client.get(AT).text
        assert send(client, client.get(AT), "/ask", n="1").status_code == 303


def test_concurrent_outputs_are_all_kept(client: Any) -> None:
    """Twelve people tell outputs of three trials: each is added, or refused with 409 because somebody was faster."""
    post(client, "ask", n=3)

    def tell(k: int) -> tuple[int, str, float, int]:
        number, name, y = k % 3, NAMES[k // 3 % 4], float(k)
        answer = client.post("/api/tell", json={"number": number, "outputs": {name: y}})
        return number, name, y, answer.status_code

    with ThreadPoolExecutor(8) as people:
        answers = list(people.map(tell, range(24)))
    assert {status for *_, status in answers} == {200, 409} and len(trials(client)) == 3
    for number, name, y, status in answers:
        assert (outputs(client)[number][name] == y) == (status == 200)
    assert all(len(one) == 4 for one in outputs(client))


def test_a_late_output_survives_an_unreachable_database(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    post(client, "ask")
    post(client, "tell", number=0, outputs={"yield": 71.0})

    def away(*given: Any, **more: Any) -> Any:
        raise Unavailable("the server does not answer")

    with monkeypatch.context() as patch:
        patch.setattr("gpmi.storage.study_log.StudyLog._deliver", away)
        answer = client.post("/api/tell", json={"number": 0, "outputs": {"purity": 0.97}})
        assert answer.status_code == 202 and answer.json()["trial"]["outputs"] == {"yield": 71.0, "purity": 0.97}
    assert client.get("/api/trials").json()["trials"][0]["outputs"] == {"yield": 71.0, "purity": 0.97}


def test_a_study_filled_in_a_browser_is_replayed_exactly(path: str) -> None:
    with client_for(path) as client:
        page = suggested(client, 6)
        typed = {f"y-{i}-{j}": str(10 + 3 * i + j) for i in range(6) for j in range(2)}
        page = follow(client, send(client, page, "/results", **typed))
        page = follow(client, send(client, page, "/results", **{f"y-{i}-2": "0.95" for i in (4, 1, 3)}))
        follow(client, send_word(client, f"{AT}/trial/2", "correct", **{"y-0": "30"}))
        suggested(client, 3)
    with gpmi.study(path) as study:
        assert study.verify().agrees
