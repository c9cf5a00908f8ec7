"""Tables of past experiments for the benchmarks (benchmarks/problems/laboratory_tables.py), on sources made here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from problems import laboratory_tables

HEADER = (
    "base,base_smiles,ligand,ligand_smiles,aryl_halide,aryl_halide_smiles,additive,additive_smiles,product_smiles,yield"
)
PRODUCT = laboratory_tables.PRODUCTS["ethyl"]
REACTIONS = [
    f"B1,N,L1,P,bromide,Br,A1,C,{PRODUCT},10",
    f"B1,N,L1,P,iodide,I,A2,CC,{PRODUCT},40",
    f"B1,N,L1,P,bromide,Br,A1,C,{PRODUCT},20",  # the first one again
    f"B1,N,L1,P,bromide,Br,,,{PRODUCT},90",  # without an additive
    "B1,N,L1,P,chloride,Cl,A1,C,another,30",
]


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    for cached in (laboratory_tables.load, laboratory_tables._all_reactions):
        cached.cache_clear()
    yield
    for cached in (laboratory_tables.load, laboratory_tables._all_reactions):
        cached.cache_clear()


@pytest.fixture
def reactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "data.csv"
    path.write_text("\n".join([HEADER, *REACTIONS]) + "\n", encoding="utf-8")
    monkeypatch.setattr(laboratory_tables, "REACTIONS", path)
    return path


@pytest.fixture
def olymp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a package olympus with one table, that cannot be imported."""
    folder = tmp_path / "olympus" / "datasets" / "dataset_snar"
    folder.mkdir(parents=True)
    (tmp_path / "olympus" / "__init__.py").write_text("raise ImportError('its files are read, and not its code')")
    config = {"parameters": [{"name": "time"}, {"name": "ratio"}], "default_goal": "minimize"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "data.csv").write_text("0.5,1.0,3.0\n0.5,2.0,1.0\n0.5,1.0,5.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_equal_reactions_are_merged_and_those_without_a_label_left_out(reactions: Path) -> None:
    table = laboratory_tables.load("ethyl")
    assert table.parameters["aryl_halide"].tolist() == ["bromide", "iodide"]
    assert (table.y.tolist(), table.goal) == ([15.0, 40.0], "max")


def test_the_options_of_a_reaction_have_their_smiles(reactions: Path) -> None:
    table = laboratory_tables.load("ethyl")
    assert set(table.smiles) == set(table.parameters)
    assert table.smiles["additive"] == {"A1": "C", "A2": "CC"}


def test_an_aryl_halide_is_a_table_of_the_other_labels(reactions: Path) -> None:
    assert laboratory_tables.halides() == ["bromide", "iodide", "chloride"]
    table = laboratory_tables.load("bromide")
    assert list(table.parameters) == ["base", "ligand", "additive"] and table.y.tolist() == [15.0]


def test_a_name_without_a_table_is_refused(reactions: Path) -> None:
    with pytest.raises(ValueError, match="there is no table 'sand'; give one of"):
        laboratory_tables.load("sand")


def test_a_table_to_minimise_keeps_its_units_and_its_values_are_negated(olymp: Path) -> None:
    table = laboratory_tables.load("snar")
    assert list(table.parameters) == ["time", "ratio"] and table.goal == "min"
    assert table.y.tolist() == [4.0, 1.0]
    assert table.values.tolist() == table.table.values.tolist() == [-4.0, -1.0]


def test_missing_data_are_said_and_skipped(
    olymp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(laboratory_tables, "REACTIONS", tmp_path / "shared" / "data" / "aryl_halides" / "data.csv")
    assert laboratory_tables.available(["ethyl", "snar"]) == ["snar"]
    assert "ethyl is left out: there is no data.csv in shared/data/aryl_halides" in capsys.readouterr().out


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laboratory_tables, "find_spec", lambda name: None)
    with pytest.raises(laboratory_tables.NotInstalled, match="the package olymp is not installed"):
        laboratory_tables.load("snar")


def test_no_table_is_both_for_the_development_and_held_out() -> None:
    assert not set(laboratory_tables.DEVELOPMENT) & set(laboratory_tables.HELD_OUT)
