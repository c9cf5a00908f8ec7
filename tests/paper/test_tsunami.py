"""The tsunamis: the simulation against theory, the table against its design and the simulation."""

from __future__ import annotations

import csv
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import qmc

import gpmi
from paper import island
from paper.tasks import shallow_water, tsunami

os.environ.setdefault("OMP_NUM_THREADS", "1")  # ANUGA's
import tsunami_check as check
import tsunami_table as script

ROOT = Path(__file__).parents[2]
MIDDLE = {"island_slope": 0.1, "beach_slope": 0.1, "depth": 500.0, "distance": 1000.0, "omega": 0.05}
ROWS = list(csv.DictReader(script.PATH.read_text().splitlines()))
SETTINGS = tsunami.Settings()
FIRST = ROWS[:3]


# The mesh


def test_a_graded_line_has_its_ends_and_its_spacing() -> None:
    x = shallow_water.graded((-3.0, 5.0), lambda x: 0.1 + 0.05 * np.abs(x))
    gaps = np.diff(x)
    assert (x[0], x[-1]) == pytest.approx((-3.0, 5.0))
    assert gaps == pytest.approx(0.1 + 0.05 * np.abs(0.5 * (x[1:] + x[:-1])), rel=0.05)


def test_a_jump_of_the_spacing_becomes_a_ramp_on_the_coarse_side() -> None:
    x = shallow_water.graded((0.0, 100.0), lambda x: np.where((x > 40) & (x < 60), 0.5, 8.0))
    gaps, middles = np.diff(x), 0.5 * (x[1:] + x[:-1])
    ratios = gaps[1:] / gaps[:-1]
    assert max(ratios.max(), 1 / ratios.min()) < 1.35
    assert gaps[(middles > 40.5) & (middles < 59.5)] == pytest.approx(0.5, rel=0.05)
    assert gaps.max() > 4.0


def test_the_triangles_cover_the_grid_counter_clockwise_and_every_outer_edge_has_a_name() -> None:
    x, y = np.array([0.0, 1.0, 3.0, 3.5]), np.array([-1.0, 0.5, 1.0])
    points, triangles, sides = shallow_water.triangulate(x, y)
    a, b, c = points[triangles].transpose(1, 0, 2)
    areas = 0.5 * ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0])
    assert len(triangles) == 4 * 3 * 2 and np.all(areas > 0.0) and areas.sum() == pytest.approx(3.5 * 2.0)
    edges = {(t, e): (row[(e + 1) % 3], row[(e + 2) % 3]) for t, row in enumerate(triangles) for e in range(3)}
    count = Counter(frozenset(edge) for edge in edges.values())
    assert {edge for edge, ends in edges.items() if count[frozenset(ends)] == 1} == set(sides)
    for edge, name in sides.items():
        assert (name == "sea") == np.all(points[list(edges[edge]), 0] == x[0])


# The simulation against theory


@pytest.mark.slow
@pytest.mark.anuga
@pytest.mark.parametrize("cot", [10.0, 20.0])
def test_a_solitary_wave_runs_up_a_plane_beach_as_high_as_synolakis_says(cot: float) -> None:
    for height in check.SOLITARY[cot]:
        found = check.solitary(height, cot, cells=8.0).height / 100.0
        assert found == pytest.approx(check.synolakis(height, cot), rel=0.1)


def test_linear_theory_doubles_a_wave_at_a_wall_and_has_synolakis_as_its_asymptote() -> None:
    assert check.linear_run_up(0.01, 1e-3, 1.0)[0] == pytest.approx(2.0, rel=1e-6)
    for rate, travel in ((1.0, 200.0), (0.5, 800.0)):
        # the law with the width of a solitary wave left free: H/d = 4/3 (rate d / c)^2, and travel = 2 d cot b / c
        law = 2.831 * (4.0 / 3.0) ** 0.25 * math.sqrt(0.5 * rate * travel)
        assert check.linear_run_up(rate, travel, 1.0)[0] == pytest.approx(law, rel=0.01)


