"""Charts as SVG: scales with ticks, and the few shapes that the charts consist of.

Colours are classes of report.css, so that a chart follows the light or dark scheme of the page. Every chart has a title
and a description for screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpmi._support.text import distinct_numbers, shortened
from gpmi._support.types import Array, Numbers
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, joined, short_number, tag
from gpmi.views.html.regions import cell_paths, contour_paths
from gpmi.views.pictures.picture import (
    Band,
    Bundle,
    Hints,
    Level,
    Line,
    Map,
    Mark,
    Note,
    Outline,
    Picture,
    Points,
    Ruler,
    Spans,
    Stripe,
    Texts,
)

LETTER, LINE = 6.2, 13.0  # approximate width of a letter at 11 pixels, and the height of a line
MANY = 200  # with more points on a map the dots are smaller, and those on one pixel become one; our choice
MAX_LEFT = 150.0  # pixels for the names at a y axis, at most


@dataclass(frozen=True)
class Scale:
    """Maps numbers from lo to hi to pixels from begin to end. `named` are the ticks of options, as (value, label)."""

    lo: float
    hi: float
    begin: float
    end: float
    log: bool = False
    named: tuple[tuple[float, str], ...] | None = None
    whole: bool = False
    least: float = -math.inf  # below it there are no ticks

    @staticmethod
    def of(ruler: Ruler, begin: float, end: float) -> Scale:
        """Return the scale of an axis of a picture."""
        return Scale(ruler.lo, ruler.hi, begin, end, ruler.log, ruler.named or None, ruler.whole, ruler.least)

    def __call__(self, values: Array | Sequence[float] | float) -> Array:
        """Return where values lie, in pixels. Values beyond the ends are drawn at the ends."""
        numbers = np.asarray(values, dtype=float)
        lo, hi = (math.log(self.lo), math.log(self.hi)) if self.log else (self.lo, self.hi)
        with np.errstate(divide="ignore", invalid="ignore"):
            line = np.log(numbers) if self.log else numbers
            share = (np.clip(line, lo, hi) - lo) / (hi - lo) if hi > lo else np.full(line.shape, 0.5)
        place: Array = self.begin + share * (self.end - self.begin)
        return place

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Return at most about `most` values with their labels."""
        if self.named is not None:
            step = -(-len(self.named) // max(1, most))
            return list(self.named[::step])
        lo = max(self.lo, self.least)
        values = _log_ticks(lo, self.hi, most) if self.log else _ticks(lo, self.hi, most, self.whole)
        return list(zip(values, distinct_numbers(values), strict=True))


def margin(y: Scale, least: float) -> float:
    """Return the space needed to the left of a chart for the name and the numbers of its y axis."""
    longest = max((len(label) for _, label in y.named or y.ticks(5)), default=0)
    return max(least, min(24.0 + LETTER * longest, MAX_LEFT))


def _ticks(lo: float, hi: float, most: int, whole: bool) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten in [lo, hi]."""
    if not hi > lo:
        return [lo]
    raw = (hi - lo) / max(1, most)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * k for k in (1.0, 2.0, 5.0, 10.0) if power * k >= raw * 0.999)
    step = max(1.0, round(step)) if whole else step
    first, last = math.ceil(lo / step - 1e-9), math.floor(hi / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _log_ticks(lo: float, hi: float, most: int) -> list[float]:
    """Return powers of ten in [lo, hi]; if there are few, also 2 and 5 times them."""
    lo, hi = lo * (1.0 - 1e-10), hi * (1.0 + 1e-10)  # exp(log(1000)) is a little less than 1000
    first, last = math.floor(math.log10(lo)), math.ceil(math.log10(hi))
    powers = [10.0**k for k in range(first, last + 1) if lo <= 10.0**k <= hi]
    if len(powers) >= 2:
        return powers[:: -(-len(powers) // max(2, most))]
    finer = [f * 10.0**k for k in range(first, last + 1) for f in (1.0, 2.0, 5.0) if lo <= f * 10.0**k <= hi]
    return finer or [lo, hi]


# Shapes


def _pair(x: float, y: float) -> str:
    return f"{short_number(round(float(x), 1))},{short_number(round(float(y), 1))}"


def points_of(x: Array, y: Array) -> str:
    """Return places as the points of a polyline, without those that are not finite."""
    return " ".join(_pair(a, b) for a, b in zip(x, y, strict=True) if np.isfinite(a) and np.isfinite(b))


def _runs(x: Array, y: Array) -> list[Numbers]:
    """Return the indices of consecutive finite places; each gap starts another run."""
    (finite,) = np.nonzero(np.isfinite(x) & np.isfinite(y))
    return [run for run in np.split(finite, np.flatnonzero(np.diff(finite) > 1) + 1) if len(run)]


def polyline(x: Array, y: Array, class_: str) -> Markup:
    """Return a line through places, with a gap where one of them is not finite."""
    return joined(*(tag("polyline", points=points_of(x[run], y[run]), class_=class_) for run in _runs(x, y)))


def steps(x: Array, y: Array, class_: str) -> Markup:
    """Return a step line: each y stays until the next x."""
    return polyline(np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1], class_)


def band(x: Array, low: Array, high: Array, class_: str = "area") -> Markup:
    """Return the area between two lines, with a gap where one of them is not finite."""
    return joined(
        *(
            tag("polygon", points=" ".join([points_of(x[run], low[run]), points_of(x[run][::-1], high[run][::-1])]),
                class_=class_)
            for run in _runs(x, low + high)
        )
    )  # fmt: skip


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def dots(x: Array, y: Array, class_: str, radius: float = 2.5) -> Markup:
    """Return round dots as one path: lines of length zero with round ends as wide as the dots."""
    marks = "".join(f"M{_pair(a, b)}h0" for a, b in zip(x, y, strict=True) if np.isfinite(a) and np.isfinite(b))
    return tag("path", d=marks, class_=f"dot {class_}", stroke_width=2.0 * radius) if marks else Markup("")


def ringed(x: Array, y: Array, radius: float = 2.2) -> Markup:
    """Return light dots with a dark ring, which are visible on any colour."""
    return joined(dots(x, y, "ring", radius + 1.0), dots(x, y, "on-map", radius))


def crosses(x: Array, y: Array, class_: str, size: float = 3.0) -> Markup:
    """Return crosses as one path."""
    w = short_number(2 * size)
    marks = "".join(
        f"M{_pair(a - size, b - size)}l{w},{w}m0,-{w}l-{w},{w}" for a, b in zip(x, y, strict=True) if np.isfinite(a + b)
    )
    return tag("path", d=marks, class_=class_) if marks else Markup("")


def star(x: float, y: float, class_: str = "star", size: float = 8.0) -> Markup:
    """Return the mark of the recommended point."""
    if not np.isfinite(x + y):
        return Markup("")
    angles = -np.pi / 2 + np.arange(10) * np.pi / 5
    radii = np.where(np.arange(10) % 2 == 0, size, 0.42 * size)
    return tag("polygon", points=points_of(x + radii * np.cos(angles), y + radii * np.sin(angles)), class_=class_)


def box(x: Array, y: Array, class_: str) -> Markup:
    """Return a rectangle between two places of x and two of y."""
    width, height = max(0.5, float(np.ptp(x))), max(0.5, float(np.ptp(y)))
    return tag("rect", x=float(x.min()), y=float(y.min()), width=width, height=height, class_=class_)


def points(x: Array, y: Array, look: str) -> Markup:
    """Return marks at places."""
    match look:
        case "failed" | "cross":
            return crosses(x, y, look, 2.5)
        case "star" | "star-on-map":
            return joined(*(star(a, b, look) for a, b in zip(x.tolist(), y.tolist(), strict=True)))
        case "front" | "beaten" | "waiting" | "broken":
            return joined(*(kind_mark(look, a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)))
        case "stopped":
            return crosses(x, y, "whisker", 2.5)
        case "end":
            ticks = "".join(f"M{_pair(a, b - 4.0)}v8" for a, b in zip(x, y, strict=True) if np.isfinite(a))
            return tag("path", d=ticks, class_="mean")
        case "at-target" | "before-target":
            ticks = "".join(f"M{_pair(a, b - 4.0)}v8" for a, b in zip(x, y, strict=True))
            return tag("path", d=ticks, class_="thin" if look == "at-target" else "observed") if ticks else Markup("")
        case "running":
            heads = "".join(f"M{_pair(a - 3.0, b - 4.0)}l7,4l-7,4z" for a, b in zip(x, y, strict=True))
            return tag("path", d=heads, class_="bar")
        case "ring":
            finer = 10.0 if len(x) <= MANY else 1.0
            x, y = np.unique(np.round(np.stack([x, y], axis=1) * finer), axis=0).T / finer
            return ringed(x, y, 2.0 if len(x) <= MANY else 1.2)
        case "rug":
            ticks = "".join(f"M{_pair(a, b)}v-7" for a, b in zip(x, y, strict=True) if np.isfinite(a))
            return tag("path", d=ticks, class_=look)
        case "value":
            return dots(x, y, "point", 3.0)
    return dots(x, y, look)


def kind_mark(kind: str, x: float, y: float) -> Markup:
    """Return the mark of a trial beside or on the front."""
    if kind == "broken":
        return tag("path", d=f"M{x - 3.5:.1f},{y - 3.5:.1f}l7,7m0,-7l-7,7", class_="front-mark broken")
    return tag("circle", cx=x, cy=y, r={"front": 6.0, "beaten": 3.5}.get(kind, 4.0), class_=f"front-mark {kind}")


def text(x: float, y: float, content: str, class_: str | None = None, anchor: str | None = None) -> Markup:
    return tag("text", content, x=float(x), y=float(y), class_=class_, text_anchor=anchor)


# Charts


@dataclass
class Chart:
    """A picture with two axes. Parts are drawn in the order in which they are added; `svg` returns the picture."""

    x: Scale
    y: Scale
    width: float
    height: float
    parts: list[Markup] = field(default_factory=list)

    def add(self, *parts: Markup) -> None:
        self.parts += parts

    def names(self) -> None:
        """Add the names of the x axis alone."""
        for value, label in self.x.ticks(len(self.x.named or ())):
            self.add(text(float(self.x(value)), self.y.begin + 15.0, label, "halo", "middle"))

    def axes(self, x_name: str = "", y_name: str = "", *, x_ticks: int = 6, y_ticks: int = 5) -> None:
        """Add grid lines, ticks and names of both axes."""
        left, right = sorted((self.x.begin, self.x.end))
        top, bottom = sorted((self.y.begin, self.y.end))
        ticks = self.x.ticks(x_ticks)
        letters = max(4, int((right - left) / max(1, len(ticks)) / LETTER))
        if self.x.named is None:  # rather leave out a number than cut it off
            ticks = ticks[:: -(-max((len(label) for _, label in ticks), default=1) // letters)]
        for value, label in ticks:
            place = float(self.x(value))
            self.add(line(place, top, place, bottom, "grid"))
            self.add(
                text(place, bottom + 15, label if self.x.named is None else shortened(label, letters), "tick", "middle")
            )
        letters = max(4, int((left - (18 if y_name else 4)) / LETTER))
        for value, label in self.y.ticks(int((bottom - top) / LINE) if self.y.named else y_ticks):
            place = float(self.y(value))
            self.add(line(left, place, right, place, "grid"))
            self.add(
                text(left - 5, place + 4, label if self.y.named is None else shortened(label, letters), "tick", "end")
            )
        self.add(tag("rect", x=left, y=top, width=right - left, height=bottom - top, class_="frame"))
        if x_name:
            self.add(
                text((left + right) / 2, bottom + 32, shortened(x_name, int((right - left) / LETTER)), None, "middle")
            )
        if y_name:
            name = shortened(y_name, max(6, int((bottom - top) / LETTER)))
            at = f"rotate(-90 12 {short_number((top + bottom) / 2)})"
            self.add(tag("text", name, x=12, y=(top + bottom) / 2, transform=at, text_anchor="middle"))

    def svg(self, title: str, desc: str, role: str = "img") -> Markup:
        return picture(self.width, self.height, title, desc, self.parts, role=role)


def picture(
    width: float,
    height: float,
    title: str,
    desc: str,
    parts: Iterable[Child],
    class_: str = "chart",
    role: str = "img",
) -> Markup:
    """Return an SVG element with a title and a description. An image hides links in it from screen readers."""
    return tag(
        "svg",
        tag("title", title),
        tag("desc", desc),
        joined(*parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {short_number(float(width))} {short_number(float(height))}",
        role=role,
        aria_label=title,
        class_=class_,
    )


def figure(drawn: Markup, *caption: Child) -> Markup:
    return tag("figure", drawn, tag("figcaption", *caption) if caption else None)


def key(*entries: tuple[Markup, str]) -> Markup:
    """Return the legend: a list of marks with their meanings."""
    items = [tag("li", tag("svg", mark, viewBox="0 0 32 16", aria_hidden="true"), meaning) for mark, meaning in entries]
    return tag("ul", items, class_="key")


# Pictures


@dataclass(frozen=True)
class Size:
    """The size of a picture in pixels, with what is left around its axes for ticks and names."""

    width: float
    height: float
    left: float = 58.0  # at least
    right: float = 12.0
    top: float = 8.0
    bottom: float = 42.0


SMALL, LARGE = Size(320.0, 230.0), Size(440.0, 230.0)


def drawn(picture: Picture, size: Size = LARGE, *, legend: bool = True) -> Markup:
    """Return a picture as a figure, with its caption and its legend."""
    chart = chart_of(picture, size)
    words = (picture.caption, legend_of(picture) if legend else "")
    return figure(chart.svg(picture.title, picture.words), *(part for part in words if part))


def chart_of(picture: Picture, size: Size, link: Callable[[Trial, str, float, float], Markup] | None = None) -> Chart:
    """Return the axes of a picture with its marks. Stripes lie behind the grid.

    `link` draws a trial with a look at a place, where points have trials.
    """
    y = Scale.of(picture.y, size.height - size.bottom, size.top)
    chart = Chart(Scale.of(picture.x, margin(y, size.left), size.width - size.right), y, size.width, size.height)
    chart.add(*(_shape(chart, mark) for mark in picture.marks if isinstance(mark, Stripe)))
    chart.names() if picture.bare else chart.axes(picture.x.title, picture.y.title)
    for mark in picture.marks:
        if link is not None and isinstance(mark, Points) and mark.trials:
            places = zip(mark.trials, chart.x(mark.x).tolist(), chart.y(mark.y).tolist(), strict=True)
            chart.add(*(link(trial, mark.look, x, y) for trial, x, y in places))
        elif not isinstance(mark, Stripe):
            chart.add(_shape(chart, mark))
    return chart


def legend_of(*pictures: Picture) -> Markup:
    """Return the marks of pictures that have a label, each label once."""
    marks = {mark.label: _sample(mark) for picture in pictures for mark in picture.marks[::-1] if mark.label}
    return key(*((sample, label) for label, sample in reversed(marks.items()))) if marks else Markup("")


def _shape(chart: Chart, mark: Mark) -> Markup:
    """Return a mark in the pixels of a chart."""
    x, y = chart.x, chart.y
    match mark:
        case Line():
            return (steps if mark.steps else polyline)(x(mark.x), y(mark.y), mark.look)
        case Bundle():
            at = x(mark.x)
            return joined(*(polyline(at, heights, mark.look) for heights in y(mark.y)))
        case Texts():
            places = zip(x(mark.x).tolist(), y(mark.y).tolist(), mark.texts, strict=True)
            return joined(*(text(left + 4.0, height + 4.0, words, mark.look) for left, height, words in places))
        case Band():
            at, low, high = x(mark.x), y(mark.low), y(mark.high)
            if mark.steps:
                at, low, high = np.repeat(at, 2)[1:], np.repeat(low, 2)[:-1], np.repeat(high, 2)[:-1]
            return band(at, low, high, mark.look)
        case Outline():
            return tag("polygon", points=points_of(x(mark.x), y(mark.y)), class_=mark.look)
        case Points():
            return points(x(mark.x), y(mark.y), mark.look)
        case Spans():
            return _spans(chart, mark)
        case Level(at, "x"):
            return line(float(x(at)), y.end, float(x(at)), y.begin, mark.look)
        case Level(at):
            return line(x.begin, float(y(at)), x.end, float(y(at)), mark.look)
        case Stripe(low, high, "x"):
            return box(x([low, high]), np.array([y.begin, y.end]), mark.look)
        case Stripe(low, high):
            return box(np.array([x.begin, x.end]), y([low, high]), mark.look)
        case Map():
            return _map(chart, mark)
        case Hints():
            ends = np.array([y.begin, y.end])
            columns = [box(x([at - 0.5, at + 0.5]), ends, mark.look) for at in mark.x.tolist()]
            described = zip(mark.texts, columns, strict=True)
            return joined(*(tag("g", tag("title", words), column) for words, column in described))
        case Note():
            return text(0.5 * (x.begin + x.end), 0.5 * (y.begin + y.end), mark.text, mark.look, "middle")


def _map(chart: Chart, mark: Map) -> Markup:
    x, y = chart.x(mark.x), chart.y(mark.y)
    if mark.has_cells:
        levels = np.searchsorted(mark.levels[1:-1], mark.values, side="right")
        paths = cell_paths(x, y, levels, np.isfinite(mark.values))
    else:
        paths = contour_paths(x, y, mark.values, mark.levels[:-1])
    return joined(*(tag("path", d=path, fill=mark.colours[level]) for level, path in paths.items()))


def _spans(chart: Chart, mark: Spans) -> Markup:
    values, places = (chart.x, chart.y) if mark.lie else (chart.y, chart.x)
    half = 0.5 * abs(float(places(mark.width) - places(0.0))) if mark.width else 3.0
    parts = []
    for at, low, high in np.stack([places(mark.at), values(mark.low), values(mark.high)], axis=1).tolist():
        if mark.look == "whisker":
            ends = [(low, at - half, low, at + half), (low, at, high, at), (high, at - half, high, at + half)]
            parts += [line(*(end if mark.lie else (end[1], end[0], end[3], end[2])), mark.look) for end in ends]
        elif np.isfinite(at + low + high):
            sides = np.array([low, high]), np.array([at - half, at + half])
            parts.append(box(*(sides if mark.lie else sides[::-1]), mark.look))
    return joined(*parts)


def _sample(mark: Mark) -> Markup:
    """Return what a mark looks like in a legend."""
    match mark:
        case Points():
            return points(np.array([16.0]), np.array([8.0]), mark.look)
        case Line() | Bundle() | Level() | Spans(look="whisker"):
            return line(2, 8, 30, 8, mark.look)
        case Spans():
            return box(np.array([2.0, 30.0]), np.array([3.0, 13.0]), mark.look)
    return box(np.array([0.0, 32.0]), np.array([0.0, 16.0]), mark.look)
