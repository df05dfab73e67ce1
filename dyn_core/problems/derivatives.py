"""Kinds of problem that are derivatives of a robot's dynamics, with loops or without.

A second derivative is the derivative of the first one along a tangent displacement:
[i, j, k] is output i, differentiated by coordinate j and then by coordinate k.
"""

from collections.abc import Iterable

from dyn_core.problems.constraints import (
    LOOP_FORWARD_DYNAMICS,
    LOOP_HYBRID_DYNAMICS,
    LOOP_INVERSE_DYNAMICS,
)
from dyn_core.problems.dynamics import HYBRID_DYNAMICS
from dyn_core.problems.ports import (
    ACCELERATION,
    FORCE,
    INERTIA,
    INVERSE_INERTIA,
    POSITION,
    VELOCITY,
    WRENCH,
    dt,
    f_ext,
    plain_qdd,
    plain_tau,
    q,
    q_next,
    qd,
    qd_next,
    qdd,
    qdd_u,
    tau,
    tau_v,
)
from dyn_core.problems.signatures import DYNAMICS, PASSIVE, Port, Signature, slope_row
from dyn_core.problems.signatures import port_row as P
from dyn_core.problems.signatures import slope_row as d

_SIZES = {
    "qdd": "nv", "lambda": "m", "tau_a": "na", "tau_u": "nu", "qdd_v": "nf",
    "q": "nv", "qd": "nv", "tau": "nv", "qdd_u": "nu", "tau_v": "nf", "tau_p": "np",
    "p": "k",
}  # fmt: skip


def _slopes(results: Iterable[str], variables: Iterable[str]) -> tuple[Port, ...]:
    """Return the Ports "dOF_dBY" of all results by all variables, by results first."""
    pairs = [(of, by) for of in results for by in variables]
    kinds = {("qdd", "tau"): "symmetric"}
    return tuple(
        slope_row(
            of, by, f"{_SIZES[of]} {_SIZES[by]}", "SI", kinds.get((of, by), "plain")
        )
        for of, by in pairs
    )


# fmt: off
LOOP_FD_DERIVATIVES = Signature("loop_fd_derivatives", LOOP_FORWARD_DYNAMICS.inputs,
    (*LOOP_FORWARD_DYNAMICS.outputs[:2],
     *_slopes(("qdd", "lambda"), ("q", "qd", "tau", "p"))),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="forward dynamics of a robot with loops and its derivatives")
LOOP_HD_DERIVATIVES = Signature("loop_hd_derivatives", LOOP_HYBRID_DYNAMICS.inputs,
    (*LOOP_HYBRID_DYNAMICS.outputs,
     *_slopes(("tau_u", "qdd_v", "lambda"), ("q", "qd", "qdd_u", "tau_v", "p"))),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="hybrid dynamics of a robot with loops and its derivatives")
LOOP_ID_DERIVATIVES = Signature("loop_id_derivatives", LOOP_INVERSE_DYNAMICS.inputs,
    (*LOOP_INVERSE_DYNAMICS.outputs,
     *_slopes(("tau_a", "lambda"), ("q", "qd", "qdd", "tau_p", "p"))),
    passive=PASSIVE,
    meaning="forces of active joints of a robot with loops and their derivatives")


def _second(of: str, by: str, then: str) -> Port:
    """Return the (nv, nv, nv) Port "d2OF_dBYdTHEN" of a second derivative."""
    meaning = f"derivative of d{of}_d{by}[i, j] by {then}[k], at [i, j, k]"
    return P(f"d2{of}_d{by}d{then}", "nv nv nv", "SI", meaning)


def _contracted(of: str, by: str, then: str, kind: str = "plain") -> Port:
    """Return the (nv, nv) Port "d2OF_dBYdTHEN", second derivatives of weights . OF."""
    meaning = f"derivative of (weights . d{of}_d{by})[j] by {then}[k], at [j, k]"
    return P(f"d2{of}_d{by}d{then}", "nv nv", "SI", meaning, kind)


# fmt: off
_PAIRS = (("q", "q"), ("q", "qd"), ("qd", "qd"))
_CURVED = ("joint_friction",)  # joint springs are linear
weights = P("weights", "nv", "SI", "factors of the entries in the sum")
dH_dq = P("dH_dq", "nv nv nv", INERTIA, "derivative of H[i, j] by q[k], at [i, j, k]")

ID_SECOND_DERIVATIVES = Signature("id_second_derivatives", (q, qd, plain_qdd, f_ext),
    (*(_second("tau", *pair) for pair in _PAIRS), dH_dq),
    passive=_CURVED, of_trees=True,
    meaning="second derivatives of inverse dynamics")
ID_SECOND_CONTRACTED = Signature("id_second_contracted",
    (q, qd, plain_qdd, weights, f_ext),
    tuple(_contracted("tau", *pair, "joint_slopes")
          for pair in (*_PAIRS, ("q", "qdd"))),
    passive=_CURVED, of_trees=True,
    meaning="second derivatives of weights . tau, of inverse dynamics")
FD_SECOND_DERIVATIVES = Signature("fd_second_derivatives", (q, qd, plain_tau, f_ext),
    tuple(_second("qdd", *pair) for pair in (*_PAIRS, ("q", "tau"))),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="second derivatives of forward dynamics")
