"""What a sampler needs of Optuna and what has no public name there. Optuna's own samplers use the same."""

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
# Of a PartialFixedSampler: the values that it fixes, and the sampler that it asks for the others.
fixed_params_of: Callable[[Any], dict[str, Any]] = attrgetter("_fixed_params")
base_sampler_of: Callable[[Any], Any] = attrgetter("_base_sampler")


def trials_of(study: Study, *states: TrialState) -> list[FrozenTrial]:
    """The trials in these states, or all; those of all brackets, where a pruner has several."""
    return storage_of(study).get_all_trials(study_id_of(study), deepcopy=False, states=states or None)
