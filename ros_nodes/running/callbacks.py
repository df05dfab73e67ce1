"""Wrapped callbacks of a node's executor; exceptions in them are contained."""

from __future__ import annotations

import functools
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from dyn_core.errors import one_line

Callback = Callable[..., Any]


class Callbacks:
    """Calls the callbacks of a node and the hooks in them, and contains exceptions.

    An exception is logged in one sentence at its first occurrence, and counted. It ends
    neither the callback in which a hook is called nor the node. A control law has a
    rule of its own: an exception in it stops the robot.

    `failures` (sentences) and `counts` are by callback name; `running` is the callback
    or hook in progress, None while the executor waits.
    """

    def __init__(self, logger: Callable[[], Any]) -> None:
        """Create without failures.

        Args:
            logger: Returns the logger of the node.
        """
        self._logger = logger
        self.count = 0
        self.running: Callback | None = None
        self.failures: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self._logged: set[tuple[str, type]] = set()

    def attempt(self, job: Callback, *arguments: Any) -> Any:
        """Return job(*arguments); None if it raises an Exception, see `failed`."""
        outer, self.running = self.running, job
        try:
            return job(*arguments)
        except Exception as error:
            self.failed(name_of(job), error)
            return None
        finally:
            self.running = outer

    def failed(self, name: str, error: Exception) -> str:
        """Record a failure and return it as a sentence with file and line.

        The first one for a name and exception type since `forget` is logged, with its
        traceback at debug level.
        """
        sentence = one_line(f"{name} fails: {type(error).__name__}: {error}")
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        sentence = f"{sentence} ({Path(frame.f_code.co_filename).name}, line {line})"
        self.failures[name] = sentence
        self.counts[name] += 1
        if (name, type(error)) not in self._logged:
            self._logged.add((name, type(error)))
            self._logger().error(sentence)
            self._logger().debug("".join(traceback.format_exception(error)))
        return sentence

    def forget(self) -> None:
        """Clear failures and their counts; later failures are logged as first ones."""
        self.failures, self._logged = {}, set()
        self.counts.clear()

    def message(self, callback: Callback, owner: Any = None) -> Any:
        """Return a wrapped callback of a subscription or timer that never raises.

        While `owner.open` is false, the callback is neither called nor counted.
        """

        @functools.wraps(callback)
        def call(*arguments: Any) -> Any:  # `attempt`, inlined: states are frequent
            if owner is not None and not owner.open:
                return None
            self.count += 1
            outer, self.running = self.running, callback
            try:
                return callback(*arguments)
            except Exception as error:
                self.failed(name_of(callback), error)
                return None
            finally:
                self.running = outer

        return call

    def service(self, callback: Callback, closed: Callable[[], str] = str) -> Callback:
        """Return a wrapped callback of a service that always returns a response.

        Without an answer it has success=False and the reason as message, as far as it
        has these fields. `closed` returns why the service has been closed, or "".
        """

        @functools.wraps(callback)
        def call(request: Any, response: Any) -> Any:
            if reason := closed():
                return _refused(response, reason)
            self.count += 1
            name = name_of(callback)
            before = self.counts[name]
            answer = self.attempt(callback, request, response)
            if answer is None:
                failed = self.counts[name] > before
                reason = self.failures[name] if failed else "no answer"
                return _refused(response, reason)
            return answer

        return call


def name_of(callback: Callback) -> str:
    """Return the qualified name of a callback without "<locals>" and "<lambda>"."""
    name = getattr(callback, "__qualname__", type(callback).__name__)
    return str(name).replace(".<locals>", "").replace(".<lambda>", "")


def place_of(thread: int) -> str:
    """Return where a thread executes, "FUNCTION (FILE, line N)"; "" if nowhere."""
    frame: FrameType | None = sys._current_frames().get(thread)
    if frame is None:
        return ""
    code = frame.f_code
    return f"{code.co_name} ({Path(code.co_filename).name}, line {frame.f_lineno})"


def _refused(response: Any, reason: str) -> Any:
    """Set success=False and the reason in fields that a response has; return it."""
    for field, value in (("success", False), ("message", reason)):
        if hasattr(response, field):
            setattr(response, field, value)
    return response
