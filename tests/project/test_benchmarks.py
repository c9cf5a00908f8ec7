"""The benchmarks' harness: tables that several processes share, pages that name their machines, and the launcher."""

from __future__ import annotations

import ast
import multiprocessing
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import harness
import launch
import pytest

FOLDER = harness.ROOT / "benchmarks"
COLUMNS = ("problem", "seed", "gap")
SCRIPTS = launch.scripts()


@pytest.fixture
def table(tmp_path: Path) -> harness.Table:
    return harness.Table(tmp_path / "t.csv", COLUMNS, COLUMNS[:2])


# Tables


def test_a_table_has_a_header_once_and_its_rows_as_text(table: harness.Table) -> None:
    assert table.rows() == [] and table.keys() == set()
    table.append(("branin", 0, 0.5))
    table.append({"gap": 1e-3, "seed": 1, "problem": "a, b"})
    assert table.path.read_text() == 'problem,seed,gap\nbranin,0,0.5\n"a, b",1,0.001\n'
    assert table.rows()[1] == {"problem": "a, b", "seed": "1", "gap": "0.001"}


def test_runs_in_the_table_are_not_missing(table: harness.Table) -> None:
    table.append(("branin", 0, 0.5), ("branin", 2, 0.5))
    assert table.missing(("branin", seed) for seed in range(4)) == [("branin", 1), ("branin", 3)]


def test_a_line_without_its_end_is_not_taken_for_a_row(table: harness.Table) -> None:
    table.append(("branin", 0, 0.5))
    whole = table.path.read_text()
    table.path.write_text(whole + "branin,1,0.2")
    assert table.keys() == {("branin", "0")}
    table.append(("branin", 2, 0.1))
    assert table.path.read_text() == whole + "branin,2,0.1\n"


def test_a_table_of_other_columns_is_not_continued(table: harness.Table) -> None:
    table.path.write_text("problem,seed,regret\nbranin,0,0.5\n")
    with pytest.raises(ValueError, match="has other columns than this script writes"):
        table.rows()


def test_the_line_ends_of_a_table_stay(table: harness.Table) -> None:
    table.path.write_bytes(b"problem,seed,gap\r\nbranin,1,0.5\r\n")
    table.append(("branin", 0, 0.1))
    table.tidy(lambda row: row["seed"])
    assert table.path.read_bytes() == b"problem,seed,gap\r\nbranin,0,0.1\r\nbranin,1,0.5\r\n"


def test_a_tidy_table_is_sorted_and_may_drop_replaced_rows(table: harness.Table) -> None:
    table.append(("branin", 2, 0.5), ("branin", 1, 0.4), ("branin", 2, 0.3))
    table.tidy(lambda row: int(row["seed"]))
    assert [row["gap"] for row in table.rows()] == ["0.4", "0.5", "0.3"]
    assert table.latest()["branin", "2"]["gap"] == "0.3"
    table.tidy(lambda row: int(row["seed"]), latest=True)
    assert [row["gap"] for row in table.rows()] == ["0.4", "0.3"]


def _append(path: Path, worker: int) -> None:
    table = harness.Table(path, COLUMNS, COLUMNS[:2])
    for i in range(40):
        table.append((f"problem {worker}", i, "x" * 200))
        if i % 10 == 0:
            table.tidy(lambda row: (row["problem"], int(row["seed"])))


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_several_processes_append_and_tidy_without_losing_a_row(table: harness.Table) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append, args=(table.path, worker)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(table.rows()) == len(table.keys()) == 160


# Jobs and pages


def _play(problem: str, seed: int) -> tuple[object, ...]:
    return problem, seed, seed**2


@pytest.mark.parametrize("cores", [1, 2])
def test_work_resumes_where_it_stopped(table: harness.Table, cores: int) -> None:
    table.append(_play("branin", 1))
    runs = [("branin", seed) for seed in range(4)]
    assert harness.resume(table, runs, _play, cores) == 3
    assert harness.resume(table, runs, _play, cores) == 0
    assert {(row["seed"], row["gap"]) for row in table.rows()} == {("0", "0"), ("1", "1"), ("2", "4"), ("3", "9")}


def test_a_page_rewritten_from_its_table_keeps_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "DOCS", tmp_path)
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    monkeypatch.setattr(harness, "machine", lambda *packages: "machine one")
    harness.page("find.py", "A title", "Text.", ["body"], runs=1_000, new=1_000)
    monkeypatch.setattr(harness, "machine", lambda *packages: "machine two")
    harness.page("find.py", "A title", "Text.", ["body"], runs=1_000, new=0)
    text = (tmp_path / "find.md").read_text()
    assert text.startswith("# A title\n\nWritten by `make bench NAME=find`. Text.\n\n- Measured until ")
    assert "machine one" in text and "machine two" not in text and "; 1,000 runs\n\nbody\n" in text
    harness.page("find.py", "A title", "Text.", ["body"], runs=1_010, new=10)
    assert re.findall("machine (one|two)", (tmp_path / "find.md").read_text()) == ["one", "two"]


def test_a_page_renews_the_copies_of_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "DOCS", tmp_path / "docs" / "benchmarks")
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    harness.DOCS.mkdir(parents=True)
    manual = tmp_path / "docs" / "manual.md"
    manual.write_text("A\n<!-- from benchmarks/find.md -->\n| a |\n|---|\n| 1 |\n<!-- end -->\nB\n")
    body = ["| b |", "|---|", "| 7 |", "", "| a |", "|---|", "| 2 |", "| 3 |", "", "| a |", "|---|", "| 4 |"]
    harness.page("find.py", "A title", "Text.", body)
    assert manual.read_text() == "A\n<!-- from benchmarks/find.md -->\n| a |\n|---|\n| 2 |\n| 3 |\n<!-- end -->\nB\n"
    with pytest.raises(ValueError, match=r"no table that begins with '\| a \|'"):
        harness.page("find.py", "A title", "Text.", body[:4])


# Scripts


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_says_what_it_asks_and_what_it_needs(name: str) -> None:
    assert launch.question(SCRIPTS[name])
    assert all(re.fullmatch(r"\.venv(-\w+)*/\.\w+", stamp) for stamp in launch.stamps(SCRIPTS[name]))
    assert f"| `{name}` |" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_sets_one_blas_thread_before_anything_large_is_imported(name: str) -> None:
    imports = [
        node for node in ast.parse(SCRIPTS[name].read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    modules = [node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports]
    assert next(m for m in modules if m and m.split(".")[0] not in sys.stdlib_module_names) == "harness"


@pytest.mark.parametrize("folder", ["benchmarks", "examples", "paper"])
def test_every_name_that_a_script_imports_from_the_package_exists(folder: str) -> None:
    """Most scripts take hours, so nothing else runs them here."""
    files = (FOLDER.parent / folder).rglob("*.py")
    nodes = [(file, node) for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    imports = [(file, node) for file, node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
    missing = []
    for file, node in imports:
        if node.module is None or node.module.split(".")[0] != "gpmi":
            continue
        try:
            module = import_module(node.module)
        except ModuleNotFoundError:
            missing.append((file.name, node.module))
            continue
        except ImportError:  # of a neighbour that is not installed
            continue
        names = [alias.name for alias in node.names if not hasattr(module, alias.name)]
        missing += [(file.name, node.module, name) for name in names if find_spec(f"{node.module}.{name}") is None]
    assert not missing and imports
