"""The blocks of docs/neighbours.md run where their tool is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "neighbours.md"
PACKAGES = {"BoTorch": "botorch", "Ax": "ax", "Ray Tune": "ray", "MLflow": "mlflow"}
BLOCK = re.compile(r'^```python title="([^"\n]+)"\n(.*?)^```$', flags=re.DOTALL | re.MULTILINE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("title", "code"), BLOCK.findall(PAGE.read_text(encoding="utf-8")))
def test_a_block_runs(title: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip(PACKAGES[title])
    monkeypatch.chdir(tmp_path)
    if title == "Ray Tune":  # its dashboard takes minutes to start
        package.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    try:
        exec(compile(code, title, "exec"), {"__name__": "page"})
    finally:
        if title == "Ray Tune":
            package.shutdown()
