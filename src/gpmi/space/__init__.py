"""What may be queried. `Space.of` builds a space from what a user writes.

Read in this order: `space` (what every space offers), `parameters` (its kinds: `real`, `integer`, `angle`, `choice`),
`product` (a product of parameters) and `candidates` (a table). The other modules are details of these:

- `conversion` makes parameters of what a user writes, `tables` reads columns, `points` has points as users write them.
- `fields` checks the fields of parameters, and `options` compares the options of a Choice.
- `encoding` says what every parameter offers, and `layout` assigns coordinates to parameters.
- `domain` has the values of a parameter as plain data, for what writes them in other words.
- `features` has the descriptors of options.
- `fidelity` has the parameter that says how exactly f is measured.
- `fixed` has constants and parameters with a fixed value.
- `row_index` finds rows of a table.
- `axes` has the parameters as axes of figures.

The sub-packages `constraints` and `conditions` can be skipped. Without constraints the feasible set of a product is the
whole product, and without conditions all its parameters are active.
"""

from gpmi.space.angle import Angle
from gpmi.space.axes import CURVE, Axis, axes_of, contains_slices
from gpmi.space.candidates import Candidates
from gpmi.space.choice import MOST_OPTIONS, Choice
from gpmi.space.constraints.constraints import Forbidden, is_matrix_form
from gpmi.space.constraints.polytope import Polytope
from gpmi.space.conversion import named_parameters
from gpmi.space.domain import Domain, NumberRange, Options, Single, Steps
from gpmi.space.features import FeatureColumns, Features
from gpmi.space.fidelity import Fidelity, FidelityColumn
from gpmi.space.fixed import Constant
from gpmi.space.integer import Int
from gpmi.space.mixtures import Mixture, Triangle, grid_of, mixtures_of
from gpmi.space.parameters import Parameter
from gpmi.space.points import copied, frozen
from gpmi.space.product import Parameters
from gpmi.space.real import Real
from gpmi.space.space import Space, SpaceExhausted

__all__ = [
    "CURVE",
    "MOST_OPTIONS",
    "Angle",
    "Axis",
    "Candidates",
    "Choice",
    "Constant",
    "Domain",
    "FeatureColumns",
    "Features",
    "Fidelity",
    "FidelityColumn",
    "Forbidden",
    "Int",
    "Mixture",
    "NumberRange",
    "Options",
    "Parameter",
    "Parameters",
    "Polytope",
    "Real",
    "Single",
    "Space",
    "SpaceExhausted",
    "Steps",
    "Triangle",
    "axes_of",
    "contains_slices",
    "copied",
    "frozen",
    "grid_of",
    "is_matrix_form",
    "mixtures_of",
    "named_parameters",
]
