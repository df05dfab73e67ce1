"""What one configuration of a node owns: made at configure, dropped whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rclpy.client import Client
from rclpy.publisher import Publisher
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from ros_nodes.base.idle import IdleWork

EARLY = 2e-4  # before a job is due, in which it is done all the same [s]
SOON = 1e-5  # shortest period of a timer [s]
GONE = "it is of a configuration that was cleaned up"
DESTROYED_BY = {
    Publisher: "destroy_publisher",
    Subscription: "destroy_subscription",
    Timer: "destroy_timer",
    Service: "destroy_service",
    Client: "destroy_client",
}


class Session:
    """One configuration of a node, with everything that was made for it.

    After `close` nothing of it is called any more, whatever still waits in a queue of
    the executor, of the worker, or behind the next answer.

    Attributes:
        node: A RobotNode.
        open: Whether it may still be called.
        complete: Whether everything is built: the node is configured.
        active: Whether the node is active.
        idle: Work that waits until a message has been answered.
        periodic: Periodic jobs.
    """

    def __init__(self, node: Any, is_open: bool = True) -> None:
        self.node, self.open = node, is_open
        self.complete = self.active = False
        self.idle = IdleWork(lambda job: node.callbacks.attempt(job))
        self.periodic = PeriodicJobs(self)
        self._closers: list[Callable[[], object]] = []

    def keep(self, resource: Any) -> Any:
        """Own what was made with rclpy; its callback follows the rule of Callbacks.

        Raises:
            TypeError: It is nothing that a configuration can own.
        """
        kind = next((k for k in DESTROYED_BY if isinstance(resource, k)), None)
        if kind is None:
            valid = ", ".join(k.__name__.lower() for k in DESTROYED_BY)
            raise TypeError(f"keep: {type(resource).__name__}; valid: {valid}")
        calls = self.node.callbacks
        if kind is Service:
            resource.callback = calls.service(
                resource.callback, lambda: "" if self.open else GONE
            )
        elif kind in (Subscription, Timer):
            resource.callback = self.guarded(resource.callback)
        destroy = getattr(self.node, DESTROYED_BY[kind])
        self.at_close(partial(destroy, resource))
        return resource

    def guarded(self, callback: Callable[..., Any]) -> Any:
        """Return a callback that does nothing once this is closed, and ends nothing."""
        return self.node.callbacks.message(callback, self)

    def at_close(self, closer: Callable[[], object]) -> None:
        """Call a function at the end, before those that were named earlier."""
        self._closers.append(closer)

    def submit(
        self,
        kind: str,
        make: Callable[[], Any],
        take: Callable[[Any], object],
        superseded: Callable[[], object] = lambda: None,
    ) -> None:
        """Have the worker prepare something, see Preparation; dropped at the end."""
        alive = self.guarded
        self.node.worker.submit(kind, make, alive(take), alive(superseded))

    def close(self) -> None:
        """Drop everything."""
        self.open = self.complete = self.active = False
        self.idle.waiting.clear()
        while self._closers:
            self.node.callbacks.attempt(self._closers.pop())


@dataclass(eq=False)
class PeriodicJob:
    """A periodic job.

    Attributes:
        period: [s].
        call: What is called.
        due: When it is called next, monotonic [s].
    """

    period: float
    call: Callable[[], object]
    due: float


class PeriodicJobs:
    """The periodic jobs of a session, with one timer that is set for the next one.

    The timer uses the steady clock: silence must be detected also while /clock stands
    still or after the system time is set back. Executors manage few timers of a clock
    best, and warn of more.

    Attributes:
        jobs: The jobs.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.jobs: list[PeriodicJob] = []
        self._timer: Any = None

    def add(self, period: float, job: Callable[[], None]) -> None:
        """Call a function at a period [s]."""
        session = self.session
        call = session.guarded(job)
        self.jobs.append(PeriodicJob(period, call, time.monotonic() + period))
        if self._timer is None:
            node = session.node
            made = node.create_timer(period, self.tick, clock=node.steady)
            self._timer = session.keep(made)
        self._set()

    def tick(self) -> None:
        """Call the next job if it is due; calls that were missed are not made up.

        One at a time: a message that comes meanwhile waits for no other one.
        """
        if not self.session.open:
            return
        job, now = self._next(), time.monotonic() + EARLY
        if job.due <= now:
            job.due += job.period
            if job.due <= now:
                job.due = now + job.period
            job.call()
        if self.session.open:  # no job has ended it
            self._set()

    def _next(self) -> PeriodicJob:
        return min(self.jobs, key=lambda job: job.due)

    def _set(self) -> None:
        """Set the timer for the next job."""
        wait = self._next().due - time.monotonic()
        self._timer.timer_period_ns = int(1e9 * max(wait, SOON))
        self._timer.reset()
