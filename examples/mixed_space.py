"""Tune a learning rate, a depth and an activation together, and draw what the model has learned about each."""

import math

import gpmi

space = {
    "rate": gpmi.Real(1e-5, 1e-1, log=True),
    "layers": gpmi.Int(1, 8),
    "activation": ["relu", "tanh", "gelu"],
}


def loss(p: dict) -> float:
    """Stands for training a network and measuring its error."""
    shape = {"relu": 0.2, "tanh": 0.4, "gelu": 0.1}[p["activation"]]
    return 0.3 * (math.log10(p["rate"]) + 3.0) ** 2 + 0.05 * (p["layers"] - 4) ** 2 + shape


result = gpmi.minimize(loss, space, budget=30, seed=0)
print(result)
gpmi.plots.run(result).savefig("mixed_space.png", dpi=150)
