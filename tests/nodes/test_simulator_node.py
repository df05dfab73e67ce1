"""The simulator node: commands, time, missed cycles, description, payload, weight."""

import pickle
import time
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control.controller_fields import PAYLOAD_FIELDS
from dyn_core.simulation.pacing import Pace
from ros_nodes.messages.effort_commands import EffortReader, RefusedCommand
from ros_nodes.parameter_tables.payload_parameters import payload_of
from ros_nodes.simulator.simulator_status import Notices, pace_warnings

ros_only = pytest.mark.ros
XACRO = """<robot name="lever" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="mass" default="1"/><link name="base"/><link name="rod"><inertial>
<origin xyz="0.5 0 0"/><mass value="$(arg mass)"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="pin" type="revolute"><parent link="base"/><child link="rod"/>
<axis xyz="0 -1 0"/><limit lower="-3" upper="3" effort="60" velocity="9"/></joint>
</robot>"""


# ---- without ROS


def _message(name, effort, position=(), velocity=()):
    return SimpleNamespace(name=name, effort=effort, position=position,
                           velocity=velocity)  # fmt: skip


def test_efforts_by_name():
    """Any order; joints without a name have zero; NaN of a foreign name is none."""
    reader = EffortReader(["a", "b", "c"], {}, 0.1)
    nan = float("nan")
    np.testing.assert_array_equal(
        reader.joint_state(_message(["c", "a"], [3.0, 1.0]), None), [1.0, 0.0, 3.0]
    )
    message = _message(["lid", "b"], [nan, 2.0], [nan, nan])
    np.testing.assert_array_equal(reader.joint_state(message, 0.05), [0.0, 2.0, 0.0])
    assert not reader.others
    reader.joint_state(_message(["b"], [2.0], [0.3]), -0.05)
    assert reader.others


@pytest.mark.parametrize(
    ("message", "age", "kind", "expected"),
    [
        ((["a"], [1.0]), 0.2, "command late", "stamped 0.2 s old"),
        ((["a"], [1.0]), -9.0, "command late", "of another clock"),
        ((["a"], [], [0.3]), None, "command without effort", "valid: effort"),
        ((["a"], [float("nan")]), None, "command without effort", "valid: effort"),
        ((["a", "b"], [1.0]), None, "command of wrong size", "1 efforts for 2 names"),
        ((["A"], [1.0]), None, "command of unknown joint", "did you mean 'a'"),
        ((["b", "b"], [1.0, 2.0]), None, "command of unknown joint", "more than once"),
        ((["a", "b"], [1.0, float("nan")]), None, "command not finite", "'b' is nan"),
        ((["a", "b"], [1.0, float("inf")]), None, "command not finite", "'b' is inf"),
        ((["c"], [1.0]), None, "command without limit", "set effort_limits.c > 0"),
    ],
)
def test_commands_are_refused_with_a_reason(message, age, kind, expected):
    """Kind and sentence; the error survives a pickle."""
    reader = EffortReader(["a", "b", "c"], {2: "c"}, 0.1)
    with pytest.raises(RefusedCommand, match=expected) as caught:
        reader.joint_state(_message(*message), age)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.kind, str(copy)) == (kind, str(caught.value))


def test_warnings_begin_and_end_with_a_line():
    """One each, however often the same is said with other numbers."""
    starts, ended = [], []
    notices = Notices(starts.append, ended.append)
    for number in (0.8, 0.7):
        notices.update({"pace": f"factor {number}"})
    assert (starts, ended) == (["factor 0.8"], [])
    notices.update({"other": "x"})
    assert (starts[1:], ended) == (["x"], ["over: pace"])
    pace = Pace(0.01, most=0)
    for k in range(100):
        for _ in range(pace.owed(0.02 * k)):
            pace.moved()
    warnings = pace_warnings(pace, 0.95, 0.1)
    assert warnings["lag of simulated time"].endswith("real-time factor 0.50")
    assert warnings["missed cycles"] == "50% of the cycles are missed"
    assert not pace_warnings(pace, 0.4, 0.6)


