"""Do the tests notice when a constant that decides behaviour is changed? `make mutants`.

tests/project/test_constants.py names, for each test, the constants it guards and wrong values of them. Each wrong value
is tried in a fresh process, which runs the tests that guard the constant; at least one must fail. The constant is
changed in the source as it is imported. So copies of it in other modules, default arguments and constants computed from
it are wrong as well.

    python benchmarks/mutants.py [--cores 2] [NAME ...]      some minutes

runs all mutants, or those of constants whose full name contains one of the NAMEs. The exit code is 1 if a mutant
survives.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import CodeType

import harness

ROOT = harness.ROOT
TESTS = ROOT / "tests" / "project" / "test_constants.py"
PASSED, FAILED = 0, 1  # exit codes of pytest; any other means that the tests did not run
TIMEOUT = 300.0  # seconds: a mutant that takes longer counts as noticed. A guard takes at most ten


# One mutant, in its own process


class MutantLoader(SourceFileLoader):
    """Load a module with one constant changed, right after its definition."""

    name: str
    value: str

    def get_code(self, fullname: str) -> CodeType:
        """Return the code, compiled from the source. Cached bytecode is not used."""
        tree = ast.parse(self.get_data(self.path), self.path)
        places = [i for i, statement in enumerate(tree.body) if self.name in _assigned(statement)]
        if not places:
            raise ImportError(f"{fullname} does not define {self.name}")
        tree.body[places[-1] + 1 : places[-1] + 1] = ast.parse(f"{self.name} = {self.value}").body
        return compile(tree, self.path, "exec")


def _assigned(statement: ast.stmt) -> set[str]:
    """Return the names that a statement assigns to."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return set()
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


class MutantFinder:
    """Find the module of the constant for `MutantLoader`, and leave all others to the usual finders."""

    def __init__(self, constant: str, value: str) -> None:
        self.module, _, self.name = constant.rpartition(".")
        self.value = value

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.origin is None:
            return None
        loader = MutantLoader(fullname, spec.origin)
        loader.name, loader.value = self.name, self.value
        return spec_from_file_location(fullname, spec.origin, loader=loader)


def run_mutant(constant: str, value: str, tests: list[str]) -> int:
    """Run the tests in this process with the constant changed, and return pytest's exit code."""
    if any(module.split(".")[0] == "gpmi" for module in sys.modules):
        raise RuntimeError("gpmi is already imported, so its constants cannot be changed")
    sys.meta_path.insert(0, MutantFinder(constant, value))
    import pytest

    quick = ["--noconftest", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"]  # the guards need none of these
    return int(pytest.main(["-x", "--tb=no", *quick, *tests]))


# All mutants


@dataclass(frozen=True)
class Mutant:
    """A constant, a wrong value of it as an expression, and the tests that guard it."""

    constant: str
    value: str
    tests: tuple[str, ...]

    def survives(self) -> bool:
        """Return whether all tests pass in spite of it. Raise an error if they could not be run."""
        command = [sys.executable, __file__, "--mutant", self.constant, self.value, *self.tests]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            return False
        if done.returncode not in (PASSED, FAILED):
            raise RuntimeError(f"{self.constant} = {self.value}: the tests did not run\n{done.stdout}{done.stderr}")
        return done.returncode == PASSED


def mutants(names: Sequence[str]) -> list[Mutant]:
    """Return the mutants of constants whose full name contains one of the names, or all if there are no names."""
    spec = spec_from_file_location(TESTS.stem, TESTS)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[TESTS.stem] = module
    spec.loader.exec_module(module)
    tests: dict[tuple[str, str], list[str]] = {}
    for guard in module.GUARDS:
        if not names or any(name in guard.constant for name in names):
            for value in guard.wrong:
                tests.setdefault((guard.constant, repr(value)), []).append(f"{TESTS.relative_to(ROOT)}::{guard.test}")
    return [Mutant(constant, value, tuple(nodes)) for (constant, value), nodes in tests.items()]


def main() -> int:
    """Run all mutants and report those that survive."""
    parser = harness.parser(__doc__, cores=True)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of constants' names; all by default")
    arguments = parser.parse_args()
    chosen = mutants(arguments.names)
    if not chosen:
        print(f"no guarded constant has {' or '.join(arguments.names)} in its name")
        return 1
    nodes = sorted({node for mutant in chosen for node in mutant.tests})
    # A test that fails in any case notices nothing.
    if subprocess.run([sys.executable, "-m", "pytest", "-q", *nodes], cwd=ROOT, check=False).returncode != PASSED:
        print("the tests fail with the constants as they are")
        return 1

    begin, survivors = time.perf_counter(), []
    with ThreadPoolExecutor(arguments.cores) as pool:
        for mutant, survives in zip(chosen, pool.map(Mutant.survives, chosen), strict=True):
            print(f"{'SURVIVES' if survives else 'noticed ':8}  {mutant.constant} = {mutant.value}", flush=True)
            if survives:
                survivors.append(mutant)
    count, constants = len(chosen), len({mutant.constant for mutant in chosen})
    print(
        f"{count - len(survivors)} of {count} mutants of {constants} constants were noticed, "
        f"in {time.perf_counter() - begin:.0f} s"
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--mutant"]:
        sys.exit(run_mutant(sys.argv[2], sys.argv[3], sys.argv[4:]))
    sys.exit(main())
