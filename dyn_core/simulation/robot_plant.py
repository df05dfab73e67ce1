"""Base class of simulated robots: initial state, prescribed accelerations, payload."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from dyn_core.errors import DynError, NonFiniteError, SettingError, ShapeError
from dyn_core.model import Model
from dyn_core.model.checks.inertias import changed_inertias
from dyn_core.model.checks.robots import (
    beyond_limits,
    check_robot,
    many_turns,
    too_fast,
)
from dyn_core.model.coordinates.configuration_space import scaled_quaternions
from dyn_core.model.payload import Payload, PayloadInput
from dyn_core.simulation.channels import (
    Channels,
    MeasuredJoints,
    joint_poses,
    single_joints,
)
from dyn_core.simulation.loop_closure import close_loops
from dyn_core.simulation.plant import SimulatedPlant
from dyn_core.solving.registry import solver
from dyn_core.validation import ListOf, Name, float_array, one_state, shown

LONG = 0.1  # a longer step is warned of [s]


class RobotPlant(SimulatedPlant):
    """A simulated robot that accepts joint forces and advances by periods.

    A subclass is a dataclass with the settings as fields. It calls `_check_settings`
    and `_prepare`, and implements `_move`; its Programs take `carried.values` as last
    inputs.

    Attributes:
        model: Robot.
        q0, qd0: Initial state, (nq,) and (nv,); None: neutral within the joint limits,
            at rest. Afterwards arrays, where q0 has unit quaternions and closed loops,
            with driven joints at t = 0.
        prescribed: Names of joints with prescribed accelerations instead of forces;
            afterwards a tuple in the order of the model.
        compensates_gravity: Whether the robot compensates its own weight, so that
            commands do not contain it.
        payload_link: Link that may carry a payload; empty: none.
        engine: Engine of the Programs; None: the default.
        carried: PayloadInput of the payload that `attach` attached last.
        compensated: Coordinates whose motors compensate gravity, bool, (nv,); by
            default all that are not prescribed.
        q, qd: State, (nq,) and (nv,).
        applied_effort: Joint forces, including forces of prescribed motion, (nv,)
            [N·m | N].
        qdd_u: Accelerations of the prescribed joints, in the order of the model [rad/s²
            | m/s²].
        warnings: Sentences on doubtful changed inertias, and on the initial state.
    """

    model: Model
    q0: Any
    qd0: Any
    prescribed: tuple[str, ...]
    compensates_gravity: bool
    payload_link: str
    engine: str | None
    warnings: tuple[str, ...] = ()

    def _check_settings(self, *times: str) -> None:
        """Check the settings except the initial state.

        `prescribed` becomes a tuple (one name stands for a list of it), and `carried`
        becomes a PayloadInput without a payload.
        """
        check_robot(self.model, type(self).__name__)
        super()._check_settings(*times)
        joints: Any = self.prescribed
        joints = (joints,) if isinstance(joints, str) else joints
        if not ListOf(Name()).takes(joints):
            raise SettingError(
                f"prescribed is {shown(joints)}; valid: a list of joints", "prescribed"
            )
        self.prescribed = tuple(
            sorted(joints, key=lambda x: self.model.v_slice(x).start)
        )
        starts = [self.model.v_slice(name).start for name in self.prescribed]
        for k, name in enumerate(self.prescribed):
            if starts[k] in starts[:k]:  # a follower moves with its leader
                raise SettingError(
                    f"prescribed: joint '{name}' is prescribed twice; valid: each joint"
                    " once, and no joint that follows one of them",
                    "prescribed",
                )
        if self.payload_link:
            self.model.frame(self.payload_link)  # a ModelError lists the links
        self.carried = PayloadInput(self.payload_link)
        kinds = [joint.kind for joint in self.model.joint[1:]]
        if self.compensates_gravity and (self.model.loops or "floating" in kinds):
            what = "loops" if self.model.loops else "a floating root"
            raise SettingError(
                f"compensates_gravity: the robot has {what}, so that its motors alone"
                " do not carry it; valid: False",
                "compensates_gravity",
            )

    def _prepare(self) -> None:
        """Check the initial state, and reset the robot to it; after `_check_settings`.

        Sets q0, qd0, effort_limit, compensated and warnings; a missing effort limit
        becomes infinite. A given qd0 is kept, even if it does not fit the loops. With
        compensates_gravity a Program for the weight is built.
        """
        self._scaled: dict[str, float] = {}
        self.q0 = self._start(self.q0)
        nv = self.model.nv
        self.qd0 = np.zeros(nv) if self.qd0 is None else _state("qd0", self.qd0, nv)
        limit = self.model.effort_limit
        self.effort_limit = np.where(limit > 0, limit, np.inf)
        self.compensated = np.ones(nv, bool)
        for name in self.prescribed:
            self.compensated[self.model.v_slice(name)] = False
        if self.compensates_gravity:
            self._weight = solver("gravity").build(
                self.model, engine=self.engine, inputs=self._more_inputs
            )
            self._weight.prepare()
        self.warnings = tuple(
            f"the quaternion of joint {name} at the start has the length {length:.3g};"
            " it is scaled to 1"
            for name, length in self._scaled.items()
        ) + changed_inertias(self.model)
        if (step := self.period / self.substeps) > LONG:
            self.warnings += (
                f"steps of {step:g} s are long: nothing acts within a step; valid: a"
                " period in seconds, such as 0.002, or more substeps",
            )
        turned = many_turns(self.model, "q0", self.q0, "the start")
        self.warnings += (turned,) * bool(turned)
        self.reset()

    @property
    def _more_inputs(self) -> list[str]:
        """Names of the last inputs of a Program, whose values `_more` returns."""
        return [*(["time"] if self.model.driven else []), *self.carried.paths]

    def _more(self, t: float) -> tuple[Any, ...]:
        """Return the values of the inputs `_more_inputs` in that order, t in [s]."""
        return (*((t,) if self.model.driven else ()), *self.carried.values)

    def attach(self, payload: Payload | None) -> None:
        """Attach a payload at payload_link, replacing another one; None: remove it.

        Raises:
            SettingError: A payload is given but there is no payload_link.
        """
        self.carried.attach(payload)

    def _acting(self, t: float, q: np.ndarray) -> np.ndarray:
        """Return the joint forces of the motors, (nv,) [N·m | N].

        They are the command, the array `tau` itself. With compensates_gravity the
        weight g(q) of the coordinates in `compensated` is added and the sum is clipped
        to the effort limits; only then it is also stored as applied_effort.
        """
        if not self.compensates_gravity:
            return self.tau
        weight = np.where(self.compensated, self._weight(q, *self._more(t)), 0.0)
        limit = self.effort_limit
        self.applied_effort = np.clip(self.tau + weight, -limit, limit)
        return self.applied_effort

    def _start(self, q0: Any) -> np.ndarray:
        """Return the initial position, (nq,), with unit quaternions and closed loops.

        None is neutral, moved into the limits, but for joints with quaternions. The
        lengths of quaternions that were scaled are stored, for a warning.
        """
        model = self.model
        if q0 is not None:
            q = _state("q0", q0, model.nq)
            self._scaled = _lengths(model, q)
            q = model.normalize(q)
            return close_loops(model, q) if model.loops else q
        q = model.start()
        return close_loops(model, q, tries=20) if model.loops else q

    def _beyond_limits(self) -> tuple[str, ...]:
        """Return a sentence on the joint of q0, and of qd0, farthest beyond its limits.

        There is none if no independent joint of one coordinate is beyond its position
        limits by more than 0.01 rad or m (DEEP), or 5 times (FAST) as fast as its
        velocity limit.
        """
        beyond = beyond_limits(self.model, "q0", self.q0, "the start")
        pushed = f"{beyond}: the first steps push it back, at high speed"
        fast = too_fast(self.model, "qd0", self.qd0, "the start")
        return (pushed,) * bool(beyond) + (fast,) * bool(fast)

    def _explained(self, error: DynError) -> DynError:
        """Return the error of a step that `advance` raises.

        The message of a NonFiniteError begins with the warnings of the initial state.
        """
        if not isinstance(error, NonFiniteError) or not self.warnings:
            return error
        because = "; ".join(self.warnings)
        return NonFiniteError(f"{because}; {error}", error.name, error.rows)

    def reset(self) -> None:
        """Restore the initial state, and clear commands and prescribed accelerations.

        A payload and `braked` remain, and so does `paused` unless a failed step has set
        it.
        """
        super().reset()
        self.q, self.qd = self.q0.copy(), self.qd0.copy()
        self.applied_effort = self.tau
        slices = [self.model.v_slice(name) for name in self.prescribed]
        self.qdd_u = np.zeros(sum(part.stop - part.start for part in slices))
        self.accelerated = None

    def channels(self) -> Channels:
        """Return new Channels of the robot: its joints of one coordinate, and `poses`.

        Inputs are forces of these joints and accelerations of `prescribed`; poses are
        those of joint_poses; the carrier is the robot itself. There are no functions in
        `forces`, and wrench and place are None.
        """
        joints = single_joints(self.model)
        return Channels(
            joints=joints,
            columns=np.array([self.model.v_slice(n).start for n in joints], int),
            measured=MeasuredJoints.of_model(self.model),
            poses=lambda: joint_poses(self.model, self.q, self.qd),
            values=self._diagnostic_values,
            accelerations=self.prescribed,
            carrier=self,
        )

    def _diagnostic_values(self) -> dict[str, Any]:
        """Return values for diagnostics, by name; empty here."""
        return {}

    def accelerate(self, t: float, qdd: Any) -> None:
        """Set the accelerations of the prescribed joints from now on.

        Without new ones for command_timeout they become zero: the joints continue at
        their velocity. `braked` stays. Refused accelerations are counted ("acceleration
        of wrong size", "acceleration not finite"), except values that are not numbers.

        Args:
            t: Time, on the clock of `command` [s]; not checked.
            qdd: Accelerations, as many as the coordinates of these joints, in the order
                of the model [rad/s² | m/s²].

        Raises:
            ShapeError, NonFiniteError: The array is invalid; the previous ones remain.
        """
        qdd = float_array("accelerations", qdd, f"shape {self.qdd_u.shape}")
        if qdd.shape != self.qdd_u.shape:
            self.counters["acceleration of wrong size"] += 1
            none = f"no joint (prescribed={[*self.model.joint_names[:1]]} is one)"
            joints = ", ".join(self.prescribed) or none
            wanted = f"shape {self.qdd_u.shape} for {joints}"
            raise ShapeError("accelerations", wanted, f"shape {qdd.shape}")
        if not np.isfinite(qdd).all():
            self.counters["acceleration not finite"] += 1
            raise NonFiniteError("acceleration is not finite", "accelerations")
        self.qdd_u, self.accelerated = qdd.copy(), t

    @property
    def effort(self) -> np.ndarray:
        """Joint forces that act, (nv,) [N·m | N].

        They are the command `tau`, or with compensates_gravity or prescribed joints the
        applied_effort of the last step, zeros before the first; no copy.
        """
        more = self.prescribed or self.compensates_gravity
        return self.applied_effort if more else self.tau

    def _forget_accelerations(self, t: float) -> None:
        """Zero and count prescribed accelerations that are stale at time t [s]."""
        since = self.accelerated
        if since is not None and not t - since <= self.command_timeout:
            self.counters["acceleration stale"] += 1
            self.qdd_u, self.accelerated = np.zeros_like(self.qdd_u), None

    def _begin_period(self) -> Any:
        """Return q, qd and applied_effort; no step changes these arrays in place."""
        return self.q, self.qd, self.applied_effort

    def _return_to(self, state: Any) -> None:
        """Restore q, qd and applied_effort from a result of `_begin_period`."""
        self.q, self.qd, self.applied_effort = state

    def _step(self, t: float, dt: float) -> None:
        """Advance q and qd by one substep of length dt [s] from time t [s].

        If it fails, they are unchanged, but _move may have set applied_effort.
        """
        self.q, self.qd = self._move(t, self.q, self.qd, dt)

    @abstractmethod
    def _move(
        self, t: float, q: np.ndarray, qd: np.ndarray, dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return q (nq,) and qd (nv,) after one step of length dt [s] from time t [s].

        The arguments are not changed in place.
        """


def _lengths(model: Model, q: np.ndarray) -> dict[str, float]:
    """Return, by joint, the lengths of quaternions in q that are not 1 within 0.001.

    A length below 1e-9 is refused.
    """
    lengths = scaled_quaternions(model, q)
    for name, length in lengths.items():
        if length < 1e-9:
            raise SettingError(f"q0: the quaternion of joint {name} is zero", "q0")
    return lengths


def _state(name: str, values: Any, size: int) -> np.ndarray:
    """Return an initial position or velocity as a new array, (size,), finite."""
    got = repr(values)
    try:
        array = one_state(name, values, size)
    except ShapeError as error:
        array, got = np.full(1, np.nan), error.got
    if not np.isfinite(array).all():
        valid = "; valid: an array, such as model.start() or model.position({...})"
        raise SettingError(
            f"{name} needs {size} finite numbers, got {got}"
            f"{valid if name == 'q0' else ''}",
            name,
        )
    return array
