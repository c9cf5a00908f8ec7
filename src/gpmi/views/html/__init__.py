"""The report of a run: one HTML file that needs nothing else. The pages of `gpmi serve` use its sections, too.

`report` puts the sections together. Each section has a module: `overview` (what was found, what to do next, about this
run), `tradeoffs` (the front of several objectives), `convergence`, `curves` and `cost` (of a run with a fidelity),
`importance`, `slices`, `contours`, `parallel_coordinates`, `calibration`, `failures` and `trials`. `front` has the
pictures of a front with sliders and recipes, `outputs` the headings of several outputs. `markup` builds HTML with all
user text escaped, and tables; `svg` draws the charts.
"""

from gpmi.views.html.report import IDS, SCRIPT, STYLE, Section, page, sections, write

__all__ = ["IDS", "SCRIPT", "STYLE", "Section", "page", "sections", "write"]
