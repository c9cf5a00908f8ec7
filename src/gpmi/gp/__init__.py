"""Gaussian processes: factors, kernels, posteriors, their moments kept up to date, and functions drawn from them."""