def test_a_payload_of_parameters():
    """None unless it has mass and is attached; without a link it is refused."""
    values = {field.name: field.default for field in PAYLOAD_FIELDS}
    assert payload_of(values.get) is None
    values["payload.mass"] = 2.0
    with pytest.raises(dyn.SettingError, match=r"set payload\.link"):
        payload_of(values.get)
    values["payload.link"] = "rod"
    assert payload_of(values.get).mass == 2.0
    values["payload.attached"] = False
    assert payload_of(values.get) is None


# ---- driven directly


@pytest.fixture
def lever(tmp_path):
    """Return the path of a robot as xacro, with its mass as an argument."""
    path = tmp_path / "lever.urdf.xacro"
    path.write_text(XACRO)
    return str(path)


@pytest.fixture
def make(ros, lever):
    """Return a function that makes an active simulator of the lever."""
    pytest.importorskip("xacro", reason="xacro is not installed")
    from rclpy.lifecycle import TransitionCallbackReturn
    from rclpy.parameter import Parameter

    from ros_nodes.simulator_node import SimulatorNode

    made = []

    def node(good=True, **values):
        settings = {
            "robot_description_file": lever,
            "xacro_arguments": ["mass=3.5"],
            "autostart": False,
            "engine": "graph",
            **{name.replace("__", "."): x for name, x in values.items()},
        }
        overrides = [Parameter(name, value=x) for name, x in settings.items()]
        made.append(SimulatorNode(parameter_overrides=overrides))
        success = TransitionCallbackReturn.SUCCESS
        assert (made[-1].trigger_configure() == success) == good, made[-1].failure
        if good:
            assert made[-1].trigger_activate() == success
        return made[-1]

    yield node
    for each in made:
        each.destroy_node()


@pytest.fixture
def wall(monkeypatch):
    """Return a clock of the simulator node that a test sets."""
    import ros_nodes.simulator_node as module

    clock = SimpleNamespace(now=100.0, step=0.0)

    def monotonic():
        clock.now += clock.step
        return clock.now

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=monotonic))
    return clock


def _set(node, **values):
    from rclpy.parameter import Parameter

    wishes = [Parameter(k.replace("__", "."), value=v) for k, v in values.items()]
    return node.set_parameters_atomically(wishes)


@ros_only
def test_missed_cycles_are_caught_up_within_a_bound(make, wall):
    """After a gap simulated time is the wall's; a slow step leaves it behind, WARN."""
    node = make(update_rate=100, max_catch_up=4, frame_id="world")
    for now in (100.0, 100.01, 100.045):
        wall.now = now
        node._cycle()
    assert node.steps == 5
    assert node.elapsed == pytest.approx(0.05)
    wall.now = 100.05
    wall.step = 0.02  # of each look at the clock
    node._cycle()
    assert node.steps == 6
    wall.step = 0.0
    for k in range(200):  # each comes two periods after the one before
        wall.now = 101.0 + 0.02 * k
        node._cycle()
        if k == 20:
            assert _set(node, warning_share=0.3).successful
    level, message, values = node.status()
    assert level == b"\x01"
    assert "50% of the cycles are missed" in message
    assert values["real-time factor"] == "1.000"
    assert values["lost periods"] > 80
    node.robot.paused = True
    node._cycle()
    assert node.pace.debt == 0
    assert node.topics.message.header.frame_id == "world"


@ros_only
def test_stamps_are_of_one_clock(make):
    """With publish_clock they are simulated; without a source of /clock it warns."""
    clock = {"publish_clock": True, "use_sim_time": True}
    node = make(**clock, update_rate=300)
    for _ in range(301):
        node._cycle()
    stamp = node.topics.message.header.stamp
    assert (stamp.sec, stamp.nanosec) == (1, 3_333_333)
    assert "no /clock" not in node.warnings()
    mute = make(use_sim_time=True)
    before = mute.robot.q.copy()
    mute._cycle()
    assert mute.robot.q != before
    level, message, _ = mute.status()
    assert level == b"\x01"
    assert "use_sim_time is set and no /clock comes" in message
    mute.diagnose()


