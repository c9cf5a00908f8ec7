"""`gpmi serve` as a command: it prints its URL, ends at Ctrl-C, and computes large models in another process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import numpy as np
import pytest
from laboratory import client_for, create_study
from typer.testing import CliRunner
from waiting import LIMIT, wait_until

import gpmi
from gpmi.cli import app
from gpmi.serve import model_worker
from gpmi.serve.catalogue import Catalogue
from gpmi.serve.model_worker import ModelProcess
from gpmi.serve.server import listen, url_of
from gpmi.storage.errors import StudyError


@contextmanager
def command(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command and yield its process and the URL that it printed. At its end it waits for slow requests."""
    code = f"from gpmi.serve import server; server.SHUTDOWN_TIMEOUT = {LIMIT}; from gpmi.cli import main; main()"
    line = [sys.executable, "-c", code, "serve", *arguments]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_it_prints_its_url_and_ends_at_ctrl_c(tmp_path: Path) -> None:
    path = create_study(tmp_path)
    with command(path, "--port", "0") as (process, url):
        assert url.startswith("http://127.0.0.1:") and "token" not in url
        assert "Next to try" in httpx2.get(url, follow_redirects=True, timeout=LIMIT).text
        with httpx2.stream("GET", f"{url}study/default/events", timeout=LIMIT) as events:
            assert next(line for line in events.iter_lines() if line.startswith("data:"))
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == 0
        assert process.stderr is not None and process.stderr.read() == ""


def test_a_study_file_is_served_even_if_it_has_no_program(tmp_path: Path) -> None:
    file = tmp_path / "mix.toml"
    file.write_text("[parameters]\nflour = { real = [0.0, 1.0], unit = 'kg' }\n")
    with command(str(file), "--port", "0") as (_, url):
        assert url.startswith("http://127.0.0.1:"), url
        assert "flour" in httpx2.get(url, follow_redirects=True, timeout=LIMIT).text
    file.write_text("[parameters]\n")
    answer = CliRunner().invoke(app(), ["serve", str(file)])
    assert answer.exit_code == 1 and "[parameters] is empty" in answer.stderr and "damaged" not in answer.stderr


def test_other_machines_need_the_printed_token(tmp_path: Path) -> None:
    with command(create_study(tmp_path), "--host", "0.0.0.0", "--port", "0") as (_, url):
        token = url.partition("?token=")[2]
        port = url.split(":")[2].partition("/")[0]
        base = f"http://127.0.0.1:{port}"
        assert len(token) >= 32
        with httpx2.Client(base_url=base, timeout=LIMIT) as client:
            assert client.get("/api/study").status_code == 401
            assert client.get("/api/study", headers={"authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere/at/all.db"], "does not exist"),
        (["lab.db", "--name", "other"], "no study 'other'"),
        (["lab.db", "--token", "short"], "at least 12"),
        (["lab.db", "--host", "no.such.host.invalid"], "no known address"),
    ],
)
def test_errors_at_the_start_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    create_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app(), ["serve", *arguments])
    assert done.exit_code == 1 and words in done.stderr and done.stderr.count("\n") == 1


def test_a_taken_port_is_refused_and_without_a_port_a_free_one_is_found() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match="is not free"):
            listen("127.0.0.1", port)
    with listen("127.0.0.1", None) as first, listen("127.0.0.1", None) as second:
        assert first.getsockname()[1] != second.getsockname()[1]
    assert url_of("::1", 80, None) == "http://127.0.0.1:80/"
    assert url_of("fe80::1", 80, "x") == "http://[fe80::1]:80/?token=x"


def test_a_folder_shows_all_its_studies(tmp_path: Path) -> None:
    for name in ("one", "two"):
        gpmi.study(tmp_path / f"{name}.db", space=[(0.0, 1.0)]).close()
    gpmi.study(tmp_path / "two.db", "more", space=[(0.0, 1.0)]).close()
    (tmp_path / "notes.txt").write_text("no study")
    studies = Catalogue(str(tmp_path)).studies()
    assert [(one.slug, one.title) for one in studies] == [
        ("one-default", "one"),
        ("two-default", "two"),
        ("two-more", "more"),
    ]
    with client_for(str(tmp_path)) as client:
        assert client.get("/study/two-more").status_code == 200
    (tmp_path / "broken.db").write_bytes(b"no database" * 100)
    with client_for(str(tmp_path)) as client:  # one damaged file hides none of the others
        shown = client.get("/").text
        assert "broken.db is damaged" in shown and "/study/two-more" in shown
        assert client.get("/study/two-more").status_code == 200
    with pytest.raises(StudyError, match="damaged"):
        Catalogue(str(tmp_path / "broken.db")).studies()


# Large studies


@pytest.fixture
def large(tmp_path: Path) -> str:
    path, rng = create_study(tmp_path, space=[(0.0, 1.0), (0.0, 1.0)]), np.random.default_rng(0)
    with gpmi.study(path) as study:
        study.optimizer.tell_all([(x, float(-np.sum((x - 0.4) ** 2))) for x in rng.random((12, 2))])
    return path


@pytest.mark.slow
def test_a_large_study_uses_another_process_and_gives_the_same_answers(
    large: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for limit in (1000, 5):
        monkeypatch.setattr(model_worker, "LARGE", limit)
        with client_for(large) as client:
            point = client.get("/api/recommend").json()["x"]
            (trial,) = client.post("/api/ask", json={}).json()["trials"]
            client.post("/api/forget", json={"number": trial["number"]})
            wait_until(lambda client=client: client.get("/api/known").json()["now"])  # type: ignore[misc]
            answers.append((point, trial["x"], client.get("/api/known").json()["known"]))
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_a_model_process_that_dies_is_reported_and_restarted(large: str) -> None:
    process = ModelProcess(large, "default")
    assert process("summary").t == 12
    process._process.kill()
    with pytest.raises(gpmi.StudyError, match="has ended"):
        process("summary")
    with pytest.raises(ValueError, match="numbers of its coordinates"):
        process("ask", 1, {"nothing": 1.0})
    assert process("summary").t == 12
    process.close()
    assert process._process is None