@pytest.mark.slow
@pytest.mark.anuga
def test_the_wave_comes_in_with_its_height_doubles_at_a_wall_and_leaves() -> None:
    depth, rate, length = 100.0, 0.05, 6000.0
    speed = math.sqrt(shallow_water.GRAVITY * depth)
    x = np.linspace(0.0, length, 60)

    def run(where: float, duration: float, height: float = 0.5) -> shallow_water.RunUp:
        return shallow_water.simulate(
            x,
            np.array([0.0, 100.0]),
            lambda x, y: np.full_like(x, -depth),
            lambda x, y: np.abs(x - where) < 150.0,
            incoming=lambda t: height / math.cosh(rate * t - 2.6) ** 2,
            duration=duration,
        )

    crest = 2.6 / rate
    assert run(2000.0, crest + 3000.0 / speed).height == pytest.approx(0.5, rel=0.03)
    back = crest + 2.0 * length / speed
    wall = run(length - 150.0, back + 4.0 / rate)  # until after the wave would be back if the sea reflected it
    assert wall.height == pytest.approx(1.0, rel=0.03)
    assert wall.time == pytest.approx(crest + length / speed, rel=0.03)
    twice = run(2000.0, back + 2.0 * 2000.0 / speed + crest)
    assert twice.height == pytest.approx(0.5, rel=0.04)


@pytest.mark.anuga
def test_still_water_stays_still_on_a_beach_behind_an_island() -> None:
    def bed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(np.maximum(-50.0, 0.1 * x - 100.0), 20.0 - 0.2 * np.hypot(x, y))

    x, y = np.linspace(-500.0, 1100.0, 30), np.linspace(0.0, 500.0, 9)
    still = shallow_water.simulate(x, y, bed, lambda x, y: x > 0.0, incoming=lambda t: 0.0, duration=60.0)
    assert still.height < 1e-9 and still.steps > 10


@pytest.mark.anuga
@pytest.mark.filterwarnings("ignore")
def test_the_constant_of_gravity_is_anuga_s() -> None:
    shallow_water.require_anuga()
    from anuga.config import g

    assert float(g) == shallow_water.GRAVITY


