"""The rooms keep to the map of docs/architecture.md: imports, private names and sizes are read from the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gpmi"
MAP = ROOT / "docs" / "architecture.md"

# From top to bottom. A module belongs to the room with the longest name that it starts with.
ROOMS = (
    *("_support", "space", "gp", "trials", "policies", "search", "model", "analysis", "optimizer", "storage"),
    *("views", "run", "paper", "integrations", "serve"),
)
# They re-export public names, so no package uses them.
DOORS = ("gpmi", "command", "exchange", "kernels", "plots", "report", "stopping", "studyfile", "tasks", "theory")
LAST = "cli"  # the only one that may use a door, and nothing but doors uses it

# Packages that stand above another one and are still unknown to it.
UNKNOWN = {
    "gp": {"space"},
    "trials": {"policies", "search"},
    "policies": {"space", "gp", "trials"},
    "views": {"optimizer", "storage"},
}

LINES_OF_A_MODULE = 400
LINES_OF_A_FUNCTION = 60
LONGER: dict[str, str] = {  # "gpmi.room.module" or "gpmi.room.module:function" -> why it is right as it is
    "gpmi.optimizer.optimizer": "one class tells one story: what is asked, told, read, and how it is done",
    "gpmi.run.loop:maximize": "its arguments and what each of them means; it has three statements",
}

NAMED_TUPLE = {"_replace", "_asdict", "_fields", "_make"}  # public, whatever they begin with


# Reading


@dataclass(frozen=True)
class Import:
    """`module` of the package is imported in `line`; `name` is taken from it, unless the module itself is meant."""

    module: str
    name: str | None
    line: int


@dataclass(frozen=True)
class Module:
    """One source file of the package."""

    name: str  # "gpmi.gp.kernels"
    tree: ast.Module
    lines: int

    @property
    def room(self) -> str | None:
        """The room that it belongs to; None if the map has none for it."""
        inside = self.name.removeprefix("gpmi.").replace("__main__", LAST)  # python -m gpmi
        known = [room for room in (*ROOMS, *DOORS, LAST) if inside == room or inside.startswith(room + ".")]
        return max(known, key=len, default=None)

    @cached_property
    def private(self) -> set[str]:
        """The private names that it defines: functions, classes, variables, attributes, arguments."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                    found.add(name)
        return {name for name in found if is_private(name)}


def is_private(name: str) -> bool:
    free = name in (*NAMED_TUPLE, "_", "_support")  # `_support` is private to gpmi, not to one of its packages
    return name.startswith("_") and not name.endswith("__") and not free


def read(sources: Mapping[str, str]) -> dict[str, Module]:
    """The modules of a package by name, from their texts."""
    return {name: Module(name, ast.parse(text), len(text.splitlines())) for name, text in sources.items()}


def package(folder: Path) -> dict[str, str]:
    """The texts of all modules in a folder, by the name under which they are imported."""
    texts = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        texts[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return texts


def imports(module: Module, modules: Mapping[str, Module]) -> Iterator[Import]:
    """What a module imports from its own package, at the top, inside functions or for its types only."""
    is_package = any(name.startswith(module.name + ".") for name in modules)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "gpmi":
                    yield Import(alias.name, None, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parts = module.name.split(".")
                above = parts[: len(parts) - node.level + is_package]
                origin = ".".join([*above, *([node.module] if node.module else [])])
            if origin.split(".")[0] == "gpmi":
                for alias in node.names:
                    inner = f"{origin}.{alias.name}"
                    yield (
                        Import(inner, None, node.lineno)
                        if inner in modules
                        else Import(origin, alias.name, node.lineno)
                    )


# Judging: each returns the offences of one module, in words


def wrong_way(module: Module, modules: Mapping[str, Module]) -> list[str]:
    """Imports of a room that stands below, or that this room does not know."""
    if module.room is None:
        return [f"{module.name} has no room: docs/architecture.md and ROOMS say which there are"]
    order = {room: place for place, room in enumerate((*ROOMS, LAST, "doors"))}
    order.update(dict.fromkeys(DOORS, order["doors"]))
    found = []
    for used in imports(module, modules):
        other = modules[used.module].room if used.module in modules else None
        if other is None or other == module.room:
            continue
        if order[other] > order[module.room] and module.room != LAST:
            found.append(f"line {used.line}: {module.room} uses {used.module}, which stands below it")
        elif other in UNKNOWN.get(module.room, ()):
            found.append(f"line {used.line}: {module.room} is not to know {used.module}")
    return found


def private_names(module: Module, modules: Mapping[str, Module]) -> list[str]:
    """Private names of another room: imported, or read from anything that is not `self`."""
    own = {name for other in modules.values() if other.room == module.room for name in other.private}
    found = []
    for used in imports(module, modules):
        parts = [used.name or "", *used.module.split(".")]
        other = modules[used.module].room if used.module in modules else None
        if other != module.room and any(is_private(part) for part in parts):
            found.append(f"line {used.line}: {'.'.join(filter(None, (used.module, used.name)))} is private")
    known = aliases(module, modules)
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Attribute) and is_private(node.attr)):
            continue
        base = node.value.id if isinstance(node.value, ast.Name) else ""
        inside = known[base] in (module.room, None) if base in known else node.attr in own
        if base not in ("self", "cls") and not inside:
            found.append(f"line {node.lineno}: {ast.unparse(node)} is private to another room")
    return found


