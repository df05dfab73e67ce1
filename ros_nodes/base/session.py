"""Resources of one configuration of a node: made at configure, released together."""

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

# A timer that fires a little early must not be set again for the remaining
# microseconds.
EARLY = 2e-4  # time by which a job may be called early [s]
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
    """One configuration of a RobotNode and all resources made for it.

    After `close` none of its callbacks runs, even if one is still queued in the
    executor, in the worker or in `idle`.

    Attributes:
        open: Whether the callbacks of this configuration may still run.
        complete: Whether everything is built: the node is configured.
        idle: Queue of jobs deferred until a message is answered; `close` discards them.
    """

    def __init__(self, node: Any, is_open: bool = True) -> None:
        self.node, self.open = node, is_open
        self.complete = self.active = False
        self.idle = IdleWork(lambda job: node.callbacks.attempt(job))
        self.periodic = PeriodicJobs(self)
        self._closers: list[Callable[[], object]] = []

    def keep(self, resource: Any) -> Any:
        """Return a resource of rclpy after registering it for destruction at `close`.

        Callbacks of services, subscriptions and timers are wrapped: they do not run
        once the session is closed, and their exceptions are logged and counted. A
        closed service answers with a refusal.
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
        """Return a wrapped callback: no call after `close`, and no exceptions."""
        return self.node.callbacks.message(callback, self)

    def at_close(self, closer: Callable[[], object]) -> None:
        """Register a function for the next `close`; the last registered comes first."""
        self._closers.append(closer)

    def submit(
        self,
        kind: str,
        make: Callable[[], Any],
        take: Callable[[Any], object],
        superseded: Callable[[], object] = lambda: None,
    ) -> None:
        """Have the worker prepare a result; see Worker.submit.

        Once this session is closed, neither `take` nor `superseded` is called; before,
        their exceptions are logged and counted. A newer job of the same kind, of any
        session of the node, supersedes an older one.
        """
        alive = self.guarded
        self.node.worker.submit(kind, make, alive(take), alive(superseded))

    def close(self) -> None:
        """Release all resources and discard the jobs of `idle`; may be repeated.

        `open`, `complete` and `active` become False first. Then resources of `keep` and
        functions of `at_close`, in one list, are destroyed or called once, the last
        registered first; exceptions are logged and counted.
        """
        self.open = self.complete = self.active = False
        self.idle.waiting.clear()
        while self._closers:
            self.node.callbacks.attempt(self._closers.pop())


@dataclass(eq=False)
class PeriodicJob:
    """A function called every `period` [s]; `due`: next call, time.monotonic() [s]."""

    period: float
    call: Callable[[], object]
    due: float


class PeriodicJobs:
    """The periodic jobs of a session, served by one timer that is set for the next job.

    Executors handle few timers of one clock best, and warn about more.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.jobs: list[PeriodicJob] = []
        self._timer: Any = None

    def add(self, period: float, job: Callable[[], None]) -> None:
        """Call `job` every `period` [s] of steady time, first one period from now."""
        session = self.session
        call = session.guarded(job)
        self.jobs.append(PeriodicJob(period, call, time.monotonic() + period))
        if self._timer is None:
            node = session.node
            # Steady time: silence must be detected also while /clock stands still or
            # after the system time is set back.
            made = node.create_timer(period, self.tick, clock=node.steady)
            self._timer = session.keep(made)
        self._set()

    def tick(self) -> None:
        """Call the job with the earliest due time if it is due; set the timer again.

        A job may be called EARLY (0.2 ms) before its time. Missed calls are skipped;
        the next one is due a period from now. Only one job is called, so that a message
        that arrives meanwhile waits for at most one.
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
        """Return the job with the earliest due time; there must be a job."""
        return min(self.jobs, key=lambda job: job.due)

    def _set(self) -> None:
        """Set the timer to the next job, which must exist, at least SOON from now."""
        wait = self._next().due - time.monotonic()
        self._timer.timer_period_ns = int(1e9 * max(wait, SOON))
        self._timer.reset()
