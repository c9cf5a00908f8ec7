"""On a finite set, every third query of aim="find" tries an option that no trial has, while there is one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from gpmi import Find, Int, Optimizer, kernels
from gpmi.optimizer.untried_options import rows_with_untried_options
from gpmi.policies.find import PER_UNTRIED

LIGANDS = [f"L{i:02d}" for i in range(14)]  # too many for the design to show them all
FINITE = {"ligand": LIGANDS, "t": Int(0, 3)}
EARLIER = [{"ligand": ligand, "t": t} for ligand in LIGANDS for t in (0, 2, 3)]


def table() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(list(product(LIGANDS, ["A", "B"], [20.0, 40.0, 60.0])), columns=["ligand", "base", "t"])


def f(x: Any) -> float:
    """The first ligand is good enough to stay with; the last one is the best."""
    return {"L00": 5.0, "L13": 9.0}.get(x["ligand"], 0.0) + (x["base"] == "A") - ((x["t"] - 40.0) / 20.0) ** 2


def play(opt: Optimizer, count: int) -> None:
    for _ in range(count):
        x = opt.ask()
        opt.tell(x, f(x))


def ligands(opt: Optimizer) -> list[str]:
    return [trial.x["ligand"] for trial in opt.trials]


def policy_queries(opt: Optimizer) -> list[int]:
    return [i for i, trial in enumerate(opt.trials) if trial.origin == "policy"]


@pytest.mark.parametrize("seed", range(4))
def test_every_third_query_tries_an_option_until_all_are_tried(seed: int) -> None:
    opt = Optimizer(table(), seed=seed)
    play(opt, 40)
    asked = ligands(opt)
    for t, i in enumerate(policy_queries(opt), start=1):
        if t % PER_UNTRIED == 0 and set(asked[:i]) != set(LIGANDS):
            assert asked[i] not in asked[:i]
    assert set(asked) == set(LIGANDS)


def test_it_is_the_best_such_row_by_mu_plus_sd() -> None:
    opt = Optimizer(table(), seed=1)
    while len(policy_queries(opt)) < PER_UNTRIED - 1:
        play(opt, 1)
    x = opt.ask()
    rows, posterior = opt.space.rows, opt.posterior
    assert rows is not None and posterior is not None
    points = [opt.space.decode(row) for row in rows]
    untried = np.array([point["ligand"] not in ligands(opt)[:-1] for point in points])
    mu, var = posterior(rows)
    score = np.where(untried, mu + np.sqrt(var), -np.inf)
    assert score[points.index(x)] == pytest.approx(score.max(), abs=1e-9)


def test_rows_with_untried_options_are_those_of_no_trial() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        opt = Optimizer(table(), seed=seed)
        frame = table()
        for number in rng.choice(len(frame), int(rng.integers(1, 40)), replace=False):
            x = frame.iloc[int(number)].to_dict()
            opt.tell(x, f(x))
        assert opt.space.rows is not None
        tried = {name: {trial.x[name] for trial in opt.trials} for name in ("ligand", "base")}
        points = [opt.space.decode(row) for row in opt.space.rows]
        expected = [any(point[name] not in tried[name] for name in tried) for point in points]
        found = rows_with_untried_options(opt.space, opt._log)
        assert (found is None and not any(expected)) or (found is not None and found.tolist() == expected)


def test_failed_and_pending_trials_have_tried_their_options() -> None:
    opt = Optimizer(table(), seed=0)
    play(opt, 5)
    batch = opt.ask(2 * PER_UNTRIED)
    seen = ligands(opt)[:5]
    new = [x["ligand"] for x in batch if x["ligand"] not in seen]
    assert len(set(new)) >= 2  # two of the batch try an option, and not the same one
    for x in batch:
        opt.fail(x)
    left = rows_with_untried_options(opt.space, opt._log)
    assert left is not None and opt.space.rows is not None
    tried = {opt.space.decode(row)["ligand"] for row in opt.space.rows[left]}
    assert tried.isdisjoint({x["ligand"] for x in batch})


def test_options_whose_rows_are_all_rejected_are_not_waited_for() -> None:
    opt = Optimizer(table(), seed=0)
    play(opt, 5)
    kept = set(ligands(opt))
    for x in table().to_dict("records"):
        if x["ligand"] not in kept:
            opt.reject(x)
    assert rows_with_untried_options(opt.space, opt._log) is not None
    play(opt, 12)
    assert {trial.x["ligand"] for trial in opt.trials if trial.status == "told"} == kept


def test_fixed_coordinates_are_kept() -> None:
    opt = Optimizer(table(), seed=2)
    play(opt, 5)
    for _ in range(9):
        x = opt.ask(fixed={"base": "B"})
        assert x["base"] == "B"
        opt.tell(x, f(x))
    assert len(set(ligands(opt)[5:])) >= 3


def test_the_same_history_gives_the_same_row() -> None:
    first, second = Optimizer(table(), seed=5), Optimizer(table(), seed=5)
    play(first, 14)
    for trial in first.trials:
        second.tell(second.ask(), trial.y)
    assert [trial.x for trial in first.trials] == [trial.x for trial in second.trials]


@pytest.mark.parametrize(
    ("space", "options"),
    [
        (lambda: {"ligand": LIGANDS, "t": (0.0, 1.0)}, {}),
        (table, {"kernel": kernels.RBF(0.5), "noise_var": 1e-4, "n_init": 5}),
        (lambda: FINITE, {"earlier": {"last year": [(x, f({**x, "base": "A"})) for x in EARLIER]}}),
    ],
    ids=["mixed", "given prior", "earlier study"],
)
def test_other_runs_do_not_have_the_rule(space: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with_rule, without = (Optimizer(space(), Find(), seed=0, **options) for _ in range(2))
    for _ in range(14):
        x = with_rule.ask()
        with_rule.tell(x, f({**x, "base": "A"}))
    monkeypatch.setattr("gpmi.policies.find.PER_UNTRIED", 10**9)
    for trial in with_rule.trials:
        assert without.ask() == trial.x
        without.tell(trial.x, trial.y)


def test_a_number_under_a_condition_is_no_option() -> None:
    opt = Optimizer({"m": ["a", "b"], "n": Int(1, 40, when={"m": "a"})}, seed=0)
    for x in ({"m": "a", "n": 3}, {"m": "b"}, {"m": "a", "n": 5}):
        opt.tell(x, 1.0)
    assert rows_with_untried_options(opt.space, opt._log) is None
