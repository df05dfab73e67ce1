"""The simulator node with a planar chain: transitions, refusals, and over DDS."""

import re
import time

import numpy as np
import pytest
import yaml

from dyn_core import robots
from dyn_core.planar import from_angles, make_chain
from dyn_core.planar.chain.plant import chain_poses
from dyn_core.simulation.channels import MeasuredJoints
from ros_nodes.conversions import joint_motion
from ros_nodes.graphs import CHAIN, GRAPHS, ros_arguments

pytestmark = pytest.mark.timeout(120)
ros_only = pytest.mark.ros
NAMES = ["toe", "heel", "knee"]
START = [2.9, -1.6, -1.0]


def test_points_stand_upright_in_the_frame_of_ros():
    """x is X, y is Z; a frame's X axis points along the link that begins there."""
    from dyn_core.spatial.conventions import rotation

    chain = make_chain([0.5, 0.4], [1.0, 1.0, 1.0], joint_names=("a", "b", "c"))
    state = from_angles(chain, (0.1, 0.2), (0.3, -0.4), [0.7, 1.1], [2.0, -0.5])
    joint_poses = [joint_motion(pose) for pose in chain_poses(chain, state)]
    assert [p.name for p in joint_poses] == ["a", "b", "c"]
    for i, place in enumerate(joint_poses):
        R = rotation(place.rotation)
        k = min(i, 1)
        link = (state.x[k + 1] - state.x[k]) / chain.lengths[k]
        np.testing.assert_allclose(R @ [1, 0, 0], [link[0], 0, link[1]], atol=1e-12)
        np.testing.assert_allclose(place.translation, [state.x[i, 0], 0, state.x[i, 1]])
        v = R @ place.linear
        np.testing.assert_allclose(v, [state.v[i, 0], 0, state.v[i, 1]], atol=1e-12)
    for k in range(2):  # v_next - v = omega x r, in the frame's axes
        R, place = rotation(joint_poses[k].rotation), joint_poses[k]
        r = joint_poses[k + 1].translation - place.translation
        relative = R.T @ (
            rotation(joint_poses[k + 1].rotation) @ joint_poses[k + 1].linear
        )
        np.testing.assert_allclose(
            relative - place.linear, np.cross(place.angular, R.T @ r), atol=1e-12
        )
    joints = MeasuredJoints.of_names(chain.joint_names[:-1])
    written = joints.read(np.ones(2), np.zeros(2), np.zeros(2))
    assert written.names == ["a", "b"]


def test_the_graph_gives_its_robot_as_chain_file():
    """`dyn up chain --robot my.yaml` and the launch argument name a chain."""
    assert GRAPHS["chain"].nodes == (CHAIN,)
    assert ros_arguments(CHAIN, "p.yaml", "my.yaml")[-1] == "chain_file:=my.yaml"
    data = yaml.safe_load(GRAPHS["chain"].params_file.read_text(encoding="utf-8"))
    assert data["/**"]["ros__parameters"]["chain_file"] in robots.chains()


# ---- driven directly, without communication


@pytest.fixture
def make(ros):
    """Return a function that makes a simulator with parameters."""
    from rclpy.lifecycle import TransitionCallbackReturn
    from rclpy.parameter import Parameter

    from ros_nodes.simulator_node import SimulatorNode

    made = []

    def node(**values):
        settings = {"chain_file": "hopper", "autostart": False, "update_rate": 200}
        settings |= {k.replace("__", "."): v for k, v in values.items()}
        overrides = [
            Parameter(k, value=v) for k, v in settings.items() if v is not None
        ]
        made.append(SimulatorNode(parameter_overrides=overrides))
        made[-1].good = TransitionCallbackReturn.SUCCESS
        made[-1].bad = TransitionCallbackReturn.FAILURE
        return made[-1]

    yield node
    for each in made:
        each.destroy_node()


@pytest.fixture
def active(make):
    """Return a function that makes an active simulator whose timer does not run."""

    def node(**values):
        one = make(**values)
        assert one.trigger_configure() == one.good, one.failure
        assert one.trigger_activate() == one.good
        return one

    return node


def _ask(callback, **request):
    """Call a service callback with a fresh response; give success and message."""
    from types import SimpleNamespace

    answer = callback(SimpleNamespace(**request), SimpleNamespace())
    return answer.success, answer.message


def _state(position, velocity=(), names=NAMES):
    from sensor_msgs.msg import JointState

    return JointState(name=list(names), position=position, velocity=velocity)


