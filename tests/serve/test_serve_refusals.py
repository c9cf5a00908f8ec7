"""What the page says where something typed was not saved, and how it is saved after all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from laboratory import Page, client_for, create_study, follow, send, text_of

import gpmi
from gpmi.serve.cell_parsing import parse_cell, parse_column, parse_table

AT = "/study/default"
GOALS: dict[str, Any] = {"yield": gpmi.Max(at_least=30.0), "cost": gpmi.Min()}
QUESTION = "940 is above 100, the largest value you said is possible. Correct it; or press"


def asked(client: Any, n: int = 1) -> Any:
    return follow(client, send(client, client.get(AT), "/ask", n=str(n)))


def trials(client: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/api/trials").json()["trials"]
    return found


def values(client: Any) -> list[float | None]:
    return [one["y"] for one in trials(client)]


# Values that cannot be


def test_an_impossible_result_is_questioned_and_saved_if_it_comes_again(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path, bounds=(0, 100))) as client:
        answer = send(client, asked(client, 3), "/results", **{"y-0": "940", "y-1": "94.0"})
        words = text_of(answer)
        assert answer.status_code == 400 and "1 result saved, 1 not: trial 0." in words and 'href="#y-0"' in answer.text
        assert f"{QUESTION} “Save results” again if it really is 940." in words
        assert values(client) == [None, 94.0, None] and "Please check" not in words
        fields = Page(answer.text).form("/results").fields
        assert fields["y-0"] == "940" and fields["sure-y-0"] == "940" and "sure-y-2" not in fields
        other = send(client, answer, "/results", **{"y-0": "950"})  # another value is questioned again
        assert other.status_code == 400 and "950 is above 100" in text_of(other)
        done = follow(client, send(client, answer, "/results", **{"y-2": "1"}))
        assert "2 results saved." in text_of(done) and values(client) == [940.0, 94.0, 1.0]
        assert "Please check: the result of trial 0 is 940, outside its bounds, 0 to 100" in text_of(done)


def test_a_corrected_value_is_saved_at_once(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path, bounds=(0, 100))) as client:
        answer = send(client, asked(client), "/results", **{"y-0": "-5 ± 1"})
        assert "-5 is below 0, the smallest value you said is possible" in text_of(answer)
        follow(client, send(client, answer, "/results", **{"y-0": "5 ± 1"}))
        assert values(client) == [5.0]


def test_pasted_values_and_single_outputs_are_questioned_too(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path, goals=GOALS, bounds={"yield": (0, 100)})) as client:
        answer = send(client, asked(client, 2), "/results", pasted="940\t2\n94\t3")
        assert answer.status_code == 400 and QUESTION in text_of(answer)
        assert [one["outputs"] for one in trials(client)] == [{"cost": 2.0}, {"yield": 94.0, "cost": 3.0}]
        fields = Page(answer.text).form("/results").fields  # the cell is among those that are still missing
        assert fields["y-0-0"] == "940" and fields["sure-y-0-0"] == "940" and not fields["pasted"].strip()
        follow(client, send(client, answer, "/results"))
        assert trials(client)[0]["outputs"] == {"yield": 940.0, "cost": 2.0}


def test_measurements_of_ones_own_and_corrections_are_questioned(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path, bounds=(0, 100))) as client:
        own = {"own-temperature": "50", "own-catalyst": "A", "own-result": "940"}
        answer = send(client, client.get(AT), "/observe", **own)
        assert answer.status_code == 400 and f"{QUESTION} “Add it” again" in text_of(answer) and values(client) == []
        assert "Nothing was saved: 940 is above 100" in text_of(answer) and 'href="#own-result"' in answer.text
        follow(client, send(client, answer, "/observe"))
        assert values(client) == [940.0]
        for action, button in (("correct", "“Correct it”"), ("again", "“Add the second measurement”")):
            page = client.get(f"{AT}/trial/0")
            form = next(one for one in Page(page.text).forms if one.fields["word"] == action)
            data = {**form.fields, "y": "-3"}
            answer = client.post(form.action, data=data, headers={"origin": "http://127.0.0.1:8470"})
            assert answer.status_code == 400 and f"press {button} again if it really is -3" in text_of(answer)
            form = next(one for one in Page(answer.text).forms if one.fields["word"] == action)
            assert form.fields["sure-y"] == "-3"
            follow(client, client.post(form.action, data=form.fields, headers={"origin": "http://127.0.0.1:8470"}))
        assert values(client) == [-3.0, -3.0]


def test_a_questioned_cell_is_not_lost_beside_a_conflict(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path, bounds=(0, 100))) as client:
        page = asked(client, 2)
        client.post("/api/tell", json={"number": 0, "y": 4.0})
        answer = send(client, page, "/results", **{"y-0": "5", "y-1": "940"})
        fields = Page(answer.text).form("/results").fields
        assert answer.status_code == 409 and fields["sure-y-1"] == "940"
        follow(client, send(client, answer, "/results", leave="0"))
        assert values(client) == [4.0, 940.0]


@pytest.mark.parametrize("typed", ["940", "abc"])
def test_a_failure_beside_a_value_that_was_not_saved_is_not_saved(tmp_path: Path, typed: str) -> None:
    with client_for(create_study(tmp_path, goals=GOALS, bounds={"yield": (0, 100)})) as client:
        answer = send(client, asked(client), "/results", **{"y-0-0": typed, "y-0-1": "failed"})
        assert answer.status_code == 400 and "There is a failure beside a result" in text_of(answer)
        assert Page(answer.text).form("/results").fields["y-0-0"] == typed
        assert [one["status"] for one in trials(client)] == ["pending"]


def test_a_pasted_column_that_does_not_fit_is_shown_beside_a_conflict(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path)) as client:
        page = asked(client, 3)
        client.post("/api/tell", json={"number": 0, "y": 4.0})
        answer = send(client, page, "/results", pasted="1.5\n2.5\n3.5\n4.5", **{"y-0": "9", "y-1": "8"})
        words = text_of(answer)
        assert answer.status_code == 409 and "4 lines for 3 trials" in words and "4.5" in words
        assert words.count("1 result saved.") == 1 and values(client) == [4.0, 8.0, None]


def test_old_pasted_text_blocks_no_failure(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path)) as client:
        page = asked(client, 2)
        send(client, page, "/results", pasted="1\n2\n3", fail="0", **{"why-0": "it boiled over"})
        assert [one["status"] for one in trials(client)] == ["failed", "pending"]


# What was not saved is said at the top


@pytest.mark.parametrize(
    ("form", "typed", "words", "at"),
    [
        ("/observe", {"own-temperature": "hot"}, "Nothing was saved: temperature: 'hot' is not a number", "own-temper"),
        ("/observe", {"own-temperature": "50"}, "Nothing was saved: there is no result; give a number.", "own-result"),
        ("/observe", {"own-result": "5"}, "Nothing was saved: temperature, catalyst is empty", "own"),
        ("/ask", {"n": "many"}, "Nothing was suggested: the number of experiments is 'many'", "ask"),
        ("/results", {"pasted": "1\n2\n3"}, "Nothing was saved: there are 3 lines for 2 trials", "pasted"),
        ("/results", {"y-0": "4 mg"}, "Nothing was saved: '4 mg' is not a number", "y-0"),
        ("/results", {"y-0": "x", "y-1": "y"}, "Nothing was saved: see trials 0 and 1.", "y-0"),
        ("/results", {"used-1-0": "500"}, "Nothing was saved: temperature is 500, outside 20 to 90", "row-1"),
    ],
)
def test_a_refusal_is_at_the_top_with_a_link(
    tmp_path: Path, form: str, typed: dict[str, str], words: str, at: str
) -> None:
    with client_for(create_study(tmp_path)) as client:
        answer = send(client, asked(client, 2), form, **typed)
        assert answer.status_code == 400
        top = answer.text.partition("Next to try")[0]
        assert words in text_of(answer).partition("Next to try")[0] and f'href="#{at}' in top
        target = top.partition('href="#')[2].partition('"')[0]
        assert f'id="{target}"' in answer.text  # the link leads somewhere


def test_what_was_saved_beside_a_refusal_is_counted(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path)) as client:
        typed = {"y-0": "1", "y-1": "failed", "y-2": "2 x", "y-3": "3 x", "y-4": "4"}
        answer = send(client, asked(client, 5), "/results", **typed)
        assert "2 results and 1 failure saved, 2 not: trials 2 and 3." in text_of(answer)
        answer = send(client, client.get(AT), "/results", **{"y-2": "2 x", "note-3": "smells"})
        assert "1 result not saved: trial 2." in text_of(answer)
        assert "The note on trial 3 was saved." in text_of(answer)


def test_a_refusal_on_the_page_of_a_trial_is_at_the_top(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path)) as client:
        asked(client)
        answer = send(client, client.get(f"{AT}/trial/0"), "/trial/0", y="much")
        assert "Nothing was saved: 'much' is not a number" in text_of(answer) and 'href="#tell-title"' in answer.text
        answer = send(client, client.get(f"{AT}/trial/0"), "/trial/0", word="dance")
        assert "Nothing was saved: no action was chosen" in text_of(answer) and 'href="#dance' not in answer.text


# The paste box


def test_old_text_in_the_paste_box_does_not_block_what_was_typed(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path)) as client:
        page = asked(client, 3)
        answer = send(client, page, "/results", pasted="1\n2\n3\n4\n5", **{"y-0": "7"})
        assert answer.status_code == 400 and values(client) == [7.0, None, None]
        words = text_of(answer)
        assert "What was pasted was not used: There are 5 lines for 3 trials" in words and 'id="unused"' in answer.text
        assert not Page(answer.text).form("/results").fields["pasted"].strip()  # it fits no other rows by accident
        answer = send(client, answer, "/results", pasted="8\n9", **{"y-1": "7.5"})
        assert "Trial 1 has one result typed and another one pasted" in text_of(answer)
        assert values(client) == [7.0, 7.5, None]


@pytest.mark.parametrize("options", [{}, {"goals": GOALS}])
def test_without_waiting_experiments_there_is_no_paste_box(tmp_path: Path, options: dict[str, Any]) -> None:
    with client_for(create_study(tmp_path, **options)) as client:
        assert 'id="pasted"' not in client.get(AT).text
        assert 'id="pasted"' in asked(client, 2).text


# Units, and what is looked for


def test_the_unit_of_a_result_may_be_typed_with_it(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path, units="%")) as client:
        answer = send(client, asked(client, 3), "/results", **{"y-0": "93.6 %", "y-1": "93,6% ± 0.5 %", "y-2": "4 mg"})
        assert values(client) == [93.6, 93.6, None] and "'4 mg' is not a number" in text_of(answer)
        follow(client, send(client, client.get(AT), "/observe",
                            **{"own-temperature": "50 °C", "own-catalyst": "A", "own-result": "5 %"}))  # fmt: skip
        assert trials(client)[-1]["x"] == {"temperature": 50.0, "catalyst": "A"}


def test_only_the_stated_unit_is_read() -> None:
    assert parse_cell("4.1 mg", "mg").y == 4.1 and parse_cell("4.1mg ± 0.2 mg", "mg").noise_var == pytest.approx(0.04)
    assert parse_cell("4,1 mg", "mg").note == "4,1 was read as 4.1"
    for typed, unit in (("4.1 g", "mg"), ("4.1 mg", ""), ("4.1 MG", "mg"), ("mg", "mg"), ("4 mg mg", "mg")):
        with pytest.raises(ValueError, match="is not a number"):
            parse_cell(typed, unit)
    assert parse_column("93.6 %\n94 %\n95 %", [5, 6, 7], "%") == {5: "93.6 %", 6: "94 %", 7: "95 %"}
    with pytest.raises(ValueError, match="3 lines for 2 trials"):  # the first one is a result, not a title
        parse_column("93.6 %\n94 %\n95 %", [5, 6], "%")
    assert len(parse_table("93 %\t2\n94 %\t3", [5, 6], ["yield", "cost"], ["%", ""])) == 4


def test_the_goal_is_in_the_header_and_not_beside_the_fields(tmp_path: Path) -> None:
    path = create_study(tmp_path, goals={"colour strength": "max"}, units={"colour strength": "%"})
    with client_for(path) as client:
        page = asked(client)
        assert "Goal: the largest colour strength (%)." in text_of(page)
        follow(client, send(client, page, "/results", **{"y-0-0": "94"}))
        for one in (client.get(AT), client.get(f"{AT}/trial/0")):
            assert "make it" not in text_of(one)
