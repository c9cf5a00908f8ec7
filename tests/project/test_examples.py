"""Every example runs, without a warning."""

import re
import runpy
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

matplotlib.use("Agg")

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path.read_text().startswith("# %%")], ids=lambda path: path.name
)
def test_a_story_is_a_script_in_cells_whose_pictures_the_site_shows(path):
    """Each cell is prose or code, and each picture that it draws has been drawn for the site (make gallery)."""
    cells = re.split(r"^# %%", path.read_text(), flags=re.MULTILINE)[1:]
    assert len(cells) >= 6 and cells[0].startswith(" [markdown]\n# # ")
    for cell in cells:
        head, _, body = cell.partition("\n")
        assert head in ("", " [markdown]")
        assert not head or all(line.startswith("#") for line in body.strip().splitlines())
    drawn = re.findall(r'savefig\("(\S+?)"', path.read_text())
    assert drawn and all((path.parents[1] / "docs" / "gallery" / picture).exists() for picture in drawn)


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_example_runs(path, tmp_path, monkeypatch, capfd):
    """It runs in this process, because a process of its own would import everything again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    printed = capfd.readouterr()
    assert printed.err == ""
    assert printed.out
    pictures = list(tmp_path.iterdir())
    assert pictures and all(picture.stat().st_size > 10_000 for picture in pictures)
