"""Kinds of problem: inputs and outputs with name, size, unit and meaning, as data.

Signatures of planar chains and of tasks are in dyn_core.planar.problems.
"""

from dyn_core.errors import SignatureError, unknown_name
from dyn_core.problems.constraints import (
    CONSTRAINT_JACOBIAN,
    CROSS_RESPONSE,
    DELASSUS,
    INDEPENDENT_BIAS,
    INDEPENDENT_GRAVITY,
    INDEPENDENT_INERTIA,
    LOOP_CONSTRAINTS,
    LOOP_FORWARD_DYNAMICS,
    LOOP_HYBRID_DYNAMICS,
    LOOP_INVERSE_DYNAMICS,
    LOOP_REACTIONS,
    OPERATIONAL_INERTIA,
    POINT_DELASSUS,
    POINT_IMPULSE,
    RESPONSE,
    SELF_RESPONSES,
)
from dyn_core.problems.contact import (
    CONTACT_SOLVE,
    CONTACT_STEP,
    CONTACT_STEP_DERIVATIVES,
    CONTACT_TERM_SLOPES,
    CONTACT_TERMS,
    MOVED_STATE,
    MOVED_STATE_SLOPES,
)
from dyn_core.problems.derivatives import (
    FD_DERIVATIVES,
    FD_DIRECTIONAL,
    FD_FORCE_JACOBIAN,
    FD_PARAMETER_JACOBIAN,
    FD_SECOND_CONTRACTED,
    FD_SECOND_DERIVATIVES,
    HD_DERIVATIVES,
    HD_DIRECTIONAL,
    ID_DERIVATIVES,
    ID_DIRECTIONAL,
    ID_FORCE_JACOBIAN,
    ID_SECOND_CONTRACTED,
    ID_SECOND_DERIVATIVES,
    LOOP_FD_DERIVATIVES,
    LOOP_HD_DERIVATIVES,
    LOOP_ID_DERIVATIVES,
    PARAMETER_JACOBIAN,
    STEP_DERIVATIVES,
)
from dyn_core.problems.describe import InstanceDoc, describe
from dyn_core.problems.dynamics import (
    ARTICULATED_BODIES,
    BIAS_FORCE,
    CARTESIAN_CONTROL,
    CORIOLIS_FORCE,
    CORIOLIS_MATRIX,
    ENERGY_REGRESSOR,
    FORWARD_DYNAMICS,
    GRAVITY_CONTROL,
    GRAVITY_FORCE,
    HYBRID_DYNAMICS,
    HYBRID_DYNAMICS_MASKED,
    HYBRID_STEP,
    IMPEDANCE_CONTROL,
    INERTIAL_FORCE,
    INVERSE_DYNAMICS,
    JOINT_REACTIONS,
    MASS_MATRIX,
    MASS_MATRIX_INVERSE,
    MOMENTUM_OBSERVER,
    PAYLOAD_ESTIMATION,
    REGRESSOR,
    STEP,
    TRACKING_CONTROL,
)
from dyn_core.problems.kinematics import (
    BODY_JACOBIANS,
    BODY_MOTION,
    CENTRE_OF_MASS,
    CENTROIDAL_MATRIX,
    ENERGY,
    FORWARD_KINEMATICS,
    FRAME_ACCELERATION,
    FRAME_BIAS_ACCELERATION,
    FRAME_VELOCITY,
    INVERSE_KINEMATICS,
    JACOBIAN,
    MANIPULABILITY,
    MOMENTUM,
    ZERO_MOMENT_POINT,
)
from dyn_core.problems.prediction import (
    KNOT_COST,
    KNOT_COST_DERIVATIVES,
    KNOT_POLICY,
    OPTIMAL_CONTROL,
)
from dyn_core.problems.signatures import KINDS, PASSIVE, REST, Port, Signature
from dyn_core.problems.system import System

# All Signatures imported above, by name.
PROBLEMS: tuple[Signature, ...] = tuple(
    sorted(
        (x for x in list(globals().values()) if isinstance(x, Signature)),
        key=lambda problem: problem.name,
    )
)


