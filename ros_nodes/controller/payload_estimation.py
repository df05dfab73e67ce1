"""Payload estimation of the controller's node, with standard deviations: ~/payload."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from sensor_msgs.msg import JointState

import dyn_core as dyn
from dyn_core.control.payload_estimator import (
    LONGEST,
    PayloadEstimate,
    PayloadEstimator,
    PayloadSettings,
)
from dyn_core.control.safety.health import WARN, Condition
from dyn_core.control.states.state_samples import StateAge
from ros_nodes.base.qos import subscription
from ros_nodes.controller.mode_topics import QOS
from ros_nodes.conversions import stamp_seconds
from ros_nodes.messages.target_messages import read_target
from ros_nodes.parameter_tables.payload_parameters import ESTIMATION, SENSOR, TOPIC

NUMBERS = ("effort_memory", "largest_mass", "reach", "drift", "period")
LARGE = 4.0  # mismatch above which the assumed noise is doubtful
SURE = 0.01  # deviation below which it is logged, relative to the mass (at least LIGHT)
LIGHT = 0.5  # smallest mass for SURE [kg]
OFTEN, WITHIN = 3, 5.0  # number of changes in a time [s] that no real payload shows


class PayloadWatch:
    """Estimates the payload of payload.link, if a solver is named for it.

    It processes each state after its effort has been sent, and changes no effort. While
    the controller does not drive the robot, or a joint is at its limit, the estimate is
    not updated. A force-torque sensor on wrench_topic takes the place of efforts. The
    constructor adds itself to after_answers, conditions and further_values of the node,
    and publishes ~/payload and ~/payload_deviation at the rate publish_rate.

    Attributes:
        estimator: None without a solver: then this object does nothing.
        measured: Whether efforts of joint_states are used, else sent efforts; absent
            without a solver.
        reading: Last wrench of the sensor, (6,), [moment; force], and the time of its
            receipt, monotonic [s]; None before the first.
    """

    def __init__(self, node: Any) -> None:
        self.node, self.controller = node, node.controller
        self.estimator: PayloadEstimator | None = None
        if not node.value(f"{ESTIMATION}.plugin_name"):
            return
        model, engine = self.controller.model, node.value("engine") or None
        self.measured = node.value(f"{ESTIMATION}.effort") == "measured"
        self.estimator = PayloadEstimator(model, self._settings(), engine)
        self.reading: tuple[np.ndarray, float] | None = None
        self._age = StateAge(node.value("max_state_age"), "reading")
        if topic := node.value(TOPIC):
            subscription(node, WrenchStamped, topic, self.take, QOS)
        self._sent: np.ndarray | None = None
        self._missing, self._logged, self._seen, self._time = False, False, 0, 0.0
        # Times of the last changes [s]
        self._changes: deque[float] = deque(maxlen=OFTEN)
        self._topics = [
            node.keep(node.create_publisher(InertiaStamped, topic, 1))
            for topic in ("~/payload", "~/payload_deviation")
        ]
        node.after_answers.append(self.see)
        node.conditions.append(self.conditions)
        node.further_values.append(self.values)
        node.every_idle(1.0 / node.value("publish_rate"), self.publish)

    def _settings(self) -> PayloadSettings:
        """Return the estimator's settings, or refuse them; noises are not checked."""
        value, link = self.node.value, self.node.value("payload.link")
        if not link:
            name = f"{ESTIMATION}.plugin_name"
            raise dyn.SettingError(
                f"{name} needs payload.link, the link that carries the payload", name
            )
        sensor = value(SENSOR) if value(TOPIC) else ""
        if value(TOPIC) and not sensor:
            raise dyn.SettingError(
                f"{TOPIC} needs {SENSOR}, the link of the sensor", SENSOR
            )
        if not (self.measured or sensor) and value("robot_compensates_gravity"):
            name = f"{ESTIMATION}.effort"
            raise dyn.SettingError(
                f"{name} is sent, and with robot_compensates_gravity these have no"
                " weight; valid: measured",
                name,
            )
        noises = {
            key: _one_or_each(value(f"{ESTIMATION}.{key}"))
            for key in ("velocity_noise", "effort_noise")
        }
        single = {key: value(f"{ESTIMATION}.{key}") for key in NUMBERS}
        solver = self.node.solver(ESTIMATION)
        return PayloadSettings(
            link, estimator=solver, sensor=sensor, **noises, **single
        )

    def take(self, message: WrenchStamped) -> None:
        """Store a reading of the sensor; refuse (count and log) an invalid one.

        Its frame_id must be sensor_link or empty, its stamp not too far from now.
        """
        numbers, frame, stamp = read_target("geometry_msgs/WrenchStamped", message)
        node, link, wrench = self.node, self.node.value(SENSOR), np.array(numbers)
        clock = node.get_clock().now().nanoseconds * 1e-9
        try:
            if frame not in ("", link) or not np.isfinite(wrench).all():
                why = f"frame_id '{frame}', {numbers}; valid: '{link}', finite numbers"
                raise dyn.SettingError(why, SENSOR)
            self._age.check(stamp, clock or None)
        except dyn.DynError as error:
            node.refuse("wrench refused", f"{node.value(TOPIC)}: {error}")
            return
        self.reading = wrench, time.monotonic()

    def _effort(self, message: JointState, sent: np.ndarray | None) -> Any:
        """Return the effort or reading that acted until a state; None if not known.

        With a wrench_topic it is the sensor's last reading, (6,), unless too old; else
        the effort, (n,) [N·m | N], of the message or `sent`, the answer to the
        previous state.
        """
        if self.node.value(TOPIC):
            longest = LONGEST * self.node.value(f"{ESTIMATION}.period")
            fresh = self.reading and time.monotonic() - self.reading[1] <= longest
            return self.reading[0] if self.reading and fresh else None
        try:
            return self.node.reader.effort(message) if self.measured else sent
        except dyn.DynError:
            return None

    def see(self, message: JointState, tau: np.ndarray | None) -> None:
        """Update the estimate with a joint state; only if there is an estimator.

        `tau` (n,) [N·m | N] answers it; None: none was sent. With sent efforts, a state
        is paired with that of the previous state, which acted until now. If no effort
        is known, `tau` is None, or the robot is not driven by efforts alone, the next
        state begins a new period.
        """
        controller, estimator = self.controller, self.estimator
        assert estimator is not None
        sent, self._sent = self._sent, tau
        effort, sensor = self._effort(message, sent), bool(self.node.value(TOPIC))
        self._missing = (self.measured or sensor) and effort is None
        if tau is None or effort is None or not self._moved_by(effort):
            estimator.restart()
            return
        stamp = stamp_seconds(message.header.stamp)
        now = controller.now if stamp is None or controller.driven else stamp
        estimator.update(now, controller.q, controller.qd, effort)
        self._time = now
        if estimator.changes > self._seen:
            self._note_change(now)
        self._seen = int(estimator.changes)

    def _note_change(self, time: float) -> None:
        """Record a change of the payload; log it unless changes are frequent."""
        self._changes.append(time)
        self._logged = False
        if not self._restless():
            self.node.get_logger().info("the payload is another one: estimated anew")

    def _restless(self) -> bool:
        """Return whether the payload changes too often: then another force acts."""
        changes = self._changes
        return len(changes) == OFTEN and self._time - changes[0] < WITHIN

    def _moved_by(self, effort: np.ndarray) -> bool:
        """Return whether efforts alone move the robot, not brakes or limit stops."""
        controller = self.controller
        drives = controller.enabled and controller.stopped is None
        ready = controller.good > controller.rules.good_samples
        if not drives or not ready or not np.isfinite(effort).all():
            return False
        q, limits = controller.q, controller.limits
        return bool(((q > limits.lower) & (q < limits.upper)).all())

    def publish(self) -> None:
        """Publish the estimate on ~/payload and its standard deviations.

        The estimate is logged once the deviation of the mass is below 1 % of it (of 0.5
        kg, if the mass is less) and changes are rare, and again after a change.
        """
        estimate = None if self.estimator is None else self.estimator.estimate
        if not self.node.active or estimate is None:
            return
        stamp = self.node.stamp()
        rows = (
            (estimate.mass, estimate.com, estimate.inertia),
            (
                estimate.deviations[0],
                estimate.com_deviations,
                estimate.inertia_deviations,
            ),
        )
        link = self.node.value("payload.link")
        enough = SURE * max(float(estimate.mass), LIGHT)
        sure = estimate.deviations[0] < enough and not self._restless()
        if sure and not self._logged:
            self.node.get_logger().info(f"{link} carries {in_words(estimate)}")
            self._logged = True
        for topic, row in zip(self._topics, rows, strict=True):
            topic.publish(inertia_message(stamp, link, *row))

    def values(self) -> dict[str, Any]:
        """Return the estimate in words and its statistics by name, for /diagnostics."""
        assert self.estimator is not None
        estimate = self.estimator.estimate
        if estimate is None:
            return {"payload estimate": "none yet"}
        return {
            "payload estimate": in_words(estimate),
            "payload estimate: mismatch": f"{float(self.estimator.mismatch):.3g}",
            "payload estimate: outliers": int(self.estimator.outliers),
            "payload estimate: changes": int(self.estimator.changes),
        }

    def conditions(self, t: float) -> list[Condition]:
        """Return the warnings on the estimate; empty if there are none.

        Causes: missing efforts, errors far above the assumed noise, frequent changes.
        """
        assert self.estimator is not None
        seen, mismatch = [], float(self.estimator.mismatch)
        if self._missing:
            why = f"joint_states has no effort; valid: {ESTIMATION}.effort: sent"
            if topic := self.node.value(TOPIC):
                why = f"{topic} is silent"
            message = f"the payload is not estimated: {why}"
            seen.append(Condition(WARN, "payload: effort", message))
        if mismatch > LARGE:
            message = (
                f"errors of the payload estimate are {mismatch**0.5:.1f} times those"
                f" of {ESTIMATION}.velocity_noise and .effort_noise"
            )
            seen.append(Condition(WARN, "payload: noise", message))
        if self._restless():
            message = (
                f"{OFTEN} other payloads in {WITHIN:g} s: something touches the robot,"
                " or its friction is not the model's"
            )
            seen.append(Condition(WARN, "payload: changes", message))
        return seen


