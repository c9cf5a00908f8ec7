"""One module for each neighbour. Import the one that is needed: `gpmi.integrations.optuna`."""
