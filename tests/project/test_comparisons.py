"""What the pages about other tools are computed with: runs, recommended points, ranks and the picture of evidence."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bbob
import harness
import numpy as np
import pytest
import recommended
from peers import comparison, evidence, optimisers, playing, recommendations, regrets

BOX = [(-2.0, 3.0), (0.0, 10.0)]


def bowl(x: np.ndarray) -> float:
    return -float((x[0] - 1.0) ** 2 + (x[1] / 5 - 1.2) ** 2)


@pytest.fixture(autouse=True)
def versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimisers, "version", lambda name: "1.0")  # the tools are not installed here


# Runs


def test_a_run_asks_as_often_as_it_may_and_tells_every_value() -> None:
    told: list[tuple[Any, float]] = []
    tool = SimpleNamespace(ask=lambda: np.zeros(2), tell=lambda x, y: told.extend(zip(x, y, strict=True)))
    values = iter(range(100))
    cpu, status = playing.play(tool, lambda x: float(next(values)), 7, ([np.ones(2)], [-1.0]))
    assert status == "done" and cpu >= 0.0
    assert [y for _, y in told] == [-1.0, *range(7)]


def test_a_tool_that_raises_is_a_failed_run_with_its_reason() -> None:
    def ask() -> None:
        raise ArithmeticError("no\nfactor")

    tool = SimpleNamespace(ask=ask, tell=lambda x, y: None)
    assert playing.play(tool, bowl, 3, ([], []))[1] == "failed: ArithmeticError: no factor"


def _burn() -> None:
    while True:
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_process_that_dies_or_uses_too_much_cpu_is_a_failed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "LIMIT", 1)
    assert playing.alone(lambda: None) == "done"
    assert playing.alone(os._exit, 3) == "failed: exit code 3"
    assert playing.alone(_burn) == "failed: more than 1 s"


# Recommended points


def test_the_best_row_is_the_maximum_of_the_mean_told_or_not() -> None:
    peak = np.array([0.31, 0.77, 0.0])

    def mean(rows: np.ndarray) -> np.ndarray:
        return -np.sum((rows - peak) ** 2, axis=1)

    told = np.random.default_rng(3).random((5, 3))
    assert recommendations.best_row(mean, told) == pytest.approx(peak, abs=1e-4)


def test_gpmi_recommends_its_own_point_and_the_told_one_with_the_best_mean() -> None:
    peer, x, y = optimisers.make("gpmi", BOX, 0, 12, alone=True), [], []
    for _ in range(12):
        x.append(peer.ask())
        y.append(bowl(x[-1]))
        peer.tell(x[-1:], y[-1:])
    found = recommendations.recommended(peer, BOX, x, y)
    assert isinstance(peer, optimisers.Gpmi)
    assert np.array_equal(found["anywhere"], peer.optimizer.recommend())
    assert np.array_equal(found["observed"], x[int(np.argmax(y))])
    posterior = peer.optimizer.posterior
    assert posterior is not None
    means = [float(posterior(peer.optimizer.space.encode(point)[None])[0][0]) for point in x]
    assert np.array_equal(found["told"], x[int(np.argmax(means))])


def test_random_search_recommends_what_it_observed() -> None:
    peer = optimisers.make("random", BOX, 0)
    x = [peer.ask() for _ in range(4)]
    found = recommendations.recommended(peer, BOX, x, [0.0, 3.0, 1.0, 2.0])
    assert list(found) == ["observed"] and found["observed"] is x[1]


def test_regrets_are_compared_on_the_pairs_that_both_have() -> None:
    shape = len(recommended.PROBLEMS), len(recommended.LEVELS), recommended.SEEDS
    ours, theirs = np.full(shape, 0.1), np.full(shape, np.nan)
    theirs[2, :, :3] = [[0.3], [0.1], [0.0]]
    found = {("gpmi", "anywhere"): ours, ("random", "observed"): theirs}
    assert recommended.differences(found, [0])["random", "observed"] == pytest.approx([0.2] * 3)
    assert sorted(recommended.differences(found, [0, 2])["random", "observed"]) == pytest.approx([-0.1] * 3 + [0.2] * 3)


def test_gpmi_must_beat_every_choice_of_every_other_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = harness.Table(tmp_path / "r.csv", recommended.COLUMNS, recommended.RUNS.key)
    monkeypatch.setattr(recommended, "RUNS", runs)
    monkeypatch.setattr(recommended, "PROBLEMS", ("branin",))
    monkeypatch.setattr(recommended, "LEVELS", ("0.1", "1"))
    assert [verdict.holds for verdict in recommended.verdicts()] == [None] * 3
    assert recommended.sentence() == "not measured yet"
    for seed, level in ((0, "0.1"), (1, "0.1"), (0, "1")):
        run = recommended.Run("gpmi", "branin", level, seed)
        runs.append(recommended.row(run, "done", 0.0) | {"observed": "0.5", "anywhere": "0.2"})
        choices = {"observed": "0.9", "told": "0.1" if level == "1" else "0.4", "anywhere": "0.6"}
        runs.append(recommended.row(run._replace(tool="Emukit EI"), "done", 0.0) | choices)
    lucky = recommended.Run("random", "branin", "0.1", 0)
    runs.append(recommended.row(lucky, "done", 0.0) | {"observed": "0"})  # it has no run of the other level
    over_all, low, high = recommended.verdicts()
    assert over_all.holds and low.holds and not high.holds
    assert "next Emukit EI +0.2000 ± 0.0000 on 2 pairs" in low.figures
    assert (
        "gives away 20% of what" in recommended.sentence()
        and "Emukit EI, 10 ± 10.0 points more" in recommended.sentence()
    )


# BBOB


def test_a_row_of_bbob_has_the_improvements_and_gives_the_curve_back() -> None:
    gaps = [5.0, 7.0, 2.5, 2.5, 0.0]
    row = bbob.row(bbob.Run("random", 3, 2), gaps, 0.5, "done")
    assert row["improvements"] == "1:5 3:2.5 5:0" and row["gap"] == "0"
    (curve,) = bbob.Found([row]).curves.values()
    assert list(curve[:6]) == [5.0, 5.0, 2.5, 2.5, 0.0, 0.0] and len(curve) == bbob.BUDGET
    failed = bbob.row(bbob.Run("random", 3, 2), gaps, 0.5, "failed: why")
    assert np.all(np.isinf(bbob.Found([failed]).curves[bbob.Run("random", 3, 2)]))


def test_ranks_and_targets_of_bbob_count_tools_with_all_runs() -> None:
    rows = []
    for f in bbob.FUNCTIONS:
        rows.append(bbob.row(bbob.Run("gpmi", f, 2), [200.0, 1.0 if f < 24 else 3.0], 0.0, "done"))
        rows.append(bbob.row(bbob.Run("random", f, 2), [2.0], 0.0, "done"))
    rows.append(bbob.row(bbob.Run("CMA-ES", 1, 2), [0.0], 0.0, "done"))
    found = bbob.Found(rows)
    assert found.tools([2]) == ["gpmi", "random"] and found.tools([2, 5]) == []
    assert {tool: float(r.mean()) for tool, r in found.ranks([2]).items()} == {"gpmi": 25 / 24, "random": 47 / 24}
    reached = found.solved("gpmi", [2])
    direct = np.mean([(gap <= 10.0 ** (2 - 0.2 * k)) for gap in [1.0] * 23 + [3.0] for k in range(51)])
    assert reached[0] == 0.0 and reached[1] == pytest.approx(direct)


def test_the_gap_of_a_bbob_function_is_zero_at_its_minimum() -> None:
    ioh = pytest.importorskip("ioh")
    for f in (1, 8, 24):
        at = np.array(ioh.get_problem(f, 1, 5, ioh.ProblemClass.BBOB).optimum.x)
        assert bbob.gap_of(f, 5)(at) == pytest.approx(0.0, abs=1e-9)
        assert bbob.gap_of(f, 5)(np.full(5, 4.9)) > 0.01


# The picture of evidence


def _rows(values: dict[tuple[str, str, int], list[float]]) -> dict[comparison.Run, comparison.Row]:
    return {
        comparison.Run(peer, problem, "own", 60, seed): {
            "status": "done",
            "best": str(max(found)),
            "mean": "0",
            "values": " ".join(map(str, found)),
        }
        for (peer, problem, seed), found in values.items()
    }


def test_every_problem_that_all_drawn_tools_have_counts_once() -> None:
    # levy-4 has its maximum 0 and a spread of 35.6; ackley-5 has 0 and 18.4
    late, never = [-30.0] * 40 + [-0.1] * 20, [-1.0] * 60
    rows = _rows(
        {
            ("gpmi", "levy-4", 0): late,
            ("gpmi", "levy-4", 1): never,
            ("gpmi", "ackley-5", 0): [-0.01] * 60,
            ("gpmi", "rosenbrock-4", 0): never,  # random has no such run
            ("random", "levy-4", 0): never,
            ("random", "ackley-5", 0): late,
            ("CMA-ES", "levy-4", 0): late,  # too few problems to be drawn
        }
    )
    solved = evidence.Solved.of(regrets.Runs.of(rows, "own", 60, ("levy-4", "ackley-5", "rosenbrock-4")))
    assert solved.peers == ("gpmi", "random") and solved.problems == ("levy-4", "ackley-5")
    assert (solved.runs, solved.seeds, solved.next_best) == (5, (1, 2), "random")
    assert list(solved.share("gpmi")[[0, 39, 40, 59]]) == [0.5, 0.5, 0.75, 0.75]
    assert list(solved.share("random")[[0, 39, 40, 59]]) == [0.0, 0.0, 0.5, 0.5]
    lo, hi = solved.band("random")
    assert lo[-1] == 0.0 and hi[-1] == 1.0 and hi[0] == 0.0
