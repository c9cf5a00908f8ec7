"""The logger "gpmi": one line for each outcome at INFO, one for each event at WARNING.

Nothing is written unless the user installs a handler, except by `warn_user`.
"""

import logging
import sys

logger = logging.getLogger("gpmi")
logger.addHandler(logging.NullHandler())


def warn_user(message: str, *args: object) -> None:
    """Log a warning about a call that waits. If nobody set up logging, print it to stderr.

    The user must not wait without knowing why.
    """
    logger.warning(message, *args, stacklevel=2)
    handlers = (*logger.handlers, *logging.root.handlers)
    heard = [handler for handler in handlers if not isinstance(handler, logging.NullHandler)]
    if not heard and sys.stderr is not None:
        print(f"gpmi: {message % args}", file=sys.stderr, flush=True)
