from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpmi import checks
from gpmi.gp.kernels import Kernel
from gpmi.prior import hyper
from gpmi.prior.hyper import Prior


class Priors(hyper.Priors):
    def __init__(self, kernel: Any, noise_var: Any, fit: Any, *, span: Any, groups: Any, seed: int) -> None:
        if isinstance(kernel, type):
            raise TypeError(f"kernel is the class {kernel.__name__}; give an instance, {kernel.__name__}(...)")
        if kernel is not None and not isinstance(kernel, Kernel):
            raise TypeError(f"kernel is {kernel!r}; give a kernel such as gpmi.kernels.RBF(lengthscale=0.3)")
        if kernel is not None and kernel.dim not in (None, len(span)):
            raise ValueError(
                f"kernel has {kernel.dim} lengthscales but the space has {len(span)} coordinates; give one lengthscale per coordinate, or a single number for all"
            )
        noise_var = None if noise_var is None else checks.variance("noise_var", noise_var)
        checks.one_of("fit", fit, ("map", "loo", "mcmc"))
        if fit != "map" and kernel is not None:
            raise ValueError(f"fit is {fit!r}, but kernel is given, so it is not learned; leave out one of them")
        super().__init__(kernel, noise_var, fit, span, groups, 1.0, seed)

    def __call__(self, p: int, x: Any, y: Any) -> Prior:
        prior = super().__call__(p, x, y)
        return replace(prior, events=tuple(e for e in prior.events if e.kind != "transformed"))
