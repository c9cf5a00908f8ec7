"""The layout of src/gpmi stays small and has one direction. `layout.py` reads and counts; here are the limits."""

from __future__ import annotations

import re
from collections.abc import Mapping

import layout
import pytest
from layout import DOORS, PACKAGES, ROOT, SOURCE, parse

MODULES = layout.read(SOURCE)
EDGES = layout.module_edges(MODULES)

MOST_LINES = 700, 80  # of a module, of a function; layout.LONG_MODULE and LONG_FUNCTION are advice
# "gpmi.package.module" or "gpmi.package.module:function" -> why it is right as it is
LONGER: dict[str, str] = {
    "gpmi.optimizer.optimizer": "the one object that changes: its public methods with their docstrings are two thirds",
}

SAME_NAME: dict[str, str] = {}  # a class name that several modules use -> why


# Size


def test_there_are_at_most_16_packages() -> None:
    entries = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert entries - {"__init__", "__main__"} == set(PACKAGES) | set(DOORS) - {"gpmi"}
    assert len(PACKAGES) <= 16


def test_there_are_at_most_90_import_edges_between_packages() -> None:
    edges = layout.package_edges(MODULES)
    assert 0 < len(edges) <= 90, sorted(edges)


def test_one_ask_and_one_tell_cross_at_most_10_packages() -> None:
    crossed = layout.crossed_packages()
    assert {"space", "gp", "model", "policies", "search", "trials", "optimizer"} <= set(crossed)
    assert len(crossed) <= 10, crossed


def test_a_tell_of_a_study_reaches_the_log_in_at_most_12_frames() -> None:
    pytest.importorskip("sqlalchemy")
    frames = layout.frames_of_tell()
    assert frames[0].endswith(".tell") and frames[-1].endswith(layout.RECORDED_BY)
    assert len(frames) <= 12, "\n".join(frames)


def test_modules_over_700_lines_and_functions_over_80_have_a_reason() -> None:
    found = layout.longer_than(MODULES, *MOST_LINES)
    assert set(found) <= set(LONGER), f"split them, or say in LONGER why not: {found}"
    assert_all_needed("LONGER", LONGER, found)


# Direction


def test_a_package_imports_only_those_before_it() -> None:
    assert_none(problem for module in MODULES.values() for problem in layout.wrong_imports(module, MODULES))


def test_the_package_imports_nothing_that_lies_beside_it() -> None:
    beside = {path.name for path in ROOT.iterdir() if path.is_dir()}
    assert {"paper", "benchmarks", "tests"} <= beside
    found = layout.origins(MODULES)
    assert {"numpy", "gpmi"} <= found and not found & beside


def test_a_private_name_stays_in_its_package() -> None:
    assert_none(problem for module in MODULES.values() for problem in layout.foreign_private_names(module, MODULES))


def test_imports_have_no_cycles() -> None:
    assert_none(" -> ".join(found) for name in MODULES if (found := layout.cycle(name, EDGES)))


@pytest.mark.parametrize("door", DOORS)
def test_a_door_only_re_exports(door: str) -> None:
    assert layout.door_offences(MODULES["gpmi" if door == "gpmi" else f"gpmi.{door}"]) == []


def test_docs_architecture_lists_the_packages_in_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert packages_in(page) == list(PACKAGES)


def packages_in(page: str) -> list[str]:
    """Return the first column of the page's table of packages."""
    rows = re.search(r"^\| package \|.*\n\|[-| :]+\|\n((?:\|.*\n)+)", page, flags=re.MULTILINE)
    assert rows is not None, "docs/architecture.md has no table whose first column is called package"
    return re.findall(r"^\| `([a-z_]+)` \|", rows[1], flags=re.MULTILINE)


# Names


def test_no_two_classes_have_the_same_name() -> None:
    found = layout.repeated_classes(MODULES)
    new = {name: where for name, where in found.items() if name not in SAME_NAME}
    assert not new, f"rename one of them, or say in SAME_NAME why not: {new}"
    assert_all_needed("SAME_NAME", SAME_NAME, found)


def assert_none(problems: object) -> None:
    found = list(problems)  # type: ignore[call-overload]
    assert not found, "\n".join(found)


def assert_all_needed(name: str, reasons: Mapping[str, str], found: Mapping[str, object]) -> None:
    stale = sorted(set(reasons) - set(found))
    assert not stale, f"no longer needed: delete the lines {stale} of {name} in {__file__}"
    assert all(len(reason.split()) >= 3 for reason in reasons.values()), f"a reason in {name} is too short"


# The rules can fail


def broken(rule: object, sources: Mapping[str, str], name: str) -> list[str]:
    modules = parse(sources)
    return rule(modules[name], modules)  # type: ignore[operator, no-any-return]


def test_an_import_of_a_later_package_is_found_wherever_it_stands() -> None:
    for text in (
        "from gpmi.optimizer import Optimizer",
        "import gpmi.optimizer",
        "from gpmi import optimizer",
        "def f():\n    from gpmi.optimizer import Optimizer",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gpmi.optimizer import Optimizer",
        "from ..optimizer import Optimizer",
    ):
        sources = {"gpmi.gp.kernels": text, "gpmi.optimizer": ""}
        found = broken(layout.wrong_imports, sources, "gpmi.gp.kernels")
        assert len(found) == 1 and "gp imports gpmi.optimizer, which comes later" in found[0]
        assert set(layout.package_edges(parse(sources))) == {("gp", "optimizer")}
    sources = {"gpmi.optimizer": "import gpmi.gp.kernels", "gpmi.gp.kernels": ""}
    assert broken(layout.wrong_imports, sources, "gpmi.optimizer") == []


