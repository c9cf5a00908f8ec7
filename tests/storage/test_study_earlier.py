"""A study stores the values of its earlier studies: it opens, replays and verifies without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpmi
from gpmi.cli.studyfile import StudyFileError, read_study
from gpmi.cli.studyfile.runner import open_study

SPACE = {"a": (0.0, 1.0), "b": gpmi.Int(0, 5), "c": ["u", "v"]}


def f(x: Any) -> float:
    return -((x["a"] - 0.3) ** 2) - 0.1 * (x["b"] - 3) ** 2 + 0.2 * (x["c"] == "v")


def g(x: Any) -> float:
    return 1000.0 * f(x) + 7.0


def points(trials: Any) -> list[Any]:
    return [dict(trial.x) for trial in trials]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    gpmi.maximize(g, SPACE, budget=14, seed=1, study=tmp_path / "old.db")
    return tmp_path / "old.db"


def test_a_study_goes_on_without_its_sources_and_verifies(tmp_path: Path, old: Path) -> None:
    options: dict[str, Any] = {"space": SPACE, "seed": 0, "budget": 9}
    with gpmi.study(tmp_path / "whole.db", earlier={"last year": old}, **options) as s:
        whole = points(s.optimize(f).trials)
    with gpmi.study(tmp_path / "new.db", earlier={"last year": str(old)}, **options) as s:
        for _ in range(4):
            trial = s.ask()
            s.tell(trial, f(trial.x))
    old.unlink()
    with gpmi.study(tmp_path / "new.db") as s:
        while len(s.trials) < 9:
            trial = s.ask()
            s.tell(trial, f(trial.x))
        assert points(s.trials) == whole
        assert s.verify().agrees
        (found,) = s.earlier
        assert found.values == 14 and found.correlation > 0.7
        assert "last year: similar" in repr(s)


def test_a_study_a_result_and_a_path_are_the_same_source(tmp_path: Path, old: Path) -> None:
    with gpmi.study(old) as source:
        first = gpmi.Optimizer(SPACE, seed=0, earlier={"x": source}).ask()
        again = gpmi.maximize(f, SPACE, budget=2, seed=0, earlier={"x": source.result()})
    by_path = gpmi.maximize(f, SPACE, budget=2, seed=0, earlier={"x": old})
    assert points(by_path.trials) == points(again.trials) and dict(by_path.trials[0].x) == first


def test_the_same_call_continues_and_other_values_are_refused(tmp_path: Path, old: Path) -> None:
    def call(budget: int, **more: Any) -> Any:
        return gpmi.maximize(f, SPACE, budget=budget, seed=0, study=tmp_path / "new.db", **more)

    call(3, earlier={"last year": old})
    assert len(call(5, earlier={"last year": old}).trials) == 5
    with pytest.raises(
        ValueError, match="earlier has other values than those that the study has stored of 'last year'"
    ):
        call(6, earlier={"last year": [({"a": 0.1, "b": 2, "c": "u"}, 1.0)]})
    with pytest.raises(ValueError, match="earlier has other values"):
        call(6, earlier={"another name": old})


def test_every_kind_of_value_is_stored_to_the_last_digit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = [(x, float(np.sin(4.0 * x[0])), 0.01 * i) for i, x in enumerate(rng.random((9, 2)))]
    with gpmi.study(tmp_path / "one.db", space=[(0, 1), (0, 1)], seed=0, earlier={"b": pairs, "a": pairs[:4]}) as s:
        told = [s.ask() for _ in range(3)]
    with gpmi.study(tmp_path / "one.db") as s:
        assert [one.name for one in s.earlier] == ["a", "b"]
        stored = s.optimizer._arguments.earlier.rows("y")
        fresh = gpmi.Optimizer([(0, 1), (0, 1)], seed=0, earlier={"b": pairs, "a": pairs[:4]})._arguments.earlier.rows(
            "y"
        )
        for name in ("x", "y", "noise", "number"):
            np.testing.assert_array_equal(getattr(stored, name), getattr(fresh, name))
    assert len(told) == 3
    goals = {"p": "max", "q": "min"}
    values = [(x, {"p": y, "q": -y}) for x, y, _ in pairs]
    with gpmi.study(tmp_path / "two.db", space=[(0, 1), (0, 1)], seed=0, goals=goals, earlier={"a": values}) as s:
        s.tell(s.ask(), {"p": 1.0, "q": 2.0})
    with gpmi.study(tmp_path / "two.db", goals=goals, earlier={"a": values}) as s:
        assert [one.values for one in s.earlier] == [9, 9]


def test_paths_that_are_no_studies_are_refused(tmp_path: Path, old: Path) -> None:
    with pytest.raises(ValueError, match=r"earlier\['a'\] is .* there is no such file; give the path"):
        gpmi.maximize(f, SPACE, budget=2, earlier={"a": tmp_path / "none.db"})
    assert not (tmp_path / "none.db").exists()
    for name in ("p", "q"):
        gpmi.study(tmp_path / "two.db", name, space=SPACE).close()
    with pytest.raises(ValueError, match=r"earlier\['a'\] has the studies 'p', 'q'; give one of them, gpmi.study"):
        gpmi.maximize(f, SPACE, budget=2, earlier={"a": tmp_path / "two.db"})


FILE = """
seed = 0
[parameters]
a = { real = [0.0, 1.0] }
b = { int = [0, 5] }
c = { choice = ["u", "v"] }
[earlier]
"last year" = "old.db"
"""


def test_a_study_file_names_the_databases_of_earlier_studies(tmp_path: Path, old: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    with open_study(read_study(path)) as s:
        assert [(one.name, one.values) for one in s.earlier] == [("last year", 14)]
    with open_study(read_study(path)) as s:
        assert s.ask().number == 0
    path.write_text(FILE.replace("old.db", "none.db"))
    with pytest.raises(StudyFileError, match=r"study.toml:8: .*there is no file 'none.db'; give the path"):
        read_study(path)
    path.write_text(FILE.replace('"old.db"', "3"))
    with pytest.raises(StudyFileError, match=r"study\.toml:8"):
        read_study(path)
