"""The HTML report of a run: the public names of `gpmi.views.html`."""

from typing import TYPE_CHECKING

from gpmi._support.name_hints import missing_attribute
from gpmi.views.html import *  # noqa: F403
from gpmi.views.html import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
