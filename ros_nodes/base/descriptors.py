"""ROS parameter types and descriptors, derived from the Field of a parameter."""

from __future__ import annotations

from math import isfinite
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.parameter import Parameter

from dyn_core.validation import Field, ListOf, Name, Quantity, Switch, Whole

STRUCTURE = "structure: writable in state unconfigured only"
_TYPES = {
    Quantity: Parameter.Type.DOUBLE,
    Whole: Parameter.Type.INTEGER,
    Switch: Parameter.Type.BOOL,
    Name: Parameter.Type.STRING,
}
_LISTS = {
    Quantity: Parameter.Type.DOUBLE_ARRAY,
    Whole: Parameter.Type.INTEGER_ARRAY,
    Switch: Parameter.Type.BOOL_ARRAY,
    Name: Parameter.Type.STRING_ARRAY,
}


def ros_type(field: Field) -> Parameter.Type:
    """Return the ROS parameter type of a Field, an array type for a ListOf.

    Raises:
        KeyError: The values are not of kind Quantity, Whole, Switch or Name.
    """
    kind = field.value_kind
    if isinstance(kind, ListOf):
        return _LISTS[type(kind.kind)]
    return _TYPES[type(kind)]


def descriptor(field: Field) -> ParameterDescriptor:
    """Return the ROS descriptor of a parameter: type, range, choices, meaning and unit.

    Ranges that ROS cannot express, such as an integer without an upper limit or the
    elements of a list, are written as text in additional_constraints.
    """
    kind: Any = field.value_kind
    unit = f" [{field.unit}]" if field.unit else ""
    structure = f" ({STRUCTURE})" if field.structure else ""
    described = ParameterDescriptor(
        name=field.name,
        type=ros_type(field).value,
        description=field.doc + unit + structure,
    )
    if isinstance(kind, Name) and kind.choices:
        described.additional_constraints = f"one of {kind.valid}"
    elif isinstance(kind, Whole):
        if kind.high is not None:
            described.integer_range = [
                IntegerRange(from_value=kind.low, to_value=kind.high, step=1)
            ]
        else:
            described.additional_constraints = kind.valid
    elif isinstance(kind, Quantity) and isfinite(kind.high) and isfinite(kind.low):
        described.floating_point_range = [
            FloatingPointRange(from_value=kind.low, to_value=kind.high, step=0.0)
        ]
    elif isinstance(kind, (ListOf, Quantity)):
        described.additional_constraints = kind.valid
    return described
