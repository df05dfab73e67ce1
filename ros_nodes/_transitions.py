"""Transitions of a node: which one fits its state, and what one raises."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import TransitionCallbackReturn

from dyn_core.errors import cut, one_line

Transition = Callable[[Any, Any], TransitionCallbackReturn]


def reported(transition: Transition) -> Transition:
    """Log what a transition raises, with its trace: rclpy says nothing of it.

    The transition then fails, and a node that was configured goes through on_error.
    """

    @functools.wraps(transition)
    def call(node: Any, state: Any) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception as error:
            node.failure = cut(f"{type(error).__name__}: {error}")
            what = transition.__name__.removeprefix("on_")
            node.get_logger().error(f"cannot {what}: {cut(traceback.format_exc())}")
            return TransitionCallbackReturn.ERROR

    return call


def misfit(requested: Any, machine: Any) -> str | None:
    """Return why a requested transition does not fit the state, or None.

    Args:
        requested: Its message; the label decides, the number is for those without one.
        machine: State machine of the node.
    """
    valid = {number: label for number, label, *_ in machine.available_transitions}
    if requested.label in valid.values() or (
        not requested.label and requested.id in valid
    ):
        return None
    wish = one_line(requested.label) or requested.id
    choices = ", ".join(f"{number} ({label})" for number, label in valid.items())
    return (
        f"transition {wish} does not fit the state {machine.current_state[1]};"
        f" valid: {choices or 'none'}"
    )
