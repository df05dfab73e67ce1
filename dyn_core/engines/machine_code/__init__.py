"""Functions of numbers and arrays that run as Python and as machine code, same bits.

An algorithm whose work depends on its data (how many contacts there are, which pairs
are near, how many sweeps a solver needs) cannot be traced into one Graph. It is written
in a subset of Python over NumPy arrays, and compiled once for each machine, not for
each robot: the robot is a record of arrays.

language.py is the subset: its types and the decorator `machine_code`.
"""

from dyn_core.engines.machine_code.language import (
    Reals,
    Reals2,
    Reals3,
    Wholes,
    Wholes2,
    machine_code,
)

__all__ = ["Reals", "Reals2", "Reals3", "Wholes", "Wholes2", "machine_code"]
