"""Ask and tell in one dimension with a known prior, as in the paper, and a picture of the posterior."""

import numpy as np

import gpmi


def f(x: np.ndarray) -> float:
    return float(np.sin(3.0 * x[0]) + np.cos(1.3 * x[0]))


kernel = gpmi.kernels.RBF(lengthscale=0.5)
optimizer = gpmi.Optimizer([(0.0, 5.0)], gpmi.GPMI(), kernel=kernel, noise_var=1e-4, seed=0)
for _ in range(8):
    x = optimizer.ask()
    trial = optimizer.tell(x, f(x))
    print(f"x = {x[0]:.3f}   y = {trial.y:+.3f}   mu = {trial.mu:+.3f}   phi = {trial.phi:.3f}")

print(f"recommended: x = {optimizer.recommend()[0]:.3f}")
gpmi.plots.posterior_1d(optimizer.posterior, 0.0, 5.0, f=f).savefig("figure_1.png", dpi=150)
