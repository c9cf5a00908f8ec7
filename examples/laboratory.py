# %% [markdown]
# # A laboratory table, with a category and error bars
#
# Ninety formulations stand on the shelf: three solvers, six temperatures, five concentrations. One experiment takes a
# day, and we can afford twenty. Each day gives a yield with an error bar, because every experiment is read several
# times; on bad days it is read less often. Which formulation is the best?
#
# The cells can be run one by one in an editor that knows "# %%", or all together: python examples/laboratory.py

# %%
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gpmi

shelf = pd.DataFrame(
    list(itertools.product(["DMF", "THF", "water"], [30, 40, 50, 60, 70, 80], [0.1, 0.2, 0.4, 0.8, 1.6])),
    columns=["solvent", "temperature", "concentration"],
)
print(f"{len(shelf)} formulations")

# %% [markdown]
# The truth, which the laboratory does not know. The best temperature depends on the solvent; water is quick but never
# good.

# %%
rng = np.random.default_rng(7)
BEST = {"DMF": (62.0, 88.0), "THF": (48.0, 80.0), "water": (71.0, 60.0)}


def true_yield(row: dict) -> float:
    best, height = BEST[row["solvent"]]
    dilution = np.log2(row["concentration"] / 0.4)
    return height - 0.03 * (row["temperature"] - best) ** 2 - 3.0 * dilution**2


def experiment(row: dict) -> tuple[float, float]:
    """A day in the laboratory: the mean of some readings, and the variance of that mean."""
    readings = true_yield(row) + rng.normal(0.0, 4.0, size=rng.integers(2, 9))
    return float(readings.mean()), 4.0**2 / len(readings)


# %% [markdown]
# Twenty days. The error bars are told with the values, so that a value of a bad day counts less. `noise_var=0` says
# that the error bars are all the noise there is.

# %%
opt = gpmi.Optimizer(shelf, budget=20, noise_var=0.0, seed=0)
for day in range(20):
    row = opt.ask()
    y, v = experiment(row)
    opt.tell(row, y, noise_var=v)
    where = f"{row['solvent']:5} {row['temperature']:2} °C {row['concentration']:3} M"
    print(f"day {day + 1:2}  {where}  {y:5.1f} ± {v**0.5:.1f}")

# %% [markdown]
# The best reading is the luckiest one; the recommended row is the one with the best mean of the model.

# %%
truth = shelf.apply(lambda row: true_yield(row.to_dict()), axis=1)
advised = opt.recommend()
print(f"best reading  {opt.best.y:.1f} at {dict(opt.best.x)}")
print(f"recommended   {dict(advised)}, in truth {true_yield(advised):.1f}")
print(f"best of all   {truth.max():.1f} at {shelf.loc[truth.idxmax()].to_dict()}")

# %% [markdown]
# What was read, what the model makes of it, and the truth, at the recommended concentration.

# %%
figure, panels = plt.subplots(1, 3, figsize=(10.0, 3.4), sharey=True, layout="constrained")
concentration = advised["concentration"]
for ax, solvent in zip(panels, BEST, strict=True):
    rows = shelf[(shelf["solvent"] == solvent) & (shelf["concentration"] == concentration)]
    mu, var = opt.posterior(np.array([opt.space.encode(row) for row in rows.to_dict("records")]))
    t = rows["temperature"].to_numpy()
    ax.fill_between(t, mu - np.sqrt(var), mu + np.sqrt(var), color="#D9D9D9", label="model, one sd")
    ax.plot(t, mu, color="#0072B2", label="model")
    ax.plot(t, truth[rows.index], color="#222222", linestyle="--", label="truth")
    for trial in opt.trials:
        if trial.x["solvent"] == solvent and trial.x["concentration"] == concentration:
            ax.errorbar(trial.x["temperature"], trial.y, trial.noise_var**0.5, color="#0072B2", marker="x", capsize=3)
    if advised["solvent"] == solvent:
        ax.plot(advised["temperature"], true_yield(advised), marker="*", markersize=14, color="#D55E00", linestyle="")
    ax.set(title=f"{solvent}, {concentration} M", xlabel="temperature, °C")
panels[0].set_ylabel("yield, %")
panels[0].legend(frameon=False)
figure.savefig("laboratory.png", dpi=110)

# %% [markdown]
# How sure is it? The ledger has the interval of what may still be missing, and says whether to believe it.

# %%
print(opt.ledger)
