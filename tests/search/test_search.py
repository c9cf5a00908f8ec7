"""The search of a run: exact on rows, and its caches change the cost and never the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_objectives import box, chance_in, grid_in, posterior_in, score_of

from gpmi import EHVI, GPMI, Int, LogEI, Posterior, Reinvest, Space, SpaceExhausted, Thompson
from gpmi.gp.ensemble import Ensemble
from gpmi.gp.tracking import Tracked
from gpmi.policies import Mean, Policy, State
from gpmi.policies.batch import UpperBound
from gpmi.policies.objectives import WeightedScore
from gpmi.search.barriers import Barriers
from gpmi.search.joint import JointObjective
from gpmi.search.objective import Objective, SearchResult
from gpmi.search.relevant_region import RelevantRegion
from gpmi.search.search import Search
from gpmi.search.subspaces import search_of

SQUARE = box((0.0, 1.0), (0.0, 1.0))
TABLE: Any = Space.of(np.random.default_rng(3).random((80, 2)))
ROWS = TABLE.rows
SEEDS = st.integers(0, 1000)
NUMBERS = st.sets(st.integers(0, 79), max_size=79)


def taken_rows(numbers: set[int]) -> dict[int, np.ndarray]:
    return {trial: ROWS[number] for trial, number in enumerate(sorted(numbers))}


def best(
    search: Search,
    objective: Objective,
    told: Posterior | None = None,
    anchor: Posterior | None = None,
    taken: Mapping[int, np.ndarray] | None = None,
    **options: Any,
) -> SearchResult:
    told = objective.posterior if told is None else told
    rngs = np.random.default_rng(0), np.random.default_rng(1)
    return search.best(objective, told, told if anchor is None else anchor, taken or {}, *rngs, **options)


def outcome(result: SearchResult) -> tuple[Any, ...]:
    moments = np.array([result.mu, result.var, result.score])
    return result.row.tobytes(), moments.tobytes(), result.number, result.events


def test_a_small_discrete_space_is_enumerated() -> None:
    space = Space.of({"a": Int(1, 5), "b": ["x", "y"], "c": Int(0, 3)})
    assert space.rows is not None and len(space.rows) == 40 == len(np.unique(space.rows, axis=0))


# Rows


@given(st.sampled_from([GPMI(), LogEI(), Mean()]), SEEDS, NUMBERS)
def test_the_best_row_that_is_not_taken_is_found(policy: Policy, seed: int, numbers: set[int]) -> None:
    o = score_of(policy, posterior_in(TABLE, seed % 20), TABLE)
    score = o(ROWS)
    score[sorted(numbers)] = -np.inf
    assert best(search_of(TABLE, 0, repeats=False), o, taken=taken_rows(numbers)).number == score.argmax()


def test_all_rows_at_the_point_of_a_trial_are_taken() -> None:
    twice: Any = Space.of(np.array([[0.0], [1.0], [0.0], [2.0], [1.0]]))
    o = score_of(Mean(), posterior_in(twice, 0, 5), twice)
    numbers = {best(search_of(twice, 0, repeats=False), o, taken={0: np.array([x])}).number for x in (0.0, 1.0)}
    assert numbers <= {0, 1, 3}
    assert best(search_of(twice, 0, repeats=False), o, taken={5: np.array([0.0]), 9: np.array([1.0])}).number == 3


def test_a_taken_trial_that_is_given_back_may_be_asked_again() -> None:
    o, search = score_of(GPMI(), posterior_in(TABLE, 0), TABLE), search_of(TABLE, 0, repeats=True)
    first = best(search, o).number
    assert first is not None
    assert best(search, o, taken={0: ROWS[first]}).number != first
    assert best(search, o).number == first


@pytest.mark.parametrize(("repeats", "hint"), [(True, False), (False, True)])
def test_where_all_rows_are_taken_the_space_is_exhausted(repeats: bool, hint: bool) -> None:
    o, taken = score_of(GPMI(), posterior_in(TABLE, 0), TABLE), taken_rows(set(range(80)))
    with pytest.raises(SpaceExhausted, match="all 80 candidates have been asked") as caught:
        best(search_of(TABLE, 0, repeats=repeats), o, taken=taken)
    assert ("repeats=True allows asking again" in str(caught.value)) == hint


@given(SEEDS, NUMBERS, st.floats(0.0, 1.0))
def test_unsafe_rows_are_asked_only_if_no_other_is_left(seed: int, numbers: set[int], edge: float) -> None:
    o = score_of(GPMI(), posterior_in(TABLE, seed % 20), TABLE)
    nothing = np.empty((0, 2))
    barriers = Barriers(nothing, nothing, nothing, lambda z: z[:, 0] > edge)
    result = best(search_of(TABLE, 0, repeats=False), o, taken=taken_rows(numbers), barred=barriers)
    free = np.array([i not in numbers for i in range(80)])
    safe = free & (ROWS[:, 0] <= edge)
    assert result.number == np.where(safe if safe.any() else free, o(ROWS), -np.inf).argmax()


@given(SEEDS, NUMBERS, NUMBERS)
def test_a_search_keeps_to_a_region_as_long_as_a_row_is_left_in_it(
    seed: int, numbers: set[int], inside: set[int]
) -> None:
    o = score_of(GPMI(), posterior_in(TABLE, seed % 20), TABLE)
    free, held = (np.array([i in chosen for i in range(80)]) for chosen in (set(range(80)) - numbers, inside))
    region = RelevantRegion(o.posterior, 1.0, 0.0, ROWS[0], held)
    result = best(search_of(TABLE, 0, repeats=False), o, taken=taken_rows(numbers), region=region)
    assert result.number == np.where(free & held if np.any(free & held) else free, o(ROWS), -np.inf).argmax()


@given(SEEDS, NUMBERS)
def test_a_score_of_several_objectives_is_maximised_over_the_rows_that_are_left(seed: int, numbers: set[int]) -> None:
    outputs = tuple(Ensemble(posterior_in(TABLE, seed % 20 + i)) for i in range(2))
    score = WeightedScore(np.array([1.0, 0.5]), (None, None), 0.5)
    o = JointObjective(outputs, score, EHVI(), State(), chance_in(TABLE, seed % 20) if seed % 2 else None)
    nothing, search = np.empty((0, 2)), search_of(TABLE, 0, repeats=False)
    barriers = Barriers(nothing, nothing, nothing, lambda z: z[:, 1] > 0.8)
    result = search.best_joint(o, nothing, taken_rows(numbers), np.random.default_rng(0), barriers)
    free = np.array([i not in numbers for i in range(80)])
    safe = free & (ROWS[:, 1] <= 0.8)
    assert result.number == np.where(safe if safe.any() else free, o(ROWS), -np.inf).argmax()


# Caches


@pytest.mark.parametrize("policy", [GPMI(), UpperBound(), LogEI(), Reinvest(), Mean(), Thompson()], ids=repr)
@pytest.mark.parametrize("space", [TABLE, SQUARE], ids=["rows", "box"])
def test_a_search_with_caches_returns_what_a_new_one_does_to_the_last_bit(policy: Policy, space: Any) -> None:
    """Over values told, pending points, other pending points, a corrected value, a new prior, and fewer values."""
    full = posterior_in(space, 0, 22)
    prior = Posterior.prior(full.kernel, 1e-4)
    anchor = prior.condition(full.x[:12], full.y[:12])
    other = Posterior.prior(full.kernel, 1e-2).condition(full.x[:16], full.y[:16])
    search = search_of(space, 0, repeats=True)
    steps = [
        (anchor, anchor, anchor),
        (anchor, anchor, anchor),
    ]  # the objective's posterior, the values told, the anchor
    for n in (13, 14, 15):
        told = anchor.condition(full.x[12:n], full.y[12:n])
        pending = full.x[n : n + 2]
        steps += [(told, told, anchor), (told.condition(pending, told.mu(pending)), told, anchor)]
        pending = full.x[n + 2 : n + 4]
        steps += [(told.condition(pending, told.mu(pending)), told, anchor), (told, told, anchor)]
    corrected = anchor.condition(full.x[12:15], full.y[12:15] + np.array([0.0, 2.0, 0.0]))
    steps += [(corrected, corrected, anchor)]
    extended = other.condition(full.x[16:], full.y[16:])
    steps += [(other, other, other), (extended, extended, other), (anchor, anchor, anchor)]
    for posterior, told, start in steps:
        o, taken = score_of(policy, posterior, space), {0: posterior.x[0], 1: posterior.x[1]}
        fresh = best(search_of(space, 0, repeats=True), o, told, start, taken)
        assert outcome(best(search, o, told, start, taken)) == outcome(fresh)


@pytest.mark.parametrize("space", [TABLE, SQUARE], ids=["rows", "box"])
def test_pending_points_count_as_observed_in_every_search(space: Any) -> None:
    """GP-MI keeps away from a pending point, because the variance there is small."""
    full = posterior_in(space, 1, 10)
    anchor = Posterior.prior(full.kernel, 1e-4).condition(full.x, full.y)
    search = search_of(space, 0, repeats=True)
    alone = best(search, score_of(UpperBound(), anchor, space), anchor, anchor)
    extended = anchor.condition(alone.row[None], anchor.mu(alone.row[None]))
    o = score_of(UpperBound(), extended, space)
    beside = best(search, o, anchor, anchor)
    assert not np.array_equal(alone.row, beside.row)
    z = ROWS if space.rows is not None else grid_in(SQUARE, 41)
    assert beside.score >= o(z).max() - 1e-3
    assert outcome(beside) == outcome(best(search_of(space, 0, repeats=True), o, anchor, anchor))
    given_back = best(search, score_of(UpperBound(), anchor, space), anchor, anchor)
    assert outcome(given_back) == outcome(alone)


def test_a_region_is_computed_again_only_for_other_values_weights_or_chances() -> None:
    first, second = posterior_in(TABLE, 0), posterior_in(TABLE, 1)
    search, rng, chance = search_of(TABLE, 0, repeats=True), np.random.default_rng(0), chance_in(TABLE, 0)
    region = search.relevant(first, first, 1.0, rng, None)
    assert search.relevant(first, first, 1.0, rng, None) is region
    for told, weight, success in ((first, 2.0, None), (first, 1.0, chance), (second, 1.0, None)):
        again = search.relevant(told, told, weight, rng, success)
        expected = search_of(TABLE, 0, repeats=True).relevant(told, told, weight, rng, success)
        assert again is not region and again.level == expected.level
        np.testing.assert_array_equal(again.rows, expected.rows)
        search.relevant(first, first, 1.0, rng, None)


@pytest.mark.parametrize("fits", [True, False])
def test_moments_are_those_of_the_posterior_or_none_if_there_are_too_many(
    fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tracked, "fits", staticmethod(lambda n, m: fits))
    full = posterior_in(TABLE, 0)
    anchor = Posterior.prior(full.kernel, 1e-4).condition(full.x[:20], full.y[:20])
    told, search = anchor.condition(full.x[20:], full.y[20:]), search_of(TABLE, 0, repeats=True)
    for posterior in (anchor, told):
        moments = search.moments(posterior, anchor)
        assert (moments is not None) == fits
        for result, expected in zip(moments or (), posterior(ROWS), strict=moments is not None):
            np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-9)


# Boxes


@pytest.mark.parametrize("seed", range(3))
def test_on_a_box_a_taken_point_is_not_asked_again_and_no_grid_point_beats_the_answer(seed: int) -> None:
    o, search = score_of(GPMI(), posterior_in(SQUARE, seed), SQUARE), search_of(SQUARE, 0, repeats=True)
    first = best(search, o)
    values = o(grid_in(SQUARE, 61))
    assert first.score >= values.max() - 1e-3 * np.ptp(values)
    assert not np.array_equal(best(search, o, taken={0: first.row}).row, first.row)


def test_on_a_box_the_answer_lies_in_the_region_even_if_only_its_best_point_is_known() -> None:
    posterior = posterior_in(SQUARE, 0)
    o, at = score_of(GPMI(), posterior, SQUARE), np.array([0.123, 0.456])

    class Speck(RelevantRegion):
        def holds(self, z: np.ndarray) -> np.ndarray:
            return np.abs(z - at).max(axis=1) < 0.001

    result = best(search_of(SQUARE, 0, repeats=True), o, region=Speck(posterior, 1.0, 0.0, at))
    assert np.abs(result.row - at).max() < 0.001 and result.score >= o(at[None])[0]


def test_a_joint_score_on_a_box_is_as_good_as_on_a_grid_and_keeps_to_the_rules() -> None:
    outputs = tuple(Ensemble(posterior_in(SQUARE, i)) for i in range(2))
    o = JointObjective(outputs, WeightedScore(np.array([1.0, 0.5]), (None, None), 0.5), EHVI(), State())
    search, good, rng = search_of(SQUARE, 0, repeats=True), outputs[0].posterior.x[:2], np.random.default_rng(0)
    first = search.best_joint(o, good, {}, rng)
    values = o(grid_in(SQUARE, 61))
    assert first.score >= values.max() - 1e-3 * np.ptp(values)
    assert not np.array_equal(search.best_joint(o, good, {0: first.row}, rng).row, first.row)
    half = np.full((1, 2), 0.2)
    barriers = Barriers(first.row[None], half, half)
    assert not barriers.holds(search.best_joint(o, good, {}, rng, barriers).row[None])[0]
