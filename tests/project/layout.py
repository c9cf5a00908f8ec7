"""Count what the layout of src/gpmi costs a reader: `python tests/project/layout.py` prints it.

Imports, names and sizes are read from the source with `ast`, including imports inside functions and those for types
only. The path of one query is measured by running it. `test_layout.py` sets limits on the counts.
"""

from __future__ import annotations

import ast
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gpmi"

# In order: a package imports only those before it.
PACKAGES = (
    *("_support", "space", "gp", "trials", "policies", "search", "model", "analysis", "optimizer", "storage"),
    *("views", "run", "theory", "integrations", "serve", "cli"),
)
# Modules that only re-export public names. No package imports them, except `cli`.
DOORS = (
    "gpmi",
    "chem",
    "command",
    "exchange",
    "kernels",
    "plots",
    "report",
    "stopping",
    "studyfile",
)

# Packages that come earlier and still must not be imported.
INDEPENDENT_OF = {
    "gp": {"space"},
    "trials": {"policies", "search"},
    "policies": {"space", "gp", "trials"},
    "views": {"optimizer", "storage"},
    "theory": {"space", "trials", "optimizer", "run"},
}

RECORDED_BY = "Log.settle"  # the function that enters the outcome of a trial in the log
LONG_MODULE, LONG_FUNCTION = 400, 60  # lines; above these a second look is advised

NAMED_TUPLE = {"_replace", "_asdict", "_fields", "_make"}  # public although they start with an underscore


# Reading the source


@dataclass(frozen=True)
class Import:
    """An import of `module`, or of `name` from it, in line `line`."""

    module: str
    name: str | None
    line: int


