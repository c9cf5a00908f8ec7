"""Several evaluations at the same time: who makes them, and the loop around them."""

from gpmi.run.parallel.crew import Crew, Done, Staff, staff_of
from gpmi.run.parallel.flight import LATER, Flight, fly, next_of, pauses

__all__ = ["LATER", "Crew", "Done", "Flight", "Staff", "fly", "next_of", "pauses", "staff_of"]
