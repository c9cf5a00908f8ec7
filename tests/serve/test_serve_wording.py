"""What the pages of `gpmi serve` say: warnings, refusals in the words of the forms, and numbers that agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from laboratory import client_for, create_study, follow, send, text_of

import gpmi
from gpmi.serve.cell_parsing import parse_cell, parse_number
from gpmi.serve.model_worker import summarise

AT = "/study/default"
GOALS: dict[str, Any] = {"yield": gpmi.Max(at_least=30.0), "cost": gpmi.Min()}
BLEND = {
    **{name: gpmi.Real(0.0, 1.0) for name in ("water", "ethanol", "glycol")},
    "temperature": gpmi.Real(20.0, 90.0, step=5.0, unit="°C"),
    "solvent": ["THF", "DMF"],
}
SUM = ["water + ethanol + glycol == 1"]


def asked(client: Any, n: int = 1) -> Any:
    return follow(client, send(client, client.get(AT), "/ask", n=str(n)))


def test_a_result_outside_its_bounds_is_saved_with_a_warning(tmp_path: Path) -> None:
    path = create_study(tmp_path, goals=GOALS, bounds={"yield": (0, 100)})
    with client_for(path) as client:
        page = asked(client, 2)
        page = follow(client, send(client, page, "/results", **{"y-0-0": "130", "y-0-1": "2"}))
        assert "1 result saved." in text_of(
            page
        ) and "Please check: yield of trial 0 is 130, outside its bounds, 0 to 100" in text_of(page)
        page = follow(client, send(client, page, "/results", **{"y-1-0": "99", "y-1-1": "2"}))
        assert "1 result saved." in text_of(page) and "Please check" not in text_of(page)
        own = {"own-temperature": "50", "own-catalyst": "A", "own-result-0": "-3"}
        page = follow(client, send(client, page, "/observe", **own))
        assert "Please check: yield of trial 2 is -3, outside its bounds" in text_of(page)


def test_one_result_outside_its_bounds_is_saved_with_a_warning(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path, bounds=(0, 100))) as client:
        page = follow(client, send(client, asked(client), "/results", **{"y-0": "101"}))
        assert "Please check: the result of trial 0 is 101, outside its bounds, 0 to 100" in text_of(page)


@pytest.mark.parametrize("options", [{"goals": GOALS}, {"goals": {"yield": "max", "cost": "min"}}, {}])
def test_the_results_still_needed_count_down_from_the_beginning(tmp_path: Path, options: dict[str, Any]) -> None:
    path = create_study(tmp_path, space=BLEND, constraints=SUM, **options)
    with gpmi.study(path) as study:
        for left in (18, 17, 16):
            found = summarise(study)
            assert found.needed == left and found.stop == "too early"
            assert found.answer == f"Too early to say: gpmi can say more after {left} more results."
            x = study.ask().x
            y = {"yield": x["temperature"], "cost": x["water"]}
            study.tell(x, y if options else x["water"])


@pytest.mark.parametrize("text", ["high", "nan"])
def test_only_results_can_fail(text: str) -> None:
    with pytest.raises(ValueError, match="write “failed”"):
        parse_cell(text)
    with pytest.raises(ValueError, match="is not a number; give a number$"):
        parse_number(text)
