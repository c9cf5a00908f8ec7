"""What the prior is: when it is learned, by which criterion, by which search, and of which transformation of y.

From the door inwards: `schedule` (which prior is in use with n observations), `fit` (one fit), `choice` (whether y is
transformed), `search` (descent and sampling), `criterion` (what is maximised), `covariance` (C as a function of what
is unknown), `unknowns` (what is unknown, and its prior), `data` (which observations, in which units), `warp`.
"""
