"""Stopping rules: the public names of `gpmi.run.stopping`."""

from gpmi.run.stopping import *  # noqa: F403
from gpmi.run.stopping import __all__ as __all__
