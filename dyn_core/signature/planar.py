"""Kinds of problem of planar chains, of planar objects and of tasks for them.

Modes are optional inputs: what joints do is in the chain's own constraints unless a
Program is built with inputs=[...] that say it call by call.
"""

from dyn_core.signature.ports import Port, Signature

CHAIN, OBJECT, TASK = "planar_chain", "planar_object", "task"

_x = Port("x", ("n", 2), "m")
_v = Port("v", ("n", 2), "m/s")
_F = Port("F", ("n", 2), "N")
_tau = Port("tau", ("n",), "N·m")
_kind = Port("kind", ("n",), "0 free, 1 line, 2 guided", optional=True)
_s = Port("s", ("n", 2), "1", optional=True)
_a_w = Port("a_w", ("n", 2), "m/s²", optional=True)
_active = Port("active", ("n",), "0 | 1", optional=True)
_alpha_w = Port("alpha_w", ("n",), "rad/s²", optional=True)
_modes = (_kind, _s, _a_w, _active, _alpha_w)

CHAIN_FORCES = Signature("chain_forces", (_x, _v, _tau), (_F,), system=CHAIN)
CHAIN_ACCELERATIONS = Signature(
    "chain_accelerations",
    (_x, _v, _F, *_modes),
    (
        Port("a", ("n", 2), "m/s²"),
        Port("F_d", ("n", 2), "N"),
        Port("tau_w", ("n",), "N·m"),
        Port("alpha", ("n",), "rad/s²"),
        Port("reaction", ("n", 2), "N"),
        Port("dropped", ("n", 2), "0 | 1"),
    ),
    system=CHAIN,
)
CHAIN_IMPACT = Signature(
    "chain_impact",
    (
        _x,
        _v,
        Port("jump", ("n", 2), "m/s"),
        Port("turn", ("n",), "rad/s"),
        _kind,
        _s,
        _active,
    ),
    (
        Port("v_next", ("n", 2), "m/s"),
        Port("impulse", ("n", 2), "N·s"),
        Port("torque_impulse", ("n",), "N·m·s"),
        Port("loss", (), "J"),
    ),
    system=CHAIN,
)
CHAIN_FORCE_JACOBIAN = Signature(
    "chain_force_jacobian",
    (_x, _kind, _s, _active),
    (Port("J", ("n", "n", 2, 2), "1/kg"),),
    system=CHAIN,
)
CHAIN_TORQUE_RESPONSE = Signature(
    "chain_torque_response",
    (_x, _kind, _s, _active),
    (Port("S", ("n", "n"), "1/(kg·m²)"),),
    system=CHAIN,
)
CHAIN_TORQUES = Signature(
    "chain_torques",
    (_x, _v, _F, _kind, _s, _a_w, _active, _alpha_w),
    (_tau,),
    system=CHAIN,
)
CHAIN_STEP = Signature(
    "chain_step", (_x, _v, _tau, Port("dt", (), "s"), *_modes), (_x, _v), system=CHAIN
)
_contact = Port("contact", ("n",), "0 off, k on ground k-1")
_limit = Port("limit", ("n",), "0 off, 1 upper, -1 lower")
CHAIN_EVENT_STEP = Signature(
    "chain_event_step",
    (_x, _v, _contact, _limit, _tau, Port("dt", (), "s")),
    (_x, _v, _contact, _limit, Port("loss", (), "J")),
    system=CHAIN,
)

_q = Port("q", ("nq",), "rad | m")
_qd = Port("qd", ("nq",), "rad/s | m/s")
_u = Port("u", ("nu",), "N·m | N | V")
OBJECT_DYNAMICS = Signature(
    "object_dynamics",
    (_q, _qd, _u),
    (Port("qdd", ("nq",), "rad/s² | m/s²"),),
    system=OBJECT,
)
OBJECT_ENERGY = Signature(
    "object_energy",
    (_q, _qd),
    (Port("kinetic", (), "J"), Port("potential", (), "J")),
    system=OBJECT,
)
OBJECT_STEP = Signature(
    "object_step", (_q, _qd, _u, Port("dt", (), "s")), (_q, _qd), system=OBJECT
)

_state = Port("state", ("ns",), "SI")
TASK_STEP = Signature(
    "task_step",
    (_state, Port("action", ("na",), "SI")),
    (
        _state,
        Port("observation", ("no",), "SI"),
        Port("reward", (), "1"),
        Port("terminated", (), "0 | 1"),
    ),
    system=TASK,
)
