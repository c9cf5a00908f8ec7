"""Earlier studies by name: related functions, believed as far as they predict, and never trials of the study."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpmi
from gpmi.model.sources import MOST_VALUES, SourceSummary
from gpmi.trials import Trial

BOX = [(0.0, 1.0), (0.0, 1.0)]
RNG = np.random.default_rng(0)
POINTS = RNG.random((20, 2))


def f(x: Any) -> float:
    return float(np.sin(5.0 * x[0]) + np.cos(4.0 * x[1]))


def other(x: Any) -> float:
    return float(np.cos(17.0 * x[0] + 3.0) * np.sin(13.0 * x[1]))


SAME = [(x, f(x)) for x in POINTS]


def run(n: int = 6, function: Any = f, **options: Any) -> gpmi.Optimizer:
    opt = gpmi.Optimizer(BOX, **{"seed": 0, **options})
    for _ in range(n):
        x = opt.ask()
        opt.tell(x, function(x))
    return opt


def asked(opt: gpmi.Optimizer) -> np.ndarray:
    return np.array([trial.x for trial in opt.trials])


def ignored(opt: gpmi.Optimizer) -> list[str]:
    return [event.message for event in opt.events if event.kind == "source ignored"]


# What a source does


def test_the_same_function_is_found_at_once_and_its_correlation_is_learned() -> None:
    opt = run(earlier={"last year": SAME})
    (found,) = opt.earlier
    assert found.name == "last year" and found.values == 20 and found.correlation > 0.9
    assert f"last year: similar, correlation {found.correlation:.2f}, 20 values" in repr(opt)
    assert opt.best is not None and opt.best.y > 1.9  # of 2
    cold = run()
    assert cold.best is not None and cold.best.y < opt.best.y


@settings(max_examples=8, deadline=None)
@given(st.floats(-3.0, 3.0), st.floats(-1e3, 1e3))
def test_units_of_a_source_do_not_matter(exponent: float, shift: float) -> None:
    """Scaling and shifting a source leaves the posterior and the suggestions as they are, up to rounding."""
    scaled = [(x, 10.0**exponent * y + shift) for x, y in SAME]
    opts = [run(4, earlier={"a": values}) for values in (SAME, scaled)]
    (mu, var), (mu_scaled, var_scaled) = (opt.posterior(POINTS) for opt in opts)
    np.testing.assert_allclose(asked(opts[1]), asked(opts[0]), atol=1e-3)
    np.testing.assert_allclose(mu_scaled, mu, atol=0.02)
    np.testing.assert_allclose(var_scaled, var, atol=0.02)


def test_a_negated_source_is_as_good_after_its_first_point() -> None:
    opt = run(8, earlier={"opposite": [(x, -y) for x, y in SAME]})
    (found,) = opt.earlier
    assert found.correlation is not None and found.correlation < -0.7
    assert "opposite: opposite, correlation -0." in str(found)
    assert opt.best is not None and opt.best.y > 1.9


def test_an_unrelated_source_does_no_harm() -> None:
    opt, cold = run(14, earlier={"noise": [(x, other(x)) for x in POINTS]}), run(14)
    (found,) = opt.earlier
    assert found.correlation is None or abs(found.correlation) < 0.7
    assert opt.best is not None and cold.best is not None
    assert 2.0 - opt.best.y < 0.05 and 2.0 - cold.best.y < 0.05


def test_a_source_that_misleads_is_ignored_with_a_reason() -> None:
    """The source is f on the left and rough on the right: there it predicts worse than nothing."""
    rough = [(x, 5.0 * float(RNG.standard_normal())) for x in POINTS]
    found = [run(n, earlier={"broken": rough}) for n in (6, 9, 12)]
    opt = next(one for one in found if ignored(one))
    assert ignored(opt)[0].startswith("the values of this study were predicted better without 'broken'")
    ends = [one.earlier[0] for one in found if one.earlier[0].correlation is None]
    assert all("ignored, because the values here are predicted better without it" in str(one) for one in ends)


def test_the_design_is_shorter_and_never_empty() -> None:
    opt = gpmi.Optimizer(BOX, seed=0, earlier={"a": SAME})
    assert opt.n_init == 2 and gpmi.Optimizer(BOX, seed=0).n_init == 5
    first, second = opt.ask(), opt.ask()
    assert [trial.origin for trial in opt.trials] == ["design", "design"]
    assert f(first) > 1.9  # where the source is best
    assert not np.allclose(first, second)
    several = gpmi.Optimizer(BOX, seed=0, earlier={"a": SAME, "b": [(x, other(x)) for x in POINTS]})
    assert several.n_init == 3
    assert gpmi.Optimizer(BOX, seed=0, n_init=4, earlier={"a": SAME}).n_init == 4
    own = gpmi.Optimizer(BOX, seed=0, n_init=0, earlier={"a": SAME})
    assert own.ask().shape == (2,)


def test_sources_are_no_trials() -> None:
    opt = run(5, earlier={"a": SAME}, budget=9)
    assert len(opt.trials) == opt.evaluated == 5 and opt.budget == 9
    assert opt.posterior is not None and opt.posterior.n == 5 and opt.model is not None and opt.model.n == 5
    assert opt.ledger.n == 5
    assert any(np.array_equal(opt.best.x, trial.x) for trial in opt.trials)
    assert opt.recommend().shape == (2,)
    assert len(opt.to_dataframe()) == 5


def test_several_sources_each_have_their_own_correlation() -> None:
    sources = {"c": SAME, "b": [(x, 3.0 - 100.0 * y) for x, y in SAME], "a": [(x, other(x)) for x in POINTS]}
    opt = run(8, earlier=sources)
    found = {one.name: one.correlation for one in opt.earlier}
    assert list(found) == ["a", "b", "c"]  # by name, as in a stored study
    assert found["c"] > 0.8 and found["b"] < -0.8 and abs(found["a"]) < 0.7
    again = run(8, earlier=dict(reversed(sources.items())))
    np.testing.assert_array_equal(asked(again), asked(opt))


@pytest.mark.parametrize("goal", ["max", "min"])
def test_both_goals(goal: str) -> None:
    opt = run(6, goal=goal, earlier={"a": SAME})
    best = 2.0 if goal == "max" else -2.0
    assert opt.best is not None and abs(opt.best.y - best) < 0.2
    assert opt.earlier[0].correlation > 0.9


def test_minimising_is_maximising_minus_f_and_minus_the_source() -> None:
    low = run(6, lambda x: -f(x), goal="min", earlier={"a": [(x, -y) for x, y in SAME]})
    np.testing.assert_array_equal(asked(low), asked(run(6, earlier={"a": SAME})))


# Which values a source has


def test_an_empty_source_a_single_value_and_equal_values_are_ignored_with_a_reason() -> None:
    sources = {"empty": [], "one": SAME[:1], "flat": [(x, 2.0) for x in POINTS]}
    opt = run(3, earlier=sources)
    assert sorted(ignored(opt)) == [
        "'empty' has no values, so there is nothing to learn from it",
        "'flat' has equal values only, so there is nothing to learn from it",
        "'one' has one value, so there is nothing to learn from it",
    ]
    assert str(opt.earlier[0]) == "empty: ignored, because it has no values"
    assert opt.n_init == gpmi.Optimizer(BOX, seed=0).n_init
    np.testing.assert_array_equal(asked(opt), asked(run(3)))
    assert run(3, earlier={}).earlier == ()


def test_two_values_are_a_source() -> None:
    assert run(5, earlier={"a": SAME[:2]}).earlier[0].correlation is not None


def test_failed_and_pending_trials_of_a_source_are_left_out() -> None:
    old = gpmi.Optimizer(BOX, seed=1)
    for i in range(10):
        x = old.ask()
        if i % 3:
            old.tell(x, f(x))
        else:
            old.fail(x, why="broken")
    old.ask()
    opt = run(4, earlier={"old": old})
    assert opt.earlier[0].values == 6
    np.testing.assert_array_equal(asked(opt), asked(run(4, earlier={"old": old.trials})))


def test_a_result_trials_pairs_and_a_frame_say_the_same() -> None:
    result = gpmi.maximize(f, BOX, budget=9, seed=2)
    first = asked(run(4, earlier={"a": result}))
    pairs = [(trial.x, trial.y) for trial in result.trials]
    for source in (result.trials, pairs, result.to_dataframe(), iter(pairs)):
        np.testing.assert_array_equal(asked(run(4, earlier={"a": source})), first)


def test_error_bars_of_a_source_count() -> None:
    exact, vague = ({"a": [(x, y, noise) for x, y in SAME]} for noise in (0.0, 25.0))
    (certain,), (doubtful,) = (run(3, earlier=source).posterior(np.array([[0.3, 0.0]]))[1] for source in (exact, vague))
    assert doubtful > 3.0 * certain
    means = [Trial(i, x, y, "told", "user", i, repeats=4) for i, (x, y) in enumerate(SAME)]
    assert run(3, earlier={"a": means}).earlier[0].values == 20


def test_values_outside_the_space_are_skipped_and_counted() -> None:
    wide = [*SAME, ([2.0, 0.5], 1.0), ([0.5, -1.0], 3.0)]
    opt = run(4, earlier={"a": wide})
    text = "2 of the 22 values of 'a' lie outside the space and are left out"
    assert [event.message for event in opt.events if event.kind == "source skipped"] == [text]
    np.testing.assert_array_equal(asked(opt), asked(run(4, earlier={"a": SAME})))


def test_a_large_source_is_thinned_with_an_event() -> None:
    x = np.random.default_rng(1).random((MOST_VALUES + 50, 2))
    opt = run(3, earlier={"a": [(row, f(row)) for row in x]})
    assert any(event.kind == "source subset" for event in opt.events)
    assert opt.earlier[0].correlation > 0.9


def test_a_table_is_a_source_and_its_rows_outside_are_skipped() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    space = {"m": ["a", "b"], "t": (0.0, 1.0)}
    rows = [{"m": m, "t": float(t), "y": -((t - 0.4) ** 2), "who": "Anna"} for m in "ab" for t in rng.random(8)]
    rows += [{"m": "c", "t": 0.5, "y": 1.0, "who": "Ben"}, {"m": "a", "t": 7.0, "y": 1.0, "who": "Ben"}]
    opt = gpmi.Optimizer(space, seed=0, earlier={"old": pandas.DataFrame([*rows, {"m": "a", "t": 0.1, "who": "Eva"}])})
    listed = [({"m": row["m"], "t": row["t"]}, row["y"]) for row in rows]
    same = gpmi.Optimizer(space, seed=0, earlier={"old": listed})
    assert [event.message for event in opt.events] == [event.message for event in same.events]
    assert any(event.kind == "source skipped" and "2 of the 18" in event.message for event in opt.events)
    assert opt.ask() == same.ask()
    with pytest.raises(ValueError, match=r"earlier\['old'\] is a table without \['y'\]; give it a column"):
        gpmi.Optimizer(space, earlier={"old": pandas.DataFrame(rows).drop(columns="y")})


def test_many_sources_share_the_limit() -> None:
    rng = np.random.default_rng(2)
    many = {f"source {i}": [(row, f(row)) for row in rng.random((50, 2))] for i in range(8)}
    opt = run(3, earlier=many)
    subsets = [event.message for event in opt.events if event.kind == "source subset"]
    assert len(subsets) == 8 and all(int(text.split()[0]) <= MOST_VALUES // 8 for text in subsets)


# Whatever else an optimizer does


@pytest.mark.parametrize("fit", ["loo", "mcmc"])
def test_other_fits(fit: str) -> None:
    assert run(5, fit=fit, earlier={"a": SAME}).earlier[0].correlation > 0.5


def test_pending_points_failures_fixed_coordinates_and_constraints() -> None:
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": ["u", "v"]}
    values = [({"a": x[0], "b": x[1], "c": "uv"[i % 2]}, y) for i, (x, y) in enumerate(SAME)]
    opt = gpmi.Optimizer(space, seed=0, constraints=["a + b <= 1.5"], earlier={"old": values})
    skipped = sum(x["a"] + x["b"] > 1.5 for x, _ in values)
    assert skipped and any(f"{skipped} of the 20" in event.message for event in opt.events)
    for i in range(4):
        for x in opt.ask(2, fixed={"c": "u"}):
            assert x["c"] == "u" and x["a"] + x["b"] <= 1.5
            opt.fail(x) if i == 2 else opt.tell(x, f([x["a"], x["b"]]))
    assert opt.recommend(fixed={"c": "v"})["c"] == "v"
    assert opt.earlier[0].correlation is not None


def test_candidates_take_the_rows_that_they_have() -> None:
    table = np.round(RNG.random((40, 2)), 2)
    values = [(row, f(row)) for row in table[:15]]
    opt = gpmi.Optimizer(table, seed=0, repeats=False, earlier={"a": [*values, ([0.123456, 0.5], 1.0)]})
    for _ in range(6):
        x = opt.ask()
        opt.tell(x, f(x))
    assert opt.best is not None and opt.best.y == max(f(row) for row in table)


def test_conditional_parameters() -> None:
    space = {"kind": ["p", "q"], "a": (0.0, 1.0), "b": gpmi.Real(0.0, 1.0, when={"kind": "q"})}
    points = [{"kind": "p", "a": x} if i % 2 else {"kind": "q", "a": x, "b": y} for i, (x, y) in enumerate(POINTS)]
    values = [(x, f([x["a"], x.get("b", 0.2)])) for x in points]
    opt = gpmi.Optimizer(space, seed=0, earlier={"old": values})
    for _ in range(5):
        x = opt.ask()
        opt.tell(x, f([x["a"], x.get("b", 0.2)]))
    assert opt.earlier[0].values == 20


def test_several_objectives_are_compared_one_by_one() -> None:
    goals = {"good": "max", "cheap": "min", "seen": None}
    values = [(x, {"good": 100.0 * y, "cheap": other(x)}) for x, y in SAME]
    opt = gpmi.Optimizer(BOX, seed=0, goals=goals, earlier={"old": values})
    for _ in range(8):
        x = opt.ask()
        opt.tell(x, {"good": f(x), "cheap": float(x[0]), "seen": 1.0})
    found = {one.name: one.correlation for one in opt.earlier}
    assert list(found) == ["old (good)", "old (cheap)"]
    assert found["old (good)"] > 0.8
    assert len(opt.front) > 0 and opt.n_init <= 4


def test_a_single_objective_with_goals() -> None:
    opt = gpmi.Optimizer(BOX, seed=0, goals={"y": "max", "w": None}, earlier={"old": SAME})
    for _ in range(6):
        x = opt.ask()
        opt.tell(x, {"y": f(x), "w": 0.0})
    assert opt.earlier[0].correlation > 0.9
    np.testing.assert_allclose(asked(opt), asked(run(6, earlier={"old": SAME})), atol=1e-3)


def test_values_corrected_copied_and_replayed() -> None:
    opt = run(5, earlier={"a": SAME})
    again = gpmi.Optimizer(BOX, seed=0, earlier={"a": SAME}).replay(opt.trials)
    for twin in (again, copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
        np.testing.assert_array_equal(twin.ask(), copy.deepcopy(opt).ask())
    opt.correct(2, -1.0)
    fresh = gpmi.Optimizer(BOX, seed=0, earlier={"a": SAME})
    for trial in opt.trials:
        fresh.tell(trial.x, trial.y)
    np.testing.assert_allclose(opt.posterior.mu(POINTS), fresh.posterior.mu(POINTS), atol=1e-9)


def test_the_ledger_draws_from_what_the_source_says() -> None:
    """Its interval of the regret holds the regret, and is narrow: the source has shown where the maximum is."""
    opt = run(10, earlier={"a": SAME})
    found = opt.ledger.regret().interval()
    assert found.lower <= max(0.0, 2.0 - f(opt.recommend())) and found.upper < 0.1
    assert run(10).ledger.regret().interval().upper > found.upper


def test_the_run_prints_and_reports_its_sources(tmp_path: Any) -> None:
    result = gpmi.maximize(f, BOX, budget=6, seed=0, earlier={"last year": SAME})
    assert "last year: similar" in repr(result)
    page = result.report(tmp_path / "run.html").read_text()
    assert "earlier studies" in page and "last year: similar" in page


def test_a_list_is_still_the_same_function() -> None:
    told = gpmi.maximize(f, BOX, budget=3, seed=0, earlier=SAME)
    assert len(told.trials) == 23 and told.earlier == ()


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": gpmi.kernels.RBF(0.3)}, "kernel is .* with earlier= it is learned; leave out one of them"),
        ({"mean": f}, "mean is .* leave out one of them"),
        ({"noise": "student"}, "noise is 'student', but earlier= needs normal noise"),
    ],
)
def test_options_that_do_not_go_with_sources(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpmi.Optimizer(BOX, earlier={"a": SAME}, **options)


def test_a_fidelity_is_refused() -> None:
    space = {"x": (0.0, 1.0), "mesh": gpmi.Fidelity({"coarse": 1, "fine": 60})}
    with pytest.raises(ValueError, match="fidelity 'mesh', which earlier= does not support"):
        gpmi.Optimizer(space, earlier={"a": [({"x": 0.3, "mesh": "fine"}, 1.0), ({"x": 0.6, "mesh": "fine"}, 2.0)]})


@pytest.mark.parametrize(
    ("earlier", "error", "message"),
    [
        (SAME, TypeError, r"earlier is .* name them .* opt.tell_all"),
        (3, TypeError, "earlier is 3"),
        ({3: SAME}, TypeError, "earlier has the name 3; give each source a text"),
        ({"": SAME}, TypeError, "earlier has the name ''"),
        ({"a": 3}, TypeError, r"earlier\['a'\] is 3"),
        ({"a": {"x": 3}}, TypeError, r"earlier\['a'\] is \{'x': 3\}; give a study, a Result"),
        ({"a": "old.db"}, TypeError, r"a path, which an Optimizer does not open; open it with gpmi.study\(path\)"),
        ({"a": [3]}, TypeError, r"earlier\['a'\] has 3; give \(x, y\)"),
        ({"a": [([0.1, 0.2], float("nan"))]}, ValueError, "nan"),
        ({"a": [([0.1, 0.2], {"u": 1.0})]}, (TypeError, ValueError), "u"),
        ({"a": [([0.1, 0.2, 0.3], 1.0)]}, ValueError, r"earlier\['a'\] has 1 values, none of them in the space"),
    ],
)
def test_bad_sources_are_refused_by_name(earlier: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        gpmi.Optimizer(BOX, earlier=earlier)


def test_parameters_that_differ_are_named_with_a_remedy() -> None:
    space = {"t": (0.0, 1.0), "solvent": ["THF", "DMF"]}
    with pytest.raises(ValueError, match=r"earlier\['a'\] has points without 'solvent'; add the value that it had"):
        gpmi.Optimizer(space, earlier={"a": [({"t": 0.5}, 1.0)]})
    with pytest.raises(ValueError, match=r"points with 'p', not in the space; drop it from the points"):
        gpmi.Optimizer(space, earlier={"a": [({"t": 0.5, "solvent": "THF", "p": 1}, 1.0)]})
    with pytest.raises(ValueError, match="give points as dicts of t, solvent"):
        gpmi.Optimizer(space, earlier={"a": [([0.5, 1.0], 1.0)]})
    known = [({"t": t, "solvent": "THF"}, t) for t in (0.1, 0.5, 0.9)]
    opt = gpmi.Optimizer(space, earlier={"a": [*known, ({"t": 0.2, "solvent": "water"}, 1.0)]})
    assert any("1 of the 4 values of 'a' lie outside" in event.message for event in opt.events)


def test_goals_that_differ_are_refused() -> None:
    values = [(x, {"u": y}) for x, y in SAME]
    with pytest.raises(ValueError, match="several objectives; give a list of"):
        gpmi.Optimizer(BOX, goals={"u": "max", "v": "min"}, earlier={"a": SAME})
    old = gpmi.Optimizer(BOX, seed=0, goals={"p": "max", "q": "min"})
    x = old.ask()
    old.tell(x, {"p": 1.0, "q": 2.0})
    with pytest.raises(ValueError, match="measured 'p', 'q', but this study measures 'u', 'v'"):
        gpmi.Optimizer(BOX, goals={"u": "max", "v": "min"}, earlier={"a": old})
    with pytest.raises(ValueError, match="measured 'p', 'q', but this study has one value"):
        gpmi.Optimizer(BOX, earlier={"a": old})
    assert gpmi.Optimizer(BOX, goals={"u": "max", "v": "min"}, earlier={"a": values}).n_init <= 5


@pytest.mark.parametrize(
    ("correlation", "text"),
    [
        (0.95, "a: similar, correlation 0.95, 40 values"),
        (-0.95, "a: opposite, correlation -0.95, 40 values"),
        (0.5, "a: a little similar, correlation 0.50, 40 values"),
        (-0.5, "a: a little opposite, correlation -0.50, 40 values"),
        (0.1, "a: hardly related, correlation 0.10, 40 values"),
    ],
)
def test_how_a_source_is_described(correlation: float, text: str) -> None:
    assert str(SourceSummary("a", 40, correlation)) == text


def test_descriptors_and_earlier_studies_go_together() -> None:
    features = {"A": {"bp": 1.0}, "B": {"bp": 2.0}, "C": {"bp": 3.0}, "D": {"bp": 4.0}}
    space = {"s": gpmi.Choice(list("ABCD"), features=features), "t": (0.0, 1.0)}

    def f(p: Any) -> float:
        return float(features[p["s"]]["bp"] - 5.0 * (p["t"] - 0.4) ** 2)

    points = [{"s": s, "t": t} for s in "ABC" for t in (0.0, 0.25, 0.5, 0.75, 1.0)]
    opt = gpmi.Optimizer(space, seed=0, budget=10, earlier={"last year": [(p, 2.0 * f(p) + 1.0) for p in points]})
    for _ in range(10):
        p = opt.ask()
        opt.tell(p, f(p))
    assert opt.best is not None and opt.best.y > 3.9  # D is in no earlier trial
    assert "similar" in str(opt.earlier[0])
    (one,) = opt.descriptor_shares
    assert one.parameter == "s" and one.shares[0][0] == "bp"


def test_a_target_does_not_begin_with_the_largest_value_of_a_source() -> None:
    largest = max(SAME, key=lambda pair: pair[1])[1]
    source = [(x, {"y": y}) for x, y in SAME]
    opt = gpmi.Optimizer(BOX, seed=0, goals={"y": gpmi.Match(-0.5, within=0.1)}, earlier={"old": source})
    assert f(opt.ask()) < largest - 0.2


@pytest.mark.usefixtures("few_draws")
def test_a_ledger_with_a_source_and_fixed_coordinates() -> None:
    opt = run(4, earlier={"old": SAME})
    x = opt.ask(fixed={0: 0.5})
    opt.tell(x, f(x))
    for _ in range(7):
        x = opt.ask()
        opt.tell(x, f(x))
    assert opt.earlier[0].correlation is not None
    assert "can I stop?" in str(opt.ledger)


def test_sources_with_close_best_points_begin_with_one_of_them() -> None:
    rng = np.random.default_rng(1)
    sources = {str(i): [(x, -float(((x - 0.3) ** 2).sum())) for x in rng.random((20, 2))] for i in range(4)}
    opt = run(3, lambda x: -float(((x - 0.3) ** 2).sum()), earlier=sources)
    assert opt.n_init == 2
    assert [trial.origin for trial in opt.trials] == ["design", "design", "policy"]