@pytest.mark.anuga
def test_importing_the_simulator_leaves_numpy_s_warnings_as_they_were() -> None:
    read = "import numpy as np; old = np.geterr(); "
    read += "from paper.tasks.shallow_water import require_anuga; require_anuga(); print(old == np.geterr())"
    said = subprocess.run([sys.executable, "-c", read], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "True"


@pytest.mark.slow
@pytest.mark.anuga
def test_simulating_says_nothing_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tsunami.simulate(**MIDDLE, settings=tsunami.Settings().refined(0.4))
    assert done.bare_amplification == done.run_up / done.bare_run_up > 0.5
    assert done.amplification == done.run_up / done.aside_run_up
    y, along = np.array(done.along).T
    foot = (500.0 + tsunami.CREST) / 0.1
    assert np.all(np.diff(y) > 0.0) and y[0] < 0.1 * foot and y[-1] > 1.5 * foot
    assert done.lowest_run_up == along.min() and along.min() <= done.aside_run_up <= along.max()
    assert along[y < tsunami.CREST / 0.1].max() == pytest.approx(done.run_up, rel=1e-2)  # a strip's cells have no one y
    assert 0.0 < done.bare_time < done.duration and 0.0 < done.time < done.duration
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


# The table


def test_the_table_has_at_least_200_points_of_the_space_and_is_the_beginning_of_the_design() -> None:
    x, amplification = tsunami.table()
    assert x.shape == (len(ROWS), 5) and amplification.shape == (len(ROWS),) and len(ROWS) >= 200
    assert x.tolist() == [list(point.values()) for point in script.design(len(ROWS))]
    lo, hi = np.array(list(tsunami.SPACE.values())).T
    assert np.all((lo <= x) & (x <= hi))
    assert not x.flags.writeable and not amplification.flags.writeable


def test_the_design_fills_the_space_more_evenly_than_chance_and_so_does_its_beginning() -> None:
    x, _ = tsunami.table()
    lo, hi = np.array(list(tsunami.SPACE.values())).T
    for n in (50, len(x)):
        unit = (x[:n] - lo) / (hi - lo)
        chance = [qmc.discrepancy(np.random.default_rng(seed).random((n, 5))) for seed in range(5)]
        assert qmc.discrepancy(unit) < 0.5 * min(chance)


def test_amplification_is_the_ratio_of_the_run_ups_and_they_come_before_the_end() -> None:
    for row in ROWS:
        for place in ("aside", "bare"):
            ratio = float(row["run_up"]) / float(row[f"{place}_run_up"])
            column = "amplification" if place == "aside" else "bare_amplification"
            assert float(row[column]) == pytest.approx(ratio, rel=1e-5)
        along = [float(part.split(":")[1]) for part in row["along"].split()]
        assert float(row["lowest_run_up"]) == pytest.approx(min(along), rel=1e-3)
        assert float(row["bare_time"]) < float(row["duration"])
        assert float(row["time"]) < float(row["duration"])
        assert [float(row[name]) for name in script.SETTINGS] == [getattr(SETTINGS, name) for name in script.SETTINGS]


@pytest.mark.slow
@pytest.mark.parametrize("low", [0.01, 0.03, 0.05, 0.07])
def test_the_table_agrees_with_linear_theory_by_another_solver_where_the_wave_does_not_break(low: float) -> None:
    rows = [{name: float(row[name]) for name in (*tsunami.SPACE, "bare_run_up", "bare_amplification")} for row in ROWS]
    some = [row for row in rows if low <= row["omega"] < low + 0.02 and check.bare(row)[1] < 1.0]
    small = sorted(some, key=lambda row: row["depth"] / row["island_slope"])[:3]  # cheap ones
    for row in small:
        assert row["bare_run_up"] == pytest.approx(check.bare(row)[0], rel=0.1)
        coarse, fine = (check.linear_amplification(row, n) for n in (12, 24))
        assert row["bare_amplification"] == pytest.approx(2.0 * fine - coarse, rel=0.1)


@pytest.mark.slow
@pytest.mark.anuga
def test_the_cheapest_row_simulated_again_is_the_same() -> None:
    row = min(ROWS, key=lambda row: int(row["triangles"]) * int(row["steps"]))
    again, _ = script.run(int(row["point"]), {name: float(row[name]) for name in tsunami.SPACE})
    assert float(again["amplification"]) == pytest.approx(float(row["amplification"]), rel=1e-3)
    assert float(again["run_up"]) == pytest.approx(float(row["run_up"]), rel=1e-3)
    assert again["triangles"] == row["triangles"]


# The script


def test_the_design_s_beginning_does_not_depend_on_its_length() -> None:
    assert script.design(64) == script.design(256)[:64]


def test_what_is_in_the_table_is_not_simulated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = script.table(tmp_path / "t.csv")
    table.append(FIRST[2], FIRST[0], FIRST[1])
    monkeypatch.setattr(sys, "argv", ["tsunami_table.py", "--points", "3", "--out", str(table.path)])
    script.main()  # which would take a minute if it simulated
    assert table.rows() == FIRST
    assert table.path.read_text().splitlines() == script.PATH.read_text().splitlines()[:4]


# What is refused


@pytest.mark.parametrize("name", tsunami.SPACE)
def test_a_point_outside_the_space_is_refused_by_name_value_and_remedy(name: str) -> None:
    lo, hi = tsunami.SPACE[name]
    for value in (lo - 1.0, hi * 1.01):
        with pytest.raises(ValueError, match=rf"^{name} is {value!r}, outside \[{lo}, {hi}\]; simulate points of"):
            tsunami.simulate(**MIDDLE | {name: value})
    with pytest.raises(ValueError, match=f"^{name} is nan; give one finite number"):
        tsunami.simulate(**MIDDLE | {name: math.nan})
    with pytest.raises(TypeError, match=f"^{name} is 'wide'; give one finite number"):
        tsunami.simulate(**MIDDLE | {name: "wide"})


@pytest.mark.parametrize("name", tsunami.Settings.__dataclass_fields__)
def test_settings_are_positive(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} is 0.0; give one positive, finite number"):
        tsunami.Settings(**{name: 0.0})


def test_without_anuga_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anuga", None)
    with pytest.raises(ImportError) as error:
        tsunami.simulate(**MIDDLE)
    assert str(error.value) == "the tsunami simulation needs anuga: pip install -r paper/requirements.txt"


def test_a_run_up_to_the_end_of_the_beach_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    flood = shallow_water.RunUp(50.0, 1.0, triangles=1, steps=1, y=np.zeros(1), along=np.full(1, 50.0))
    monkeypatch.setattr(shallow_water, "simulate", lambda *args, **kwargs: flood)
    with pytest.raises(RuntimeError, match=r"the water reached the end of the simulated beach, .* 'depth': 500.0"):
        tsunami.simulate(**MIDDLE)


def test_amplification_divides_by_the_place_one_radius_of_the_foot_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    foot = (500.0 + tsunami.CREST) / 0.1
    y, along = foot * np.array([0.1, 0.8, 1.2, 2.0]), np.array([4.0, 3.0, 2.0, 2.5])
    runs = iter([shallow_water.RunUp(5.0, 1.0, 1, 1), shallow_water.RunUp(4.5, 1.0, 1, 1, y, along)])
    monkeypatch.setattr(shallow_water, "simulate", lambda *args, **kwargs: next(runs))
    done = tsunami.simulate(**MIDDLE)
    assert done.aside_run_up == pytest.approx(2.5) and done.amplification == pytest.approx(4.5 / 2.5)
    assert done.bare_amplification == pytest.approx(0.9) and done.lowest_run_up == 2.0
    assert done.along[1] == (0.8 * foot, 3.0)


@pytest.mark.anuga
def test_the_run_up_along_a_plane_beach_is_the_same_everywhere() -> None:
    x, y = np.linspace(-500.0, 1200.0, 35), np.array([0.0, 100.0, 250.0, 300.0])
    done = shallow_water.simulate(
        x,
        y,
        lambda x, y: np.maximum(-50.0, 0.1 * x - 100.0),
        lambda x, y: x > 500.0,
        beach=lambda x, y: (x > 500.0) & (y < 250.0),
        incoming=lambda t: 0.5 / math.cosh(0.05 * t - 2.6) ** 2,
        duration=150.0,
    )
    assert done.y.tolist() == [50.0, 175.0] and done.height > 0.5
    assert done.along == pytest.approx(done.height, rel=0.02)


def test_the_space_is_one_to_optimise_in(monkeypatch: pytest.MonkeyPatch) -> None:
    calm = shallow_water.RunUp(3.0, 1.0, triangles=1, steps=1, y=np.zeros(1), along=np.full(1, 3.0))
    monkeypatch.setattr(shallow_water, "simulate", lambda *args, **kwargs: calm)
    result = gpmi.maximize(lambda p: tsunami.simulate(**p).amplification, tsunami.SPACE, budget=3, seed=0)
    assert set(result.x) == set(tsunami.SPACE) and result.y == 1.0


@pytest.mark.slow
@pytest.mark.anuga
def test_the_simulator_is_optimised_on_a_coarse_mesh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    island.main(3, 0.25)
    assert capsys.readouterr().out.startswith("worst of 3: ")
    assert (tmp_path / "tsunami.png").stat().st_size > 10_000


def test_the_tasks_do_not_import_anuga() -> None:
    code = "import sys, paper.tasks; sys.exit('anuga' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
