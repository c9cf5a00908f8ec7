"""The pages of `gpmi serve` without a browser: every form, as a browser without scripts sends it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laboratory import BASE, Page, client_for, create_study, follow, send, text_of

import gpmi
from gpmi.serve.cell_parsing import ParsedCell, parse_cell, parse_column
from gpmi.serve.new_study import candidates_of, read_table
from gpmi.serve.parameter_fields import fields_of

AT = "/study/default"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    with client_for(create_study(tmp_path)) as one:
        yield one


def suggested(client: Any, n: int, **fixed: str) -> Any:
    """Ask for n points and return the page of the study."""
    return follow(client, send(client, client.get(AT), "/ask", n=str(n), **fixed))


def values(client: Any) -> list[float | None]:
    return [one["y"] for one in client.get("/api/trials").json()["trials"]]


# The forms of a study


def test_results_are_typed_into_the_table(client: Any) -> None:
    page = suggested(client, 3)
    assert "temperature (°C)" in text_of(page)
    done = follow(client, send(client, page, "/results", y__0="4.1 ± 0.2", y__1="3,8", y__2=""))
    words = text_of(done)
    assert "2 results saved." in words and "3,8 was read as 3.8." in words
    assert values(client) == [4.1, 3.8, None]
    assert client.get("/api/trials").json()["trials"][0]["noise_var"] == pytest.approx(0.04)
    assert set(Page(done.text).form("/results").fields) >= {"y-2"}


def test_a_wrong_cell_keeps_its_text_and_the_others_are_saved(client: Any) -> None:
    answer = send(client, suggested(client, 3), "/results", y__0="4.1", y__1="1,234", y__2="lots")
    assert answer.status_code == 400
    page = Page(answer.text)
    assert "1 result saved, 2 not: trials 1 and 2." in page.text and 'href="#y-1"' in answer.text
    assert "can mean 1.234 or 1234" in page.text and "'lots' is not a number" in page.text
    assert page.form("/results").fields["y-1"] == "1,234" and page.form("/results").fields["y-2"] == "lots"
    assert values(client) == [4.1, None, None]


def test_a_column_is_pasted(client: Any) -> None:
    page = suggested(client, 4)
    done = follow(client, send(client, page, "/results", pasted="yield\n4.1\n\nfailed: the pump stopped\n3,5\n"))
    assert "2 results and 1 failure saved." in text_of(done)
    trials = client.get("/api/trials").json()["trials"]
    assert [one["y"] for one in trials] == [4.1, None, None, 3.5]
    assert [one["status"] for one in trials] == ["told", "pending", "failed", "told"]
    assert trials[2]["why"] == "the pump stopped"


def test_a_column_that_does_not_fit_is_shown_again(client: Any) -> None:
    page = suggested(client, 2)
    answer = send(client, page, "/results", pasted="1\n2\n3\n4")
    assert answer.status_code == 400 and "4 lines for 2 trials" in text_of(answer)
    assert Page(answer.text).form("/results").fields["pasted"].strip() == "1\n2\n3\n4"
    assert "Nothing was saved: there are 4 lines for 2 trials" in text_of(answer) and values(client) == [None, None]


@pytest.mark.parametrize(("word", "status"), [("fail", "failed"), ("reject", "rejected")])
def test_a_trial_without_a_result(client: Any, word: str, status: str) -> None:
    page = suggested(client, 2)
    follow(client, send(client, page, "/results", y__1="2.5", why__0="no gas", **{word: "0"}))
    first, second = client.get("/api/trials").json()["trials"]
    assert first["status"] == status and first["why"] == "no gas"
    assert second["y"] == 2.5  # what was typed into other rows is saved, too


def test_a_trial_is_withdrawn(client: Any) -> None:
    follow(client, send(client, suggested(client, 2), "/results", forget="0"))
    assert [one["number"] for one in client.get("/api/trials").json()["trials"]] == [1]
    assert client.get(f"{AT}/trial/0").status_code == 404


def test_parameters_are_fixed_for_suggestions(client: Any) -> None:
    page = suggested(client, 2, given__temperature="21,5", given__catalyst="B")
    assert "fixed" in text_of(page)
    for trial in client.get("/api/trials").json()["trials"]:
        assert trial["x"] == {"temperature": 21.5, "catalyst": "B"}
    wrong = send(client, client.get(AT), "/ask", given__temperature="500")
    assert wrong.status_code == 400 and "outside" in text_of(wrong)
    assert Page(wrong.text).form("/ask").fields["given-temperature"] == "500"
    assert send(client, client.get(AT), "/ask", n="many").status_code == 400
    assert send(client, client.get(AT), "/ask", n="500").status_code == 400


def test_a_second_click_changes_nothing(client: Any) -> None:
    page = client.get(AT)
    first, second = (send(client, page, "/ask", n="2") for _ in range(2))
    assert first.headers["location"] == second.headers["location"] and len(values(client)) == 2


def test_simultaneous_clicks_count_once(client: Any) -> None:
    page, own = client.get(AT), {"own__temperature": "30", "own__catalyst": "A", "own-result": "2.5"}
    with ThreadPoolExecutor(4) as pool:
        led = list(pool.map(lambda _: send(client, page, "/observe", **own).headers["location"], range(4)))
    assert len(set(led)) == 1 and values(client) == [2.5]


def test_a_measurement_of_ones_own(client: Any) -> None:
    own = {"own__temperature": "30", "own__catalyst": "A", "own-result": "2.5"}
    follow(client, send(client, client.get(AT), "/observe", **own))
    assert values(client) == [2.5]
    missing = send(client, client.get(AT), "/observe", own__temperature="31", **{"own-result": "2.5"})
    assert missing.status_code == 400 and Page(missing.text).form("/observe").fields["own-temperature"] == "31"


def test_two_people_who_save_the_same_trial_both_keep_their_input(client: Any) -> None:
    page = suggested(client, 2)
    follow(client, send(client, page, "/results", y__0="4.1"))
    late = send(client, client.get(AT), "/results", y__0="4.3", y__1="5.0")
    assert late.status_code == 409 and "already has the value 4.1" in text_of(late)
    assert values(client) == [4.1, 5.0]  # the one that was still waiting
    form = Page(late.text).form("/results")
    assert form.fields["y-0"] == "4.3" and ("again", "0") in form.buttons and ("correct", "0") in form.buttons
    follow(client, send(client, late, "/results", again="0"))
    assert values(client) == [4.1, 5.0, 4.3]
    corrected = follow(client, send(client, late, "/results", correct="0", once="another"))
    assert values(client) == [4.3, 5.0, 4.3] and "was 4.1" in text_of(corrected)


def test_no_input_is_lost_if_others_were_faster_and_a_cell_is_wrong(client: Any) -> None:
    page = suggested(client, 4)
    follow(client, send(client, page, "/results", y__0="4.1", y__1="5.1"))
    late = send(client, client.get(AT), "/results", y__0="4.3", y__1="5.3", y__2="lots", y__3="7")
    assert late.status_code == 409 and values(client) == [4.1, 5.1, None, 7.0]
    assert "1 result saved." in text_of(late) and "'lots' is not a number" in text_of(late)
    kept = Page(late.text).form("/results").fields
    assert (kept["y-0"], kept["y-1"], kept["y-2"]) == ("4.3", "5.3", "lots")
    less = send(client, late, "/results", again="0", y__2="6")  # one conflict is decided, the other one stays open
    assert less.status_code == 409 and values(client) == [4.1, 5.1, 6.0, 7.0, 4.3]
    assert Page(less.text).form("/results").fields["y-1"] == "5.3"
    undecided = send(client, less, "/results", once="enter")
    assert undecided.status_code == 409 and len(values(client)) == 5
    follow(client, send(client, less, "/results", leave="1"))
    assert values(client) == [4.1, 5.1, 6.0, 7.0, 4.3]


@pytest.mark.parametrize("typed", [{"y__0": "failed: no gas"}, {"fail": "0", "why__0": "no gas"}])
def test_a_failure_for_a_trial_with_a_value_is_a_conflict(client: Any, typed: dict[str, str]) -> None:
    page = suggested(client, 1)
    follow(client, send(client, page, "/results", y__0="4.1"))
    late = send(client, page, "/results", once="late", **typed)
    assert late.status_code == 409 and "You entered: it failed: no gas." in text_of(late)
    form = Page(late.text).form("/results")
    assert form.fields["y-0"] == "failed: no gas"  # hidden: asked about again if another conflict is decided first
    assert form.buttons == [("retract", "0"), ("leave", "0")] and 'type="hidden" name="y-0"' in late.text
    follow(client, send(client, late, "/results", retract="0"))
    assert client.get("/api/trials").json()["trials"][0]["status"] == "retracted"


def test_a_result_for_a_withdrawn_trial_is_not_lost(client: Any) -> None:
    page = suggested(client, 2)
    point = client.get("/api/trials").json()["trials"][0]["x"]
    follow(client, send(client, page, "/results", forget="0"))
    late = send(client, page, "/results", y__0="4.3", once="late")
    assert late.status_code == 409 and "Trial 0 was withdrawn" in text_of(late)
    assert Page(late.text).form("/results").buttons == [("again", "0"), ("leave", "0")]
    follow(client, send(client, late, "/results", again="0"))
    added = client.get("/api/trials").json()["trials"][-1]
    assert (added["x"], added["y"], added["number"]) == (point, 4.3, 2)
    gone = send(client, page, "/results", fail="0", once="later")
    assert gone.status_code == 400 and "Trial 0 was withdrawn, so it cannot take a result." in text_of(gone)


def test_the_forms_on_the_page_of_a_trial(client: Any) -> None:
    suggested(client, 3)
    at = f"{AT}/trial/"
    follow(client, send(client, client.get(f"{at}0"), "/trial/0", word="tell", y="2,5"))
    follow(client, send(client, client.get(f"{at}0"), "/trial/0", word="correct", y="2.75"))
    follow(client, send(client, client.get(f"{at}0"), "/trial/0", word="retract"))
    follow(client, send(client, client.get(f"{at}0"), "/trial/0", word="correct", y="3"))
    follow(client, send(client, client.get(f"{at}1"), "/trial/1", word="fail", why="spilt"))
    follow(client, send(client, client.get(f"{at}2"), "/trial/2", word="reject"))
    first, second, third = client.get("/api/trials").json()["trials"]
    assert (first["y"], second["why"], third["status"]) == (3.0, "spilt", "rejected")
    wrong = send(client, client.get(f"{at}0"), "/trial/0", word="correct", y="much")
    assert wrong.status_code == 400 and "'much' is not a number" in text_of(wrong)
    typed = {form.fields["word"]: form.fields.get("y") for form in Page(wrong.text).forms}
    assert typed == {
        "correct": "much",
        "again": "",
        "retract": None,
        "note": None,
    }  # shown where it was typed, and only there
    dance = send(client, client.get(f"{at}0"), "/trial/0", word="dance")
    assert dance.status_code == 400 and "press one of the buttons" in text_of(dance)


def test_a_page_from_before_a_restart_loses_nothing(tmp_path: Path) -> None:
    path = create_study(tmp_path)
    with client_for(path) as before:
        page = suggested(before, 1)
    with client_for(path) as after:
        stale = send(after, page, "/results", y__0="4.25")
        assert stale.status_code == 403 and Page(stale.text).form("/results").fields["y-0"] == "4.25"
        follow(after, send(after, stale, "/results"))
        assert values(after) == [4.25]


def test_a_database_that_does_not_answer_loses_nothing(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = suggested(client, 1)

    def away(*given: Any, **more: Any) -> Any:
        raise gpmi.StudyError("the disk is full")

    monkeypatch.setattr("gpmi.serve.session.Session.tell", away)
    answer = send(client, page, "/results", y__0="4.25")
    assert answer.status_code == 503 and Page(answer.text).form("/results").fields["y-0"] == "4.25"
    assert "the disk is full" in text_of(answer)


def test_all_trials_are_shown_page_by_page(tmp_path: Path) -> None:
    path = create_study(tmp_path, space=[(0.0, 1.0)])
    with gpmi.study(path) as study:
        study.optimizer.tell_all([([i / 120], float(i)) for i in range(120)])
        study.fail(study.ask(), why="no power")
    with client_for(path) as client:
        first, last = (text_of(client.get(f"{AT}/trials?page={n}")) for n in (1, 99))
        assert "page 1 of 3" in first and "#120" in first and "page 3 of 3" in last and "#0" in last
        assert "no power" in text_of(client.get(f"{AT}/trials?status=failed"))
        text = client.get(f"{AT}/trials.csv").text
        assert len(text.splitlines()) == 122
        assert client.get(f"{AT}/report").status_code == 200


# New studies


def test_a_study_is_created_from_parameters(tmp_path: Path) -> None:
    with client_for(str(tmp_path / "new.db")) as client:
        assert client.get("/").headers["location"] == "/new"
        typed = {"study": "my yield", "goal": "min", "budget": "20"}
        typed |= {"name-0": "warmth", "lo-0": "20", "hi-0": "90,5", "unit-0": "°C"}
        typed |= {"name-1": "metal", "kind-1": "choice", "options-1": "Pd, Ni; Cu"}
        typed |= {"name-2": "stirs", "kind-2": "whole", "lo-2": "1", "hi-2": "1000", "log-2": "on"}
        page = follow(client, send(client, client.get("/new"), "/new/parameters", **typed))
        assert "my yield" in text_of(page)
        about = client.get("/api/study").json()
        assert (about["name"], about["goal"], about["budget"]) == ("my yield", "min", 20)
        assert [(one["name"], one["kind"], one["unit"]) for one in about["parameters"]] == [
            ("warmth", "number", "°C"),
            ("metal", "choice", ""),
            ("stirs", "whole", ""),
        ]
        assert about["parameters"][0]["hi"] == 90.5 and about["parameters"][2]["log"] is True
        again = send(client, client.get("/new"), "/new/parameters", **typed)
        assert again.status_code == 400 and "already" in text_of(again)
        assert Page(again.text).form("/new/parameters").fields["options-1"] == "Pd, Ni; Cu"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({}, "There is no parameter"),
        ({"name-0": "a", "lo-0": "1"}, "is empty"),
        ({"name-0": "a", "lo-0": "2", "hi-0": "1"}, "“From” must be smaller"),
        ({"name-0": "a", "lo-0": "0", "hi-0": "1", "log-0": "on"}, "needs a “From” above 0"),
        ({"name-0": "a", "kind-0": "choice", "options-0": "one"}, "at least two options"),
        ({"name-0": "a", "kind-0": "whole", "lo-0": "0.5", "hi-0": "2"}, "whole numbers"),
        ({"lo-0": "1"}, "has no name"),
        ({"name-0": "a", "lo-0": "0", "hi-0": "1", "name-1": "a"}, "two parameters"),
        ({"name-0": "a", "lo-0": "0", "hi-0": "1", "budget": "-3"}, "number of experiments"),
        ({"name-0": "a", "lo-0": "0", "hi-0": "1", "study": " "}, "has no name"),
    ],
)
def test_invalid_parameters_create_no_study(tmp_path: Path, typed: dict[str, str], words: str) -> None:
    path = tmp_path / "new.db"
    with client_for(str(path)) as client:
        answer = send(client, client.get("/new"), "/new/parameters", **{"study": "x", **typed})
        assert answer.status_code == 400 and words in text_of(answer)
        assert not path.exists()


TABLE = "name;solvent;volume;old result\nA1;water;1,5;3,2\nA2;ethanol;2,5;\nA3;water;3,5;4\n"


def test_a_study_is_created_from_a_table(tmp_path: Path) -> None:
    with client_for(str(tmp_path)) as client:  # a folder
        answer = send(client, client.get("/new"), "/new/table", files={"table": ("t.csv", TABLE.encode())})
        page = Page(answer.text)
        form = page.form("/new/candidates")
        assert [form.fields[f"use-{i}"] for i in range(4)] == ["label", "use", "use", "result"]
        assert "1,5 was read as 1.5" in page.text
        done = follow(client, send(client, answer, "/new/candidates", study="solvents"))
        assert "2 known results imported." in text_of(done)
        trials = client.get("/api/trials").json()["trials"]
        assert [(one["label"], one["y"]) for one in trials] == [("A1", 3.2), ("A3", 4.0)]
        assert (tmp_path / "solvents.db").exists()
        page = follow(client, send(client, done, "/ask", n="1"))
        assert "A2" in text_of(page)
        assert "Studies" in text_of(client.get("/", headers={"referer": BASE}))
        gone = send(client, answer, "/new/candidates", study="more", key="nothing", once="2")
        assert gone.status_code == 400 and "choose the file again" in text_of(gone)


def test_rows_without_names_are_numbered_as_in_the_spreadsheet(tmp_path: Path) -> None:
    table = "volume,acid\n1.5,2\n\n2.5,3\n"  # an empty row in between counts
    with client_for(str(tmp_path / "new.db")) as client:
        answer = send(client, client.get("/new"), "/new/table", files={"table": ("t.csv", table.encode())})
        done = follow(client, send(client, answer, "/new/candidates", study="rows"))
        send(client, done, "/ask", n="2")
        trials = client.get("/api/trials").json()["trials"]
        assert {one["x"]["volume"]: one["label"] for one in trials} == {1.5: 2, 2.5: 4}
        assert all(list(one["x"]) == ["volume", "acid"] for one in trials)


def test_error_bars_and_failures_of_a_table_are_not_dropped_silently(tmp_path: Path) -> None:
    table = "a,y\n1,4.1 ± 0.2\n2,failed: pump\n3,\n4,5\n"
    with client_for(str(tmp_path)) as client:
        answer = send(client, client.get("/new"), "/new/table", files={"table": ("t.csv", table.encode())})
        done = follow(client, send(client, answer, "/new/candidates", study="bars", **{"use-1": "result"}))
        trials = client.get("/api/trials").json()["trials"]
    assert [(one["y"], one["noise_var"]) for one in trials] == [(4.1, pytest.approx(0.04)), (5.0, 0.0)]
    assert "2 known results" in text_of(done) and "1 failed row not imported" in text_of(done)


def test_a_column_of_whole_numbers_is_shown_as_such() -> None:
    space, _ = candidates_of(read_table(b"t,v\n" + b"".join(b"%d,%d.5\n" % (20 + i, i) for i in range(70))), {})
    t, v = fields_of(space)
    assert (t.format(t.lo), t.format(t.hi), t.parse("21")) == ("20", "89", 21)
    assert v.format(v.lo).startswith("0.5")
    with pytest.raises(ValueError, match="whole number"):
        t.parse("21.5")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", "empty"),
        ("a,b\n", "fewer than two rows"),
        ("a,a\n1,2\n3,4\n", "'a'"),
        ("a,b\n1,2\n3\n", "Row 3 has 1 cells"),
        ("a\0,b\n1,2\n3,4\n", "not a text file"),
    ],
)
def test_invalid_tables_are_refused(tmp_path: Path, table: str, words: str) -> None:
    with client_for(str(tmp_path)) as client:
        answer = send(client, client.get("/new"), "/new/table", files={"table": ("t.csv", table.encode())})
        assert answer.status_code == 400 and words in text_of(answer)


def test_a_column_is_numeric_if_all_its_cells_are() -> None:
    table = read_table("a,b,c,d\n1,0.5,x,\n2,1e3,7,1\n-3,−2,y,2\n".encode())
    assert table.columns == {"a": [1, 2, -3], "b": [0.5, 1000.0, -2.0], "c": ["x", "7", "y"], "d": [None, 1, 2]}
    with pytest.raises(ValueError, match="'d' is empty in row 2"):
        candidates_of(table, {})
    with pytest.raises(ValueError, match="No column is varied"):
        candidates_of(table, {f"use-{i}": "skip" for i in range(4)})
    with pytest.raises(ValueError, match="Only one column"):
        candidates_of(table, {"use-0": "label", "use-2": "label", "use-3": "skip"})
    latin = read_table("Größe,n\n1,2\n3,4\n".encode("latin-1"))
    assert list(latin.columns) == ["Größe", "n"]


# Cells


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("", ParsedCell()),
        (" – ", ParsedCell()),
        ("4.1", ParsedCell(4.1)),
        ("-.5e-3", ParsedCell(-5e-4)),
        ("−2", ParsedCell(-2.0)),
        ("3,7", ParsedCell(3.7, note="3,7 was read as 3.7")),
        ("0,123", ParsedCell(0.123, note="0,123 was read as 0.123")),
        ("1.234,5", ParsedCell(1234.5, note="1.234,5 was read as 1234.5")),
        ("1,234.5", ParsedCell(1234.5, note="1,234.5 was read as 1234.5")),
        ("12 345", ParsedCell(12345.0, note="12 345 was read as 12345")),
        ("4 ± 2", ParsedCell(4.0, 4.0)),
        ("4+-2", ParsedCell(4.0, 4.0)),
        ("Failed", ParsedCell(failed=True)),
        ("failed: no gas", ParsedCell(failed=True, why="no gas")),
        ("error - leak", ParsedCell(failed=True, why="leak")),
    ],
)
def test_cells_that_are_understood(typed: str, meant: ParsedCell) -> None:
    assert parse_cell(typed) == meant


@pytest.mark.parametrize(
    "typed",
    [
        "1,234",
        "12,345,678",
        "much",
        "45 %",
        "3 mg",
        "nan",
        "inf",
        "1e999",
        "1_000",
        "4 ± 1 ± 2",
        "4 ± -1",
        "1,2,3",
        "٣",
        "x" * 400,
    ],
)
def test_cells_that_are_refused(typed: str) -> None:
    with pytest.raises(ValueError):
        parse_cell(typed)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_as_python_writes_it(value: float) -> None:
    read = parse_cell(repr(value)).y
    assert read is not None and math.copysign(1.0, read) == math.copysign(1.0, value) and read == value


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_with_a_reason(typed: str) -> None:
    try:
        read = parse_cell(typed)
    except ValueError as error:
        assert len(str(error)) > 10
    else:
        assert read.y is None or math.isfinite(read.y)


def test_a_pasted_column_may_name_its_trials() -> None:
    assert parse_column("trial\tyield\n7\t1.5\n#5\t\n", [5, 6, 7]) == {7: "1.5", 5: ""}
    assert parse_column("1\n\n3\n\n", [5, 6, 7]) == {5: "1", 6: "", 7: "3"}
    for wrong in ("5\t1\n5\t2", "9\t1", "x\t1\ny\t2", "1\t2\t3"):
        with pytest.raises(ValueError):
            parse_column(wrong, [5, 6, 7])
