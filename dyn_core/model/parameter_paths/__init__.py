"""Parameter paths: numbers of a robot that can be inputs or be differentiated.

    gravity, time, armature, LINK.mass, JOINT.axis, SPRING.stiffness, LOOP.length, ...

KINDS lists all of them; docs/reference/parameter_paths.md is generated from it.
"""

from dyn_core.model.parameter_paths.path_kinds import (
    KINDS,
    LINK,
    PathKind,
)
from dyn_core.model.parameter_paths.values import (
    acting,
    kind_of,
    numbers,
    paths,
    size,
    value,
    with_values,
)

__all__ = [
    "KINDS",
    "LINK",
    "PathKind",
    "acting",
    "kind_of",
    "numbers",
    "paths",
    "size",
    "value",
    "with_values",
]
