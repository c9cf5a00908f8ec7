"""Posteriors of observations that are not Gaussian: successes and failures, and noise with heavy tails."""
