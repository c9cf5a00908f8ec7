"""Programs as objective functions: the public names of `gpmi.cli.command`."""

from typing import TYPE_CHECKING

from gpmi._support.name_hints import missing_attribute
from gpmi.cli.command import *  # noqa: F403
from gpmi.cli.command import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
