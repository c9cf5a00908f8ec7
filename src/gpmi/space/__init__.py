"""What may be queried: `Space.of` makes a space from what a user writes."""

from gpmi.space.parameters import Choice, Int, Parameter, Real
from gpmi.space.space import Candidates, Parameters, Space, SpaceExhausted

__all__ = ["Candidates", "Choice", "Int", "Parameter", "Parameters", "Real", "Space", "SpaceExhausted"]
