"""For each code of a refusal, a call that is refused with it, and what a form says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gpmi
from gpmi._support import checks

HOT = {"hot": gpmi.Real(20.0, 90.0), "n": gpmi.Int(1, 9, step=4), "solvent": ["THF", "DMF"]}
PARTS = {"a": gpmi.Real(0.0, 1.0), "b": gpmi.Real(0.0, 1.0)}
BRANCH = {"metal": ["Pd", "Pt", "Ni"], "ligand": gpmi.Choice(["L1", "L2"], when={"metal": ["Pd", "Pt"]})}
POINT = {"hot": 50.0, "n": 5, "solvent": "THF"}


class Sample(NamedTuple):
    """A call that is refused, and the words of the forms."""

    call: Callable[[], Any]
    words: str


def told(space: dict[str, Any], constraints: Any = None, **x: Any) -> Callable[[], Any]:
    return lambda: gpmi.Optimizer(space, constraints=constraints).tell(x, 1.0)


def fixed(space: dict[str, Any], constraints: Any = None, **x: Any) -> Callable[[], Any]:
    return lambda: gpmi.Optimizer(space, constraints=constraints).ask(fixed=x)


def opened(space: Any, **options: Any) -> Callable[[], Any]:
    return lambda: gpmi.Optimizer(space, **options)


SAMPLES: dict[str, Sample] = {
    "not-a-number": Sample(told(HOT, **POINT | {"hot": "warm"}), "hot is warm; give a number"),
    "not-positive": Sample(lambda: gpmi.Real(0.0, 1.0, step=-0.5), "the step is -0.5; give a number above 0"),
    "negative-variance": Sample(
        lambda: gpmi.Optimizer(HOT).tell(POINT, 1.0, noise_var=-2), "noise_var is -2; give a number that is not below 0"
    ),
    "not-whole": Sample(told(HOT, **POINT | {"n": 2.5}), "n is 2.5; give a whole number"),
    "too-small": Sample(lambda: gpmi.Optimizer(HOT).ask(0), "n is 0; give a whole number of at least 1"),
    "too-large": Sample(lambda: checks.whole("n", 7, 1, 5), "n is 7; give a whole number of at most 5"),
    "not-a-choice": Sample(opened(HOT, aim="fund"), "aim is fund; give one of find, earn"),
    "ends-in-wrong-order": Sample(
        lambda: gpmi.Real(90, 20.5), "“From” is 90 and “To” is 20.5; “From” must be smaller than “To”"
    ),
    "steps-in-wrong-order": Sample(
        lambda: gpmi.Fidelity(9, 2), "“From” is 9 and “To” is 2; “From” must be at least 1, and smaller than “To”"
    ),
    "step-too-large": Sample(
        lambda: gpmi.Real(20.0, 90.0, step=500),
        "the step is 500, larger than the range, which is 70; give a smaller step"
    ),
    "log-of-nonpositive": Sample(
        lambda: gpmi.Real(-1.0, 9.0, log=True), "“From” is -1; a logarithmic scale needs a “From” above 0"
    ),
    "extreme-range": Sample(
        opened([(0.0, 1e300)]), "the range from 0 to 1e+300 is too wide or too narrow; give other units"
    ),
    "no-descriptors": Sample(
        lambda: gpmi.Choice(["THF", "DMF"], features={"THF": {"bp": 66}}),
        "the table of descriptors has no line for DMF; add one",
    ),
    "empty-bounds": Sample(
        opened(HOT, bounds=(100, 0)), "“Never below” is 100 and “Never above” is 0; “Never below” must be smaller"
    ),
    "goal-outside-bounds": Sample(
        opened(HOT, goals={"yield": gpmi.Max(at_least=200.0)}, bounds={"yield": (None, 100)}),
        "its number is outside what is possible, at most 100; correct the number, “Never below” or “Never above”",
    ),
    "unreadable-constraint": Sample(
        opened(PARTS, constraints="a <= b <"),
        "The rule “a <= b <” cannot be read; write it like “a + 2*b ≤ 1” or “a + b = 1”",
    ),
    "joined-constraint": Sample(
        opened(PARTS, constraints="a <= 0.5 and b <= 0.5"),
        "“a ≤ 0.5 and b ≤ 0.5” joins rules by and; write each in a line of its own, and all of them hold",
    ),
    "strict-constraint": Sample(opened(PARTS, constraints="0 <= a < b"), "“0 ≤ a < b” has < or >; write ≤ or ≥"),
    "nonlinear-constraint": Sample(
        opened(PARTS, constraints="a*b <= 1"), "“a*b ≤ 1” is not linear; give sums of parameters, each times a number"
    ),
    "unknown-in-constraint": Sample(
        opened(PARTS, constraints="a + c <= 1"), "“a + c ≤ 1” has the name c; the parameters are a, b"
    ),
    "not-discrete": Sample(
        opened(PARTS, constraints=gpmi.Forbidden(a=0.5)),
        "The parameter a is any number of a range, so no single value of it can be forbidden or be a condition; make "
        "it one of a list, or write a rule instead",
    ),
    "holds-nowhere": Sample(
        opened(PARTS, constraints="a + b == 5"),
        "“a + b = 5” cannot hold while the parameters are between “From” and “To”; change one of them",
    ),
    "never-together": Sample(
        opened(PARTS, constraints=["a + b <= 0.5", "a - b == 0.8"]),
        "“a + b ≤ 0.5” and “a - b = 0.8” cannot hold together; change one of them",
    ),
    "unknown-parameter": Sample(
        fixed(PARTS, water=0.5), "There is no parameter water; the parameters are a, b"
    ),
    "wrong-keys": Sample(told(HOT, hot=50.0), "n, solvent is empty; give a value"),
    "outside": Sample(fixed(HOT, hot=120.0), "hot is 120, outside 20 to 90; give a value inside"),
    "between-steps": Sample(told(HOT, **POINT | {"n": 3}), "n is 3; give 1, or 1 plus a multiple of 4"),
    "unknown-option": Sample(
        told(HOT, **POINT | {"solvent": "water"}),
        "The parameter solvent has no option water; its options are THF, DMF",
    ),
    "breaks-constraint": Sample(
        told(PARTS, "a + b <= 1", a=0.9, b=0.6), "“a + b ≤ 1” must hold; with these values it is off by 0.5"
    ),
    "breaks-count": Sample(
        told(PARTS, "count(a, b > 0) <= 1", a=0.5, b=0.5),
        "“count(a, b > 0) ≤ 1” must hold; with these values it counts 2",
    ),
    "forbidden": Sample(
        told(HOT, gpmi.Forbidden(n=5, solvent="THF"), **POINT),
        "n = 5, solvent = THF is forbidden; give other values",
    ),
    "inactive": Sample(
        told(BRANCH, metal="Ni", ligand="L2"), "ligand exists only where metal = Pd, Pt; leave it empty"
    ),
    "fixed-inactive": Sample(fixed(BRANCH, ligand="L2"), "ligand exists only where metal = Pd, Pt; give that, too"),
    "fixed-breaks-constraint": Sample(
        fixed(PARTS, "a + b <= 1", a=0.9, b=0.6), "“a + b ≤ 1” must hold; give values that keep it"
    ),
    "fixed-leaves-nothing": Sample(
        fixed(PARTS, "a + b >= 1.5", a=0.1),
        "These values leave no experiment that keeps “a + b ≥ 1.5”; change one of them"
    ),
}  # fmt: skip
# Other calls that are refused with one of these codes, by another door or behind a prefix.
CONDITION = {"a": gpmi.Real(0.0, 1.0, when={"hot": 3})}
PREFIXED: list[tuple[str, str, Callable[[], Any]]] = [
    ("outside", "fixed: hot is 120.0", fixed(HOT, hot=120.0)),
    ("forbidden", "fixed has the values of", fixed(HOT, gpmi.Forbidden(solvent="THF"), solvent="THF")),
    ("ends-in-wrong-order", "parameter 'hot': Real has lo", opened({"hot": (9.0, 2.0)})),
    ("ends-in-wrong-order", r"bounds\[1\]: Real has lo", opened([(0.0, 1.0), (9.0, 2.0)])),
    ("step-too-large", "step of Int is 40", lambda: gpmi.Int(1, 9, step=40)),
    ("unknown-option", r"Forbidden\(solvent='x'\): solvent", opened(HOT, constraints=gpmi.Forbidden(solvent="x"))),
    ("unknown-parameter", "when of parameter 'a'", opened({"solvent": ["THF", "DMF"], **CONDITION})),
    ("unknown-option", "when of parameter 'a': hot", opened({"hot": [1, 2], **CONDITION})),
    ("unknown-in-constraint", "constraint 'count", opened(PARTS, constraints="count(a, c > 0) <= 1")),
    ("nonlinear-constraint", "divides by a parameter", opened(PARTS, constraints="a/b <= 1")),
    ("strict-constraint", "constraint 'count", opened(PARTS, constraints="count(a, b > 0) < 1")),
    ("wrong-keys", r"unknown \['c'\]", told(PARTS, a=0.1, b=0.1, c=0.1)),
    ("outside", "x0 is", opened(PARTS, x0={"a": 2.0, "b": 0.0})),
    ("not-a-number", "f returned", lambda: gpmi.maximize(lambda x: "warm", PARTS, budget=2)),
]
