"""The model of f after n values. Start with `model`: prior, transformation of y, posterior, probability of success.

`fitting` learns the prior, the noise variance included. `feasibility` learns where trials succeed. `orientation`
changes the sign of y, so that larger is better inside.
"""

from gpmi.model.fitting.warp import IDENTITY, Warp
from gpmi.model.model import Model

__all__ = [
    "IDENTITY",
    "Model",
    "Warp",
]
