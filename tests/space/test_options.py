"""Options of a choice go by position and come back as the very objects, whatever objects they are."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import gpmi
from gpmi import Choice, Space, kernels


class Hostile:
    """Neither printed, hashed nor compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class EqualToAll:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@dataclass
class Method:
    name: str
    work: Any = field(default=None, compare=False)


OBJECTS: dict[str, list[Any]] = {
    "estimators": [Ridge(), Ridge(), DecisionTreeRegressor()],
    "classes": [Ridge, DecisionTreeRegressor],
    "modules": [math, json, np],
    "functions": [math.sin, math.cos, lambda x: x],
    "arrays": [np.arange(3), np.arange(4), np.array([0.0, math.nan])],
    "lists": [[1, 2], [1, 2, 3], [np.arange(2)], []],
    "dicts": [{"a": 1}, {"a": 2}, {"a": np.arange(2)}],
    "missing": [math.nan, None, pd.NA, pd.NaT, "none"],
    "frames": [pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 2]})],
    "hostile": [Hostile(), Hostile(), 1],
    "equal to all": [EqualToAll(), EqualToAll(), "a"],
    "equal": [Method("a", math.sin), Method("a", math.cos), Method("b")],
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_option_of_any_kind_comes_back_as_itself_and_can_be_told(name: str) -> None:
    options = OBJECTS[name]
    opt = gpmi.Optimizer({"m": options, "x": (0.0, 1.0)}, seed=0)
    for t in range(8):
        point = opt.ask()
        assert any(point["m"] is option for option in options)
        told = opt.tell(point if t % 2 else dict(point), float(t % 3))
        assert told.origin != "user" and told.x["m"] is point["m"] and opt.pending == ()
    for i, option in enumerate(options):  # also where it was not asked
        trial = opt.tell({"m": option, "x": 0.5}, 0.0)
        assert trial.x["m"] is option
        assert opt.space.encode(trial.x)[:-1].tolist() == [float(i == j) for j in range(len(options))]
    opt.fail(opt.ask())
    opt.forget(opt.ask())
    assert any(opt.recommend()["m"] is option for option in options)
    again = gpmi.Optimizer({"m": options, "x": (0.0, 1.0)}, seed=0).replay(opt.trials)
    assert again.ask()["m"] is opt.ask()["m"]
    if name != "hostile":  # who cannot be printed, cannot be printed
        assert repr(opt) and opt._repr_html_() and len(opt.to_dataframe()) == len(opt.trials)


def test_an_optimizer_with_objects_for_options_can_be_pickled() -> None:
    opt = gpmi.Optimizer({"m": OBJECTS["estimators"], "x": (0.0, 1.0)}, seed=0)
    for t in range(5):
        opt.tell(opt.ask(), float(t))
    pending = opt.ask()
    other = pickle.loads(pickle.dumps(opt))
    assert other.pending[0].x["m"] is other.space.parameters[0].options[OBJECTS["estimators"].index(pending["m"])]
    other.tell(dict(other.pending[0].x), 1.0)
    opt.tell(pending, 1.0)
    ours, theirs = opt.ask(), other.ask()
    assert opt.space.encode(ours).tolist() == other.space.encode(theirs).tolist()


def test_maximize_chooses_between_estimators() -> None:
    x = np.linspace(0.0, 1.0, 60)[:, None]
    y = np.where(x[:, 0] > 0.5, 1.0, 0.0)
    options = [Ridge(), DecisionTreeRegressor(max_depth=2), Ridge(fit_intercept=False)]

    def score(point: dict[str, Any]) -> float:
        return float(point["model"].fit(x[::2], y[::2]).score(x[1::2], y[1::2]))  # fits the very object

    r = gpmi.maximize(score, {"model": options, "noise": (0.0, 1.0)}, budget=12, seed=0)
    assert r.x is not None and r.x["model"] is options[1]
    assert r.recommended is not None and r.recommended["model"] is options[1]
    assert {id(trial.x["model"]) for trial in r.trials} <= {id(option) for option in options}
    assert "DecisionTree" in repr(r)


