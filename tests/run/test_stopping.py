"""Stopping rules: each stops when it says, says why, and combines."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gpmi
from gpmi import GPMI, Optimizer, kernels, maximize, minimize
from gpmi.analysis.ledger.calibration import ENOUGH, Calibration
from gpmi.run.stopping import (
    Budget,
    GainBelow,
    ImprovementBelow,
    PhiBelow,
    RegretBelow,
    RegretBelowNoise,
    Rule,
    Seconds,
    Stagnation,
    Stop,
    Target,
)

BOX = [(0.0, 1.0)]
GRID = np.linspace(0.0, 1.0, 31)[:, None]
PRIOR = {"kernel": kernels.RBF(0.3), "noise_var": 1e-4}


def wave(x):
    return float(np.sin(7.0 * x[0]) + x[0])


class After(Rule):
    """A rule of the user's own: stops once t values are told."""

    def __init__(self, t, word):
        self.t, self.word, self.asked = t, word, 0

    def stop(self, optimizer, seconds):
        self.asked += 1
        return Stop(self.word) if optimizer.ledger.n >= self.t else None


def test_without_a_budget_a_rule_ends_the_run():
    r = maximize(wave, BOX, stop=Budget(7), seed=0)
    assert (len(r.trials), r.reason) == (7, "budget")


def test_a_rule_only_shortens_what_the_budget_allows():
    assert len(maximize(wave, BOX, budget=4, stop=Budget(7), seed=0).trials) == 4
    assert maximize(wave, BOX, budget=4, stop=After(9, "late"), seed=0).reason == "budget"


@pytest.mark.parametrize("run", [maximize, minimize])
def test_a_rule_that_does_not_stop_changes_no_point(run):
    plain = run(wave, BOX, budget=9, seed=0)
    asked = run(wave, BOX, budget=9, seed=0, stop=RegretBelow(1e-300) | ImprovementBelow(1e-300) | PhiBelow(1e-300))
    assert [trial.x for trial in plain.trials] == [trial.x for trial in asked.trials]
    assert (plain.events, plain.reason) == (asked.events, asked.reason)


def test_a_target_is_reached_from_the_side_of_the_goal():
    up = maximize(wave, GRID, budget=30, stop=Target(1.0), seed=0)
    assert up.reason == "target 1 reached"
    assert [trial.y >= 1.0 for trial in up.trials] == [False] * (len(up.trials) - 1) + [True]
    down = minimize(lambda x: -wave(x), GRID, budget=30, stop=Target(-1.0), seed=0)
    assert [trial.y for trial in down.trials] == [-trial.y for trial in up.trials]


def test_time_is_counted_from_the_start_of_the_run(monkeypatch):
    clock = itertools.count(100.0, 2.0)  # begin, then one reading after each evaluation
    monkeypatch.setattr("gpmi.run.loop.time.perf_counter", lambda: next(clock))
    r = maximize(wave, BOX, budget=30, stop=Seconds(7.5), seed=0)
    assert (len(r.trials), r.reason) == (4, "7.5 seconds")


def test_stagnation_counts_evaluations_since_the_best():
    values = iter([1.0, 3.0, 2.0, 3.0, 2.0, 9.0])
    r = maximize(lambda x: next(values), GRID, budget=20, stop=Stagnation(3), seed=0)
    assert (len(r.trials), r.reason) == (5, "no improvement in 3 evaluations")
    values = iter([1.0, 3.0, 2.0, 4.0, 2.0, 9.0])
    assert len(minimize(lambda x: next(values), GRID, budget=20, stop=Stagnation(3), seed=0).trials) == 4


def test_the_regret_rule_stops_when_the_ledger_says_so_and_not_before():
    r = maximize(wave, GRID, budget=60, stop=RegretBelow(0.05), seed=0, **PRIOR)
    assert r.reason == "regret below 0.05"
    assert r.ledger.regret().probability_below(0.05) >= 0.95
    last = len(r.trials)
    assert all(r.ledger.regret(t).probability_below(0.05) < 0.95 for t in range(ENOUGH, last))
    assert max(wave(x) for x in GRID) - wave(r.recommended) <= 0.05


def test_a_higher_level_stops_no_earlier():
    counts = [
        len(maximize(wave, GRID, budget=60, stop=RegretBelow(0.05, level), seed=0, **PRIOR).trials)
        for level in (0.5, 0.95, 0.995)
    ]
    assert counts == sorted(counts)


def test_the_regret_falls_below_the_noise():
    rng = np.random.default_rng(0)
    r = maximize(
        lambda x: wave(x) + 0.2 * rng.standard_normal(), GRID, budget=80, stop=RegretBelowNoise(), seed=0,
        kernel=kernels.RBF(0.3), noise_var=0.04,
    )  # fmt: skip
    assert r.reason == "regret below the noise, 0.2"
    assert r.ledger.noise_sd == pytest.approx(0.2)
    assert r.ledger.regret().probability_below(0.2) >= 0.95