@ros_only
def test_a_whole_life(make):
    """configure, activate, deactivate, cleanup, and the same again."""
    node = make()
    for _ in range(2):
        assert node.trigger_configure() == node.good, node.failure
        assert node.model.name == "hopper"
        assert list(node.topics.message.name) == node.joints == NAMES
        assert node.trigger_activate() == node.good
        assert node.trigger_deactivate() == node.good
        assert node.trigger_cleanup() == node.good
        assert node.model is None
    assert node.trigger_shutdown() == node.good


@ros_only
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"robot_description_file": "arm7"},
            "chain_file and robot_description_file are both set: set one",
        ),
        (
            {"robot_description": "<robot/>"},
            "chain_file and robot_description are both set",
        ),
        ({"chain_file": "jumper"}, "no file 'jumper'; shipped chains: .*hopper"),
        ({"prescribed__joints": ["knee"]}, "prescribed.joints is for robots"),
        ({"substeps": 3}, "substeps is for robots"),
        ({"gravity": [0.0, 0.0, -1.6]}, "gravity is for robots"),
        ({"root_joint": "floating"}, "root_joint is for robots"),
        (
            {"initial_positions": [1.0, 2.0]},
            "initial_positions has 2 numbers for 3 joints: toe, heel, knee",
        ),
        ({"initial_velocities": [1.0, 2.0]}, "initial_velocities has 2 numbers"),
        (
            {"initial_positions": [2.9, -1.6, 0.5]},
            "knee at its upper limit is 0.52 rad",
        ),
        ({"initial_positions": [-1.5, 0.0, -0.5]}, "knee on ground 0 is .* m inside"),
        ({"engine": "steam"}, "valid: plain, graph"),
    ],
)
def test_configure_fails_with_a_reason(make, values, expected):
    """The node stays unconfigured and its failure says why."""
    node = make(**values)
    assert node.trigger_configure() == node.bad
    assert node.model is None
    assert re.search(expected, node.failure), node.failure


@ros_only
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lengths: [0.5]\nmasses: [1.0]\n", "bad.yaml: lengths: 1 links for 1"),
        ("lengths: [0.5]\nmasses: [1.0, .nan]\n", r"bad.yaml: masses\[1\]"),
        ("lengths: [\n", "bad.yaml: not YAML"),
        ("lenghts: [0.5]\nmasses: [1, 1]\n", "bad.yaml: .*lenghts"),
        ("lengths: []\nmasses: [1.0]\n", "no link"),
        ("lengths: [1]\nmasses: [1, 1]\ndt: 0.01\nwindow: 1.0e-4\n", "window must be"),
    ],
)
def test_bad_chain_files_are_refused_with_a_reason(make, tmp_path, text, expected):
    """The failure names file and key."""
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    node = make(chain_file=str(path))
    assert node.trigger_configure() == node.bad
    assert re.search(expected, node.failure), node.failure


@ros_only
def test_a_chain_becomes_a_robot_and_back(make):
    """chain_file is structure: clean up, set, configure."""
    from rclpy.parameter import Parameter

    node = make()

    def assign(**values):
        parameters = [Parameter(name, value=value) for name, value in values.items()]
        return node.set_parameters_atomically(parameters)

    assert node.trigger_configure() == node.good
    refused = assign(chain_file="")
    assert not refused.successful
    assert "clean up first" in refused.reason
    node.trigger_cleanup()
    assert assign(chain_file="", robot_description_file="two_link").successful
    assert node.trigger_configure() == node.good, node.failure
    assert node.model.nv == 2
    node.trigger_cleanup()
    assert assign(chain_file="double_pendulum", robot_description_file="").successful
    assert node.trigger_configure() == node.good, node.failure
    assert node.joints == ["pin", "elbow"]


@ros_only
def test_the_topic_of_robots_is_left_alone(make):
    """A robot on robot_description neither starts nor changes a chain's node."""
    from std_msgs.msg import String

    node = make()
    assert not node.waits_for_robot()
    node._on_description(String(data="<robot"))
    assert not node.counters
    assert node.trigger_configure() == node.good, node.failure
    node._on_description(String(data=robots.path("arm7").read_text()))
    assert node.model.name == "hopper"
    assert make(chain_file="").waits_for_robot()


