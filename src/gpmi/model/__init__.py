"""The model of f after n values. Start with `model`: prior, transformation of y, posterior, probability of success.

`fitting` learns the prior, the noise variance included. `feasibility` learns where trials succeed. `orientation`
changes the sign of y, so that larger is better inside.
"""