def test_a_copy_of_an_option_stands_for_it_if_it_equals_it_alone() -> None:
    space = Space.of({"m": [[1, 2], np.arange(3), (1, "a"), math.nan, Method("b"), "word"]})
    for i, value in enumerate([[1, 2], np.arange(3), (1, "a"), float("nan"), Method("b"), "".join(["wo", "rd"])]):
        point = space.canonical({"m": value})
        assert point["m"] is space.decode(np.eye(6)[i])["m"]
    with pytest.raises(ValueError, match="m is Ridge"):
        Space.of({"m": [Ridge(), "none"]}).encode({"m": Ridge()})


def test_what_equals_several_options_is_refused_unless_it_is_one_of_them() -> None:
    first, second = OBJECTS["equal"][:2]
    space = Space.of({"m": [first, second, "a"]})
    assert space.encode({"m": first}).tolist() == [1.0, 0.0, 0.0]
    assert space.encode({"m": second}).tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(ValueError, match=r"m is Method.* equals the options at \[0, 1\]: give the very object"):
        space.encode({"m": Method("a")})


@pytest.mark.parametrize(
    "options",
    [
        *(["a", "a"], [1, 1.0], [[1], [1]], [(1, 2), (1, 2)], [{1}, {1}], [np.arange(2), np.arange(2)]),
        *([math.nan, float("nan")], [None, "a", None], [math, math], [Ridge] * 2, [Ridge()] * 2, [Hostile()] * 2),
    ],
    ids=lambda options: type(options[0]).__name__,
)
def test_an_option_given_twice_is_refused(options: list[Any]) -> None:
    with pytest.raises(ValueError, match="twice; give each option once"):
        Choice(tuple(options))


def test_the_levels_of_a_choice_are_made_once_and_are_not_pickled() -> None:
    choice = Choice(tuple(f"w{i}" for i in range(500)))
    assert choice.levels is choice.levels and not choice.levels.flags.writeable
    assert choice.find("w77") == 77
    assert len(pickle.dumps(choice)) < 10_000
    assert copy.deepcopy(choice) == choice == pickle.loads(pickle.dumps(choice))
    whole = gpmi.Int(1, 10**6, log=True)
    assert len(whole.levels) == 10**6 and len(pickle.dumps(whole)) < 200


# The point of a trial


def point_of_a_trial() -> Any:
    opt = gpmi.Optimizer({"a": (0.0, 1.0), "b": [1, "x"]}, kernel=kernels.RBF(0.3), noise_var=1e-4, seed=0)
    return opt.tell({"a": 0.5, "b": "x"}, 1.0).x


def test_the_point_of_a_trial_cannot_be_changed() -> None:
    x = point_of_a_trial()
    for change in (
        lambda: x.__setitem__("a", 1.0),
        lambda: x.__delitem__("a"),
        lambda: x.__ior__({"a": 1.0}),
        lambda: x.update(a=1.0),
        lambda: x.setdefault("c", 1.0),
        lambda: x.pop("a"),
        lambda: x.popitem(),
        lambda: x.clear(),
    ):
        with pytest.raises(TypeError, match=r"change a copy, dict\(x\)"):
            change()
    assert x == {"a": 0.5, "b": "x"}


def test_the_point_of_a_trial_is_a_dict_in_every_other_way() -> None:
    x, plain = point_of_a_trial(), {"a": 0.5, "b": "x"}
    assert x == plain and plain == x and repr(x) == repr(plain) and list(x) == ["a", "b"] and isinstance(x, dict)
    assert json.loads(json.dumps(x)) == plain
    for twin in (copy.copy(x), copy.deepcopy(x), *(pickle.loads(pickle.dumps(x, p)) for p in range(6))):
        assert twin == plain and type(twin) is type(x)
        with pytest.raises(TypeError):
            twin["a"] = 1.0
    for mine in (dict(x), {**x}, x.copy(), x | {}):
        assert type(mine) is dict and mine == plain
        mine["a"] = 1.0
    assert x == plain
