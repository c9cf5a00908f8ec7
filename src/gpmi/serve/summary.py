"""The card "What is known" on the page of a study: best result, point to use, advice. Also the pictures below it."""

from __future__ import annotations

from gpmi._support.text import round_to_sd
from gpmi.analysis.ledger import HEADING
from gpmi.serve.best_so_far import BestSoFar, coordinates
from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.model_worker import STATISTICS, StudySummary
from gpmi.serve.session import Session, StudySnapshot
from gpmi.storage import point_to_json
from gpmi.views.html import Section
from gpmi.views.html.markup import Child, Markup, sentence, tag


def summary_card(session: Session, snapshot: StudySnapshot, live: LiveUpdates, best: BestSoFar) -> Markup:
    parts = [*best.headline(), _model_summary(session, live, best)]
    parts.append(tag("p", tally(snapshot), class_="tally", id="tally"))
    if snapshot.budget is not None:
        done = str(min(snapshot.done, snapshot.budget))
        parts.append(tag("progress", value=done, max=str(snapshot.budget), aria_labelledby="tally"))
    inner = tag("div", parts, id="known", data_live=True)
    return tag(
        "aside", tag("h2", "What is known", id="known-title"), inner, class_="card known", aria_labelledby="known-title"
    )


def tally(snapshot: StudySnapshot) -> str:
    """Return how many experiments are done, waiting and left of those that were planned, as one line."""
    counts = {status: sum(trial.status == status for trial in snapshot.trials) for status in ("failed", "stopped")}
    counts["incomplete"] = len(snapshot.missing)
    among = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    done, waiting = f"{snapshot.done} done" + (f" ({among})" if among else ""), len(snapshot.pending)
    words = [done, *([f"{waiting} waiting"] if waiting or snapshot.budget is None else [])]
    if snapshot.budget is None:
        return ", ".join(words)
    if snapshot.done + waiting > snapshot.budget:
        return f"{', '.join(words)}, {snapshot.budget} were planned"
    return f"{', '.join(words)}, {snapshot.unplanned} left of {snapshot.budget} planned"


def _model_summary(session: Session, live: LiveUpdates, best: BestSoFar) -> Child:
    """Return what the model says, as far as it has been computed."""
    if live.summary is None:
        return tag("p", "Working out what the results mean …", class_="muted working")
    seq, now = live.summary
    parts: list[Child] = []
    if seq < live.state["seq"]:  # comes first: what follows may rest on a result that was corrected since
        text = "Working out what the latest results mean … Until then, the summary below is out of date."
        parts.append(tag("p", text, class_="muted working"))
    if now.recommended is not None and now.t:
        trial = best.snapshot.best
        same = trial is not None and now.recommended == point_to_json(session.space, trial.x)
        parts += [
            tag("h3", "The point to use"),
            tag("p", "What should work best, judged from all results.", class_="muted"),
            tag("p", "The same point.") if same else coordinates(session, now.recommended),
            tag("p", "Expected there: ", tag("strong", expected(now.believed, best.unit)), id="expected")
            if now.believed is not None
            else None,
        ]
    decision = now.facts.decision
    kind = decision.advice.what.replace(" ", "-")  # a class of report.css
    parts += [tag("h3", HEADING), tag("p", decision.text, class_=f"advice {kind}", id="answer")]
    for doubt in now.facts.doubts:
        link = tag("a", f"Trial {doubt['trial']}", href=f"{best.at}/trial/{doubt['trial']}")
        parts.append(tag("p", link, f": {doubt['why']}"))
    parts += [tag("details", tag("summary", section.title), Markup(section.html)) for section in now.options]
    if live.problem:
        parts.append(tag("p", f"The model could not be computed: {live.problem}", class_="problem"))
    return parts


def expected(believed: tuple[float, float, float], unit: str = "") -> str:
    """Return what is expected at a point, with its standard deviation."""
    low, middle, high = believed
    sd = 0.5 * abs(high - low)
    return f"{round_to_sd(middle, sd)} ± {round_to_sd(sd, sd)} {unit}".strip()


def _statistics(now: StudySummary) -> list[Child]:
    """Return the reason for the answer, the numbers behind it, and those for statisticians."""
    facts = now.facts
    lines = [f"{name}: {text}" for name, text in (*facts.numbers, *facts.statistics)]
    return [tag("p", line) for line in (sentence(facts.decision.why), *lines)]


def pictures(live: LiveUpdates) -> Markup:
    """Return the pictures, each in a fold, and all that only statisticians need in one fold below them."""
    if live.pictures is None:
        return tag("div", tag("p", "Pictures are being drawn …", class_="muted working"), id="pictures", data_live=True)
    plain = [_folded(section) for section in live.pictures[1] if section.id not in STATISTICS]
    others = [_section(section) for section in live.pictures[1] if section.id in STATISTICS]
    numbers = [] if live.summary is None else _statistics(live.summary[1])
    inside = tag("div", numbers, class_="card") if numbers else None
    fold = tag("details", tag("summary", "For statisticians"), inside, others, id="statistics", class_="card fold")
    return tag("div", plain, fold if numbers or others else None, id="pictures", data_live=True)


def _folded(section: Section) -> Markup:
    """Return a section in a fold, which the script closes where there is little room."""
    return tag(
        "details",
        tag("summary", tag("h2", section.title)),
        Markup(section.html),
        id=section.id,
        open=True,
        class_="card fold picture",
    )


def _section(section: Section) -> Markup:
    return tag("section", tag("h2", section.title, id=f"{section.id}-title"), Markup(section.html), id=section.id,
               aria_labelledby=f"{section.id}-title")  # fmt: skip
