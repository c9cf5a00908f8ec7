"""What may be queried: `Space.of` makes a space from what a user writes."""

from gpmi.space.candidates import Candidates
from gpmi.space.conditions.conditions import Constant, OnArc, Part, Pinned
from gpmi.space.constraints.constraints import Forbidden
from gpmi.space.constraints.polytope import Polytope
from gpmi.space.constraints.region import Region
from gpmi.space.parameters import Choice, Int, Parameter, Real
from gpmi.space.product import Parameters
from gpmi.space.space import Space, SpaceExhausted

__all__ = [
    "Candidates",
    "Choice",
    "Constant",
    "Forbidden",
    "Int",
    "OnArc",
    "Parameter",
    "Parameters",
    "Part",
    "Pinned",
    "Polytope",
    "Real",
    "Region",
    "Space",
    "SpaceExhausted",
]
