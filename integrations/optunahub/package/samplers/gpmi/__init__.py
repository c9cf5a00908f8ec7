from gpmi.integrations.optuna import GPMISampler

__all__ = ["GPMISampler"]
