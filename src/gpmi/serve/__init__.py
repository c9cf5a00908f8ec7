"""`gpmi serve`: a study as a live page and a laboratory notebook, with a JSON API. Needs the extra `serve`."""

from gpmi.serve.app import application
from gpmi.serve.catalogue import Shelf
from gpmi.serve.security import Guard
from gpmi.serve.server import run

__all__ = ["Guard", "Shelf", "application", "run"]