@dataclass(frozen=True)
class Module:
    """One source file of gpmi."""

    name: str  # "gpmi.gp.kernels"
    tree: ast.Module
    lines: int

    @property
    def package(self) -> str | None:
        """The package or door that the module belongs to, or None if it belongs to none."""
        top = "cli" if self.name == "gpmi.__main__" else (self.name.split(".")[1:2] or ["gpmi"])[0]
        return top if top in (*PACKAGES, *DOORS) else None

    @cached_property
    def private(self) -> set[str]:
        """The private names that the module defines: functions, classes, variables, attributes and arguments."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                    found.add(name)
        return {name for name in found if is_private(name)}

    @property
    def functions(self) -> dict[str, int]:
        """The lines of each function, by "gpmi.package.module:function"; the longest where names repeat."""
        sizes: dict[str, int] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                name = f"{self.name}:{node.name}"
                sizes[name] = max(sizes.get(name, 0), node.end_lineno - node.lineno + 1)
        return sizes


Modules = Mapping[str, Module]


def is_private(name: str) -> bool:
    """Whether a name is private to its package. `_support` is private to gpmi as a whole."""
    return name.startswith("_") and not name.endswith("__") and name not in (*NAMED_TUPLE, "_", "_support")


def parse(sources: Mapping[str, str]) -> dict[str, Module]:
    """Return the modules by name, given their texts by name."""
    return {name: Module(name, ast.parse(text), len(text.splitlines())) for name, text in sources.items()}


def read(folder: Path) -> dict[str, Module]:
    """Return all modules below a folder, by the name under which they are imported."""
    texts = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        texts[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return parse(texts)


def imports(module: Module, modules: Modules) -> Iterator[Import]:
    """Yield every import of gpmi in a module."""
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
                parents = parts[: len(parts) - node.level + is_package]
                origin = ".".join([*parents, *([node.module] if node.module else [])])
            if origin.split(".")[0] == "gpmi":
                for alias in node.names:
                    inner = f"{origin}.{alias.name}"
                    if inner in modules:
                        yield Import(inner, None, node.lineno)
                    else:
                        yield Import(origin, alias.name, node.lineno)


def origins(modules: Modules) -> set[str]:
    """Return the top-level names of all that is imported."""
    found = set()
    for node in (node for module in modules.values() for node in ast.walk(module.tree)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found


def module_edges(modules: Modules) -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    return {name: {used.module for used in imports(one, modules)} & set(modules) for name, one in modules.items()}


def package_edges(modules: Modules) -> Counter[tuple[str, str]]:
    """Return the pairs (importer, imported) of packages, with the number of module pairs behind each.

    `gpmi.__main__` and the doors are left out: they are entrances, not packages.
    """
    found: Counter[tuple[str, str]] = Counter()
    for name, targets in module_edges(modules).items():
        for target in targets:
            pair = modules[name].package, modules[target].package
            if name != "gpmi.__main__" and pair[0] != pair[1] and set(pair) <= set(PACKAGES):
                found[pair] += 1  # type: ignore[index]
    return found


def single_importers(modules: Modules) -> dict[str, str]:
    """Return the modules that exactly one module imports, with their importer. Packages and doors are left out."""
    importers = defaultdict(set)
    for name, targets in module_edges(modules).items():
        for target in targets:
            importers[target].add(name)
    packages = {name.rpartition(".")[0] for name in modules}
    return {
        name: next(iter(found))
        for name, found in sorted(importers.items())
        if len(found) == 1 and name not in packages and name.count(".") > 1
    }


def repeated_classes(modules: Modules) -> dict[str, list[str]]:
    """Return the names that more than one module gives to a class, with the modules."""
    found = defaultdict(set)
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].add(module.name)
    return {name: sorted(where) for name, where in sorted(found.items()) if len(where) > 1}


def repeated_modules(modules: Modules) -> dict[str, list[str]]:
    """Return the names that more than one module has, with the modules.

    Doors are left out, and so is a module that has the name of its package.
    """
    found = defaultdict(list)
    for name in modules:
        if name.count(".") > 1 and len(set(name.split(".")[-2:])) == 2:
            found[name.rpartition(".")[2]].append(name)
    return {name: where for name, where in sorted(found.items()) if len(where) > 1}


# Rules: each returns the offences of one module, one sentence each


def wrong_imports(module: Module, modules: Modules) -> list[str]:
    """Return the imports of a later package, of a door, or of a package that this one is independent of."""
    if module.package is None:
        return [f"{module.name} belongs to no package: docs/architecture.md and PACKAGES list them"]
    order = {package: place for place, package in enumerate(PACKAGES)} | dict.fromkeys(DOORS, len(PACKAGES))
    found = []
    for used in imports(module, modules):
        other = modules[used.module].package if used.module in modules else None
        if other is None or other == module.package:
            continue
        if order[other] > order[module.package] and module.package != "cli":
            found.append(f"{module.name}, line {used.line}: {module.package} imports {used.module}, which comes later")
        elif other in INDEPENDENT_OF.get(module.package, ()):
            found.append(f"{module.name}, line {used.line}: {module.package} must not depend on {used.module}")
    return found


def foreign_private_names(module: Module, modules: Modules) -> list[str]:
    """Return the uses of another package's private names: imported, or read from anything but `self` and `cls`."""
    own = {name for other in modules.values() if other.package == module.package for name in other.private}
    found = []
    for used in imports(module, modules):
        parts = [used.name or "", *used.module.split(".")]
        other = modules[used.module].package if used.module in modules else None
        if other != module.package and any(is_private(part) for part in parts):
            name = ".".join(filter(None, (used.module, used.name)))
            found.append(f"{module.name}, line {used.line}: {name} is private")
    origins = imported_names(module, modules)
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Attribute) and is_private(node.attr)):
            continue
        base = node.value.id if isinstance(node.value, ast.Name) else ""
        inside = origins[base] in (module.package, None) if base in origins else node.attr in own
        if base not in ("self", "cls") and not inside:
            found.append(f"{module.name}, line {node.lineno}: {ast.unparse(node)} is private to another package")
    return found


def imported_names(module: Module, modules: Modules) -> dict[str, str | None]:
    """Return the package of each imported name, or None if it is not from gpmi."""
    origins: dict[str, str | None] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            source = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                origin = modules.get(f"{source}.{alias.name}") or modules.get(source) or modules.get(alias.name)
                origins[alias.asname or alias.name] = None if origin is None else origin.package
    return origins


def cycle(name: str, edges: Mapping[str, set[str]]) -> list[str]:
    """Return a shortest chain of imports from a module back to itself, or an empty list."""
    chains = [[name]]
    seen: set[str] = set()
    for chain in chains:  # grows while it is read: breadth first
        for following in sorted(edges[chain[-1]]):
            if following == name and len(chain) > 1:
                return [*chain, following]
            if following not in seen:
                seen.add(following)
                chains.append([*chain, following])
    return []


def door_offences(module: Module) -> list[str]:
    """Return what a door has besides a docstring, imports, `__all__`, other constants and `__getattr__`."""
    found = []
    for node in module.tree.body:
        match node:
            case ast.ImportFrom() | ast.Import() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("__"):
                continue
            case ast.FunctionDef(name="__getattr__" | "__dir__"):
                continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.UnaryOp(operand=ast.Name(id="TYPE_CHECKING"))):
                continue
        found.append(f"{module.name}, line {node.lineno}: a door only re-exports")
    return found


