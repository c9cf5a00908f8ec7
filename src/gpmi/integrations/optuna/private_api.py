"""The parts of Optuna that a sampler needs and that have no public name. Optuna's own samplers use them too."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

storage_of: Callable[[Study], BaseStorage] = attrgetter("_storage")
study_id_of: Callable[[Study], int] = attrgetter("_study_id")
trial_id_of: Callable[[FrozenTrial], int] = attrgetter("_trial_id")
# Of a PartialFixedSampler: the values it fixes, and the sampler that chooses the others.
fixed_params_of: Callable[[Any], dict[str, Any]] = attrgetter("_fixed_params")
base_sampler_of: Callable[[Any], Any] = attrgetter("_base_sampler")


def metric_names_of(study: Study) -> list[str] | None:
    """Return the names that the study gives its objectives, also from a bracket of the pruner; None if there are none.

    It is the property of `Study`, which the study of a bracket hides.
    """
    names: list[str] | None = Study.metric_names.fget(study)  # type: ignore[attr-defined]
    return names


def trials_of(study: Study, *states: TrialState) -> list[FrozenTrial]:
    """Return the trials in these states, or all of them, from every bracket of the pruner."""
    return storage_of(study).get_all_trials(study_id_of(study), deepcopy=False, states=states or None)
