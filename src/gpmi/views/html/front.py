"""The front as pictures with sliders and recipes. Reports and the pages of `gpmi serve` share it.

Without a script the pictures are plain: a point has a tooltip, one on the front is a link, and one recipe is shown. The
script of the report adds the sliders: they fade what they exclude and show the recipe that is left. A click shows the
recipe behind a point.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from gpmi._support.text import rounded, shortened
from gpmi.analysis import FrontBands
from gpmi.trials import Goals, Match, Trial
from gpmi.views.front_view import complete, pairs_of, shown_values, sign_of
from gpmi.views.html.markup import Markup, tag
from gpmi.views.html.svg import Size, chart_of, figure, kind_mark, legend_of
from gpmi.views.pictures.front import NAME, front_of
from gpmi.views.pictures.picture import Picture

# Our choices.
MAX_OTHERS = 600  # trials beside the front that are drawn in all pictures together: the latest ones
STEPS = 200  # of a slider
ANY = "any"  # what a slider allows that was not moved
SIZE = Size(520.0, 340.0, right=16.0, top=12.0, bottom=44.0)


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
    pictures = [front_of(goals, pair, drawn, front, bands(*pair), middle) for pair in pairs]

    def point(trial: Trial, kind: str, x: float, y: float) -> Markup:
        return _point(goals, trial, kind, x, y, texts[trial.number], link)

    shown = middle if middle in {trial.number for trial in chosen} else chosen[0].number if chosen else None
    cards = [_card(texts[trial.number], trial.number, trial.number == shown) for trial in chosen]
    side = tag(
        "div",
        tag("p", "Move a slider, or click a blue point, to see the recipe behind it.", class_="muted tools js"),
        tag("p", "", class_="front-none muted", hidden=True),
        tag("div", cards, class_="front-recipes", role="status", aria_label="Recipe"),
        class_="front-side",
    )
    legend = legend_of(*pictures)
    fewer = (
        tag("p", f"The latest {most} of {len(others)} other trials are drawn.", class_="muted") if left_out else None
    )
    return tag(
        "div",
        _sliders(goals, chosen) if chosen else None,
        tag(
            "div",
            [figure(_drawn(picture, point), *([legend] if len(pictures) == 1 else [])) for picture in pictures],
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


def _drawn(picture: Picture, point: Callable[[Trial, str, float, float], Markup]) -> Markup:
    """Return a picture with links in it."""
    return chart_of(picture, SIZE, point).svg(picture.title, picture.words, role="group")


def _point(
    goals: Goals,
    trial: Trial,
    kind: str,
    x: float,
    y: float,
    recipe: Recipe,
    link: Callable[[Trial], str] | None,
) -> Markup:
    """Return a point with a tooltip. Those on the front are links in the order of the Tab key."""
    on_front = kind == "front"
    href = f"#front-{trial.number}" if on_front else None if link is None else link(trial)
    values = [float(shown_values([trial], name, goal)[0]) for name, goal in goals.objectives.items()]
    return tag(
        "g" if href is None else "a",
        tag("title", recipe.tooltip),
        tag("circle", cx=x, cy=y, r=12.0 if on_front else 7.0, class_="front-target"),
        kind_mark(kind, x, y),
        href=href,
        aria_label=recipe.tooltip if on_front else None,
        tabindex=None if on_front or href is None else "-1",
        class_=f"front-point {kind}",
        data_number=str(trial.number),
        data_values=" ".join(f"{value:.9g}" for value in values),
    )


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
