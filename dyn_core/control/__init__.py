"""Joint controllers, trajectories, and safety checks of the torque, without ROS."""

from dyn_core.control.collision import (
    Collision,
    CollisionDetector,
    CollisionSettings,
    ExternalEffort,
    noise_thresholds,
)
from dyn_core.control.controller import Controller
from dyn_core.control.modes.cartesian_law import CartesianLaw
from dyn_core.control.modes.control_law import ControlLaw, JointLaw
from dyn_core.control.payload_estimator import (
    PayloadEstimate,
    PayloadEstimator,
    PayloadSettings,
)
from dyn_core.control.reference.goal_requests import GoalCode
from dyn_core.control.reference.goal_tolerances import JointTolerance, Tolerances
from dyn_core.control.reference.goals import GoalTracker
from dyn_core.control.reference.trajectory import Trajectory, make_trajectory
from dyn_core.control.rules import Rules
from dyn_core.control.safety.envelope import Bounds, Envelope, Violation
from dyn_core.control.safety.shadow import ShadowSettings
from dyn_core.control.safety.stops import Gate, Stop
from dyn_core.control.safety.supervision import Supervisor
from dyn_core.control.states.plausibility import StateBounds
from dyn_core.model.payload import Payload, PayloadInput

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = [
    "Bounds",
    "CartesianLaw",
    "Collision",
    "CollisionDetector",
    "CollisionSettings",
    "ControlLaw",
    "Controller",
    "Envelope",
    "ExternalEffort",
    "Gate",
    "GoalCode",
    "GoalTracker",
    "JointLaw",
    "JointTolerance",
    "Payload",
    "PayloadEstimate",
    "PayloadEstimator",
    "PayloadInput",
    "PayloadSettings",
    "Rules",
    "ShadowSettings",
    "StateBounds",
    "Stop",
    "Supervisor",
    "Tolerances",
    "Trajectory",
    "Violation",
    "make_trajectory",
    "noise_thresholds",
]
