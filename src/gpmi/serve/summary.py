"""What is known of a study, as HTML: the best result, the point to use, how far it may be off, and what is advised."""

from __future__ import annotations

from gpmi._support.text import rough, round_to_sd, rounded
from gpmi._support.types import Point
from gpmi.serve.fields import values_in_words
from gpmi.serve.live import Live
from gpmi.serve.session import Desk, Look
from gpmi.storage.serialization import point_to_json
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, tag

HEADS = {"stop": "You may stop", "go on": "Go on", "distrust": "Do not trust the model yet"}


def known(desk: Desk, look: Look, live: Live, at: str) -> Markup:
    counts = {status: sum(trial.status == status for trial in look.trials) for status in ("told", "failed", "pending")}
    word = "Largest" if desk.goal == "max" else "Smallest"
    parts: list[Child] = []
    if look.best is None:
        parts.append(tag("p", "Nothing has been measured yet.", class_="empty"))
    else:
        best = look.best
        label = "" if best.label is None else f", row {best.label}"
        parts += [
            tag("p", f"{word} result so far", class_="muted over"),
            tag("p", rounded(best.y), class_="big"),
            tag("p", tag("a", f"trial {best.number}", href=f"{at}/trial/{best.number}"), label, class_="muted"),
            _point(desk, best.x),
        ]
    parts.append(_believed(desk, live, look.best))
    done = counts["told"] + counts["failed"]
    tally = [f"{counts['told']} results", f"{counts['pending']} waiting"]
    tally += [f"{counts['failed']} failed"] if counts["failed"] else []
    parts.append(tag("p", " · ".join(tally), class_="tally"))
    if look.budget is not None:
        parts.append(
            tag(
                "label",
                tag("span", f"{done} of {look.budget} planned"),
                tag("progress", value=str(min(done, look.budget)), max=str(look.budget)),
                class_="field",
            )
        )
    inner = tag("div", parts, id="known", data_live=True)
    return tag(
        "aside", tag("h2", "What is known", id="known-title"), inner, class_="card known", aria_labelledby="known-title"
    )


def _point(desk: Desk, x: Point) -> Markup:
    items = [
        tag("div", tag("dt", one.name), tag("dd", f"{words} {one.unit}".strip()))
        for one, words in values_in_words(desk.fields, x)
    ]
    return tag("dl", items)


def _believed(desk: Desk, live: Live, best: Trial | None) -> Child:
    """What the model says, as far as it has been computed."""
    if live.known is None:
        return tag("p", "Working out what this tells …", class_="muted working")
    seq, now = live.known
    parts: list[Child] = []
    if seq < live.state["seq"]:  # said first: a result that was corrected may be in what follows
        words = "Working out what the last results tell … Until then, this is from before them."
        parts.append(tag("p", words, class_="muted working"))
    if now.recommended is not None and now.believed is not None:
        low, middle, high = now.believed
        sd = 0.5 * abs(high - low)
        same = best is not None and now.recommended == point_to_json(desk.space, best.x)
        parts += [
            tag("h3", "The point to use"),
            tag("p", "The same one.") if same else _point(desk, now.recommended),
            tag("p", f"Expected there: {round_to_sd(middle, sd)} ± {round_to_sd(sd, sd)}"),
        ]
    if now.interval is not None and now.t > 1:
        bound = tag("strong", rough(now.interval[1]))
        parts.append(
            tag(
                "p",
                "It falls short of the best there is by at most ",
                bound,
                ", with probability 95 %, as far as the model can know.",
            )
        )
    elif now.regret and now.t:
        parts.append(tag("p", f"How far that is from the best there is: {now.regret}."))
    sentence = now.why[:1].upper() + now.why[1:] + "."
    parts.append(
        tag("p", tag("strong", f"{HEADS[now.advice]}. "), sentence, class_=f"advice {now.advice.replace(' ', '-')}")
    )
    if live.trouble:
        parts.append(tag("p", f"The model could not be computed: {live.trouble}", class_="problem"))
    return parts


def pictures(live: Live) -> Markup:
    if live.pictures is None:
        inner: Child = tag("p", "Pictures are being drawn …", class_="muted working")
    else:
        inner = [
            tag("section", tag("h2", one.title, id=f"{one.id}-title"), Markup(one.html), id=one.id, class_="card",
                aria_labelledby=f"{one.id}-title")
            for one in live.pictures[1]
        ]  # fmt: skip
    return tag("div", inner, id="pictures", data_live=True)
