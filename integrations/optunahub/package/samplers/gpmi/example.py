import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    kind = trial.suggest_categorical("kind", ["line", "bowl"])
    x = trial.suggest_float("x", -5.0, 5.0)
    if kind == "line":
        return 10.0 + x
    y = trial.suggest_float("y", 1e-3, 1e3, log=True)
    return (x - 2.0) ** 2 + (y - 1.0) ** 2


if __name__ == "__main__":
    module = optunahub.load_module(package="samplers/gpmi")
    study = optuna.create_study(sampler=module.GPMISampler(seed=0))
    study.optimize(objective, n_trials=40)
    print(study.best_params, study.best_value)
