"""Parameters of the node `computed_torque`."""

from __future__ import annotations

from collections.abc import Sequence

from dyn_core.control.controller_fields import (
    ENVELOPE_FIELDS,
    GRAVITY_FIELD,
    PAYLOAD_FIELDS,
    RULE_FIELDS,
)
from dyn_core.solving.registry import default_registry
from dyn_core.validation import Field, ListOf, Name, Quantity, Switch, Whole
from ros_nodes.parameter_tables.goal_parameters import GOALS
from ros_nodes.parameter_tables.payload_parameters import PAYLOAD_ESTIMATION
from ros_nodes.parameters import PROCESS, ROBOT

MOST_POINTS = 100_000  # upper limit of max_trajectory_points

_GUARD = (
    Field("require_guard", Switch(),
        "whether the controller drives only under a node guard: its activation waits"
        " for one that is not stopped", "", False),
    Field("guard_wait", Quantity(0.1, 3600.0),
        "longest time for which an activation waits for the guard", "s", 10.0),
    Field("guard_timeout", Quantity(0.1, 10.0),
        "silence of a guard that was heard, after which the controller stops"
        " (on_violation)", "s", 0.2),
)  # fmt: skip

_SHADOW = (
    Field("shadow.plugin_name", Name(),
        "second solver of INVERSE_DYNAMICS, which computes each torque again; empty:"
        " none", "", ""),
    Field("shadow.engine", Name(), "its engine; empty: the default", "", ""),
    Field("shadow.tolerance", Quantity(0.0, 1e3),
        "difference that is allowed: absolute, and again times the largest effort",
        "N·m, N, 1", 1e-6),
    Field("shadow.stop", Switch(),
        "whether a larger difference stops; else it is counted", "", True),
)  # fmt: skip

_COLLISION = (
    Field("collision.gain", Quantity(1.0, 1e4),
        "rate at which the estimate of external efforts follows them", "1/s", 130.0),
    Field("collision.release", Quantity(0.0, 1.0),
        "part of its threshold below which a joint can collide again", "", 0.5),
)  # fmt: skip

CONTROLLER = (
    *ROBOT,
    *PAYLOAD_FIELDS,
    *PAYLOAD_ESTIMATION,
    Field("inverse_dynamics.plugin_name", Name(),
        "solver of INVERSE_DYNAMICS; auto or empty: the default one, which closes the"
        " loops of a robot", "", "auto"),
    Field("mode", Name(offered=lambda: default_registry().modes()),
        "control law: computed_torque, impedance (gains are stiffness and damping),"
        " gravity compensation alone, cartesian (the tool), or a mode of a plugin",
        "", "computed_torque"),
    Field("feed_forward", Switch(),
        "whether the efforts of a trajectory's points are added to those of the law",
        "", False),
    GRAVITY_FIELD,
    *RULE_FIELDS,
    *_GUARD,
    *ENVELOPE_FIELDS,
    *_SHADOW,
    *_COLLISION,
    Field("differentiate_velocity", Switch(),
        "whether missing velocities are computed from positions", "", False),
    Field("velocity_filter_time", Quantity(1e-4, 1.0),
        "time constant of the velocity filter", "s", 0.01),
    Field("interpolation_method", Name(("splines", "none")),
        "interpolation between trajectory points", "", "splines", structure=False),
    Field("allow_nonzero_velocity_at_trajectory_end", Switch(),
        "whether the last point may have a nonzero velocity",
        "", False, structure=False),
    *GOALS,
    Field("max_trajectory_points", Whole(1, MOST_POINTS),
        "largest number of points of a trajectory", "", 10_000, structure=False),
    Field("large_error", Quantity(0.0, 1e3),
        "distance to the reference that is a warning in /diagnostics",
        "rad, m", 0.1, structure=False),
    Field("publish_rate", Quantity(0.1, 1000.0),
        "rate of ~/reference and ~/error", "Hz", 50.0),
    Field("external_wrench.link", Name(),
        "link whose external wrench is estimated from the joint efforts and published"
        " on ~/external_wrench; empty: none", "", ""),
    Field("external_wrench.deviation", ListOf(Quantity(1e-6, 1e4)),
        "standard deviation of the external efforts of the joints: one number, or one"
        " a joint", "N·m, N", [1.0]),
    Field("external_wrench.singularity_threshold", Quantity(1e-6, 1.0),
        "singular value of the Jacobian, angles times 0.1 m, below which a direction"
        " of the wrench is zero", "m", 0.02),
    Field("model_topics.rate", Quantity(0.0, 1000.0),
        "rate of ~/mass_matrix and other topics of the model while somebody listens;"
        " 0: there are none", "Hz", 20.0),
    Field("model_topics.frame", Name(),
        "link of ~/jacobian, ~/frame_pose and ~/manipulability; empty: cartesian.frame"
        " in mode cartesian, else they are not there", "", ""),
    *PROCESS,
)  # fmt: skip


def mode_fields() -> tuple[Field, ...]:
    """Return the Fields of all modes of the controller that plugins offer.

    For each slot that CONTROLLER lacks there is a Field SLOT.plugin_name; its default
    is the solver of the slot's first mode. A plugin that fails is left out.
    """
    known = {field.name for field in CONTROLLER}
    fields: list[Field] = []
    for mode in default_registry().modes().values():
        slot, name = mode.slot, f"{mode.slot}.plugin_name"
        doc = f"solver of {slot.upper()}, the law of mode {mode.name}; auto or empty:"
        if name not in known:
            known.add(name)
            doc = f"{doc} {mode.solver}"
            fields.append(Field(name, Name(), doc, "", mode.solver))
        fields += mode.parameters
    return tuple(fields)


def collision_fields(joints: Sequence[str]) -> tuple[Field, ...]:
    """Return a Field collision.thresholds.JOINT for each joint, in their order.

    It is the external effort that is a collision [N·m | N]; 0: not watched.
    """
    doc = "external effort that is a collision; 0: the joint is not watched"
    names = (f"collision.thresholds.{joint}" for joint in joints)
    kind = Quantity(0.0, 1e7)
    return tuple(Field(name, kind, doc, "N·m, N", 0.0) for name in names)
