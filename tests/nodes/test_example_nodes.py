"""The example nodes in plain rclpy, as numbers and beside the nodes of the product."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from ros_nodes.graphs import COMPUTED_TORQUE, SIMULATOR, NodeEntry

pytestmark = [pytest.mark.ros, pytest.mark.timeout(120)]
EXAMPLES = Path(__file__).parents[2] / "examples"
GAINS = "".join(
    f"    gains.joint{k}.p: 400.0\n    gains.joint{k}.d: 40.0\n" for k in range(1, 8)
)
PARAMS = f"""\
simulator:
  ros__parameters:
    robot_description_file: arm7
    update_rate: 250
    initial_positions: [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
    diagnostic_updater.period: 0.1
computed_torque:
  ros__parameters:
    robot_description_file: arm7
    diagnostic_updater.period: 0.1
{GAINS}"""


@pytest.fixture
def examples(monkeypatch):
    """Return both scripts as modules."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    names = "rclpy_controller", "rclpy_simulator"
    return [importlib.import_module(name) for name in names]


def _largest_error(examples, joint_friction):
    """Return the error of the one example on the other in five seconds."""
    controller, simulator = examples
    model = simulator.dyn.load("arm7")
    law = controller.ComputedTorque(model, joint_friction)
    arm = simulator.Arm(model, simulator.START)
    errors = []
    for k in range(1250):
        arm.advance(law.torque(0.004 * k, arm.q, arm.qd), 0.004)
        errors.append(np.abs(law.error).max())
    return max(errors)


def test_the_examples_as_numbers(examples):
    """The arm follows within 5 mrad; without friction in the law it does not."""
    assert _largest_error(examples, True) < 5e-3
    assert _largest_error(examples, False) > 0.1


@pytest.fixture
def listener(ros):
    """Return a node that keeps states, efforts and errors."""
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.node import Node
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    node = Node("listener")
    node.states, node.efforts, node.errors, node.said = [], [], [], {}

    def hear(message):
        for status in message.status:
            node.said[status.name.split(":")[0]] = status.message

    listen = node.create_subscription
    listen(JointState, "joint_states", node.states.append, 10)
    listen(Float64MultiArray, "effort_controller/commands", node.efforts.append, 10)
    listen(JointState, "computed_torque/error", node.errors.append, 10)
    listen(DiagnosticArray, "/diagnostics", hear, 10)
    yield node
    node.destroy_node()


@pytest.mark.parametrize("example", ["rclpy_controller", "rclpy_simulator"])
def test_an_example_beside_the_other_node(
    start, listener, until, examples, example, environment
):
    """The controller swings the product's arm; the product's controller holds ours."""
    name = example.replace("rclpy", "own")
    ours = NodeEntry(name, example)
    controls = example == "rclpy_controller"
    entries = [ours, SIMULATOR] if controls else [COMPUTED_TORQUE, ours]
    extra = {"PYTHONPATH": f"{EXAMPLES}:{environment.get('PYTHONPATH', '')}"}
    nodes = start(entries[:1], PARAMS, extra=extra)
    said = {"detail": lambda: [process.output for process in nodes.all]}
    # The arm falls until a controller takes over, and may fall to its stops.
    heard = lambda: listener.count_subscribers("joint_states") == 2  # noqa: E731
    until(heard, listener, expected="the controller", **said)
    nodes.all += start(entries[1:], PARAMS, extra=extra).all
    until(lambda: len(listener.efforts) > 100, listener, expected="efforts", **said)
    if controls:

        def swings():
            """Return whether every joint moves, none too far."""
            last = [m.position for m in listener.states[-300:]]
            moved = np.ptp(last, axis=0) if len(last) == 300 else np.zeros(7)
            return 0.05 < moved.min() and moved.max() < 2.5 * examples[0].SWING

        until(swings, listener, expected="a swing", **said)
    else:
        listener.errors.clear()
        until(lambda: len(listener.errors) > 20, listener, expected="errors", **said)
        errors = [np.abs(m.position).max() for m in listener.errors]
        assert np.median(errors) < 0.02
    assert np.isfinite([m.data for m in listener.efforts]).all()
    nodes.end()
    assert "Traceback" not in nodes[name].output
