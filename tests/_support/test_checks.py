"""Checks that several rooms share: what they accept, and the messages of what they refuse."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from gpmi._support import checks
from gpmi._support.folders import writable_folder


@pytest.mark.parametrize("value", [1e-300, 0.5, np.float32(0.25), np.nextafter(1.0, 0.0)])
def test_a_probability_is_strictly_between_0_and_1(value: float) -> None:
    assert checks.probability("level", value) == float(value)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1.5, math.nan, math.inf])
def test_what_is_not_a_probability_is_refused_with_the_remedy_of_the_caller(value: float) -> None:
    with pytest.raises(ValueError, match=r"^level is .*; it is a probability: give a number between 0 and 1$"):
        checks.probability("level", value)
    with pytest.raises(ValueError, match=r"^delta is .*; another$"):
        checks.probability("delta", value, "another")


@pytest.mark.parametrize("value", ["0.5", None, True, [0.5]])
def test_a_probability_is_a_number(value: object) -> None:
    with pytest.raises(TypeError, match="level is"):
        checks.probability("level", value)


def test_points_are_rows_and_one_point_is_one_row() -> None:
    np.testing.assert_array_equal(checks.points("z", [1, 2], 2), [[1.0, 2.0]])
    assert checks.points("z", np.zeros((4, 3)), None).shape == (4, 3)
    assert checks.points("z", np.zeros((0, 3)), 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros((2, 3)), r"z has shape \(2, 3\); give an array of shape \(m, 2\)"),
        (np.zeros((1, 2, 2)), r"z has shape \(1, 2, 2\)"),
        (3.0, r"z has shape \(\)"),
        ([[0.0, math.nan]], "z has a coordinate that is not finite"),
    ],
)
def test_what_is_not_points_is_refused(value: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        checks.points("z", value, 2)


def test_a_writable_folder_is_made_and_left_empty(tmp_path: Path) -> None:
    folder = tmp_path / "one" / "two"
    writable_folder("out", tmp_path, folder)
    assert folder.is_dir() and not list(folder.iterdir())


def test_a_folder_that_cannot_be_made_is_refused_with_the_argument_s_name_and_value(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"^out is '.*picture.png', but '.*file.*' cannot be written to \(.*\)"):
        writable_folder("out", tmp_path / "picture.png", tmp_path / "file" / "folder")


def test_a_value_in_a_message_is_its_repr_cut_short() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    assert checks.shown("a\nb") == "'a\\nb'"
    assert checks.shown(10**400) == str(10**400)
    assert checks.shown(list(range(1000))).endswith("...") and len(checks.shown(list(range(1000)))) == 500
    for value in (10**5000, Silent()):
        assert checks.shown(value) == f"a value of type {type(value).__name__} that cannot be printed"


def test_a_whole_number_has_a_least_and_a_most() -> None:
    assert checks.whole("n", np.int64(3), 3, 3) == 3
    for value, words in (
        (2, "n is 2; give a whole number of at least 3"),
        (5, "n is 5; give a whole number of at most 4"),
    ):
        with pytest.raises(ValueError, match=words):
            checks.whole("n", value, 3, 4)
    with pytest.raises(ValueError, match="at most 9223372036854775807"):
        checks.whole("n", 2**63, 0)


@pytest.mark.parametrize(
    ("module", "wrong", "right"),
    [
        ("gpmi", "maximise", "maximize"),
        ("gpmi", "optimiser", "Optimizer"),
        ("gpmi", "real", "Real"),
        ("gpmi", "plot", "plots"),
        ("gpmi.plots", "importance", "importances"),
        ("gpmi.plots", "contour", "contours"),
        ("gpmi.kernels", "matern", "Matern"),
        ("gpmi.stopping", "RegretBellow", "RegretBelow"),
        ("gpmi.exchange", "read_trial", "read_trials"),
        ("gpmi.theory", "gama_hat", "gamma_hat"),
        ("gpmi.report", "sectons", "sections"),
        ("gpmi.command", "Comand", "Command"),
        ("gpmi.studyfile", "readstudy", "read_study"),
    ],
)
def test_a_name_that_is_nearly_right_gets_a_hint(module: str, wrong: str, right: str) -> None:
    found = import_module(module)
    with pytest.raises(AttributeError) as refused:
        getattr(found, wrong)
    assert str(refused.value) == f"module {module!r} has no attribute {wrong!r}; did you mean {right!r}?"
    assert hasattr(found, right) and not hasattr(found, "zzzz")
    with pytest.raises(AttributeError, match=r"has no attribute '_{2}wrapped_{2}'$"):
        _ = found.__wrapped__
