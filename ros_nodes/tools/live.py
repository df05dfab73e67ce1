"""A short-lived node that queries running nodes; every wait is bounded."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from dyn_core.errors import DynError, SettingError, nearest
from ros_nodes.running.runtime import make_executor, spin_once

SETTLED = 0.5  # time without a change after which the list of nodes is complete [s]
ANNOUNCED = 3.2  # time in which each running node has announced itself anew [s]
SILENT = 1.0  # time after which a wait says what it is for, and asks again [s]
ABSENT = 5.0  # time without a new node after which a node will not come [s]
FIRST = "no node is seen yet, which can take some seconds"
ASKED = 3  # number of requests: the first response of a service may be lost


class Live:
    """A node that queries other nodes.

    Attributes:
        node: The rclpy node.
        timeout: Longest wait for a node, and for a response [s].

    Args:
        node: The rclpy node; the constructor adds it to an executor.
        timeout: As the attribute.
    """

    def __init__(self, node: Any, timeout: float) -> None:
        self.node, self.timeout = node, timeout
        self._executor = make_executor()
        self._executor.add_node(node)

    def close(self) -> None:
        """Leave the ROS graph: destroy executor and node."""
        self._executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()

    def spin(self, seconds: float = 0.02) -> None:
        """Process incoming events; if there is none, wait for one.

        A signal whose handler raises KeyboardInterrupt raises it after the events.

        Args:
            seconds: Longest wait [s].
        """
        spin_once(self._executor, seconds)

    def until(
        self,
        done: Callable[[], Any],
        seconds: float,
        what: str | Callable[[], str] = "",
    ) -> bool:
        """Spin until done() is true; return False if it is not true in time.

        Args:
            done: The condition; called at least once, without arguments.
            seconds: Longest time [s].
            what: What is waited for, or a function that returns it; standard error says
                it after a second, and again when it has changed. Empty: nothing.
        """
        began = asked = time.monotonic()
        said = ""
        while not done():
            now = time.monotonic()
            if now > began + seconds:
                return False
            if now > asked + SILENT:
                asked, before, said = now, said, what() if callable(what) else what
                if said not in ("", before):
                    print(f"dyn: waiting for {said}", file=sys.stderr, flush=True)
            self.spin()
        return True

    def nodes(self) -> list[str]:
        """Return the full names of the nodes known now, sorted.

        Hidden nodes, whose names begin with _, are left out.
        """
        pairs = self.node.get_node_names_and_namespaces()
        names = (f"{space.rstrip('/')}/{name}" for name, space in pairs)
        return sorted(n for n in set(names) if not n.rpartition("/")[2].startswith("_"))

    def services(self) -> dict[str, list[str]]:
        """Return the types of the services known now, by full name."""
        return dict(self.node.get_service_names_and_types())

    def silent(self) -> list[str]:
        """Return the nodes known now of which no service is known, sorted.

        A node is known before its services are; `node` has none where it was made
        without services of parameters.
        """
        having = {service.rpartition("/")[0] for service in self.services()}
        return [name for name in self.nodes() if name not in having]

    def all_nodes(self, expected: bool = True) -> list[str]:
        """Return the full names of all nodes, once no more of them appear.

        They are sorted, without hidden ones; the list may be empty. The wait ends
        SETTLED (0.5 s) after the last change of nodes and services, ABSENT (5 s) after
        it while some node shows no service; if nodes are expected, not before ANNOUNCED
        (3.2 s): one whose first answer was lost is seen when it announces itself again.
        At the latest it ends after the timeout.

        Args:
            expected: Whether to wait for a first node until the timeout.
        """
        since, seen = time.monotonic(), (self.nodes(), self.services())
        least = since + (ANNOUNCED if expected else 0.0)

        def settled() -> bool:
            """Note changes; return whether nothing more is to be expected."""
            nonlocal since, seen
            if (now := (self.nodes(), self.services())) != seen:
                seen, since = now, time.monotonic()
            wait = ABSENT if self.silent() else SETTLED
            late = time.monotonic() > max(since + wait, least)
            return late and bool(seen[0] or not expected)

        def awaited() -> str:
            """Return what is waited for; empty: nodes that nobody can name."""
            names = ", ".join(self.silent())
            return f"services of {names}" if names else ""

        self.until(settled, self.timeout, awaited)
        return seen[0]

    def none(self) -> DynError:
        """Return, without raising it, the error for a domain without nodes."""
        domain = os.environ.get("ROS_DOMAIN_ID", "0")
        return DynError(
            f"no nodes within {self.timeout:g} s in domain {domain} (ROS_DOMAIN_ID);"
            " valid: nodes that run, as by dyn up"
        )

    def require(self, name: str) -> str:
        """Return the full name of a node once it exists; wait up to `timeout` for it.

        Where other nodes are, the wait ends ABSENT (5 s) after the last new one.

        Args:
            name: Full name; the first slash may be missing.

        Raises:
            SettingError: It does not appear in time, or is hidden; the message lists
                the existing nodes.
        """
        name, nodes, since = full_name(name), self.nodes(), time.monotonic()

        def decided() -> bool:
            """Note changes; return whether the node is there, or will not come."""
            nonlocal nodes, since
            if (now := self.nodes()) != nodes:
                nodes, since = now, time.monotonic()
            late = bool(nodes) and time.monotonic() > since + ABSENT
            return name in nodes or late

        def awaited() -> str:
            """Return what is waited for, and which nodes there are by now."""
            there = f"there are: {', '.join(nodes)}" if nodes else FIRST
            return f"node {name}; {there}"

        self.until(decided, self.timeout, awaited)
        if name not in nodes:
            seconds = min(ABSENT, self.timeout) if nodes else self.timeout
            raise SettingError(_missing(name, nodes, seconds), "node")
        return name

    def call(
        self,
        kind: Any,
        name: str,
        request: Any,
        seconds: float = 0.0,
        asked: int = ASKED,
    ) -> Any:
        """Return the response of a service; repeat the request if there is none.

        Args:
            kind: Type of the service.
            name: Name of the service.
            request: Request message.
            seconds: Longest wait for the response, over all requests, each for an equal
                part [s]; 0: `timeout`.
            asked: Largest number of requests; 1 for requests that must not be repeated.

        Raises:
            DynError: There is no such service within `timeout`, or no response in time.
        """
        client = self.node.create_client(kind, name)
        try:
            if not self.until(client.service_is_ready, self.timeout, name):
                raise DynError(f"no service {name} within {self.timeout:g} s")
            wait = (seconds or self.timeout) / asked
            what = f"an answer of {name}, whose node may be starting or configuring"
            for _ in range(asked):
                future = client.call_async(request)
                if self.until(future.done, wait, what):
                    return future.result()
                what = ""  # it is said once
                client.remove_pending_request(future)
            raise DynError(
                f"{name} does not answer within {wait * asked:g} s; is its process"
                " stopped or busy?"
            )
        finally:
            self.node.destroy_client(client)


def _missing(name: str, there: list[str], seconds: float) -> str:
    """Return the message for a node that does not appear within `seconds`."""
    near = " or ".join(nearest(name, there))
    guess = f"; did you mean {near}?" if near else ""
    names = ", ".join(there) or "no nodes"
    return f"node {name} is not there after {seconds:g} s{guess}; there are: {names}"


def full_name(name: str) -> str:
    """Return the name of a node with a leading slash, added if it is missing."""
    return name if name.startswith("/") else f"/{name}"


@contextmanager
def connect(timeout: float) -> Iterator[Live]:
    """Join the ROS graph as a hidden node; yield a Live, and leave at the end.

    rclpy is initialized and shut down here, so that it must not be initialized before.

    Args:
        timeout: Longest wait for a node, and for a response [s].

    Raises:
        DynError: ROS 2 does not start, or rclpy was initialized before; it is then shut
            down.
    """
    try:
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        node = Node(
            f"_dyn_{os.getpid()}",
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
        )
    except Exception as error:  # errors of rcl: domain, log folder, ...
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
