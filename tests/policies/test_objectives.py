"""Policies for several objectives: their scores, and where no reference is stated, the box that they look into."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpmi
from gpmi.policies import State
from gpmi.policies.front import non_dominated
from gpmi.policies.objectives import Standing
from gpmi.policies.reference import inner_reference, is_outside, trimmed, wide_is_due, wide_reference


class Product(gpmi.Utility):
    def utility(self, y):
        return y["a"] * (5.0 - y["b"])


POLICIES = {
    "EHVI": gpmi.EHVI(),
    "Scalarised": gpmi.Scalarised(),
    "Weights": gpmi.Weights(a=2, b=1),
    "Utility": Product(),
}


def _standing(targets=(None, None), seed=0):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal((1, 6, 2))
    values = np.stack([y[..., i] if t is None else -np.abs(y[..., i] - t) for i, t in enumerate(targets)], axis=-1)
    state = State(t=3, dim=2)
    reference = np.array([-2.5, -2.5])
    works = np.ones(6, dtype=bool)
    return Standing(values, y, works, reference, targets, state, (1, 2), names=("a", "b"), signs=(1.0, -1.0))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("targets", [(None, None), (None, 0.4)])
def test_derivatives_are_those_of_the_score(name, targets):
    score = POLICIES[name].joint_score(_standing(targets))
    rng = np.random.default_rng(3)
    mu, var = rng.standard_normal((1, 2, 9)) + 0.3, rng.uniform(0.1, 1.0, (1, 2, 9))
    value, by_mu, by_var = score.with_derivatives(mu, var)
    np.testing.assert_allclose(value, score(mu, var), rtol=1e-8, atol=1e-10)
    for i in range(2):
        for which, slope in ((0, by_mu), (1, by_var)):
            moments = [[mu.copy(), var.copy()] for _ in range(2)]
            moments[0][which][:, i] += 1e-5
            moments[1][which][:, i] -= 1e-5
            expected = (score(*moments[0]) - score(*moments[1])) / 2e-5
            np.testing.assert_allclose(slope.sum(axis=0)[i], expected, rtol=2e-3, atol=1e-5)


def test_weights_score_the_expected_improvement_of_the_weighted_sum():
    standing = _standing()
    score = gpmi.Weights(a=2, b=1).joint_score(standing)
    mu, var = np.array([[[0.5], [-0.2]]]), np.array([[[0.3], [0.8]]])
    rng = np.random.default_rng(0)
    z = mu[0, :, 0] + rng.standard_normal((400_000, 2)) * np.sqrt(var[0, :, 0])
    best = (standing.values[0] @ [2.0, 1.0]).max()
    expected = np.maximum(z @ [2.0, 1.0] - best, 0.0).mean()
    assert np.exp(score(mu, var)[0]) == pytest.approx(expected, rel=0.02)


def test_a_utility_is_asked_in_the_units_of_the_outputs():
    class Spy(gpmi.Utility):
        def utility(self, y):
            seen.append({name: np.array(one) for name, one in y.items()})
            return y["a"] + y["b"]

    seen: list[dict[str, np.ndarray]] = []
    standing = _standing()
    Spy().joint_score(standing)
    np.testing.assert_array_equal(seen[0]["a"], standing.outputs[0, :, 0])
    np.testing.assert_array_equal(seen[0]["b"], -standing.outputs[0, :, 1])  # the model's b is minus the output


def test_a_utility_that_returns_something_else_is_refused():
    class Wrong(gpmi.Utility):
        def utility(self, y):
            return 1.0

    with pytest.raises(ValueError, match="must return one finite number for each"):
        Wrong().joint_score(_standing())


def test_weights_and_utilities_find_the_best_point_for_them():
    def f(x):
        return {"far": x[0] * (1.0 - 0.1 * (x[1] - 0.3) ** 2), "cost": x[0] ** 2 + 0.2 * (x[1] - 0.3) ** 2}

    class Desirability(gpmi.Utility):
        def utility(self, y):
            return np.sqrt(np.clip(y["far"], 0.0, 1.0) * np.clip(1.0 - y["cost"], 0.0, 1.0))

    goals, box = {"far": "max", "cost": "min"}, [(0.0, 1.0), (0.0, 1.0)]
    r = gpmi.optimize(f, box, goals=goals, budget=20, seed=0, policy=gpmi.Weights(far=2, cost=1))
    assert max(2.0 * t.outputs["far"] - t.outputs["cost"] for t in r.trials) > 0.999  # at (1, 0.3) it is 1
    r = gpmi.optimize(f, box, goals=goals, budget=20, seed=0, policy=Desirability())
    best = max(Desirability().utility({k: np.array(v) for k, v in t.outputs.items()}) for t in r.trials)
    assert best > 0.6203  # sqrt(x (1 - x^2)) has its maximum 0.62040 at 1 / sqrt 3


@pytest.mark.parametrize(
    ("weights", "words"),
    [({"a": 1}, "give each one a weight"), ({"a": 1, "b": 1, "c": 1}, "give each one a weight")],
)
def test_weights_name_all_objectives(weights, words):
    with pytest.raises(ValueError, match=words):
        gpmi.Optimizer([(0, 1)], goals={"a": "max", "b": "min"}, policy=gpmi.Weights(**weights))


def test_weights_must_be_positive_and_there():
    with pytest.raises(ValueError, match="a is -1"):
        gpmi.Weights(a=-1)
    with pytest.raises(TypeError, match="Weights has no weight"):
        gpmi.Weights()


# Where no reference is stated


@given(st.integers(1, 12), st.integers(2, 4), st.integers(0, 10**6))
def test_the_inner_reference_is_below_what_is_left_of_the_front(n, k, seed):
    values = np.random.default_rng(seed).integers(0, 6, (n, k)).astype(float)
    front = trimmed(values[non_dominated(values)])
    assert len(front) and (front >= inner_reference(values)).all()
    assert all(any(np.array_equal(one, other) for other in values) for one in front)


def test_tails_of_a_front_are_trimmed():
    front = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [1.0005, -20.0]])  # the last one gains next to nothing
    assert trimmed(front).tolist() == front[:3].tolist()
    assert inner_reference(front).tolist() == pytest.approx([-0.1, -0.1])


def test_a_wide_reference_is_below_everything_or_searches_one_end():
    values = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [-1.0, -3.0]])
    inner = inner_reference(values)
    assert (wide_reference(values, inner, 0) < values.min(axis=0)).all()
    for turn, (own, other) in ((1, (0, 1)), (2, (1, 0)), (4, (0, 1))):
        reference = wide_reference(values, inner, turn)
        assert reference[own] == inner[own]
        assert reference[other] < wide_reference(values, inner, 0)[other]


def test_what_is_outside_of_the_box_is_a_new_part_of_the_front():
    before = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert is_outside(np.array([1.0, 0.0]), before)
    assert not is_outside(np.array([0.3, 0.8]), before)  # inside
    assert not is_outside(np.array([-1.0, 0.0]), before)  # dominated
    assert not is_outside(np.array([0.5001, -5.0]), before)  # a tail


def test_wide_queries_in_vain_become_rare():
    values, works = np.zeros((200, 2)), np.ones(200, dtype=bool)
    queries: list[tuple[int, bool]] = []
    for row in range(2, 152):
        queries.append((row, wide_is_due(values, works, queries)))
    wide = [is_wide for _, is_wide in queries]
    assert wide[0] and 15 <= sum(wide) <= 20  # sqrt(2 * 150) = 17.3
    assert not any(wide[-5:]) or sum(wide[-10:]) <= 1


def test_a_repeat_finds_nothing_new():
    values, works = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.2, 0.2]]), np.ones(4, dtype=bool)
    assert wide_is_due(values, works, [(0, True), (3, False)])
    assert not wide_is_due(values, works, [*[(0, True)] * 5, (3, False)])


def test_more_than_four_objectives_are_scalarised():
    goals = {f"f{i}": "max" for i in range(5)}
    assert isinstance(gpmi.Optimizer([(0, 1)], goals=goals).policy, gpmi.Scalarised)
    with pytest.raises(ValueError, match=r"there are 5 objectives; give gpmi.Scalarised\(\)"):
        gpmi.Optimizer([(0, 1)], goals=goals, policy=gpmi.EHVI())


def test_a_wide_query_that_finds_something_is_followed_by_another_one_soon():
    values = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.5, 0.5], [2.0, -2.0], [0.5, 0.5]])
    works = np.ones(6, dtype=bool)
    queries = [(2, True), (3, False)]
    assert wide_is_due(values, works, queries)
    assert not wide_is_due(values, works, [*queries, (4, True)])  # one query inside comes first
    assert wide_is_due(values, works, [*queries, (4, True), (5, False)])
    works[2] = works[4] = False  # what fails has found nothing
    assert not wide_is_due(values, works, [*queries, (4, True), (5, False)])
