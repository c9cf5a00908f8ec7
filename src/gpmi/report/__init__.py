"""A report of a run: one HTML file that needs nothing else. Its sections are used by the live page, too."""

from gpmi.report.page import SCRIPT, STYLE, page, write
from gpmi.report.sections import IDS, Section, sections

__all__ = ["IDS", "SCRIPT", "STYLE", "Section", "page", "sections", "write"]
