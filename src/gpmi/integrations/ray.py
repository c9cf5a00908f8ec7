"""Ray Tune: a search algorithm. Needs Ray with Tune.

tuner = tune.Tuner(f, param_space=..., tune_config=tune.TuneConfig(search_alg=GPMISearch(), metric="loss", mode="min"))
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    from ray.tune.search import Searcher
    from ray.tune.search.sample import Categorical, Domain, Float, Integer, LogUniform, Quantized
except ImportError as error:
    raise ImportError('this needs Ray Tune: pip install "ray[tune]"') from error

from gpmi._support import checks
from gpmi.integrations.one_objective import check_options
from gpmi.optimizer import Optimizer
from gpmi.space import Choice, Int, Real, SpaceExhausted
from gpmi.trials import row_of, trial_of

APART = "/"  # between the keys of nested dicts


class GPMISearch(Searcher):  # type: ignore[misc]
    """Suggest the configurations of Ray Tune's trials.

    The space is the Tuner's `param_space`, with Tune's uniform, loguniform, randint, quniform, choice, ...; or `space`,
    a dict as for gpmi, conditions included. Trials that fail, or do not report the metric, are recorded as failures.
    `options` are further arguments of `gpmi.Optimizer`. `save` writes the log of trials as JSON.
    """

    def __init__(
        self,
        space: Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        check_options(options, "GPMISearch", "give metric= and mode=, or run Ray tasks from gpmi.Optimizer(goals=...)")
        super().__init__(metric=metric, mode=mode)
        self._space, self._seed, self._options = space, seed, options
        self._wanted, self._direction = metric, mode
        self._own: dict[str, TuneParameter] = {}  # the parameters defined by Tune
        self._numbers: dict[str, int] = {}  # gpmi's number of each running trial
        self.optimizer: Optimizer | None = None
        self._make()

    def _make(self) -> None:
        if self._space is not None and self._direction is not None and self.optimizer is None:
            goal: Any = self._direction
            self.optimizer = Optimizer(dict(self._space), goal=goal, seed=self._seed, **self._options)

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """Take the metric, mode and space from the Tuner; return False if they are set already."""
        if self.optimizer is not None and config:
            return False
        self._own = {APART.join(path): _own(path, domain) for path, domain in _flat(config) if _varies(domain)}
        self._space = {name: converted.parameter for name, converted in self._own.items()} or self._space
        if metric is not None:
            self._wanted = metric
        self._direction = mode or self._direction
        self._make()
        return True

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return the configuration of a trial; FINISHED when none is left."""
        optimizer = self._begun()
        try:
            point = optimizer.ask()
        except SpaceExhausted:
            finished: str = Searcher.FINISHED
            return finished
        self._numbers[trial_id] = optimizer.pending[-1].number
        return self._config(point)

    def _begun(self) -> Optimizer:
        if self.optimizer is None:
            raise ValueError("GPMISearch has no space or no mode; give param_space, and metric and mode")
        return self.optimizer

    def _config(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Convert a point to Tune's nested dicts and values."""
        config: dict[str, Any] = {}
        for name, value in point.items():
            parameter = self._own.get(name)
            *above, last = name.split(APART) if parameter is None else parameter.path
            inner = config
            for key in above:
                inner = inner.setdefault(key, {})
            inner[last] = value if parameter is None else parameter.value(value)
        return config

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Record the value of a trial, or its failure."""
        number = self._numbers.pop(trial_id, None)
        if number is None or self.optimizer is None:
            return
        value = None if result is None or self._wanted is None else result.get(self._wanted)
        try:
            y = checks.checked_value(value)
        except (TypeError, ValueError):
            self.optimizer.fail(number, why="error" if error else f"{self._wanted} is {checks.shown(value)}")
        else:
            _ = self.optimizer.fail(number, why="error") if error else self.optimizer.tell(number, y)

    def save(self, checkpoint_path: str) -> None:
        """Write the log of trials."""
        optimizer = self._begun()
        rows = [row_of(trial, optimizer.space) for trial in optimizer.trials]
        said = {"seed": optimizer.seed, "numbers": self._numbers, "trials": rows}
        Path(checkpoint_path).write_text(json.dumps(said), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Continue from a saved log. Give space and mode to the constructor first."""
        if self._space is None or self._direction is None:
            raise ValueError("give space, metric and mode to GPMISearch before it is restored")
        said = json.loads(Path(checkpoint_path).read_text(encoding="utf-8"))
        self.optimizer, self._seed = None, said["seed"]
        self._make()
        assert self.optimizer is not None
        space = self.optimizer.space
        self.optimizer.replay([trial_of(row, space, row["number"]) for row in said["trials"]])
        self._numbers = said["numbers"]


def _varies(domain: Any) -> bool:
    if isinstance(domain, Mapping) and "grid_search" in domain:
        raise ValueError(f"param_space has a grid_search, {domain}; give tune.choice instead")
    return isinstance(domain, Domain)


def _flat(config: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Flatten nested dicts: yield each value with the keys that lead to it."""
    for name, domain in config.items():
        if isinstance(domain, Mapping) and "grid_search" not in domain:
            yield from _flat(domain, (*above, str(name)))
        else:
            yield (*above, str(name)), domain


@dataclass(frozen=True)
class TuneParameter:
    """A parameter defined by Tune: its key, gpmi's parameter for it, and the conversion of values."""

    path: tuple[str, ...]
    parameter: Any
    options: tuple[Any, ...] = ()  # gpmi's values are positions in it
    step: float | None = None  # gpmi's values are multiples of it

    def value(self, ours: Any) -> Any:
        if self.options:
            return self.options[ours]
        return ours if self.step is None else round(ours * self.step, 12)


def _own(path: tuple[str, ...], domain: Any) -> TuneParameter:
    """Convert one of Tune's parameters. For integers the upper end is exclusive, as in Tune."""
    if isinstance(domain, Categorical):
        options = tuple(domain.categories)
        if all(option is None or isinstance(option, str | int | float) for option in options):
            return TuneParameter(path, Choice(options))
        return TuneParameter(
            path, Choice(tuple(range(len(options)))), options
        )  # some values, such as lists, cannot be saved
    sampler, q = domain.get_sampler(), None
    if isinstance(sampler, Quantized):
        sampler, q = sampler.get_sampler(), sampler.q
    log = isinstance(sampler, LogUniform)
    bounded = isinstance(domain, Float | Integer) and domain.lower is not None and math.isfinite(domain.lower)
    if not bounded or not math.isfinite(domain.upper):
        name = APART.join(path)
        raise ValueError(f"param_space has {name}: {domain.domain_str}; give a domain with a lower and an upper end")
    if isinstance(domain, Integer):
        step = int(q or 1)
        lo = math.ceil(domain.lower / step) * step
        return TuneParameter(path, Int(lo, int(domain.upper) - (0 if step > 1 else 1), log, step=step))
    if q is None:
        return TuneParameter(path, Real(domain.lower, domain.upper, log))
    first, last = math.ceil(domain.lower / q - 1e-9), math.floor(domain.upper / q + 1e-9)
    return TuneParameter(path, Int(first, last, log) if first < last else Choice((first,)), step=q)
