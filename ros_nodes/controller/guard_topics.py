"""The guard as other nodes see it: its publishers and its beats."""

from __future__ import annotations

import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from dyn_core.control.safety.guard_link import GuardStop
from dyn_core.errors import SettingError
from ros_nodes.graphs import GUARD
from ros_nodes.messages.guard_messages import BEATS, TOPIC, read_beat

# Nodes whose publishers do not count: the guard's, and a node that the middleware
# does not know yet (rmw's name for it), which a guard is while it starts.
UNCOUNTED = (GUARD.executable, "_NODE_NAME_UNKNOWN_")
LOOK = 0.01  # period of the checks for silence of the guard [s]


def publishers_beside_guard(node: Any, topic: str) -> int:
    """Return the number of publishers of a topic, not counting guards.

    A guard is a node with the name of the guard's executable; it only sends while the
    controller does not. A single publisher always counts.
    """
    name = node.resolve_topic_name(topic)
    count = int(node.count_publishers(name))
    if count < 2:  # cheaper than the query below
        return count
    infos = node.get_publishers_info_by_topic(name)
    return sum(info.node_name not in UNCOUNTED for info in infos)


class GuardLatch:
    """Stops a controller as its guard says; see dyn_core.control.safety.guard_link.

    It receives the beats (periodic status messages) of each guard in its namespace.
    Without a guard the node is not affected, unless `require_guard` is set; its
    activation then waits for one for up to guard_wait. `stop`, also node.guard_stop,
    becomes an observer with the first beat, or at once if a guard is required or known.
    """

    def __init__(self, node: Any) -> None:
        self.node, self.link = node, node.guard_link
        self.link.timeout = node.value("guard_timeout")
        self.link.required = node.value("require_guard")
        self.link.longest_pause = node.controller.rules.state_timeout
        longest = node.value("guard_wait") if self.link.required else 0.0
        node.activation.longest, node.activation.failure = longest, None
        self.stop = node.guard_stop = GuardStop(
            node.controller, self.link, self._send_zero
        )
        if self.link.required or self.link.guards:
            node.controller.observers.append(self.stop)
        node.conditions.append(self.link.conditions)
        node.further_values.append(self._values)
        node.every(LOOK, self._look)
        topic = f"{GUARD.executable}/{TOPIC}"
        listen = node.create_subscription
        node.keep(listen(DiagnosticStatus, topic, self._on_beat, BEATS))

    def _on_beat(self, message: DiagnosticStatus) -> None:
        """Process a beat, or refuse it; the first makes `stop` an observer."""
        try:
            beat = read_beat(message)
        except SettingError as error:
            self.node.refuse("beat refused", str(error))
            return
        # The first beat: from here on the guard's silence counts.
        if self.stop not in self.node.controller.observers:
            self.node.controller.observers.append(self.stop)
        hears = self.stop if self.node.active else self.link
        hears.hear(time.monotonic(), beat)

    def _look(self) -> None:
        """Check for silence of the guard; if inactive, continue a wait for it."""
        now = time.monotonic()
        if self.node.active:
            self.stop.look(now)
        else:
            self.link.check(now)
            self.node.activation.look(now)

    def _values(self) -> dict[str, Any]:
        """Return {"guards heard": number of living guards}, for /diagnostics."""
        return {"guards heard": len(self.link.living(time.monotonic()))}

    def _send_zero(self) -> None:
        """Publish zero effort and discard pending ones, if the node is active."""
        if self.node.active:
            self.node.send_zero()
