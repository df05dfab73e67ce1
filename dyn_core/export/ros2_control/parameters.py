"""The parameters of an exported controller, as rows of a table in C++."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite, isinf
from typing import Any

from dyn_core.control import Bounds, Rules, StateBounds
from dyn_core.control.controller_fields import (
    ENVELOPE_FIELDS,
    GRAVITY_FIELD,
    RULE_FIELDS,
    effort_fields,
    gain_fields,
    wrap_fields,
)
from dyn_core.control.joint_limits import effort_limits
from dyn_core.model import Model
from dyn_core.validation import Field, ListOf, Quantity, Switch, Whole
from dyn_core.validation.quoting import c_string

# Rules that act in a cycle; all others are those of a node.
CYCLE_RULES = (
    "state_timeout", "position_slack", "velocity_factor", "velocity_mismatch",
    "max_jump", "good_samples", "on_stale", "on_violation", "on_estop", "stop_time",
    "last_good_cycles",
)  # fmt: skip


def cpp_number(x: float) -> str:
    """Return a number as an expression of C++ with the same bits."""
    x = float(x)
    if isinf(x):
        return "HUGE_VAL" if x > 0 else "-HUGE_VAL"
    return repr(x)


def cpp_numbers(row: Iterable[float]) -> str:
    """Return numbers as expressions of C++, separated by commas."""
    return ", ".join(map(cpp_number, row))


def fixed_values(
    model: Model,
    rules: Rules,
    bounds: Bounds,
    states: StateBounds,
    options: Mapping[str, Any],
) -> list[tuple[Field, Any]]:
    """Return the Fields whose values are constants of a cycle, with these values.

    Args:
        model: Robot.
        rules, bounds, states: Settings of the cycle.
        options: Its options effort_slew, limits and wrap, as far as they are chosen.
    """
    chosen = {**vars(states), **vars(rules), **options}
    chosen |= {f"envelope.{name}": value for name, value in vars(bounds).items()}
    fields = [f for f in RULE_FIELDS if f.name in CYCLE_RULES] + [*ENVELOPE_FIELDS]
    rows = [(field, _value(field, chosen.get(field.name))) for field in fields]
    names = model.joint_names
    kinds = [model.joint_kind(name) for name in names]
    limits = effort_limits(model, options.get("limits") or {})
    rows += zip(effort_fields(names), limits.tolist(), strict=True)
    wrap = options.get("wrap")
    for name, field in zip(names, wrap_fields(names, kinds), strict=True):
        rows.append((field, field.default if wrap is None else name in wrap))
    return rows


def _value(field: Field, chosen: Any) -> Any:
    """Return the value of a Field for a setting; the default for None and "model"."""
    if chosen is None or chosen == "model":
        return field.default
    if isinstance(field.value_kind, ListOf) and not isinstance(chosen, (list, tuple)):
        return [chosen]
    return chosen


def live_fields(model: Model, tracks: bool) -> list[Field]:
    """Return the Fields of gains, which can change while the controller runs.

    Args:
        model: Robot.
        tracks: Whether the law follows a reference; else only the gains d act.
    """
    keys = ("p", "d") if tracks else ("d",)
    fields = gain_fields(model.joint_names)
    return [f for f in fields if f.name.rpartition(".")[2] in keys]


def rows(values: Iterable[tuple[Field, Any]], fixed: bool) -> str:
    """Return rows of a table of struct Parameter in C++.

    Args:
        values: Fields and the values with which they are declared.
        fixed: Whether the values are constants of the export.
    """
    return ",\n        ".join(row(field, value, fixed) for field, value in values)


def row(field: Field, value: Any, fixed: bool) -> str:
    """Return the row of a parameter: value, range, meaning with unit, valid values."""
    kind: Any = field.value_kind
    low, high = 1.0, 0.0  # no range
    if isinstance(kind, Whole) and kind.high is not None:
        low, high = float(kind.low), float(kind.high)
    elif isinstance(kind, Quantity) and isfinite(kind.low) and isfinite(kind.high):
        low, high = kind.low, kind.high
    meaning = field.doc + (f" [{field.unit}]" if field.unit else "")
    valid = "" if isinstance(kind, Switch) else kind.valid
    return (
        f"{{{c_string(field.name)}, rclcpp::ParameterValue({_literal(kind, value)}),"
        f" {cpp_number(low)}, {cpp_number(high)}, {str(fixed).lower()},"
        f" {c_string(meaning)}, {c_string(valid)}}}"
    )


def _literal(kind: Any, value: Any) -> str:
    """Return a value as an expression of C++."""
    if isinstance(kind, ListOf):
        return f"Numbers{{{cpp_numbers(value)}}}"
    if isinstance(kind, Switch):
        return str(bool(value)).lower()
    if isinstance(kind, Whole):
        return f"std::int64_t({int(value)})"
    if isinstance(kind, Quantity):
        return cpp_number(value)
    return f"std::string({c_string(value)})"


def gravity_row() -> str:
    """Return the row of robot_compensates_gravity, whose value is never used."""
    return row(GRAVITY_FIELD, GRAVITY_FIELD.default, fixed=False)
