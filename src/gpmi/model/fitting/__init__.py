"""The prior: when it is learned, by which criterion, by which search, and for which transformation of y.

From the outside to the inside: `schedule` (which prior is in use with n observations), `fit` (one fit), `draws` (what
else the prior may be), `choice` (whether y is transformed, and how), `search` (descent and sampling), `criterion` (the
function that is optimised), `covariance` (K as a function of the unknowns), `unknowns` (what is unknown, and its
prior), `data` (which observations a fit uses, and in which units), `warp` (transformations of y).
"""
