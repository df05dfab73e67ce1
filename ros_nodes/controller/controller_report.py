"""Status of the controller's node: values for /diagnostics, and log messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.qos import ReliabilityPolicy

from dyn_core.control.safety.health import OK, WARN, WINDOW, Condition
from dyn_core.errors import one_line
from ros_nodes.base import diagnostics as diagnostics
from ros_nodes.controller.guard_topics import publishers_beside_guard

GONE = 1.0  # time without a message after which joints count as absent [s]
GRAPH = 0.5  # period of the queries for other publishers [s]
MOST_BUSY = 0.65  # share of time spent on joint states above which to warn
LEVELS = (diagnostics.OK, diagnostics.WARN, diagnostics.ERROR, diagnostics.STALE)


class Report:
    """Conditions of a ComputedTorqueNode, for /diagnostics and the log.

    A condition is a warning, a fault or the normal state, as a sentence with a level.
    `states` counts answered joint states; `longest` and `busy` are the longest and the
    total time spent on them, from receipt to effort [s].
    """

    def __init__(self, node: Any) -> None:
        self.node = node
        self.states, self.longest = 0, 0.0
        self._unstamped = False  # whether states without stamps were reported
        self._others: tuple[float, Sequence[str]] = (-GONE, ())
        self.busy = 0.0
        self._asked = -GRAPH
        self._sources: list[Condition] = []
        self._refusals: deque[tuple[float, str]] = deque(maxlen=2)
        self._busy_before: deque[tuple[float, float]] = deque()

    def answered(self, started: float, ended: float) -> None:
        """Count an answered joint state; update `busy` and `longest`; times in [s]."""
        self.states += 1
        self.busy += ended - started
        self.longest = max(self.longest, ended - started)

    def refused(self, t: float, reason: str) -> None:
        """Record a refused joint state for a warning."""
        self._refusals.append((t, reason))

    def conditions(self, t: float) -> list[Condition]:
        """Return the active conditions, most severe first; at least one.

        Those of other publishers are up to GRAPH (0.5) seconds old. Each call records
        counters and the load, with which later calls compare.
        """
        node = self.node
        if t - self._asked >= GRAPH:
            self._asked, self._sources = t, self._ask_sources(t)
        more = [*self._sources, *self._roots(t), *self._recent_refusals(t)]
        more += self._load(t)
        silent = node.controller.samples.silence(t) is not None
        seen = node.controller.seen is not None and not silent
        more += node.states.conditions(t, seen)
        far = node.health.large_error
        more += node.states.elsewhere(t, self._places(), far)
        for seen in node.conditions:
            more += node.callbacks.attempt(seen, t) or ()
        return node.health.conditions(t, more)

    def _places(self) -> dict[str, float]:
        """Return positions [rad | m] of locked joints and, with a state, followers."""
        node, q = self.node, self.node.controller.q
        model = node.controller.model
        locks = [x for x in node.specs if x.startswith("lock.")]
        places = {x.removeprefix("lock."): node.value(x) for x in locks}
        for name in model.joint_names:  # not locked any more
            places.pop(name, None)
        for name, rule in model.followers.items() if q is not None else ():
            lead = q[model.v_slice(rule.leader).start]
            places[name] = rule.multiplier * lead + rule.offset
        return places

    def see_others(self, t: float, joints: Sequence[str]) -> None:
        """Record joints of multi_dof_joint_states, which this node does not control."""
        self._others = t, joints

    def _roots(self, t: float) -> list[Condition]:
        """Return a warning if multi_dof_joint_states has had joints lately, else []."""
        seen, joints = self._others
        if t - seen > GONE:
            return []
        names = ", ".join(joints)
        message = (
            f"multi_dof_joint_states has {names}: this controller drives the robot"
            " as if its root were fixed"
        )
        return [Condition(WARN, "root", message)]

    def _recent_refusals(self, t: float) -> list[Condition]:
        """Return a warning with the last refusal of a state if recent, else []."""
        if not self._refusals or t - self._refusals[-1][0] > WINDOW:
            return []
        message = f"joint states refused: {self._refusals[-1][1]}"
        return [Condition(WARN, "refused", message)]

    def _load(self, t: float) -> list[Condition]:
        """Return a warning if joint states take over MOST_BUSY of the time, else [].

        The share is that of the last WINDOW, or of longer if calls are rarer; each call
        is recorded.
        """
        rows = self._busy_before
        rows.append((t, self.busy))
        while len(rows) > 2 and rows[1][0] <= t - WINDOW:
            rows.popleft()
        since, before = rows[0]
        # A window that is not yet full counts as full: no warning right at the start.
        share = (self.busy - before) / max(t - since, WINDOW)
        if share <= MOST_BUSY:
            return []
        message = f"joint states take {share:.0%} of the time: some are missed"
        return [Condition(WARN, "load", message)]

    def _ask_sources(self, t: float) -> list[Condition]:
        """Return warnings on other publishers.

        There is one if states or efforts have several publishers (guards aside), and
        one for each node whose trajectories, as best effort, are not received.
        Publishers of states without any controlled joint do not count; all those of
        only some of the joints count as one.
        """
        node, seen = self.node, []
        for key, topic, what in (
            ("states", node.states_in.topic_name, "states of more than one robot"),
            ("efforts", node.efforts.topic_name, "efforts that are not this node's"),
        ):
            count = publishers_beside_guard(node, topic)
            if key == "states":
                count = node.states.sources.robots(t, count)
            if count > 1:
                message = f"{count} publishers on {topic}: {what}"
                seen.append(Condition(WARN, f"publishers of {key}", message))
        topic = node.trajectories.topic_name
        deaf = not node.trajectories.hears_all
        for name in _best_effort_publishers(node, topic) if deaf else ():
            message = (
                f"{name} publishes {topic} as best effort, which is not heard; valid:"
                " reliability reliable"
            )
            seen.append(Condition(WARN, f"unheard: {name}", message))
        return seen

    def log_changes(self, t: float) -> bytes:
        """Log conditions that have begun or ended; return the most severe level.

        Left out are those of level OK and of the keys health.QUIET; another level or
        message of the same key is no change.
        """
        node = self.node
        log = node.get_logger()
        if node.controller.samples.age.unstamped and not self._unstamped:
            self._unstamped = True  # once
            log.warning("joint states have no stamps: their age is not tested")
        conditions = self.conditions(t)
        for change in node.health.changes(conditions):
            message = one_line(change.message)
            if change.level == OK:
                log.info(message)
            elif change.level == WARN:
                log.warning(message)
            else:
                log.error(message)
        return LEVELS[node.health.summary(conditions)[0]]

    def status(self, t: float) -> tuple[bytes, str, dict[str, Any]]:
        """Return level, message and values by name for /diagnostics.

        Level and message are of all `conditions`, or if inactive of Activation.status.
        """
        node, controller = self.node, self.node.controller
        level, message = node.health.summary(self.conditions(t))
        if not node.active:
            inactive, message = node.activation.status(t)
            level = LEVELS.index(inactive)
        values = {
            "inverse dynamics": controller.solver_used,
            "engine": controller.engine_used,
            "mode": controller.mode,
            "joint states": self.states,
            "longest update [us]": f"{self.longest * 1e6:.0f}",
            "largest error": f"{np.abs(controller.error).max(initial=0.0):.6g}",
            "trajectories reached": node.health.reached,
            "efforts discarded": controller.safety.gate.discarded,
        }
        for more in node.further_values:
            values |= node.callbacks.attempt(more) or {}
        return LEVELS[level], message, values | dict(controller.counters)


def _best_effort_publishers(node: Any, topic: str) -> list[str]:
    """Return the full names of nodes that publish a topic as best effort, sorted."""
    infos = node.get_publishers_info_by_topic(node.resolve_topic_name(topic))
    best = ReliabilityPolicy.BEST_EFFORT
    return sorted(
        {
            f"{info.node_namespace.rstrip('/')}/{info.node_name}"
            for info in infos
            if info.qos_profile.reliability == best
        }
    )
