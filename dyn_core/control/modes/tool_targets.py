"""Targets of a tool: checks of messages, and the reference that they move."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core.errors import TargetError, unknown_name
from dyn_core.solving.control_mode import ModeMessage
from dyn_core.spatial import Vector
from dyn_core.spatial.conventions.common import quaternion
from dyn_core.spatial.lie import normalized, quat_exp, quat_matrix
from dyn_core.validation import float_array

POSE, TWIST, WRENCH, STIFFNESS, SENSOR = (
    "target_pose",
    "target_twist",
    "target_wrench",
    "target_stiffness",
    "sensor_wrench",
)
SIZES = {POSE: 7, TWIST: 6, WRENCH: 6, STIFFNESS: 6, SENSOR: 6}
UNIT = 1e-3  # largest error of the length of a quaternion
FULL = 0.5  # share of the timeout for which a twist or a wrench counts in full
LARGEST = 1e7  # size of a number of a message [SI]; squares of it are finite


class ToolTargets:
    """Reference of a tool: pose, velocity and wrench in base axes, and stiffness.

    Messages are checked and turned into base axes at their receipt. A pose is held; a
    twist moves the reference pose, which stays within target_jump of the tool; twist
    and wrench count in full for half of target_timeout and fade to zero until its end.
    `poses` returns those of all `links`, (links, 4, 4).

    Attributes:
        R, p: Rotation matrix and position [m]; None and zero before `hold`.
        v: Present velocity of the reference, [angular; linear], base axes, (6,).
        f: Present wrench, [moment; force], base axes, (6,).
        share: Share with which the last target wrench counts in `f`, 0 to 1.
        received: Time of the last accepted target [s]; None: none since `hold`.
        jump: target_jump [rad, m].
        oldest: Largest difference between a stamp and the clock [s]; 0: none.
    """

    def __init__(self, links: tuple[str, ...], poses: Callable[[], np.ndarray]) -> None:
        self.links, self._poses = links, poses
        self.timeout, self.jump, self.oldest = 0.1, 0.1, 0.5
        self.clear()

    def clear(self) -> None:
        """Discard the reference, twist, wrench, and the stamps of all messages."""
        self.R: np.ndarray | None = None
        self.p = np.zeros(3)
        self._turn: tuple[Any, np.ndarray] = np.eye(3), np.zeros(4)
        self._stamps: dict[str, float] = {}
        self._last: float | None = None
        self.rest()

    def rest(self) -> None:
        """Set twist and wrench to zero, `received` to None; pose and stamps stay."""
        self._twist, self._wrench = np.zeros(6), np.zeros(6)
        self._times = {TWIST: -np.inf, WRENCH: -np.inf}
        self.v, self.f, self.share = np.zeros(6), np.zeros(6), 0.0
        self.received: float | None = None

    def hold(self, T: np.ndarray) -> None:
        """Set the reference to rest at a copy of the pose T in the base, (4, 4)."""
        self.R, self.p = T[:3, :3].copy(), T[:3, 3].copy()
        self.rest()

    @property
    def pose(self) -> np.ndarray:
        """Position [m] and quaternion x, y, z, w in the base, (7,), after `hold`."""
        return np.concatenate([self.p, self._quaternion()])

    def _quaternion(self) -> np.ndarray:
        """Return the quaternion x, y, z, w of R, computed once for each R."""
        if self._turn[0] is not self.R:
            self._turn = self.R, quaternion(self.R)
        return self._turn[1]

    def advance(self, t: float, pose: Callable[[], np.ndarray]) -> None:
        """Advance the reference to time t; sets share, f, v, and after `hold` R and p.

        The pose moves with the twist only if the reference then stays within `jump` of
        the tool, or does not move farther from it, and turns by at most `jump` in the
        step; otherwise v becomes zero. Steps longer than the timeout count as the
        timeout. The first call after `clear` moves nothing, nor does an earlier time.
        """
        last = t if self._last is None else self._last
        step = min(max(t - last, 0.0), self.timeout)
        self._last = t
        self.share = self._share(WRENCH, t)
        self.f = self.share * self._wrench
        self.v = self._share(TWIST, t) * self._twist
        if self.R is None or not self.v.any():
            return
        turn = (self.v[:3] * step).tolist()
        if not math.hypot(*turn) <= self.jump:  # also whole turns
            self.v = np.zeros(6)
            return
        q: Any = self._quaternion()
        R, p = self.R, self.p + self.v[3:] * step
        if any(turn):  # by a quaternion: matrices drift under many products
            q = _turned(q, turn)
            R = _matrix(q)
        T = pose()
        after = _distances(T, R, p)
        if max(after) > self.jump:
            before = _distances(T, self.R, self.p)
            if any(x > max(y, self.jump) for x, y in zip(after, before, strict=True)):
                self.v = np.zeros(6)  # the tool does not come along
                return
        self.R, self.p, self._turn = R, p, (R, np.array(q))

    def _share(self, topic: str, t: float) -> float:
        """Return the share, 0 to 1, with which a twist or wrench counts at time t.

        It is 1 for half of the timeout after the message, then falls linearly to 0.
        """
        age = (t - self._times[topic]) / self.timeout
        return float(min(max((1.0 - age) / (1.0 - FULL), 0.0), 1.0))

    def receive(
        self,
        message: ModeMessage,
        check: Callable[[np.ndarray], None] = lambda stiffness: None,
    ) -> np.ndarray:
        """Use a message; return its numbers, of a twist or wrench in base axes.

        A pose, returned as it came, moves the reference there at once; a twist or
        wrench acts from the next `advance` on, at the tool: its vectors are turned, its
        point is not moved. A stiffness (6,), returned as a matrix (6, 6) in base axes,
        and a sample of the sensor (6,), returned in the axes of its link, do not change
        the reference. Each but a sample sets `received`. Values are in the axes of the
        link message.frame, a position from its origin; empty: the base.

        TargetError: numbers, frame or stamp are invalid, or a pose is farther than
        `jump` away; nothing has changed. If `check`, called with a stiffness as it is
        returned, refuses it, the stamp is not stored, either.
        """
        topic, stamp = message.topic, message.stamp
        x = self._checked(topic, message.values)
        self._check_stamp(topic, stamp, message.clock)
        if stamp is not None and topic == SENSOR:
            self._stamps[topic] = stamp
        if topic == SENSOR:
            return x
        T = self._frame(topic, message.frame)
        R = T[:3, :3]
        if topic == POSE:
            unit = normalized(Vector(x[3:].tolist()))
            self._move(R @ _matrix(unit), T[:3, 3] + R @ x[:3])
        elif topic == STIFFNESS:
            turn = np.kron(np.eye(2), R)
            x = turn @ np.diag(x) @ turn.T
            check(x)
        else:
            x = np.concatenate([R @ x[:3], R @ x[3:]])
            if topic == TWIST:
                self._twist = x
            else:
                self._wrench = x
            self._times[topic] = message.t
        if stamp is not None:
            self._stamps[topic] = stamp
        self.received = message.t
        return x

    def _checked(self, topic: str, values: Any) -> np.ndarray:
        """Return the numbers of a message as a float array, a float array itself.

        TargetError unless they are 7 for a pose, else 6, finite and at most LARGEST in
        size, a stiffness not negative, a quaternion of length 1 within UNIT.
        """
        size = SIZES[topic]
        try:
            x = float_array(topic, values, f"shape ({size},)")
        except (TypeError, ValueError, OverflowError) as error:
            raise TargetError(f"{topic}: valid: {size} numbers") from error
        if x.shape != (size,):
            raise TargetError(f"{topic} has the shape {x.shape}; valid: ({size},)")
        least = 0.0 if topic == STIFFNESS else -LARGEST
        if not ((x >= least) & (x <= LARGEST)).all():
            valid = f"finite numbers from {least:g} to {LARGEST:g}"
            raise TargetError(f"{topic} is {x.tolist()}; valid: {valid}")
        if topic == POSE:
            length = float(np.linalg.norm(x[3:]))
            if not abs(length - 1.0) <= UNIT:
                raise TargetError(
                    f"{topic}: the quaternion has the length {length:.6g}; valid: 1"
                    f" within {UNIT:g}"
                )
        return x

    def _check_stamp(
        self, topic: str, stamp: float | None, clock: float | None
    ) -> None:
        """Check the time stamp of a message; nothing is stored.

        TargetError: it is older than `oldest` (0: not checked), ahead of the clock by
        more than that, or earlier than the last accepted one of the topic.
        """
        if stamp is None:
            return
        if clock is not None and self.oldest > 0:
            age = clock - stamp
            if not abs(age) <= self.oldest:
                how = f"{age:.3f} s old" if age > 0 else f"{-age:.3f} s ahead"
                raise TargetError(
                    f"{topic}: the stamp is {how}; valid: at most {self.oldest:g} s"
                    " (max_state_age)"
                )
        back = self._stamps.get(topic, stamp) - stamp
        if back > 0:
            raise TargetError(
                f"{topic}: the stamp is {back:.3f} s earlier than the last one; valid:"
                " messages in order"
            )

    def _frame(self, topic: str, frame: str) -> np.ndarray:
        """Return the pose of link `frame` now, (4, 4); the identity if it is empty."""
        if not frame:
            return np.eye(4)
        if frame not in self.links:
            what = unknown_name("link", frame, self.links)
            raise TargetError(f"{topic}: frame_id: {what}; or empty for the root")
        return np.asarray(self._poses()[self.links.index(frame)])

    def _move(self, R: np.ndarray, p: np.ndarray) -> None:
        """Move the reference to a pose in the base; it must have been set before.

        TargetError, and no change, if the pose is farther from the present reference
        than `jump`, in angle [rad] or distance [m].
        """
        assert self.R is not None
        angle, length = _distances(_pose(R, p), self.R, self.p)
        if not (angle <= self.jump and length <= self.jump):
            raise TargetError(
                f"{POSE} is {length:.6g} m and {angle:.6g} rad from the reference;"
                f" valid: at most {self.jump:g} of each (target_jump), so lead it there"
            )
        self.R, self.p = R, p


def in_axes(x: np.ndarray, R: np.ndarray | None) -> np.ndarray:
    """Return a twist or wrench (6,) from base axes in the axes R; None: x itself."""
    return x if R is None else np.ravel(x.reshape(2, 3) @ R)


def _pose(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the pose (4, 4) of a rotation matrix (3, 3) and a position (3,)."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def _distances(T: np.ndarray, R: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """Return angle, 0 to pi [rad], and distance [m] between pose T and pose R, p."""
    M = (R.T @ T[:3, :3]).tolist()
    sine = math.hypot(M[2][1] - M[1][2], M[0][2] - M[2][0], M[1][0] - M[0][1])
    angle = math.atan2(sine, M[0][0] + M[1][1] + M[2][2] - 1.0)
    return angle, math.hypot(*(T[:3, 3] - p).tolist())


def _turned(q: np.ndarray, w: list[float]) -> tuple[float, ...]:
    """Return the quaternion q turned by a rotation vector w, (3,) [rad], in base axes.

    q and the result are x, y, z, w of unit length, the latter with the fourth >= 0.
    Plain numbers, because a product of Vectors takes four times as long.
    """
    x, y, z, r = q.tolist()
    a, b, c, d = quat_exp(Vector(w))
    x, y, z, r = (
        d * x + a * r + b * z - c * y,
        d * y + b * r + c * x - a * z,
        d * z + c * r + a * y - b * x,
        d * r - a * x - b * y - c * z,
    )
    scale = math.copysign(1.0 / math.hypot(x, y, z, r), r)
    return x * scale, y * scale, z * scale, r * scale


def _matrix(q: Any) -> np.ndarray:
    """Return the rotation matrix, (3, 3), of a unit quaternion q = x, y, z, w."""
    return np.array([list(row) for row in quat_matrix(q).rows])
