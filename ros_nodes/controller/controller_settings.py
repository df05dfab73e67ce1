"""Settings of a Controller, read from the parameters of its node; without ROS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dyn_core import problems
from dyn_core.control import (
    Bounds,
    CollisionSettings,
    Rules,
    ShadowSettings,
    StateBounds,
)
from dyn_core.control.modes.control_law import control_mode
from dyn_core.control.rules import ON_EVENTS
from dyn_core.errors import DynError, SettingError
from dyn_core.solving.control_mode import INVERSE_DYNAMICS
from dyn_core.solving.registry import default_registry, solver_of
from dyn_core.solving.solver import AUTO
from ros_nodes.parameter_tables.controller_parameters import CONTROLLER, mode_fields
from ros_nodes.parameter_tables.payload_parameters import (
    ESTIMATION,
    PAYLOAD_ESTIMATION,
    SENSOR,
    TOPIC,
)

Value = Callable[[str], Any]  # returns the value of a parameter
RULES = (
    "state_timeout",
    "max_state_age",
    "max_jump",
    "good_samples",
    "on_stale",
    "on_violation",
    "on_collision",
    "on_estop",
    "on_shutdown",
    "stop_time",
    "last_good_cycles",
    "start_tolerance",
    "limit_tolerance",
    "blend_time",
    "deceleration",
)
FILTER = {
    "differentiate": "differentiate_velocity",
    "filter_time": "velocity_filter_time",
}
GAINS = {"kp": "p", "kd": "d", "ki": "i", "integral_limit": "i_clamp"}
BY_JOINT = ("effort_rate", "joint_power")
FROM_MODEL = ("tracking_error", "velocity")
WHOLE = ("power", "kinetic_energy", "tool_speed")


def controller_settings(
    value: Value, joints: Sequence[str], solvers: Callable[[str], Any]
) -> dict[str, Any]:
    """Return the keyword arguments of Controller.

    `value` returns a parameter by name; `solvers` the solver of a slot: its name, or a
    Solver with options.
    """
    mode = control_mode(value("mode"))
    slots = {INVERSE_DYNAMICS: problems.INVERSE_DYNAMICS}
    for other in default_registry().modes().values():
        if other.slot == other.problem.name:
            slots[other.slot] = other.problem
    for slot, problem in slots.items():
        if solvers(slot) == AUTO:
            continue
        try:
            solver_of(solvers(slot), problem)
        except DynError as error:
            name = f"{slot}.plugin_name"
            raise SettingError(f"{name}: {error}", name) from None
    limits = {name: value(f"effort_limits.{name}") for name in joints}
    idle = without_effect(value, joints)
    rules = {**{name: name for name in RULES}, **FILTER}
    return {
        **gains(value, joints),
        "mode": value("mode"),
        "inverse_dynamics": solvers(INVERSE_DYNAMICS),
        "law_solver": "auto" if mode.slot == INVERSE_DYNAMICS else solvers(mode.slot),
        "parameters": {field.name: value(field.name) for field in mode.parameters},
        "effort_limits": {name: x for name, x in limits.items() if x > 0},
        "wrap": [n for n in joints if value(f"gains.{n}.angle_wraparound")],
        "rules": Rules(**{k: value(x) for k, x in rules.items() if x not in idle}),
        "engine": value("engine") or None,
        "bounds": bounds(value, len(joints)),
        "state_bounds": StateBounds(
            by_joint(value, "position_slack", len(joints)),
            value("velocity_factor"),
            by_joint(value, "velocity_mismatch", len(joints)),
        ),
        "effort_slew": by_joint(value, "effort_slew", len(joints)),
        "shadow": shadow(value),
        "collision": collision(value, joints),
        "feed_forward": value("feed_forward"),
        "robot_compensates_gravity": value("robot_compensates_gravity"),
        "payload_link": value("payload.link"),
    }


def gains(value: Value, joints: Sequence[str]) -> dict[str, list[float]]:
    """Return the gains of all joints by keyword of Controller.

    Args:
        value: Returns the value of a parameter by name, here of gains.JOINT.p, .d, .i
            and .i_clamp; its errors pass through.
        joints: Names of the joints.

    Returns:
        kp, kd, ki and integral_limit, from these parameters in this order, each a list
        in the order of `joints`.
    """
    return {
        name: [value(f"gains.{joint}.{key}") for joint in joints]
        for name, key in GAINS.items()
    }


def by_joint(value: Value, name: str, count: int) -> float | list[float] | None:
    """Return a parameter by joint: one number, or `count`; None if it is empty."""
    row = list(value(name))
    if len(row) not in (0, 1, count):
        raise SettingError(
            f"{name} has {len(row)} numbers; valid: none, one, or {count}", name
        )
    return (row[0] if len(row) == 1 else row) if row else None


def bounds(value: Value, count: int) -> Bounds:
    """Return the bounds of the safety envelope; unset parameters keep the defaults.

    Lists by joint are unset if empty. A tracking error or velocity of 0 means no bound,
    unlike an unset one; power, kinetic energy and tool speed of 0, and an empty frame,
    are unset. An effort rate or joint power of 0 is passed on, and Envelope refuses it.

    Args:
        value: Returns the value of a parameter by name, here of envelope.effort_rate,
            .joint_power, .tracking_error and .velocity (lists by joint), and .power,
            .kinetic_energy, .tool_speed and .frame.
        count: Number of joints.

    Raises:
        SettingError: A parameter by joint has neither no, one nor `count` numbers.
    """
    chosen: dict[str, Any] = {}
    for name in (*BY_JOINT, *FROM_MODEL):
        row: Any = by_joint(value, f"envelope.{name}", count)
        if row is None:
            continue
        # These have defaults from the model, so that an explicit 0 means no bound.
        if name in FROM_MODEL:  # 0: none
            row = [x or None for x in row] if isinstance(row, list) else row or None
        chosen[name] = row
    chosen |= {x: value(f"envelope.{x}") for x in WHOLE if value(f"envelope.{x}")}
    if value("envelope.frame"):
        chosen["frame"] = value("envelope.frame")
    return Bounds(**chosen)


def collision(value: Value, joints: Sequence[str]) -> CollisionSettings | None:
    """Return the settings of the observer of external efforts; None without observer.

    It is needed if a threshold is positive, for collisions, or if external_wrench.link
    is set; in the latter case alone the settings have no thresholds.

    Args:
        value: Returns the value of a parameter by name, here of collision.gain,
            collision.release, external_wrench.link and collision.thresholds.JOINT.
        joints: Names of the joints; joints with a threshold of 0 are not watched.

    Raises:
        SettingError: collision.gain or collision.release is outside its range.
    """
    thresholds = {name: value(f"collision.thresholds.{name}") for name in joints}
    watched = {name: x for name, x in thresholds.items() if x > 0}
    if not watched and not value("external_wrench.link"):
        return None
    gain, release = value("collision.gain"), value("collision.release")
    return CollisionSettings(watched, gain, release)


def without_effect(value: Value, joints: Sequence[str]) -> list[str]:
    """Return the names of parameters that are changed from the default but unused.

    Each is of a feature that is off, as shadow.tolerance without shadow.plugin_name.
    """
    idle = []
    if {value("on_stale"), *(value(name) for name in ON_EVENTS)} == {"zero"}:
        idle += ["stop_time"]
    if not value("differentiate_velocity"):
        idle += ["velocity_filter_time"]
    if not value("shadow.plugin_name"):
        idle += ["shadow.engine", "shadow.tolerance", "shadow.stop"]
    settings = collision(value, joints)
    if settings is None:
        idle += ["collision.gain"]
    if settings is None or not settings.thresholds:
        idle += ["collision.release", "on_collision"]
    if not value("external_wrench.link"):
        idle += ["external_wrench.deviation", "external_wrench.singularity_threshold"]
    if not value("require_guard"):
        idle.append("guard_wait")
    if not value("payload_estimation.plugin_name"):
        idle += [field.name for field in PAYLOAD_ESTIMATION]
    else:
        idle.append(f"{ESTIMATION}.effort" if value(TOPIC) else SENSOR)
    slots = {mode.slot for mode in default_registry().modes().values()}
    slots.discard(control_mode(value("mode")).slot)
    idle += [f"{slot}.plugin_name" for slot in sorted(slots)]
    defaults = {field.name: field.default for field in (*CONTROLLER, *mode_fields())}
    return [name for name in idle if value(name) not in (defaults[name], "", AUTO)]


def shadow(value: Value) -> ShadowSettings | None:
    """Return the settings of the second solver; None if shadow.plugin_name is empty."""
    name, engine = value("shadow.plugin_name"), value("shadow.engine")
    if not name:
        return None
    tolerance = value("shadow.tolerance")
    settings = {"absolute": tolerance, "relative": tolerance}
    return ShadowSettings(name, engine or None, stop=value("shadow.stop"), **settings)
