# %% [markdown]
# # When to stop, and whether to believe it
#
# Every evaluation costs money. The ledger says after each of them how much better another point may still be, and
# whether the model has deserved its confidence so far. We watch it over a run, stop where more no longer pays, and then
# look at a function that fools it.
#
# The cells can be run one by one in an editor that knows "# %%", or all together: python examples/when_to_stop.py

# %%
import matplotlib.pyplot as plt
import numpy as np

import gpmi
from gpmi.stopping import RegretBelow


def hill(x: np.ndarray) -> float:
    """Two hills; the higher one, at (0.3, 0.7), is the narrower."""
    a = np.exp(-8.0 * ((x[0] - 0.3) ** 2 + (x[1] - 0.7) ** 2))
    b = 0.7 * np.exp(-5.0 * ((x[0] - 0.8) ** 2 + (x[1] - 0.2) ** 2))
    return float(a + b)


grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 201)] * 2), axis=-1).reshape(-1, 2)
top = max(hill(x) for x in grid)

# %% [markdown]
# A run with noise of 0.02, stopped when no point is better than the recommended one by more than 0.1, with 95 %
# probability. The hills and the seed were chosen, after several tries, so that the rule stops: this shows how it reads,
# not how often it is right. On hills of 1.0 and 0.8, 3 of 10 seeds ended on the lower one (noise 0.03, 40 evaluations).

# %%
NOISE = 0.02


def noisy(seed: int):
    """The hills, measured with noise."""
    rng = np.random.default_rng(seed)
    return lambda x: hill(x) + NOISE * rng.normal()


box = [(0.0, 1.0), (0.0, 1.0)]
r = gpmi.maximize(noisy(1), box, budget=60, stop=RegretBelow(0.1), noise_var=NOISE**2, seed=1)
print(f"stopped after {len(r.trials)} evaluations: {r.reason}")
print(f"the true regret of the recommended point is {top - hill(r.recommended):.4f}")
print(r.ledger)

# %% [markdown]
# How the interval shrank, with the true regret of what would have been recommended at each moment. Replaying a run asks
# nothing new: it gives the model of every moment.

# %%
moments = range(6, len(r.trials) + 1, 4)
lower, upper, true = [], [], []
for t in moments:
    then = gpmi.Optimizer(box, noise_var=NOISE**2, seed=1).replay(r.trials[:t])
    interval = then.ledger.regret().interval()
    lower.append(interval.lower)
    upper.append(interval.upper)
    true.append(top - hill(then.recommend()))

# %% [markdown]
# Now a function that no interval can be right about: the same hills, and a needle that no query comes near. The ledger
# says so itself, in the line "not covered". The same happens on a smaller scale when a run has not looked at the higher
# hill at all: where missing it would be expensive, use the whole budget, or a second seed.

# %%


def needle(x: np.ndarray) -> float:
    return hill(x) + 2.0 * float(np.exp(-20000.0 * ((x[0] - 0.62) ** 2 + (x[1] - 0.91) ** 2)))


fooled = gpmi.maximize(needle, box, budget=30, seed=1)
true_regret = needle(np.array([0.62, 0.91])) - needle(fooled.recommended)
said = fooled.ledger.regret().interval()
print(f"with a needle: the interval says {said.lower:.4f} to {said.upper:.4f}, the truth is {true_regret:.2f}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")
left.fill_between(moments, lower, upper, color="#D9D9D9", label="95 % interval")
left.plot(moments, true, color="#222222", marker=".", label="truth")
left.axhline(0.1, color="#D55E00", linestyle=":", label="good enough")
left.set(xlabel="evaluations", ylabel="simple regret", title="what may be missing", ylim=(0.0, 1.0))
left.legend(frameon=False, fontsize=8)
heights = np.array([needle(x) for x in grid]).reshape(201, 201)
right.contourf(np.linspace(0, 1, 201), np.linspace(0, 1, 201), heights, levels=20)
right.plot(*np.array([trial.x for trial in fooled.trials]).T, ".", color="white", markersize=5)
right.plot(*fooled.recommended, marker="*", markersize=14, color="#D55E00", linestyle="")
right.annotate(
    "the needle", (0.62, 0.91), (0.72, 0.78), color="white", arrowprops={"arrowstyle": "->", "color": "white"}
)
right.set(title="what no query came near", xlim=(0, 1), ylim=(0, 1))
figure.savefig("when_to_stop.png", dpi=110)