@ros_only
def test_commands_that_may_be_old_are_refused(make):
    """By their stamp; or what a node finds in its queues after it was busy for long."""
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    node = make(command_timeout=0.5)
    commands = node.commands
    commands.on_array(Float64MultiArray(data=[8.0]))
    commands.check_gap(time.monotonic() - 0.6)
    commands.on_array(Float64MultiArray(data=[9.0]))
    assert node.robot.tau.tolist() == [8.0]
    commands.on_array(Float64MultiArray(data=[7.0]))
    commands.on_joint_state(JointState(name=["pin"], effort=[9.0]))
    commands.restart()
    commands.check_gap(time.monotonic() - 0.6)
    stamped = JointState(name=["pin"], effort=[6.0])
    stamped.header.stamp = node.get_clock().now().to_msg()
    commands.on_joint_state(stamped)
    assert node.robot.tau.tolist() == [6.0]
    commands.restart()
    commands.on_array(Float64MultiArray(data=[7.0]))
    late = JointState(name=["pin"], effort=[9.0])
    late.header.stamp = node.get_clock().now().to_msg()
    late.header.stamp.sec -= 1
    commands.on_joint_state(late)
    commands.on_joint_state(JointState(name=["pin"], effort=[float("nan")]))
    assert node.robot.tau.tolist() == [7.0]
    assert node.counters == {"command late": 3, "command without effort": 1}
    assert node.robot.stale(node.robot.commanded + 0.51)
    late.header.stamp.sec += 1
    for _ in range(60):
        commands.on_joint_state(JointState(name=["pin"], effort=[90.0]))
    assert node.robot.tau.tolist() == [60.0]
    level, message, values = node.status()
    assert (level, values["limited share"]) == (b"\x01", "0.94")
    assert "94% of the commands are beyond effort limits" in message


@ros_only
def test_the_end_of_the_controller_is_no_fault(make, capfd):
    """A missing command is one while the node that sent commands is there."""
    from std_msgs.msg import Float64MultiArray

    node = make(command_timeout=0.05)
    topic = "effort_controller/commands"
    for ended in (False, True):
        other = node.create_publisher(Float64MultiArray, topic, 1)
        node.commands.on_array(Float64MultiArray(data=[1.0]))
        node._move(time.monotonic() + 1.0)
        if ended:
            node.destroy_publisher(other)
        node.diagnose()
        assert "no effort command" in node.status()[1]
        assert ("no effort command" in capfd.readouterr().err) != ended
        node.notices.update({})
        capfd.readouterr()
        if not ended:
            node.destroy_publisher(other)


@ros_only
@pytest.mark.parametrize(("start", "asked"), [(-90.0, True), (0.3, False)])
def test_a_start_in_degrees_is_asked_about(make, capfd, start, asked):
    """Brakes may hold the robot there: no step would fail and tell it."""
    make(initial_positions=[start], brakes=True)
    said = capfd.readouterr()
    assert ("is q0 in degrees? the start is beyond" in said.out + said.err) == asked


@ros_only
def test_weight_and_payload_of_the_node(make):
    """The robot holds itself with a payload that is set, removed and refused live."""
    node = make(robot_compensates_gravity=True, payload__link="rod")
    node._move(1.0)
    weight = 3.5 * 9.81 * 0.5
    np.testing.assert_allclose(node.robot.effort, [weight], rtol=1e-9)
    assert _set(node, payload__mass=2.0, payload__com=[1.0, 0.0, 0.0]).successful
    for _ in range(10):
        node._move(1.0)
    np.testing.assert_allclose(node.robot.effort, [weight + 2 * 9.81], rtol=1e-9)
    assert abs(node.robot.qd[0]) < 1e-9
    refused = _set(node, payload__inertia=[1.0, 0.0, 0.0, 1.0, 0.0, 3.0])
    assert "moments of inertia 1, 1, 3" in refused.reason
    assert "clean up first" in _set(node, payload__link="base").reason
    assert node.status()[2]["payload [kg]"] == 2.0
    answer = node.live["payload"].on_attach(
        SimpleNamespace(data=False), SimpleNamespace()
    )
    assert (answer.success, answer.message) == (True, "rod is empty")
    assert not node.get_parameter("payload.attached").value
    node._move(1.0)
    np.testing.assert_allclose(node.robot.effort, [weight], rtol=1e-9)
    answer = node.live["payload"].on_attach(
        SimpleNamespace(data=True), SimpleNamespace()
    )
    assert answer.message == "rod carries 2 kg"
    assert _set(node, payload__mass=0.0).successful
    answer = node.live["payload"].on_attach(
        SimpleNamespace(data=True), SimpleNamespace()
    )
    assert "payload.mass is 0 kg: set it" in answer.message
    node.trigger_deactivate()
    node.trigger_cleanup()
    assert not node.live
    node = make(good=False, payload__mass=1.0)
    assert "set payload.link" in node.failure
    node = make(good=False, payload__link="hook")
    assert "hook" in node.failure


