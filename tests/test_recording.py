"""Not one query changes unnoticed: more than a hundred runs were written down, and are run again."""

from __future__ import annotations

import json

import numpy as np
import pytest
from recorded_runs import FILE, recipes, record, versions

RECORDED = json.loads(FILE.read_text())
NAMES = [recipe.name for recipe in recipes()]
FEW = NAMES[::16]
REST = [name for name in NAMES if name not in FEW]
PARTS = 4  # of the rest, each played in a process of its own


def test_every_run_is_in_the_file() -> None:
    assert list(RECORDED["runs"]) == NAMES
    assert len(NAMES) >= 60


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(FEW, id="few"),
        *(pytest.param(REST[i::PARTS], id=f"rest-{i}", marks=pytest.mark.slow) for i in range(PARTS)),
    ],
)
def test_the_recorded_runs_ask_and_say_what_they_did(names: list[str]) -> None:
    """Bit for bit with the versions of the recording; with others a run starts at the same points."""
    played = record(names)
    same_arithmetic = versions() == RECORDED["versions"]
    for name in names:
        before, now = RECORDED["runs"][name], played[name]
        np.testing.assert_allclose(now["start"], before["start"], rtol=1e-3, atol=1e-3, err_msg=name)
        if same_arithmetic:
            assert now["asked"] == before["asked"], name
            assert now["said"] == before["said"], name
            assert now.get("ledger") == before.get("ledger"), name
