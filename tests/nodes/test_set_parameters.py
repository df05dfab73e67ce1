"""Parameters that are set while a node is configured, as `ros2 param` does it."""

import pytest
from wrong_values import wrong

from dyn_core.errors import SolverNotFound
from ros_nodes.parameter_tables.parameter_files import NODES, node_fields
from ros_nodes.parameters import check_solver

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
    assert "dyn lifecycle set /computed_torque deactivate" in change("joints", "[]")
    assert "clean up first" in change("joints", "[]")
    assert "clean up first" in change("joints", "[joint1, joint2]")
    assert change("joints", "[joint2, joint1]") == ""
    assert change("state_timeout", str(node.value("state_timeout"))) == ""
    assert "clean up first" in change("state_timeout", "0.7")
    assert change("envelope.joint_power", "[]") == ""
    # A dump of a node can be loaded into it, empty lists, 1e-06 and all.
    assert node.value("shadow.tolerance") == 1e-6
    for name in node.specs:
        value = node.get_parameter(name).get_parameter_value()
        assert change(name, _loaded(value)) == "", name
    # Unconfigured, a list can be emptied again; a number cannot become one.
    node.trigger_cleanup()
    assert change("joints", "[]") == ""
    assert node.value("joints") == []
    assert "expected 'Type.DOUBLE'" in change("state_timeout", "[]")
    assert "did you mean 'gains.joint1.p'" in change("gains.jiont1.p", "3.0")


@pytest.mark.parametrize("text", ["[2020-13-45]", "[1, !!int x]", "[" * 3000])
def test_text_that_yaml_cannot_convert_is_no_list_of_numbers(text):
    """PyYAML passes on errors of Python: they ended in the callback of the node."""
    from ros_nodes.base.parameter_node import written_numbers

    assert written_numbers(text) is None


def test_numbers_that_yaml_reads_as_text(change):
    """`1e-06` is a double where a double is declared, alone and in lists."""
    node = change.node
    node.trigger_configure()
    for written, number in (("1e-06", 1e-6), ("2E3", 2000.0), (".5e+1", 5.0)):
        assert change("gains.joint1.p", written) == ""
        assert node.value("gains.joint1.p") == number
    # What is not written as a number stays what it is, and is refused.
    for written in ("1e-06x", "abc", "3", "'3.0'"):
        assert "expected 'Type.DOUBLE'" in change("gains.joint1.p", written)
    for written in ("[1e-06, abc]", "[1e-06, 3]", "[1e-06", "1e-06", "[a, b]"):
        assert "expected 'Type.DOUBLE_ARRAY'" in change("envelope.joint_power", written)
    assert "inf" in change("gains.joint1.p", "1e999")
    assert node.value("gains.joint1.p") == 5.0
    node.trigger_cleanup()
    for written in ("[1e-06, 2.0]", "[2e0, 1e-06]"):
        assert change("envelope.joint_power", written) == ""
    assert node.value("envelope.joint_power") == [2.0, 1e-6]
    # A name may look like a number.
    assert change("model_topics.frame", "1e3") == ""
    assert node.value("model_topics.frame") == "1e3"


@pytest.mark.parametrize("configured", [False, True])
def test_solvers_are_refused_when_they_are_set(change, configured):
    """A name that no solver of the slot has, with those that there are."""
    if configured:
        change.node.trigger_configure()
        change.node.trigger_cleanup()
    for slot in ("inverse_dynamics", "shadow"):
        reason = change(f"{slot}.plugin_name", "rnae")
        assert "no solver is called 'rnae'; did you mean 'rnea'" in reason
    reason = change("inverse_dynamics.plugin_name", "aba")
    assert (
        "'aba' solves forward_dynamics, not inverse_dynamics; valid: rnea, rnea_loops"
        in reason
    )
    assert change.node.value("inverse_dynamics.plugin_name") == "auto"
    for name in ("rnea", "", "auto"):
        assert change("inverse_dynamics.plugin_name", name) == ""


def test_every_default_is_a_solver_of_its_slot():
    """Of each parameter SLOT.plugin_name of each node and mode."""
    count = 0
    for node in NODES:
        for name, field in node_fields(node).items():
            check_solver(name, field.default)
            if name.endswith(".plugin_name"):
                count += 1
                with pytest.raises(SolverNotFound, match="valid for"):
                    check_solver(name, "no such solver")
    assert count > 8


def _loaded(value):
    """A value as `ros2 param load` hands it on: the text of what the dump has."""
    from rclpy.parameter import parameter_value_to_python

    plain = parameter_value_to_python(value)
    return str(list(plain) if hasattr(plain, "typecode") else plain)


@pytest.mark.parametrize("kind", ["simulator", "computed_torque", "feed_forward"])
def test_wrong_values_of_every_parameter_are_refused(ros, kind):
    """The reason names the parameter and what is valid, those of joints too.

    Only values of the declared type arrive: ROS refuses others, and numbers outside a
    range, in its own words.
    """
    from importlib import import_module

    from rclpy.parameter import Parameter

    from ros_nodes.base.parameter_node import ros_type

    module = import_module(f"ros_nodes.{kind}_node")
    name = "".join(word.title() for word in kind.split("_")) + "Node"
    settings = {"robot_description_file": "two_link", "engine": "graph"}
    settings |= {"autostart": False}
    node = getattr(module, name)(
        parameter_overrides=[Parameter(k, value=v) for k, v in settings.items()]
    )
    try:
        node.trigger_configure()  # declares those of joints
        node.trigger_cleanup()
        assert kind == "feed_forward" or "effort_limits.joint1" in node.specs
        for name, field in node.specs.items():
            for each in wrong(field.value_kind):
                if isinstance(each.value, int) and abs(each.value) > 2**62:
                    continue
                if isinstance(each.value, (dict, type(None))):
                    continue
                parameter = Parameter(name, value=each.value)
                if parameter.type_ != ros_type(field):
                    continue
                (result,) = node.set_parameters([parameter])
                reason = result.reason
                assert not result.successful, (name, each.value)
                ours = reason.startswith(f"{name}{each.said}")
                assert ours or reason.startswith(f"Parameter {name} out of range")
                assert not ours or all(word in reason for word in each.valid), reason
    finally:
        node.destroy_node()
