"""Status messages for the topic /diagnostics."""

from __future__ import annotations

from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from dyn_core.errors import cut, one_line
from dyn_core.model.checks.findings import Hint

OK, WARN, ERROR, STALE = (bytes([level]) for level in range(4))


def status_message(
    node: Any, level: bytes, message: str, values: dict[str, Any]
) -> DiagnosticStatus:
    """Return the DiagnosticStatus of a node, with its own level, a sentence and values.

    A level OK becomes WARN if the model has warnings that are no hints, or a callback
    has failed; the first warning that is no hint, or else the first failure, is then
    appended to the message. node.namesake, if not empty, is appended at any level, and
    makes OK a WARN. The name is "NODE: CLASS", the hardware_id the name of the robot or
    "none". Added values: "active after [s]" (if known), the numbers "refused: KIND" and
    "failed: CALLBACK", and all warnings, also hints, as "finding 1" and so on. Long
    texts are shortened.
    """
    findings = getattr(node.model, "warnings", ())  # a chain has none
    doubts = [finding for finding in findings if not isinstance(finding, Hint)]
    if doubts and level == OK:
        level = WARN
        message = f"{message}; doubtful about the robot: {doubts[0]}"
    failures = node.callbacks.failures
    if failures and level == OK:
        level, message = WARN, f"{message}; {next(iter(failures.values()))}"
    if node.namesake:  # also beside an error, whose cause it may be
        level, message = max(level, WARN), f"{message}; {node.namesake}"
    status = DiagnosticStatus(level=level, message=cut(message))
    name = node.get_fully_qualified_name().removeprefix("/")
    status.name = f"{name}: {type(node).__name__}"
    status.hardware_id = one_line(node.model.name) if node.model else "none"
    if node.ready_after is not None:
        values = {**values, "active after [s]": f"{node.ready_after:.2f}"}
    values = {**values, **{f"refused: {k}": n for k, n in dict(node.counters).items()}}
    values |= {f"failed: {k}": n for k, n in dict(node.callbacks.counts).items()}
    values |= {f"finding {k}": finding for k, finding in enumerate(findings, 1)}
    status.values = [KeyValue(key=cut(k), value=cut(str(v))) for k, v in values.items()]
    return status


def namesake_of(node: Any) -> str:
    """Return a sentence on another node with the full name of this one, or "".

    The nodes that the middleware has discovered so far are counted; nothing waits for
    others. A node that was killed may be listed for some seconds more.
    """
    name = node.get_name(), node.get_namespace()
    if node.get_node_names_and_namespaces().count(name) < 2:
        return ""
    return (
        f"another node {node.get_fully_qualified_name()} runs in this domain"
        f" (ROS_DOMAIN_ID {node.context.get_domain_id()}); valid: end it, or choose"
        " --namespace or another ROS_DOMAIN_ID"
    )
