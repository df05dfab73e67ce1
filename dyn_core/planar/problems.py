"""Problems of planar chains, planar objects and their tasks.

The constraints of joints (kind, s, a_w, active, alpha_w) are optional inputs: the
chain's own hold unless a Program is built with inputs=[...] for them.
"""

from dyn_core.problems.ports import Port, Signature

CHAIN, OBJECT, TASK = "planar_chain", "planar_object", "task"

_x = Port("x", ("n", 2), "m", meaning="positions of the joints")
_v = Port("v", ("n", 2), "m/s", meaning="velocities of the joints")
_F = Port("F", ("n", 2), "N", meaning="external force on each joint")
_tau = Port("tau", ("n",), "N·m", meaning="torque at each joint")
_dt = Port("dt", (), "s", meaning="length of the step")
_kind = Port(
    "kind",
    ("n",),
    "0 free, 1 line, 2 guided",
    optional=True,
    meaning="constraint of each joint",
)
_s = Port("s", ("n", 2), "1", optional=True, meaning="unit normal of each joint's line")
_a_w = Port(
    "a_w",
    ("n", 2),
    "m/s²",
    optional=True,
    meaning="prescribed acceleration of guided joints",
)
_active = Port(
    "active",
    ("n",),
    "0 | 1",
    optional=True,
    meaning="whether the joint's angular acceleration is prescribed",
)
_alpha_w = Port(
    "alpha_w",
    ("n",),
    "rad/s²",
    optional=True,
    meaning="prescribed angular accelerations of active joints",
)
_modes = (_kind, _s, _a_w, _active, _alpha_w)

CHAIN_FORCES = Signature(
    "chain_forces",
    (_x, _v, _tau),
    (_F,),
    system=CHAIN,
    meaning="external forces on the joints: gravity, torques, resistance",
)
CHAIN_ACCELERATIONS = Signature(
    "chain_accelerations",
    (_x, _v, _F, *_modes),
    (
        Port("a", ("n", 2), "m/s²", meaning="accelerations of the joints"),
        Port("F_d", ("n", 2), "N", meaning="force of the link before on each joint"),
        Port("tau_w", ("n",), "N·m", meaning="torques of active joints"),
        Port("alpha", ("n",), "rad/s²", meaning="angular accelerations of the joints"),
        Port("reaction", ("n", 2), "N", meaning="force of the support on each joint"),
        Port(
            "dropped",
            ("n", 2),
            "0 | 1",
            meaning="constraints given up: length of the link after, angle",
        ),
    ),
    system=CHAIN,
    meaning="accelerations of a planar chain under forces and constraints",
)
CHAIN_IMPACT = Signature(
    "chain_impact",
    (
        _x,
        _v,
        Port("jump", ("n", 2), "m/s", meaning="velocity change of guided joints"),
        Port("turn", ("n",), "rad/s", meaning="rate change of active angles"),
        _kind,
        _s,
        _active,
    ),
    (
        Port("v_next", ("n", 2), "m/s", meaning="velocities after the impact"),
        Port("impulse", ("n", 2), "N·s", meaning="support impulse on each joint"),
        Port("torque_impulse", ("n",), "N·m·s", meaning="impulses of active joints"),
        Port("loss", (), "J", meaning="kinetic energy lost"),
    ),
    system=CHAIN,
    meaning="velocities of a planar chain after a plastic impact",
)
CHAIN_FORCE_JACOBIAN = Signature(
    "chain_force_jacobian",
    (_x, _kind, _s, _active),
    (
        Port(
            "J",
            ("n", "n", 2, 2),
            "1/kg",
            meaning="acceleration of each joint per force on each joint",
        ),
    ),
    system=CHAIN,
    meaning="accelerations of the joints per force on each joint",
)
CHAIN_TORQUE_RESPONSE = Signature(
    "chain_torque_response",
    (_x, _kind, _s, _active),
    (
        Port(
            "S",
            ("n", "n"),
            "1/(kg·m²)",
            meaning="angular acceleration of each joint per torque at each joint",
        ),
    ),
    system=CHAIN,
    meaning="angular accelerations of the joints per torque at each joint",
)
CHAIN_TORQUES = Signature(
    "chain_torques",
    (_x, _v, _F, _kind, _s, _a_w, _active, _alpha_w),
    (_tau,),
    system=CHAIN,
    meaning="joint torques that reach prescribed accelerations",
)
CHAIN_STEP = Signature(
    "chain_step",
    (_x, _v, _tau, _dt, *_modes),
    (_x, _v),
    system=CHAIN,
    meaning="state of a planar chain after a step in time",
)
_contact = Port(
    "contact", ("n",), "0 off, k on ground k-1", meaning="ground that each joint is on"
)
_limit = Port(
    "limit",
    ("n",),
    "0 off, 1 upper, -1 lower",
    meaning="limit that each joint angle is at",
)
CHAIN_EVENT_STEP = Signature(
    "chain_event_step",
    (_x, _v, _contact, _limit, _tau, _dt),
    (
        _x,
        _v,
        _contact,
        _limit,
        Port("loss", (), "J", meaning="energy lost in impacts"),
    ),
    system=CHAIN,
    meaning="state of a planar chain after a step with ground contacts and limits",
)

_q = Port("q", ("nq",), "rad | m", meaning="positions")
_qd = Port("qd", ("nq",), "rad/s | m/s", meaning="velocities")
_u = Port("u", ("nu",), "N·m | N | V", meaning="motor torques, forces or voltages")
OBJECT_DYNAMICS = Signature(
    "object_dynamics",
    (_q, _qd, _u),
    (Port("qdd", ("nq",), "rad/s² | m/s²", meaning="accelerations"),),
    system=OBJECT,
    meaning="accelerations of a planar object",
)
OBJECT_ENERGY = Signature(
    "object_energy",
    (_q, _qd),
    (
        Port("kinetic", (), "J", meaning="kinetic energy"),
        Port("potential", (), "J", meaning="potential energy"),
    ),
    system=OBJECT,
    meaning="kinetic and potential energy of a planar object",
)
OBJECT_STEP = Signature(
    "object_step",
    (_q, _qd, _u, _dt),
    (_q, _qd),
    system=OBJECT,
    meaning="state of a planar object after a step in time",
)

_state = Port("state", ("ns",), "SI", meaning="state of the task")
TASK_STEP = Signature(
    "task_step",
    (_state, Port("action", ("na",), "SI", meaning="action of the agent")),
    (
        _state,
        Port("observation", ("no",), "SI", meaning="what the agent observes"),
        Port("reward", (), "1", meaning="reward of the step"),
        Port("terminated", (), "0 | 1", meaning="whether the episode ends"),
    ),
    system=TASK,
    meaning="state, observation and reward of a learning task after a step",
)

PROBLEMS: tuple[Signature, ...] = (
    CHAIN_ACCELERATIONS,
    CHAIN_EVENT_STEP,
    CHAIN_FORCES,
    CHAIN_FORCE_JACOBIAN,
    CHAIN_IMPACT,
    CHAIN_STEP,
    CHAIN_TORQUES,
    CHAIN_TORQUE_RESPONSE,
    OBJECT_DYNAMICS,
    OBJECT_ENERGY,
    OBJECT_STEP,
    TASK_STEP,
)
