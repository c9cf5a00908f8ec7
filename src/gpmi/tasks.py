"""The paper's tasks and test functions: the public names of `gpmi.paper.tasks`."""

from typing import TYPE_CHECKING

from gpmi._support.checks import missing_attribute
from gpmi.paper.tasks import (
    BRANIN,
    GOLDSTEIN_PRICE,
    HIMMELBLAU,
    LOG_GOLDSTEIN_PRICE,
    MIXTURE,
    TASKS,
    Function,
    Source,
    Task,
    branin,
    goldstein_price,
    himmelblau,
    log_goldstein_price,
    mixture,
    shallow_water,
    tsunami,
)

__all__ = [
    "BRANIN",
    "GOLDSTEIN_PRICE",
    "HIMMELBLAU",
    "LOG_GOLDSTEIN_PRICE",
    "MIXTURE",
    "TASKS",
    "Function",
    "Source",
    "Task",
    "branin",
    "goldstein_price",
    "himmelblau",
    "log_goldstein_price",
    "mixture",
    "shallow_water",
    "tsunami",
]

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
