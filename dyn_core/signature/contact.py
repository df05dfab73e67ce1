"""The kind of problem of contacts and constraints: one step's impulses.

A bound beyond 1e300 is none. `residuals` are RESIDUALS of dyn_core.contact.laws,
`status` is an index into STATUSES there.
"""

from dyn_core.signature.ports import Port, Signature

LAYOUT = "constraint_layout"

CONTACT_SOLVE = Signature(
    "contact_solve",
    (
        Port("G", ("m", "m"), "(m/s)/(N·s)"),
        Port("b", ("m",), "m/s"),
        Port("mu", ("k",), "1 | m"),
        Port("lo", ("m",), "N·s"),
        Port("hi", ("m",), "N·s"),
        Port("compliance", ("m",), "(m/s)/(N·s)"),
        Port("warm", ("m",), "N·s"),
    ),
    (
        Port("impulse", ("m",), "N·s"),
        Port("velocity", ("m",), "m/s"),
        Port("residuals", (5,), "N·s, m/s, J, J, 1"),
        Port("iterations", (), "1"),
        Port("status", (), "index into STATUSES"),
    ),
    system=LAYOUT,
)

_q = Port("q", ("nq",), "rad | m", "position")
_qd = Port("qd", ("nv",), "rad/s | m/s", "velocity")
CONTACT_STEP = Signature(
    "contact_step",
    (
        _q,
        _qd,
        Port("tau", ("nv",), "N·m | N", "joint_force"),
        Port("dt", (), "s"),
        Port("warm", ("m",), "N·s"),
        Port("f_ext", ("nb", 6), "N·m; N", "wrenches", optional=True),
    ),
    (
        Port("q_next", ("nq",), "rad | m", "position"),
        Port("qd_next", ("nv",), "rad/s | m/s", "velocity"),
        Port("impulse", ("m",), "N·s"),
        Port("gap", ("c",), "m"),
        Port("residuals", (5,), "N·s, m/s, J, J, 1"),
        Port("iterations", (), "1"),
        Port("status", (), "index into STATUSES"),
    ),
    of_trees=True,
)
