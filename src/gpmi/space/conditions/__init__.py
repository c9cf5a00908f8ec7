"""Parameters that exist only under a condition, `Int(1, 8, when={"kernel": "poly"})`.

Read `conditions` first: which parameters are active at a point. `arc` has the coordinates of such a parameter. Without
conditions all parameters are active and nothing here is called, apart from the tests for that.
"""
