"""Kinds of problem of contacts and constraints: the impulses of one step.

A bound `lo` or `hi` beyond 1e300 in magnitude counts as no bound. The entries of
`residuals` are named by RESIDUALS in contact/problem/residuals.py; `status` is an index
into STATUSES of that file.
"""

from dyn_core.problems.derivatives import STEP_DERIVATIVES
from dyn_core.problems.joint_ports import (
    INERTIA,
    VELOCITY,
    WRENCH,
    dt,
    f_ext,
    q,
    q_next,
    qd,
    qd_next,
    tau,
)
from dyn_core.problems.ports import DYNAMICS, PASSIVE, Port, Signature

LAYOUT = "constraint_layout"

_warm = Port("warm", ("m",), "N·s", meaning="impulses of the step before, a warm start")
_impulse = Port("impulse", ("m",), "N·s", meaning="impulse of each constraint row")
_report = (
    Port(
        "residuals",
        (5,),
        "N·s, m/s, J, J, 1",
        meaning="largest violation of each law: primal, dual, complementarity,"
        " dissipation, law of friction",
    ),
    Port("iterations", (), "1", meaning="number of iterations"),
    Port("status", (), "index into STATUSES", meaning="whether the solver converged"),
)
CONTACT_SOLVE = Signature(
    "contact_solve",
    (
        Port(
            "G",
            ("m", "m"),
            "(m/s)/(N·s)",
            meaning="Delassus matrix: velocity of each row per impulse",
        ),
        Port("b", ("m",), "m/s", meaning="velocity of each row without impulses"),
        Port("mu", ("k",), "1 | m", meaning="friction coefficients"),
        Port("lo", ("m",), "N·s", meaning="lower bound of each impulse"),
        Port("hi", ("m",), "N·s", meaning="upper bound of each impulse"),
        Port(
            "compliance",
            ("m",),
            "(m/s)/(N·s)",
            meaning="softness of each row, added to the diagonal of G",
        ),
        _warm,
    ),
    (
        _impulse,
        Port("velocity", ("m",), "m/s", meaning="velocity of each row after the step"),
        *_report,
    ),
    system=LAYOUT,
    meaning="impulses of contacts, joint limits and friction in one step",
)
CONTACT_STEP = Signature(
    "contact_step",
    (q, qd, tau, dt, _warm, f_ext),
    (
        q_next,
        qd_next,
        _impulse,
        Port("gap", ("c",), "m", meaning="signed distance of each contact"),
        *_report,
    ),
    passive=PASSIVE,
    of_trees=True,
    divides_by_inertia=True,
    meaning="state after a step in time with contacts",
)
CONTACT_STEP_DERIVATIVES = Signature(
    "contact_step_derivatives",
    CONTACT_STEP.inputs,
    (
        *STEP_DERIVATIVES.outputs,
        Port(
            "dx_dmu",
            ("nx", "c"),
            "SI",
            meaning="derivative of the state after the step by friction coefficients",
        ),
        Port(
            "dx_dgap",
            ("nx", "c"),
            "SI",
            meaning="derivative of it by a shift of each contact's half-space, away",
        ),
        *CONTACT_STEP.outputs[2:4],
        Port("modes", ("c",), "-", meaning="0 separate, 1 stick, 2 slip"),
        CONTACT_STEP.outputs[6],
        Port(
            "not_differentiable",
            (),
            "-",
            meaning="1 at boundaries of modes, dependent slip, not converged; 2 at gap"
            " 0, with the slope of one side; else 0",
        ),
    ),
    passive=PASSIVE,
    of_trees=True,
    divides_by_inertia=True,
    meaning="state after a step with contacts and its derivatives, nx = 2 nv",
)
CONTACT_TERMS = Signature(
    "contact_terms",
    (q, qd, tau, dt, f_ext),
    (
        Port(
            "poses",
            ("poses", 12),
            "-; m",
            meaning="rotation to the world and origin of each body, the world's first",
        ),
        Port(
            "columns",
            ("nc", 6),
            "-; m",
            meaning="velocity of each body's joint per coordinate, [angular; linear]",
        ),
        Port(
            "factor",
            ("nl",),
            "kg^1/2·m | kg^1/2",
            meaning="factor of the inertia: inverse diagonal, entries below",
        ),
        Port("free", ("nv",), VELOCITY, meaning="velocity after a free step"),
        Port(
            "rows",
            ("nr", "nv"),
            "SI",
            meaning="derivatives of `gaps` by the positions",
        ),
        Port(
            "gaps",
            ("nr",),
            "m | rad",
            meaning="gaps of limits of balls, then errors of loops and couplings",
        ),
    ),
    passive=PASSIVE,
    divides_by_inertia=True,
    meaning="what a step with contacts needs of the dynamics",
)
MOVED_STATE = Signature(
    "moved_state",
    (
        q,
        Port("u", ("nv",), VELOCITY, "velocity", meaning="velocity in the axes of q"),
        dt,
        Port(
            "correction",
            ("nv",),
            VELOCITY,
            "velocity",
            optional=True,
            meaning="velocity that moves the position alone",
        ),
    ),
    (q_next, qd_next),
    meaning="position and velocity after a time at a velocity",
    ignores=DYNAMICS,
)


def _slopes(name: str, meaning: str) -> Port:
    """Return the Port of an (nv, nv) derivative of the equation of motion."""
    return Port(name, ("nv", "nv"), "SI", meaning=meaning)


CONTACT_TERM_SLOPES = Signature(
    "contact_term_slopes",
    (
        q,
        qd,
        tau,
        Port("u", ("nv",), VELOCITY, "velocity", meaning="velocity after the step"),
        dt,
        Port(
            "pushes",
            ("nb", 6),
            WRENCH,
            "wrenches",
            meaning="mean force of the contacts on each body, as f_ext",
        ),
        f_ext,
    ),
    (
        Port("inertia", ("nv", "nv"), INERTIA, meaning="inertia with joint friction"),
        _slopes("by_q", "momentum of the step by the position"),
        _slopes("by_qd", "momentum of the step by the velocity before it"),
        *(
            Port(
                f"change_{name}",
                ("nv", "nv"),
                "SI",
                meaning=f"gyroscopic change of the velocity by {name}",
            )
            for name in ("q", "qd", "tau")
        ),
        Port(
            "rates",
            ("nc", 6),
            "1/s; m/s",
            meaning="change of velocities with each column's coordinate, at u",
        ),
        Port("rates_before", ("nc", 6), "1/s; m/s", meaning="likewise at qd"),
    ),
    passive=PASSIVE,
    of_trees=True,
    meaning="derivatives of what a step with contacts needs of the dynamics",
)
MOVED_STATE_SLOPES = Signature(
    "moved_state_slopes",
    (
        *MOVED_STATE.inputs[:3],
        Port("correction", ("nv",), VELOCITY, "velocity", meaning="as in moved_state"),
    ),
    tuple(
        Port(f"by_{name}", ("nx", "nv"), "SI", meaning=f"change of the state by {name}")
        for name in ("q", "u", "correction")
    ),
    meaning="derivatives of the state after a time at a velocity",
    ignores=DYNAMICS,
)
