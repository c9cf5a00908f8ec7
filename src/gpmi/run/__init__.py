"""Runs: the loop of `maximize` and `minimize`, evaluations, workers, stopping rules, results and studies."""