def names() -> list[str]:
    """Return the names of all Signatures in PROBLEMS, sorted."""
    return [problem.name for problem in PROBLEMS]


def find(name: str) -> Signature:
    """Return the Signature with a name, such as "inverse_dynamics"; case is ignored."""
    for problem in PROBLEMS:
        if problem.name == str(name).lower():
            return problem
    raise SignatureError(unknown_name("problem", name, names()))


__all__ = [
    "ARTICULATED_BODIES",
    "BIAS_FORCE",
    "BODY_JACOBIANS",
    "BODY_MOTION",
    "CARTESIAN_CONTROL",
    "CENTRE_OF_MASS",
    "CENTROIDAL_MATRIX",
    "CONSTRAINT_JACOBIAN",
    "CONTACT_SOLVE",
    "CONTACT_STEP",
    "CONTACT_STEP_DERIVATIVES",
    "CONTACT_TERMS",
    "CONTACT_TERM_SLOPES",
    "CORIOLIS_FORCE",
    "CORIOLIS_MATRIX",
    "CROSS_RESPONSE",
    "DELASSUS",
    "ENERGY",
    "ENERGY_REGRESSOR",
    "FD_DERIVATIVES",
    "FD_DIRECTIONAL",
    "FD_FORCE_JACOBIAN",
    "FD_PARAMETER_JACOBIAN",
    "FD_SECOND_CONTRACTED",
    "FD_SECOND_DERIVATIVES",
    "FORWARD_DYNAMICS",
    "FORWARD_KINEMATICS",
    "FRAME_ACCELERATION",
    "FRAME_BIAS_ACCELERATION",
    "FRAME_VELOCITY",
    "GRAVITY_CONTROL",
    "GRAVITY_FORCE",
    "HD_DERIVATIVES",
    "HD_DIRECTIONAL",
    "HYBRID_DYNAMICS",
    "HYBRID_DYNAMICS_MASKED",
    "HYBRID_STEP",
    "ID_DERIVATIVES",
    "ID_DIRECTIONAL",
    "ID_FORCE_JACOBIAN",
    "ID_SECOND_CONTRACTED",
    "ID_SECOND_DERIVATIVES",
    "IMPEDANCE_CONTROL",
    "INDEPENDENT_BIAS",
    "INDEPENDENT_GRAVITY",
    "INDEPENDENT_INERTIA",
    "INERTIAL_FORCE",
    "INVERSE_DYNAMICS",
    "INVERSE_KINEMATICS",
    "JACOBIAN",
    "JOINT_REACTIONS",
    "KINDS",
    "KNOT_COST",
    "KNOT_COST_DERIVATIVES",
    "KNOT_POLICY",
    "LOOP_CONSTRAINTS",
    "LOOP_FD_DERIVATIVES",
    "LOOP_FORWARD_DYNAMICS",
    "LOOP_HD_DERIVATIVES",
    "LOOP_HYBRID_DYNAMICS",
    "LOOP_ID_DERIVATIVES",
    "LOOP_INVERSE_DYNAMICS",
    "LOOP_REACTIONS",
    "MANIPULABILITY",
    "MASS_MATRIX",
    "MASS_MATRIX_INVERSE",
    "MOMENTUM",
    "MOMENTUM_OBSERVER",
    "MOVED_STATE",
    "MOVED_STATE_SLOPES",
    "OPERATIONAL_INERTIA",
    "OPTIMAL_CONTROL",
    "PARAMETER_JACOBIAN",
    "PASSIVE",
    "PAYLOAD_ESTIMATION",
    "POINT_DELASSUS",
    "POINT_IMPULSE",
    "PROBLEMS",
    "REGRESSOR",
    "RESPONSE",
    "REST",
    "SELF_RESPONSES",
    "STEP",
    "STEP_DERIVATIVES",
    "TRACKING_CONTROL",
    "ZERO_MOMENT_POINT",
    "InstanceDoc",
    "Port",
    "Signature",
    "SignatureError",
    "System",
    "describe",
    "unknown_name",
]
