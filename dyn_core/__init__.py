"""Rigid-body dynamics for robots: models, solvers, engines, and the plugin door.

Sources, by the short names used in docstrings:

    RBDA   R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008.
    GUIDE  R. Featherstone, A Beginner's Guide to 6-D Vectors (Part 1), IEEE Robotics
           and Automation Magazine, September 2010.
    KIM    J. Kim, Lie Group Formulation of Articulated Rigid Body Dynamics, 2012.
"""

from dyn_core import errors, robots, scalar
from dyn_core.array_solver import ArraySolver
from dyn_core.consistency import close_loops, close_rates
from dyn_core.contact import ConstraintLayout, ConstraintProblem, ContactSolution
from dyn_core.contact.assembly import Assembly
from dyn_core.contact.halfspaces import HalfSpace
from dyn_core.contact.simulator import ContactSimulator
from dyn_core.contact.world import World
from dyn_core.cost import count
from dyn_core.duals import Dual, dual, duals, moves, slope_of, value_of, variation_of
from dyn_core.engines import ENGINES, Program, default_engine
from dyn_core.errors import (
    CompileError,
    DynError,
    FrameMismatchError,
    IdentificationError,
    InfeasibleError,
    ModelError,
    NonFiniteError,
    PluginError,
    RequireError,
    SettingError,
    ShapeError,
    SignatureError,
    SingularError,
    SolverNotFound,
    TraceError,
    TrajectoryError,
    UnsupportedError,
)
from dyn_core.hookspecs import hookimpl
from dyn_core.identifiable import BaseParameters, base_parameters
from dyn_core.identification import Identification, identify
from dyn_core.model import Model, load_urdf
from dyn_core.model.clusters import Cluster, Hinge, hinges
from dyn_core.model.coordinates import (
    advance,
    friction_force,
    friction_slope,
    join_force,
    join_v,
    joint_factors,
    split_q,
    split_v,
    start_axes,
)
from dyn_core.model.linear_parameters import (
    parameter_names,
    parameters_of,
    with_linear_parameters,
)
from dyn_core.model.loops import Coupling, Loop, coupling, make_loop, user_loop
from dyn_core.model.parameters import with_values as with_parameters
from dyn_core.model.passive import resistance, without_springs
from dyn_core.planar import ChainModel, make_chain
from dyn_core.registry import Registry, default_registry, solver, solvers
from dyn_core.signature import (
    ARTICULATED_BODIES,
    BIAS_FORCE,
    BODY_JACOBIANS,
    BODY_MOTION,
    CHAIN_ACCELERATIONS,
    CHAIN_EVENT_STEP,
    CHAIN_FORCE_JACOBIAN,
    CHAIN_FORCES,
    CHAIN_IMPACT,
    CHAIN_STEP,
    CHAIN_TORQUE_RESPONSE,
    CHAIN_TORQUES,
    CONSTRAINT_JACOBIAN,
    CONTACT_SOLVE,
    CONTACT_STEP,
    CORIOLIS_FORCE,
    CROSS_RESPONSE,
    DELASSUS,
    ENERGY,
    ENERGY_REGRESSOR,
    FD_DERIVATIVES,
    FD_DIRECTIONAL,
    FD_PARAMETER_JACOBIAN,
    FORWARD_DYNAMICS,
    FORWARD_KINEMATICS,
    FRAME_BIAS_ACCELERATION,
    FRAME_VELOCITY,
    GRAVITY_CONTROL,
    GRAVITY_FORCE,
    HD_DERIVATIVES,
    HD_DIRECTIONAL,
    HYBRID_DYNAMICS,
    HYBRID_DYNAMICS_MASKED,
    HYBRID_STEP,
    ID_DERIVATIVES,
    ID_DIRECTIONAL,
    INERTIAL_FORCE,
    INVERSE_DYNAMICS,
    JACOBIAN,
    JOINT_REACTIONS,
    LOOP_CONSTRAINTS,
    LOOP_FORWARD_DYNAMICS,
    LOOP_HYBRID_DYNAMICS,
    LOOP_INVERSE_DYNAMICS,
    MASS_MATRIX,
    MASS_MATRIX_INVERSE,
    MOMENTUM,
    OBJECT_DYNAMICS,
    OBJECT_ENERGY,
    OBJECT_STEP,
    OPERATIONAL_INERTIA,
    PARAMETER_JACOBIAN,
    POINT_DELASSUS,
    REGRESSOR,
    RESPONSE,
    SELF_RESPONSES,
    SIGNATURES,
    STEP,
    TASK_STEP,
    TRACKING_CONTROL,
    Port,
    Signature,
)
from dyn_core.simulation import Recording, Simulator, simulate
from dyn_core.solver import Solver, TextSolver
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
from dyn_core.spatial.linear import Factored
from dyn_core.system import System

__all__ = [name for name in dir() if not name.startswith("_")]
