"""A report says what the run says, in one file that loads nothing, whatever the names in it."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import gpmi
from gpmi import report

HOSTILE = "<script>alert(1)</script>\"'&\x00</td>"


def hill(x):
    return -float(np.sum((np.asarray(x) - 0.3) ** 2))


@pytest.fixture(scope="module")
def run():
    return gpmi.maximize(hill, [(0.0, 1.0)] * 2, budget=12, seed=0)


class Strict(HTMLParser):
    """All elements, each closed in the right order, with the text of the whole."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.found, self.text = [], [], ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "input", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, *names):
        return [attributes for tag, attributes in self.found if tag in names]


def test_every_section_is_made_for_a_result_an_optimizer_and_a_study(run, tmp_path):
    optimizer = gpmi.Optimizer([(0.0, 1.0)] * 2, seed=0).replay(run)
    with gpmi.study(tmp_path / "s.db", space=[(0.0, 1.0)] * 2, seed=0) as study:
        study.tell([0.5, 0.5], 1.0)
        for source in (run, optimizer, study):
            made = report.sections(source)
            assert [one.id for one in made] == [name for name in report.IDS if name in {one.id for one in made}]
            assert not any("could not be made" in one.html for one in made)
        assert study.report(tmp_path / "study.html").stat().st_size > 0


def test_a_page_is_well_formed_and_loads_nothing(run):
    page = Strict(report.page(run, title=HOSTILE))
    assert [tag for tag, _ in page.found if tag in ("script", "link", "img", "iframe")] == ["script"]
    for _, attributes in page.found:
        assert not any(name.startswith("on") or name in ("style", "src") for name in attributes)
        assert attributes.get("href", "#").startswith("#")


def test_what_is_not_a_run_is_refused():
    with pytest.raises(TypeError, match="source is 3; give a Result"):
        report.sections(3)
    with pytest.raises(ValueError, match="the sections are found"):
        report.sections(gpmi.Optimizer([(0.0, 1.0)]), only=["nothing"])


def test_a_file_that_cannot_be_written_is_refused_before_any_work(run, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot be written to"):
        run.report(tmp_path / "file" / "run.html")
    with pytest.raises(ValueError, match="is a folder"):
        run.report(tmp_path)


def test_the_command_writes_the_report_of_a_study(tmp_path):
    from typer.testing import CliRunner

    from gpmi.cli.commands import app

    with gpmi.study(tmp_path / "s.db", "first", space=[(0.0, 1.0)], seed=0) as study:
        study.tell([0.5], 1.0)
    out = tmp_path / "report.html"
    done = CliRunner().invoke(app(), ["report", str(tmp_path / "s.db"), "--out", str(out)])
    assert done.exit_code == 0 and done.stdout.strip() == str(out)
    assert "Report of first" in Strict(out.read_text(encoding="utf-8")).text
    assert CliRunner().invoke(app(), ["report", str(tmp_path / "s.db"), "--name", "other"]).exit_code == 1
    assert "Example: gpmi report study.db" in CliRunner().invoke(app(), ["report", "--help"]).stdout
