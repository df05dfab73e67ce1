"""What other nodes know of the guard: its publisher, its latch and its timeout."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rcl_interfaces.srv import GetParameters
from std_msgs.msg import Bool

from dyn_core.control.health import WARN, Condition
from ros_nodes._node import LATCHED
from ros_nodes.graphs import GUARD

CAUSE = "guard"  # of a stop
ASK = 0.5  # period of questions to a guard that does not answer [s]
ANSWER = 0.015  # in which the controller answers silence, after state_timeout [s]
WORD = 0.1  # time in which a guard's word arrives after a gap [s]


def publishers_beside_guard(node: Any, topic: str) -> int:
    """Return the number of publishers of a topic that are no guard.

    A guard is a node of that name; it sends only where the controller does not.
    """
    name = node.resolve_topic_name(topic)
    count = int(node.count_publishers(name))
    if count < 2:  # which costs little
        return count
    infos = node.get_publishers_info_by_topic(name)
    return sum(info.node_name != GUARD.executable for info in infos)


class GuardLatch:
    """Keeps a controller at zero effort while a guard says that it is stopped.

    An observer of the controller (dyn_core.control.observers) once a guard is heard.
    After a gap between two states that is longer than state_timeout, the process may
    have stood while the guard stopped it: then no effort is sent before the guard's
    word has had time to arrive.

    A guard that is heard is asked for its effort_timeout: one that is not longer than
    the silence that the controller itself answers is a WARN.
    """

    def __init__(self, node: Any) -> None:
        self.node, self.controller = node, node.controller
        self.latched = False
        self._others = -1  # stops of other causes, when the guard's came
        self._seen = time.monotonic()
        self._silent_until = 0.0
        self._timeout: float | None = None  # of the guard [s]
        self._asks = False
        self._pending: Any = None  # the last question
        service = f"{GUARD.executable}/get_parameters"
        self._client = node.keep(node.create_client(GetParameters, service))
        node.every(ASK, self._ask)
        node.conditions.append(self.conditions)
        topic = f"{GUARD.executable}/stopped"
        node.keep(node.create_subscription(Bool, topic, self._on_stopped, LATCHED))

    def restart(self) -> None:
        """Do nothing: a gap is one, whatever was reset."""

    def observe(self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> None:
        """Send zero for the effort while the guard has stopped, or may have."""
        now = time.monotonic()
        if now - self._seen > self.controller.rules.state_timeout:
            self._silent_until = now + WORD
        self._seen = now
        if self.latched:
            self._stop()
        elif now < self._silent_until and tau.any():
            self.node.send_zero()  # nothing at all would leave the last effort

    def conditions(self, t: float) -> list[Condition]:
        """Return whether the guard would stop a robot that the controller stops."""
        answer = self.controller.rules.state_timeout + ANSWER
        if self._timeout is None or self._timeout > answer:
            return []
        message = (
            f"effort_timeout of the guard is {self._timeout:g} s: it stops the robot"
            " where the controller itself would; valid: more than state_timeout and"
            f" 15 ms ({answer:g} s)"
        )
        return [Condition(WARN, "guard's timeout", message)]

    def _ask(self) -> None:
        """Ask a guard that has spoken for its timeout, until it answers."""
        if self._asks and self._client.service_is_ready():
            if self._pending is not None:
                self._client.remove_pending_request(self._pending)
            request = GetParameters.Request(names=["effort_timeout"])
            self._pending = self._client.call_async(request)
            self._pending.add_done_callback(self.node.session.guarded(self._on_answer))

    def _on_answer(self, answer: Any) -> None:
        """Keep the timeout of the guard, if it has one."""
        self._asks, values = False, answer.result().values
        self._timeout = values[0].double_value or None if values else None

    def _on_stopped(self, message: Bool) -> None:
        """Stop, or end a stop that has no other cause."""
        self._asks = True
        if self not in self.controller.observers:
            self.controller.observers.append(self)
        self.latched = message.data
        if message.data:
            self._stop()
            return
        stop = self.controller.stopped
        if stop is not None and stop.cause == CAUSE and self._others == self._stops():
            self.controller.reset_stop()

    def _stop(self) -> None:
        """Stop with zero effort, unless that is in force."""
        stop, safety = self.controller.stopped, self.controller.safety
        if stop is not None and stop.kind == "zero":
            return
        self._others = self._stops() if stop is None else -1
        reason = "the guard has stopped it; ~/reset of the guard ends that"
        safety.stop(time.monotonic(), CAUSE, "zero", reason)
        if self.node.active:
            self.node.send_zero()

    def _stops(self) -> int:
        """Return how often the controller was stopped by others."""
        counted = self.controller.counters.items()
        return sum(
            n for k, n in counted if k.startswith("stopped: ") and CAUSE not in k
        )
