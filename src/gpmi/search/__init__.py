"""The best point of a space under a policy: exact on a finite set, otherwise by a screen and a multi-start climb.

Read in this order: `search` (one search for a whole run), `objective` (the score of a policy as a function of the
point), `finite` (the argmax over rows) and `multistart` (screen, climb and discrete moves). These use `screen` (points
spread over a space), `climb` (Newton's method in a trust region), `barriers` (where nothing may be asked) and
`relevant_region` (where the maximum may be). `constrained_climb` replaces `climb` where there are constraints or
conditions. `initial_design`, `recommendation` and `subspaces` are used by the optimizer and the model.
"""
