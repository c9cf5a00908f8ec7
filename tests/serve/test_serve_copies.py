"""A copy of the database file alone has everything that was saved, while the server runs."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from laboratory import client_for, create_study, follow, send

import gpmi

AT = "/study/default"


def copied(path: str, folder: Path) -> list[float | None]:
    """Copy the file, without those beside it, and return the values in the copy."""
    copy = folder / "copy.db"
    shutil.copyfile(path, copy)
    with gpmi.study(str(copy)) as found:
        values = [trial.y for trial in found.trials]
    copy.unlink()
    return values


def suggested(client: Any, n: int) -> Any:
    return follow(client, send(client, client.get(AT), "/ask", n=str(n)))


def test_a_copy_of_the_file_has_all_that_was_saved_while_the_server_runs(tmp_path: Path) -> None:
    path = create_study(tmp_path)
    with client_for(path) as client:
        page = suggested(client, 3)
        assert copied(path, tmp_path) == [None, None, None]
        page = follow(client, send(client, page, "/results", y__0="4.1", y__1="3.8"))
        assert copied(path, tmp_path) == [4.1, 3.8, None]
        follow(client, send(client, client.get(f"{AT}/trial/0"), "/trial/0", word="correct", y="4.5"))
        assert copied(path, tmp_path) == [4.5, 3.8, None]
        assert client.post("/api/tell", json={"number": 2, "y": 2.5}).status_code == 200
        assert copied(path, tmp_path) == [4.5, 3.8, 2.5]


def test_a_save_does_not_wait_for_somebody_who_reads_an_older_moment(tmp_path: Path) -> None:
    path = create_study(tmp_path)
    with client_for(path) as client, closing(sqlite3.connect(path, isolation_level=None)) as other:
        page = suggested(client, 2)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM gpmi_studies").fetchone()  # from here on it reads this moment
        page = follow(client, send(client, page, "/results", y__0="4.1"))
        assert copied(path, tmp_path) == [None, None]
        other.execute("COMMIT")
        follow(client, send(client, page, "/results", y__1="3.8"))
        assert copied(path, tmp_path) == [4.1, 3.8]


def test_what_cannot_be_written_back_is_no_error(tmp_path: Path) -> None:
    from gpmi.storage.database import Database

    path = create_study(tmp_path)
    with gpmi.study(path) as found:
        found.ask()
        database = Database(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # a writer at work, such as one that computes a suggestion
            assert database.write_back()
            other.execute("ROLLBACK")
    assert Database(tmp_path / "none.db").write_back() and not (tmp_path / "none.db").exists()
    (tmp_path / "text.db").write_text("this is no database " * 100)
    assert not Database(tmp_path / "text.db").write_back()
    assert Database("postgresql://nobody@localhost:1/none").write_back()  # asks nobody
