"""Information, regret and its bounds: the public names of `gpmi.paper.theory`."""

from typing import TYPE_CHECKING

from gpmi._support.checks import missing_attribute
from gpmi.paper.theory import *  # noqa: F403
from gpmi.paper.theory import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
