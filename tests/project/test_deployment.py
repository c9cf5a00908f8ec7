"""What starts `gpmi serve` on a server: the start script runs, and the files around it agree with it and the page."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from waiting import LIMIT

import gpmi

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TOKEN = "a-token-of-the-tests"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")


@contextmanager
def started(folder: Path, *arguments: str, **settings: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the start script, with this Python's gpmi, and yield its process and the URL that it printed."""
    commands = folder / "bin"
    commands.mkdir()
    (commands / "gpmi").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from gpmi.cli import main; main()" "$@"\n')
    (commands / "gpmi").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GPMI_")}
    environment |= {"PATH": f"{commands}:{os.environ['PATH']}", "GPMI_HOST": "127.0.0.1", "GPMI_PORT": "0", **settings}
    with subprocess.Popen(
        [DEPLOY / "start.sh", *arguments], env=environment, cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def composed() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return read


def test_the_start_script_serves_a_folder_with_the_token_and_ends_at_sigterm(tmp_path: Path) -> None:
    studies = tmp_path / "studies"
    studies.mkdir()
    with gpmi.study(studies / "lab.db", space={"a": (0.0, 1.0)}, seed=0) as study:
        study.tell(study.ask(), 1.0)
    with started(tmp_path, GPMI_DATABASE=str(studies), GPMI_TOKEN=TOKEN) as (process, url):
        assert url.startswith("http://127.0.0.1:") and url.endswith(f"/?token={TOKEN}")
        base, header = url.partition("/?")[0], {"authorization": f"Bearer {TOKEN}"}
        asked = re.search(r"127\.0\.0\.1:\d+(/\S+)'", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
        assert asked is not None  # by HEALTHCHECK, which has no token
        assert httpx2.get(f"{base}{asked[1]}", timeout=LIMIT).status_code == 200
        assert httpx2.get(f"{base}/api/studies", timeout=LIMIT).status_code == 401
        listed = httpx2.get(f"{base}/api/studies", headers=header, timeout=LIMIT)
        assert listed.status_code == 200 and "lab" in listed.text
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) in (0, -signal.SIGTERM)


def test_the_start_script_takes_empty_settings_for_missing_ones_and_passes_arguments_on(tmp_path: Path) -> None:
    """Compose sets GPMI_TOKEN and GPMI_PUBLIC_URL to nothing where the file .env does not have them."""
    database = str(tmp_path / "new.db")
    with started(tmp_path, GPMI_DATABASE=database, GPMI_TOKEN="", GPMI_PUBLIC_URL="") as (_, url):
        assert url.startswith("http://127.0.0.1:") and "token" not in url
    shutil.rmtree(tmp_path / "bin")
    with started(tmp_path, "--token", TOKEN, GPMI_DATABASE=database, GPMI_PUBLIC_URL="https://lab.example.org") as (
        _,
        url,
    ):
        assert url == f"https://lab.example.org/?token={TOKEN}"


def test_a_backup_of_a_study_in_use_is_a_study(tmp_path: Path) -> None:
    """The line of the page on servers, while the study is open and its last values are in the write-ahead log."""
    with gpmi.study(tmp_path / "lab.db", space={"a": (0.0, 1.0)}, seed=0) as study:
        for _ in range(4):
            study.tell(study.ask(), 1.0)
        with closing(sqlite3.connect(tmp_path / "lab.db")) as database:
            database.execute("VACUUM INTO ?", [str(tmp_path / "copy.db")])
        study.tell(study.ask(), 2.0)
    with gpmi.study(tmp_path / "copy.db") as copy:
        assert len(copy.trials) == 4 and copy.verify().agrees


def test_compose_sets_what_the_start_script_reads_and_the_page_explains() -> None:
    services = composed()["services"]
    script = (DEPLOY / "start.sh").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "howto" / "server.md").read_text(encoding="utf-8")
    assert all(f"#   {name} " in script for name in services["gpmi"]["environment"])
    chosen = set(re.findall(r"\$\{(\w+)", (ROOT / "compose.yaml").read_text(encoding="utf-8")))
    assert chosen == set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))
    # Both sides of the connection to the database agree.
    database = services["db"]["environment"]
    address = f"postgresql://{database['POSTGRES_USER']}@db/{database['POSTGRES_DB']}"
    assert services["gpmi"]["environment"]["GPMI_DATABASE"] == address
    assert services["gpmi"]["environment"]["PGPASSWORD"] == database["POSTGRES_PASSWORD"]
    assert (
        services["gpmi"]["depends_on"] == {"db": {"condition": "service_healthy"}} and "healthcheck" in services["db"]
    )
    mounted = {volume.partition(":")[0] for service in services.values() for volume in service["volumes"]}
    assert mounted == composed()["volumes"].keys()


def test_the_dockerfile_copies_what_is_there_and_installs_extras_that_exist() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [path for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE) for path in line.split()[:-1]]
    assert copied and all((ROOT / path).exists() and f"!{path}" in ignored for path in copied)
    extras = re.search(r"\[([\w,]+)\]\"", text)
    assert extras is not None and {"cli", "postgres", "serve"} == set(extras[1].split(","))
    assert set(extras[1].split(",")) <= PROJECT["optional-dependencies"].keys()
    port = re.search(r"GPMI_PORT:-(\d+)", (DEPLOY / "start.sh").read_text(encoding="utf-8"))
    assert port is not None and f"EXPOSE {port[1]}\n" in text and f"http://127.0.0.1:{port[1]}/" in text
    assert composed()["services"]["gpmi"]["ports"][0].endswith(f":{port[1]}:{port[1]}")
    assert "/usr/local/bin/gpmi-start" in text and 'ENTRYPOINT ["gpmi-start"]' in text
    assert os.access(DEPLOY / "start.sh", os.X_OK)


def test_the_conda_environment_brings_what_gpmi_needs_and_gpmi_by_pip() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *packages, by_pip = environment["dependencies"]
    assert by_pip == {"pip": [".[all]"]} and "pip" in packages
    needed = {re.split("[<>=]", one)[0] for one in PROJECT["dependencies"]}
    assert needed <= set(packages)
    assert f"Programming Language :: Python :: {packages[0].partition('=')[2]}" in PROJECT["classifiers"]


@pytest.mark.parametrize(("file", "language"), [("gpmi.service", "ini"), ("nginx.conf", "nginx")])
def test_the_page_on_servers_shows_the_files_that_it_names(file: str, language: str) -> None:
    page = (ROOT / "docs" / "howto" / "server.md").read_text(encoding="utf-8")
    assert f"```{language}\n{(DEPLOY / file).read_text(encoding='utf-8')}```" in page


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "gpmi.service").read_text(encoding="utf-8")
    unit = tmp_path / "gpmi.service"
    unit.write_text(text.replace("/opt/gpmi/bin/gpmi", sys.executable), encoding="utf-8")  # it must exist
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0 and "gpmi.service" not in done.stderr, done.stderr


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
def test_nginx_understands_its_file(tmp_path: Path) -> None:
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    text = re.sub(r"^ *ssl_certificate.*\n", "", text, flags=re.MULTILINE)  # there is no certificate here
    text = text.replace("listen 443 ssl;", "listen 8443;").replace("listen 80;", "listen 8080;")
    text = text.replace("/var/log/nginx", str(tmp_path))
    whole = f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ {text} }}"
    (tmp_path / "nginx.conf").write_text(whole, encoding="utf-8")
    subprocess.run(["nginx", "-t", "-c", tmp_path / "nginx.conf"], check=True, timeout=LIMIT)