@ros_only
def test_impacts_and_what_is_dropped_reach_the_diagnostics(active):
    """Counts of hits, energy, what holds; a foot that lies on the ground is well."""
    node = active()
    level, summary, values = node.status()
    assert (level, summary) == (b"\x00", "running")
    assert values["hits"] == 0
    assert values["holds"] == "nothing"
    for _ in range(62):
        node._move(time.monotonic())
    level, summary, values = node.status()
    assert values["hits"] == node.robot.happened["hit"] >= 3
    assert values["releases"] >= 1
    assert float(values["energy lost [J]"]) > 1.0
    assert "toe on ground 0" in values["holds"]
    assert values["dropped"] >= 1
    assert values["last event"] != "none"
    assert (level, summary) == (b"\x00", "running")
    assert values["dropped now"] == "length of link 0"
    simulator, pulled = node.robot.simulator, np.zeros((4, 2))
    pulled[0, 0] = 0.01  # the toe
    simulator.x = simulator.x + pulled
    assert node.status()[:2] == (b"\x01", "cannot be met: length of link 0")
    assert {"mode cycles", "chattering", "halved steps", "event limits"} < set(values)
    node.diagnose()


@ros_only
def test_latches_are_a_warning_for_a_while(active):
    """A second of simulated time after the last of them it is well again."""
    node = active(chain_file="double_pendulum")
    node._move(time.monotonic())
    node.robot.simulator._note("chatter", "angle 1 is kept on for a while", 1)
    level, summary, values = node.status()
    assert (level, values["chattering"]) == (b"\x01", 1)
    assert summary.startswith("chattering: angle 1 is kept on")
    while node.robot.t < 1.1:
        node._move(time.monotonic())
    assert node.status()[0] == b"\x00"


@ros_only
def test_efforts_by_command(active):
    """Taken in the order of the joints; wrong sizes and NaN are refused; stale: zero."""
    from std_msgs.msg import Float64MultiArray

    node = active(chain_file="double_pendulum", command_timeout=0.05)
    node.commands.on_array(Float64MultiArray(data=[1.0, -2.0]))
    np.testing.assert_array_equal(node.robot.effort, [1.0, -2.0])
    node.commands.on_array(Float64MultiArray(data=[1.0]))
    node.commands.on_array(Float64MultiArray(data=[1.0, float("nan")]))
    np.testing.assert_array_equal(node.robot.effort, [1.0, -2.0])
    assert node.counters["command of wrong size"] == 1
    assert node.counters["command not finite"] == 1
    node._move(time.monotonic() + 1.0)
    np.testing.assert_array_equal(node.robot.effort, [0.0, 0.0])
    assert node.counters["command stale"] == 1
    assert node.status()[:2] == (b"\x01", "no effort command: effort is zero")


@ros_only
def test_pause_step_and_reset(active):
    """step needs a pause and moves by one period; reset goes back to the file's start."""
    node = active()
    done, message = _ask(node._on_step)
    assert not done
    assert "pause first" in message
    assert _ask(node._on_pause, data=True) == (True, "paused")
    before = node.robot.state
    node._move(time.monotonic())
    np.testing.assert_array_equal(node.robot.state, before)
    assert _ask(node._on_step) == (True, "moved by 0.005 s")
    assert node.robot.paused
    assert node.robot.t == pytest.approx(0.005)
    assert node.elapsed == pytest.approx(0.005)
    assert node.robot.state.v[0, 1] == pytest.approx(-9.81 * 0.005)
    assert _ask(node._on_reset)[0]
    np.testing.assert_array_equal(node.robot.state, before)
    assert node.elapsed == pytest.approx(0.005)
    node.trigger_deactivate()
    assert _ask(node._on_step) == (False, "no step: activate first")


@ros_only
def test_a_robot_steps_as_well(active):
    """~/step is there for robots, too; a failed step is told."""
    node = active(chain_file="", robot_description_file="arm7")
    node.robot.paused = True
    before = node.robot.q.copy()
    for _ in range(3):
        assert _ask(node._on_step)[0]
    assert np.abs(node.robot.q - before).max() > 0
    node.robot.qd = np.full(7, np.nan)
    done, message = _ask(node._on_step)
    assert not done
    assert "step failed" in message
    assert node.robot.paused


