"""Optuna: a sampler and a pruner for its studies, and trials to and from them. Needs Optuna 5."""

try:
    import optuna  # noqa: F401
except ImportError as error:
    raise ImportError('this needs Optuna 5: pip install "optuna>=5"') from error

from gpmi.integrations.optuna.pruner import GPMIPruner
from gpmi.integrations.optuna.sampler import GPMISampler
from gpmi.integrations.optuna.trials import Imported, from_optuna, from_storage, goals_of, to_optuna, to_storage

__all__ = [
    "GPMIPruner",
    "GPMISampler",
    "Imported",
    "from_optuna",
    "from_storage",
    "goals_of",
    "to_optuna",
    "to_storage",
]