@pytest.mark.parametrize("space", [GRID, BOX], ids=["set", "box"])
def test_going_on_stops_when_it_no_longer_pays(space):
    r = maximize(wave, space, budget=60, stop=ImprovementBelow(1e-3), seed=0, **PRIOR)
    assert r.reason == "expected improvement below 0.001"
    at = np.concatenate([np.atleast_2d(r.recommended), GRID])
    draws = r.posterior.sample(at, np.random.default_rng(0), 40_000)
    gains = np.maximum(draws[:, 1:] - draws[:, :1], 0.0)
    error = 3.0 * gains.std(axis=0).max() / 200.0
    assert gains.mean(axis=0).max() <= r.ledger.improvement + error + 1e-6 < 1e-3
    if space is GRID:
        assert gains.mean(axis=0).max() == pytest.approx(r.ledger.improvement, abs=error + 1e-6)


def test_to_measure_the_recommended_point_again_brings_nothing():
    opt = gpmi.Optimizer(np.arange(2.0)[:, None], gpmi.GPMI(), kernel=kernels.RBF(0.01), noise_var=1.0, seed=0)
    for x, y in ((0.0, 1.0), (1.0, -9.0), (1.0, -9.0), (1.0, -9.0)):
        opt.tell([x], y)
    assert opt.ledger.improvement == pytest.approx(0.0, abs=1e-3)  # f(0) is unknown by 0.7, but it is the better one
    assert opt.ledger.improvement <= opt.ledger.regret().simple.mean() + 1e-3


def test_the_phi_rule_looks_at_the_last_query():
    r = maximize(wave, GRID, budget=60, stop=PhiBelow(0.05), policy=GPMI(), seed=0, **PRIOR)
    assert r.reason == "phi below 0.05"
    assert [trial.phi < 0.05 for trial in r.trials] == [False] * (len(r.trials) - 1) + [True]
    assert r.events == ()


def wrong_run(stop):
    """Far too little noise in the model: phi falls at once, and the residuals are large."""
    rng = np.random.default_rng(0)
    arguments = {"policy": GPMI(), "kernel": kernels.RBF(0.6), "noise_var": 1e-4, "n_init": 8}
    return maximize(lambda x: wave(x) + 0.5 * rng.standard_normal(), GRID, budget=60, stop=stop, seed=0, **arguments)


def test_the_phi_rule_alone_warns_of_an_over_confident_model():
    r = wrong_run(PhiBelow(0.1))
    assert r.reason == "phi below 0.1"
    assert r.ledger.calibration.verdict == "over-confident"
    assert [event.kind for event in r.events if event.kind == "doubtful stop"]
    assert "over-confident" in r.events[-1].message


def test_the_phi_rule_in_company_does_not_warn():
    r = wrong_run(PhiBelow(0.1) & Stagnation(1))
    assert r.reason == "phi below 0.1 and no improvement in 1 evaluations"
    assert not [event for event in r.events if event.kind == "doubtful stop"]


def test_the_phi_rule_needs_a_policy_with_a_phi():
    with pytest.raises(ValueError, match=r"PhiBelow.*EI.*has no phi") as caught:
        maximize(wave, GRID, budget=9, stop=PhiBelow(0.1), policy=gpmi.EI(), seed=0, **PRIOR)
    assert len(caught.value.result.trials) == 1


def test_rules_about_the_model_wait_for_the_policy():
    opt = Optimizer(GRID, seed=0, **PRIOR)
    for x in GRID:
        opt.tell(x, wave(x))
    rules = RegretBelow(10.0), RegretBelowNoise(), ImprovementBelow(10.0)
    assert opt.ledger.doubt is None
    assert [rule.stop(opt, 0.0) for rule in rules] == [None] * 3
    opt.tell(x := opt.ask(), wave(x))
    assert all(rule.stop(opt, 0.0) is not None for rule in rules)


def test_a_constant_function_certifies_nothing():
    r = maximize(lambda x: 1.0, BOX, budget=26, stop=RegretBelow(10.0) | ImprovementBelow(10.0), seed=0)
    assert r.reason == "budget"
    assert not r.ledger.regret().known


@pytest.mark.parametrize("given", [{}, PRIOR], ids=["learned", "given"])
def test_under_doubt_no_rule_certifies(given, monkeypatch):
    """The same run, with residuals that are fine, too few and too large."""
    opt = Optimizer(GRID, seed=1, **given)
    while len(opt.trials) < 24:
        opt.tell(x := opt.ask(), wave(x))
    rules = RegretBelow(10.0), RegretBelowNoise(0.01), ImprovementBelow(10.0)
    fine = np.tile([0.5, -0.8, 1.2, -1.4], 6)
    for z, certified in ((fine, True), (fine[:13], False), (2.0 * fine, False)):
        calibration = Calibration(z, opt.ledger._posterior)
        monkeypatch.setattr(gpmi.analysis.ledger.Ledger, "calibration", calibration)
        assert (opt.ledger.doubt is None) == certified
        assert [rule.stop(opt, 0.0) is not None for rule in rules] == [certified] * 3


