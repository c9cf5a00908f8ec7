"""The README's Python runs as printed."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from types import ModuleType

import pytest

import gpmi.optimizer
import gpmi.run

README = Path(__file__).parents[1] / "README.md"


def test_the_code_in_the_readme_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["r"].y > -0.41  # type: ignore[attr-defined]
    assert len(names["opt"].trials) == 1  # type: ignore[attr-defined]


def test_every_file_the_readme_links_to_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target


@pytest.mark.parametrize("module", [gpmi.optimizer, gpmi.run], ids=lambda module: module.__name__)
def test_the_examples_in_docstrings_run(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0 and results.failed == 0
