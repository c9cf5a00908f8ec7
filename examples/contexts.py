"""A control that must be set anew every day, for a temperature that nobody chooses: with and without knowing it."""

import math

import matplotlib.pyplot as plt

import gpmi

DAYS = 60


def yield_of(dose: float, temperature: float) -> float:
    """The best dose rises with the temperature."""
    return math.exp(-20.0 * (dose - 0.1 - 0.025 * temperature) ** 2)


space = {"dose": (0.0, 1.0), "temperature": (0.0, 30.0)}
knows = gpmi.Optimizer(space, aim="earn", budget=DAYS, seed=0)
ignores = gpmi.Optimizer({"dose": (0.0, 1.0)}, aim="earn", budget=DAYS, seed=0)
lost = {"knows": 0.0, "ignores": 0.0}
for day in range(DAYS):
    temperature = 15.0 + 12.0 * math.sin(0.7 * day) + 3.0 * math.cos(2.3 * day)
    p = knows.ask(fixed={"temperature": temperature})
    knows.tell(p, yield_of(p["dose"], temperature))
    q = ignores.ask()
    ignores.tell(q, yield_of(q["dose"], temperature))
    lost["knows"] += 1.0 - yield_of(p["dose"], temperature)
    lost["ignores"] += 1.0 - yield_of(q["dose"], temperature)

print(f"mean regret: {lost['knows'] / DAYS:.3f} with the temperature given, {lost['ignores'] / DAYS:.3f} without")
for temperature in (5.0, 15.0, 25.0):
    print(temperature, knows.recommend(fixed={"temperature": temperature}))
print(knows.ledger.regret())

degrees = [float(t) for t in range(3, 28)]
advised = [knows.recommend(fixed={"temperature": t})["dose"] for t in degrees]
figure, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
for name, optimizer in (("temperature given", knows), ("ignored", ignores)):
    days = [15.0 + 12.0 * math.sin(0.7 * day) + 3.0 * math.cos(2.3 * day) for day in range(DAYS)]
    ax.scatter(days, [trial.x["dose"] for trial in optimizer.trials], s=14, label=f"doses, {name}")
ax.plot(degrees, advised, label="recommended for the temperature")
ax.plot(degrees, [0.1 + 0.025 * t for t in degrees], "--", color="0.5", label="best dose")
ax.set(xlabel="temperature", ylabel="dose")
ax.legend()
figure.savefig("contexts.png", dpi=150)
