"""BoTorch: any policy of gpmi, the paper's phi_t included, as an acquisition function. Needs BoTorch and torch."""

from __future__ import annotations

from typing import Any

try:
    import torch
    from botorch.acquisition.analytic import AnalyticAcquisitionFunction
    from botorch.models.transforms.outcome import Standardize
    from botorch.utils.transforms import t_batch_mode_transform
except ImportError as error:
    raise ImportError("this needs BoTorch: pip install botorch") from error

import numpy as np

from gpmi._support import checks
from gpmi.integrations.one_objective import check_policy
from gpmi.policies import GPMI, TINY, Find, Policy, State, account, checked_policy


class PolicyAcquisition(AnalyticAcquisitionFunction):  # type: ignore[misc]
    """mu_t(x) + phi_t(x), or another score of a gpmi policy, under a single-output BoTorch model.

    Parameters
    ----------
    model : a fitted single-output GP, such as SingleTaskGP, with its observations in the order of the run.
    policy : gpmi.GPMI() by default, the paper's; gpmi.Reinvest(), gpmi.GPUCB(), gpmi.LogEI("mean"), ... or your own.
    n_init : the number of observations from the initial design; gamma_hat and t count only the later ones.
    horizon : the number of queries the policy will choose in all, if known.

    The state that a policy sees (gamma_hat, the best values, promises) is computed from the model once, in O(n^3).
    Values are maximised; to minimise, model -y.

    Examples
    --------
    acquisition = PolicyAcquisition(model, gpmi.GPMI(), n_init=5)
    x, _ = botorch.optim.optimize_acqf(acquisition, bounds, q=1, num_restarts=4, raw_samples=64)
    """

    def __init__(
        self, model: Any, policy: Policy | None = None, *, n_init: int = 0, horizon: int | None = None
    ) -> None:
        super().__init__(model=model)
        check_policy(policy, "PolicyAcquisition")
        self.policy = GPMI() if policy is None else checked_policy(policy)
        if isinstance(self.policy, Find):
            raise ValueError(
                f"policy is {self.policy!r}, which compares points, not only scores; give one of its parts, "
                "such as gpmi.Reinvest() or gpmi.LogEI('mean')"
            )
        if self.policy.joint:
            raise ValueError(
                f"policy is {self.policy!r}, which draws functions instead of scoring points; give another"
            )
        self.state = state_of(model, n_init, horizon)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[untyped-decorator]
    def forward(self, X: Any) -> Any:
        """Return the score at X (b, 1, d), a tensor (b,)."""
        posterior = self.model.posterior(X)
        mu, var = posterior.mean.squeeze(-1).squeeze(-1), posterior.variance.squeeze(-1).squeeze(-1)
        return _Score.apply(mu, var.clamp_min(TINY), self.policy, self.state)


class _Score(torch.autograd.Function):  # type: ignore[misc]
    """The score of a policy, with its derivatives in mu and var."""

    @staticmethod
    def forward(ctx: Any, mu: Any, var: Any, policy: Policy, state: State) -> Any:
        m, v = (tensor.detach().cpu().double().numpy().ravel() for tensor in (mu, var))
        parts = (torch.as_tensor(part).to(mu) for part in policy.with_derivatives(m, v, state))
        score, by_mu, by_var = (part.reshape(mu.shape) for part in parts)
        ctx.save_for_backward(by_mu, by_var)
        return score

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        if torch.is_grad_enabled():  # create_graph=True: torch would treat the derivatives below as constants
            raise RuntimeError("a policy has first derivatives only; second derivatives are not available")
        by_mu, by_var = ctx.saved_tensors
        return gradient * by_mu, gradient * by_var, None, None


def state_of(model: Any, n_init: int = 0, horizon: int | None = None) -> State:
    """Compute the state of the run that a policy sees, from the model's observations and prior, in units of y.

    With C = K + noise = L L^T in the order of the observations, L_ss^2 - noise is the variance sigma_s^2(x_s) before
    y_s was seen, and L^-1 (y - m) the surprise of each value in sd.
    """
    n_init = checks.whole("n_init", n_init, 0)
    model.eval()
    x, y = model.train_inputs[0], model.train_targets
    if x.ndim != 2 or y.ndim != 1:
        raise ValueError("model has several outputs or batches; give a single-output model for each")
    scale, shift = _units(model)
    with torch.no_grad():
        prior = model.forward(x)
        k = prior.covariance_matrix.double()
        noise = (model.likelihood(prior, [x]).covariance_matrix.double() - k).diagonal()
        rest = (y - prior.mean).double()
        factor = torch.linalg.cholesky(k + noise.diag())
        surprise = torch.linalg.solve_triangular(factor, rest[:, None], upper=False)[:, 0]
        weights = torch.cholesky_solve(rest[:, None], factor)[:, 0]
        pivot, observed = factor.diagonal(), y.double()
        parts = (observed, observed - pivot * surprise, observed - noise * weights)
        seen, foreseen, smoothed = (shift + scale * part.cpu().numpy() for part in parts)
        var = scale**2 * (pivot**2 - noise).clamp_min(0.0).cpu().numpy()
    chosen = np.arange(len(seen)) >= n_init
    return State(
        t=int(chosen.sum()) + 1,
        gamma_hat=float(var[chosen].sum()),
        noise_var=scale**2 * float(noise.mean()),
        best_observed=float(seen.max()),
        best_mean=float(smoothed.max()),
        dim=int(x.shape[-1]),
        horizon=None if horizon is None else checks.whole("horizon", horizon, 1),
        promises=account(foreseen, var, scale * pivot.cpu().numpy(), surprise.cpu().numpy(), chosen),
    )


def _units(model: Any) -> tuple[float, float]:
    """Return the scale and shift that turn values of the model into values of y."""
    transform = getattr(model, "outcome_transform", None)
    if transform is None:
        return 1.0, 0.0
    if not isinstance(transform, Standardize):
        kind = type(transform).__name__
        raise ValueError(f"model has the outcome transform {kind}; give one with Standardize, or without any")
    return float(transform.stdvs.squeeze()), float(transform.means.squeeze())
