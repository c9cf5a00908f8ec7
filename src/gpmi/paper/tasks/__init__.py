"""The paper's tasks, and functions on boxes with their known optima.

>>> import numpy as np
>>> from gpmi.tasks import TASKS
>>> task = TASKS["branin"].sample(np.random.default_rng(0))
>>> task.candidates.shape
(1024, 2)
"""

from collections.abc import Mapping

from gpmi.paper.tasks import shallow_water, tsunami
from gpmi.paper.tasks.fixed import FIXED
from gpmi.paper.tasks.functions import (
    BRANIN,
    GOLDSTEIN_PRICE,
    HIMMELBLAU,
    LOG_GOLDSTEIN_PRICE,
    MIXTURE,
    Function,
    branin,
    goldstein_price,
    himmelblau,
    log_goldstein_price,
    mixture,
)
from gpmi.paper.tasks.generated import GENERATED_2, GENERATED_4
from gpmi.paper.tasks.task import Source, Task

TASKS: Mapping[str, Source] = {source.name: source for source in (GENERATED_2, GENERATED_4, *FIXED)}

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
