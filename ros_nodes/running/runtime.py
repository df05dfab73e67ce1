"""Runner of a node: signal handlers, executor, finite spin, final command, exit status.

It installs its own signal handlers, so that the context is valid after a signal and a
final command can be published. The executor never waits without a bound. A process
whose main thread does not react to a signal is forced to exit.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from dyn_core.errors import cut
from dyn_core.signals import ENDING, note_signals, noted_signals
from ros_nodes.running.callbacks import place_of

PATIENCE = 1.5  # longest time without a sign of life after a signal [s]
FAREWELL = 0.8  # longest time for the final command and the last line [s]
TURN = 0.05  # period of the checks for a sign of life [s]
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
SPIN = 0.1  # longest wait of the executor [s]
SWITCH = 5e-5  # longest wait of the control thread for another one's Python code [s]
LIFELINE = "DYN_ROS_LIFELINE"  # set: the process ends when its standard input closes


class LastResort:
    """Ends the process, after its final command, if it hangs after a signal.

    Python runs signal handlers in the main thread, between two of its instructions; a
    solver that does not return may block them. Therefore a second thread reads the
    signals, through the file descriptor that the interpreter writes them to. Code that
    never releases the interpreter's lock also stops this thread.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        """Start to watch signals; outside of the main thread, a ValueError is raised.

        Args:
            numbers: Numbers of the signals that end the process.
        """
        self.node: Any = None
        self._numbers = frozenset(numbers)
        self._main, self._sign = threading.get_ident(), time.monotonic()
        self._over = threading.Event()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        thread = threading.Thread(target=self._run, name="last resort", daemon=True)
        self._thread = thread
        thread.start()

    def sign_of_life(self) -> None:
        """Record that the main thread is making progress towards the exit."""
        self._sign = time.monotonic()

    def close(self) -> None:
        """Stop the thread and restore the previous wake-up file descriptor.

        To be called once, in the main thread; the wait for the thread is at most 1 s.
        """
        self._over.set()
        signal.set_wakeup_fd(self._before)
        os.write(self._writer, bytes(1))
        self._thread.join(1.0)
        os.close(self._reader)
        os.close(self._writer)

    def _run(self) -> None:
        """Wait for a signal; end the process if no life follows for PATIENCE."""
        number = 0
        while number not in self._numbers and not self._over.is_set():
            number = os.read(self._reader, 1)[0]
        self.sign_of_life()
        while not self._over.wait(TURN):
            if time.monotonic() - self._sign > PATIENCE:
                self._end(signal.Signals(number).name)

    def _end(self, name: str) -> None:
        """Send the final command, report why, exit with 1 within FAREWELL seconds."""
        place = place_of(self._main)
        reason = (
            f"ended {PATIENCE:g} s after {name}: the executor does not come back; it is"
            f" in {place}"
        )
        # In a thread of its own with a bounded wait: the final command may hang, too.
        last = threading.Thread(target=self._say, args=(reason,), daemon=True)
        last.start()
        last.join(FAREWELL)
        os._exit(1)

    def _say(self, reason: str) -> None:
        """Send the final command, log the reason, wait for the command's arrival."""
        node = self.node
        if node is None:
            print(reason, file=sys.stderr, flush=True)
            return
        steps: list[Callable[[], object]] = [
            node.send_final_command,
            lambda: node.get_logger().fatal(reason),
            node.wait_for_delivery,  # last, since it may take all of FAREWELL
        ]
        for step in steps:
            # An error must not skip the other steps.
            with contextlib.suppress(Exception):
                step()


