"""What the executor of a node calls: known while it runs, harmless when it fails."""

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
    """Calls the callbacks of a node, and the hooks in them, by one rule.

    What they raise is logged in one sentence, the first time, and counted. It ends
    neither the callback in which a hook is called nor the node. A control law has a
    rule of its own: what it raises stops the robot.

    Attributes:
        count: Number of callbacks that the executor has called.
        running: What is being called; None: the executor waits.
        failures: The last failure of each callback, as a sentence, by its name.
        counts: Number of failures of each.
    """

    def __init__(self, logger: Callable[[], Any]) -> None:
        """Call nothing yet.

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
        """Return job(*arguments); None where it fails."""
        outer, self.running = self.running, job
        try:
            return job(*arguments)
        except Exception as error:
            self.failed(name_of(job), error)
            return None
        finally:
            self.running = outer

    def failed(self, name: str, error: Exception) -> str:
        """Note a failure and return it as a sentence; log the first one of a kind."""
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
        """Forget the failures, of a configuration that has gone."""
        self.failures, self._logged = {}, set()
        self.counts.clear()

    def message(self, callback: Callback, owner: Any = None) -> Any:
        """Return a callback of a subscription or timer that follows the rule.

        Args:
            callback: The callback; None where it fails.
            owner: What it belongs to: it is called while owner.open is true. None: as
                long as the node lives.
        """

        @functools.wraps(callback)
        def call(*arguments: Any) -> Any:  # `attempt`, written out: states come here
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
        """Return a callback of a service that answers whatever happens.

        Args:
            callback: The callback, with request and response.
            closed: Returns why the service is not served any more; empty: it is.
        """

        @functools.wraps(callback)
        def call(request: Any, response: Any) -> Any:
            if reason := closed():
                return _refused(response, reason)
            self.count += 1
            answer = self.attempt(callback, request, response)
            if answer is None:
                reason = self.failures.get(name_of(callback), "no answer")
                return _refused(response, reason)
            return answer

        return call


def name_of(callback: Callback) -> str:
    """Return what a callback is called in its source."""
    name = getattr(callback, "__qualname__", type(callback).__name__)
    return str(name).replace(".<locals>", "").replace(".<lambda>", "")


def place_of(thread: int) -> str:
    """Return the function, file and line in which a thread is; empty if unknown.

    Args:
        thread: Its threading.get_ident().
    """
    frame: FrameType | None = sys._current_frames().get(thread)
    if frame is None:
        return ""
    code = frame.f_code
    return f"{code.co_name} ({Path(code.co_filename).name}, line {frame.f_lineno})"


def _refused(response: Any, reason: str) -> Any:
    """Return a response that says no, and why where it has room for that."""
    for field, value in (("success", False), ("message", reason)):
        if hasattr(response, field):
            setattr(response, field, value)
    return response