def test_an_import_that_breaks_an_independence_is_found() -> None:
    sources = {"gpmi.policies.phi": "from gpmi.gp.posterior import Posterior", "gpmi.gp.posterior": ""}
    found = broken(layout.wrong_imports, sources, "gpmi.policies.phi")
    assert "policies must not depend on gpmi.gp.posterior" in found[0]


def test_nothing_imports_the_command_line_and_no_package_imports_a_door() -> None:
    sources = {
        "gpmi": "import gpmi.cli",
        "gpmi.run": "from gpmi import cli",
        "gpmi.cli": "from gpmi import __version__",
    }
    assert broken(layout.wrong_imports, sources, "gpmi.run")
    assert broken(layout.wrong_imports, sources, "gpmi.cli") == []
    through = {"gpmi.model.fitting.search": "from gpmi.kernels import Matern", "gpmi.kernels": ""}
    assert broken(layout.wrong_imports, through, "gpmi.model.fitting.search")


def test_a_module_outside_all_packages_is_found() -> None:
    assert "belongs to no package" in broken(layout.wrong_imports, {"gpmi.attic": ""}, "gpmi.attic")[0]


def test_private_names_of_another_package_are_found() -> None:
    other = {"gpmi.gp.linalg": "_solve = 1\nclass Factor:\n    def _grow(self): ..."}
    search, posterior = "gpmi.model.fitting.search", "gpmi.gp.posterior"
    for text in (
        "from gpmi.gp.linalg import _solve",
        "from gpmi.gp import linalg\nlinalg._solve",
        "import gpmi.gp.linalg as la\nla._solve",
        "import gpmi.gp.linalg\ngpmi.gp.linalg._solve",
        "from gpmi.gp.linalg import Factor\nFactor._grow",
        "def f(factor):\n    return factor._grow()",
    ):
        assert len(broken(layout.foreign_private_names, {search: text, **other}, search)) == 1, text
        assert broken(layout.foreign_private_names, {posterior: text, **other}, posterior) == []
    hidden = {search: "from gpmi.gp._inner import solve", "gpmi.gp._inner": "def solve(): ..."}
    assert len(broken(layout.foreign_private_names, hidden, search)) == 1


def test_own_private_names_and_those_of_named_tuples_are_allowed() -> None:
    text = "import os\nclass A:\n    _x: int = 1\n    def f(self, other):\n        return other._x + self._y\n"
    text += "a._replace(b=os._exit)"
    assert broken(layout.foreign_private_names, {"gpmi.run": text}, "gpmi.run") == []


def test_a_cycle_is_found_even_if_it_is_for_types_only() -> None:
    sources = {
        "gpmi.gp.a": "from gpmi.gp.b import B",
        "gpmi.gp.b": "from gpmi.gp.c import C",
        "gpmi.gp.c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gpmi.gp.a import A",
        "gpmi.gp.d": "from gpmi.gp.a import A",
    }
    edges = layout.module_edges(parse(sources))
    assert layout.cycle("gpmi.gp.b", edges) == ["gpmi.gp.b", "gpmi.gp.c", "gpmi.gp.a", "gpmi.gp.b"]
    assert layout.cycle("gpmi.gp.d", edges) == []


def test_long_modules_and_functions_are_found() -> None:
    body = "    x = 1\n" * 60
    modules = parse({"gpmi.run": f"def f():\n{body}def g():\n    x = 1\n" + "y = 1\n" * 400})
    assert layout.longer_than(modules, 400, 60) == {"gpmi.run": 463, "gpmi.run:f": 61}
    assert layout.longer_than(modules, 463, 61) == {}


def test_repeated_names_and_single_importers_are_found() -> None:
    modules = parse(
        {
            "gpmi.gp.table": "class Row: ...\nclass Column: ...",
            "gpmi.run.table": "class Row: ...\nfrom gpmi.gp.table import Column\nimport gpmi.gp.shared",
            "gpmi.run.plain": "import gpmi.gp.shared",
            "gpmi.gp.shared": "",
        }
    )
    assert layout.repeated_classes(modules) == {"Row": ["gpmi.gp.table", "gpmi.run.table"]}
    assert layout.repeated_modules(modules) == {"table": ["gpmi.gp.table", "gpmi.run.table"]}
    assert layout.single_importers(modules) == {"gpmi.gp.table": "gpmi.run.table"}


def test_an_exception_that_is_no_longer_needed_is_found() -> None:
    assert_all_needed("LONGER", {"gpmi.run": "one class, one story"}, {"gpmi.run": 800})
    with pytest.raises(AssertionError, match=r"delete the lines \['gpmi.run'\] of LONGER"):
        assert_all_needed("LONGER", {"gpmi.run": "one class, one story"}, {})


def test_a_door_that_does_something_is_found() -> None:
    fine = '"""A door."""\nfrom gpmi.gp.kernels import RBF\n__all__ = ["RBF"]\ndef __getattr__(name): ...'
    assert layout.door_offences(parse({"gpmi.kernels": fine})["gpmi.kernels"]) == []
    assert layout.door_offences(parse({"gpmi.kernels": fine + "\ndef rbf(): ..."})["gpmi.kernels"]) != []
