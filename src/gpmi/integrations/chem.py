"""Descriptors of molecules as features of options. Needs the extra `chem`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from gpmi._support import checks
from gpmi._support.text import install_command

__all__ = ["features"]


def features(smiles: Iterable[str] | Mapping[Any, str]) -> Any:
    """Return the two-dimensional Mordred descriptors of molecules, as a DataFrame for `gpmi.Choice(features=...)`.

    `smiles` is a list of SMILES, which are then the options, or a dict of SMILES by option: {"THF": "C1CCOC1", ...}.
    The DataFrame has a row for each option, and a column for each descriptor that is a finite number for all molecules
    and not the same for all. About 10 ms a molecule.
    """
    named = dict(smiles) if isinstance(smiles, Mapping) else _by_itself(smiles)
    if not named:
        raise ValueError("smiles is empty; give at least one molecule")
    try:
        import pandas
        from mordred import Calculator, descriptors
        from rdkit import Chem, RDLogger
    except ImportError as error:
        raise ImportError(
            f"gpmi.chem needs RDKit, mordredcommunity and pandas ({error}): {install_command('chem')}"
        ) from error
    RDLogger.DisableLog("rdApp.*")  # our message is enough
    molecules = {}
    for name, text in named.items():
        molecule = Chem.MolFromSmiles(text) if isinstance(text, str) and text.strip() else None
        if molecule is None:
            raise ValueError(f"smiles has {checks.shown(text)}, which is no molecule that RDKit can read; correct it")
        molecules[name] = molecule
    calculator = Calculator(descriptors, ignore_3D=True)
    rows = [[_number(value) for value in calculator(molecule)] for molecule in molecules.values()]
    names = [str(descriptor) for descriptor in calculator.descriptors]
    kept = [j for j, column in enumerate(zip(*rows, strict=True)) if _is_useful(column)]
    return pandas.DataFrame(
        [[row[j] for j in kept] for row in rows], index=list(molecules), columns=[names[j] for j in kept]
    )


def _by_itself(smiles: Any) -> dict[str, str]:
    """Return each SMILES by itself, once."""
    if isinstance(smiles, str) or not isinstance(smiles, Iterable):
        raise TypeError(f"smiles is {checks.shown(smiles)}; give a list of SMILES, or a dict of SMILES by option")
    return {text: text for text in smiles}


def _number(value: Any) -> float:
    """Return a descriptor as a number; nan where it is not defined for the molecule."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _is_useful(column: tuple[float, ...]) -> bool:
    """Whether a descriptor is finite, of a size that can be squared, and not the same for all; one molecule has all."""
    if not all(math.isfinite(value) and abs(value) < 1e100 for value in column):
        return False
    return len(column) == 1 or len(set(column)) > 1
