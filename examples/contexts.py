"""A control that must be set anew every day, for a temperature that nobody chooses: with and without knowing it."""

import math

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
