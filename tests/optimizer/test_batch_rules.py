"""Batches with a rule: what is shared is shared, what must differ differs, nothing is twice, a replay is exact."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpmi
from gpmi import Choice, Int, Optimizer, Real
from gpmi.optimizer.batches import Distance
from gpmi.space import Space

LAB: dict[str, Any] = {
    "temperature": Real(20.0, 90.0),
    "base": Int(1, 20),
    "solvent": ["DMF", "THF", "water"],
    "time": (1.0, 24.0),
}


def f(x: Any) -> float:
    return -((x["temperature"] - 62.0) ** 2) / 400.0 - (x["base"] - 7) ** 2 / 50.0 + (x["solvent"] == "DMF")


def told(space: Any = LAB, count: int = 10, **options: Any) -> Optimizer:
    opt = Optimizer(space, seed=0, **options)
    for _ in range(count):
        x = opt.ask()
        opt.tell(x, f(x))
    return opt


def different(points: list[Any]) -> bool:
    return len({tuple(sorted((k, str(v)) for k, v in x.items())) for x in points}) == len(points)


def test_all_points_share_what_the_first_one_has() -> None:
    opt, alone = told(), told()
    batch = opt.ask(6, same=["temperature", "solvent"])
    assert batch[0] == alone.ask()
    assert len({(x["temperature"], x["solvent"]) for x in batch}) == 1 and different(batch)
    shared = {"temperature": batch[0]["temperature"], "solvent": batch[0]["solvent"]}
    assert [alone.ask(fixed=shared) for _ in range(5)] == batch[1:]
    assert [dict(t.fixed or {}) for t in opt.pending] == [{}] + [shared] * 5


def test_a_batch_replays_exactly() -> None:
    opt = told()
    opt.ask(4, same=["temperature"])
    opt.ask(4, apart={"temperature": 12.0})
    again = Optimizer(LAB, seed=0).replay(opt.trials)
    assert again.ask(3, same=["base"]) == opt.ask(3, same=["base"])


@pytest.mark.parametrize("aim", ["find", "earn"])
def test_no_point_is_there_twice_even_if_the_policy_would_repeat_it(aim: Any) -> None:
    table = pd.DataFrame(list(itertools.product([40, 60], range(4), "ab")), columns=["temperature", "base", "solvent"])
    opt = Optimizer(table, seed=0, aim=aim, noise_var=0.5)
    rng = np.random.default_rng(0)
    for _ in range(12):
        x = opt.ask()
        opt.tell(x, x["base"] + rng.standard_normal())
    batch = opt.ask(8, same=["temperature"])
    assert len(batch) == 8 and different(batch) and len({x["temperature"] for x in batch}) == 1
    more = opt.ask(9, same=["temperature"])
    assert len(more) == 8 and different(more) and any(event.kind == "short batch" for event in opt.events)


@settings(deadline=None)
@given(st.integers(2, 15), st.floats(0.5, 30.0), st.integers(0, 3))
def test_any_two_points_keep_the_distance_or_the_error_says_how_many_fit(n: int, least: float, count: int) -> None:
    opt = told(count=count)
    fit = int(70.0 / least) + 1
    if n <= fit:
        values = sorted(x["temperature"] for x in opt.ask(n, apart={"temperature": least}))
        assert len(values) == n and np.diff(values).min() >= least * (1.0 - 2e-9)
    else:
        with pytest.raises(ValueError, match=f"only {fit} points fit"):
            opt.ask(n, apart={"temperature": least})
        assert not opt.pending


@given(st.lists(st.integers(0, 60), max_size=4, unique=True), st.integers(1, 25), st.integers(1, 4))
def test_the_room_that_is_left_is_that_of_brute_force(taken: list[int], least: int, step: int) -> None:
    distance = Distance.of(Space.of({"a": Int(0, 60 * step, step=step)}), "a", least * step)
    free = [v for v in range(61) if all(abs(v - t) >= least for t in taken)]
    count, last = 0, -1000
    for v in free:
        if v - last >= least:
            count, last = count + 1, v
    assert distance.capacity([t * step for t in taken]) == count


def test_distances_of_whole_numbers_options_and_columns() -> None:
    space = {"n": Int(0, 20, step=2), "c": Choice([1, 2, 4, 8, 16], ordered=True), "x": (0.0, 1.0)}
    opt = Optimizer(space, seed=0)
    n = sorted(x["n"] for x in opt.ask(6, apart={"n": 3}))
    assert min(np.diff(n)) >= 4 and all(isinstance(v, int) for v in n)
    c = sorted(x["c"] for x in opt.ask(3, apart={"c": 4, "x": 0.2}))
    assert min(np.diff(c)) >= 4
    rows = pd.DataFrame(list(itertools.product([1.0, 2.0, 5.0, 9.0], "ab")), columns=["t", "s"])
    t = sorted(x["t"] for x in Optimizer(rows, seed=0).ask(3, apart={"t": 3}))
    assert min(np.diff(t)) >= 3


def test_distances_inside_constraints() -> None:
    opt = Optimizer({"a": (0.0, 1.0), "b": (0.0, 1.0)}, constraints=["a + b == 1", "a <= 0.6"], seed=0)
    a = sorted(x["a"] for x in opt.ask(4, apart={"a": 0.15}))
    assert max(a) <= 0.6 and np.diff(a).min() >= 0.15 - 1e-9
    with pytest.raises(ValueError, match="only"):
        opt.ask(9, apart={"a": 0.1})
    assert len(opt.pending) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *[({"n": None, "same": ["base"]}, "give n"), ({"same": ["oven"]}, "'oven'"), ({"same": []}, "same is")],
        *[({"apart": {"oven": 1}}, "'oven'"), ({"apart": {"solvent": 1}}, "not numbers"), ({"apart": 5}, "apart is 5")],
        *[({"apart": {"base": -1}}, "apart['base']"), ({"apart": {"base": 1}, "same": ["base"]}, "also in same")],
        ({"apart": {"base": 1}, "fixed": {"base": 3}}, "also in fixed"),
        ({"same": ["depth"]}, "depends on 'solvent'"),
        ({"apart": {"depth": 0.1}}, "condition"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(options: dict[str, Any], words: str) -> None:
    opt = Optimizer({**LAB, "depth": Real(0.0, 1.0, when={"solvent": "water"})}, seed=0)
    with pytest.raises((TypeError, ValueError)) as caught:
        opt.ask(**{"n": 3, **options})
    assert words in str(caught.value) and not opt.pending


def test_a_shared_parameter_under_a_condition_may_be_absent() -> None:
    opt = Optimizer({**LAB, "depth": Real(0.0, 1.0, when={"solvent": "water"})}, seed=0)
    for _ in range(3):
        batch = opt.ask(4, same=["solvent", "depth"])
        assert len({(x["solvent"], x.get("depth")) for x in batch}) == 1 and different(batch)


def test_a_box_is_asked_by_numbers() -> None:
    opt = Optimizer([(0.0, 1.0)] * 2, seed=0)
    assert len({x[1] for x in opt.ask(4, same=[1])}) == 1
    assert np.diff(sorted(x[0] for x in opt.ask(4, apart={0: 0.3}))).min() >= 0.3 - 1e-9


def test_a_batch_of_a_study_verifies(tmp_path: Path) -> None:
    with gpmi.study(tmp_path / "s.db", space=LAB, seed=0) as s:
        for trial in s.ask(9):
            s.tell(trial, f(trial.x))
        plate = s.ask(5, same=["temperature"])
        assert len({t.x["temperature"] for t in plate}) == 1
        spread = s.ask(4, apart={"temperature": 15.0})
        assert np.diff(sorted(t.x["temperature"] for t in spread)).min() >= 15.0 - 1e-6
        with pytest.raises(ValueError, match="only 3 points fit"):
            s.ask(4, apart={"temperature": 30.0})
        assert len(s.pending) == 9 and s.verify().verdict == "equal"
