"""The sweeper of gpmi, where Hydra looks for plugins: hydra/sweeper=gpmi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from omegaconf import OmegaConf

from gpmi.integrations.hydra import parameters_of, sweep
from gpmi.optimizer import Optimizer

CONFIG: dict[str, Any] = {
    "_target_": "hydra_plugins.gpmi_sweeper.GPMISweeper",
    "direction": "minimize",  # or "maximize"
    "n_trials": 20,
    "n_jobs": 1,  # how many are launched together
    "seed": None,
    "params": {},  # name: interval(0, 1), as on the command line
}
ConfigStore.instance().store(group="hydra/sweeper", name="gpmi", node=CONFIG, provider="gpmi")


class GPMISweeper(Sweeper):  # type: ignore[misc]
    """Chooses the overrides of the jobs of a multirun; the task function returns the value."""

    def __init__(self, direction: str, n_trials: int, n_jobs: int, seed: int | None, params: dict[str, str]) -> None:
        if direction not in ("minimize", "maximize"):
            raise ValueError(f"hydra.sweeper.direction is {direction!r}; give minimize or maximize")
        self.direction, self.n_trials, self.n_jobs, self.seed = direction, n_trials, n_jobs, seed
        self.params = {str(name): str(value) for name, value in (params or {}).items()}
        self.optimizer: Optimizer | None = None

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        self.config, self.hydra_context = config, hydra_context
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        given = {argument.split("=", 1)[0]: argument for argument in arguments}
        texts = [f"{name}={value}" for name, value in self.params.items() if name not in given]
        space, rest = parameters_of(OverridesParser.create().parse_overrides([*texts, *arguments]))
        if not space:
            raise ValueError("nothing is swept; give hydra.sweeper.params, or overrides such as x=interval(0,1)")
        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, folder / "multirun.yaml")
        goal: Any = "min" if self.direction == "minimize" else "max"
        self.optimizer = opt = Optimizer(space, goal=goal, seed=self.seed, budget=self.n_trials)

        def launch(jobs: list[list[str]], first: int) -> Any:
            self.validate_batch_is_legal(jobs)
            return self.launcher.launch(jobs, initial_job_idx=first)

        sweep(opt, launch, rest, self.n_trials, self.n_jobs)
        assert opt.best is not None
        found = {"name": "gpmi", "best_evaluated_params": dict(opt.best.x), "best_evaluated_result": opt.best.y}
        OmegaConf.save(OmegaConf.create(found), folder / "optimization_results.yaml")
