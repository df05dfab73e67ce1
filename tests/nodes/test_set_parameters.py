"""Parameters that are set while a node is configured, as `ros2 param` does it."""

import pytest

pytestmark = pytest.mark.ros


@pytest.fixture
def change(ros):
    """Return a function that sets one parameter by its message; and the node."""
    from rclpy.parameter import Parameter, get_parameter_value

    from ros_nodes.computed_torque_node import ComputedTorqueNode

    settings = {"robot_description_file": "two_link", "engine": "graph",
                "autostart": False, "joints": ["joint2", "joint1"]}  # fmt: skip
    node = ComputedTorqueNode(
        parameter_overrides=[Parameter(k, value=v) for k, v in settings.items()]
    )

    def change(name, written):
        from rcl_interfaces.msg import Parameter as Message
        from rcl_interfaces.srv import SetParameters

        message = Message(name=name, value=get_parameter_value(written))
        service = node._parameter_service._set_parameters_callback
        request = SetParameters.Request(parameters=[message])
        (result,) = service(request, SetParameters.Response()).results
        return "" if result.successful else result.reason

    change.node = node
    yield change
    node.destroy_node()


def test_what_a_command_line_sets(change):
    """Empty lists have the declared type; what changes nothing is no change."""
    node = change.node
    node.trigger_configure()
    assert node.model is not None, node.failure
    # The structure of a configured node: refused only where it would change.
    assert "clean up first" in change("joints", "[]")
    assert "clean up first" in change("joints", "[joint1, joint2]")
    assert change("joints", "[joint2, joint1]") == ""
    assert change("state_timeout", str(node.value("state_timeout"))) == ""
    assert "clean up first" in change("state_timeout", "0.7")
    assert change("envelope.joint_power", "[]") == ""
    # A dump of a node can be loaded into it, empty lists and all.
    for name in node.specs:
        value = node.get_parameter(name).get_parameter_value()
        assert change(name, _written(value)) == "", name
    # Unconfigured, a list can be emptied again; a number cannot become one.
    node.trigger_cleanup()
    assert change("joints", "[]") == ""
    assert node.value("joints") == []
    assert "expected 'Type.DOUBLE'" in change("state_timeout", "[]")
    assert "did you mean 'gains.joint1.p'" in change("gains.jiont1.p", "3.0")


def _written(value):
    """A value as `ros2 param dump` writes it."""
    import yaml
    from rclpy.parameter import parameter_value_to_python

    plain = parameter_value_to_python(value)
    return yaml.safe_dump(list(plain) if hasattr(plain, "typecode") else plain)
