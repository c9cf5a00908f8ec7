"""Posteriors given observations that are not Gaussian: successes and failures (`success`), and heavy-tailed noise
(`student`).

Both rely on expectation propagation (`ep`).
"""