FD_SECOND_CONTRACTED = Signature("fd_second_contracted",
    (q, qd, plain_tau, weights, f_ext),
    tuple(_contracted("qdd", *pair) for pair in (*_PAIRS, ("q", "tau"))),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="second derivatives of weights . qdd, of forward dynamics")


def _along(name: str, unit: str, size: str = "nv") -> Port:
    """Return the Port "dNAME" of the derivative of NAME along the direction."""
    return P(f"d{name}", size, unit, f"change of {name} per direction")


# fmt: off
H = P("H", "nv nv", INERTIA,
    "joint-space inertia matrix, the derivative of tau by qdd", "joint_matrix")
Hinv = P("Hinv", "nv nv", INVERSE_INERTIA,
    "inverse of the joint-space inertia, the derivative of qdd by tau", "symmetric")
dtau_df_ext = P("dtau_df_ext", "nv nb 6", "SI",
    "derivative of tau by the force on each body, [moment; force]: -J.T")
dqdd_df_ext = P("dqdd_df_ext", "nv nb 6", "SI",
    "derivative of qdd by the force on each body, [moment; force]: H^-1 J.T")
dq, dqd = _along("q", POSITION), _along("qd", VELOCITY)
dqdd, dtau = _along("qdd", ACCELERATION), _along("tau", FORCE)
dqdd_u, dtau_v = _along("qdd_u", ACCELERATION, "nu"), _along("tau_v", FORCE, "nf")
dtau_u, dqdd_v = _along("tau_u", FORCE, "nu"), _along("qdd_v", ACCELERATION, "nf")
df_ext = P("df_ext", "nb 6", WRENCH, "change of f_ext per direction", "wrenches",
    optional=True)
dp = P("dp", "np", "SI", "change of the parameters per direction", optional=True)
A = P("A", "nx nx", "SI",
    "derivative of the state after the step by the state, (dq, dqd)")
B = P("B", "nx nv", "SI", "derivative of the state after the step by tau")
dx_dp = P("dx_dp", "nx np", "SI",
    "derivative of the state after the step by parameters p")

ID_DERIVATIVES = Signature("id_derivatives", (q, qd, qdd, f_ext),
    (d("tau", "q", "nv nv", kind="joint_stiffness"),
     d("tau", "qd", "nv nv", kind="joint_damping"), H),
    friction_at="qd", of_trees=True,
    meaning="derivatives of inverse dynamics")
FD_DERIVATIVES = Signature("fd_derivatives", (q, qd, tau, f_ext),
    (qdd, d("qdd", "q", "nv nv"), d("qdd", "qd", "nv nv"), Hinv),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="joint accelerations and the derivatives of forward dynamics")
HD_DERIVATIVES = Signature("hd_derivatives", HYBRID_DYNAMICS.inputs,
    (*HYBRID_DYNAMICS.outputs,
     d("tau_u", "q", "nu nv"), d("tau_u", "qd", "nu nv"),
     d("tau_u", "qdd_u", "nu nu", INERTIA), d("tau_u", "tau_v", "nu nf", "1"),
     d("qdd_v", "q", "nf nv"), d("qdd_v", "qd", "nf nv"),
     d("qdd_v", "qdd_u", "nf nu", "1"), d("qdd_v", "tau_v", "nf nf", INVERSE_INERTIA)),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="hybrid dynamics and its derivatives")
ID_DIRECTIONAL = Signature("id_directional",
    (q, qd, plain_qdd, dq, dqd, dqdd, f_ext, df_ext, dp), (plain_tau, dtau),
    passive=PASSIVE, of_trees=True,
    meaning="inverse dynamics and its derivative along a direction")
FD_DIRECTIONAL = Signature("fd_directional",
    (q, qd, plain_tau, dq, dqd, dtau, f_ext, df_ext, dp), (plain_qdd, dqdd),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="forward dynamics and its derivative along a direction")
HD_DIRECTIONAL = Signature("hd_directional",
    (q, qd, qdd_u, tau_v, dq, dqd, dqdd_u, dtau_v, f_ext, df_ext, dp),
    (*HYBRID_DYNAMICS.outputs, dtau_u, dqdd_v),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="hybrid dynamics and its derivative along a direction")
PARAMETER_JACOBIAN = Signature("parameter_jacobian",
    (q, qd, plain_qdd, f_ext), (plain_tau, d("tau", "p", "nv np")),
    passive=PASSIVE, of_trees=True,
    meaning="joint forces and their derivative by parameters p of the robot")
FD_PARAMETER_JACOBIAN = Signature("fd_parameter_jacobian",
    (q, qd, plain_tau, f_ext), (plain_qdd, d("qdd", "p", "nv np")),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="joint accelerations and their derivative by parameters p of the robot")
STEP_DERIVATIVES = Signature("step_derivatives",
    (q, qd, plain_tau, dt, f_ext), (q_next, qd_next, A, B, dx_dp),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="a step in time, linearised: state after it and derivatives, nx = 2 nv")
ID_FORCE_JACOBIAN = Signature("id_force_jacobian", (q,), (dtau_df_ext,),
    of_trees=True, ignores=DYNAMICS,
    meaning="derivative of inverse dynamics by external forces")
FD_FORCE_JACOBIAN = Signature("fd_force_jacobian", (q,), (dqdd_df_ext,),
    of_trees=True, divides_by_inertia=True, ignores=("gravity",),
    meaning="derivative of forward dynamics by external forces")