@ros_only
@pytest.mark.parametrize("chain", ["hopper", ""])
def test_brakes_hold_in_a_step_and_the_answer_says_so(active, chain):
    """Simulated time passes; robots and chains stand until their first command."""
    from std_msgs.msg import Float64MultiArray

    robot = None if chain else "arm7"
    node = active(chain_file=chain, robot_description_file=robot, brakes=True)
    _ask(node._on_pause, data=True)
    before = node.robot.q.copy()
    braked = "moved by 0.005 s; the brakes hold the robot until the first command"
    assert _ask(node._on_step) == (True, braked)
    assert node.elapsed == pytest.approx(0.005)
    np.testing.assert_array_equal(node.robot.q, before)
    assert node.robot.braked
    node.commands.on_array(Float64MultiArray(data=[0.0] * len(node.joints)))
    assert not node.robot.braked
    assert _ask(node._on_step) == (True, "moved by 0.005 s")


@ros_only
def test_a_chain_that_moves_has_no_brakes(make):
    """As a robot that moves has none."""
    node = make(
        chain_file="double_pendulum", initial_velocities=[0.5, 0.0], brakes=True
    )
    assert node.trigger_configure() == node.bad
    assert "brakes hold a robot that moves" in node.failure


@ros_only
def test_a_state_is_taken_while_paused(active):
    """By name, base where it is; running, NaN, missing, beyond a limit are refused."""
    node = active()
    node.topics.on_state(_state([1.0, -1.0, -1.0]))
    assert node.counters["state refused"] == 1
    np.testing.assert_allclose(node.robot.q, START, atol=1e-12)
    node.robot.paused = True
    for bad in (
        _state([1.0, float("nan"), -1.0]),
        _state([1.0, -1.0], names=NAMES[:2]),
        _state([1.0, -1.0, 0.5]),
        _state([1.0, -1.0, -1.0], [0.0, 1.0]),
        _state([]),
    ):
        node.topics.on_state(bad)
        np.testing.assert_allclose(node.robot.q, START, atol=1e-12)
    assert node.counters["state refused"] == 6
    message = _state(
        [9.0, -0.5, 1.2, -0.9], [9.0, 0.3, 0.1, 0.2], ["hat", "knee", "toe", "heel"]
    )
    node.topics.on_state(message)
    np.testing.assert_allclose(node.robot.q, [1.2, -0.9, -0.5], atol=1e-12)
    np.testing.assert_allclose(node.robot.qd, [0.1, 0.2, 0.3], atol=1e-12)
    np.testing.assert_allclose(node.robot.state.x[0], [0.0, 0.3])
    assert _ask(node._on_reset)[0]
    np.testing.assert_allclose(node.robot.q, START, atol=1e-12)


@ros_only
def test_starts_by_parameter(active):
    """initial_positions and initial_velocities, of chains and of robots."""
    both = {"initial_positions": [1.2, -0.9], "initial_velocities": [0.5, -0.25]}
    node = active(chain_file="double_pendulum", **both)
    np.testing.assert_allclose(node.robot.q, [1.2, -0.9], atol=1e-12)
    np.testing.assert_allclose(node.robot.qd, [0.5, -0.25], atol=1e-12)
    node = active(chain_file="", robot_description_file="two_link", **both)
    np.testing.assert_array_equal(node.robot.q, [1.2, -0.9])
    np.testing.assert_array_equal(node.robot.qd, [0.5, -0.25])


# ---- two processes over DDS on this machine


