"""Constraints that the user states: how they are written, which points satisfy them, how to move and sample inside.

Read `constraints` first. `expressions` parses texts such as "a + b <= 1". `feasible_set` is the part of a product that
satisfies the constraints. For each setting of the discrete parameters it contains a `polytope` of the reals.
`nearest_setting` finds such settings, and `level_ranges` bounds them. Without constraints none of this is called.
"""