def test_with_a_learned_prior_the_regret_is_looked_at_four_times_in_each_doubling(monkeypatch):
    looks = []
    monkeypatch.setattr(gpmi.analysis.ledger.Ledger, "is_below", lambda self, *_, **__: looks.append(self.n) or False)
    maximize(wave, BOX, budget=50, stop=RegretBelow(1.0), seed=0)
    assert [n for n in looks if n >= 16] == [16, 20, 24, 28, 32, 40, 48]


@pytest.mark.parametrize(
    ("rule", "count", "reason"),
    [
        (lambda a, b: a | b, 3, "a"),
        (lambda a, b: b | a, 3, "a"),
        (lambda a, b: a & b, 5, "a and b"),
        (lambda a, b: (a & b) | Budget(4), 4, "budget"),
        (lambda a, b: a & (b | Budget(4)), 4, "a and budget"),
    ],
)
def test_rules_combine_by_and_and_or(rule, count, reason):
    r = maximize(wave, GRID, budget=20, stop=rule(After(3, "a"), After(5, "b")), seed=0)
    assert (len(r.trials), r.reason) == (count, reason)


def test_the_first_of_two_reasons_is_enough_and_a_missing_one_ends_the_question():
    a, b = After(1, "a"), After(1, "b")
    opt = Optimizer(GRID, seed=0, **PRIOR)
    opt.tell(GRID[0], 0.0)
    assert (a | b).stop(opt, 0.0) == Stop("a")
    assert (a.asked, b.asked) == (1, 0)
    never = After(9, "never")
    assert (never & b).stop(opt, 0.0) is None
    assert b.asked == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Budget(0), "evaluations is 0"),
        (lambda: Seconds(-1), "limit is -1"),
        (lambda: Target(np.nan), "value is nan"),
        (lambda: PhiBelow(0.0), "eps is 0.0"),
        (lambda: RegretBelow(-1.0), "eps is -1.0"),
        (lambda: RegretBelow(1.0, 1.0), "level is 1.0"),
        (lambda: RegretBelowNoise(0.0), "level is 0.0"),
        (lambda: ImprovementBelow("a"), "price is 'a'"),
        (lambda: Stagnation(1.5), "evaluations is 1.5"),
        (lambda: Budget(3) | 4, "stop has 4; give rules"),
        (lambda: Budget(3) & Seconds, "stop has <class"),
        (lambda: maximize(wave, BOX, stop=5), "stop has 5; give rules"),
        (lambda: maximize(wave, BOX), "budget is None and there is no stopping rule; give"),
    ],
)
def test_bad_rules_are_refused(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


def test_a_gain_that_is_unlikely_stops_a_run():
    r = maximize(wave, BOX, budget=60, stop=GainBelow(0.05), seed=0)
    assert r.reason == "10 more evaluations will hardly gain 0.05"
    gain = r.ledger.gain()
    assert gain.evaluations == 10 and gain.probability_above(0.05) <= 0.05
    assert r.ledger.doubt is None
    longer = maximize(wave, BOX, budget=len(r.trials) + 10, seed=0)
    assert wave(longer.recommended) - wave(r.recommended) <= 0.05


def test_a_rule_may_be_about_a_context():
    """The second coordinate is given: the regret is that of the best point with this coordinate."""

    def f(x):
        return -((x[0] - 0.3 * x[1]) ** 2)

    opt = Optimizer([(0.0, 1.0), (0.0, 1.0)], seed=0)
    for i in range(32):
        x = opt.ask(fixed={1: 0.8}) if i % 4 else opt.ask()
        opt.tell(x, f(x))
    rule = RegretBelow(1e-3, fixed={1: 0.8})
    ledger = opt.ledger
    assert (rule.stop(opt, 0.0) is not None) == ledger.is_below(1e-3, fixed={1: 0.8})
    assert ledger.is_below(1e-2, fixed={1: 0.8})
    with pytest.raises((ValueError, KeyError, IndexError)):
        RegretBelow(1e-3, fixed={7: 0.8}).stop(opt, 0.0)


@pytest.mark.parametrize(
    "arguments", [{"eps": 0.0}, {"eps": 1.0, "chance": 1.5}, {"eps": 1.0, "evaluations": 0}], ids=str
)
def test_a_gain_that_makes_no_sense_is_refused(arguments):
    with pytest.raises(ValueError, match=list(arguments)[-1]):
        GainBelow(**arguments)
