"""The comparison of two source trees: what a ratio says, and that each side runs its own tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import before_after
import harness
import instructions
import pytest
from before_after import Comparison

ROOT = harness.ROOT


def test_a_ratio_is_the_median_over_the_turns_and_its_interval_their_range() -> None:
    compared = Comparison(before=[1.0, 2.0, 4.0], after=[1.1, 1.8, 4.0])
    assert compared.ratios == pytest.approx([1.1, 0.9, 1.0])
    assert compared.ratio == pytest.approx(1.0)
    assert compared.interval == pytest.approx((0.9, 1.1))
    assert str(compared) == "1.00 (0.90 to 1.10)"


def test_worse_means_that_every_turn_was_worse() -> None:
    assert Comparison([1.0, 1.0], [1.3, 1.1]).worse
    assert "worse" in str(Comparison([1.0, 1.0], [1.3, 1.1]))
    assert not Comparison([1.0, 1.0], [1.3, 1.0]).worse
    assert not Comparison([1.0, 1.0], [1.01, 1.01]).worse  # within the tolerance


def test_the_page_has_a_row_for_every_case() -> None:
    one = Comparison([1e-3] * 7, [1e-3] * 7)
    rows = [before_after.row(case, one, Comparison([2048.0], [1024.0]), same=True) for case in before_after.TITLES]
    lines = "\n".join(before_after.table(rows))
    assert lines.count("1 ms | 1 ms | 1.00 (1.00 to 1.00) | 2 MB | 1 MB | 0.50 (0.50 to 0.50) | yes |") == len(rows)
    assert "with probability 98%" in before_after.introduction(7)
    assert set(before_after.TITLES) == {*before_after.CASES, "import"}


def test_a_case_runs_with_the_tree_it_is_given() -> None:
    result = before_after.run("import", ROOT / "src")  # it asserts that gpmi came from there
    assert result["seconds"] > 0.0 and result["peak"] > 1024


@pytest.mark.slow
def test_both_sides_of_a_case_ask_for_the_same_points() -> None:
    seconds, peak, same = before_after.compare("finite-100", (ROOT / "src", ROOT / "src"), 1)
    assert same
    assert 0.1 < seconds.ratio < 10.0 and 0.8 < peak.ratio < 1.25


def test_an_unknown_revision_is_refused_in_one_line(tmp_path: Path) -> None:
    if subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("the source is no git repository")
    with pytest.raises(SystemExit, match="no tree of 'nothing' to compare with"):
        harness.extract("nothing", tmp_path)


def test_the_instructions_of_a_suggestion_are_those_of_a_run_less_those_of_one_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs = {"a": 2_000_000, "b": 2_100_000}

    def counted(tree: Path, n: int, d: int, count: int) -> tuple[int, str]:
        return 10**9 + count * costs[tree.name], f"asked {count}"

    monkeypatch.setattr(instructions, "counted", counted)
    row = instructions.row((Path("a"), Path("b")), 20, 6)
    assert row == "| 6-d box, n = 20 | 2.00 | 2.10 | 1.050 | yes |"
