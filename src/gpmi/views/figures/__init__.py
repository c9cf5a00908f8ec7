"""Figures of a run with Matplotlib. `plots` has the public functions; the other modules draw into axes.

`convergence`, `importance`, `slices`, `contours`, `parallel_coordinates` and `calibration` show the same as the
sections of the HTML report with these names. `fidelity` shows curves and costs, `traces` a run value by value. `axes`
labels axes, and `style` has the colours and fonts.
"""
