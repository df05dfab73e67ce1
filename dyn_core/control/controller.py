"""Joint controller without ROS: reference, limits, stale states, counters.

Invalid data never becomes a torque. An invalid sample raises and is counted, the
commanded torque is finite and within the effort limits and the envelope, and a stale
state leads to zero torque (or, for arms without brakes, to gravity compensation with
damping for a bounded time). A stop lasts until a person resets it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dyn_core.control.collision import CollisionDetector
from dyn_core.control.joint_limits import JointLimits
from dyn_core.control.joint_values import wrapped_joints
from dyn_core.control.observers import fault_seen
from dyn_core.control.reference.following import TrajectoryFollower
from dyn_core.control.reference.led_trajectory import LedTrajectory
from dyn_core.control.reference.trajectory import Reference, Trajectory
from dyn_core.control.safety.effort_checks import Safety
from dyn_core.control.safety.envelope import Envelope
from dyn_core.control.safety.shadow import Shadow, check_apart
from dyn_core.control.safety.silence import Silence
from dyn_core.control.safety.stops import Stop
from dyn_core.control.states.plausibility import StateCheck
from dyn_core.control.states.state_samples import (
    BACK,
    STALE,
    Samples,
    check_time,
    check_times,
)
from dyn_core.control.torques import Laws
from dyn_core.errors import DynError, FixedAttributes, SettingError
from dyn_core.solving.control_mode import ModeMessage
from dyn_core.solving.registry import default_registry
from dyn_core.validation import known_keywords, shown

AT_REST = (
    "; a simulated robot that swings on: dyn call /simulator/pause true and dyn call"
    " /simulator/reset before, /simulator/pause false after (in its namespace)"
)
BRISK = 0.1  # speed above which the reference starts with the robot's [rad/s | m/s]


@known_keywords
@dataclass(repr=False)
class Controller(Laws, FixedAttributes):
    """Control of a robot by the law of a mode; one coordinate a joint.

    The joint order of all arrays is model.joint_names; see Model.reorder. All methods
    must be called from one thread, except `watch`, `guard` and `make_trajectory`, which
    any thread may call. The settings are documented in dyn_core.control.settings.

    Attributes:
        enabled: Whether the control law acts, set by the caller; while False, `update`
            returns zeros.
        safety: Checks of every effort, and the stop in force.
        detector: Collision detector; None without the setting `collision`.

    Raises:
        SettingError: A setting is invalid, or a joint has several coordinates.
        AttributeError: An attribute is set that there is not, or that is only read.
        ModelError: The model has no link payload_link, or `wrap` is a text or has a
            joint that is none of model.endless_joints.
        SolverNotFound: No solver has a name in the settings. Errors of builds pass
            through, such as UnsupportedError for an unknown engine.
    """

    OTHERWISE = "make_trajectory and follow move the reference, reset_stop ends a stop"

    def __post_init__(self) -> None:
        super().__post_init__()
        wrap = self._prepare_reference()
        build = self._build_laws(wrap)
        self.safety = self._safety(build)
        self.detector: CollisionDetector | None = None
        if self.collision is not None:
            watched = self.collision, self.engine, self.carried
            self.detector = CollisionDetector(self.robot, *watched)
        self.enabled = True
        self._drives = False  # whether the law has acted since the last reset
        self.silence = Silence(self.samples, self.rules, self.safety)
        self.begin()
        self._fixed = type(self) is Controller  # subclasses may have any attributes

    def __repr__(self) -> str:
        stop = self.stopped
        state = "enabled" if self.enabled else "disabled"
        state = state if stop is None else f"stopped: {stop.reason}"
        return f"<Controller of '{self.model.name}': mode {self.mode}, {state}>"

    def _prepare_reference(self) -> tuple[str, ...]:
        """Set wrapped, samples, limits and follower; return names of wrapped joints."""
        names, wrap = self.model.joint_names, wrapped_joints(self.model, self.wrap)
        self.wrapped = np.array([name in wrap for name in names], bool)
        check = None
        if self.state_bounds is not None:
            check = StateCheck(self.model, self.state_bounds, self.rules.differentiate)
        self.samples = Samples(names, self.rules, self.wrapped, self.counters, check)
        self.limits = JointLimits.of(self.model)
        self.follower = TrajectoryFollower(self.limits, self.rules, self.wrapped)
        self.follower.listeners = self.listeners
        return wrap

    def _safety(self, build: Callable[[Any, Any], Any]) -> Safety:
        """Return the safety checks; build(solver, engine) builds the control law."""
        envelope = shadow = None
        if self.bounds is not None:
            tracks = self.control_mode.tracks
            bounds, limit = self.bounds.resolved(self.model, tracks), self.limit
            if bounds.tool_speed is not None and bounds.frame is None:
                bounds = replace(bounds, frame=self.control_law.frame)
            envelope = Envelope(self.model, bounds, limit, self.engine, self.carried)
        if self.shadow is not None:
            second = build(self.shadow.inverse_dynamics, self.shadow.engine)
            check_apart(self.shadow, self.control_mode, self.chosen, self.law, second)
            names = self.model.joint_names
            shadow = Shadow(self.shadow, names, lambda: self._torque(second))
        return Safety(
            joints=self.model.joint_names,
            limit=self.limit,
            slew=self.slew,
            rules=self.rules,
            weight=self._carry,
            brake=self._brake,
            can_brake=self._can_brake,
            rate=lambda: self.samples.rate,
            pause=self.samples.pause_before,
            counters=self.counters,
            envelope=envelope,
            shadow=shadow,
            clock=lambda: self.now,
        )

    def _can_brake(self) -> bool:
        """Return whether effort limits can hold the robot at its present position."""
        q = self.q
        if q is None:
            return False
        try:
            weight = np.asarray(self._carry(q, 0 * q))
        except DynError:
            return False
        return bool((np.abs(weight) <= self.limit).all())  # false for NaN

    @property
    def q(self) -> np.ndarray | None:
        """Last valid position, (nv,); None before the first state and after a reset."""
        return self.samples.q

    @property
    def qd(self) -> np.ndarray | None:
        """Last valid velocity, (nv,); None before the first state and after a reset."""
        return self.samples.qd

    @property
    def seen(self) -> float | None:
        """Time of receipt of the last valid state [s]; a reset retains it.

        None before the first state and after `begin`.
        """
        return self.samples.seen

    @property
    def untested(self) -> tuple[str, ...]:
        """Sentences on joints without a range of positions or a limit of velocity.

        One for each lack; continuous joints need no range. Empty if there are none, or
        without state_bounds.
        """
        return () if self.samples.check is None else self.samples.check.untested

    @property
    def good(self) -> int:
        """Number of consecutive valid states; 0 after a reset or a stale state.

        A refused sample leaves it as it is.
        """
        return self.samples.good

    @property
    def reference(self) -> Reference | None:
        """Reference at the last torque, before one the first state at rest.

        None before a state and after a reset.
        """
        return self.follower.reference

    @property
    def trajectory(self) -> Trajectory | LedTrajectory | None:
        """Trajectory of the running motion, else of the pending one; None at rest.

        A braking motion counts as a running one.
        """
        motion = self.follower.running or self.follower.pending
        return None if motion is None else motion.trajectory

    @property
    def stopped(self) -> Stop | None:
        """Stop in force, with its reason; None without a stop."""
        return self.safety.running

    @property
    def idle(self) -> str:
        """Why no law acts: a stop, else disabled; and what ends that.

        Else empty, also while the controller waits for valid states.
        """
        if (stop := self.stopped) is None:
            return "" if self.enabled else "disabled; valid: enable it"
        way = "; valid: deactivate and activate the node; in Python reset_stop"
        if stop.cause == "guard":  # its reason says what ends it
            way = ""
        elif stop.cause == "violation":  # a robot that still swings would stop it again
            way = f"{way}{AT_REST}"
        return f"stopped: {stop.reason}{way}"

    def begin(self) -> None:
        """Restart the controller: discard times and the measured period, and reset.

        Torque is zero until `good_samples` valid states have come. A stop stays in
        force (reset_stop ends it), and a disabled controller stays disabled.
        """
        self.samples.begin()
        self.now = 0.0
        self.reset()

    def reset(self, why: str = "dropped: the controller was reset") -> None:
        """Clear state and reference; drop trajectories.

        Torque is zero until `good_samples` valid states have come. A stop stays in
        force (reset_stop ends it), and a disabled controller stays disabled. The time
        of the last state is retained, so that a stale state is still detected. The
        integral, the collision detector and the observers restart.

        Args:
            why: Outcome that the listeners of dropped trajectories are called with.
        """
        self.follower.rest(None, why)
        self._drives = False
        self.control_law.clear()
        self._restart()
        self.samples.reset()
        self._error_points: tuple[Any, np.ndarray] | None = None
        for observer in self.observers:
            observer.restart()

    @property
    def refusal(self) -> str | None:
        """Reason why the mode follows no trajectory, with modes that do; or None."""
        if self.control_mode.follows:
            return None
        modes = default_registry().modes().values()
        valid = ", ".join(mode.name for mode in modes if mode.follows)
        return f"mode {self.mode} follows no trajectory; valid: mode {valid}"

    def make_trajectory(
        self, names: Sequence[str], times: Any, *rows: Any, **settings: Any
    ) -> Trajectory:
        """Return a trajectory checked against this robot's limits; from any thread.

        Position limits are widened to include the present positions of robot and
        reference, and then by limit_tolerance.

        Args:
            names: Joints of the columns, each of the robot once, in any order; the
                result has the robot's order.
            times: Times of the points from the start, (k,) [s].
            rows: Positions and optionally velocities and accelerations, (k, n) each, n
                joints, as for dyn_core.control.make_trajectory.
            settings: effort, method and moving_end of dyn_core.control.make_trajectory.

        Raises:
            TrajectoryError: The trajectory is invalid or leaves the widened limits.
        """
        return self.follower.make(self.q, names, times, *rows, **settings)

    def follow(self, trajectory: Trajectory, t: float) -> None:
        """Follow a trajectory from time t on; the running one continues until then.

        A pending trajectory is dropped.

        Args:
            trajectory: Trajectory from make_trajectory; the listeners are called with
                this object.
            t: Time of the trajectory's time zero, on the clock of `now` in update [s].
                If it is past, the trajectory is joined where it is at the present time.

        Raises:
            SettingError: No state has come yet or since a reset, the mode follows no
                trajectory, the controller is disabled or stopped, or an argument is of
                another type.
            TrajectoryError: A joint begins farther than start_tolerance from both the
                reference and the robot (not checked for the method none), the
                trajectory starts more than a day ahead, or it exceeds the limits.
        """
        if self.reference is None or self.seen is None:
            raise SettingError(
                "no state has been received: the trajectory has no start"
            )
        if not hasattr(trajectory, "sample"):
            valid = "what make_trajectory returns; follow(trajectory, t)"
            raise SettingError(f"trajectory is {shown(trajectory)}; valid: {valid}")
        check_time(t, "follow(trajectory, t)")
        if self.refusal is not None:
            raise SettingError(self.refusal, "mode")
        if self.idle:
            raise SettingError(f"no trajectory is followed: {self.idle}")
        self.follower.follow(trajectory, t, self.now, self.q)

    def receive(
        self,
        topic: str,
        t: float,
        values: Any,
        frame: str = "",
        stamp: float | None = None,
        clock: float | None = None,
    ) -> None:
        """Use a message of a topic of the mode, such as target_pose.

        Args:
            topic: Name of the topic.
            t: Time of receipt, on the clock of `now` in update [s].
            values: Numbers of the message.
            frame: Link in whose axes they are, a position from its origin; empty: the
                root.
            stamp: Time stamp [s]; None: none.
            clock: Present time of the stamps' clock [s]; None: the age is not tested.

        Raises:
            DynError: The message is refused; the previous one stays in force.
        """
        check_time(t, "receive(topic, t, values)")
        message = ModeMessage(topic, t, values, frame, stamp, clock)
        self.control_law.receive(message)

    def stop(self, why: str = "stopped") -> None:
        """Brake the reference to rest and drop trajectories.

        The control law goes on and holds the end position; unlike `estop`, this is no
        Stop and needs no reset. No effect without a state.

        Args:
            why: Outcome that the listeners of dropped trajectories are called with.
        """
        if self.seen is not None:
            self.follower.stop(self.now, why)

    def estop(self, t: float, reason: str = "emergency stop") -> None:
        """Stop as set by the rule on_estop, zero, ramp or hold, until reset_stop.

        A stop in force that is as strong or stronger remains. Even then the reference
        brakes and trajectories are dropped, if there is a state.

        Args:
            t: Present time, on the clock of t in `update` [s].
            reason: Sentence that explains the stop.

        Raises:
            SettingError: t is no finite number; the stop is in force nevertheless, from
                the time of the last state on.
        """
        self._stop(t, "estop", self.rules.on_estop, reason)
        check_time(t, "estop(t, reason)")  # last: a wrong call, too, stops the robot

    def shut_down(self, t: float, reason: str = "shutdown") -> None:
        """Stop as set by the rule on_shutdown, zero, ramp or hold, until reset_stop.

        A stop in force that is as strong or stronger remains. Even then the reference
        brakes and trajectories are dropped, if there is a state.

        Args:
            t: Present time, on the clock of t in `update` [s].
            reason: Sentence that explains the stop.

        Raises:
            SettingError: As of estop.
        """
        self._stop(t, "shutdown", self.rules.on_shutdown, reason)
        check_time(t, "shut_down(t, reason)")  # last: a wrong call, too, stops it

    def _stop(self, t: float, cause: str, kind: str, reason: str) -> None:
        """Stop the robot and brake the reference; an equal or stronger stop remains.

        Even then the cause, estop or shutdown, is counted, and the reference brakes, if
        there is a state. A t that is not finite counts as the time of the last state,
        or 0 without one. The kinds, from the strongest, are zero, ramp and hold.
        """
        try:
            check_time(t, "")
        except SettingError:  # the caller raises it, once the robot is stopped
            t = self.seen or 0.0
        self.safety.stop(t, cause, kind, reason)
        self._brake(False)

    def reset_stop(self) -> None:
        """End a stop, on a person's request, and reset state and reference.

        Torque is zero until `good_samples` valid states have come; the robot then holds
        its position. The reset is the same without a stop. A disabled controller stays
        disabled.
        """
        self.safety.reset()
        self.reset()

    def _brake(self, measured: bool) -> None:
        """Brake the reference to rest and drop trajectories; no effect without a state.

        The law's own references brake, too. If `measured`, the reference first jumps to
        the measured position and Samples.rate, and the law begins anew.
        """
        q, qd = self.q, self.qd
        if q is None or qd is None or self.reference is None:
            return
        stop = self.safety.running
        why = "stopped" if stop is None else f"stopped: {stop.reason}"
        if measured:
            self.follower.take(q, self.samples.rate, why)
        self.stop(why)
        if measured:
            self.control_law.begin()
        self.control_law.brake()

    def update(
        self,
        t: float,
        q: Any,
        qd: Any | None,
        stamp: float | None = None,
        now: float | None = None,
        clock: float | None = None,
    ) -> np.ndarray | None:
        """Return the torque for a state, (nv,) [N·m | N].

        Zeros while the controller is disabled, waits for `good_samples` valid states,
        or states jump back and forth (Samples.alternate); else, during a stop, the
        torque of the stop. None if the state's stamp equals the last one, and for the
        sample at which time went back.

        Args:
            t: Time of receipt, monotonic [s]. If the previous state is stale, or a
                position jumps, the controller is reset before the state is used.
            q, qd: Joint positions and velocities, (nv,); qd may be None if the rule
                `differentiate` is set, else ShapeError.
            stamp: Time stamp of the state [s]; an earlier one resets the controller,
                and an equal one is no new state.
            now: Time of references, integrals and driven joints [s], such as simulated
                time; going back or jumping resets the controller. None: t.
            clock: Present time of the stamps' clock [s]; None: the age is not tested.

        Raises:
            ShapeError, NonFiniteError, StateError: The sample is invalid or
                implausible. It is counted, and the last valid state is retained.
            SettingError: A time is no finite number; not counted.
            ValueError, TypeError: q or qd are no numbers; not counted.
        """
        check_times(t, stamp, now, clock)
        samples = self.samples
        if samples.repeats(t, stamp):
            return None
        q, qd = samples.checked(t, q, qd, stamp, clock)
        why = samples.interruption(t, q, qd, stamp, now)
        if why is not None:
            samples.interrupted(t, why)
            self.reset(f"dropped: {'joint state is stale' if why == STALE else why}")
            if why == BACK:
                samples.stamp, samples.now = stamp, now
                return None
        samples.check_motion(t, q, qd, stamp)
        self.now = t if now is None else now
        samples.accept(t, q, qd, stamp, self.now)
        self.carried.advance(t)
        if self.reference is None:
            self.follower.rest(q)
        waits = samples.good < self.rules.good_samples or samples.alternate(t)
        if not self.enabled or waits:
            self._restart()
            self._drives = False
            tau = np.zeros(self.model.nv)
        else:
            if not self._drives:
                self._drives = True
                self._take_over()
            if not self.judged:
                self._judge_gains(t)
            tau = self._effort(t, q, qd)
            if self.detector is not None:
                tau = self._stopped_by_collision(t, q, qd, tau)
        if self.observers:
            tau = self._stopped_by_observers(t, q, qd, tau)
        return tau

    def _take_over(self) -> None:
        """Start the law, and the reference at the robot's state.

        A robot faster than 0.1 rad/s or m/s gets a reference that brakes from its
        velocity, because one at rest would brake it at full effort. While a trajectory
        runs or waits, the reference stays as it is.
        """
        follower = self.follower
        self.control_law.begin()
        if follower.running is not None or follower.pending is not None:
            return
        assert self.q is not None
        rate = self.samples.rate
        if np.abs(rate).max(initial=0.0) <= BRISK:
            follower.rest(self.q)
        else:
            follower.take(self.q, rate)
            self.stop()

    def _effort(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the checked torque for a valid state, (nv,) [N·m | N].

        Reference, law and, except during a stop, the integral are advanced to `now`
        before. During a stop the result is its torque.
        """
        self.follower.advance(self.now)
        self.control_law.advance(self.now)
        if self.integral.acts and not self.safety.running and self.reference:
            error = self.samples.change(q, self.reference.q)
            self.integral.advance(self.now, error, self.safety.saturated)
        return self.safety.effort(
            t, q, qd, lambda: self.error, lambda: self._torque(self.law)
        )

    def _stopped_by_collision(
        self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> np.ndarray:
        """Return `tau`, or the torque of a stop that begins by a collision.

        If the detector finds one or raises, and no stop is in force, a stop of the kind
        rules.on_collision begins and the reference brakes from the measured state.
        """
        assert self.detector is not None
        stamp = self.samples.stamp
        # Stamps are the best measure of how long the last torque has acted.
        time = self.now if stamp is None or self.driven else stamp
        reason = fault_seen([self.detector], time, q, qd, tau)
        if reason is None or self.safety.running is not None:
            return tau
        self.safety.stop(t, "collision", self.rules.on_collision, reason)
        self._brake(True)
        tau = self._effort(t, q, qd)
        self.detector.replace(tau)
        return tau

    def _stopped_by_observers(
        self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> np.ndarray:
        """Return `tau`, or the torque of a stop that an observer causes.

        If one gives a reason or raises, and no stop is in force, a stop by
        rules.on_violation begins. A `tau` of zeros is returned even then.
        """
        reason = fault_seen(self.observers, self.now, q, qd, tau)
        if reason is None or self.safety.running is not None:
            return tau
        self.safety.violated(t, reason)
        if tau.any():
            tau = self._effort(t, q, qd)
        else:  # zero passes the gate, although it was computed before the stop
            self.safety.ticket = self.safety.gate.ticket()
        if self.detector is not None:
            self.detector.replace(tau)
        return tau

    def _judge_gains(self, t: float) -> None:
        """Stop with zero torque if sampling makes the gains unstable.

        Until the sampling period is known, the mean period so far is used, only gains
        far beyond their bounds stop the robot, and the next torque repeats the check.
        """
        self.judged = self.period is not None
        try:
            self.check_sampling(self.kp, self.kd, self.ki)
        except SettingError as error:
            self.safety.stop(t, "gains", "zero", f"gains: {error}")

    def _restart(self) -> None:
        """Discard efforts, integral and the detector's state; a stop remains."""
        self.judged = False  # whether the gains were checked with the known period
        self.safety.restart()
        self.integral.restart()
        if self.detector is not None:
            self.detector.restart()

    def watch(self, t: float) -> np.ndarray | None:
        """Return the torque for a stale state, (nv,) [N·m | N]; None if it is fresh.

        None, too, before the first state. The torque is zero, or gravity compensation
        with damping for at most stop_time, as set by the rule on_stale or a stop in
        force; always zero while disabled, see Silence.torque. The call also advances
        the blending of a payload, and sets `good` to 0 if the state is stale.

        Args:
            t: Present time, monotonic [s].
        """
        check_time(t, "watch(t)")
        self.carried.advance(t)
        return self.silence.torque(t, self.enabled)

    def guard(self, t: float, publish: Callable[[np.ndarray], object]) -> bool:
        """Publish the torque for a stale state: zero, or gravity compensation.

        To be called by the thread of a watchdog. Which one is set by the rule on_stale
        or a stop in force; gravity compensation has damping and lasts at most
        stop_time. The first torque of a silence discards every effort that is still
        being computed. Nothing is published if a state or a stop comes meanwhile. The
        call also advances the blending of a payload.

        Args:
            t: Present time, monotonic [s].
            publish: Function that sends a torque, (nv,); its errors pass through.

        Returns:
            Whether the state was stale at `t`, even if nothing was published; False
            before the first state.
        """
        check_time(t, "guard(t, publish)")
        self.carried.advance(t)
        return self.silence.answer(t, self.enabled, publish)

    def final_torque(self) -> np.ndarray:
        """Return the torque to send when the controller ends: zeros, (nv,)."""
        return np.zeros(self.model.nv)