def longer_than(modules: Modules, module_lines: int, function_lines: int) -> dict[str, int]:
    """Return the modules and functions longer than the limits, longest first, with their lines."""
    found = {}
    for module in modules.values():
        if module.lines > module_lines:
            found[module.name] = module.lines
        found |= {name: lines for name, lines in module.functions.items() if lines > function_lines}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


# Measuring one query


def crossed_packages() -> dict[str, int]:
    """Return the calls into each package during one `ask` and one `tell` of a default optimizer, most calls first.

    The initial design is over by then, and everything that a query needs has been imported.
    """
    import gpmi

    optimizer = gpmi.Optimizer([(0.0, 1.0), (0.0, 1.0)], seed=0)
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_globals.get("__name__", "").startswith("gpmi."):
            calls[frame.f_globals["__name__"].split(".")[1]] += 1

    for trial in range(13):
        with profiling(count if trial == 12 else None):
            x = optimizer.ask()
            optimizer.tell(x, -float(((x - 0.3) ** 2).sum()))
    return dict(calls.most_common())


def frames_of_tell() -> list[str]:
    """Return the calls on the stack when a study's `tell` reaches `RECORDED_BY`, both included.

    Only calls of gpmi count. If an outcome is recorded more than once, the deepest stack is returned.
    """
    import gpmi

    stacks: list[list[str]] = [[]]

    def notice(frame: FrameType | None, event: str, argument: object) -> None:
        if event == "call" and frame is not None and frame.f_code.co_qualname == RECORDED_BY:
            stack = []
            while frame is not None:
                if frame.f_globals.get("__name__", "").startswith("gpmi."):
                    stack.append(f"{frame.f_globals['__name__']}:{frame.f_code.co_qualname}")
                frame = frame.f_back
            stacks.append(stack[::-1])

    with tempfile.TemporaryDirectory() as folder, gpmi.study(Path(folder) / "one.db", space=[(0.0, 1.0)]) as study:
        for last in (False, True):
            trial = study.ask()
            with profiling(notice if last else None):
                study.tell(trial, 0.0)
    if stacks == [[]]:
        raise RuntimeError(f"tell never called {RECORDED_BY}: name what records an outcome in RECORDED_BY, {__file__}")
    return max(stacks, key=len)


@contextmanager
def profiling(function: Callable[[FrameType, str, object], None] | None) -> Iterator[None]:
    """Call `function` at every call and return in this context, unless it is None."""
    before = sys.getprofile()
    if function is not None:
        sys.setprofile(function)
    try:
        yield
    finally:
        sys.setprofile(before)


# Printing


def main() -> None:
    """Print all counts."""
    modules = read(SOURCE)
    edges = package_edges(modules)
    lines = Counter[str]()
    for module in modules.values():
        lines[module.package or "?"] += module.lines
    title(f"{len(PACKAGES)} packages, {sum(lines.values())} lines; {len(edges)} import edges between packages")
    for package in PACKAGES:
        targets = [target for source, target in sorted(edges, key=by_order) if source == package]
        print(f"  {package:<13}{lines[package]:>6}  {' '.join(targets)}")
    print(f"  {'doors':<13}{sum(lines[door] for door in DOORS):>6}  {' '.join(DOORS)}")

    crossed = crossed_packages()
    title(f"one ask and one tell cross {len(crossed)} packages (with calls into each)")
    print("  " + " ".join(f"{package}:{calls}" for package, calls in crossed.items()))

    frames = frames_of_tell()
    title(f"a study's tell reaches {RECORDED_BY} in {len(frames)} frames")
    table((frame.partition(":")[::2]) for frame in frames)

    single = single_importers(modules)
    far = {name: other for name, other in single.items() if modules[name].package != modules[other].package}
    title(f"{len(single)} modules have one importer, {len(far)} of them in another package")
    table((far | single).items())

    title(f"modules over {LONG_MODULE} lines, functions over {LONG_FUNCTION}")
    table((name, str(size)) for name, size in longer_than(modules, LONG_MODULE, LONG_FUNCTION).items())

    for kind, repeated in (("classes", repeated_classes(modules)), ("modules", repeated_modules(modules))):
        title(f"{len(repeated)} names of {kind} are used more than once")
        table((name, " ".join(one.removeprefix("gpmi.") for one in where)) for name, where in repeated.items())


def by_order(pair: tuple[str, str]) -> tuple[int, int]:
    return PACKAGES.index(pair[0]), PACKAGES.index(pair[1])


def title(text: str) -> None:
    print(f"\n{text}")


def table(rows: Iterable[tuple[str, ...]]) -> None:
    rows = list(rows)
    width = max((len(row[0]) for row in rows), default=0) + 2
    for row in rows:
        print("  " + row[0].ljust(width) + " ".join(row[1:]))


if __name__ == "__main__":
    main()
