"""The logger "gpmi": one line for each outcome at INFO, one for each event at WARNING.

Nothing is written unless the user installs a handler.
"""

import logging

logger = logging.getLogger("gpmi")
logger.addHandler(logging.NullHandler())
