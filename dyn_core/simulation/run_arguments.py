"""Checks of the arguments of `simulate`: settings, duration, controller."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from dyn_core.errors import SettingError
from dyn_core.validation import check_keywords, is_finite

ControlLaw = Callable[..., Any]  # (t, q, qd) -> joint forces, or None
MOST_ROWS = 100_000_000  # limit of a run: an hour of computing, and gigabytes
NEITHER = ("model", "world", "counters")  # fields of a simulator that are no settings
ALSO = ("controller", "world", "duration", "begin", "progress")  # keywords of simulate


def check_settings(kind: Any, names: Iterable[str]) -> None:
    """Raise a SettingError for a keyword unknown to `simulate` and its simulator.

    Args:
        kind: Class of the simulator, a dataclass.
        names: Keywords that were given.
    """
    valid = [item.name for item in fields(kind) if item.name not in NEITHER]
    check_keywords("simulate", names, [*valid, *ALSO])


def check_begin(begin: Any, progress: Any, count: int) -> None:
    """Raise a SettingError if `begin` or `progress` is invalid.

    Args:
        begin: Function of time, or None; needs a run of two periods or more.
        progress: True or False.
        count: Number of periods of the run.
    """
    if begin is not None and callable(begin) and count < 2:
        raise SettingError(
            f"begin is called with the second period, and the run has {count}; valid:"
            " two periods or more",
            "begin",
        )
    if begin is not None and not callable(begin):
        raise SettingError(
            f"begin is {begin!r}; valid: a function of the time, or None", "begin"
        )
    if not isinstance(progress, bool):
        raise SettingError(f"progress is {progress!r}; valid: True, False", "progress")


def row_count(duration: Any, period: float) -> int:
    """Return the number of periods in a duration, rounded.

    Args:
        duration: Simulated time, finite and >= 0 [s].
        period: Period [s].

    Raises:
        SettingError: The duration is invalid, has more than MOST_ROWS periods, or is
            positive but less than half a period.
    """
    if not is_finite(duration) or duration < 0:
        raise SettingError(
            f"duration is {duration!r}; valid: a finite number of seconds, 0 or more",
            "duration",
        )
    count = round(min(float(duration) / period, 10.0 * MOST_ROWS))
    if count > MOST_ROWS:
        raise SettingError(
            f"duration {duration:g} s has more than {MOST_ROWS} periods of"
            f" {period:g} s; valid: a longer period, or several runs",
            "duration",
        )
    if duration > 0 and count == 0:
        raise SettingError(
            f"duration is {duration!r}, less than half a period of {period:g} s; valid:"
            " 0, or a period and more",
            "duration",
        )
    return count


def control_law(controller: Any) -> ControlLaw:
    """Return a controller as a function of time, position and velocity.

    The function returns joint forces, (nv,), or None for no new command; without a
    controller it always returns None.

    Args:
        controller: A function (t, q, qd) -> tau; an object with such a method `update`,
            which may return None to keep the last command; or None for zero force.

    Raises:
        SettingError: The controller cannot be called with three arguments, or is a
            class. The function returned for a plain function raises it if that
            function returns None.
    """
    if controller is None:
        return lambda t, q, qd: None
    law = getattr(controller, "update", controller)
    valid = "a function (t, q, qd) -> tau, an object with such an update, or None"
    if not callable(law) or isinstance(law, type):
        raise SettingError(
            f"controller is {controller!r}; valid: {valid}", "controller"
        )
    try:
        inspect.signature(law).bind(0.0, None, None)
    except TypeError as error:
        raise SettingError(
            f"controller {law!r} cannot be called with t, q, qd ({error});"
            f" valid: {valid}",
            "controller",
        ) from error
    except ValueError:
        pass  # a builtin without a signature
    return _returning(law) if law is controller else law


def _returning(law: ControlLaw) -> ControlLaw:
    """Wrap a function so that a result of None raises a SettingError.

    None is most often a forgotten `return`.
    """

    def checked(t: float, q: Any, qd: Any) -> Any:
        tau = law(t, q, qd)
        if tau is None:
            raise SettingError(
                f"the controller returned None at t = {t:g} s; valid: {len(qd)} joint"
                " forces, or controller=None for a robot without a controller",
                "controller",
            )
        return tau

    return checked
