"""Node processes of a graph, for `dyn up`, the demo and tests."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from dyn_core.errors import SettingError, unknown_name
from ros_nodes.graphs import NodeEntry, ros_arguments
from ros_nodes.params import FOLDER
from ros_nodes.running.runtime import LIFELINE

# What nodes log when they are active; a guard, without a life cycle, at its start.
ACTIVE = re.compile(r"(^|\]: )(active( [\d.]+ s after the start)?|watching .*)$")
PATIENCE = ((signal.SIGINT, 5.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))


def ros_fault() -> str | None:
    """Return the reason why rclpy cannot be imported, or None if it can."""
    if importlib.util.find_spec("rclpy") is None:
        return "rclpy is not installed (pip install 'dyn_ros[ros]')"
    try:
        import rclpy  # noqa: F401
    except (
        ImportError
    ) as error:  # a library that cannot be loaded is an ImportError, too
        return f"rclpy does not load: {error}"
    return None


def private_environment(domain: int | None = None) -> dict[str, str]:
    """Return environment variables for DDS on 127.0.0.1 only, in a separate domain.

    That is `domain`, or derived from the process id, 1 to 100. Logs go to a new
    temporary folder, unless ROS_LOG_DIR is set.
    """
    environment = dict(os.environ)
    environment["ROS_DOMAIN_ID"] = str(
        os.getpid() % 100 + 1 if domain is None else domain
    )
    environment["FASTRTPS_DEFAULT_PROFILES_FILE"] = str(FOLDER / "loopback.xml")
    if "ROS_LOG_DIR" not in environment:
        environment["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="dyn_ros_log_")
    return environment


class Process:
    """One node as a process in a new session; its output is recorded and printed.

    The constructor starts it. The node ends with this process, however this process
    ends: see runtime.end_with_input.

    Attributes:
        name: Name of the executable.
        lines: Output so far, standard output and standard error together, without line
            ends.
        show: Whether output is printed, too; False once the terminal is closed.
        active: Whether the node has said that it is active; it stays True.
        popen: The process.
        reader: Thread that reads the output.

    Args:
        entry: Node to start.
        arguments: Command-line arguments of the node.
        environment: Environment variables.
        show: Whether output is printed.
    """

    def __init__(
        self,
        entry: NodeEntry,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        show: bool = True,
    ) -> None:
        self.name = entry.executable
        self.lines: list[str] = []
        self.show, self.active = show, False
        self.popen = subprocess.Popen(
            [sys.executable, "-m", entry.module, *arguments],
            env={**environment, LIFELINE: "1", "PYTHONSAFEPATH": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="backslashreplace",  # a thread that ended would leave a full pipe
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        """Record output and `active`, and print the output if `show`, till it ends."""
        for line in self.popen.stdout or ():
            self.lines.append(line.rstrip("\n"))
            self.active = self.active or bool(ACTIVE.search(self.lines[-1]))
            if self.show:
                self._print(line)

    def _print(self, line: str) -> None:
        """Print a line after the process's name; if this fails, clear `show`."""
        try:
            print(f"[{self.name}] {line}", end="", flush=True)
        except (OSError, ValueError):
            self.show = False

    @property
    def output(self) -> str:
        """Output so far, as one string with lines separated by newlines."""
        return "\n".join(self.lines)

    def end(self, first: int = signal.SIGINT) -> int:
        """End the process by signals of increasing severity; return its exit status.

        The status is the negative signal number if a signal killed the process, and
        None if it runs even after SIGKILL. A process that has ended gets no signal.
        The process's input is closed; its last output is awaited for 2 s at most.

        Args:
            first: First signal. The signals after it in PATIENCE follow, each after a
                wait of 5 s: SIGTERM and SIGKILL after SIGINT, SIGKILL after SIGTERM.
                Another signal is followed by all of them.
        """
        numbers: list[int] = [number for number, _ in PATIENCE]
        later = numbers.index(first) + 1 if first in numbers else 0
        for number, patience in ((first, 5.0), *PATIENCE[later:]):
            if self.popen.poll() is None:
                self.popen.send_signal(number)
                try:
                    self.popen.wait(patience)
                except subprocess.TimeoutExpired:
                    continue
            break
        if self.popen.stdin is not None:
            self.popen.stdin.close()
        self.reader.join(2.0)
        return self.popen.returncode


class Processes:
    """The processes of a graph; leaving the `with` block ends them.

    The constructor starts them. `processes[name]` is the process of an executable; for
    another name, a SettingError lists the valid ones.

    Attributes:
        all: Each Process, in the order of `entries`.

    Args:
        entries: Nodes to start, in this order.
        params: Path of the parameter file.
        environment: Environment variables.
        robot: Value of the parameter that sets the robot of each node; empty: not set.
        more: Further command-line arguments by executable; None: none.
        show: Whether output is printed.
    """

    def __init__(
        self,
        entries: Sequence[NodeEntry],
        params: str,
        environment: Mapping[str, str],
        robot: str = "",
        more: Mapping[str, Sequence[str]] | None = None,
        show: bool = True,
    ) -> None:
        more = more or {}
        self.all = [
            Process(
                entry,
                [*ros_arguments(entry, params, robot), *more.get(entry.executable, ())],
                environment,
                show,
            )
            for entry in entries
        ]

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def __getitem__(self, name: str) -> Process:
        for process in self.all:
            if process.name == name:
                return process
        names = [process.name for process in self.all]
        raise SettingError(unknown_name("process", name, names), "name")

    def end(self) -> list[int]:
        """End all processes in reverse order; return their exit statuses in that order.

        A process may take 17 s, see Process.end. The first signal is SIGINT for an
        active node, else SIGTERM, which ends one that still imports modules without a
        traceback.
        """
        int_, term = signal.SIGINT, signal.SIGTERM
        return [p.end(int_ if p.active else term) for p in reversed(self.all)]

    def ended(self) -> list[Process]:
        """Return the processes that have ended, in the order of `all`."""
        return [process for process in self.all if process.popen.poll() is not None]

    def wait(self, stop: Sequence[int]) -> int:
        """Wait for a signal or for the end of a process.

        A line says once that all nodes are active.

        Args:
            stop: Numbers of received signals; another thread or a handler appends to
                it.

        Returns:
            0 after a signal; 1 if a process has ended by itself, which is printed.
        """
        ready = False
        while not stop:
            if not ready and all(process.active for process in self.all):
                ready, names = True, ", ".join(process.name for process in self.all)
                with contextlib.suppress(OSError, ValueError):  # a closed terminal
                    print(f"ready: {names}; Ctrl-C ends them", flush=True)
            ended = self.ended()
            if ended:
                for process in ended:
                    status = process.popen.returncode
                    print(f"{process.name} ended by itself with status {status}")
                return 1
            time.sleep(0.05)
        return 0
