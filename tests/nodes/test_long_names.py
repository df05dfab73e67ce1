"""Names and values of any length: what nodes log and send stays short."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

import dyn_core as dyn
from ros_nodes.conversions import JointReader
from ros_nodes.messages.effort_commands import EffortReader, RefusedCommand

LONG = "j" * 1_000_000
SPACED = "j " * 500_000
LONGEST = 5000  # characters of a line, or of a text of /diagnostics


@pytest.mark.parametrize("name", [LONG, SPACED], ids=["long", "words"])
def test_errors_quote_the_beginning_of_a_name(name):
    """Every error of ours, by its base class; the lines of a message stay."""
    for error in (
        dyn.TrajectoryError(f"unknown joints {name}; needs joint1"),
        dyn.SettingError(f"no parameter is called '{name}'", name),
        dyn.ShapeError(f"joint '{name}'", "one entry in name", name),
        dyn.SolverNotFound(name, [name, f"{name}k"]),
        dyn.SingularError(name),
        dyn.UnsupportedError(name),
    ):
        assert len(str(error)) < LONGEST, type(error)
    assert str(dyn.CompileError("a\n" * 300)) == "a\n" * 300


@pytest.mark.parametrize("name", [LONG, SPACED], ids=["long", "words"])
def test_refusals_of_messages_are_short(name):
    """Of a joint state and of a command with such a name, or such joints."""
    message = SimpleNamespace(name=[name, name], position=[0.0, 0.0], velocity=[])
    for joints in (["joint1", name], [name]):
        with pytest.raises(dyn.ShapeError) as refusal:
            JointReader(joints).read(message)
        assert len(str(refusal.value)) < LONGEST
    reader = EffortReader(["joint1", f"{name}1"], {}, 0.1)
    for names in ([name, name], [name, "joint1"]):
        command = SimpleNamespace(
            name=names, effort=[1.0, 1.0], position=[], velocity=[]
        )
        with pytest.raises(RefusedCommand) as refused:
            reader.joint_state(command, None)
        assert len(str(refused.value)) < LONGEST


URDF = """<robot name="{long}"><link name="base"/><link name="{long}">
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="{long}" type="revolute"><parent link="base"/>
<child link="{long}"/><limit lower="-1" upper="1" effort="5" velocity="1"/>
<axis xyz="0 0 1"/></joint></robot>"""


@pytest.fixture
def make(ros):
    """Return a function that makes a node of a class, configured and active."""
    from rclpy.parameter import Parameter

    made = []

    def node(kind, active=True, **values):
        settings = {"autostart": False, "engine": "graph", **values}
        overrides = [
            Parameter(k.replace("__", "."), value=v) for k, v in settings.items()
        ]
        made.append(kind(parameter_overrides=overrides))
        if active:
            made[-1].trigger_configure()
            if made[-1].failure is None:
                made[-1].trigger_activate()
        return made[-1]

    yield node
    for each in made:
        each.destroy_node()


def _refusal(node, name, value):
    """Return why a parameter cannot be set."""
    from rclpy.exceptions import ParameterNotDeclaredException
    from rclpy.parameter import Parameter

    try:
        (result,) = node.set_parameters([Parameter(name, value=value)])
    except ParameterNotDeclaredException as error:
        return str(error)
    assert not result.successful
    return result.reason


def _short(logged, node):
    """Assert that something was logged, all of it short, and diagnostics too."""
    lines = logged.splitlines()
    assert lines
    assert max(map(len, lines)) < LONGEST
    sent = []
    node.diagnostics = type("Taken", (), {"publish": lambda _, x: sent.append(x)})()
    node.diagnose()
    (status,) = sent[0].status
    texts = [status.message, status.hardware_id, status.name]
    texts += [text for x in status.values for text in (x.key, x.value)]
    assert max(map(len, texts)) < LONGEST


@pytest.mark.ros
@pytest.mark.parametrize("kind", ["trajectory", "state", "pose", "robot"])
@pytest.mark.parametrize("name", [LONG, SPACED], ids=["long", "words"])
def test_messages_with_long_names_are_short_lines(make, until, capfd, kind, name):
    """Each kind of message that the controller takes."""
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState, MultiDOFJointState
    from std_msgs.msg import String
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    from ros_nodes.computed_torque_node import ComputedTorqueNode

    node = make(ComputedTorqueNode, robot_description_file="two_link")
    capfd.readouterr()
    if kind == "trajectory":
        point = JointTrajectoryPoint(positions=[0.0])
        message = JointTrajectory(joint_names=[name], points=[point])
        node.trajectories.on_message(serialize_message(message))
        until(lambda: node.counters["trajectory refused"], node)
    elif kind == "state":
        names = ["joint1", name]
        node._on_state(JointState(name=names, position=[0.0, 0.0]))
        node._on_state(JointState(name=["joint1", "joint1", name], position=[0.0] * 3))
    elif kind == "pose":
        node._on_poses(MultiDOFJointState(joint_names=[name]))
        node._look()
    else:
        node._on_robot("", dyn.ModelError(f"joint '{name}': no parent"))
        other = make(ComputedTorqueNode, active=False, robot_description_file=name)
        other.trigger_configure()
        other._on_description(String(data=f"<robot name='{name}'/>"))
    _short(capfd.readouterr().err, node)


@pytest.mark.ros
def test_a_robot_with_long_names_has_short_lines(make, capfd):
    """Of its log, of its diagnostics, and of what its parameters refuse."""
    from ros_nodes.computed_torque_node import ComputedTorqueNode
    from ros_nodes.simulator_node import SimulatorNode

    name = "j" * 20_000
    for kind in (ComputedTorqueNode, SimulatorNode):
        node = make(kind, robot_description=URDF.format(long=name))
        assert node.model is not None
        assert 0 < len(_refusal(node, f"gains.{name}x.p", 1.0)) < LONGEST
        _short(capfd.readouterr().err, node)


@pytest.mark.ros
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mode", LONG), ("gains.joint1.p", LONG), (LONG, 1.0), (f"gains.{LONG}.p", 1.0),
        ("inverse_dynamics.plugin_name", LONG), ("joints", [LONG]),
        ("payload.link", LONG), ("envelope.frame", LONG),
        ("robot_description", f"<robot name='{LONG}'><link name='a'/></robot>"),
    ],
    ids=lambda x: str(x)[:20],
)  # fmt: skip
def test_parameters_of_any_length_are_refused_shortly(make, capfd, key, value):
    """At the start and live; in the log and in the answer."""
    from ros_nodes.computed_torque_node import ComputedTorqueNode

    settings = {"robot_description_file": "two_link", key: value}
    try:
        node = make(ComputedTorqueNode, **settings)
    except Exception as error:
        if key != "mode":  # whose words are those of rclpy
            assert len(str(error)) < LONGEST
    else:
        _short(capfd.readouterr().err, node)
    node = make(ComputedTorqueNode, robot_description_file="two_link")
    capfd.readouterr()
    assert 0 < len(_refusal(node, key, value)) < LONGEST


@pytest.mark.ros
def test_a_process_that_cannot_start_says_so_shortly(environment, tmp_path):
    """Also where the words are those of rclpy."""
    path = tmp_path / "long.yaml"
    path.write_text(f"/**:\n  ros__parameters: {{mode: {LONG}}}\n")
    command = [sys.executable, "-m", "ros_nodes.computed_torque_node", "--ros-args"]
    done = subprocess.run(
        [*command, "--params-file", str(path)],
        env={**environment}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("cannot start: ")
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < LONGEST
