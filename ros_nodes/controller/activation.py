"""Activation that waits for the guard without blocking the executor."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ros_nodes.base.diagnostics import ERROR, OK, WARN
from ros_nodes.base.transitions import misfit

ACTIVATE = "activate"  # label of the transition
PENDING = object()  # returned by a service callback whose response comes later


class Activation:
    """Delays the response to an activate request until a condition is met.

    A callback of rclpy that waits would block the executor, and its EventsExecutor does
    not support coroutines as service callbacks. Therefore the callback returns PENDING,
    the header of the request is stored where the executor would send the response, and
    `look` sends the response later. Meanwhile the node is inactive, and other
    transitions are refused. The constructor replaces `send_response` of the service
    node.transitions.

    Attributes:
        refusal: Called with a time, monotonic [s]; returns why the node cannot be
            activated, or None.
        since: Start of the wait, monotonic [s]; None while nothing waits.
        longest: Longest wait [s]; 0 or less: no wait. It is 0 at first.
        failure: Why the last activation failed, or None.
    """

    def __init__(self, node: Any, refusal: Callable[[float], str | None]) -> None:
        self.node, self.refusal = node, refusal
        self.since: float | None = None
        self.longest = 0.0
        self.failure: str | None = None
        self._complete: Callable[[], Any] = lambda: None
        self._header: Any = None
        self._said = 0  # whole seconds of the wait at the last log message
        service = node.transitions
        self._respond = service.send_response
        service.send_response = self._send_response

    def serve(
        self, request: Any, response: Any, change: Callable[[Any, Any], Any]
    ) -> Any:
        """Serve a change_state request; return its response, or PENDING.

        PENDING: an activation waits; its response follows, other requests are refused.
        """
        now, wanted = time.monotonic(), request.transition
        if self.since is not None:
            reason = f"{self._doing(now)}; valid: a transition once that has ended"
            self.node.refuse("transition refused", reason)
            response.success = False
            return response
        machine = self.node._state_machine
        if misfit(wanted, machine) is not None or not _activates(wanted, machine):
            return change(request, response)
        if self.wait(lambda: change(request, response)):
            return PENDING
        return change(request, response)

    def wait(self, complete: Callable[[], Any]) -> bool:
        """Begin to wait if the node cannot be activated now; return whether it waits.

        `look` then calls `complete` later, which returns the response. False also if
        `longest` is 0 or less. `failure` is cleared in any case.
        """
        self.failure = None
        now = time.monotonic()
        if self.refusal(now) is None or self.longest <= 0:
            return False
        self.since, self._complete, self._said = now, complete, -1
        self.look(now)
        return True

    def look(self, t: float) -> None:
        """Activate the node if it is possible or the wait is over; else log the wait.

        After the wait, the activation may fail. The wait is logged once a second.
        """
        if self.since is None:
            return
        reason = self.refusal(t)
        if reason is None or t - self.since >= self.longest:
            self.since = None
            self._answer(self._complete())
        elif int(t - self.since) > self._said:
            self._said = int(t - self.since)
            self.node.get_logger().info(f"{self._doing(t)} ({reason})")
            self.node.diagnose()

    def end(self) -> None:
        """End a wait because the node ends; a waiting request gets success=False."""
        if self.since is not None:
            self.since = None
            service = self.node.transitions
            self._answer(service.srv_type.Response(success=False))

    def refused(self, t: float) -> str | None:
        """Set `failure` to the reason against an activation, or None; return it."""
        self.failure = self.refusal(t)
        return self.failure

    def status(self, t: float) -> tuple[bytes, str]:
        """Return level and message for /diagnostics of an inactive node.

        The level is WARN during a wait, ERROR after an activation that failed, else OK.
        """
        if self.since is not None:
            return WARN, self._doing(t)
        if self.failure is not None:
            return ERROR, f"inactive: cannot activate: {self.failure}"
        return OK, "inactive: no effort is sent"

    def _doing(self, t: float) -> str:
        """Return a description of the wait, with its duration in whole seconds."""
        waited = 0 if self.since is None else int(t - self.since)
        return f"waiting for the guard: {waited} of {self.longest:g} s"

    def _answer(self, response: Any) -> None:
        """Send a response to the stored request header, if any, and discard it."""
        header, self._header = self._header, None
        if header is not None:
            self._respond(response, header)

    def _send_response(self, response: Any, header: Any) -> None:
        """Send a response; for PENDING, store the header of the request instead."""
        if response is PENDING:
            self._header = header
        else:
            self._respond(response, header)


def _activates(wanted: Any, machine: Any) -> bool:
    """Return whether `wanted`, which fits the state, is the transition activate."""
    labels = {number: label for number, label, *_ in machine.available_transitions}
    return (wanted.label or labels[wanted.id]) == ACTIVATE
