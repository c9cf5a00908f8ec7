"""Descriptors of molecules. The tests of the numbers need the extra `chem`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import gpmi

SMILES = {"THF": "C1CCOC1", "DMF": "CN(C)C=O", "toluene": "Cc1ccccc1"}


@pytest.mark.parametrize(
    ("smiles", "message"), [([], "empty"), ({}, "empty"), ("CCO", "give a list"), (7, "give a list")]
)
def test_bad_arguments_are_refused(smiles: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        gpmi.chem.features(smiles)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    monkeypatch.setitem(sys.modules, "mordred", None)
    with pytest.raises(ImportError, match=r'pip install ".*\[chem\]"'):
        gpmi.chem.features(["CCO"])


def test_descriptors_are_finite_and_differ() -> None:
    pytest.importorskip("rdkit")
    pytest.importorskip("mordred")
    found = gpmi.chem.features(SMILES)
    assert list(found.index) == list(SMILES) and found.shape[1] > 500
    assert np.isfinite(found.to_numpy()).all() and (found.nunique() > 1).all()
    assert found.loc["toluene", "nAromAtom"] == 6 and found.loc["DMF", "nN"] == 1 and found.loc["THF", "nO"] == 1
    assert gpmi.Choice(list(SMILES), features=found).features.kept
    assert list(gpmi.chem.features(["CCO", "CCN"]).index) == ["CCO", "CCN"]


@pytest.mark.parametrize("wrong", ["C1CC", "", "not a molecule", None, 7])
def test_what_is_no_molecule_is_refused(wrong: Any) -> None:
    pytest.importorskip("rdkit")
    pytest.importorskip("mordred")
    with pytest.raises(ValueError, match="no molecule that RDKit can read"):
        gpmi.chem.features({"good": "CCO", "bad": wrong})
