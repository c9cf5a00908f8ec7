"""Problems with several objectives, all minimised, some with constraints. Written from the published formulas.

`PROBLEMS[name]` is one of them. Rules may be tuned on DEVELOPMENT. REPORTED chose nothing. FURTHER are there for other
questions. HELD_OUT are looked at once, at the end: the problems of the RE suite (Tanabe and Ishibuchi 2020) that have
no discrete variable and are not among the others, in their corrected form of 2021.

Reference points and largest hypervolumes are those of BoTorch's test functions. What is not published is in
`fronts.json`, and `make bench NAME=fronts` finds it. Some of the published hypervolumes are of coarse fronts, so gaps
are measured from the larger one of both. The reference of a problem of the RE suite is the nadir of its
front plus a tenth of the front's range.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .functions import Array

FRONTS = Path(__file__).with_name("fronts.json")
MARGIN = 0.1  # of the front's range, beyond its nadir: the reference that judges a rule which was told none
Values = tuple[Array, Array]  # objectives (n, m), constraints (n, k)

DEVELOPMENT = ("BraninCurrin", "ZDT1-6", "DTLZ2-6-2", "VehicleSafety", "ConstrainedBraninCurrin")
REPORTED = ("ZDT3-6", "DTLZ2-6-3", "DTLZ7-6-3", "Penicillin", "CarSideImpact", "C2DTLZ2-6", "WeldedBeam")
FURTHER = ("ZDT2-6", "DTLZ7-6-2", "DiscBrake", "MW7-6", "OSY", "RE33")
HELD_OUT = ("RE21", "RE24", "RE31", "RE37", "RE42")


@dataclass(frozen=True)
class Problem:
    """A box, objectives to be minimised, and constraints that hold where they are at most 0."""

    name: str
    bounds: Array  # (d, 2)
    m: int  # objectives
    k: int  # constraints
    evaluate: Callable[[Array], Values]  # of points (n, d)
    reference: Array  # (m,)
    best: float | None  # the largest hypervolume at the reference, if it is published

    @property
    def d(self) -> int:
        return len(self.bounds)

    def scaled(self, unit: Array) -> Array:  # (n, d) in [0, 1]
        """Return the points of the box that belong to points of the unit cube."""
        lo, hi = self.bounds.T
        return lo + np.clip(unit, 0.0, 1.0) * (hi - lo)


@cache
def fronts() -> dict[str, Any]:
    """Return what is stored about the fronts: ideal, nadir and the largest hypervolumes, by problem."""
    return json.loads(FRONTS.read_text()) if FRONTS.exists() else {}


def judged_reference(name: str) -> Array:
    """Return the nadir of the true front plus a tenth of its range, by which a rule is judged that had to guess."""
    front = fronts().get(name)
    if front is None:
        return np.full(DEFINITIONS[name][1], np.nan)
    ideal, nadir = np.array(front["ideal"]), np.array(front["nadir"])
    return nadir + MARGIN * (nadir - ideal)


def best(name: str) -> float:
    """Return the largest hypervolume at the reference: the published one, or the one that was found if it is larger."""
    return max(float(fronts()[name]["hypervolume"]), PROBLEMS[name].best or 0.0)


def judged_best(name: str) -> float:
    """Return the largest hypervolume at the judged reference."""
    return float(fronts()[name]["judged hypervolume"])


def free(objectives: Array) -> Values:
    """Return objectives without constraints."""
    return objectives, np.empty((len(objectives), 0))


def columns(x: Array) -> Array:
    """Return the coordinates of points, one after the other."""
    return x.T


# Two objectives in the plane


def branin_currin(x: Array) -> Values:
    """Branin's function, and Currin's exponential one, on the unit square."""
    u, v = columns(x)
    a, b = 15 * u - 5, 15 * v
    bowl = b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6
    branin = bowl**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10
    with np.errstate(divide="ignore"):
        decay = 1 - np.exp(-0.5 / v)
    currin = decay * np.polyval([2300, 1900, 2092, 60], u) / np.polyval([100, 500, 4, 20], u)
    return free(np.column_stack([branin, currin]))


def constrained_branin_currin(x: Array) -> Values:
    """The same inside a disc."""
    u, v = columns(x)
    disc = (15 * u - 7.5) ** 2 + (15 * v - 7.5) ** 2 - 50
    return branin_currin(x)[0], disc[:, None]


# Zitzler, Deb and Thiele 2000


def zdt(shape: Callable[[Array, Array], Array]) -> Callable[[Array], Values]:
    """Return a problem of the ZDT family: x1 against g h(x1, x1 / g)."""

    def evaluate(x: Array) -> Values:
        first, g = x[:, 0], 1 + 9 * x[:, 1:].mean(axis=1)
        return free(np.column_stack([first, g * shape(first, first / g)]))

    return evaluate


def zdt3_shape(first: Array, ratio: Array) -> Array:
    return 1 - np.sqrt(ratio) - ratio * np.sin(10 * np.pi * first)


# Deb, Thiele, Laumanns and Zitzler 2002; the constraint is that of Jain and Deb 2014


def dtlz2(m: int) -> Callable[[Array], Values]:
    """Return DTLZ2: the positive part of the unit sphere, pushed out by the other coordinates."""

    def evaluate(x: Array) -> Values:
        radius = 1 + np.sum((x[:, m - 1 :] - 0.5) ** 2, axis=1)
        angle = np.pi / 2 * x[:, : m - 1]
        values = np.repeat(radius[:, None], m, axis=1)
        for i in range(m):
            values[:, i] *= np.prod(np.cos(angle[:, : m - 1 - i]), axis=1)
            if i:
                values[:, i] *= np.sin(angle[:, m - 1 - i])
        return free(values)

    return evaluate


def c2_dtlz2(x: Array) -> Values:
    """DTLZ2 with two objectives, within 0.2 of an end of its front, or within 0.2 sqrt(2) of its middle.

    The paper has 0.2 for the middle, too. BoTorch has the larger disc, and its largest hypervolume belongs to that.
    """
    values = dtlz2(2)(x)[0]
    centres = np.array([[1.0, 0.0], [0.0, 1.0], [np.sqrt(0.5), np.sqrt(0.5)]])
    squares = np.sum((values[:, None] - centres) ** 2, axis=2) - 0.2**2 * np.array([1, 1, 2])
    return values, squares.min(axis=1, keepdims=True)


def dtlz7(m: int) -> Callable[[Array], Values]:
    """Return DTLZ7: a front in 2^(m-1) pieces."""

    def evaluate(x: Array) -> Values:
        first, g = x[:, : m - 1], 1 + 9 * x[:, m - 1 :].mean(axis=1, keepdims=True)
        last = (1 + g[:, 0]) * (m - np.sum(first / (1 + g) * (1 + np.sin(3 * np.pi * first)), axis=1))
        return free(np.column_stack([first, last]))

    return evaluate


# Ma and Wang 2019


def mw7(x: Array) -> Values:
    """Two constraints that leave pieces of two wavy arcs."""
    g = 1 + 2 * np.sum((x[:, 1:] + (x[:, :-1] - 0.5) ** 2 - 1) ** 2, axis=1)
    values = g[:, None] * np.column_stack([x[:, 0], np.sqrt(1 - x[:, 0] ** 2)])
    squares, wave = np.sum(values**2, axis=1), np.sin(4 * np.arctan2(values[:, 1], values[:, 0]))
    outer, inner = (1.2 + 0.4 * wave**16) ** 2, (1.15 - 0.2 * wave**8) ** 2
    return values, np.column_stack([squares - outer, inner - squares])


# Osyczka and Kundu 1995


def osy(x: Array) -> Values:
    """Two quadratic objectives and six constraints."""
    a, b, c, d, e, f = columns(x)
    first = -(25 * (a - 2) ** 2 + (b - 2) ** 2 + (c - 1) ** 2 + (d - 4) ** 2 + (e - 1) ** 2)
    limits = (2 - a - b, a + b - 6, b - a - 2, a - 3 * b - 2, (c - 3) ** 2 + d - 4, 4 - (e - 3) ** 2 - f)
    return np.column_stack([first, np.sum(x**2, axis=1)]), np.column_stack(limits)


# Engineering: Tanabe and Ishibuchi 2020, and the papers named there


def welded_beam(x: Array) -> Values:
    """Cost and deflection of a welded beam; limits of the shear stress, the bending stress, the weld and the load.

    The signs are those of Deb: a stress has to be below what the steel bears.
    """
    h, length, t, b = columns(x)
    load, arm, shear_limit, bending_limit = 6000.0, 14.0, 13600.0, 30000.0
    cost = 1.10471 * h**2 * length + 0.04811 * t * b * (arm + length)
    radius = np.sqrt(0.25 * (length**2 + (h + t) ** 2))
    primary = load / (np.sqrt(2) * h * length)
    moment = load * (arm + length / 2)
    polar = np.sqrt(2) * h * length * (length**2 / 12 + 0.25 * (h + t) ** 2)
    secondary = moment * radius / polar
    shear = np.sqrt(primary**2 + primary * secondary * length / radius + secondary**2)
    bending = 6 * load * arm / (b * t**2)
    buckling = 64746.022 * (1 - 0.0282346 * t) * t * b**3
    limits = (shear / shear_limit - 1, bending / bending_limit - 1, (h - b) / (5 - 0.125), 1 - buckling / load)
    return np.column_stack([cost, 2.1952 / (t**3 * b)]), np.column_stack(limits)


def disc_brake(x: Array) -> Values:
    """Mass and stopping time of a disc brake; limits of its length, pressure, temperature and torque."""
    inner, outer, force, discs = columns(x)
    squares, cubes = outer**2 - inner**2, outer**3 - inner**3
    values = (4.9e-5 * squares * (discs - 1), 9.82e6 * squares / (force * discs * cubes))
    limits = (
        20 - (outer - inner),
        force / (3.14 * squares) - 0.4,
        2.22e-3 * force * cubes / squares**2 - 1,
        900 - 2.66e-2 * force * discs * cubes / squares,
    )
    return np.column_stack(values), np.column_stack(limits)


def vehicle_safety(x: Array) -> Values:
    """Mass, acceleration and intrusion in a crash, as functions of five thicknesses (Liao and others 2008)."""
    a, b, c, d, e = columns(x)
    mass = 1640.2823 + x @ [2.3573285, 2.3220035, 4.5688768, 7.7213633, 4.4559504]
    acceleration = (
        6.5856
        + (1.15 * a - 1.0427 * b + 0.9738 * c + 0.8364 * d)
        + (-0.3695 * a * d + 0.0861 * a * e + 0.3628 * b * d)
        + (-0.1106 * a**2 - 0.3437 * c**2 + 0.1764 * d**2)
    )
    intrusion = (
        -0.0551
        + (0.0181 * a + 0.1024 * b + 0.0421 * c)
        + (-0.0073 * a * b + 0.024 * b * c - 0.0118 * b * d - 0.0204 * c * d - 0.008 * c * e)
        + (-0.0241 * b**2 + 0.0109 * d**2)
    )
    return free(np.column_stack([mass, acceleration, intrusion]))


def violation(limits: Array) -> Array:  # (n, k)
    """Return the sum of what is above 0: the RE suite has it as an objective."""
    return np.maximum(limits, 0.0).sum(axis=1)


def car_side_impact(x: Array) -> Values:
    """Weight, force and velocity in a crash from the side, and the sum of what ten limits are exceeded by."""
    a, b, c, d, e, f, g = columns(x)
    weight = 1.98 + x @ [4.9, 6.67, 6.98, 4.01, 1.78, 1e-5, 2.73]
    force = 4.72 - 0.5 * d - 0.19 * b * c
    pillar = 10.58 - 0.674 * a * b - 0.67275 * b
    door = 16.45 - 0.489 * c * g - 0.843 * e * f
    limits = (
        1.16 - 0.3717 * b * d - 0.0092928 * c - 1,
        0.261 - 0.0159 * a * b - 0.06486 * a - 0.019 * b * g + 0.0144 * c * e + 0.0154464 * f - 0.32,
        (0.214 + 0.00817 * e - 0.045195 * a - 0.0135168 * a + 0.03099 * b * f - 0.018 * b * g)
        + (0.007176 * c + 0.023232 * c - 0.00364 * e * f - 0.018 * b**2 - 0.32),
        0.74 - 0.61 * b - 0.031296 * c - 0.031872 * g + 0.227 * b**2 - 0.32,
        28.98 + 3.818 * c - 4.2 * a * b + 1.27296 * f - 2.68065 * g - 32,
        33.86 + 2.95 * c - 5.057 * a * b - 3.795 * b - 3.4431 * g + 1.45728 - 32,
        46.36 - 9.9 * b - 4.4505 * a - 32,
        force - 4,
        pillar - 9.9,
        door - 15.7,
    )
    return free(np.column_stack([weight, force, (pillar + door) / 2, violation(np.column_stack(limits))]))


def penicillin(x: Array) -> Values:
    """Yield (negated), carbon dioxide and time of a fermentation, by Euler steps of an hour (Liang and Lai 2021).

    The rates are those of Birol, Ündey and Çinar 2002. A batch ends when the vessel is full, when the glucose is used
    up, or when no more penicillin is made, and after 2500 hours at the latest.
    """
    volume, biomass, temperature, glucose, feed, fed_glucose, acidity = (column.copy() for column in columns(x))
    protons = 10.0**-acidity
    growth = 0.092 / (1 + 1e-10 / protons + protons / 7e-5)
    heat = 1.9872 * temperature  # the gas constant in cal / (mol K), times the temperature
    growth *= 7e3 * np.exp(-5100 / heat) - 1e33 * np.exp(-50000 / heat)
    evaporation = 2.5e-4 * np.expm1(5 * (temperature - 373) / (273 - 373))
    product, dioxide, hours = np.zeros(len(x)), np.zeros(len(x)), np.full(len(x), 2500.0)
    active = np.arange(len(x))
    for hour in range(1, 2501):
        v, b, s, p = volume[active], biomass[active], glucose[active], product[active]
        inflow = feed[active]
        dv = inflow - evaporation[active] * v
        dilution = dv / v
        mu = growth[active] * s / (0.15 * b + s)
        made = 0.005 * s / (0.0002 + s + s**2 / 0.1)
        db = mu * b - b * dilution
        ds = -(mu / 0.45 + made / 0.9 + 0.014) * b + inflow * fed_glucose[active] / v - s * dilution
        dp = made * b - 0.04 * p - p * dilution
        volume[active], biomass[active] = v + dv, b + db
        glucose[active], product[active] = s + ds, p + dp
        dioxide[active] += 0.143 * db + 4e-7 * b + 1e-4
        over = (v + dv > 180) | (s + ds < 0) | (dp < 1e-11)
        hours[active[over]] = hour
        active = active[~over]
        if not len(active):
            break
    return free(np.column_stack([-product, dioxide, hours]))


def re21(x: Array) -> Values:
    """Volume and displacement of a truss of four bars (Cheng and Li 1999)."""
    a, b, c, d = columns(x)
    force, modulus, length, root = 10.0, 2e5, 200.0, np.sqrt(2)
    volume = length * (2 * a + root * b + np.sqrt(c) + d)
    displacement = force * length / modulus * (2 / a + 2 * root / b - 2 * root / c + 2 / d)
    return free(np.column_stack([volume, displacement]))


def re24(x: Array) -> Values:
    """Weight of a hatch cover, and what four limits are exceeded by (Amir and Hasegawa 1989)."""
    plate, beam = columns(x)
    modulus = 7e5
    bending, shear = 4500 / (plate * beam), 1800 / beam
    deflection = 56.2e4 / (modulus * plate * beam**2)
    limits = (bending / 700 - 1, shear / 450 - 1, deflection / 1.5 - 1, bending / (modulus * plate**2 / 100) - 1)
    return free(np.column_stack([plate + 120 * beam, violation(np.column_stack(limits))]))


def re31(x: Array) -> Values:
    """Volume and stress of a truss of two bars, and what three limits are exceeded by (Coello and Pulido 2005)."""
    a, b, y = columns(x)
    long, short = np.sqrt(16 + y**2), np.sqrt(1 + y**2)
    volume, stress = a * long + b * short, 20 * long / (a * y)
    limits = (volume - 0.1, stress - 1e5, 80 * short / (y * b) - 1e5)
    return free(np.column_stack([volume, stress, violation(np.column_stack(limits))]))


def re33(x: Array) -> Values:
    """The disc brake, with what its limits are exceeded by as a third objective (Ray and Liew 2002)."""
    values, limits = disc_brake(x)
    return free(np.column_stack([values, violation(limits)]))


def re37(x: Array) -> Values:
    """Three temperatures and lengths of a rocket injector, as fitted polynomials (Vaidyanathan and others 2003)."""
    a, h, o, p = columns(x)
    squares = np.column_stack([a, h, o, p, a * a, h * a, h * h, o * a, o * h, o * o, p * a, p * h, p * o, p * p])
    face = [0.477, -0.687, -0.080, -0.0650, -0.167, -0.0129, 0.0796, -0.0634, -0.0257, 0.0877, -0.0521, 0.00156]
    length = [-0.322, 0.396, 0.424, 0.0226, 0.175, 0.0185, -0.0701, -0.251, 0.179, 0.0150, 0.0134, 0.0296]
    tip = [-0.205, 0.0307, 0.108, 1.019, -0.135, 0.0141, 0.0998, 0.208, -0.0301, -0.226, 0.353, 0.0]
    cubic = 0.202 * h * a**2 - 0.281 * o * a**2 - 0.342 * h**2 * a - 0.245 * h**2 * o + 0.281 * o**2 * h
    cubic += -0.184 * p**2 * a - 0.281 * h * a * o
    values = (
        0.692 + squares @ [*face, 0.00198, 0.0184],
        0.153 + squares @ [*length, 0.0752, 0.0192],
        0.370 + squares @ [*tip, -0.0497, -0.423] + cubic,
    )
    return free(np.column_stack(values))


def re42(x: Array) -> Values:
    """Transport cost, light weight and cargo (negated) of a bulk carrier, and what nine limits are exceeded by.

    It is the conceptual design of Parsons and Scott 2004 as the RE suite has it: the days at sea are the miles a day
    times the speed, so that the fuel weighs more than the ship carries and the cargo is negative.
    """
    length, beam, depth, draft, knots, block = columns(x)
    displacement = 1.025 * length * beam * draft * block
    froude = 0.5144 * knots / np.sqrt(9.8065 * length)
    drag = np.polyval([4977.06, -8105.61, 4456.51], block) + np.polyval([-10847.2, 12817.0, -6960.32], block) * froude
    power = displacement ** (2 / 3) * knots**3 / drag
    outfit = length**0.8 * beam**0.6 * depth**0.3 * block**0.1
    steel = 0.034 * length**1.7 * beam**0.7 * depth**0.4 * block**0.5
    light = steel + outfit + 0.17 * power**0.9
    capital = 0.2 * 1.3 * (2000 * steel**0.85 + 3500 * outfit + 2400 * power**0.8)
    capacity = displacement - light
    days, fuel = 5000 / 24 * knots, 0.19 * power * 24 / 1000 + 0.2
    cargo = capacity - fuel * (days + 5) - 2 * np.sqrt(capacity)
    trips = 350 / (days + 2 * (cargo / 8000 + 0.5))
    voyages = (1.05 * fuel * days * 100 + 6.3 * capacity**0.8) * trips
    cost = capital + 40000 * capacity**0.3 + voyages
    metacentre = 0.53 * draft + (0.085 * block - 0.002) * beam**2 / (draft * block) - (1 + 0.52 * depth)
    limits = (
        *(6 - length / beam, length / depth - 15, length / draft - 19),
        *(draft - 0.45 * capacity**0.31, draft - 0.7 * depth - 0.7, capacity - 5e5, 3000 - capacity),
        *(froude - 0.32, 0.07 * beam - metacentre),
    )
    values = (cost / (cargo * trips), light, -cargo * trips, violation(np.column_stack(limits)))
    return free(np.column_stack(values))


# All of them


def unit(d: int) -> list[tuple[float, float]]:
    """Return the bounds of the unit cube."""
    return [(0.0, 1.0)] * d


Definition = tuple[list[tuple[float, float]], int, int, Callable[[Array], Values], list[float] | None, float | None]
BRAKE = [(55.0, 80.0), (75.0, 110.0), (1000.0, 3000.0), (11.0, 20.0)]
CAR = [(0.5, 1.5), (0.45, 1.35), (0.5, 1.5), (0.5, 1.5), (0.875, 2.625), (0.4, 1.2), (0.4, 1.2)]
FERMENTER = [(60.0, 120.0), (0.05, 18.0), (293.0, 303.0), (0.05, 18.0), (0.01, 0.5), (500.0, 700.0), (5.0, 6.5)]
OSY = [(0.0, 10.0), (0.0, 10.0), (1.0, 5.0), (0.0, 6.0), (1.0, 5.0), (0.0, 10.0)]
SHIP = [(150.0, 274.32), (20.0, 32.31), (13.0, 25.0), (10.0, 11.71), (14.0, 18.0), (0.63, 0.75)]
ROOT = float(np.sqrt(2))
SPHERE = {2: 1.1**2 - np.pi / 4, 3: 1.1**3 - np.pi / 6}  # the reference's box without the part of a ball
DEFINITIONS: dict[str, Definition] = {  # bounds, objectives, constraints, function, reference, largest hypervolume
    "BraninCurrin": (unit(2), 2, 0, branin_currin, [18.0, 6.0], 59.36011874867746),
    "ZDT1-6": (unit(6), 2, 0, zdt(lambda _, r: 1 - np.sqrt(r)), [11.0, 11.0], 120 + 2 / 3),
    "DTLZ2-6-2": (unit(6), 2, 0, dtlz2(2), [1.1] * 2, SPHERE[2]),
    "VehicleSafety": (
        *([(1.0, 3.0)] * 5, 3, 0, vehicle_safety),
        *([1864.72022, 11.81993945, 0.2903999384], 246.81607081187002),
    ),
    "ConstrainedBraninCurrin": (unit(2), 2, 1, constrained_branin_currin, [80.0, 12.0], 608.4004237022673),
    "ZDT3-6": (unit(6), 2, 0, zdt(zdt3_shape), [11.0, 11.0], 128.77811613069076),
    "DTLZ2-6-3": (unit(6), 3, 0, dtlz2(3), [1.1] * 3, SPHERE[3]),
    "DTLZ7-6-3": (unit(6), 3, 0, dtlz7(3), [15.0] * 3, None),
    "Penicillin": (FERMENTER, 3, 0, penicillin, [25.935, 57.612, 935.5], 2183455.909507436),
    "CarSideImpact": (CAR, 4, 0, car_side_impact, [45.4872, 4.5114, 13.3394, 10.3942], 484.72654347642793),
    "C2DTLZ2-6": (unit(6), 2, 1, c2_dtlz2, [1.1] * 2, 0.3996406303723544),
    "WeldedBeam": ([(0.125, 5.0), (0.1, 10.0), (0.1, 10.0), (0.125, 5.0)], 2, 4, welded_beam, [40.0, 0.015], None),
    "ZDT2-6": (unit(6), 2, 0, zdt(lambda _, r: 1 - r**2), [11.0, 11.0], 120 + 1 / 3),
    "DTLZ7-6-2": (unit(6), 2, 0, dtlz7(2), [15.0] * 2, None),
    "DiscBrake": (BRAKE, 2, 4, disc_brake, [5.7771, 3.9651], None),
    "MW7-6": (unit(6), 2, 2, mw7, [1.2] * 2, None),
    "OSY": (OSY, 2, 6, osy, [-75.0, 75.0], None),
    "RE21": ([(1.0, 3.0), (ROOT, 3.0), (ROOT, 3.0), (1.0, 3.0)], 2, 0, re21, None, None),
    "RE24": ([(0.5, 4.0), (4.0, 50.0)], 2, 0, re24, None, None),
    "RE31": ([(1e-5, 100.0), (1e-5, 100.0), (1.0, 3.0)], 3, 0, re31, None, None),
    "RE33": (BRAKE, 3, 0, re33, None, None),
    "RE37": (unit(4), 3, 0, re37, None, None),
    "RE42": (SHIP, 4, 0, re42, None, None),
}


def build(name: str) -> Problem:
    """Return a problem. Its reference is the judged one if none is published, and not a number before that is found."""
    bounds, m, k, evaluate, reference, largest = DEFINITIONS[name]
    point = judged_reference(name) if reference is None else np.array(reference)
    return Problem(name, np.array(bounds), m, k, evaluate, point, largest)


PROBLEMS = {name: build(name) for name in DEFINITIONS}
