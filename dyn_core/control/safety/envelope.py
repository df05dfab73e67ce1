"""Envelope of a controller: the last check of every effort before it is sent.

Its quantities are computed by a Program of its own, compiled separately from the law
that it checks, and from the effort as it is sent. A value that is not finite is outside
every bound; bounds are finite.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dyn_core.control.joint_values import joint_values, positive
from dyn_core.errors import SettingError, unknown_name
from dyn_core.model import Model
from dyn_core.model.coordinates import split_q, split_v
from dyn_core.model.payload import PayloadInput
from dyn_core.numbers.scalar import absolute, sqrt, where
from dyn_core.problems.ports import FORCE, plain_tau, q, qd
from dyn_core.problems.signatures import Signature
from dyn_core.problems.signatures import port_row as P
from dyn_core.solving.solver import TracedSolver
from dyn_core.spatial import Motion, Vector, total
from dyn_core.validation import check_object, known_keywords

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
JOINT = ("effort", "effort_rate", "joint_power", "tracking_error", "velocity")
MODEL = "model"  # setting of a bound that is computed from the model
SPEEDING = 1.5  # default velocity bound, as a multiple of the velocity limit
FAR = 0.5  # default bound of the tracking error [rad | m]
WHOLE = ("power", "kinetic_energy", "tool_speed")
UNITS = {
    "effort": "N·m | N",
    "effort_rate": "N·m/s | N/s",
    "joint_power": "W",
    "tracking_error": "rad | m",
    "velocity": "rad/s | m/s",
    "power": "W",
    "kinetic_energy": "J",
    "tool_speed": "m/s",
}
UNBOUND = float(np.finfo(float).max)  # finite, so that infinity is outside, too
SHORTEST = 1e-6  # minimum time between two efforts in the effort rate [s]
# fmt: off
_TAU_BEFORE = P("tau_before", "nv", FORCE, "joint forces sent before")
_ERROR = P("error", "nv", "rad | m", "tracking error")
_RATE = P("rate", "nv", "rad/s | m/s", "velocity of each joint")
_DT = P("dt", "", "s", "time since the joint forces sent before")
_BOUNDS = P("bounds", "values", "SI", "largest absolute value of each")
_OUTSIDE = P("outside", "", "1", "number of values outside their bounds")
_VALUES = P("values", "values", "SI",
    "effort, its rate, power, error, velocity by joint; power, energy, speed")
ENVELOPE = Signature("envelope",
    (q, qd, plain_tau, _TAU_BEFORE, _ERROR, _RATE, _DT, _BOUNDS), (_OUTSIDE, _VALUES),
    meaning="what an envelope bounds")
# fmt: on


def envelope_values(model, q, qd, tau, tau_before, error, rate, dt, frame):  # type: ignore[no-untyped-def]
    """Return the bounded values: five for each joint, then three of the whole robot.

        [tau, (tau - tau_before) / dt, tau qd, error, rate, tau . qd, T, |v|]

    The result is a Vector (5 nv + 3,), grouped by quantity: first tau of all joints,
    last |v|. Units are SI. tau is about to be sent, tau_before was sent dt [s] before.
    `error` and `rate`, the velocity on which positions and velocities agree, are
    returned unchanged. T is the kinetic energy, including that of the rotors; |v| the
    speed of the origin of the link `frame`, 0 for None.

    Source: design of this project; the kinetic energy T is GUIDE (28).
    """
    joint_q, joint_qd = split_q(model, q), split_v(model, qd)
    v = [Motion.zero()]
    for i in model.bodies:
        joint = model.joint[i]
        X = joint.X(joint_q[i]) @ model.Xtree[i]
        v.append(X @ v[model.parent[i]] + joint.vJ(joint_q[i], joint_qd[i]))
    energy = total(v[i] @ (model.I[i] @ v[i]) * 0.5 for i in model.bodies)
    rotors = total(
        (model.armature[i] * joint_qd[i]) @ joint_qd[i] * 0.5 for i in model.bodies
    )
    speed = 0.0
    if frame is not None:
        tool = model.frame(frame)
        linear = (tool.X @ v[tool.body]).lin
        speed = sqrt(linear @ linear)
    slope = (tau - tau_before) * (1 / dt)
    power = Vector(x * y for x, y in zip(tau, qd, strict=True))
    whole = (total(power), energy + rotors, speed)
    return Vector((*tau, *slope, *power, *error, *rate, *whole))


def envelope_check(  # type: ignore[no-untyped-def]
    model, q, qd, tau, tau_before, error, rate, dt, bounds, frame
):
    """Return the number of values outside their bounds, and the values.

    A value is inside if |value| <= bound; NaN is outside. Each of envelope_values has a
    finite bound, UNBOUND for none: an infinite one would admit infinite values.
    """
    values = envelope_values(model, q, qd, tau, tau_before, error, rate, dt, frame)
    pairs = zip(values, bounds, strict=True)
    outside = total(where(absolute(x) <= bound, 0.0, 1.0) for x, bound in pairs)
    return outside, values


@known_keywords
@dataclass(frozen=True)
class Bounds:
    """Bounds of an envelope on absolute values; None means no bound.

    A bound of the joints is one number, one number a joint, or a mapping from joint
    name to number. The bound "model" is computed from the model, see `resolved`. All
    bounds must be above 0; Envelope checks them.

    Attributes:
        effort: Effort; None: the effort limits of the controller [N·m | N].
        effort_rate: Rate of change of the effort [N·m/s | N/s].
        joint_power: Power of each joint [W].
        tracking_error: Distance to the reference [rad | m].
        velocity: Velocity on which positions and velocities agree [rad/s | m/s].
        power: Power of all joints together [W].
        kinetic_energy: Kinetic energy of the robot [J].
        tool_speed: Speed of the origin of `frame` [m/s].
        frame: Name of the link; required with tool_speed, and only then.
    """

    effort: Any = None
    effort_rate: Any = None
    joint_power: Any = None
    tracking_error: Any = MODEL
    velocity: Any = MODEL
    power: float | None = None
    kinetic_energy: float | None = None
    tool_speed: float | None = None
    frame: str | None = None

    def resolved(self, model: Model, tracks: bool) -> Bounds:
        """Return Bounds with lists, one number a joint, in place of "model".

        Only velocity and tracking_error may be "model". The velocity bound is 1.5 times
        the model's limit, None for a joint without a limit. The bound of the tracking
        error is 0.5 rad (0.5 m, at most half the range of a prismatic joint) in a mode
        that tracks its reference. In the others the field is None: an impedance may
        yield further, and gravity compensation has no reference.

        Nothing is checked here: other fields stay as they are, even if invalid.

        Args:
            model: Robot.
            tracks: Whether the mode tracks its reference, see ControlMode.
        """
        numbers: dict[str, Any] = {}
        if _is_model(self.velocity):
            limit = model.velocity_limit
            known = np.isfinite(limit) & (limit > 0)
            pairs = zip(limit, known, strict=True)
            numbers["velocity"] = [SPEEDING * x if yes else None for x, yes in pairs]
        if _is_model(self.tracking_error):
            far = np.full(model.nv, FAR)
            for j, name in enumerate(model.joint_names):
                span = model.upper[j] - model.lower[j]
                if model.joint_kind(name) == "prismatic" and span > 0:
                    far[j] = min(FAR, span / 2)
            numbers["tracking_error"] = far.tolist() if tracks else None
        return replace(self, **numbers)


@dataclass(frozen=True)
class Violation:
    """A value outside its bound: |value| > bound, or a value that is not finite.

    Attributes:
        quantity: Name of the bound, a field of Bounds.
        joint: Name of the joint; empty for a value of the whole robot.
        value: Value with its sign, in the unit of UNITS; may be NaN or infinite.
        bound: Largest absolute value that is inside, in the same unit.
    """

    quantity: str
    joint: str
    value: float
    bound: float

    def __str__(self) -> str:
        whose = f" of joint '{self.joint}'" if self.joint else ""
        what = self.quantity.replace("_", " ")
        return (
            f"{what}{whose} is {self.value:.6g}, its bound {self.bound:.6g}"
            f" [{UNITS[self.quantity]}]"
        )


@known_keywords
class Envelope:
    """Checks efforts against Bounds.

    Attributes:
        bounds: Largest absolute values, in the order of the output of envelope_values.
        names: Pair of quantity and joint for each bound.
    """

    def __init__(
        self,
        model: Model,
        bounds: Bounds,
        effort: np.ndarray,
        engine: str | None,
        carried: PayloadInput | None = None,
    ) -> None:
        """Build the Program; bounds "model" are resolved as in a mode that tracks.

        Args:
            model: Robot.
            bounds: Bounds.
            effort: Effort limits of the controller, (nv,), used where bounds.effort is
                None.
            engine: Engine of the Program; None: the default.
            carried: Payload that may change at run time; None: no payload.

        Raises:
            SettingError: A bound is invalid, `frame` is unknown, or one of tool_speed
                and frame is missing; or `bounds` are no Bounds. Errors of the build
                pass through.
        """
        check_object("bounds", bounds, Bounds)
        self.carried = carried or PayloadInput()
        inputs = [*(["time"] if model.driven else []), *self.carried.paths]
        frame = bounds.frame
        if (frame is None) != (bounds.tool_speed is None):
            raise SettingError(
                "tool_speed and frame go together: the speed of which link?", "frame"
            )
        if frame is not None and frame not in model.frame_names:
            message = unknown_name("link", frame, model.frame_names)
            raise SettingError(message, "frame")
        bounds = bounds.resolved(model, tracks=True)
        if bounds.effort is None:
            bounds = replace(bounds, effort=list(effort))
        rows = [joint_values(model, x, getattr(bounds, x), UNBOUND) for x in JOINT]
        whole = [positive(name, getattr(bounds, name), UNBOUND) for name in WHOLE]
        self.bounds = np.concatenate([*rows, whole])
        self.names = [(name, joint) for name in JOINT for joint in model.joint_names]
        self.names += [(name, "") for name in WHOLE]
        self.program = TracedSolver(
            "envelope",
            ENVELOPE,
            envelope_check,
            options={"frame": frame},
            sizes=lambda model, options: {"values": value_count(model)},
            by_joint=False,
        ).build(model, engine=engine, inputs=inputs)
        self.program.prepare()
        self._driven = bool(model.driven)

    def violation(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        tau: np.ndarray,
        tau_before: np.ndarray,
        error: np.ndarray,
        rate: np.ndarray,
        dt: float,
        t: float = 0.0,
    ) -> Violation | None:
        """Return the violation with the largest ratio |value| / bound, or None.

        A value that is not finite has the ratio infinity. None if every value is
        inside.

        Args:
            q, qd: Joint position and velocity, (nv,).
            tau: Effort that is about to be sent, (nv,) [N·m | N].
            tau_before: Effort sent before, (nv,).
            error: Tracking error, (nv,).
            rate: Velocity on which positions and velocities agree, (nv,).
            dt: Time since the effort sent before [s]; at least 1e-6 is used.
            t: Time of driven joints [s]; ignored if the model has none.

        Raises ShapeError for an array of another size.
        """
        more = (*((t,) if self._driven else ()), *self.carried.values)
        now = q, qd, tau, tau_before, error, rate, max(dt, SHORTEST)
        outside, values = self.program(*now, self.bounds, *more)
        if outside == 0.0:
            return None
        inside = np.abs(values) <= self.bounds  # false for NaN and infinity
        excess = np.where(np.isfinite(values), np.abs(values) / self.bounds, np.inf)
        k = int(np.argmax(np.where(inside, -1.0, excess)))
        return Violation(*self.names[k], float(values[k]), float(self.bounds[k]))


def value_count(model: Model) -> int:
    """Return the number of bounded quantities of a robot, 5 nv + 3."""
    return len(JOINT) * model.nv + len(WHOLE)


def _is_model(bound: Any) -> bool:
    """Return whether a bound is the text "model"."""
    return isinstance(bound, str) and bound == MODEL