def aliases(module: Module, modules: Mapping[str, Module]) -> dict[str, str | None]:
    """The rooms that the imported names of a module come from; None for what is not of this package."""
    known: dict[str, str | None] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            source = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                origin = modules.get(f"{source}.{alias.name}") or modules.get(source) or modules.get(alias.name)
                known[alias.asname or alias.name] = None if origin is None else origin.room
    return known


def edges_of(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Which modules each one imports."""
    return {name: {used.module for used in imports(other, modules)} & set(modules) for name, other in modules.items()}


def cycle(module: Module, edges: Mapping[str, set[str]]) -> list[str]:
    """A shortest way of imports from a module back to itself; empty if there is none."""
    ways = [[module.name]]
    seen: set[str] = set()
    for way in ways:  # grows while it is read: breadth first
        for following in sorted(edges[way[-1]]):
            if following == module.name and len(way) > 1:
                return [*way, following]
            if following not in seen:
                seen.add(following)
                ways.append([*way, following])
    return []


def too_long(module: Module, longer: Mapping[str, str]) -> list[str]:
    """The module and its functions that exceed the limits without a reason."""
    sizes = {name: lines for name, (lines, limit) in measured(module).items() if lines > limit}
    return [f"{name} has {lines} lines" for name, lines in sizes.items() if name not in longer]


def measured(module: Module) -> dict[str, tuple[int, int]]:
    """(lines, limit) of the module and of each of its functions."""
    sizes = {module.name: (module.lines, LINES_OF_A_MODULE)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            sizes[f"{module.name}:{node.name}"] = (node.end_lineno - node.lineno + 1, LINES_OF_A_FUNCTION)
    return sizes


def not_a_door(module: Module) -> list[str]:
    """What a door has besides a docstring, imports, `__all__`, other constants and `__getattr__` for late imports."""
    found = []
    for node in module.tree.body:
        match node:
            case ast.ImportFrom() | ast.Import() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("__"):
                continue
            case ast.FunctionDef(name="__getattr__" | "__dir__"):
                continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
        found.append(f"line {node.lineno}: a door only re-exports")
    return found


# The package

MODULES = read(package(SOURCE))
EDGES = edges_of(MODULES)
EVERY = pytest.mark.parametrize("module", [pytest.param(module, id=name) for name, module in MODULES.items()])


@EVERY
def test_a_room_uses_only_those_above_it(module: Module) -> None:
    found = wrong_way(module, MODULES)
    assert not found, "; ".join(found)


@EVERY
def test_a_private_name_stays_in_its_room(module: Module) -> None:
    found = private_names(module, MODULES)
    assert not found, "; ".join(found)


@EVERY
def test_no_import_leads_back(module: Module) -> None:
    found = cycle(module, EDGES)
    assert not found, " -> ".join(found)


@EVERY
def test_a_module_tells_one_story(module: Module) -> None:
    found = too_long(module, LONGER)
    assert not found, "; ".join(found)


@pytest.mark.parametrize("door", DOORS)
def test_a_door_only_re_exports(door: str) -> None:
    assert not_a_door(MODULES["gpmi" if door == "gpmi" else f"gpmi.{door}"]) == []


def test_every_exception_is_needed_and_has_a_reason() -> None:
    sizes = {name: size for module in MODULES.values() for name, size in measured(module).items()}
    for name, reason in LONGER.items():
        assert sizes[name][0] > sizes[name][1], f"{name} is short enough now"
        assert len(reason.split()) >= 5, f"why is {name} long?"


def test_the_map_has_the_rooms_in_this_order() -> None:
    assert named_in(MAP.read_text(encoding="utf-8")) == [room.replace(".", "/") for room in (*ROOMS, LAST)]


def named_in(text: str) -> list[str]:
    """The rooms named in the first column of the page's tables, in order."""
    cells = re.findall(r"^\| ((?:`[a-z_/]+`(?:, )?)+) \|", text, flags=re.MULTILINE)
    return [room for cell in cells for room in re.findall(r"`([a-z_/]+)`", cell)]


# The guard can fail


def judged(judge: object, sources: Mapping[str, str], name: str) -> Sequence[str]:
    modules = read(sources)
    return judge(modules[name], modules)  # type: ignore[operator, no-any-return]


def test_a_room_that_uses_one_below_it_is_found_wherever_the_import_stands() -> None:
    for text in (
        "from gpmi.optimizer import Optimizer",
        "import gpmi.optimizer",
        "from gpmi import optimizer",
        "def f():\n    from gpmi.optimizer import Optimizer",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gpmi.optimizer import Optimizer",
        "from ..optimizer import Optimizer",
    ):
        found = judged(wrong_way, {"gpmi.gp.kernels": text, "gpmi.optimizer": ""}, "gpmi.gp.kernels")
        assert len(found) == 1 and "gp uses gpmi.optimizer, which stands below it" in found[0]
    assert (
        judged(wrong_way, {"gpmi.optimizer": "import gpmi.gp.kernels", "gpmi.gp.kernels": ""}, "gpmi.optimizer") == []
    )


def test_a_room_that_is_above_and_still_unknown_is_found() -> None:
    sources = {"gpmi.policies.phi": "from gpmi.gp.posterior import Posterior", "gpmi.gp.posterior": ""}
    assert "policies is not to know gpmi.gp.posterior" in judged(wrong_way, sources, "gpmi.policies.phi")[0]


def test_nothing_imports_the_command_line_and_no_room_goes_through_a_door() -> None:
    sources = {
        "gpmi": "import gpmi.cli",
        "gpmi.run": "from gpmi import cli",
        "gpmi.cli": "from gpmi import __version__",
    }
    assert judged(wrong_way, sources, "gpmi.run")
    assert judged(wrong_way, sources, "gpmi.cli") == []
    through = {"gpmi.model.fitting.search": "from gpmi.kernels import Matern", "gpmi.kernels": ""}
    assert judged(wrong_way, through, "gpmi.model.fitting.search")


def test_a_module_without_a_room_is_found() -> None:
    assert "has no room" in judged(wrong_way, {"gpmi.attic": ""}, "gpmi.attic")[0]


def test_private_names_of_another_room_are_found() -> None:
    other = {"gpmi.gp.linalg": "_solve = 1\nclass Factor:\n    def _grow(self): ..."}
    for text in (
        "from gpmi.gp.linalg import _solve",
        "from gpmi.gp import linalg\nlinalg._solve",
        "import gpmi.gp.linalg as la\nla._solve",
        "import gpmi.gp.linalg\ngpmi.gp.linalg._solve",
        "from gpmi.gp.linalg import Factor\nFactor._grow",
        "def f(factor):\n    return factor._grow()",
    ):
        assert (
            len(judged(private_names, {"gpmi.model.fitting.search": text, **other}, "gpmi.model.fitting.search")) == 1
        ), text
        assert judged(private_names, {"gpmi.gp.posterior": text, **other}, "gpmi.gp.posterior") == []
    hidden = {"gpmi.model.fitting.search": "from gpmi.gp._inner import solve", "gpmi.gp._inner": "def solve(): ..."}
    assert len(judged(private_names, hidden, "gpmi.model.fitting.search")) == 1


def test_own_private_names_and_those_of_named_tuples_are_free() -> None:
    text = "import os\nclass A:\n    _x: int = 1\n    def f(self, other):\n        return other._x + self._y\n"
    text += "a._replace(b=os._exit)"
    assert judged(private_names, {"gpmi.run": text}, "gpmi.run") == []


def test_a_cycle_is_found_also_if_it_is_for_types_only() -> None:
    sources = {
        "gpmi.gp.a": "from gpmi.gp.b import B",
        "gpmi.gp.b": "from gpmi.gp.c import C",
        "gpmi.gp.c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gpmi.gp.a import A",
        "gpmi.gp.d": "from gpmi.gp.a import A",
    }
    modules = read(sources)
    edges = edges_of(modules)
    assert cycle(modules["gpmi.gp.b"], edges) == ["gpmi.gp.b", "gpmi.gp.c", "gpmi.gp.a", "gpmi.gp.b"]
    assert cycle(modules["gpmi.gp.d"], edges) == []


def test_long_modules_and_functions_are_found_unless_they_have_a_reason() -> None:
    body = "    x = 1\n" * LINES_OF_A_FUNCTION
    modules = read({"gpmi.run": f"def f():\n{body}def g():\n    x = 1\n" + "y = 1\n" * LINES_OF_A_MODULE})
    assert too_long(modules["gpmi.run"], {}) == ["gpmi.run has 463 lines", "gpmi.run:f has 61 lines"]
    assert too_long(modules["gpmi.run"], {"gpmi.run": "", "gpmi.run:f": ""}) == []


def test_a_door_that_does_something_is_found() -> None:
    fine = '"""A door."""\nfrom gpmi.gp.kernels import RBF\n__all__ = ["RBF"]\ndef __getattr__(name): ...'
    assert not_a_door(read({"gpmi.kernels": fine})["gpmi.kernels"]) == []
    assert not_a_door(read({"gpmi.kernels": fine + "\ndef rbf(): ..."})["gpmi.kernels"]) != []
