"""Count the questions that the source asks more than once: `python tests/project/shape.py [--modules]` prints them.

A run has one shape: what differs between kinds of runs is decided at the door. So branches that ask for the kind of a
run are counted, sentences that several modules word, and names that say nothing. The counts are read from the syntax
trees, but for the sentences. A branch that hides in a table of functions is not counted, and is still a branch.
`test_shape.py` holds each count at its limit; lower the limit when a count has fallen.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from layout import SOURCE, Modules, read

GOALS = {"goals", "has_front", "single", "is_several", "_is_several", "is_named", "unnamed"}
GOALS |= {"front_ledger", "FrontLedger", "FrontSummary"}
FIDELITY = {"fidelity", "has_steps", "has_levels", "_levels"}
KINDS = {"Real", "Int", "Choice", "Constant", "Fidelity", "OnArc"}  # of parameters
VAGUE = {"one", "found", "own", "known", "some", "made", "more"}
EDGE = {"views", "integrations", "serve", "cli"}
HOLDS_A_MODEL = re.compile(r"alone|outputs|by_name|named|target|setting$")


# Counters


def names(tree: ast.AST) -> set[str]:
    """Return the variables and attributes that a piece of code names."""
    nodes = list(ast.walk(tree))
    variables = {node.id for node in nodes if isinstance(node, ast.Name)}
    return variables | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def conditions(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what is tested by `if`, `while`, conditional expressions and comprehensions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def branches(modules: Modules, words: Collection[str], *packages: str) -> Counter[str]:
    """Return the number of branches whose condition names one of the words, by module; of all packages or of these."""
    return +Counter(
        {
            name: sum(not names(condition).isdisjoint(words) for condition in conditions(module.tree))
            for name, module in modules.items()
            if not packages or module.package in packages
        }
    )


def kind_questions(modules: Modules) -> Counter[str]:
    """Return the number of questions for the kind of a parameter outside of `space`, by module."""

    def asks(node: ast.AST) -> bool:
        if isinstance(node, ast.match_case):
            return not names(node.pattern).isdisjoint(KINDS)
        is_check = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
        return is_check and not names(node.args[1]).isdisjoint(KINDS)  # type: ignore[attr-defined]

    outside = {name: module for name, module in modules.items() if module.package != "space"}
    return +Counter({name: sum(map(asks, ast.walk(module.tree))) for name, module in outside.items()})


def imported_by_the_edge(modules: Modules) -> Counter[str]:
    """Return the modules of the core that packages at the edge import from, with the number of such imports."""
    edge = (node for module in modules.values() if module.package in EDGE for node in ast.walk(module.tree))
    imported = Counter(node.module for node in edge if isinstance(node, ast.ImportFrom) and node.module)
    return Counter({name: n for name, n in imported.items() if name[:5] == "gpmi." and name.split(".")[1] not in EDGE})


def sentences(modules: Modules, pattern: str) -> Counter[str]:
    """Return the modules whose text has the pattern."""
    paths = {name: SOURCE.parent / name.replace(".", "/") for name in modules}
    files = {name: path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for name, path in paths.items()}
    return +Counter({name: len(re.findall(pattern, file.read_text("utf-8"))) for name, file in files.items()})


def optimizer(modules: Modules) -> ast.ClassDef:
    classes = (node for node in ast.walk(modules["gpmi.optimizer.optimizer"].tree) if isinstance(node, ast.ClassDef))
    return next(node for node in classes if node.name == "Optimizer")


def lines_of_optimizer(modules: Modules) -> int:
    node = optimizer(modules)
    return (node.end_lineno or node.lineno) - node.lineno + 1


def models_of_optimizer(modules: Modules) -> set[str]:
    """Return the attributes of `Optimizer` that hold one of several kinds of model."""
    nodes = (node for node in ast.walk(optimizer(modules)) if isinstance(node, ast.Attribute))
    return {node.attr for node in nodes if isinstance(node.ctx, ast.Store) and HOLDS_A_MODEL.search(node.attr)}


def vague_names(modules: Modules) -> tuple[Counter[str], int]:
    """Return how often variables and arguments have a name that says nothing, and the number of all of them."""
    bound = Counter[str]()
    for node in (node for module in modules.values() for node in ast.walk(module.tree)):
        if isinstance(node, ast.arg):
            bound[node.arg] += 1
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] += 1
    return Counter({name: bound[name] for name in VAGUE if name in bound}), bound.total()


def vague_per_mille(modules: Modules) -> int:
    vague, total = vague_names(modules)
    return round(1000 * vague.total() / total)


# Limits


@dataclass(frozen=True)
class Count:
    """A count that should fall: `limit` holds today, `target` is where it should end."""

    what: str
    of: Callable[[Modules], int]
    limit: int
    target: int


COUNTS = (
    Count("branches on goals", lambda m: branches(m, GOALS).total(), 36, 36),
    Count("modules with such a branch", lambda m: len(branches(m, GOALS)), 20, 20),
    Count("such branches in optimizer", lambda m: branches(m, GOALS, "optimizer").total(), 6, 6),
    Count("such branches in views and serve", lambda m: branches(m, GOALS, "views", "serve").total(), 8, 8),
    Count("branches on the fidelity", lambda m: branches(m, FIDELITY).total(), 33, 33),
    Count("questions for the kind of a parameter outside of space", lambda m: kind_questions(m).total(), 4, 4),
    Count("modules that speak of over-confident intervals", lambda m: len(sentences(m, "over-confident")), 4, 4),
    Count("modules that say 'probability 95'", lambda m: len(sentences(m, "probability 95")), 1, 1),
    Count("modules that say 'can I stop?'", lambda m: len(sentences(m, r"an I stop\?")), 2, 2),
    Count("modules of the core that the edge imports from", lambda m: len(imported_by_the_edge(m)), 24, 24),
    Count("attributes of Optimizer that hold a kind of model", lambda m: len(models_of_optimizer(m)), 0, 0),
    Count("lines of the class Optimizer", lines_of_optimizer, 700, 700),
    Count("vague names, per mille", vague_per_mille, 5, 5),
)


def main() -> None:
    """Print all counts, and with --modules where the branches are."""
    modules = read(SOURCE)
    print(f"{'':60} now  limit  target")
    for count in COUNTS:
        print(f"{count.what:58}{count.of(modules):>6}{count.limit:>7}{count.target:>8}")
    if "--modules" in sys.argv:
        for title, found in (("goals", branches(modules, GOALS)), ("the fidelity", branches(modules, FIDELITY))):
            print(f"\nbranches on {title}")
            for name, number in found.most_common():
                print(f"{number:6} {name}")


if __name__ == "__main__":
    main()
