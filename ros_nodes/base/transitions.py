"""Life-cycle transitions of a node: services, validity and error reports."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

from lifecycle_msgs.msg import State, TransitionEvent
from lifecycle_msgs.srv import (
    ChangeState,
    GetAvailableStates,
    GetAvailableTransitions,
    GetState,
)
from rclpy.lifecycle import TransitionCallbackReturn

from dyn_core.errors import cut, one_line

Transition = Callable[[Any, Any], TransitionCallbackReturn]
# Services that rclpy's own callbacks answer, by the name of the service.
ANSWERS = {
    "get_state": GetState,
    "get_available_states": GetAvailableStates,
    "get_available_transitions": GetAvailableTransitions,
    "get_transition_graph": GetAvailableTransitions,
}


def serve_transitions(node: Any, change: Callable[[Any, Any], Any]) -> None:
    """Create the life-cycle services of a node made without rclpy's own services.

    They are ~/change_state, served by `change` and stored as node.transitions, and
    those of ANSWERS, ~/get_state and the like. An AnnouncedStates, which publishes on
    ~/transition_event, wraps and replaces the node's state machine.

    The services that rclpy makes hold ten requests while the node is busy and lose the
    others, and send no response if a callback raises.
    """
    node.transitions = node.create_service(ChangeState, "~/change_state", change)
    for name, kind in ANSWERS.items():
        # Private callbacks of rclpy: it offers no public access to them.
        serve = getattr(node, f"_LifecycleNodeMixin__on_{name}")
        node.create_service(kind, f"~/{name}", serve)
    events = node.create_publisher(TransitionEvent, "~/transition_event", 10)
    node._state_machine = AnnouncedStates(node._state_machine, events.publish)


def change_state(node: Any, request: Any, response: Any) -> Any:
    """Perform a transition by rclpy's callback; return `response`, filled in.

    The transition must fit the state, see misfit: else rclpy up to Jazzy raises an
    error.
    """
    return node._LifecycleNodeMixin__on_change_state(request, response)


class AnnouncedStates:
    """A state machine of rclpy that publishes a TransitionEvent for each transition."""

    def __init__(self, machine: Any, publish: Callable[[Any], object]) -> None:
        self._machine, self._publish = machine, publish

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def trigger_transition_by_id(self, number: int, announced: bool) -> None:
        """Perform and announce a transition; `announced` is ignored."""
        self._change(self._machine.trigger_transition_by_id, number)

    def trigger_transition_by_label(self, label: str, announced: bool) -> None:
        """Perform and announce a transition; `announced` is ignored."""
        self._change(self._machine.trigger_transition_by_label, label)

    def _change(self, trigger: Callable[..., object], which: int | str) -> None:
        """Perform a transition; publish an event with its start and goal state."""
        before = self._machine.current_state
        trigger(which, False)
        start, goal = (State(id=n, label=x) for n, x in (before, self.current_state))
        self._publish(TransitionEvent(start_state=start, goal_state=goal))


def reported(transition: Transition) -> Transition:
    """Decorate a transition callback: log an exception with its traceback.

    The callback then returns ERROR and stores the reason in node.failure; rclpy calls
    on_error, and itself logs nothing.
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
    """Return why a requested transition is unavailable now, or None.

    Its label decides, its id only if the label is empty.
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
