"""Policies as acquisition functions of BoTorch, against gpmi's own posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpmi
from gpmi import kernels

torch = pytest.importorskip("torch")
pytest.importorskip("botorch")

from botorch.fit import fit_gpytorch_mll  # noqa: E402
from botorch.models import SingleTaskGP  # noqa: E402
from botorch.models.transforms import Log, Standardize  # noqa: E402
from botorch.optim import optimize_acqf  # noqa: E402
from gpytorch.kernels import MaternKernel, ScaleKernel  # noqa: E402
from gpytorch.means import ZeroMean  # noqa: E402
from gpytorch.mlls import ExactMarginalLogLikelihood  # noqa: E402

from gpmi.integrations.botorch import PolicyAcquisition, state_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
NOISE = 0.01


def data(n: int = 9) -> tuple[Any, Any]:
    x = torch.rand(n, 2, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    return x, (torch.sin(6 * x[:, :1]) + x[:, 1:] ** 2)


def paper_model(x: Any, y: Any) -> Any:
    """Zero mean, a Matern kernel of variance 2 and lengthscale 0.4, noise 0.01; nothing is transformed."""
    covariance = ScaleKernel(MaternKernel(nu=2.5)).double()
    covariance.outputscale, covariance.base_kernel.lengthscale = 2.0, 0.4
    model = SingleTaskGP(x, y, torch.full_like(y, NOISE), outcome_transform=None, covar_module=covariance)
    model.mean_module = ZeroMean()
    return model.double().eval()


def posterior(x: Any, y: Any) -> gpmi.Posterior:
    kernel = kernels.Matern(nu=2.5, lengthscale=0.4, variance=2.0)
    return gpmi.Posterior.prior(kernel, noise_var=NOISE).condition(x.numpy(), y.numpy()[:, 0])


@pytest.mark.parametrize("n_init", [0, 4])
def test_the_state_is_that_of_gpmi(n_init: int) -> None:
    x, y = data()
    state, ours = state_of(paper_model(x, y), n_init), posterior(x, y)
    assert state.gamma_hat == pytest.approx(ours.gamma_hat(n_init), rel=1e-6)
    assert state.t == 10 - n_init and state.best_observed == y.max()
    assert state.best_mean == pytest.approx(ours(x.numpy())[0].max(), rel=1e-6)
    assert state.noise_var == pytest.approx(NOISE)


@pytest.mark.parametrize("policy", [gpmi.GPMI(), gpmi.Reinvest(), gpmi.GPUCB(), gpmi.LogEI("mean")], ids=repr)
def test_the_score_is_that_of_the_policy(policy: gpmi.Policy) -> None:
    x, y = data()
    acquisition = PolicyAcquisition(paper_model(x, y), policy, n_init=3)
    at = torch.rand(20, 1, 2, dtype=torch.double)
    expected = policy.score(*posterior(x, y)(at[:, 0].numpy()), acquisition.state)
    np.testing.assert_allclose(acquisition(at).detach().numpy(), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("policy", [gpmi.GPMI(), gpmi.Reinvest(), gpmi.GPUCB(), gpmi.LogEI("mean")], ids=repr)
def test_the_query_of_an_optimizer_is_its_maximum(policy: gpmi.Policy) -> None:
    """A run of gpmi's own under the same prior: what it asks next has the score that it says, and none is higher."""
    kernel = kernels.Matern(nu=2.5, lengthscale=0.4, variance=2.0)
    opt = gpmi.Optimizer([(0.0, 1.0)] * 2, policy=policy, kernel=kernel, noise_var=NOISE, n_init=4, budget=20, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(12):
        point = opt.ask()
        opt.tell(point, float(np.sin(6 * point[0]) + point[1] ** 2 + 0.1 * rng.normal()))
    told = opt.trials
    x, y = torch.tensor(np.array([trial.x for trial in told])), torch.tensor([[trial.y] for trial in told])
    acquisition = PolicyAcquisition(paper_model(x, y.double()), policy, n_init=4, horizon=16)
    next_one = torch.tensor(np.array(opt.ask()))[None, None]
    (asked,) = opt.pending
    with torch.no_grad():
        here = float(acquisition(next_one))
        others = acquisition(torch.tensor(rng.random((4096, 1, 2))))
    assert float(others.max()) <= here + 1e-6
    if policy.additive:
        assert asked.mu is not None and asked.phi is not None
        assert here == pytest.approx(asked.mu + asked.phi, rel=1e-6)
    assert acquisition.state.gamma_hat == pytest.approx(asked.gamma_hat, rel=1e-6)


def test_the_papers_phi() -> None:
    x, y = data()
    at = torch.rand(5, 1, 2, dtype=torch.double)
    mu, var = posterior(x, y)(at[:, 0].numpy())
    alpha, g = np.log(2e6), posterior(x, y).gamma_hat()
    expected = mu + np.sqrt(alpha) * (np.sqrt(var + g) - np.sqrt(g))
    found = PolicyAcquisition(paper_model(x, y))(at).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)  # a score may be close to 0


