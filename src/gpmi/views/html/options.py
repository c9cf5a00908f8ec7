"""The options of each choice as a table: the chance to hold the best, the best believed with its setting, values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpmi._support.text import percent, shortened
from gpmi.analysis.ledger import OptionSummary
from gpmi.views.html.markup import Markup, cell, exact, joined, shown, simple_table, tag
from gpmi.views.run_view import RunView

NAME = 40  # characters of a name or of an option, at most
SHOWN = 12  # options of a choice in a table; our choice


def options(run: RunView) -> Markup | None:
    """Return a table of the options of each choice, the most likely one first; for each objective. None if unknown."""
    choices: dict[tuple[str, str], list[OptionSummary]] = {}
    for option in run.options:
        if option.chance is not None:
            choices.setdefault((option.output, option.parameter), []).append(option)
    if not choices:
        return None
    lead = "Each option is judged at its own best setting of the other parameters. "
    lead += "The chance is that the best of all has this option."
    tables = (_table(run, *names, judged) for names, judged in choices.items())
    return joined(tag("p", lead, class_="muted"), *(part for parts in tables for part in parts))


def _table(run: RunView, output: str, parameter: str, judged: Sequence[OptionSummary]) -> Iterator[Markup]:
    """Yield the name of the output if it has one, the table of a choice, and how many options are left out."""
    ranked = sorted(judged, key=lambda option: -(option.chance or 0.0))
    of, name = f" for {shortened(output, NAME)}" if output else "", shortened(parameter, NAME)
    others = [axis for axis in run.axes(2) if axis.name != parameter]
    units = {axis.name: axis.unit for axis in others}
    rows = []
    for option in ranked[:SHOWN]:
        row = [
            tag("th", shortened(str(option.option), NAME), scope="row"),
            tag("td", "" if option.chance is None else percent(option.chance), data_v=exact(option.chance)),
            tag("td", option.believed, data_v=exact(option.best)),
            cell(option.values),
        ]
        rows.append([*row, tag("td", _setting(run, option, units), class_="words")] if others else row)
    if output:
        yield tag("p", tag("strong", shortened(output, NAME)))
    head = [name, "chance", "best believed", "values", "at"]
    yield simple_table(f"Options of {name}{of}", head if others else head[:-1], rows)
    if len(ranked) > SHOWN:
        yield tag("p", f"{len(ranked) - SHOWN} further options are less likely.", class_="muted")


def _setting(run: RunView, option: OptionSummary, units: dict[str, str]) -> str:
    """Return the other parameters at the best setting of an option, as text."""
    if option.x is None:
        return "no point has it"
    values = zip(run.names, run.values(option.x), strict=True)
    return ", ".join(
        f"{shortened(name, NAME)} {shortened(shown(value), NAME)} {units[name]}".strip()
        for name, value in values
        if name in units and value is not None
    )
