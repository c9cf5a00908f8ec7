"""Options with descriptors: what a user writes, what the model sees, and what is refused."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

import gpmi
from gpmi import studyfile
from gpmi.analysis.descriptors import descriptor_shares
from gpmi.gp.kernels import Mapped, Matern
from gpmi.space.features import EXPLAINED, Features

SOLVENTS = ["THF", "DMF", "toluene", "water"]
TABLE = {
    "THF": {"bp": 66.0, "eps": 7.5},
    "DMF": {"bp": 153.0, "eps": 36.7},
    "toluene": {"bp": 110.0, "eps": 2.4},
    "water": {"bp": 100.0, "eps": 80.1},
}
FRAME = pd.DataFrame.from_dict(TABLE, orient="index")


def choice(**more: Any) -> gpmi.Choice:
    return gpmi.Choice(SOLVENTS, features=TABLE, **more)


@pytest.mark.parametrize(
    "given",
    [
        FRAME,
        FRAME.iloc[::-1],
        pd.concat([FRAME, pd.DataFrame({"bp": [1.0], "eps": [2.0]}, index=["another"])]),
        {**TABLE, "another": {"bp": 1, "eps": 2}},
        [TABLE[name] for name in SOLVENTS],
    ],
)
def test_all_forms_say_the_same(given: Any) -> None:
    made = gpmi.Choice(SOLVENTS, features=given)
    assert made == choice() and made.features.names == ("bp", "eps")
    np.testing.assert_array_equal(made.features.table, FRAME.to_numpy())


def test_rows_without_names_are_numbered() -> None:
    rows = [list(TABLE[name].values()) for name in SOLVENTS]
    for rows_given in (dict(zip(SOLVENTS, rows, strict=True)), rows, np.array(rows)):
        made = gpmi.Choice(SOLVENTS, features=rows_given)
        assert made.features.names == ("descriptor 1", "descriptor 2")
        np.testing.assert_array_equal(made.features.table, FRAME.to_numpy())
    assert gpmi.Choice([1, 2, 3], features={1: 0.1, 2: 0.5, 3: 0.9}).features.table.shape == (3, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"THF": [1.0], "DMF": [2.0], "toluene": [3.0]}, "no row for the option 'water'"),
        (FRAME.drop(index="DMF"), "no row for the option 'DMF'"),
        (pd.concat([FRAME, FRAME.loc[["DMF"]]]), "2 rows for the option 'DMF'"),
        ([[1.0], [2.0]], "2 rows for 4 options"),
        ({**TABLE, "DMF": {"bp": 153.0}}, "give the same descriptors for all options, here bp, eps"),
        ({"THF": [1.0, 2.0], "DMF": [2.0], "toluene": [1.0, 2.0], "water": [1.0, 2.0]}, "'DMF' has 1 numbers"),
        ({**TABLE, "DMF": {"bp": np.nan, "eps": 1.0}}, "bp of 'DMF' in features is nan; give a finite number"),
        ({**TABLE, "DMF": {"bp": np.inf, "eps": 1.0}}, "bp of 'DMF' in features is inf"),
        ({**TABLE, "DMF": {"bp": "hot", "eps": 1.0}}, "bp of 'DMF' in features is 'hot'"),
        ({**TABLE, "DMF": {"bp": True, "eps": 1.0}}, "bp of 'DMF' in features is True"),
        ([[1.0]] * 4, "the same numbers for all options"),
        ([[]] * 4, "0 numbers"),
        (pd.DataFrame(index=SOLVENTS), "features has 0 descriptors"),
        (pd.DataFrame(np.eye(4)[:, :2], index=SOLVENTS, columns=["a", "a"]), "'a' twice"),
        ("bp", "features is 'bp'; give a DataFrame"),
        (7, "features is 7"),
    ],
)
def test_bad_descriptors_are_refused_by_name(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match="features") as error:
        gpmi.Choice(SOLVENTS, features=given)
    assert message in str(error.value)


def test_an_order_and_descriptors_are_refused() -> None:
    with pytest.raises(ValueError, match="ordered=True and features"):
        choice(ordered=True)


def test_a_choice_with_descriptors_is_a_value() -> None:
    own = choice()
    assert "features=<2 descriptors of 4 options: bp, eps>" in repr(own) and "features" not in repr(gpmi.Choice([1, 2]))
    assert own != gpmi.Choice(SOLVENTS) and own != gpmi.Choice(SOLVENTS, features={**TABLE, "DMF": {"bp": 1, "eps": 2}})
    assert pickle.loads(pickle.dumps(own)) == own and copy.deepcopy(own) == own
    np.testing.assert_array_equal(own.levels, np.eye(4))  # the coordinates are those of any choice


@hypothesis.given(st.integers(2, 12), st.integers(1, 30), st.integers(0, 10**6))
def test_what_the_model_sees(k: int, count: int, seed: int) -> None:
    """Kept columns vary, explain the others by least squares, are no more than needed, and lie in [-1/2, 1/2]."""
    rng = np.random.default_rng(seed)
    table = np.round(rng.standard_normal((k, count)), 1) * 10.0 ** rng.integers(-6, 6, count)
    varying = np.ptp(table, axis=0) > 0.0
    if not varying.any():
        return
    own = Features.of(table, list(range(k)))
    assert 1 <= len(own.columns) <= min(k - 1, int(varying.sum())) and len(set(own.columns)) == len(own.columns)
    np.testing.assert_allclose(own.matrix.min(axis=0), -0.5)
    np.testing.assert_allclose(own.matrix.max(axis=0), 0.5)
    unit = table[:, varying] - table[:, varying].mean(axis=0)
    unit /= np.linalg.norm(unit, axis=0)

    def explained(columns: tuple[int, ...]) -> float:
        basis = np.column_stack([np.ones(k), *(table[:, j] / np.abs(table[:, j]).max() for j in columns)])
        return 1.0 - float(((unit - basis @ np.linalg.lstsq(basis, unit)[0]) ** 2).sum()) / unit.shape[1]

    assert len(own.columns) == k - 1 or explained(own.columns) >= EXPLAINED - 1e-9
    assert len(own.columns) == 1 or explained(own.columns[:-1]) < EXPLAINED + 1e-9
    first = max(explained((j,)) for j in np.flatnonzero(varying))
    assert explained(own.columns[:1]) == pytest.approx(first, abs=1e-9)


def test_the_model_says_which_descriptors_it_leaves_out() -> None:
    frame = FRAME.assign(kelvin=FRAME["bp"] + 273.15, constant=1.0)
    opt = gpmi.Optimizer({"solvent": gpmi.Choice(SOLVENTS, features=frame)}, seed=0)
    (event,) = [one for one in opt.events if one.kind == "descriptors"]
    assert "'solvent' has 4 descriptors, of which the model uses 2: " in event.message
    assert not [one for one in gpmi.Optimizer({"solvent": choice()}, seed=0).events if one.kind == "descriptors"]


def test_descriptors_are_linear_functions_of_the_coordinates() -> None:
    space = gpmi.Space.of({"x": (0, 1), "solvent": choice(), "base": ["a", "b"], "n": 3})
    found = space.features
    assert found is not None and found.names == ("bp", "eps") and found.owners == (1, 1)
    for name in SOLVENTS:
        row = space.encode({"x": 0.3, "solvent": name, "base": "a", "n": 3})
        scaled = [(TABLE[name][one] - FRAME[one].min()) / np.ptp(FRAME[one]) - 0.5 for one in ("bp", "eps")]
        np.testing.assert_allclose(row @ found.matrix, scaled, atol=1e-12)
    assert gpmi.Space.of({"x": (0, 1), "base": ["a", "b"]}).features is None


def test_a_table_has_the_descriptors_of_its_columns() -> None:
    rows = pd.DataFrame([{"solvent": s, "t": t, "lot": n} for s in SOLVENTS for t in (20, 40) for n in (7, 9)])
    space = gpmi.Space.of(rows, features={"solvent": FRAME, "lot": {7: [0.1], 9: [0.2]}})
    found = space.features
    assert found is not None and found.names == ("bp", "eps", "descriptor 1") and found.owners == (0, 0, 2)
    assert space.encode({"solvent": "DMF", "t": 40, "lot": 9}).tolist() == [0, 1, 0, 0, 40, 0, 1]
    opt = gpmi.Optimizer(space, seed=0, repeats=False)
    assert opt.n_init == 5 and gpmi.Optimizer(rows, seed=0).n_init == 5
    for _ in range(8):
        x = opt.ask()
        opt.tell(x, TABLE[x["solvent"]]["bp"] + 0.1 * x["t"])
    assert isinstance(opt.posterior.kernel, Mapped)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("spec", "features", "message"),
    [
        (pd.DataFrame({"s": ["a", "b"]}), {"t": FRAME}, "features has 't', which is no column; there are ['s']"),
        (pd.DataFrame({"s": ["a", "b"]}), {"s": FRAME}, "column 's' of the candidates: features has no row"),
        (pd.DataFrame({"s": ["a", "b"]}), FRAME, "give the descriptors of each column by its name"),
        ({"s": ["a", "b"]}, {"s": FRAME}, "gpmi.Choice([...], features=...)"),
    ],
)
def test_bad_descriptors_of_a_table_are_refused(spec: Any, features: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match="features") as error:
        gpmi.Space.of(spec, features=features)
    assert message in str(error.value)


def test_a_descriptor_tells_about_options_that_were_never_tried() -> None:
    """f is linear in a descriptor: after 8 values of 40 options the model ranks the others."""
    rng = np.random.default_rng(3)
    table = {f"o{i}": {"a": float(i), "b": float(rng.random())} for i in rng.permutation(40)}
    opt = gpmi.Optimizer({"option": gpmi.Choice(list(table), features=table)}, seed=1, n_init=5)
    for _ in range(8):
        x = opt.ask()
        opt.tell(x, table[x["option"]]["a"])
    assert opt.recommend()["option"] in {"o39", "o38", "o37"}
    (shares,) = opt.descriptor_shares
    assert shares.parameter == "option" and shares.shares[0][0] == "a" and shares.shares[0][1] > 0.5
    assert shares.label + sum(share for _, share in shares.shares) == pytest.approx(1.0)
    assert "option: a " in str(opt) and "the option itself" in str(opt)


def test_the_shares_are_those_of_the_mean_squared_distance() -> None:
    space = gpmi.Space.of({"solvent": choice()})
    found = space.features
    assert found is not None
    own = Mapped(Matern(nu=2.5, lengthscale=(3.0,) * 4 + (0.5, 2.0)), found.matrix)
    (shares,) = descriptor_shares(space, own)
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    terms = [
        np.mean([(m[a] - m[b]) ** 2 for a, b in pairs]) / s**2 for m, s in zip(found.matrix.T, (0.5, 2.0), strict=True)
    ]
    total = 2.0 / 9.0 + sum(terms)
    assert shares.label == pytest.approx(2.0 / 9.0 / total)
    assert dict(shares.shares) == pytest.approx({"bp": terms[0] / total, "eps": terms[1] / total})
    assert descriptor_shares(space, own.base) == ()


def test_a_study_keeps_the_descriptors(tmp_path: Path) -> None:
    address = tmp_path / "run.db"
    with gpmi.study(address, space={"solvent": choice(), "x": (0, 1)}, seed=0):
        pass
    with gpmi.study(address) as again:
        assert again.optimizer.space.parameters[0] == choice()
    with gpmi.study(address, space={"solvent": choice(), "x": (0, 1)}):
        pass
    for other in (gpmi.Choice(SOLVENTS), gpmi.Choice(SOLVENTS, features={**TABLE, "DMF": {"bp": 1, "eps": 2}})):
        with pytest.raises(ValueError, match="features of the space differ from those of the study"):
            gpmi.study(address, space={"solvent": other, "x": (0, 1)})


def test_a_study_keeps_the_descriptors_of_a_table(tmp_path: Path) -> None:
    rows = pd.DataFrame({"solvent": SOLVENTS, "t": [20, 20, 40, 40]})
    space = gpmi.Space.of(rows, features={"solvent": FRAME})
    with gpmi.study(tmp_path / "run.db", space=space, seed=0):
        pass
    with gpmi.study(tmp_path / "run.db", space=space) as again:
        assert again.optimizer.space.choices[0] == choice()
    with pytest.raises(ValueError, match="features of the space differ"):
        gpmi.study(tmp_path / "run.db", space=rows)


FILE = """
budget = 5
database = "run.db"
[parameters]
solvent = { choice = ["THF", "DMF", "toluene", "water"], features = FEATURES }
[command]
run = ["true"]
"""


def study_file(folder: Path, features: str) -> Any:
    path = folder / "study.toml"
    path.write_text(FILE.replace("FEATURES", features), encoding="utf-8")
    return studyfile.read_study(path)


def test_study_files_have_descriptors_in_a_table_or_a_csv_file(tmp_path: Path) -> None:
    inline = "{ THF = { bp = 66, eps = 7.5 }, DMF = { bp = 153, eps = 36.7 }, toluene = { bp = 110, eps = 2.4 }, "
    found = study_file(tmp_path, inline + "water = { bp = 100, eps = 80.1 } }")
    assert found.parameters["solvent"] == choice()
    FRAME.to_csv(tmp_path / "solvents.csv")
    assert study_file(tmp_path, '"solvents.csv"').parameters["solvent"] == choice()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "which is no file"),
        ("", "has no descriptors"),
        ("solvent\nTHF\n", "has no descriptors"),
        ("solvent,bp\nTHF,66\nDMF,153\ntoluene,110\n", "no row for the option 'water'"),
        ("solvent,bp\nTHF,66\nDMF,hot\ntoluene,110\nwater,100\n", "bp = 'hot' for 'DMF'; give a number"),
        ("solvent,bp\nTHF,66\nDMF,nan\ntoluene,110\nwater,100\n", "bp of 'DMF' in features is nan"),
        ("solvent,bp\nTHF,66\nTHF,67\ntoluene,110\nwater,100\n", "'THF' twice"),
        ("solvent,bp\nTHF,66,1\nDMF,153\ntoluene,110\nwater,100\n", "3 cells for 'THF' and 2 columns"),
    ],
)
def test_a_bad_csv_file_is_refused_with_the_line(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "solvents.csv").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"study\.toml:5") as error:
        study_file(tmp_path, '"solvents.csv"')
    assert message in str(error.value)


def test_every_second_query_is_chosen_by_a_model_of_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpmi.optimizer import single

    described: list[tuple[int, bool]] = []
    choose = single.from_policy

    def watched(model: Any, policy: Any, log: Any, *rest: Any, **options: Any) -> Any:
        described.append((len(log), isinstance(model.posterior.kernel, Mapped)))
        return choose(model, policy, log, *rest, **options)

    monkeypatch.setattr(single, "from_policy", watched)
    options = list("ABCDEFGH")
    table = [[float(i), float(i * i % 7)] for i in range(len(options))]
    opt = gpmi.Optimizer({"s": gpmi.Choice(options, features=table), "t": (0.0, 1.0)}, seed=0)
    for _ in range(14):
        x = opt.ask()
        opt.tell(x, table[options.index(x["s"])][0] - (x["t"] - 0.4) ** 2)
    assert len(described) > 6 and all(is_described == (count % 2 == 0) for count, is_described in described)


def test_a_given_kernel_says_that_it_does_not_use_descriptors() -> None:
    space = {"s": gpmi.Choice(list("ABC"), features=[[1.0], [2.0], [5.0]]), "t": (0.0, 1.0)}
    opt = gpmi.Optimizer(space, kernel=gpmi.kernels.Matern(nu=2.5, lengthscale=None), seed=0)
    assert any(one.kind == "descriptors" and "a kernel is given" in one.message for one in opt.events)
