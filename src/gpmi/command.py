"""Programs as objective functions: the public names of `gpmi.cli.command`."""

from gpmi.cli.command import *  # noqa: F403
from gpmi.cli.command import __all__ as __all__
