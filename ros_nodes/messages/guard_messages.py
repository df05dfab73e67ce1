"""The beat of a guard as a standard message: a DiagnosticStatus with key-values."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rclpy.qos import QoSProfile

from dyn_core.control.safety.guard_link import Beat
from dyn_core.errors import SettingError
from dyn_core.validation import shown

TOPIC = "latch"  # in the namespace of the guard's node
BEATS = QoSProfile(depth=10)
SWITCHES = {"false": False, "true": True}


def beat_message(beat: Beat) -> DiagnosticStatus:
    """Return the message of a beat, the periodic status of a guard.

    The keys of `values` are uuid, stopped, reason, resets, effort_timeout
    (beat.timeout) and ends, in this order; booleans are "true" or "false".
    """
    values = {
        "uuid": beat.uuid,
        "stopped": str(beat.stopped).lower(),
        "reason": beat.reason,
        "resets": str(beat.resets),
        "effort_timeout": repr(beat.timeout),
        "ends": str(beat.ends).lower(),
    }
    level = DiagnosticStatus.ERROR if beat.stopped else DiagnosticStatus.OK
    return DiagnosticStatus(
        level=level,
        name="guard: latch",
        message=f"stopped: {beat.reason}" if beat.stopped else "not stopped",
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )


def read_beat(message: DiagnosticStatus) -> Beat:
    """Return the beat of a message of beat_message; a SettingError refuses others."""
    values = {row.key: row.value for row in message.values}
    try:
        beat = Beat(
            uuid=values["uuid"],
            stopped=SWITCHES[values["stopped"]],
            reason=values["reason"],
            resets=int(values["resets"]),
            timeout=float(values["effort_timeout"]),
            ends=SWITCHES[values["ends"]],
        )
    except (KeyError, ValueError) as error:
        raise SettingError(
            f"no beat of a guard: {shown(values)}; valid: uuid, stopped, reason,"
            " resets, effort_timeout and ends, as the node guard sends them",
            "latch",
        ) from error
    if not beat.uuid:
        raise SettingError("a beat of a guard has no uuid; valid: a text", "uuid")
    return beat
