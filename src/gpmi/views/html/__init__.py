"""A report of a run: one HTML file that needs nothing else. Its sections are used by the live page, too."""

from gpmi.views.html.page import SCRIPT, STYLE, page, write
from gpmi.views.html.sections import IDS, Section, sections

__all__ = ["IDS", "SCRIPT", "STYLE", "Section", "page", "sections", "write"]