def run(make: Callable[[], Any], args: Sequence[str] | None = None) -> int:
    """Run a node until a signal, and return the exit status of the process.

    To be called in the main thread (else ValueError). Signal handlers and Python's
    switch interval remain changed. If the environment variable DYN_ROS_LIFELINE is set,
    it is removed, and the node also ends with its standard input. An exception of the
    final command or of the node's destruction is raised.

    Args:
        make: Returns the node; called after rclpy.init.
        args: ROS arguments; None: the arguments of the command line.

    Returns:
        0 after SIGINT, SIGTERM or SIGHUP; 1 if ROS is missing, if the node cannot
        start, or if the executor fails. A node that hangs after a signal ends the
        process with status 1 (LastResort).
    """
    stop = note_signals(*SIGNALS)
    # Python's default of 5 ms would let another thread delay a control cycle.
    sys.setswitchinterval(SWITCH)
    if os.environ.pop(LIFELINE, ""):
        end_with_input()
    try:
        import rclpy
        from rclpy.signals import SignalHandlerOptions
    except ImportError as error:
        print(
            f"ROS 2 is not available: {error}; pip install 'dyn_ros[ros]'",
            file=sys.stderr,
        )
        return 1
    node = executor = None
    resort = LastResort(SIGNALS)
    try:
        rclpy.init(
            args=None if args is None else list(args),
            signal_handler_options=SignalHandlerOptions.NO,
        )
        node = resort.node = make()
        executor = make_executor()
        executor.add_node(node)
        if not stop and not node.autostart():
            return 1
        while not stop:
            executor.spin_once(timeout_sec=SPIN)
        return 0
    except Exception as error:
        return _failed(node, error)
    finally:
        if node is not None:
            _end(node, stop, resort.sign_of_life)
        resort.sign_of_life()
        if executor is not None:
            executor.shutdown(timeout_sec=1.0)
        rclpy.try_shutdown()
        resort.close()


def _end(node: Any, stop: Sequence[int], sign_of_life: Callable[[], None]) -> None:
    """Bring a node to rest, send its final command, and destroy it.

    A further signal, in `stop`, ends the wait for rest. An exception on the way to rest
    is reported; one in a later step is raised, and the steps after it are left out.
    """
    before = len(stop)

    def interrupted() -> bool:
        """Report progress; return whether a further signal has come."""
        sign_of_life()
        return len(stop) > before

    try:
        node.wind_down(interrupted)
    except Exception as error:
        _failed(node, error)
    for step in (node.send_final_command, node.wait_for_delivery, node.destroy_node):
        sign_of_life()
        step()


def end_with_input() -> None:
    """Have a thread send SIGTERM to this process once its standard input is closed.

    A process whose standard input is a pipe thus ends with its parent, however the
    parent ends, and still sends its final command.
    """

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def _failed(node: Any, error: Exception) -> int:
    """Report the error that ended the node (None: at start-up), and return 1."""
    if node is None:
        said = cut(f"{type(error).__name__}: {error}")
        print(f"cannot start: {said}", file=sys.stderr)
        return 1
    import traceback

    traceback.print_exc()
    node.get_logger().fatal(cut(f"ended by {type(error).__name__}: {error}"))
    return 1


def age() -> float | None:
    """Return the time since the start of this process [s]; known on Linux only."""
    try:
        with open("/proc/self/stat", encoding="utf-8") as file:
            # Field 22 of proc(5), starttime: field 2, the name, may contain spaces and
            # brackets.
            ticks = int(file.read().rpartition(")")[2].split()[19])
        began = ticks / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, ValueError, AttributeError):
        return None


def make_executor() -> Any:
    """Return the executor with the lowest latency: EventsExecutor where available.

    It needs rclpy with this class and a standard error that is a file, which notebooks
    lack; else a SingleThreadedExecutor is returned.
    """
    from rclpy.executors import SingleThreadedExecutor

    try:
        from rclpy.experimental import EventsExecutor

        return EventsExecutor()
    except (ImportError, OSError, RuntimeError, AttributeError):
        return SingleThreadedExecutor()


def spin_once(executor: Any, seconds: float) -> None:
    """Process incoming events; if there is none, wait for one, `seconds` at most.

    A signal that raises KeyboardInterrupt does so after the events: EventsExecutor
    would log an exception of a callback as FATAL, with lines of source.
    """
    raising, numbers = signal.default_int_handler, list[int]()
    if threading.current_thread() is threading.main_thread():
        numbers = [n for n in ENDING if signal.getsignal(n) is raising]
    with noted_signals(*numbers) as stop:
        executor.spin_once(timeout_sec=seconds)
    if stop:
        raise KeyboardInterrupt
