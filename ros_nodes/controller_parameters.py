"""Parameters of the computed-torque controller."""

from __future__ import annotations

from collections.abc import Sequence

from dyn_core.validation import Field, Name, Quantity, Switch, Whole
from ros_nodes.parameters import ROBOT

CONTROLLER = (
    *ROBOT,
    Field("inverse_dynamics.plugin_name", Name(), "solver of INVERSE_DYNAMICS", "",
          "rnea"),
    Field("mode", Name(("computed_torque", "gravity")), "control law: computed_torque,"
          " or gravity compensation alone", "", "computed_torque"),
    Field("state_timeout", Quantity(1e-3, 10.0), "age at which the last valid joint"
          " state is stale", "s", 0.1),
    Field("max_jump", Quantity(1e-3, 100.0), "change of position in one sample that"
          " resets the controller", "rad, m", 0.5),
    Field("good_samples", Whole(1, 1000), "consecutive valid states before torque is"
          " enabled", "", 3),
    Field("on_stale", Name(("zero", "gravity_damping")), "torque while the state is"
          " stale: zero, or gravity compensation and damping for stale_time (arms"
          " without brakes)", "", "zero"),
    Field("stale_time", Quantity(1e-3, 60.0), "longest duration of gravity_damping",
          "s", 2.0),
    Field("differentiate_velocity", Switch(), "whether missing velocities are computed"
          " from positions", "", False),
    Field("velocity_filter_time", Quantity(1e-4, 1.0), "time constant of the velocity"
          " filter", "s", 0.01),
    Field("interpolation_method", Name(("splines", "none")), "interpolation between"
          " trajectory points", "", "splines", structure=False),
    Field("allow_nonzero_velocity_at_trajectory_end", Switch(), "whether the last point"
          " may have a nonzero velocity", "", False, structure=False),
    Field("publish_rate", Quantity(0.1, 1000.0), "rate of ~/reference and ~/error",
          "Hz", 50.0),
)  # fmt: skip


def gain_fields(joints: Sequence[str]) -> tuple[Field, ...]:
    """Return the gains of each joint, which can be changed at any time."""
    gain = Quantity(0.0)
    rows = (
        ("p", "position gain before the inertia, not N·m/rad", "1/s²", 100.0),
        ("d", "velocity gain before the inertia, not N·m·s/rad", "1/s", 20.0),
    )
    return tuple(
        Field(f"gains.{joint}.{key}", gain, doc, unit, default, structure=False)
        for joint in joints
        for key, doc, unit, default in rows
    )


def joint_fields(joints: Sequence[str], kinds: Sequence[str]) -> tuple[Field, ...]:
    """Return the effort limit and the wrapping of each joint."""
    limit = "effort limit; 0: the limit of the model"
    wrap = "whether the position error is wrapped to [-pi, pi)"
    efforts = [
        Field(f"effort_limits.{j}", Quantity(0.0), limit, "N·m, N", 0.0) for j in joints
    ]
    return *efforts, *(
        Field(f"gains.{j}.angle_wraparound", Switch(), wrap, "", kind == "continuous")
        for j, kind in zip(joints, kinds, strict=True)
    )
