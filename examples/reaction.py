# %% [markdown]
# # Yield, cost and purity: a reaction with three outputs
#
# A recipe has a solvent, a temperature, a time and an amount of catalyst. We want much product for little money, and a
# product with a purity below 97 % cannot be sold. Yield and cost are known in the evening; purity is measured by others
# and comes a day later. There is no best recipe, because more yield costs more. We look for all recipes that are worth
# talking about, and then choose one.
#
# The cells can be run one by one in an editor that knows "# %%", or all together: python examples/reaction.py

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gpmi

space = {
    "solvent": ["toluene", "MeCN", "DMF"],
    "temperature": gpmi.Real(30, 110, unit="°C"),
    "hours": gpmi.Real(0.5, 10.0, log=True),
    "catalyst": gpmi.Real(0.5, 5.0, log=True, unit="mol%"),
}

# %% [markdown]
# Each output has a goal. `at_least` and `at_most` state the worst value that we would still accept: nobody would look
# at a recipe with a yield below 60 %, or at a batch for more than 14 euros, however good it is otherwise. Purity is a
# limit, not an objective: 99 % is not better than 97 %.

# %%
goals = {
    "yield": gpmi.Max(at_least=60),
    "cost": gpmi.Min(at_most=14),
    "purity": gpmi.AtLeast(97),
}

# %% [markdown]
# The truth, which the laboratory does not know: what we start from becomes the product, and the product decays, the
# faster the hotter it is. The best solvent is the dearest one, and purifying a dirty product costs extra.

# %%
SOLVENTS = {"toluene": (0.7, 0.6, 0.5, 0.80), "MeCN": (1.0, 1.0, 2.4, 0.89), "DMF": (1.3, 1.3, 4.5, 0.96)}
rng = np.random.default_rng(3)


def truth(p: dict) -> dict:
    """Yield in %, cost in euros a batch, purity in %: two reactions of first order, one after the other."""
    speed, decay, price, most = SOLVENTS[p["solvent"]]
    warmth = (1.0 / 333.15 - 1.0 / (p["temperature"] + 273.15)) / 8.314e-3  # Arrhenius, against 60 °C
    k1 = 0.5 * speed * p["catalyst"] ** 0.8 * np.exp(50.0 * warmth)
    k2 = 0.008 * decay * p["catalyst"] ** 0.5 * np.exp(100.0 * warmth)
    left_over = np.exp(-k1 * p["hours"])
    product = most * k1 / (k2 - k1) * (left_over - np.exp(-k2 * p["hours"]))
    decayed = most * (1.0 - left_over) - product
    recipe = 1.5 + price + 1.2 * p["catalyst"] + 0.35 * p["hours"] + 0.015 * (p["temperature"] - 20.0)
    return {
        "yield": 100.0 * product,
        "cost": recipe + 8.0 * decayed + 2.4 * left_over,
        "purity": 100.0 * product / (product + decayed + 0.02 * left_over),
    }


def in_the_evening(p: dict) -> dict:
    """The product is weighed, with an error of 1 %; the bill is exact."""
    true = truth(p)
    return {"yield": true["yield"] + rng.normal(0.0, 1.0), "cost": true["cost"]}


def a_day_later(p: dict) -> dict:
    """The chromatogram, with an error of 0.2 %."""
    return {"purity": truth(p)["purity"] + rng.normal(0.0, 0.2)}


# %% [markdown]
# Ten days with four flasks each. In the evening we tell yield and cost, and the error bar of the yield as a variance.
# Then the purities of yesterday's samples arrive and are told to the same trials. Nobody waits for them: the next
# flasks are chosen by what is known. A recipe whose purity is not known yet is not on the front. Everything is kept in
# a file, so the ten days may be ten runs of a script.

# %%
folder = tempfile.TemporaryDirectory()
s = gpmi.study(str(Path(folder.name) / "reaction.db"), space=space, goals=goals, budget=40, seed=0)
yesterday = []
for day in range(1, 11):
    today = s.ask(4)
    for trial in today:
        s.tell(trial, in_the_evening(trial.x), noise_var={"yield": 1.0})
    for trial in yesterday:
        s.tell(trial, a_day_later(trial.x), noise_var={"purity": 0.04})
    yesterday = today
    print(f"day {day:2}: {len(s.front):2} recipes on the front")
for trial in yesterday:
    s.tell(trial, a_day_later(trial.x), noise_var={"purity": 0.04})

