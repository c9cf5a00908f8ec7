"""Every example runs, without a warning."""

import subprocess
import sys
from pathlib import Path

import pytest

ARGUMENTS = {"tsunami.py": ("3", "0.25")}  # evaluations, on a coarse mesh
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=[pytest.mark.anuga] if path.name == "tsunami.py" else [])
        for path in EXAMPLES
    ],
)
def test_the_example_runs(path, tmp_path):
    command = [sys.executable, "-W", "error", path, *ARGUMENTS.get(path.name, ())]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout
    pictures = list(tmp_path.iterdir())
    assert pictures and all(picture.stat().st_size > 10_000 for picture in pictures)
