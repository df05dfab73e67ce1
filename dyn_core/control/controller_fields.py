"""Settings of a Controller as Fields: names, ranges, meanings, units, defaults.

They are the parameters of the node `computed_torque` and of exported controllers.
"""

from __future__ import annotations

from collections.abc import Sequence

from dyn_core.control.rules import ON_STALE
from dyn_core.control.safety.stops import AUTO, STOPS
from dyn_core.validation import Field, Name, Quantity, Switch, Whole, numbers

STOP = Name(STOPS)
_BOUND = "; empty: none, one number: of every joint, else one a joint"
_JOINTS = "; empty: {}, one number: of every joint, else one a joint"
_FAR = "0.5 rad, 0.5 m in mode computed_torque, else none"

GRAVITY_FIELD = Field("robot_compensates_gravity", Switch(),
    "whether the robot carries its weight itself: no effort then contains it",
    "", False)  # fmt: skip

RULE_FIELDS = (
    Field("state_timeout", Quantity(1e-3, 10.0),
        "age at which the last valid joint state is stale", "s", 0.1),
    Field("max_state_age", Quantity(0.0, 60.0),
        "largest difference between a joint state's stamp and the clock of the node,"
        " into the past or the future; 0: stamps are not compared with the clock",
        "s", 0.5),
    Field("position_slack", numbers(),
        "distance beyond a position limit of the URDF up to which a state is"
        f" believed{_JOINTS.format('0.2 rad, 0.05 m')}", "rad, m", []),
    Field("velocity_factor", Quantity(1.0, 1e6),
        "largest velocity that is believed, in velocity limits of the URDF", "1", 10.0),
    Field("velocity_mismatch", numbers(),
        "largest difference between a velocity and that of the"
        f" positions{_JOINTS.format('twice the velocity limit')}", "rad/s, m/s", []),
    Field("max_jump", Quantity(1e-3, 100.0),
        "change of position in one sample that resets the controller", "rad, m", 0.5),
    Field("merge_joint_states", Switch(),
        "whether states of parts of the joints, from several publishers, are merged:"
        " each part once, of stamps less than state_timeout apart, as old as the"
        " oldest part; else parts are refused", "", False),
    Field("good_samples", Whole(1, 1000),
        "consecutive valid states before torque is enabled", "", 3),
    Field("on_stale", Name(ON_STALE),
        "effort while the state is stale: zero, or ramp: gravity compensation and"
        " damping for stop_time (arms without brakes)", "", "zero"),
    Field("on_violation", Name((*STOPS, AUTO)),
        "effort after a fault (the envelope, a torque that is not finite, the shadow,"
        " a silent guard): zero, ramp, hold or auto: ramp where the efforts carry the"
        " weight, else zero", "", "auto"),
    Field("on_collision", STOP,
        "effort after a collision, see collision.thresholds: zero, ramp, or hold the"
        " position", "", "zero"),
    Field("on_estop", STOP, "effort after ~/estop: zero, ramp or hold", "", "zero"),
    Field("on_shutdown", STOP,
        "effort for stop_time before the node is deactivated or ends: zero, ramp or"
        " hold; the last effort is zero", "", "zero"),
    Field("stop_time", Quantity(1e-3, 60.0),
        "longest duration of a ramp; a position that is held is checked again after it",
        "s", 2.0),
    Field("last_good_cycles", Whole(0, 1000),
        "cycles in which the last good torque replaces one that is not finite, before"
        " the stop of on_violation", "", 3),
    Field("start_tolerance", Quantity(1e-6, 10.0),
        "largest distance of a joint from a first point at time zero to the nearer of"
        " reference and robot",
        "rad, m", 0.1),
    Field("limit_tolerance", Quantity(1e-9, 1.0),
        "distance by which a trajectory may be outside a position limit, from robot or"
        " reference if these are outside", "rad, m", 1e-3),
    Field("blend_time", Quantity(1e-3, 10.0),
        "duration in which a trajectory takes over from another one", "s", 0.2),
    Field("deceleration", Quantity(1e-3, 1e4),
        "deceleration of the fastest joint at a stop of the reference, and in the"
        " ramps at the ends of a trajectory of positions alone", "rad/s², m/s²", 10.0),
)  # fmt: skip

PAYLOAD_FIELDS = (
    Field("payload.link", Name(),
        "link that may carry a payload; empty: none does", "", ""),
    Field("payload.attached", Switch(),
        "whether the payload is carried; the service ~/attach_payload sets it",
        "", True, structure=False),
    Field("payload.mass", Quantity(0.0, 1e5),
        "mass of the payload; the controller takes what its effort limits can hold,"
        " and blends a change in over blend_time", "kg", 0.0, structure=False),
    Field("payload.com", numbers(3),
        "its centre of mass in the frame of the link",
        "m", [0.0, 0.0, 0.0], structure=False),
    Field("payload.inertia", numbers(6),
        "its inertia about the centre of mass, axes of the link: xx xy xz yy yz zz;"
        " zeros: a point mass", "kg·m²", [0.0] * 6, structure=False),
)  # fmt: skip

