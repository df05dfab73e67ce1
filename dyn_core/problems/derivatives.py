"""Kinds of problem that are derivatives of a robot's dynamics."""

from dyn_core.problems.dynamics import HYBRID_DYNAMICS
from dyn_core.problems.joint_ports import (
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
from dyn_core.problems.ports import DYNAMICS, PASSIVE, Port, Signature


def _slope(
    of: str, by: str, shape: tuple[str, str], unit: str = "SI", kind: str = "plain"
) -> Port:
    """Return the Port "dOF_dBY" of a matrix of partial derivatives.

    Args:
        of, by: Names of the differentiated output and of the variable.
        shape: Named sizes of `of` and of `by`.
        unit: SI unit of the derivative.
        kind: One of KINDS in ports.py.
    """
    meaning = f"derivative of {of} by {by}"
    return Port(f"d{of}_d{by}", shape, unit, kind, meaning=meaning)


def _along(name: str, unit: str, size: str = "nv") -> Port:
    """Return the Port "dNAME": the derivative of NAME along the direction.

    Args:
        name: Differentiated quantity.
        unit: SI unit of the derivative.
        size: Named size of its only axis.
    """
    return Port(f"d{name}", (size,), unit, meaning=f"change of {name} per direction")


ID_DERIVATIVES = Signature(
    "id_derivatives",
    (q, qd, qdd, f_ext),
    (
        _slope("tau", "q", ("nv", "nv"), kind="joint_stiffness"),
        _slope("tau", "qd", ("nv", "nv"), kind="joint_damping"),
        Port(
            "H",
            ("nv", "nv"),
            INERTIA,
            "joint_matrix",
            meaning="joint-space inertia matrix, the derivative of tau by qdd",
        ),
    ),
    friction_at="qd",
    of_trees=True,
    meaning="derivatives of inverse dynamics",
)
FD_DERIVATIVES = Signature(
    "fd_derivatives",
    (q, qd, tau, f_ext),
    (
        qdd,
        _slope("qdd", "q", ("nv", "nv")),
        _slope("qdd", "qd", ("nv", "nv")),
        Port(
            "Hinv",
            ("nv", "nv"),
            INVERSE_INERTIA,
            "symmetric",
            meaning="inverse of the joint-space inertia, the derivative of qdd by tau",
        ),
    ),
    passive=PASSIVE,
    divides_by_inertia=True,
    meaning="joint accelerations and the derivatives of forward dynamics",
)
HD_DERIVATIVES = Signature(
    "hd_derivatives",
    HYBRID_DYNAMICS.inputs,
    (
        *HYBRID_DYNAMICS.outputs,
        _slope("tau_u", "q", ("nu", "nv")),
        _slope("tau_u", "qd", ("nu", "nv")),
        _slope("tau_u", "qdd_u", ("nu", "nu"), INERTIA),
        _slope("tau_u", "tau_v", ("nu", "nf"), "1"),
        _slope("qdd_v", "q", ("nf", "nv")),
        _slope("qdd_v", "qd", ("nf", "nv")),
        _slope("qdd_v", "qdd_u", ("nf", "nu"), "1"),
        _slope("qdd_v", "tau_v", ("nf", "nf"), INVERSE_INERTIA),
    ),
    passive=PASSIVE,
    of_trees=True,
    divides_by_inertia=True,
    meaning="hybrid dynamics and its derivatives",
)

_dq, _dqd = _along("q", POSITION), _along("qd", VELOCITY)
_dqdd, _dtau = _along("qdd", ACCELERATION), _along("tau", FORCE)
_f_ext_and_directions = (
    f_ext,
    Port(
        "df_ext",
        ("nb", 6),
        WRENCH,
        "wrenches",
        optional=True,
        meaning="change of the external forces per direction",
    ),
    Port(
        "dp",
        ("np",),
        "SI",
        optional=True,
        meaning="change of the parameters per direction",
    ),
)
ID_DIRECTIONAL = Signature(
    "id_directional",
    (q, qd, plain_qdd, _dq, _dqd, _dqdd, *_f_ext_and_directions),
    (plain_tau, _dtau),
    passive=PASSIVE,
    of_trees=True,
    meaning="inverse dynamics and its derivative along a direction",
)
FD_DIRECTIONAL = Signature(
    "fd_directional",
    (q, qd, plain_tau, _dq, _dqd, _dtau, *_f_ext_and_directions),
    (plain_qdd, _dqdd),
    passive=PASSIVE,
    of_trees=True,
    divides_by_inertia=True,
    meaning="forward dynamics and its derivative along a direction",
)
HD_DIRECTIONAL = Signature(
    "hd_directional",
    (
        q,
        qd,
        qdd_u,
        tau_v,
        _dq,
        _dqd,
        _along("qdd_u", ACCELERATION, "nu"),
        _along("tau_v", FORCE, "nf"),
        *_f_ext_and_directions,
    ),
    (
        *HYBRID_DYNAMICS.outputs,
        _along("tau_u", FORCE, "nu"),
        _along("qdd_v", ACCELERATION, "nf"),
    ),
    passive=PASSIVE,
    of_trees=True,
    divides_by_inertia=True,
    meaning="hybrid dynamics and its derivative along a direction",
)
PARAMETER_JACOBIAN = Signature(
    "parameter_jacobian",
    (q, qd, plain_qdd, f_ext),
    (plain_tau, _slope("tau", "p", ("nv", "np"))),
    passive=PASSIVE,
    of_trees=True,
    meaning="joint forces and their derivative by parameters p of the robot",
)
FD_PARAMETER_JACOBIAN = Signature(
    "fd_parameter_jacobian",
    (q, qd, plain_tau, f_ext),
    (plain_qdd, _slope("qdd", "p", ("nv", "np"))),
    passive=PASSIVE,
    of_trees=True,
    divides_by_inertia=True,
    meaning="joint accelerations and their derivative by parameters p of the robot",
)
STEP_DERIVATIVES = Signature(
    "step_derivatives",
    (q, qd, plain_tau, dt, f_ext),
    (
        q_next,
        qd_next,
        Port(
            "A",
            ("nx", "nx"),
            "SI",
            meaning="derivative of the state after the step by the state, (dq, dqd)",
        ),
        Port(
            "B",
            ("nx", "nv"),
            "SI",
            meaning="derivative of the state after the step by tau",
        ),
        Port(
            "dx_dp",
            ("nx", "np"),
            "SI",
            meaning="derivative of the state after the step by parameters p",
        ),
    ),
    passive=PASSIVE,
    divides_by_inertia=True,
    meaning="state after a step in time and its derivatives, nx = 2 nv",
)


def _by_forces(of: str, unit: str) -> Port:
    """Return the Port of the (nv, nb, 6) derivative of `of` by all external forces."""
    meaning = f"derivative of {of} by the force on each body, [moment; force]"
    return Port(f"d{of}_df_ext", ("nv", "nb", 6), unit, meaning=meaning)


ID_FORCE_JACOBIAN = Signature(
    "id_force_jacobian",
    (q,),
    (_by_forces("tau", "SI"),),
    of_trees=True,
    meaning="derivative of inverse dynamics by external forces",
    ignores=DYNAMICS,
)
FD_FORCE_JACOBIAN = Signature(
    "fd_force_jacobian",
    (q,),
    (_by_forces("qdd", "SI"),),
    of_trees=True,
    divides_by_inertia=True,
    meaning="derivative of forward dynamics by external forces",
    ignores=("gravity",),
)
