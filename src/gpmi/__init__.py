"""gpmi: optimisation of expensive, noisy functions with Gaussian processes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpmi import kernels, stopping
from gpmi._support.name_hints import missing_attribute
from gpmi._support.types import Event
from gpmi.gp.posterior import Posterior
from gpmi.optimizer import Optimizer
from gpmi.policies import (
    EHVI,
    EI,
    GPMI,
    GPUCB,
    GPUCBPE,
    Explore,
    Find,
    Guarantee,
    LogEI,
    Policy,
    Reinvest,
    Scalarised,
    State,
    Thompson,
    Utility,
    VarianceBonus,
    Weights,
)
from gpmi.run.evaluation import Measured
from gpmi.run.loop import maximize, minimize, optimize
from gpmi.run.result import Result
from gpmi.space import Angle, Choice, Fidelity, Forbidden, Int, Real, Space, SpaceExhausted
from gpmi.trials import Trial
from gpmi.trials.goal_kinds import AtLeast, AtMost, Match, Max, Min
from gpmi.trials.plate import Plate, plate

__version__ = "0.2.0"

__all__ = [
    "EHVI",
    "EI",
    "GPMI",
    "GPUCB",
    "GPUCBPE",
    "Angle",
    "AtLeast",
    "AtMost",
    "BacktestResult",
    "Choice",
    "Event",
    "Explore",
    "Fidelity",
    "Find",
    "Forbidden",
    "Guarantee",
    "Int",
    "LogEI",
    "Match",
    "Max",
    "Measured",
    "Min",
    "Optimizer",
    "Plate",
    "Policy",
    "Posterior",
    "Real",
    "Reinvest",
    "Result",
    "Scalarised",
    "Space",
    "SpaceExhausted",
    "State",
    "Study",
    "StudyError",
    "Thompson",
    "Trial",
    "Utility",
    "VarianceBonus",
    "Weights",
    "backtest",
    "chem",
    "exchange",
    "importances",
    "kernels",
    "maximize",
    "minimize",
    "optimize",
    "plate",
    "plots",
    "stopping",
    "study",
    "theory",
]

if TYPE_CHECKING:
    from gpmi import exchange, plots, theory
    from gpmi.analysis.importance import importances
    from gpmi.run.backtest import backtest
    from gpmi.run.backtest_result import BacktestResult
    from gpmi.run.study import Study, study
    from gpmi.storage.errors import StudyError
else:
    # Imported on first use: most runs do not need these, and studies need SQLAlchemy. A type checker sees the imports
    # above instead, so that it still refuses names that do not exist.
    LAZY = {
        "Study": "gpmi.run.study",
        "study": "gpmi.run.study",
        "StudyError": "gpmi.storage.errors",
        "backtest": "gpmi.run.backtest",
        "BacktestResult": "gpmi.run.backtest_result",
        "importances": "gpmi.analysis.importance",
    }

    def __getattr__(name: str) -> Any:
        if name in LAZY:
            return getattr(import_module(LAZY[name]), name)
        if name in __all__:  # a module
            return import_module(f"gpmi.{name}")
        return missing_attribute("gpmi", __all__)(name)

    def __dir__() -> list[str]:
        return [*__all__, "__version__"]
