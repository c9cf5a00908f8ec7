"""Figures of a run with Matplotlib. `plots` has the public functions; the other modules draw into axes.

`drawing` draws what `gpmi.views.pictures` describes, and `style` has the colours and fonts. `fidelity` shows curves and
costs, `traces` a run value by value.
"""
