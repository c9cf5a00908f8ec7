"""Information, regret and its bounds: the public names of `gpmi.paper.theory`."""

from gpmi.paper.theory import *  # noqa: F403
from gpmi.paper.theory import __all__ as __all__
