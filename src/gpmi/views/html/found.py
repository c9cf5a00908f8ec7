"""What was found, in words: the best value, the recommended point, and what the ledger advises."""

from __future__ import annotations

from collections.abc import Sequence

from gpmi._support.text import UNKNOWN, not_covered, rough, round_to_sd, rounded
from gpmi._support.types import Point
from gpmi.analysis.ledger.advice import advise
from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.html.subject import Subject
from gpmi.views.html.tables import cell, copy_button, exact, simple_table

HEADS = {"stop": "Stop", "go on": "Go on", "distrust": "Distrust the model"}


def found(subject: Subject) -> Markup:
    """The best and the recommended point in words and as a table of their coordinates."""
    best, counts = subject.best, subject.counts
    outcomes = ", ".join(
        f"{counts[s]} {s}" for s in ("told", "pending", "failed", "rejected", "retracted") if counts[s]
    )
    said = [tag("p", f"{len(subject.trials)} trials: {outcomes or 'none so far'}.", _stopped(subject))]
    if best is None:
        why = "No value has been told yet." if not subject.told else "No value that keeps to its constraints was told."
        return joined(*said, tag("p", why))
    word = "largest" if subject.goal == "max" else "smallest"
    feasible = " feasible" if best.constraints else ""
    label = "" if best.label is None else f", row {best.label}"
    said += [
        tag(
            "p",
            f"The {word}{feasible} value observed is ",
            tag("strong", rounded(best.y)),
            f", trial {best.number}{label}.",
            class_="lead",
        )
    ]
    points: list[tuple[str, Point]] = [("best observed", best.x)]
    if subject.believed is not None:
        low, middle, high = subject.believed
        same = exact_point(subject, best.x) == exact_point(subject, subject.recommended)
        at = "the same point" if same else "the point with the best posterior mean"
        words = f"To use when y is noisy: {at}. There f is believed to be "
        least, mean, most = (round_to_sd(value, 0.5 * abs(high - low)) for value in (low, middle, high))
        said += [tag("p", words, tag("strong", mean), f", {least} to {most} at one standard deviation.")]
        points += [] if same else [("recommended", subject.recommended)]
    else:
        said += [tag("p", "There is no model of these values, so nothing is recommended.")]
    return joined(*said, _points(subject, points))


def exact_point(subject: Subject, x: Point) -> list[str]:
    return [exact(value) for value in subject.values(x)]


def _stopped(subject: Subject) -> str:
    if subject.reason is not None:
        return f" The run stopped: {subject.reason}."
    return "" if subject.budget is None else f" The budget is {subject.budget}."


def _points(subject: Subject, points: Sequence[tuple[str, Point]]) -> Markup:
    """The coordinates of points, a row for each parameter, with a button that copies each point."""
    columns = [subject.values(x) for _, x in points]
    rows = [
        [tag("th", name, scope="row"), *(cell(column[j]) for column in columns)]
        for j, name in enumerate(subject.titles)
    ]
    buttons = []
    for title, x in points:
        text = "\n".join(
            f"{name}\t{exact(value)}" for name, value in zip(subject.names, subject.values(x), strict=True)
        )
        buttons.append(copy_button(f"Copy the {title} point", text))
    head = ["parameter", *(title for title, _ in points)]
    return joined(simple_table("The points, parameter by parameter", head, rows), tag("p", buttons, class_="tools js"))


def advice(subject: Subject) -> Markup:
    """What the ledger advises, and what is behind it."""
    if subject.ledger is None:
        return joined(tag("p", tag("strong", "Go on. "), "There is no model yet: tell values first."))
    ledger, given = subject.ledger, advise(subject.ledger)
    regret = ledger.regret()
    simple = regret.in_words[0] if regret.known else UNKNOWN
    lock_in = ledger.lock_in
    lines = [
        ("simple regret", simple),
        *([] if ledger.setting.priors.is_fixed else [not_covered(failures=bool(ledger.failures))]),
        ("one more evaluation", f"is expected to gain at most {rough(ledger.improvement, 2)}"),
        ("noise of a value", f"{rough(ledger.noise_sd, 2)} (standard deviation)"),
        ("calibration", f"{ledger.calibration.verdict}: {ledger.calibration.reason}"),
        ("lock-in", "none" if lock_in is None else lock_in.reason),
    ]
    rows = [[tag("th", name, scope="row"), tag("td", text, class_="words")] for name, text in lines]
    mood = given.what.replace(" ", "-")
    return joined(
        tag(
            "p",
            tag("strong", f"{HEADS[given.what]}. "),
            given.why[:1].upper() + given.why[1:] + ".",
            class_=f"advice {mood}",
        ),
        tag(
            "p",
            "The simple regret is how much the recommended point falls short of the optimum: ",
            "max f - f(recommended)." if subject.goal == "max" else "f(recommended) - min f.",
        ),
        simple_table("What the ledger knows", ["quantity", "value"], rows),
    )
