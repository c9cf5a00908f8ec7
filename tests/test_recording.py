"""Not one query changes unnoticed: more than 170 runs were written down, and are run again."""

from __future__ import annotations

import json
import os
import platform
from typing import Any

import numpy as np
import pytest
from decisions import unexplained
from recorded_runs import FILE, PINNED_CORE, not_pinned, recipes, record

from gpmi.storage.platforms import NONE, own_platform

RECORDED = json.loads(FILE.read_text())
NAMES = [recipe.name for recipe in recipes()]
FEW = NAMES[::16]
REST = [name for name in NAMES if name not in FEW]
PARTS = 4  # of the rest, each played in a process of its own


def test_every_run_is_in_the_file() -> None:
    assert list(RECORDED["runs"]) == NAMES
    assert len(NAMES) >= 60


def test_the_recording_was_written_with_the_pinned_vector_units() -> None:
    assert not_pinned(RECORDED["arithmetic"]) is None


def test_the_runs_are_played_with_the_pinned_vector_units() -> None:
    """So bits are compared wherever they can be. A new NumPy or BLAS may name its vector units differently."""
    if set(os.environ) & {"OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"}:
        pytest.skip("the environment sets the vector units")
    if not {"X86_V3", "AVX2"}.intersection(own_platform()["vectors"].split()):
        pytest.skip(f"needs a processor with the vector units of {PINNED_CORE}")
    assert not_pinned(record({})["arithmetic"]) is None


@pytest.mark.parametrize(("name", "change"), [(NAMES[0], [0.2, -0.1]), (NAMES[1], 100)])
def test_a_recording_that_is_wrong_by_one_query_fails(name: str, change: Any) -> None:
    """With every arithmetic, so it needs no bits."""
    before = RECORDED["runs"][name]
    wrong = list(before["decisions"])
    wrong[-2] = np.add(wrong[-2], change).tolist() if isinstance(change, list) else (wrong[-2] + change) % 150
    now = record({name: wrong})["runs"][name]
    assert unexplained(now["differences"], before["margins"]) is not None
    assert now["asked"] != before["asked"]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(FEW, id="few"),
        *(pytest.param(REST[i::PARTS], id=f"rest-{i}", marks=pytest.mark.slow) for i in range(PARTS)),
    ],
)
def test_the_recorded_runs_decide_and_say_what_they_did(names: list[str]) -> None:
    """Bit for bit with the arithmetic of the recording; with another one up to rounding and ties."""
    compare(names, record({name: RECORDED["runs"][name]["decisions"] for name in names}))


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="needs an x86-64 processor")
@pytest.mark.parametrize("core", ["Prescott", "Sandybridge", ""])
def test_other_vector_units_make_the_same_decisions(core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a processor of 2004, those of one of 2011, and all that this one has."""
    monkeypatch.setenv("OPENBLAS_CORETYPE", core)
    left_out = own_platform()["vectors"].removeprefix(NONE) if core == "Prescott" else ""
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", left_out)
    names = FEW[::2]
    compare(names, record({name: RECORDED["runs"][name]["decisions"] for name in names}))


def compare(names: list[str], played: dict[str, Any]) -> None:
    same_arithmetic = played["arithmetic"] == RECORDED["arithmetic"]
    for name in names:
        before, now = RECORDED["runs"][name], played["runs"][name]
        assert unexplained(now["differences"], before["margins"]) is None, name
        if same_arithmetic:
            assert now["asked"] == before["asked"], name
            assert now["said"] == before["said"], name
            assert now["outlook"] == before["outlook"], name
            assert now.get("ledger") == before.get("ledger"), name
