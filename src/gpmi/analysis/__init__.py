"""What can be concluded from a run: the ledger (regret, calibration, advice) and the importance of parameters."""
