"""Costs of a plan, as data: residuals, targets and weights.

    value = sum over the knots of dt weight residual² / 2, and at the end without dt

Weights are per squared unit of the residual, of running costs also per second. A weight
is one number, or one for each entry of the residual. A target with one more axis has a
row for each of the knots + 1 states. Solvers of KNOT_COST compute the residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.engines.graph.trace import Symbol, Tracer
from dyn_core.errors import (
    DynError,
    NonFiniteError,
    RotationError,
    SettingError,
    ShapeError,
    unknown_name,
    warn,
)
from dyn_core.kinematics.poses import pose_matrices
from dyn_core.model import Model
from dyn_core.model.checks.robots import in_degrees
from dyn_core.solving.solver import check_function
from dyn_core.spatial import Vector
from dyn_core.validation import float_array, known_keywords, shown

WHEN = ("always", "running", "end")
PARTS = {"pose": 6, "orientation": 3, "position": 3}
REFERENCES = ("aligned", "local", "world")
Function = Callable[..., Any]


@known_keywords
@dataclass(frozen=True, eq=False)
class Cost:
    """One cost of a plan; the functions of this module return them.

    Attributes:
        kind: Name of the residual.
        name: Name by which Plan.solve changes the target.
        weight: Weight, one number or one for each entry of the residual.
        target: Target as flat numbers, with a row for each state if it varies; None:
            the neutral one.
        when: "running" (at each knot, times dt), "end" (at the last state), "always".
        frames: Names of links.
        part: Part of a pose, or reference of a velocity.
        function: Residual of a cost of the kind "custom".

    Links, the target and the number of weights are not checked here, but with the
    robot, by dyn_core.prediction.problem.ControlProblem.

    Raises:
        SettingError: `when` is unknown, a weight is negative or not finite, or the
            weights have more than one axis.
        ShapeError: A weight is not numeric.
    """

    kind: str
    name: str
    weight: Any
    target: Any = None
    when: str = "running"
    frames: tuple[str, ...] = ()
    part: str = ""
    function: Function | None = None

    def __post_init__(self) -> None:
        if self.when not in WHEN:
            message = unknown_name("time of a cost", self.when, WHEN)
            raise SettingError(f"cost {self.name}: when: {message}", "when")
        weight = float_array(f"{self.name}: weight", self.weight, "a number or a list")
        if weight.ndim > 1 or not np.isfinite(weight).all() or (weight < 0).any():
            self._refuse("weight", self.weight, "finite numbers, 0 or more")
        object.__setattr__(self, "weight", weight)

    def _refuse(self, what: str, value: Any, valid: str) -> None:
        """Raise a SettingError: the value of `what` is not one of those in `valid`."""
        text = f"cost {self.name}: {what} is {shown(value)}; valid: {valid}"
        raise SettingError(text, what)

    @property
    def runs(self) -> bool:
        """Whether it counts at the knots ("running" or "always")."""
        return self.when != "end"

    @property
    def ends(self) -> bool:
        """Whether it counts at the last state ("end" or "always")."""
        return self.when != "running"

    def size(self, model: Model) -> int:
        """Return the number of entries of the residual.

        It is 6 of a pose or a frame's velocity, 3 of a pose's part and of the centre of
        mass, 1 of a distance, nv of posture, velocity and effort.

        The function of a user is called for it, with symbols: it may divide by what is
        zero in some states.

        Raises:
            SettingError: The function of a user raises a TypeError, ValueError,
                LookupError, AttributeError or ZeroDivisionError (other errors pass
                through), returns no list of numbers, or an empty one; or it reads tau
                and counts only at the end.
            TraceError: It cannot be traced.
            ModelError: The robot has no such link.
        """
        for frame in self.frames:
            model.frame(frame)
        if self.function is None:
            return {
                "pose": PARTS.get(self.part, 6),
                "frame_velocity": 6,
                "centre_of_mass": 3,
                "distance": 1,
            }.get(self.kind, model.nv)
        nq, nv, tracer = model.nq, model.nv, Tracer(model.nq + 2 * model.nv)
        x = tracer.inputs
        state = Vector(x[:nq]), Vector(x[nq : nq + nv]), Vector(x[nq + nv :])
        try:
            result = self.function(model, *state)
        except DynError:
            raise
        except ZeroDivisionError as error:
            text = f"cost {self.name}: function divides by the constant 0"
            message = f"{text}; valid: a divisor that is not 0"
            raise SettingError(message, "function") from error
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            called = getattr(self.function, "__name__", shown(self.function))
            raise SettingError(
                f"cost {self.name}: function {called}: {error}; valid: a function of"
                f" model, q ({nq}), qd ({nv}) and tau ({nv}), Vectors; split_q(model,"
                " q) of dyn_core.authoring lists those of each joint",
                "function",
            ) from error
        numbers, kinds = result, (Symbol, float, int, np.number)
        if not isinstance(result, (list, tuple, Vector)):
            numbers = ()
        if not len(numbers) or not all(isinstance(y, kinds) for y in numbers):
            result = "one number" if isinstance(result, Symbol) else shown(result)
            text = f"cost {self.name}: function's result is {result}; valid: a list of"
            raise SettingError(f"{text} numbers, such as [x]", "function")
        read = {node.data for node in tracer.finish(result).nodes if node.op == "input"}
        if not self.runs and max(read, default=0) >= nq + nv:
            text = f"cost {self.name}: function reads tau, and the end has none; valid:"
            raise SettingError(f"{text} when='running', or q and qd alone", "function")
        return len(result)

    def target_size(self, model: Model) -> int:
        """Return how many numbers a target has for one state.

        A pose has 12, a posture nq, a custom cost none; a distance has 1 between links,
        4 to a point; others have as many as the residual. Links are not looked up.
        """
        sizes = {
            "posture": model.nq,
            "pose": 12,
            "frame_velocity": 6,
            "centre_of_mass": 3,
            "distance": 1 if len(self.frames) == 2 else 4,
            "custom": 0,
        }
        return sizes.get(self.kind, model.nv)

    def neutral_target(self, model: Model) -> np.ndarray:
        """Return the target that stands for None, flat.

        The neutral position (nq,) for a posture, empty for a custom cost, else zeros:
        12 of a pose, 6 of a frame's velocity, 3 of the centre of mass, nv of other
        kinds. A distance always has a target.
        """
        if self.kind == "posture":
            return model.neutral()
        return np.zeros(self.target_size(model))

    def read_target(self, model: Model, target: Any = None) -> np.ndarray:
        """Return a target as flat numbers, (n,), or (states, n) if it varies.

        n is that of `target_size`. A pose becomes the rows of its rotation, then its
        position. Links are not looked up.

        Args:
            model: Robot.
            target: Target in place of the attribute; None: the attribute, or if it is
                None too, `neutral_target`. The number of rows is not tested.

        Raises:
            SettingError: It is no pose, not numeric, has another shape, or a number
                that is not finite; the message names the cost.

        A DynWarning asks whether the target of a posture is in degrees.
        """
        value = self.target if target is None else target
        if value is None:
            return self.neutral_target(model)
        size = self.target_size(model)
        try:
            if self.kind == "pose":
                array = _pose(self, value)
            else:
                array = np.atleast_1d(float_array("target", value, f"shape ({size},)"))
        except (ShapeError, NonFiniteError, RotationError) as error:
            raise SettingError(f"cost {self.name}: {error}", "target") from error
        except ValueError:  # rows of different length
            self._refuse("target", value, "a pose, or a list of poses")
        good = array.ndim in (1, 2) and array.shape[-1] == size
        if not good or not np.isfinite(array).all():
            wanted = f"{size} finite numbers, or a row of them for each state"
            self._refuse("target", value, wanted)
        if self.kind == "posture" and array.size and np.abs(array).max() > 2 * np.pi:
            if doubt := in_degrees(model, "the target", np.atleast_2d(array)):
                warn(f"cost {self.name}: {doubt}")
        return array

    def settings(self, model: Model, states: int, target: Any = None) -> np.ndarray:
        """Return by state the weights, then the target, side by side, one row each.

        The shape is (states, `size` + `target_size`). One weight for all is repeated
        for each entry of the residual, a target that does not vary for each state.

        Args:
            model: Robot.
            states: Number of states of the plan.
            target: Target in place of the attribute; None: the attribute.

        Raises:
            SettingError: Weights or target have a wrong number of entries or rows, the
                target is not valid, or the function of a user fails.
            ModelError: The robot has no such link.
            TraceError: The function of a user cannot be traced.
        """
        size, array = self.size(model), self.targets(model, states, target)
        if self.weight.ndim and len(self.weight) != size:
            self._refuse("weight", self.weight, f"one number, or {size}")
        weights = np.broadcast_to(self.weight, (states, size))
        return np.hstack([weights, np.broadcast_to(array, (states, array.shape[-1]))])

    def targets(self, model: Model, states: int, target: Any = None) -> np.ndarray:
        """Return `read_target`; SettingError if it varies and has not `states` rows."""
        array = self.read_target(model, target)
        if array.ndim == 2 and len(array) != states:
            self._refuse("target", array.shape, f"{states} rows, one for each state")
        return array


def _pose(cost: Cost, value: Any) -> np.ndarray:
    """Return a pose, or a list of them, as 12 numbers: rotation by rows, position.

    For part="position" points (x, y, z) serve too; their rotation is the identity.
    ShapeError, NonFiniteError or RotationError: a pose is not valid, see pose_matrices,
    or is a point where the rotation counts. ValueError: poses differ in length.
    """
    if cost.part == "position" and np.shape(value)[-1:] == (3,):
        place = float_array("position", value, "3 numbers")
        rotation = np.broadcast_to(np.eye(3).ravel(), (*place.shape[:-1], 9))
        return np.concatenate([rotation, place], -1)
    if np.shape(value) == (3,):
        wanted = "shape (4, 4) or (7,), or (3,) with part='position'"
        raise ShapeError("pose", wanted, "shape (3,)")
    single = np.ndim(value) == 1 or np.shape(value) == (4, 4)
    poses = pose_matrices([value] if single else value)
    flat = np.hstack([poses[:, :3, :3].reshape(-1, 9), poses[:, :3, 3]])
    return flat[0] if single else flat


@known_keywords
def posture(
    target: Any = None, weight: Any = 1.0, when: str = "running", name: str = "posture"
) -> Cost:
    """Return the cost of a distance from joint positions.

    Args:
        target: Joint positions, (nq,) [rad | m]; None: the neutral ones.
        weight: Weight of the displacement, as of Model.difference [1/rad² | 1/m²].
        when: "running" (at each knot), "end" (at the last state) or "always".
        name: Name by which Plan.solve changes the target.

    Raises SettingError for an unknown `when` or a weight that is negative, not finite
    or has several axes; ShapeError for one that is not numeric.
    """
    return Cost("posture", name, weight, target, when)


@known_keywords
def velocity(
    weight: Any = 1.0, target: Any = None, when: str = "running", name: str = "velocity"
) -> Cost:
    """Return the cost of joint velocities, or of their difference from a target.

    Args:
        weight: Weight [s²/rad² | s²/m²].
        target: Joint velocities, (nv,) [rad/s | m/s]; None: zero.
        when: "running" (at each knot), "end" (at the last state) or "always".
        name: Name by which Plan.solve changes the target.

    Raises SettingError for an unknown `when` or a weight that is negative, not finite
    or has several axes; ShapeError for one that is not numeric.
    """
    return Cost("velocity", name, weight, target, when)


@known_keywords
def effort(weight: Any = 1.0, target: Any = None, name: str = "effort") -> Cost:
    """Return the cost of joint forces, or of their difference from a target.

    Args:
        weight: Weight [1/(N·m)² | 1/N²].
        target: Joint forces, (nv,) [N·m | N]; None: zero.
        name: Name by which Plan.solve changes the target.

    It counts at each knot. Raises SettingError for a weight that is negative, not
    finite or has several axes; ShapeError for one that is not numeric.
    """
    return Cost("effort", name, weight, target)


@known_keywords
def pose(
    frame: str,
    target: Any,
    weight: Any = 1.0,
    when: str = "running",
    part: str = "pose",
    name: str = "",
) -> Cost:
    """Return the cost of a frame's displacement from a pose.

    The residual is the displacement [angular; linear] from the target to the frame, by
    the logarithm of the pose, in axes of the frame; of a position in base axes.

    Args:
        frame: Name of the link.
        target: Pose in the base: (4, 4), or (x, y, z, qx, qy, qz, qw); for
            part="position" also (x, y, z).
        weight: Weight [1/rad²; 1/m²].
        part: "pose", "orientation" or "position".
        when: "running" (at each knot), "end" (at the last state) or "always".
        name: Name by which Plan.solve changes the target; empty: `frame`.

    Raises:
        SettingError: `part` or `when` is unknown, there is no target, or a weight is
            negative, not finite or has several axes.
        ShapeError: A weight is not numeric.
    """
    made = Cost("pose", name or frame, weight, target, when, (frame,), part)
    if part not in PARTS:
        made._refuse("part", part, ", ".join(PARTS))
    if target is None:
        made._refuse("target", target, "a pose")
    return made


@known_keywords
def frame_velocity(
    frame: str,
    weight: Any = 1.0,
    target: Any = None,
    when: str = "running",
    reference: str = "aligned",
    name: str = "",
) -> Cost:
    """Return the cost of a frame's velocity, or of its difference from a target.

    Args:
        frame: Name of the link.
        weight: Weight [s²/rad²; s²/m²].
        target: Velocity [angular; linear], (6,) [rad/s; m/s]; None: zero.
        reference: Axes and point: "aligned" (base axes, origin of the frame), "local"
            (the frame's axes and origin) or "world" (base axes, origin of the base).
        when: "running" (at each knot), "end" (at the last state) or "always".
        name: Name by which Plan.solve changes the target; empty: "FRAME velocity".

    Raises:
        SettingError: `reference` or `when` is unknown, a weight is negative or not
            finite, or the weights have more than one axis. The link, the target and the
            number of weights are checked later, with the robot.
        ShapeError: A weight is not numeric.
    """
    name = name or f"{frame} velocity"
    made = Cost("frame_velocity", name, weight, target, when, (frame,), reference)
    if reference not in REFERENCES:
        made._refuse("reference", reference, ", ".join(REFERENCES))
    return made


@known_keywords
def centre_of_mass(
    target: Any, weight: Any = 1.0, when: str = "running", name: str = "centre_of_mass"
) -> Cost:
    """Return the cost of the centre of mass's distance from a point.

    Args:
        target: Point in the base, (3,) [m]; None: its origin.
        weight: Weight [1/m²].
        when: "running" (at each knot), "end" (at the last state) or "always".
        name: Name by which Plan.solve changes the target.

    Raises SettingError for an unknown `when` or a weight that is negative, not finite
    or has several axes; ShapeError for one that is not numeric.
    """
    return Cost("centre_of_mass", name, weight, target, when)


@known_keywords
def distance(
    frame: str,
    to: Any,
    target: float = 0.0,
    weight: Any = 1.0,
    at_least: bool = False,
    when: str = "running",
    name: str = "",
) -> Cost:
    """Return the cost of the distance between two origins, or an origin and a point.

    Args:
        frame: Name of the link.
        to: Name of another link, or a point in the base, (3,) [m].
        target: Distance [m]. In Plan.solve the target is this number, or for a point
            (distance, x, y, z).
        weight: Weight [1/m²].
        at_least: Whether only a distance below the target costs.
        when: "running" (at each knot), "end" (at the last state) or "always".
        name: Name by which Plan.solve changes the target; empty: "FRAME distance".

    Raises:
        SettingError: `when` is unknown, or a weight is negative, not finite or has
            several axes. The links, the target and the size of a point are checked
            later, with the robot.
        ShapeError: `to` or the weight is not numeric.
    """
    name, part = name or f"{frame} distance", "at_least" if at_least else "equal"
    if isinstance(to, str):
        return Cost("distance", name, weight, [target], when, (frame, to), part)
    point = float_array(f"cost {name}: to", to, "a link, or 3 numbers").ravel()
    place = [target, *point.tolist()]
    return Cost("distance", name, weight, place, when, (frame,), part)


@known_keywords
def custom(
    function: Function, weight: Any = 1.0, when: str = "running", name: str = "custom"
) -> Cost:
    """Return the cost of residuals that a function of the user returns.

    Args:
        function: Called as function(model, q, qd, tau), with Vectors, to be traced; it
            returns a list of numbers, as algorithms do (dyn.authoring). For "always"
            tau is zero at the end of the plan; a function of "end" may not read it.
        weight: Weight, 1 per squared unit of the residuals.
        when: "running" (at each knot), "end" (at the last state) or "always".
        name: Name of the cost.

    Raises:
        SettingError: `function` cannot be called, `when` is unknown, or a weight is
            negative, not finite or has several axes.
        ShapeError: A weight is not numeric.
    """
    made = Cost("custom", name, weight, None, when, function=function)
    valid = "a function of model, q, qd, tau"
    check_function(f"cost {name}: function", function, valid)
    return made


def __getattr__(name: str) -> Any:
    """Raise AttributeError for a cost that does not exist; it names those that do.

    For a name that begins with __ it only has this name.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(unknown_name("cost", name, COSTS))


COSTS = (
    *("posture", "velocity", "effort", "pose", "frame_velocity", "centre_of_mass"),
    *("distance", "custom"),
)
