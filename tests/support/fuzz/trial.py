"""One file given to its door: what went wrong, if anything did."""

from __future__ import annotations

import re
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dyn_core.errors import DynError, ModelWarning
from dyn_core.model.sources import bounded_process
from fuzz.doors import DOORS, BrokenResult
from fuzz.fuzz_file import FuzzFile

LIMIT = 5.0  # CPU time for one file [s]
LONGEST = 600  # characters of a message
_PROGRAMMING = re.compile(
    r"NoneType|has no attribute|(list|tuple|string) (index|indices)|unhashable|"
    r"not (iterable|subscriptable|callable)|(positional|keyword) argument|"
    r"could not convert|invalid literal|not enough values|too many values|Traceback|"
    r"(Key|Value|Type|Index|Attribute|Runtime|Recursion|Assertion|Overflow)Error|"
    r"<class |<object |<function |object at |math domain|recursion depth|"
    r"unsupported operand|codec can|<unicode|ParseError|0x[0-9a-f]{7,}|LinAlg|"
    r"must be (str|real number|a string)|unicode string",
)
# A xacro may compute for ever, and is stopped; MuJoCo may not.
_ENDED = re.compile(r"MuJoCo, which was stopped")
_OF_XACRO = "xacro cannot expand it: "  # expressions of Python, with its words
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True)
class Failure:
    """What went wrong with a file.

    Attributes:
        what: foreign exception, too slow, unclear message, wrong result, or refused.
        detail: The exception or message.
        where: Function of the product, of a foreign exception.
    """

    what: str
    detail: str
    where: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What failures of one cause have in common."""
        cause = self.where or re.sub(r"'[^']*'|[-+.\d]+", "", self.detail)[:40]
        return self.what, cause

    def __str__(self) -> str:
        where = f" in {self.where}" if self.where else ""
        return f"{self.what}{where}: {self.detail[: 2 * LONGEST]}"


class _TooSlow(BaseException):
    """The time for one file is over; no `except Exception` stops it."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise in the code inside when it took this CPU time [s]; main thread only."""
    here = threading.current_thread() is threading.main_thread()
    if not (here and hasattr(signal, "setitimer")):
        yield
        return

    def stop(*_: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds / 5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def try_file(file: FuzzFile, limit: float = LIMIT) -> tuple[str, Failure | None]:
    """Return whether a file was read, and what went wrong.

    Args:
        file: File.
        limit: CPU time that it may take [s].

    Returns:
        loaded or refused, by its first mode; and the Failure, or None.
    """
    outcome, start = "refused", time.process_time()
    try:
        with cpu_limit(limit), _job_limit(limit), warnings.catch_warnings():
            _listen()
            for outcome, failure in _modes(file):
                if failure is not None:
                    return outcome, failure
    except _TooSlow as error:
        return outcome, Failure("too slow", f"more than {limit} s", _where(error))
    taken = time.process_time() - start
    if taken > limit:
        return outcome, Failure("too slow", f"{taken:.1f} s")
    return outcome, None


@contextmanager
def _job_limit(seconds: float) -> Iterator[None]:
    """Bound the CPU time of jobs in other processes [s]."""
    before, bounded_process.LIMIT = bounded_process.LIMIT, seconds
    try:
        yield
    finally:
        bounded_process.LIMIT = before


def _listen() -> None:
    """Let NumPy's warnings be exceptions; the product's own are no failures."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ModelWarning)
    warnings.filterwarnings("ignore", r"s\[\d+\] has length", RuntimeWarning)


def _modes(file: FuzzFile) -> Iterator[tuple[str, Failure | None]]:
    """Try a file in every mode of its door; return the outcome of the first each."""
    door = DOORS[file.kind]
    outcome = ""
    for mode in door.modes:
        value, failure = _read(file, mode)
        read = value is not None
        if failure is None and not outcome and file.valid and not read:
            failure = Failure("refused", "a valid file")
        if failure is None and outcome == "refused" and read:
            failure = Failure("wrong result", f"loads with {mode} only")
        outcome = outcome or ("loaded" if read else "refused")
        yield outcome, failure
        if read:
            yield outcome, _examined(value, file)


def _read(file: FuzzFile, mode: str) -> tuple[Any, Failure | None]:
    """Return what a file holds, None if it was refused, and what went wrong."""
    try:
        value = DOORS[file.kind].read(file, mode)
    except DynError as error:
        return None, _message(str(error))
    except Exception as error:
        return None, _foreign(error)
    return value, next(
        filter(None, map(_message, getattr(value, "warnings", ()))), None
    )


def _examined(value: Any, file: FuzzFile) -> Failure | None:
    """Return what of a value that was read does not work."""
    try:
        DOORS[file.kind].examine(value, file)
    except BrokenResult as error:
        return Failure("wrong result", str(error))
    except DynError as error:
        return Failure("wrong result", f"once it is read: {error}", _where(error))
    except Exception as error:
        return _foreign(error)
    return None


def _message(message: str) -> Failure | None:
    """Return what is wrong with the message of an error or a warning."""
    if len(message) > LONGEST:
        return Failure("unclear message", f"{len(message)} characters: {message[:300]}")
    if _ENDED.search(message):
        return Failure("too slow", message)
    ours, _, _ = message.partition(_OF_XACRO)
    if len(message) < 10 or _CONTROL.search(message) or _PROGRAMMING.search(ours):
        return Failure("unclear message", repr(message))
    return None


def _foreign(error: Exception) -> Failure:
    detail = f"{type(error).__name__}: {error}"
    return Failure("foreign exception", detail, _where(error))


def _where(error: BaseException) -> str:
    """Return the innermost function of the product in a traceback, not the fuzzer's."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        f"{name.split('/')[-1]}: {frame.name}"
        for frame in frames
        if "dyn_" in (name := frame.filename.replace("\\", "/"))
        and "/fuzz/" not in name
    ]
    return places[-1] if places else ""
