"""What people look at: `pictures` says what they show, `figures` (Matplotlib) and `html` (the report) draw it.

`run_view` reads the run for both.
"""
