"""The front as pictures with sliders and recipes. Reports and the pages of `gpmi serve` share it.

Without a script the pictures are plain: a point has a tooltip, one on the front is a link, and one recipe is shown. The
script of the report adds the sliders: they fade what they exclude and show the recipe that is left. A click shows the
recipe behind a point.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpmi._support.text import percent, rounded, shortened
from gpmi._support.types import Array
from gpmi.analysis import FrontBands
from gpmi.trials import Trial
from gpmi.trials.goals import Goals, Match, Objective
from gpmi.views.front_view import (
    KINDS,
    Kind,
    better,
    complete,
    kind_of,
    pairs_of,
    shown_values,
    sign_of,
    staircase,
    stated,
    title_of,
)
from gpmi.views.html.markup import Markup, joined, short_number, tag
from gpmi.views.html.svg import Chart, Scale, figure, fitted, key, line, margin, points_of, polyline, star

# Our choices.
MAX_OTHERS = 600  # trials beside the front that are drawn in all pictures together: the latest ones
STEPS = 200  # of a slider
ANY = "any"  # what a slider allows that was not moved
NAME = 40  # characters of the name of an output, at most
WIDTH, HEIGHT = 520.0, 340.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 16.0, 12.0, 44.0


@dataclass(frozen=True)
class Recipe:
    """A trial in words: its title, its outputs and its coordinates as pairs (name, text), and a note."""

    title: str
    outputs: Sequence[tuple[str, str]]
    x: Sequence[tuple[str, str]]
    note: str = ""
    href: str | None = None  # where the title leads

    @property
    def tooltip(self) -> str:
        """All of it in one line."""
        outputs, x = (", ".join(f"{name} {text}" for name, text in pairs) for pairs in (self.outputs, self.x))
        return "; ".join(text for text in (f"{self.title}: {outputs}", shortened(x, 300), self.note) if text)


def trade_offs(
    goals: Goals,
    trials: Sequence[Trial],
    front: Collection[int],
    recipe: Callable[[Trial], Recipe],
    *,
    bands: Callable[[str, str], FrontBands | None] = lambda x, y: None,
    middle: int | None = None,
    link: Callable[[Trial], str] | None = None,
) -> Markup:
    """Return the front of several objectives: sliders, a picture of each pair of objectives, and recipes.

    `front` are the numbers of the trials on the front, and `middle` is the one whose recipe is shown first. `recipe`
    puts a trial into words. `bands` returns where the model believes the front of two objectives to be. `link` is the
    address of a trial that is not on the front; one on the front links to the element with the id front-<number>.
    """
    measured = complete(trials, goals)
    pairs = pairs_of(goals)
    chosen = [trial for trial in measured if trial.number in front]
    others = [trial for trial in measured if trial.number not in front]
    most = MAX_OTHERS // max(1, len(pairs))
    left_out = max(0, len(others) - most)
    drawn = others[left_out:] + chosen  # the front is drawn on top
    texts = {trial.number: recipe(trial) for trial in drawn}
    pictures = [_picture(goals, x, y, drawn, front, texts, bands(x, y), middle, link) for x, y in pairs]
    shown = middle if middle in {trial.number for trial in chosen} else chosen[0].number if chosen else None
    cards = [_card(texts[trial.number], trial.number, trial.number == shown) for trial in chosen]
    side = tag(
        "div",
        tag("p", "Move a slider, or click a blue point, to see the recipe behind it.", class_="muted tools js"),
        tag("p", "", class_="front-none muted", hidden=True),
        tag("div", cards, class_="front-recipes", role="status", aria_label="Recipe"),
        class_="front-side",
    )
    meanings = {meaning: mark for picture in pictures for mark, meaning in picture.legend}
    legend = key(*((mark, meaning) for meaning, mark in meanings.items()))
    words = f"The latest {most} of {len(others)} other trials are drawn."
    fewer = tag("p", words, class_="muted") if left_out else None
    return tag(
        "div",
        _sliders(goals, chosen) if chosen else None,
        tag(
            "div",
            [figure(picture.svg, *([legend] if len(pictures) == 1 else [])) for picture in pictures],
            side if chosen else None,
            class_="front-view" if len(pictures) == 1 else "front-view figures large",
        ),
        legend if len(pictures) > 1 else None,
        fewer,
        class_="front-tool",
    )


def _card(recipe: Recipe, number: int, is_shown: bool) -> Markup:
    """Return the recipe of a trial. All but one are hidden until the script shows them."""
    title = recipe.title if recipe.href is None else tag("a", recipe.title, href=recipe.href)
    lists = [
        tag("dl", [tag("div", tag("dt", name), tag("dd", text)) for name, text in pairs])
        for pairs in (recipe.outputs, recipe.x)
    ]
    note = tag("p", recipe.note, class_="muted") if recipe.note else None
    return tag(
        "div", tag("h3", title), *lists, note, class_="front-recipe", data_number=str(number), hidden=not is_shown
    )


# Pictures


class Pair(NamedTuple):
    """A picture of two objectives, and the meaning of its marks."""

    svg: Markup
    legend: list[tuple[Markup, str]]


def _picture(
    goals: Goals,
    x: str,
    y: str,
    trials: Sequence[Trial],
    front: Collection[int],
    recipes: Mapping[int, Recipe],
    bands: FrontBands | None,
    middle: int | None,
    link: Callable[[Trial], str] | None,
) -> Pair:
    """Return a picture of two objectives x and y of trials, all of which have both."""
    pair = (goals.objectives[x], goals.objectives[y])
    places = np.stack([shown_values(trials, name, goal) for name, goal in zip((x, y), pair, strict=True)], axis=1)
    kinds = [kind_of(trial, front) for trial in trials]
    on_front = places[[kind == "front" for kind in kinds]]
    borders = np.empty((0, 2)) if bands is None else np.concatenate([bands.low, bands.median, bands.high])
    vertical = _scale(pair[1], places[:, 1], on_front[:, 1], borders[:, 1], HEIGHT - BOTTOM, TOP)
    horizontal = _scale(pair[0], places[:, 0], on_front[:, 0], borders[:, 0], margin(vertical, LEFT), WIDTH - RIGHT)
    chart = Chart(horizontal, vertical, WIDTH, HEIGHT)
    names = [shortened(title_of(name, goal), NAME) for name, goal in zip((x, y), pair, strict=True)]
    chart.axes(*(f"{name}, {better(goal)}" for name, goal in zip(names, pair, strict=True)))
    if bands is not None:
        chart.add(*_band(chart, bands))
    worst = [stated(goal) for goal in pair]
    if len(goals.objectives) == 2 and len(on_front):
        reference = None if None in worst else np.array(worst, dtype=float)
        corners = staircase(on_front, np.array([sign_of(goal) for goal in pair]), reference)
        chart.add(polyline(horizontal(corners[:, 0]), vertical(corners[:, 1]), "front-stairs"))
    chart.add(*_stated_lines(chart, worst))
    for trial, place, kind in zip(trials, places.tolist(), kinds, strict=True):
        chart.add(_point(chart, goals, trial, place, kind, recipes[trial.number], link))
    at = [place for trial, place in zip(trials, places.tolist(), strict=True) if trial.number == middle]
    chart.add(*(star(float(horizontal(a)), float(vertical(b)), "star front-middle", 8.0) for a, b in at))
    legend = [(_mark(kind, 16.0, 8.0), meaning) for kind, meaning in KINDS.items() if kind in kinds]
    legend += [(star(16.0, 8.0), f"trial {middle}")] if at else []
    if bands is not None:
        alone = " of these two alone" if len(goals.objectives) > 2 else ""
        text = f"the best possible front{alone}, with probability {percent(bands.level)}"
        legend.append((tag("rect", x=0, y=0, width=32, height=16, class_="area"), text))
    legend += [(line(2, 8, 30, 8, "reference"), "the worst that is acceptable")] if worst != [None, None] else []
    desc = f"{len(on_front)} trials on the front and {len(trials) - len(on_front)} others. The tables have the numbers."
    return Pair(_group(f"{names[0]} and {names[1]}", desc, chart), legend)


def _group(title: str, desc: str, chart: Chart) -> Markup:
    """Return an SVG element with links in it. The role of `picture` would hide them from screen readers."""
    return tag(
        "svg",
        tag("title", title),
        tag("desc", desc),
        joined(*chart.parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {short_number(WIDTH)} {short_number(HEIGHT)}",
        role="group",
        aria_label=title,
        class_="chart",
    )


def _band(chart: Chart, bands: FrontBands) -> tuple[Markup, Markup]:
    """Return where the model believes the front to be, and the middle of it."""
    ends = (bands.low, bands.high[::-1])
    outline = " ".join(points_of(chart.x(end[:, 0]), chart.y(end[:, 1])) for end in ends)
    median = polyline(chart.x(bands.median[:, 0]), chart.y(bands.median[:, 1]), "front-median")
    return tag("polygon", points=outline, class_="area"), median


def _scale(goal: Objective, values: Array, front: Array, band: Array, begin: float, end: float) -> Scale:
    """Return a scale that shows the front, its band, what is acceptable if that is near, and all but extreme values.

    Values that span a factor of 200 have a logarithmic scale, but not distances, which may be 0.
    """
    low, high = np.quantile(values, [0.05, 0.95])
    reach = 1.5 * (high - low)
    inner = np.concatenate([values[(values >= low - reach) & (values <= high + reach)], front])
    worst, wide = stated(goal), float(np.ptp(inner))
    if worst is not None and inner.min() - wide <= worst <= inner.max() + wide:
        inner = np.append(inner, worst)
    scale = fitted(inner, begin, end)
    if scale.log and not isinstance(goal, Match):
        return scale
    return fitted(np.concatenate([inner, band]), begin, end, wide=np.inf)


def _stated_lines(chart: Chart, worst: Sequence[float | None]) -> list[Markup]:
    """Return the worst acceptable values as dashed lines."""
    lines = []
    for value, scale in zip(worst, (chart.x, chart.y), strict=True):
        if value is not None and scale.lo <= value <= scale.hi:
            at = float(scale(value))
            ends = (at, TOP, at, HEIGHT - BOTTOM) if scale is chart.x else (chart.x.begin, at, chart.x.end, at)
            lines.append(line(*ends, "reference"))
    return lines


def _point(
    chart: Chart,
    goals: Goals,
    trial: Trial,
    place: Sequence[float],
    kind: Kind,
    recipe: Recipe,
    link: Callable[[Trial], str] | None,
) -> Markup:
    """Return a point with a tooltip. Those on the front are links in the order of the Tab key."""
    at = float(chart.x(place[0])), float(chart.y(place[1]))
    on_front = kind == "front"
    href = f"#front-{trial.number}" if on_front else None if link is None else link(trial)
    values = [float(shown_values([trial], name, goal)[0]) for name, goal in goals.objectives.items()]
    return tag(
        "g" if href is None else "a",
        tag("title", recipe.tooltip),
        tag("circle", cx=at[0], cy=at[1], r=12.0 if on_front else 7.0, class_="front-target"),
        _mark(kind, *at),
        href=href,
        aria_label=recipe.tooltip if on_front else None,
        tabindex=None if on_front or href is None else "-1",
        class_=f"front-point {kind}",
        data_number=str(trial.number),
        data_values=" ".join(f"{value:.9g}" for value in values),
    )


def _mark(kind: Kind, x: float, y: float) -> Markup:
    if kind == "broken":
        return tag("path", d=f"M{x - 3.5:.1f},{y - 3.5:.1f}l7,7m0,-7l-7,7", class_="front-mark broken")
    return tag("circle", cx=x, cy=y, r={"front": 6.0, "beaten": 3.5}.get(kind, 4.0), class_=f"front-mark {kind}")


# Sliders


def _sliders(goals: Goals, front: Sequence[Trial]) -> Markup:
    """Return a slider for each objective, from its worst to its best value on the front. The script fades the rest."""
    controls = []
    for i, (name, goal) in enumerate(goals.objectives.items()):
        values = shown_values(front, name, goal)
        lo, hi = float(values.min()), float(values.max())
        sense, start = ("least", 0) if sign_of(goal) > 0.0 else ("most", STEPS)
        words = f"at {sense}"
        if isinstance(goal, Match):
            words = f"within … of {rounded(goal.target)}"
        control = tag(
            "input", type="range", min="0", max=str(STEPS), value=str(start), disabled=lo == hi, autocomplete="off",
            data_index=str(i), data_lo=repr(lo), data_hi=repr(hi), data_sense=sense, data_start=str(start),
            data_words=words, class_="front-limit",
        )  # fmt: skip
        name = shortened(name, NAME)
        controls.append(tag("label", tag("span", f"{name}: ", tag("strong", ANY, class_="front-value")), control))
    trials = "trial on the front is" if len(front) == 1 else "trials on the front are"
    left = f"{len(front)} of {len(front)} {trials} left."
    return tag(
        "fieldset",
        tag("legend", "What do you need?"),
        tag("div", controls, class_="front-limits"),
        tag("p", left, class_="front-left muted", role="status"),
        class_="tools js",
    )
