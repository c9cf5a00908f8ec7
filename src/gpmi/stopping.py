"""Stopping rules: the public names of `gpmi.run.stopping`."""

from typing import TYPE_CHECKING

from gpmi._support.name_hints import missing_attribute
from gpmi.run.stopping import *  # noqa: F403
from gpmi.run.stopping import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
