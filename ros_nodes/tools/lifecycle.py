"""States, services and diagnostics of running nodes.

`dyn lifecycle` has the output of `ros2 lifecycle`; `dyn call` calls services without
numbers, such as ~/estop; `dyn diagnostics` prints what /diagnostics says.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.srv import ChangeState, GetAvailableTransitions, GetState
from std_srvs.srv import SetBool, Trigger

from dyn_core.errors import DynError, SettingError, unknown_name
from ros_nodes.tools.live import ABSENT, ANNOUNCED, Live, connect, full_name

LONGEST = 60.0  # longest wait for a transition: configuring compiles [s]
CALLED = {"std_srvs/srv/Trigger": Trigger, "std_srvs/srv/SetBool": SetBool}
# Time for which diagnostics are heard: a node is found by then, and sends each second.
HEARD = ANNOUNCED + 1.1  # [s]
LEVELS = ("OK", "WARN", "ERROR", "STALE")


def run(arguments: argparse.Namespace) -> int:
    """Run a verb of `dyn lifecycle`.

    Args:
        arguments: Parsed arguments: verb, node (None: all nodes), timeout [s], and for
            `set` transition, a list of labels or ids.

    Returns:
        Exit status: 0; 1 if nodes are to be listed and none has a life cycle.

    Raises:
        SettingError: The node does not exist, has no life cycle, or no such transition.
        DynError: There is no node or no response in time, or a transition fails.
    """
    with connect(arguments.timeout) as live:
        if arguments.node is None:
            return _all(live, arguments.verb)
        node = live.require(arguments.node)
        if node not in lifecycle_nodes(live, node):
            has = ", ".join(lifecycle_nodes(live)) or "none"
            raise SettingError(f"{node} is no lifecycle node; valid: {has}", "node")
        return VERBS[arguments.verb](live, node, arguments)


def lifecycle_nodes(live: Live, name: str = "") -> list[str]:
    """Return the names of the nodes with a life cycle, sorted, without hidden ones.

    With `name`, a full one, only this node is returned, even if hidden; its service is
    waited for ABSENT (5 s) at most.
    """
    end, kind = "/get_state", "lifecycle_msgs/srv/GetState"

    def known() -> list[str]:
        pairs = live.services().items()
        having = [x for x, kinds in pairs if x.endswith(end) and kind in kinds]
        return [service.removesuffix(end) for service in having]

    if name:
        what = f"service {name}{end}"
        live.until(lambda: name in known(), min(live.timeout, ABSENT), what)
        return [x for x in known() if x == name]
    live.all_nodes()
    return sorted(x for x in known() if not x.rpartition("/")[2].startswith("_"))


def _all(live: Live, verb: str) -> int:
    """Print all lifecycle nodes, for "get" with their states; return 1 for none."""
    nodes = lifecycle_nodes(live)
    if not nodes and not live.nodes():
        raise live.none()
    for node in nodes:
        print(node if verb == "nodes" else f"{node}: {_shown(state(live, node))}")
    if silent := ", ".join(live.silent()):
        wait = f"{min(ABSENT, live.timeout):g} s: whether it has a life cycle"
        print(
            f"dyn: no services of {silent} within {wait} is not known", file=sys.stderr
        )
    return 0 if nodes else 1


def _get(live: Live, node: str, _: argparse.Namespace) -> int:
    """Print the state of a node; return 0."""
    print(_shown(state(live, node)))
    return 0


def _list(live: Live, node: str, _: argparse.Namespace) -> int:
    """Print the transitions that are available for a node; return 0."""
    for each in transitions(live, node):
        print(f"- {each.transition.label} [{each.transition.id}]")
        print(f"\tStart: {each.start_state.label}")
        print(f"\tGoal: {each.goal_state.label}")
    return 0


def _set(live: Live, node: str, arguments: argparse.Namespace) -> int:
    """Perform the transitions `arguments.transition`, labels or ids; return 0."""
    said = _statuses(live)
    for wanted in arguments.transition:
        _change(live, node, wanted, said)
        print("Transitioning successful", flush=True)
    return 0


def _change(
    live: Live, node: str, wanted: str, said: dict[str, DiagnosticStatus]
) -> None:
    """Perform a transition, by label or id; `said` gets the reason of a failure."""
    known = [each.transition for each in transitions(live, node)]
    chosen = [x for x in known if wanted in (x.label, str(x.id))]
    if not chosen:
        labels = [x.label for x in known]
        now = state(live, node).label
        message = unknown_name(f"transition of {node} in state {now}", wanted, labels)
        raise SettingError(message, "transition")
    request = ChangeState.Request(transition=chosen[0])
    longest = max(live.timeout, LONGEST)
    answer = live.call(ChangeState, f"{node}/change_state", request, longest, asked=1)
    if not answer.success:
        now = _shown(state(live, node))
        said.clear()  # the next status has the reason
        live.until(lambda: _names(said, node), HEARD)
        why = "; ".join(said[x].message for x in _names(said, node))
        why = why or f"its log says why, and dyn diagnostics {node}"
        raise DynError(f"Transitioning failed: {node} is {now}; {why}")


VERBS = {"get": _get, "list": _list, "set": _set}


def state(live: Live, node: str) -> Any:
    """Return the lifecycle State message of a node.

    Raises:
        DynError: There is no such service, or no response in time.
    """
    return live.call(GetState, f"{node}/get_state", GetState.Request()).current_state


def transitions(live: Live, node: str) -> list[Any]:
    """Return the TransitionDescriptions of the transitions available for a node."""
    kind = GetAvailableTransitions
    answer = live.call(kind, f"{node}/get_available_transitions", kind.Request())
    return list(answer.available_transitions)


def _shown(current: Any) -> str:
    """Return a state as "LABEL [ID]"."""
    return f"{current.label} [{current.id}]"


def call(arguments: argparse.Namespace) -> int:
    """Call a service and print its answer; return 0.

    Args:
        arguments: Parsed arguments: service, its full name; value, "true" or "false" of
            a SetBool, None of a Trigger; timeout [s].

    Raises:
        SettingError: There is no such service, it is of another kind, or the value is
            missing, too much, or neither true nor false.
        DynError: The service refuses, or does not answer in time.
    """
    with connect(arguments.timeout) as live:
        name, value = full_name(arguments.service), arguments.value

        def known() -> dict[str, str]:
            return {x: kind for x, (kind, *_) in live.services().items()}

        wait, what = min(live.timeout, ABSENT), f"service {name}"
        if not live.until(lambda: name in known(), wait, what):
            names = sorted(x for x, kind in known().items() if kind in CALLED)
            raise SettingError(unknown_name("service", name, names), "name")
        kind_name = known()[name]
        if kind_name not in CALLED:
            raise SettingError(_fields(name, kind_name), "name")
        kind = CALLED[kind_name]
        values = ("true", "false") if kind is SetBool else (None,)
        if value not in values:
            valid = "true or false" if kind is SetBool else "no value"
            end = " true" if kind is SetBool else ""
            how = f"{name} is a {kind_name}, called by: dyn call {name}{end}"
            raise SettingError(f"value is {value}; valid: {valid}; {how}", "value")
        request = Trigger.Request() if value is None else SetBool.Request()
        if value is not None:
            request.data = value == "true"
        answer = live.call(kind, name, request, asked=1)
        if not answer.success:
            raise DynError(f"{name}: {answer.message}")
        print(answer.message or "done")
        return 0


def _fields(name: str, kind: str) -> str:
    """Return the sentence on a service whose request has fields, and how to call it.

    Args:
        name: Full name of the service.
        kind: Its type, such as dyn_msgs/srv/AttachPayload.
    """
    package, _, word = kind.partition("/srv/")
    try:
        request = getattr(importlib.import_module(f"{package}.srv"), word).Request
        fields = request.get_fields_and_field_types()
        shown = ", ".join(f"{x}: {y.upper()}" for x, y in fields.items())
    except (ImportError, AttributeError):  # its package is not on this computer
        shown = "..."
    how = f"ros2 service call {name} {kind} '{{{shown}}}'"
    return f"{name} is a {kind}; valid here: {' or '.join(CALLED)}; call it by {how}"


def diagnostics(arguments: argparse.Namespace) -> int:
    """Print the last status of each name in /diagnostics.

    They are heard until HEARD (4.3 s) after the first message, those of a node until
    the first one.

    Args:
        arguments: Parsed arguments: node, whose values are printed, too; None: levels
            and messages of all nodes; timeout [s].

    Returns:
        Exit status: 0; 1 if an ERROR is printed.

    Raises:
        DynError: Nothing is heard within the timeout, or nothing of the node.
    """
    with connect(arguments.timeout) as live:
        last, node = _statuses(live), (arguments.node or "").lstrip("/")
        live.until(lambda: last, live.timeout, "a message on /diagnostics")
        live.until(lambda: node and _names(last, node), HEARD if last else 0.0)
    names = _names(last, node)
    if not names:
        there = f"; names there: {', '.join(sorted(last))}" if last else ""
        raise DynError(f"no diagnostics of {node or 'any node'} are heard{there}")
    for status in [last[x] for x in names]:
        print(f"{LEVELS[ord(status.level)]} {status.name}: {status.message}")
        for pair in status.values if node else ():
            print(f"  {pair.key}: {pair.value}")
    return int(any(ord(last[x].level) == 2 for x in names))


def _statuses(live: Live) -> dict[str, DiagnosticStatus]:
    """Return the last status of each name in /diagnostics, updated by each message."""
    last: dict[str, DiagnosticStatus] = {}

    def heard(message: DiagnosticArray) -> None:
        last.update({status.name: status for status in message.status})

    live.node.create_subscription(DiagnosticArray, "/diagnostics", heard, 50)
    return last


def _names(last: dict[str, DiagnosticStatus], node: str) -> list[str]:
    """Return the names of the statuses of a node, sorted; of all nodes for ""."""
    node = node.lstrip("/")
    return [x for x in sorted(last) if node in ("", x.lstrip("/").split(":")[0])]
