"""One module or folder for each neighbour. Import the one that is needed: `gpmi.integrations.optuna`."""