SENSOR_FIELDS = (
    Field("sensor.name", Name(),
        "force-torque sensor whose states NAME/force.x to NAME/torque.z are read as the"
        " hardware has them, without a bias; empty: none", "", ""),
    Field("sensor.force", Quantity(0.0, 1e6),
        "force of the sensor beyond which the robot stops (on_collision); 0: none",
        "N", 0.0, structure=False),
    Field("sensor.torque", Quantity(0.0, 1e6),
        "torque of the sensor beyond which the robot stops (on_collision); 0: none",
        "N·m", 0.0, structure=False),
)  # fmt: skip

ENVELOPE_FIELDS = (
    Field("effort_slew", numbers(),
        "largest change of an effort in a second, which limits"
        f" it{_JOINTS.format('the effort limit in 0.05 s')}", "N·m/s, N/s", []),
    Field("envelope.effort_rate", numbers(),
        f"largest change of the effort{_BOUND}", "N·m/s, N/s", []),
    Field("envelope.joint_power", numbers(), f"largest power{_BOUND}", "W", []),
    Field("envelope.tracking_error", numbers(),
        f"largest distance to the reference{_JOINTS.format(_FAR)}; 0: none",
        "rad, m", []),
    Field("envelope.velocity", numbers(),
        "largest velocity that positions and velocities agree"
        f" on{_JOINTS.format('1.5 times the velocity limit')}; 0: none",
        "rad/s, m/s", []),
    Field("envelope.power", Quantity(0.0, 1e7),
        "largest power of all joints; 0: none", "W", 0.0),
    Field("envelope.kinetic_energy", Quantity(0.0, 1e7),
        "largest kinetic energy; 0: none", "J", 0.0),
    Field("envelope.tool_speed", Quantity(0.0, 1e3),
        "largest speed of envelope.frame; 0: none", "m/s", 0.0),
    Field("envelope.frame", Name(), "link whose speed is bounded", "", ""),
)  # fmt: skip


def gain_fields(joints: Sequence[str]) -> tuple[Field, ...]:
    """Return the Fields gains.JOINT.p, d, i and i_clamp of each joint, joint by joint.

    They can be changed at any time. The gains that a robot tolerates depend on the
    period T of its states and are checked once T has been measured (gain_limits); the
    ranges here are the limits for a loop of 10 kHz.
    """
    stiff, refused = "mode impedance: ", "refused where sampling is unstable"
    rows = (
        ("p", 4e8,
            f"position gain before the inertia; {stiff}stiffness in N·m/rad, N/m;"
            f" {refused}: p T/2 >= d with the joint's own damping, T the measured"
            " period of the states; a warning from half of that on", "1/s²", 100.0),
        ("d", 2e4,
            f"velocity gain before the inertia; {stiff}damping in N·m·s/rad, N·s/m;"
            f" {refused}: d >= 2/T, {stiff}over the inertia that the joints see; a"
            " warning from half of that on", "1/s", 20.0),
        ("i", 1e9,
            f"gain of the integral of the error; {stiff}in N·m/(rad s), N/(m s);"
            f" {refused}: about i >= p d", "1/s³", 0.0),
        ("i_clamp", 1e7,
            f"largest part of the integral; {stiff}in N·m, N", "rad/s², m/s²", 0.0),
    )  # fmt: skip
    return tuple(
        Field(f"gains.{j}.{key}", Quantity(0.0, high), doc, unit, default, False)
        for j in joints
        for key, high, doc, unit, default in rows
    )


def effort_fields(joints: Sequence[str]) -> tuple[Field, ...]:
    """Return the Fields effort_limits.JOINT [N·m | N]; 0 is the model's limit."""
    doc = (
        "effort limit; 0: the limit of the model, which must have one; a higher one"
        " than the model's is a warning"
    )
    kind = Quantity(0.0, 1e9)
    names = (f"effort_limits.{joint}" for joint in joints)
    return tuple(Field(name, kind, doc, "N·m, N", 0.0) for name in names)


def wrap_fields(joints: Sequence[str], wrapped: Sequence[str]) -> tuple[Field, ...]:
    """Return the Fields gains.JOINT.angle_wraparound, true by default if `wrapped`."""
    wrap = (
        "whether the position error is wrapped to [-pi, pi), so that the joint goes the"
        " short way; refused for a joint with position limits. Default: true for a"
        " continuous joint"
    )
    return tuple(
        Field(f"gains.{j}.angle_wraparound", Switch(), wrap, "", j in wrapped)
        for j in joints
    )
