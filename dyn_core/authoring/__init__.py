"""Names for authors of algorithms and solvers, by topic.

Solvers and hooks: TracedSolver, NumpySolver, Solver, Required, input_names, hookimpl,
    Signature, Port, System, SystemKind.
Modes of the controller: ControlMode, ModeTopic, ModeMessage.
Functions of values: sqrt, sin, cos, tanh, exp, log, asin, acos, atan2, absolute, floor,
    minimum, maximum.
Choices and conditions: where, loop, require, equal, logical_and, logical_or,
    logical_not.
Vectors and matrices: Vector, Matrix, Symmetric, Factored, eigen_symmetric, product,
    sparse_products, skew, cross3, total, rotation_rates.
Rotations and displacements: chord3, dexp6_inverse, log_transform, quat_matrix.
Spatial values: Motion, Force, Transform, MotionSubspace, ForceSubspace, RigidInertia,
    ArticulatedInertia, VelocityProduct, cross, cross_motion, cross_force.
Coordinates of a robot: split_q, split_v, join_v, join_force, join_columns, join_matrix,
    join_slopes, joint_factors, coordinate_pivots, limited_balls, ball_limit_rows,
    advance, position_rate, velocity_of, rate_in_initial_axes, gyroscopic_change,
    with_parameters, ClusterJoint, cluster_joints.
Passive joint forces: resistance, without_springs, friction_force, friction_direction,
    friction_slope, friction_slope_matrix, damping_matrix, stiffness_matrix,
    spring_energy, forces_without_potential.
Numbers that carry derivatives: Number, Taylor, derivatives, variables, COORDINATE,
    TIME.
Spatial values along a direction: with_slopes, has_slope, value_of, slope_of,
    variation_of.
Contacts: ContactSolver, ContactModel, structure, columns_of.
"""

from dyn_core.contact.problem.solving import ContactSolver
from dyn_core.contact.rows.structure import columns_of, structure
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.model.coordinates import (
    advance,
    gyroscopic_change,
    join_columns,
    join_force,
    join_matrix,
    join_slopes,
    join_v,
    joint_factors,
    position_rate,
    rate_in_initial_axes,
    split_q,
    split_v,
    velocity_of,
)
from dyn_core.model.coordinates.ball_limits import ball_limit_rows, limited_balls
from dyn_core.model.coordinates.clusters import ClusterJoint, cluster_joints
from dyn_core.model.coordinates.pivots import coordinate_pivots
from dyn_core.model.parameter_paths import with_values as with_parameters
from dyn_core.model.passive_forces import (
    damping_matrix,
    forces_without_potential,
    friction_direction,
    friction_force,
    friction_slope,
    friction_slope_matrix,
    resistance,
    spring_energy,
    stiffness_matrix,
    without_springs,
)
from dyn_core.numbers.scalar import (
    Number,
    absolute,
    acos,
    asin,
    atan2,
    cos,
    equal,
    exp,
    floor,
    log,
    logical_and,
    logical_not,
    logical_or,
    loop,
    maximum,
    minimum,
    require,
    sin,
    sqrt,
    tanh,
    where,
)
from dyn_core.numbers.taylor import COORDINATE, TIME, Taylor, derivatives, variables
from dyn_core.problems import Port, Signature, System
from dyn_core.problems.system import SystemKind
from dyn_core.solving.build_options import Required, input_names
from dyn_core.solving.control_mode import ControlMode, ModeMessage, ModeTopic
from dyn_core.solving.hookspecs import hookimpl
from dyn_core.solving.numpy_solver import NumpySolver
from dyn_core.solving.solver import Solver, TracedSolver
from dyn_core.spatial import (
    ArticulatedInertia,
    Force,
    ForceSubspace,
    Matrix,
    Motion,
    MotionSubspace,
    RigidInertia,
    Symmetric,
    Transform,
    Vector,
    VelocityProduct,
    cross,
    cross3,
    cross_force,
    cross_motion,
    rotation_rates,
    skew,
    total,
)
from dyn_core.spatial.eigen import eigen_symmetric
from dyn_core.spatial.lie import chord3, dexp6_inverse, log_transform, quat_matrix
from dyn_core.spatial.linear import Factored, product, sparse_products
from dyn_core.spatial.variations import (
    has_slope,
    slope_of,
    value_of,
    variation_of,
    with_slopes,
)

__all__ = [
    "COORDINATE",
    "TIME",
    "ArticulatedInertia",
    "ClusterJoint",
    "ContactModel",
    "ContactSolver",
    "ControlMode",
    "Factored",
    "Force",
    "ForceSubspace",
    "Matrix",
    "ModeMessage",
    "ModeTopic",
    "Motion",
    "MotionSubspace",
    "Number",
    "NumpySolver",
    "Port",
    "Required",
    "RigidInertia",
    "Signature",
    "Solver",
    "Symmetric",
    "System",
    "SystemKind",
    "Taylor",
    "TracedSolver",
    "Transform",
    "Vector",
    "VelocityProduct",
    "absolute",
    "acos",
    "advance",
    "asin",
    "atan2",
    "ball_limit_rows",
    "chord3",
    "cluster_joints",
    "columns_of",
    "coordinate_pivots",
    "cos",
    "cross",
    "cross3",
    "cross_force",
    "cross_motion",
    "damping_matrix",
    "derivatives",
    "dexp6_inverse",
    "eigen_symmetric",
    "equal",
    "exp",
    "floor",
    "forces_without_potential",
    "friction_direction",
    "friction_force",
    "friction_slope",
    "friction_slope_matrix",
    "gyroscopic_change",
    "has_slope",
    "hookimpl",
    "input_names",
    "join_columns",
    "join_force",
    "join_matrix",
    "join_slopes",
    "join_v",
    "joint_factors",
    "limited_balls",
    "log",
    "log_transform",
    "logical_and",
    "logical_not",
    "logical_or",
    "loop",
    "maximum",
    "minimum",
    "position_rate",
    "product",
    "quat_matrix",
    "rate_in_initial_axes",
    "require",
    "resistance",
    "rotation_rates",
    "sin",
    "skew",
    "slope_of",
    "sparse_products",
    "split_q",
    "split_v",
    "spring_energy",
    "sqrt",
    "stiffness_matrix",
    "structure",
    "tanh",
    "total",
    "value_of",
    "variables",
    "variation_of",
    "velocity_of",
    "where",
    "with_parameters",
    "with_slopes",
    "without_springs",
]