def _one_or_each(numbers: Any) -> Any:
    """Return the number of a list with one element, else the numbers as a list."""
    return numbers[0] if len(numbers) == 1 else list(numbers)


def inertia_message(
    stamp: Any, link: str, mass: Any, com: Any, inertia: Any
) -> InertiaStamped:
    """Return the message of an inertia, or of its standard deviations.

    mass [kg], com (3,) [m], inertia about com, xx xy xz yy yz zz [kg·m²], in the frame
    of the link; the last two are NaN if there is no mass.
    """
    message = InertiaStamped()
    message.header.stamp, message.header.frame_id = stamp, link
    body = message.inertia
    body.m = float(mass)
    body.com.x, body.com.y, body.com.z = np.asarray(com, float).tolist()
    moments = np.asarray(inertia, float).tolist()
    body.ixx, body.ixy, body.ixz, body.iyy, body.iyz, body.izz = moments
    return message


def in_words(estimate: PayloadEstimate) -> str:
    """Return a description of an estimate: mass, and centre of mass if significant.

    The centre is significant if the mass exceeds two of its standard deviations.
    """
    mass, spread = float(estimate.mass), float(estimate.deviations[0])
    line = f"{mass:.4g} kg ± {spread:.2g}"
    # Below two standard deviations the centre of mass is noise.
    if mass > 2 * spread:
        pairs = zip(estimate.com, estimate.com_deviations, strict=True)
        place = ", ".join(f"{x:.4f} ± {s:.1g}" for x, s in pairs)
        line += f" at ({place}) m"
    if mass <= 0:
        return f"{line}: nothing is carried"
    return line if estimate.possible else f"{line}; its inertia is not known yet"
