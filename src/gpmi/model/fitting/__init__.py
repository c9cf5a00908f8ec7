"""Learn the prior from the observations: kernel, noise variance, mean, and a transformation of y.

Where to look, from the outside to the inside:

- When is a fit made, and from which observations? `schedule`: `PriorSchedule` returns the prior in use with n
  observations. `data` selects and standardises the observations of one fit; `row_noise` does so for rows with noise of
  their own and means. `given_kernel` validates the kernel that a user gives.
- What is unknown? `unknowns`: the logarithms of the kernel's hyper-parameters that are None, and of the noise variance
  (`noise_var=None`), with their priors and bounds.
- What is optimised? `criterion`: the evidence of the unknowns; with `fit="loo"` their leave-one-out likelihood,
  `leave_one_out`. `covariance` computes K and its derivatives as functions of the unknowns for the default kernel, and
  `template_covariance` for kernels of which something is given, in the units of `theta_units`.
- By which search? `fit` compares starts and follows the best of them with the BFGS descent of `descent`. Beyond 256
  values it follows all of them, and `many_rows` compares the ends on more values. With `fit="mcmc"` it adds draws by
  `slice_sampling`. With earlier studies `source_fit` compares the fit with its rival without them.

Noise is learned in `fit`: as one of the unknowns (`fit.fit`), or alone under a given kernel (`noise_fit`).
`student_prior` learns the scale of heavy-tailed noise. `undetected_noise` asks whether noise may hide where the fit
found none.

The rest: `warp` has the transformations of y and `warp_selection` chooses one. `prior_draws` draws priors for the
ledger's intervals. `classifier_prior` learns the kernel of the classifier of failures.
"""