@ros_only
def test_a_controller_carries_the_payload_of_its_parameters(make, lever):
    """Its robot is xacro with arguments; the payload comes, goes, and may be refused."""
    from rclpy.parameter import Parameter

    from ros_nodes.computed_torque_node import ComputedTorqueNode

    settings = {
        "robot_description_file": lever,
        "xacro_arguments": ["mass=3.5"],
        "autostart": False,
        "engine": "graph",
        "good_samples": 1,
        "payload.link": "rod",
        "blend_time": 0.005,
        "effort_slew": [1e6],
    }
    node = ComputedTorqueNode(
        parameter_overrides=[Parameter(k, value=v) for k, v in settings.items()]
    )
    try:
        node.trigger_configure()
        assert node.failure is None, node.failure
        weight, controller = 3.5 * 9.81 * 0.5, node.controller
        controller.update(0.0, [0.0], [0.0])
        assert controller.update(0.01, [0.0], [0.0]) == pytest.approx([weight])
        assert _set(node, payload__mass=2.0, payload__com=[1.0, 0.0, 0.0]).successful
        assert controller.update(0.02, [0.0], [0.0]) == pytest.approx([weight])
        loaded = controller.update(0.03, [0.0], [0.0])
        assert loaded == pytest.approx([weight + 2 * 9.81])
        assert not _set(
            node, payload__inertia=[1.0, 0.0, 0.0, 1.0, 0.0, 3.0]
        ).successful
        answer = node.live["payload"].on_attach(
            SimpleNamespace(data=False), SimpleNamespace()
        )
        assert answer.success
        assert controller.update(0.04, [0.0], [0.0]) == pytest.approx(loaded)
        assert controller.update(0.05, [0.0], [0.0]) == pytest.approx([weight])
    finally:
        node.destroy_node()


# ---- over DDS


@ros_only
def test_topics_of_the_simulator(make, until):
    """xacro as URDF, latched; efforts of both kinds of publishers; two are too many."""
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.node import Node
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray, String

    from ros_nodes.base.node import LATCHED

    node = make(publish_clock=True, use_sim_time=True)
    probe, urdf, states, diagnoses = Node("probe"), [], [], []
    try:
        probe.create_subscription(String, "robot_description", urdf.append, LATCHED)
        probe.create_subscription(JointState, "joint_states", states.append, 10)
        probe.create_subscription(DiagnosticArray, "/diagnostics", diagnoses.append, 1)
        until(lambda: urdf and states, node, probe, expected="topics")
        assert 'mass value="3.5"' in urdf[0].data
        assert dyn.load(urdf[0].data).name == "lever"
        assert states[0].header.frame_id == ""
        best = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        speak = probe.create_publisher(JointState, "joint_commands", best)
        other = "effort_controller/commands"

        def said(effort):
            command = JointState(name=["pin"], effort=[effort])
            command.header.stamp = states[-1].header.stamp
            speak.publish(command)
            return states[-1].effort[0] == effort

        until(lambda: said(4.0), node, probe, expected="an effort by name")
        assert "command publishers" not in node.warnings()
        array = probe.create_publisher(Float64MultiArray, other, 1)
        until(lambda: "command publishers" in node.warnings(), node, probe)
        assert "1 on /joint_commands" in node.status()[1]
        assert "1 on /effort_controller/commands" in node.status()[1]

        def commanded():
            array.publish(Float64MultiArray(data=[5.0]))
            return states[-1].effort[0] == 5.0

        until(commanded, node, probe, expected="an effort by order")
        stamps = [s.header.stamp.sec + 1e-9 * s.header.stamp.nanosec for s in states]
        steps = np.diff(stamps) / 0.002
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-4)
        assert stamps[-1] < 100.0
        until(lambda: diagnoses, node, probe, expected="diagnostics")
        assert diagnoses[-1].header.stamp.sec < 100
    finally:
        probe.destroy_node()
    silent = make(publish_description=False)
    assert not silent.count_publishers("nothing")
    assert [p.topic_name for p in silent.publishers].count("/robot_description") == 0
