"""Study files: the public names of `gpmi.cli.studyfile`."""

from gpmi.cli.studyfile import *  # noqa: F403
from gpmi.cli.studyfile import __all__ as __all__
