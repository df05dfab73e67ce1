"""Joint controller without ROS: reference, limits, stale states, counters.

Invalid data never becomes a torque. An invalid sample raises and is counted, the
commanded torque is finite and within the effort limits and the envelope, and a stale
state leads to zero torque (or, for arms without brakes, to gravity compensation with
damping for a bounded time). A stop lasts until a person resets it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.control.collision import CollisionDetector
from dyn_core.control.joint_limits import JointLimits
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
from dyn_core.control.states.state_samples import BACK, STALE, Samples
from dyn_core.control.torques import Laws
from dyn_core.errors import DynError, SettingError
from dyn_core.validation import known_keywords

BRISK = 0.1  # velocity from which a reference begins with the robot's [rad/s | m/s]


@known_keywords
@dataclass
class Controller(Laws):
    """Computed torque, impedance or gravity compensation; one coordinate a joint.

    The order of all arrays is model.joint_names; see Model.reorder. All methods are for
    one thread, but for `watch`, `guard` and `make_trajectory`, which are for any.
    dyn_core.control.settings says what the settings are.
    """

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
        self._drives = False  # whether the law has the robot since the last reset
        self.silence = Silence(self.samples, self.rules, self.safety)
        self.begin()

    def _prepare_reference(self) -> tuple[str, ...]:
        """Prepare what takes samples and follows trajectories; return `wrap`."""
        names, wrap = self.model.joint_names, self.wrap
        if wrap is None:
            wrap = [n for n in names if self.model.joint_kind(n) == "continuous"]
        self.wrapped = np.array([name in wrap for name in names], bool)
        check = None
        if self.state_bounds is not None:
            check = StateCheck(self.model, self.state_bounds, self.rules.differentiate)
        self.samples = Samples(names, self.rules, self.wrapped, self.counters, check)
        self.limits = JointLimits.of(self.model)
        free = np.isinf(self.limits.lower) & np.isinf(self.limits.upper)
        self.follower = TrajectoryFollower(self.limits, self.rules, self.wrapped & free)
        self.follower.listeners = self.listeners
        return tuple(wrap)

    def _safety(self, build: Callable[[Any, Any], Any]) -> Safety:
        """Return what checks and stops, with its Programs."""
        envelope = shadow = None
        if self.bounds is not None:
            bounds, limit = self.bounds.resolved(self.model, self.mode), self.limit
            envelope = Envelope(self.model, bounds, limit, self.engine, self.carried)
        if self.shadow is not None:
            second = build(self.shadow.inverse_dynamics, self.shadow.engine)
            check_apart(self.shadow, self.inverse_dynamics, self.law, second)
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
            counters=self.counters,
            envelope=envelope,
            shadow=shadow,
            clock=lambda: self.now,
        )

    def _can_brake(self) -> bool:
        """Return whether the effort limits carry the weight where the robot is."""
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
        """Last good position; None before the first and after a reset."""
        return self.samples.q

    @property
    def qd(self) -> np.ndarray | None:
        """Last good velocity; None before the first and after a reset."""
        return self.samples.qd

    @property
    def seen(self) -> float | None:
        """Time of receipt of the last good state [s]; None before the first."""
        return self.samples.seen

    @property
    def untested(self) -> tuple[str, ...]:
        """Sentences on joints whose limits say nothing about their states."""
        return () if self.samples.check is None else self.samples.check.untested

    @property
    def good(self) -> int:
        """Number of consecutive good states."""
        return self.samples.good

    @property
    def reference(self) -> Reference | None:
        """Reference at the last torque; None before the first state."""
        return self.follower.reference

    @property
    def trajectory(self) -> Trajectory | LedTrajectory | None:
        """The trajectory that leads the reference, or will; None at rest."""
        motion = self.follower.running or self.follower.pending
        return None if motion is None else motion.trajectory

    @property
    def stopped(self) -> Stop | None:
        """The stop in force, with its reason; None while the law drives."""
        return self.safety.running

    def begin(self) -> None:
        """Restart; no torque is computed before the first state."""
        self.samples.begin()
        self.now = 0.0
        self.reset()

    def reset(self, why: str = "dropped: the controller was reset") -> None:
        """Clear state and reference; torque is enabled again after good samples.

        The time of the last state is kept, so that stale states are detected after a
        reset, too.

        Args:
            why: What the listeners hear of trajectories.
        """
        self.follower.rest(None, why)
        self._drives = False
        self._restart()
        self.samples.reset()
        self._error_points: tuple[Any, np.ndarray] | None = None
        for observer in self.observers:
            observer.restart()

    def make_trajectory(
        self, names: Sequence[str], times: Any, *rows: Any, **settings: Any
    ) -> Trajectory:
        """Return a trajectory checked against the limits of this robot, in any thread.

        Args:
            names, times, rows: Joints, times, positions and, if there are, velocities
                and accelerations, as for dyn_core.control.make_trajectory.
            settings: effort, method and moving_end.
        """
        return self.follower.make(self.q, names, times, *rows, **settings)

    def follow(self, trajectory: Trajectory, t: float) -> None:
        """Follow a trajectory from the time t on; until then what runs runs on.

        Args:
            trajectory: Of make_trajectory; the listeners hear of this object.
            t: Time of its time zero, as `now` of update [s].

        Raises:
            SettingError: Nothing would follow: no state yet, mode gravity, disabled.
            TrajectoryError: It starts far from the robot, or leaves the limits.
        """
        if self.reference is None or self.seen is None:
            raise SettingError(
                "no state has been received: the trajectory has no start"
            )
        if self.mode == "gravity":
            raise SettingError(
                "mode gravity follows no trajectory; valid: mode computed_torque",
                "mode",
            )
        if not self.enabled or self.safety.running is not None:
            raise SettingError(
                "disabled or stopped: no trajectory is followed; enable or reset first"
            )
        self.follower.follow(trajectory, t, self.now, self.q)

    def stop(self, why: str = "stopped") -> None:
        """Brake the reference and rest there; trajectories are dropped."""
        if self.seen is not None:
            self.follower.stop(self.now, why)

    def estop(self, t: float, reason: str = "emergency stop") -> None:
        """Stop as the rules say for on_estop, until reset_stop is called."""
        self._stop(t, "estop", self.rules.on_estop, reason)

    def shut_down(self, t: float, reason: str = "shutdown") -> None:
        """Stop as the rules say for on_shutdown."""
        self._stop(t, "shutdown", self.rules.on_shutdown, reason)

    def _stop(self, t: float, cause: str, kind: str, reason: str) -> None:
        self.safety.stop(t, cause, kind, reason)
        self._brake(False)

    def reset_stop(self) -> None:
        """End a stop, on a person's request: the robot then rests where it is."""
        self.safety.reset()
        self.reset()

    def _brake(self, measured: bool) -> None:
        """Brake the reference, from the measured state or from where it is."""
        q, qd = self.q, self.qd
        if q is None or qd is None or self.reference is None:
            return
        stop = self.safety.running
        why = "stopped" if stop is None else f"stopped: {stop.reason}"
        if measured:
            self.follower.take(q, self.samples.rate, why)
        self.stop(why)

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

        None for a state that comes again, and right after time went back.

        Args:
            t: Time of receipt, monotonic [s].
            q, qd: Joint positions and velocities, (nv,); qd may be None.
            stamp: Time stamp of the state [s]; an earlier one resets the controller,
                and an equal one is no new state.
            clock: Present time of the stamps' clock [s]; None: the age is not tested.
            now: Time of trajectories and driven places [s], such as simulated time;
                resets when it goes back or jumps. None: t.

        Raises:
            ShapeError, NonFiniteError, StateError: The sample is invalid, or cannot be
                true; it is counted, and the last valid one is kept.
        """
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
        """Lead the reference to rest from where, and as fast as, the robot is.

        A robot that moves would be braked at full effort by a reference at rest.
        """
        follower = self.follower
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
        """Return the checked torque for a good state."""
        self.follower.advance(self.now)
        if self.integral.acts and not self.safety.running and self.reference:
            error = self.samples.change(q, self.reference.q)
            self.integral.advance(t, error, self.safety.saturated)
        return self.safety.effort(
            t, q, qd, lambda: self.error, lambda: self._torque(self.law)
        )

    def _stopped_by_collision(
        self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> np.ndarray:
        """Return a torque that no collision stops, or that of the stop.

        Stamps, where states have them, say best how long the last torque has acted.
        """
        assert self.detector is not None
        stamp = self.samples.stamp
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
        """Return a torque that the observers have seen, or that of their stop."""
        reason = fault_seen(self.observers, self.now, q, qd, tau)
        if reason is None or self.safety.running is not None:
            return tau
        self.safety.violated(t, reason)
        if tau.any():
            tau = self._effort(t, q, qd)
        else:  # zero is sent after the stop, too
            self.safety.ticket = self.safety.gate.ticket()
        if self.detector is not None:
            self.detector.replace(tau)
        return tau

    def _judge_gains(self, t: float) -> None:
        """Stop before the first torque where sampling makes the gains unstable.

        The first few samples tell the period roughly: then only what is far beyond.
        """
        self.judged = self.period is not None
        try:
            self.check_sampling(self.kp, self.kd, self.ki)
        except SettingError as error:
            self.safety.stop(t, "gains", "zero", f"gains: {error}")

    def _restart(self) -> None:
        """Forget earlier efforts and errors."""
        self.judged = False  # whether the gains are known to suit the period
        self.safety.restart()
        self.integral.restart()
        if self.detector is not None:
            self.detector.restart()

    def watch(self, t: float) -> np.ndarray | None:
        """Return the torque for a stale state at the time t, else None."""
        self.carried.advance(t)
        return self.silence.torque(t, self.enabled)

    def guard(self, t: float, publish: Callable[[np.ndarray], object]) -> bool:
        """Publish the torque of `watch`, if the state is stale; return whether it is.

        For the thread of a watchdog. The first torque of a silence discards every
        effort that is still being computed; a state that comes meanwhile goes first.
        """
        self.carried.advance(t)
        return self.silence.answer(t, self.enabled, publish)

    def final_torque(self) -> np.ndarray:
        """Return the last torque of the controller: zero."""
        return np.zeros(self.model.nv)
