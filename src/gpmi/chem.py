"""Descriptors of molecules: the public names of `gpmi.integrations.chem`."""

from typing import TYPE_CHECKING

from gpmi._support.name_hints import missing_attribute
from gpmi.integrations.chem import *  # noqa: F403
from gpmi.integrations.chem import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