@pytest.mark.parametrize("policy", [gpmi.GPMI(), gpmi.Reinvest()], ids=repr)
def test_its_gradients_are_right(policy: gpmi.Policy) -> None:
    acquisition = PolicyAcquisition(paper_model(*data()), policy)
    at = torch.rand(4, 1, 2, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(acquisition, (at,), eps=1e-6, atol=1e-5)


def test_second_derivatives_are_refused() -> None:
    """Those of the policy are not known; without them they would be wrong."""
    acquisition = PolicyAcquisition(SingleTaskGP(*data()))
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.functional.hessian(lambda z: acquisition(z).sum(), torch.full((1, 1, 2), 0.3).double())


def test_standardised_values_change_nothing() -> None:
    x, y = data()
    plain, model = paper_model(x, y), SingleTaskGP(x, 100.0 + 7.0 * y, outcome_transform=Standardize(1))
    state = state_of(model)
    assert state.best_observed == pytest.approx(100.0 + 7.0 * float(y.max()))
    with torch.no_grad():
        smoothed = model.posterior(x).mean.max()
    assert state.best_mean == pytest.approx(float(smoothed), rel=1e-4) and state.gamma_hat > 0.0
    assert state.t == state_of(plain).t


def test_a_run_finds_the_maximum() -> None:
    torch.manual_seed(0)
    x = torch.rand(5, 2, dtype=torch.double)

    def f(z: Any) -> Any:
        return -((z - torch.tensor([0.3, 0.7])) ** 2).sum(-1, keepdim=True)

    for _ in range(8):
        model = SingleTaskGP(x, f(x))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = PolicyAcquisition(model, gpmi.Reinvest(), n_init=5, horizon=8)
        bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
        new, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=2, raw_samples=32)
        x = torch.cat([x, new])
    assert float(f(x).max()) > -1e-3


def test_what_it_cannot_do_is_said() -> None:
    x, y = data()
    with pytest.raises(ValueError, match="single-output"):
        state_of(SingleTaskGP(x, torch.cat([y, y], 1)))
    with pytest.raises(ValueError, match="outcome transform Log"):
        state_of(SingleTaskGP(x, y + 10.0, outcome_transform=Log()))
    with pytest.raises(ValueError, match="draws functions"):
        PolicyAcquisition(paper_model(x, y), gpmi.Thompson())
    with pytest.raises(ValueError, match="compares points"):
        PolicyAcquisition(paper_model(x, y), gpmi.Find())
    with pytest.raises(TypeError, match="give an instance"):
        PolicyAcquisition(paper_model(x, y), gpmi.GPMI)  # type: ignore[arg-type]


def test_a_policy_for_several_objectives_is_refused() -> None:
    with pytest.raises(ValueError, match="for several objectives, but PolicyAcquisition has one"):
        PolicyAcquisition(paper_model(*data()), gpmi.EHVI())
