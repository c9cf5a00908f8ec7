"""Study files: the public names of `gpmi.cli.studyfile`."""

from typing import TYPE_CHECKING

from gpmi._support.name_hints import missing_attribute
from gpmi.cli.studyfile import *  # noqa: F403
from gpmi.cli.studyfile import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
