"""The one runner: signal handlers, executor, finite spin, last words, exit codes.

The signal handlers are our own, so that the context still lives after a signal and a
last torque can be published. The executor never waits without a bound.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

SPIN = 0.1  # seconds: bound of one wait


def run(make: Callable[[], Any], args: Sequence[str] | None = None) -> int:
    """Run a node until a signal; give the exit status.

    0 after SIGINT or SIGTERM, 1 where the node cannot start or a callback failed.
    """
    try:
        import rclpy
        from rclpy.signals import SignalHandlerOptions
    except ImportError as error:
        print(
            f"ROS 2 is not available: {error}; pip install 'dyn_ros[ros]'",
            file=sys.stderr,
        )
        return 1
    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: stop.append(n))
    node = executor = None
    try:
        rclpy.init(
            args=None if args is None else list(args),
            signal_handler_options=SignalHandlerOptions.NO,
        )
        node = make()
        executor = make_executor()
        executor.add_node(node)
        if node.value("autostart") and not node.start():
            return 1
        while not stop:
            executor.spin_once(timeout_sec=SPIN)
        return 0
    except Exception as error:
        return _failed(node, error)
    finally:
        if node is not None:
            node.last_words()
            node.destroy_node()
        if executor is not None:
            executor.shutdown(timeout_sec=1.0)
        rclpy.try_shutdown()


def _failed(node: Any, error: Exception) -> int:
    """Say what ended the node; start-up errors in one line, others with a trace."""
    if node is None:
        print(f"cannot start: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    import traceback

    traceback.print_exc()
    node.get_logger().fatal(f"ended by {type(error).__name__}: {error}")
    return 1


def age() -> float | None:
    """Give the seconds since this process was started; None where nobody tells."""
    try:
        with open("/proc/self/stat", encoding="utf-8") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        began = ticks / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, ValueError, AttributeError):
        return None


def make_executor() -> Any:
    """Give the executor with the least latency that is there."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        from rclpy.executors import SingleThreadedExecutor

        return SingleThreadedExecutor()
    return EventsExecutor()
