# %% [markdown]
# # A simulation that crashes, and a study that goes on
#
# A cart balances a pole. Two gains decide how it answers to the angle and to its speed, a little late; with the wrong
# ones the pole falls, and the simulation ends without a value. After eleven evaluations the power fails. The next
# morning the same lines go on, and nothing that was evaluated is evaluated again.
#
# The cells can be run one by one in an editor that knows "# %%", or all together: python examples/pendulum.py

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gpmi

STEP = 0.01  # seconds
DELAY = 6  # steps from a measurement to the force: who answers too hard answers too late


class Fallen(Exception):
    """The pole lies beside the cart."""


def simulate(gain: float, damping: float, seconds: float = 6.0) -> np.ndarray:
    """The angle and the position over time, after a push: the cart and the pole in small steps of time."""
    angle, speed, place, pace = 0.0, 0.5, 0.0, 0.0
    waiting = [0.0] * DELAY
    seen = []
    for _ in range(int(seconds / STEP)):
        waiting.append(gain * angle + damping * speed + 1.0 * place + 2.0 * pace)
        force = waiting.pop(0)
        sin, cos = np.sin(angle), np.cos(angle)
        push = (force + 0.1 * 0.5 * speed**2 * sin) / 1.1
        turn = (9.81 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        slide = push - 0.1 * 0.5 * turn * cos / 1.1
        angle, speed = angle + STEP * speed, speed + STEP * turn
        place, pace = place + STEP * pace, pace + STEP * slide
        if abs(angle) > 0.8:
            raise Fallen(f"the pole fell after {len(seen) * STEP:.1f} s")
        seen.append((angle, place))
    return np.array(seen)


def cost(p: dict) -> float:
    """How far the pole leans and the cart drives, on average."""
    angle, place = simulate(**p).T
    return float(np.mean(10.0 * angle**2 + place**2))


space = {"gain": (0.0, 80.0), "damping": (0.0, 30.0)}

# %% [markdown]
# The run, kept in a file. The power cut is an exception that nobody catches in the loop; a kill -9 would do as well.

# %%
folder = tempfile.TemporaryDirectory()
study = str(Path(folder.name) / "pendulum.db")
evaluated = []


def until_the_power_fails(p: dict) -> float:
    evaluated.append(p)
    if len(evaluated) == 12:
        raise SystemExit("the power fails")
    return cost(p)


try:
    gpmi.minimize(until_the_power_fails, space, budget=35, seed=0, on_failure="learn", study=study)
except SystemExit as error:
    with gpmi.study(study) as s:
        print(f"{error}: {len(s.trials) - len(s.pending)} outcomes are on the disk, {len(s.pending)} was under way")

# %% [markdown]
# The next morning: the same call.

# %%
r = gpmi.minimize(cost, space, budget=35, seed=0, on_failure="learn", study=study)
failed = [trial for trial in r.trials if trial.status == "failed"]
print(r)
print(f"{len(failed)} of {len(r.trials)} poles fell; the first: {failed[0].why}")

# %% [markdown]
# Every suggestion can be computed again from the log: the run is the one that would have been without the power cut.

# %%
with gpmi.study(study) as s:
    print(s.verify())
folder.cleanup()

# %% [markdown]
# Where it looked, and how the best controller catches the pole beside one that only just works.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")
told = [trial for trial in r.trials if trial.status == "told"]
drawn = left.scatter(
    [t.x["gain"] for t in told], [t.x["damping"] for t in told], c=np.log10([t.y for t in told]), cmap="viridis_r"
)
left.scatter([t.x["gain"] for t in failed], [t.x["damping"] for t in failed], marker="x", color="#D55E00", label="fell")
left.plot(r.x["gain"], r.x["damping"], marker="*", markersize=14, color="#D55E00", linestyle="", label="best")
left.set(xlabel="gain", ylabel="damping", title="where it looked")
left.legend(frameon=False, fontsize=8)
figure.colorbar(drawn, ax=left, label="log10 of the cost")
worst = max(told, key=lambda trial: trial.y)
for trial, colour, name in (
    (worst, "#8C8C8C", "the worst that stands"),
    (min(told, key=lambda t: t.y), "#0072B2", "the best"),
):
    path = simulate(**trial.x)
    right.plot(STEP * np.arange(len(path)), np.degrees(path[:, 0]), color=colour, label=name)
right.set(xlabel="seconds", ylabel="angle, degrees", title="after a push")
right.legend(frameon=False, fontsize=8)
figure.savefig("pendulum.png", dpi=110)
