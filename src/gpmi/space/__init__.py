"""What may be queried: `Space.of` makes a space from what a user writes."""

from gpmi.space.space import Candidates, Choice, Int, Parameter, Parameters, Real, Space, SpaceExhausted

__all__ = ["Candidates", "Choice", "Int", "Parameter", "Parameters", "Real", "Space", "SpaceExhausted"]
