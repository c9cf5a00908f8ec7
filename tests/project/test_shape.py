"""The source asks a question once. `shape.py` counts and has the limits."""

from __future__ import annotations

import re

import layout
import pytest
import shape
from recorded_runs import FILE

MODULES = layout.read(layout.SOURCE)


@pytest.mark.parametrize("count", shape.COUNTS, ids=lambda count: count.what)
def test_a_count_stays_within_its_limit(count: shape.Count) -> None:
    assert count.target <= count.limit
    assert count.of(MODULES) <= count.limit, "python tests/project/shape.py --modules says where"


def test_at_least_20_recorded_runs_have_goals() -> None:
    names = re.findall(r'^ "([^"]+)": ', FILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sum(bool(re.search("goal|objective|front", name)) for name in names) >= 20


# The counters can count


@pytest.mark.parametrize(
    "code",
    [
        "if self.goals is None: pass",
        "x = 1 if log.goals else 2",
        "x = [y for y in z if not goals]",
        "while goals and y: pass",
    ],
)
def test_a_branch_on_goals_is_found_in_every_form(code: str) -> None:
    modules = layout.parse({"gpmi.run.loop": code, "gpmi.views.front": "if x: goals = 1"})
    assert shape.branches(modules, shape.GOALS) == {"gpmi.run.loop": 1}
    assert shape.branches(modules, shape.GOALS, "views") == {}


def test_questions_for_the_kind_of_a_parameter_are_found_outside_of_space() -> None:
    code = "isinstance(p, Int | Real)\nisinstance(p, str)\nmatch p:\n    case Choice(): ...\n    case str(): ..."
    modules = layout.parse({"gpmi.serve.forms": code, "gpmi.space.axes": code})
    assert shape.kind_questions(modules) == {"gpmi.serve.forms": 2}


def test_imports_of_the_edge_count_once_a_module() -> None:
    code = "from gpmi.trials.goals import Max\nfrom gpmi.views.style import BLUE\nfrom gpmi import optimize"
    modules = layout.parse({"gpmi.cli.a": code, "gpmi.serve.b": code, "gpmi.model.c": "from gpmi.gp import paths"})
    assert shape.imported_by_the_edge(modules) == {"gpmi.trials.goals": 2}


def test_vague_names_and_models_of_the_optimizer_are_found() -> None:
    code = "class Optimizer:\n    def f(self, one):\n        self._alone: int = one\n        self.x, found = 1, 2\n"
    modules = layout.parse({"gpmi.optimizer.optimizer": code})
    assert shape.models_of_optimizer(modules) == {"_alone"}
    assert shape.vague_names(modules) == ({"one": 1, "found": 1}, 3)
    assert shape.vague_per_mille(modules) == 667
