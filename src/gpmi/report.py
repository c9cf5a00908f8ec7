"""The HTML report of a run: the public names of `gpmi.views.html`."""

from gpmi.views.html import *  # noqa: F403
from gpmi.views.html import __all__ as __all__
