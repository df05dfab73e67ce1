"""The parameters of an exported controller, as rows of a table in C++."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import numpy as np

from dyn_core.control import Bounds, Rules, StateBounds
from dyn_core.control.controller_fields import (
    ENVELOPE_FIELDS,
    PAYLOAD_FIELDS,
    RULE_FIELDS,
    SENSOR_FIELDS,
    effort_fields,
    gain_fields,
    wrap_fields,
)
from dyn_core.control.joint_limits import effort_limits
from dyn_core.control.joint_values import joint_values, wrapped_joints
from dyn_core.control.modes.cartesian_law import CARTESIAN_FIELDS
from dyn_core.control.modes.wrench_control import WRENCH_FIELDS
from dyn_core.control.settings import FULL_EFFORT
from dyn_core.model import Model
from dyn_core.validation import Field, ListOf, Quantity, Switch, Whole
from dyn_core.validation.quoting import c_string

# Rules that act in a package; all others are those of a node.
FIXED_RULES = (
    "state_timeout", "position_slack", "velocity_factor", "velocity_mismatch",
    "max_jump", "good_samples", "last_good_cycles", "blend_time",
)  # fmt: skip
# A force-torque sensor enters the law in the node alone.
LAW_FIELDS = tuple(x for x in CARTESIAN_FIELDS if x not in WRENCH_FIELDS)
TOOL_FIELDS = (
    *(field for field in LAW_FIELDS if not field.structure),
    *(field for field in RULE_FIELDS if field.name == "max_state_age"),
)
LIVE_RULES = ("on_stale", "on_violation", "on_collision", "on_estop", "stop_time")


def cpp_number(x: float) -> str:
    """Return a number in C++ with the same bits; also ±HUGE_VAL and NAN."""
    form = repr(float(x))
    return {"inf": "HUGE_VAL", "-inf": "-HUGE_VAL", "nan": "NAN"}.get(form, form)


def cpp_numbers(row: Iterable[float]) -> str:
    """Return numbers as expressions of cpp_number, separated by commas."""
    return ", ".join(map(cpp_number, row))


def fixed_values(
    model: Model,
    rules: Rules,
    bounds: Bounds,
    states: StateBounds,
    options: Mapping[str, Any],
    payload_link: str,
) -> list[tuple[Field, Any]]:
    """Return the Fields whose values are constants of a package, with these values.

    The order is: rules, envelope, payload, tool, effort limits, wrapped joints. With a
    payload_link, payload.link is the only constant of the payload; else all its Fields
    are. Options of the cycle that are missing have the defaults of their Fields.
    """
    chosen = {**vars(states), **vars(rules), **options}
    chosen |= {f"envelope.{name}": value for name, value in vars(bounds).items()}
    chosen["payload.link"] = payload_link
    limits = effort_limits(model, options.get("limits") or {})
    slew = options.get("effort_slew")
    if isinstance(slew, (Mapping, np.ndarray)):  # a list, as the Field has it
        usual = limits / FULL_EFFORT
        chosen["effort_slew"] = joint_values(model, "effort_slew", slew, usual).tolist()
    payload = PAYLOAD_FIELDS[: 1 if payload_link else None]
    fields = [f for f in RULE_FIELDS if f.name in FIXED_RULES]
    fields += [*ENVELOPE_FIELDS, *payload]
    if "cartesian.frame" in options:
        fields += [field for field in LAW_FIELDS if field.structure]
    rows = [(field, _value(field, chosen.get(field.name))) for field in fields]
    names = model.joint_names
    rows += zip(effort_fields(names), limits.tolist(), strict=True)
    wrapped = wrapped_joints(model, options.get("wrap"))
    rows += [(field, field.default) for field in wrap_fields(names, wrapped)]
    return rows


def _value(field: Field, chosen: Any) -> Any:
    """Return the value of a Field for a setting; None and "model" mean the default.

    A single value for a list becomes a list of one; nothing is checked.
    """
    if chosen is None or chosen == "model":
        return field.default
    if isinstance(field.value_kind, ListOf) and not isinstance(chosen, (list, tuple)):
        return [chosen]
    return chosen


def live_values(
    model: Model, tracks: bool, rules: Rules, payload_link: str, tool: bool
) -> list[tuple[Field, Any]]:
    """Return the Fields that are no constants of a package, with their first values.

    These are gains (of a law that does not track, only the gains d act), sensors,
    payload (if there is a payload_link) and tool with their defaults, then the rules
    on_stale, on_violation, on_collision, on_estop and stop_time.
    """
    keys = ("p", "d") if tracks else ("d",)
    fields = gain_fields(model.joint_names)
    gains = [f for f in fields if f.name.rpartition(".")[2] in keys]
    payload = PAYLOAD_FIELDS[1:] if payload_link else ()
    stops = [f for f in RULE_FIELDS if f.name in LIVE_RULES]
    more = (*SENSOR_FIELDS, *payload, *(TOOL_FIELDS if tool else ()))
    rows = [(field, field.default) for field in (*gains, *more)]
    return rows + [(field, getattr(rules, field.name)) for field in stops]


def rows(values: Iterable[tuple[Field, Any]]) -> str:
    """Return rows of a table of struct Parameter in C++, of Fields and their values."""
    return ",\n        ".join(row(field, value) for field, value in values)


def row(field: Field, value: Any) -> str:
    """Return the row of a parameter in C++, in braces.

    It has name, value, range, meaning with unit, and valid values. The range is 1, 0
    (none) unless the kind of number has two finite bounds.
    """
    kind: Any = field.value_kind
    low, high = 1.0, 0.0  # no range
    entry = getattr(kind, "kind", kind)  # of a list: each of its numbers
    if isinstance(entry, Whole) and entry.high is not None:
        low, high = float(entry.low), float(entry.high)
    elif isinstance(entry, Quantity) and isfinite(entry.low) and isfinite(entry.high):
        low, high = entry.low, entry.high
    meaning = field.doc + (f" [{field.unit}]" if field.unit else "")
    valid = "" if isinstance(kind, Switch) else kind.valid
    return (
        f"{{{c_string(field.name)}, rclcpp::ParameterValue({_literal(kind, value)}),"
        f" {cpp_number(low)}, {cpp_number(high)}, {c_string(meaning)},"
        f" {c_string(valid)}}}"
    )


def _literal(kind: Any, value: Any) -> str:
    """Return a value of a Field as an expression of C++; other kinds are text."""
    if isinstance(kind, ListOf):
        return f"Numbers{{{cpp_numbers(value)}}}"
    if isinstance(kind, Switch):
        return str(bool(value)).lower()
    if isinstance(kind, Whole):
        return f"std::int64_t({int(value)})"
    if isinstance(kind, Quantity):
        return cpp_number(value)
    return f"std::string({c_string(value)})"
