"""The parameters that a user writes: a number, a whole number, an angle, or a choice.

A Real or an Int has one coordinate: its value, or the natural logarithm of it with log=True. An Angle has two: cosine
and sine. A Choice of k options has k coordinates: 1 for the chosen option and 0 for the others. With ordered=True it
has one, the option's position.

All of them implement `gpmi.space.encoding.Encoding`, which documents their methods.
"""

from __future__ import annotations

from typing import TypeAlias

from gpmi.space.angle import Angle
from gpmi.space.choice import Choice
from gpmi.space.integer import Int
from gpmi.space.real import Real

Parameter: TypeAlias = Real | Int | Angle | Choice
