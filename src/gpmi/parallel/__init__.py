"""Several evaluations at the same time: who makes them, and the loop around them."""

from gpmi.parallel.crew import Crew, Done, Staff, staff_of
from gpmi.parallel.flight import Flight, fly, next_of

__all__ = ["Crew", "Done", "Flight", "Staff", "fly", "next_of", "staff_of"]
