"""A value that does not fit: asked about by the API, the pages and the command line, and answered there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import client_for, follow, send, text_of
from waiting import wait_until

pytest.importorskip("sqlalchemy")
from typer.testing import CliRunner

import gpmi
from gpmi import cli

SLIP = 12
SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A study in which the decimal point slipped in the value of one trial."""
    address = str(tmp_path / "run.db")
    with gpmi.study(address, space=SPACE, seed=1) as study:
        for n in range(SLIP + 1):
            trial = study.ask()
            y = 80.0 + 10.0 * np.sin(3.0 * trial.x["a"]) * np.cos(2.0 * trial.x["b"])
            y += 0.3 * np.random.default_rng(n).standard_normal()
            study.tell(trial, float(0.1 * y if n == SLIP else y))
        assert study.trials[SLIP].doubt is not None
    return address


def doubt_of(path: str) -> str | None:
    with gpmi.study(path) as study:
        return study.trials[SLIP].doubt


def test_the_api_asks_and_takes_the_answer(path: str) -> None:
    with client_for(path) as client:
        trial = client.get("/api/trials").json()["trials"][SLIP]
        assert "is it right? did you mean" in trial["doubt"]
        wait_until(lambda: client.get("/api/known").json()["now"])
        known = client.get("/api/known").json()["known"]
        assert known["doubts"] == [{"trial": SLIP, "why": trial["doubt"]}]
        assert "does not fit" in known["answer"]
        answer = client.post("/api/confirm", json={"number": SLIP})
        assert answer.status_code == 200 and answer.json()["trial"]["doubt"] is None
        pending = client.post("/api/ask", json={}).json()["trials"][0]["number"]
        assert client.post("/api/confirm", json={"number": pending}).status_code == 409
    assert doubt_of(path) is None


def test_the_page_of_the_trial_asks_and_takes_the_answer(path: str) -> None:
    doubt = str(doubt_of(path))
    with client_for(path) as client:
        wait_until(lambda: client.get("/api/known").json()["now"])
        assert f"Trial {SLIP}: {doubt}" in text_of(client.get("/study/default"))
        page = client.get(f"/study/default/trial/{SLIP}")
        assert doubt in text_of(page) and "Yes, it is right" in text_of(page)
        assert "Yes, it is right" not in text_of(client.get("/study/default/trial/3"))
        send(client, page, f"/trial/{SLIP}", word="confirm", who="Anna")
        page = text_of(client.get(f"/study/default/trial/{SLIP}"))
        assert "Yes, it is right" not in page and "Anna said that it is right" in page
    assert doubt_of(path) is None


def test_the_command_line_asks_and_takes_the_answer(path: str) -> None:
    def printed(*arguments: Any) -> str:
        result = CliRunner().invoke(cli.app(), [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    assert "doubtful" in printed("trials", path)
    assert json.loads(printed("confirm", path, SLIP, "--json"))["y"] is not None
    assert "doubtful" not in printed("trials", path)
    assert "equal" in printed("verify", path)
    assert doubt_of(path) is None


def test_a_result_that_is_saved_on_the_page_and_does_not_fit_is_asked_about(path: str) -> None:
    with client_for(path) as client:
        number = client.post("/api/ask", json={}).json()["trials"][0]["number"]
        page = client.get(f"/study/default/trial/{number}")
        after = follow(client, send(client, page, f"/trial/{number}", word="tell", y="870"))
        assert "Please check: 870 is far from what was expected" in text_of(after)
