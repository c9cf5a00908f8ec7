"""The HTML report of a run: the public door to `gpmi.views.html`."""

from gpmi.views.html import IDS, SCRIPT, STYLE, Section, page, sections, write

__all__ = ["IDS", "SCRIPT", "STYLE", "Section", "page", "sections", "write"]
