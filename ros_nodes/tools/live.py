"""A short-lived node that asks running nodes; every wait has an end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from dyn_core.errors import DynError, SettingError, nearest
from ros_nodes.running.runtime import make_executor

SETTLED = 0.5  # without a change for so long, the list of nodes is complete [s]
ASKED = 3  # times that a question is sent: the first answer of a service may be lost


class Live:
    """A node that asks others.

    Attributes:
        node: The node.
        timeout: Longest wait for a node, and for an answer [s].
    """

    def __init__(self, node: Any, timeout: float) -> None:
        self.node, self.timeout = node, timeout
        self._executor = make_executor()
        self._executor.add_node(node)

    def close(self) -> None:
        """Leave the graph."""
        self._executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()

    def spin(self, seconds: float = 0.02) -> None:
        """Handle what comes, for a moment."""
        self._executor.spin_once(timeout_sec=seconds)

    def until(self, done: Callable[[], Any], seconds: float) -> bool:
        """Return whether something holds within a time."""
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                return False
            self.spin()
        return True

    def nodes(self) -> list[str]:
        """Return the names of the nodes that are known now, without hidden ones."""
        pairs = self.node.get_node_names_and_namespaces()
        names = (f"{space.rstrip('/')}/{name}" for name, space in pairs)
        return sorted(n for n in set(names) if not n.rpartition("/")[2].startswith("_"))

    def all_nodes(self, expected: bool = True) -> list[str]:
        """Return the names of all nodes, once no more of them appear.

        Args:
            expected: Whether the first one is waited for until the timeout.
        """
        since = time.monotonic()
        deadline, names = since + self.timeout, self.nodes()
        while (time_now := time.monotonic()) < deadline:
            if time_now > since + SETTLED and (names or not expected):
                break
            self.spin()
            if (now := self.nodes()) != names:
                names, since = now, time.monotonic()
        return names

    def none(self) -> DynError:
        """Return the error where there are no nodes."""
        domain = os.environ.get("ROS_DOMAIN_ID", "0")
        return DynError(
            f"no nodes within {self.timeout:g} s in domain {domain} (ROS_DOMAIN_ID);"
            " valid: nodes that run, as by dyn up"
        )

    def require(self, name: str) -> str:
        """Return the full name of a node once it is there.

        Raises:
            SettingError: It does not come in time; names those that are there.
        """
        name = full_name(name)
        if not self.until(lambda: name in self.nodes(), self.timeout):
            raise SettingError(_missing(name, self.nodes(), self.timeout), "node")
        return name

    def call(
        self,
        kind: Any,
        name: str,
        request: Any,
        seconds: float = 0.0,
        asked: int = ASKED,
    ) -> Any:
        """Return the answer of a service.

        Args:
            kind: Type of the service.
            name: Of the service.
            request: What is asked.
            seconds: Longest wait for the answer; 0: timeout.
            asked: How often the question is sent at most; 1 where asking twice would
                do it twice.

        Raises:
            DynError: There is no such service, or no answer in time.
        """
        client = self.node.create_client(kind, name)
        try:
            if not self.until(client.service_is_ready, self.timeout):
                raise DynError(f"no service {name} within {self.timeout:g} s")
            wait = (seconds or self.timeout) / asked
            for _ in range(asked):
                future = client.call_async(request)
                if self.until(future.done, wait):
                    return future.result()
                client.remove_pending_request(future)
            raise DynError(
                f"{name} does not answer within {wait * asked:g} s; is its process"
                " stopped or busy?"
            )
        finally:
            self.node.destroy_client(client)


def _missing(name: str, there: list[str], seconds: float) -> str:
    """Return the sentence for a node that does not come."""
    near = " or ".join(nearest(name, there))
    guess = f"; did you mean {near}?" if near else ""
    names = ", ".join(there) or "no nodes"
    return f"node {name} is not there after {seconds:g} s{guess}; there are: {names}"


def full_name(name: str) -> str:
    """Return the name of a node with its namespace."""
    return name if name.startswith("/") else f"/{name}"


@contextmanager
def connect(timeout: float) -> Iterator[Live]:
    """Join the graph of nodes as a hidden node.

    Raises:
        DynError: ROS 2 does not start.
    """
    try:
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        node = Node(
            f"_dyn_{os.getpid()}",
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
        )
    except Exception as error:  # of rcl: the domain, the folder of logs, ...
        rclpy.try_shutdown()
        raise DynError(f"ROS 2 does not start: {' '.join(str(error).split())}") from (
            error
        )
    live = Live(node, timeout)
    try:
        yield live
    finally:
        live.close()
        rclpy.try_shutdown()