class Probe:
    """A node that listens and speaks for a test."""

    def __init__(self, until):
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.node import Node
        from rosgraph_msgs.msg import Clock
        from sensor_msgs.msg import JointState, MultiDOFJointState
        from std_msgs.msg import Float64MultiArray

        self.node, self.spin = Node("probe"), until
        self.states, self.points, self.times, self.said = [], [], [], []
        listen, speak = self.node.create_subscription, self.node.create_publisher
        listen(JointState, "joint_states", self.states.append, 10)
        listen(MultiDOFJointState, "multi_dof_joint_states", self.points.append, 10)
        listen(Clock, "/clock", self.times.append, 10)
        listen(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self.efforts = speak(Float64MultiArray, "effort_controller/commands", 1)
        self.to_state = speak(JointState, "simulator/state", 1)

    def _on_diagnostics(self, message):
        for status in message.status:
            values = {v.key: v.value for v in status.values}
            self.said.append((status.level, status.message, values))

    def until(self, done, expected):
        """Spin until something is so."""
        self.spin(
            done, self.node, expected=expected, detail=lambda: str(self.said[-1:])
        )

    def call(self, kind, name, **request):
        """Ask a service of the simulator."""
        client = self.node.create_client(kind, f"simulator/{name}")
        self.until(client.service_is_ready, name)
        future = client.call_async(kind.Request(**request))
        self.until(future.done, f"an answer of {name}")
        return future.result()

    def value(self, key, default="0"):
        """Return the last diagnostic value."""
        return self.said[-1][2].get(key, default) if self.said else default


@pytest.fixture
def probe(ros, until):
    """Return a Probe."""
    made = Probe(until)
    yield made
    made.node.destroy_node()


def _params(**values):
    settings = {
        "chain_file": "hopper",
        "update_rate": 200,
        "diagnostic_updater.period": 0.1,
    }
    settings |= {"publish_clock": True, **values}
    return yaml.safe_dump({"simulator": {"ros__parameters": settings}})


@ros_only
def test_a_falling_chain_reports_its_impacts(start, probe):
    """joint_states with its names, points that fall to the ground, hits, /clock."""
    nodes = start(GRAPHS["chain"].nodes, _params())
    probe.until(lambda: len(probe.states) > 10 and probe.points, "joint states")
    state = probe.states[-1]
    assert list(state.name) == NAMES
    assert len(state.position) == len(state.velocity) == len(state.effort) == 3
    assert list(probe.points[-1].joint_names) == [*NAMES, "hip"]
    probe.until(lambda: int(probe.value("hits")) >= 3, "impacts")
    assert float(probe.value("energy lost [J]")) > 1.0
    probe.until(lambda: "ground" in probe.value("holds", ""), "what holds")
    probe.until(lambda: int(probe.value("dropped")) > 0, "what was dropped")
    heights = [t.translation.z for p in probe.points for t in p.transforms]
    assert min(heights) > -1e-3
    probe.until(  # it may bounce before it rests
        lambda: probe.points[-1].transforms[0].translation.z < 1e-3,
        "rest on the ground",
    )
    probe.until(lambda: len(probe.times) > 20, "/clock")
    stamps = [t.clock.sec + 1e-9 * t.clock.nanosec for t in probe.times]
    assert np.diff(stamps).min() > 0.004
    assert [process.end() for process in nodes.all] == [0]


@ros_only
def test_efforts_services_and_states_over_dds(start, probe):
    """Pause, state, step, reset; efforts move it; bad ones are refused with a reason."""
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray
    from std_srvs.srv import SetBool, Trigger

    nodes = start([CHAIN], _params(chain_file="double_pendulum", command_timeout=10.0))
    probe.until(lambda: probe.states, "joint states")
    assert list(probe.states[-1].name) == ["pin", "elbow"]
    assert not probe.call(Trigger, "step").success
    assert probe.call(SetBool, "pause", data=True).success
    hanging = JointState(name=["elbow", "pin"], position=[0.0, -np.pi / 2])
    probe.until(lambda: probe.to_state.get_subscription_count() > 0, "~/state")
    probe.to_state.publish(hanging)
    wanted = [-np.pi / 2, 0.0]
    probe.until(lambda: np.allclose(probe.states[-1].position, wanted), "the state")
    assert probe.call(Trigger, "step").success
    probe.states.clear()
    probe.until(lambda: len(probe.states) > 5, "joint states")
    np.testing.assert_allclose(probe.states[-1].position, wanted, atol=1e-9)
    for data, expected in (([1.0], "wrong size"), ([float("nan"), 0.0], "not finite")):
        probe.efforts.publish(Float64MultiArray(data=data))
        probe.until(lambda w=expected: w in nodes["simulator"].output, expected)
    assert not np.array(probe.states[-1].effort).any()
    probe.efforts.publish(Float64MultiArray(data=[2.0, 0.0]))
    probe.until(lambda: probe.states[-1].effort[0] == 2.0, "effort")
    assert probe.call(SetBool, "pause", data=False).success
    probe.until(lambda: probe.states[-1].position[0] > -np.pi / 2 + 0.2, "motion")
    assert probe.call(SetBool, "pause", data=True).success
    assert probe.call(Trigger, "reset").success
    probe.states.clear()
    probe.until(lambda: len(probe.states) > 5, "joint states")
    np.testing.assert_allclose(probe.states[-1].position, [0.4, 1.5], atol=1e-12)


@ros_only
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"chain_file": "nowhere.yaml"}, "no file 'nowhere.yaml'; shipped chains: "),
        ({"robot_description_file": "arm7"}, "are both set: set one of them"),
    ],
)
def test_bad_parameters_end_the_node_with_a_reason(start, values, expected):
    """Status 1 and the reason printed."""
    process = start([CHAIN], _params(**values))["simulator"]
    assert process.popen.wait(30) == 1
    process.reader.join(5)
    assert expected in process.output, process.output
