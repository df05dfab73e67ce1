"""Rates of a tool's springs and dampers, which bound the period of the states."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from dyn_core.engines import Program
from dyn_core.model import Model
from dyn_core.model.coordinates.pivots import joint_factors
from dyn_core.numbers.scalar import maximum, sqrt, where
from dyn_core.problems import CARTESIAN_CONTROL, JACOBIAN, MASS_MATRIX
from dyn_core.problems.signatures import Signature
from dyn_core.problems.signatures import port_row as P
from dyn_core.solving.registry import solver
from dyn_core.solving.solver import TracedSolver
from dyn_core.spatial import Matrix, Vector
from dyn_core.spatial.eigen import eigen_symmetric

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
LEAST_MOBILITY = 1e-12  # an axis that moves less has neither spring nor damper
SAMPLED_TOOL = Signature(
    "sampled_tool",
    (
        CARTESIAN_CONTROL.inputs[0],
        P("stiffness", "6", "N·m/rad; N/m", "diagonal of the stiffness K"),
        P("ratio", "6", "1", "damping ratio of each axis"),
        P("rest_damping", "nv", "N·m·s/rad | N·s/m", "damping of the posture"),
    ),
    (
        P("rate", "", "1/s", "largest rate at which dampers slow the robot"),
        P("frequencies", "6", "rad/s", "of each axis, sqrt(K_ii / m_i)"),
    ),
    of_trees=True,
    meaning="rates of the springs and dampers of a tool",
)


def sampled_tool(  # type: ignore[no-untyped-def]
    model, q, stiffness, ratio, rest_damping, mass_matrix, jacobian
):
    """Return the largest rate of a tool's dampers, and the rates of its springs, (6,).

        rate = lambda_max(H^-1 (J.T D J + diag(rest_damping)))
        D_i = 2 ratio_i sqrt(K_ii m_i),   m_i = 1 / (J H^-1 J.T)_ii

    The rate of spring i is sqrt(K_ii / m_i), and 0 where no joint moves along its axis.
    A Program of it raises SingularError if a joint has no inertia.

    The first rate is in 1/s, those of the springs are in rad/s, angular axes first. The
    rate is the largest eigenvalue of W.T H^-1 W, where W W.T is the damping of joints.

    Args:
        model: Robot.
        q: Joint position, (nq,).
        stiffness: Diagonal of K, (6,) [N·m/rad; N/m]; negative entries count as zero.
        ratio: Damping ratio of each axis, (6,).
        rest_damping: Damping of each joint, (nv,) [N·m·s/rad | N·s/m]. It and the
            ratio must not be negative, which is not checked.
        mass_matrix: Slot: function of q that returns H, (nv, nv).
        jacobian: Slot: function of q that returns J, (6, nv), in the stiffness' axes.
    """
    factors, J = joint_factors(model, mass_matrix(q)), jacobian(q)
    halves, frequencies = [], []
    for row, k, share in zip(J.rows, stiffness, ratio, strict=True):
        z, Dz = factors.halves(row)
        moves = z @ Dz > LEAST_MOBILITY
        square = where(moves, maximum(k, 0.0) * (z @ Dz), 0.0)
        frequencies.append(sqrt(square))
        size = 2.0 * share * sqrt(square) / where(moves, z @ Dz, 1.0)
        halves.append((z * sqrt(size), Dz * sqrt(size)))
    for k, d in enumerate(rest_damping):
        unit = [sqrt(d) if i == k else 0.0 for i in range(model.nv)]
        halves.append(factors.halves(unit))
    A = Matrix([z @ Dz for _, Dz in halves] for z, _ in halves)
    return reduce(maximum, eigen_symmetric(A)[0]), Vector(frequencies)


def sampling_program(
    model: Model, frame: str, axes: str, engine: Any = None, paths: Sequence[str] = ()
) -> Program[Any]:
    """Return the prepared Program of sampled_tool; raises the errors of its build.

    Its inputs are q, stiffness, ratio and rest_damping, then the time [s] if joints are
    driven, then `paths`; its outputs are the largest rate of the dampers [1/s] and the
    rates of the springs, (6,) [rad/s]. `axes` of the stiffness are aligned (base) or
    local (tool).
    """
    made = TracedSolver(
        SAMPLED_TOOL.name,
        SAMPLED_TOOL,
        sampled_tool,
        slots={"mass_matrix": MASS_MATRIX, "jacobian": JACOBIAN},
        fills={
            "mass_matrix": solver("crba"),
            "jacobian": solver("jacobian").with_options(frame=frame, reference=axes),
        },
        by_joint=False,
    )
    inputs = [*(["time"] if model.driven else []), *paths]
    program = made.build(model, engine=engine, inputs=inputs)
    program.prepare()
    return program
