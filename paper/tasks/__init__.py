"""The paper's tasks, and functions on boxes with their known optima.

>>> import numpy as np
>>> from paper.tasks import TASKS
>>> task = TASKS["branin"].sample(np.random.default_rng(0))
>>> task.candidates.shape
(1024, 2)
"""

from collections.abc import Mapping

from gpmi.cli.demo_function import HIMMELBLAU, Function, himmelblau
from paper.tasks import shallow_water, tsunami
from paper.tasks.fixed import FIXED
from paper.tasks.functions import (
    BRANIN,
    GOLDSTEIN_PRICE,
    LOG_GOLDSTEIN_PRICE,
    MIXTURE,
    branin,
    goldstein_price,
    log_goldstein_price,
    mixture,
)
from paper.tasks.generated import GENERATED_2, GENERATED_4
from paper.tasks.task import Source, Task

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
