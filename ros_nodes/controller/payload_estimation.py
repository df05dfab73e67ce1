"""The payload that the controller's node estimates: ~/payload, and how sure it is."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped
from sensor_msgs.msg import JointState

import dyn_core as dyn
from dyn_core.control.payload_estimator import (
    PayloadEstimate,
    PayloadEstimator,
    PayloadSettings,
)
from dyn_core.control.safety.health import WARN, Condition
from ros_nodes.conversions import stamp_seconds
from ros_nodes.parameter_tables.payload_parameters import ESTIMATION

NUMBERS = ("effort_memory", "largest_mass", "reach", "drift", "period")
LARGE = 4.0  # mismatch from which what is said of the noise is doubtful
SURE = 0.01  # share of the mass, of LIGHT at least, from which its deviation is logged
LIGHT = 0.5  # [kg]
OFTEN, WITHIN = 3, 5.0  # changes of the payload, in a time [s], that none explains


class PayloadWatch:
    """Estimates the payload of payload.link, if a solver is named for it.

    It sees each state after its effort has been sent, and changes no effort. While the
    controller does not drive the robot, or a joint is at its limit, nothing is learned.

    Attributes:
        node: A ComputedTorqueNode that has its controller.
        estimator: A PayloadEstimator; None without a solver.
    """

    def __init__(self, node: Any) -> None:
        self.node, self.controller = node, node.controller
        self.estimator: PayloadEstimator | None = None
        if not node.value(f"{ESTIMATION}.plugin_name"):
            return
        model, engine = self.controller.model, node.value("engine") or None
        self.measured = node.value(f"{ESTIMATION}.effort") == "measured"
        self.estimator = PayloadEstimator(model, self._settings(), engine)
        self._sent: np.ndarray | None = None
        self._missing, self._logged, self._seen, self._time = False, False, 0, 0.0
        self._changes: deque[float] = deque(maxlen=OFTEN)  # times of them
        self._topics = [
            node.keep(node.create_publisher(InertiaStamped, topic, 1))
            for topic in ("~/payload", "~/payload_deviation")
        ]
        node.after_answers.append(self.see)
        node.conditions.append(self.conditions)
        node.further_values.append(self.values)
        node.every_idle(1.0 / node.value("publish_rate"), self.publish)

    def _settings(self) -> PayloadSettings:
        """Return what the parameters ask for.

        Raises:
            SettingError: No link carries a payload, or efforts do not show its weight.
        """
        value, link = self.node.value, self.node.value("payload.link")
        if not link:
            name = f"{ESTIMATION}.plugin_name"
            raise dyn.SettingError(
                f"{name} needs payload.link, the link that carries the payload", name
            )
        if not self.measured and value("robot_compensates_gravity"):
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
        return PayloadSettings(link, estimator=solver, **noises, **single)

    def see(self, message: JointState, tau: np.ndarray | None) -> None:
        """Take a joint state, and the effort that answers it."""
        controller, estimator = self.controller, self.estimator
        assert estimator is not None
        sent, self._sent = self._sent, tau
        try:
            effort = self.node.reader.effort(message) if self.measured else sent
        except dyn.DynError:
            effort = None
        self._missing = self.measured and effort is None
        if tau is None or effort is None or not self._moved_by(effort):
            estimator.restart()
            return
        stamp = stamp_seconds(message.header.stamp)
        time = controller.now if stamp is None or controller.driven else stamp
        estimator.update(time, controller.q, controller.qd, effort)
        self._time = time
        if estimator.changes > self._seen:
            self._note_change(time)
        self._seen = int(estimator.changes)

    def _note_change(self, time: float) -> None:
        """Log that the payload is another one, unless that is said often."""
        self._changes.append(time)
        self._logged = False
        if not self._restless():
            self.node.get_logger().info("the payload is another one: estimated anew")

    def _restless(self) -> bool:
        """Return whether it was another payload too often for there to be one."""
        changes = self._changes
        return len(changes) == OFTEN and self._time - changes[0] < WITHIN

    def _moved_by(self, effort: np.ndarray) -> bool:
        """Return whether efforts alone move the robot: no brake, and no limit stop."""
        controller = self.controller
        drives = controller.enabled and controller.stopped is None
        ready = controller.good > controller.rules.good_samples
        if not drives or not ready or not np.isfinite(effort).all():
            return False
        q, limits = controller.q, controller.limits
        return bool(((q > limits.lower) & (q < limits.upper)).all())

    def publish(self) -> None:
        """Publish the estimate, and the standard deviations of its numbers."""
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
        """Return values for /diagnostics."""
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
        """Return what keeps the estimate from being right."""
        assert self.estimator is not None
        seen, mismatch = [], float(self.estimator.mismatch)
        if self._missing:
            message = (
                "the payload is not estimated: joint_states has no effort; valid:"
                f" {ESTIMATION}.effort: sent"
            )
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
    """Return one number for all joints, or numbers of each."""
    return numbers[0] if len(numbers) == 1 else list(numbers)


def inertia_message(
    stamp: Any, link: str, mass: Any, com: Any, inertia: Any
) -> InertiaStamped:
    """Return a message; com and inertia are NaN where there is no mass.

    Args:
        stamp, link: Time, and the link whose frame it is in.
        mass: [kg].
        com: Centre of mass, 3 [m].
        inertia: About it: xx xy xz yy yz zz [kg·m²].
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
    """Return an estimate as a line of /diagnostics."""
    mass, spread = float(estimate.mass), float(estimate.deviations[0])
    line = f"{mass:.4g} kg ± {spread:.2g}"
    if mass > 2 * spread:
        pairs = zip(estimate.com, estimate.com_deviations, strict=True)
        place = ", ".join(f"{x:.4f} ± {s:.1g}" for x, s in pairs)
        line += f" at ({place}) m"
    if mass <= 0:
        return f"{line}: nothing is carried"
    return line if estimate.possible else f"{line}; its inertia is not known yet"
