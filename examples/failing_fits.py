# %% [markdown]
# # Tuning a support vector machine whose fits fail
#
# One digit against the others: 10 % of the pictures show an eight. NuSVC bounds the share of support vectors by nu, and
# with so few eights a nu above 0.2 cannot be had: the fit raises "specified nu is infeasible". A search that stops
# there, or makes up a bad score, learns the wrong thing. Here a failure says where not to look, and nothing else.
#
# The cells can be run one by one in an editor that knows "# %%", or all together: python examples/failing_fits.py

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import NuSVC

import gpmi

pixels, digit = load_digits(return_X_y=True)
train, test, is_eight, test_is_eight = train_test_split(
    pixels, digit == 8, test_size=0.5, stratify=digit, random_state=0
)
folds = StratifiedKFold(3, shuffle=True, random_state=0)

# %% [markdown]
# The space: two numbers by their order of magnitude, and two parameters that exist only for some kernels.

# %%
space = {
    "nu": gpmi.Real(0.005, 1.0, log=True),
    "kernel": ["rbf", "poly"],
    "gamma": gpmi.Real(1e-4, 1.0, log=True),
    "degree": gpmi.Int(2, 4, when={"kernel": "poly"}),
}


def model(p: dict) -> object:
    return make_pipeline(StandardScaler(), NuSVC(**p))


def score(p: dict) -> float:
    return cross_val_score(model(p), train, is_eight, cv=folds, scoring="f1", error_score="raise").mean()


# %%
r = gpmi.maximize(score, space, budget=30, seed=0, on_failure="learn")
failed = [trial for trial in r.trials if trial.status == "failed"]
print(r)
print(f"{len(failed)} fits failed, such as nu = {failed[0].x['nu']:.2f}: {failed[0].why}")

# %% [markdown]
# The score of the search is the best of thirty, and therefore too good. What counts is a set that the search never saw.

# %%
best = model(r.x).fit(train, is_eight)
plain = NuSVC(nu=0.1).fit(train, is_eight)
tuned = f1_score(test_is_eight, best.predict(test))
default = f1_score(test_is_eight, plain.predict(test))
print(f"F1 on pictures that were never seen: {tuned:.3f}; NuSVC(nu=0.1) without tuning {default:.3f}")

# %% [markdown]
# Where it looked. The failures end where the model has learned that nothing can be had; the limit at 0.2 was told to
# nobody.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")
told = [trial for trial in r.trials if trial.status == "told"]
drawn = left.scatter(
    [trial.x["nu"] for trial in told],
    [trial.x["gamma"] for trial in told],
    c=[trial.y for trial in told],
    cmap="viridis",
)
left.scatter([t.x["nu"] for t in failed], [t.x["gamma"] for t in failed], marker="x", color="#D55E00", label="failed")
left.axvline(0.2, color="#8C8C8C", linestyle=":", label="the limit")
left.plot(r.x["nu"], r.x["gamma"], marker="*", markersize=14, color="#D55E00", linestyle="", label="best")
left.set(xscale="log", yscale="log", xlabel="nu", ylabel="gamma", title="where it looked")
left.legend(frameon=False, fontsize=8)
figure.colorbar(drawn, ax=left, label="F1")
numbers = [trial.number + 1 for trial in told]
right.plot(numbers, [trial.y for trial in told], ".", color="#0072B2", label="observed")
right.step(
    numbers, np.maximum.accumulate([trial.y for trial in told]), where="post", color="#0072B2", label="best so far"
)
right.plot([t.number + 1 for t in failed], [0.0] * len(failed), "x", color="#D55E00", label="failed")
right.set(xlabel="evaluation", ylabel="F1", title="the run")
right.legend(frameon=False, fontsize=8)
figure.savefig("failing_fits.png", dpi=110)