# %% [markdown]
# The front: the recipes that no other recipe beats in both yield and cost. Under noise the means of the model decide,
# not the readings: a lucky reading does not put a recipe there.

# %%
for trial in sorted(s.front, key=lambda trial: trial.outputs["cost"]):
    x, y = trial.x, trial.outputs
    recipe = f"{x['solvent']:7} {x['temperature']:3.0f} °C {x['hours']:4.1f} h {x['catalyst']:3.1f} mol%"
    print(f"{y['cost']:5.2f} EUR  {y['yield']:4.1f} %  purity {y['purity']:4.1f} %  {recipe}")

# %% [markdown]
# Can we stop? The ledger says how much more ten flasks would bring, and how much of the possible front may be missing.

# %%
print(s.ledger)

# %% [markdown]
# Now somebody has to decide. "The cheapest recipe that gives 80 %" has an answer, with what is predicted there and the
# probability that yield and purity hold. The recipe need not be one that was tried.

# %%
chosen = s.choose(cost="min", where={"yield": ">= 80"})
print(chosen)
true = truth(chosen.x)
print(f"in truth: yield {true['yield']:.1f} %, cost {true['cost']:.2f} EUR, purity {true['purity']:.1f} %")

# %% [markdown]
# And what would a little more yield cost? The same question for several yields is a price list.

# %%
wanted = np.arange(66, 93, 3)
list_of_prices = [s.choose(cost="min", where={"yield": f">= {percent}"}) for percent in wanted]
for percent, one in zip(wanted, list_of_prices, strict=True):
    cost = one.outputs["cost"]
    print(f"{percent} %: {cost.mean:5.2f} ± {cost.sd:.2f} EUR in {one.x['solvent']}, holds with {one.probability:.0%}")

# %% [markdown]
# What was measured, where the model believes the true front to be, and where it is. On the right the hypervolume: the
# area between the front and the worst acceptable values, of what was known after each flask.

# %%
fine = {
    "temperature": np.linspace(30.0, 110.0, 61)[:, None, None],
    "hours": np.geomspace(0.5, 10.0, 61)[:, None],
    "catalyst": np.geomspace(0.5, 5.0, 61),
}
every = [truth({"solvent": solvent, **fine}) for solvent in SOLVENTS]
costs, yields, purities = (np.concatenate([one[name].ravel() for one in every]) for name in ("cost", "yield", "purity"))
order = np.flatnonzero(purities >= 97.0)
order = order[np.argsort(costs[order])]

ledger = s.ledger
front = {trial.number for trial in s.front}
kinds = {"not pure enough": [], "beaten by another": [], "on the front": []}
for trial in s.trials:
    kind = "on the front" if trial.number in front else "beaten by another" if trial.feasible else "not pure enough"
    kinds[kind].append((trial.outputs["cost"], trial.outputs["yield"]))
figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained", width_ratios=(3, 2))
bands = ledger.front_bands("cost", "yield")
if bands is not None:
    left.fill(*np.concatenate([bands.low, bands.high[::-1]]).T, color="#D9D9D9", label="where the front is, 90 %")
left.plot(costs[order], np.maximum.accumulate(yields[order]), color="#222222", linestyle="--", label="the true front")
looks = {"not pure enough": "x", "beaten by another": ".", "on the front": "o"}
colours = {"not pure enough": "#D55E00", "beaten by another": "#8C8C8C", "on the front": "#0072B2"}
for kind, points in kinds.items():
    left.plot(*np.array(points).T, marker=looks[kind], color=colours[kind], linestyle="", label=kind)
place = [chosen.outputs[name].mean for name in ("cost", "yield")]
left.plot(*place, marker="*", markersize=14, color="#D55E00", linestyle="", label="chosen")
left.set(xlabel="cost, EUR a batch", ylabel="yield, %", xlim=(5.0, 14.0), ylim=(60.0, 96.0), title="forty flasks")
left.legend(frameon=False, fontsize=8, loc="lower right")
right.step(np.arange(1, ledger.n + 1), ledger.history, where="post", color="#0072B2")
right.set(xlabel="flasks", ylabel="hypervolume, % times EUR", title="the front so far")
figure.savefig("reaction.png", dpi=110)

# %% [markdown]
# Last, one page to send around: the front, the recipes behind it, and what is known.

# %%
print(s.report(Path(folder.name) / "reaction.html").stat().st_size // 1000, "kB")
s.close()
folder.cleanup()
