"""Messages of the topics of a mode, as flat numbers with frame and stamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from std_msgs.msg import Float64MultiArray

from dyn_core.errors import SettingError
from ros_nodes.conversions import stamp_seconds


def _three(vector: Any) -> list[float]:
    """Return [x, y, z] of a message with these fields, such as a Point."""
    return [vector.x, vector.y, vector.z]


def _pose(message: Any) -> list[float]:
    """Return position [m] and quaternion x, y, z, w of a PoseStamped, 7 numbers."""
    turn = message.pose.orientation
    return [*_three(message.pose.position), turn.x, turn.y, turn.z, turn.w]


def _twist(message: Any) -> list[float]:
    """Return [angular; linear] of a TwistStamped, 6 numbers [rad/s, m/s]."""
    return [*_three(message.twist.angular), *_three(message.twist.linear)]


def _wrench(message: Any) -> list[float]:
    """Return [moment; force] of a WrenchStamped, 6 numbers [N·m, N]."""
    return [*_three(message.wrench.torque), *_three(message.wrench.force)]


READERS: dict[str, tuple[Any, Callable[[Any], list[float]]]] = {
    "geometry_msgs/PoseStamped": (PoseStamped, _pose),
    "geometry_msgs/TwistStamped": (TwistStamped, _twist),
    "geometry_msgs/WrenchStamped": (WrenchStamped, _wrench),
    "std_msgs/Float64MultiArray": (Float64MultiArray, lambda message: [*message.data]),
}


def message_type(name: str) -> Any:
    """Return the class of a type of messages, such as geometry_msgs/TwistStamped."""
    if name not in READERS:
        valid = ", ".join(READERS)
        raise SettingError(f"a topic of the mode has {name}; valid: {valid}", "mode")
    return READERS[name][0]


def read_target(name: str, message: Any) -> tuple[list[float], str, float | None]:
    """Return the numbers of a message, its frame and its stamp [s].

    The numbers are position and quaternion x, y, z, w of a pose; [angular; linear] of a
    twist; [moment; force] of a wrench; the data of an array. A leading / of the frame
    is removed. Without a header the frame is empty and the stamp None, as is a zero
    one.
    """
    header = getattr(message, "header", None)
    numbers = READERS[name][1](message)
    if header is None:
        return numbers, "", None
    return numbers, header.frame_id.removeprefix("/"), stamp_seconds(header.stamp)
